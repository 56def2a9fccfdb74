"""Read the items, the embeddings or scores of every model, and figures from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.associations.sets import Members, columns_of, sets_of
from equipoise.core.errors import DataError
from equipoise.data import (
    ArraySource,
    Items,
    Matrix,
    Vectors,
    load_items,
    load_matrix,
    load_vectors,
)

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.config_inputs import ModelConfig, OutsideConfig
    from equipoise.audits.associations.config_measures import MeasureConfig

Between = tuple[str, str]


@dataclass(frozen=True, eq=False)
class AssociationData:
    """What an audit of associations measures.

    Attributes
    ----------
    items : mapping of str to Items
        By table.
    kinds : mapping of str to str
        "image" or "text", by table.
    units : mapping of str to str
        Column of the unit, by table that has one.
    sets : mapping of str to mapping of str to ndarray of int
        Items of every set, by table.
    vectors : mapping of str to mapping of str to Vectors
        By model that has embeddings, and table.
    pairs : mapping of str to mapping of (str, str) to Matrix
        By model that scores pairs, and tables of rows and columns.
    outside : mapping of int to mapping of str to float
        Figures from outside by subject, by place of the question.
    inputs, counts : mapping
        Of every file read.
    """

    items: Mapping[str, Items]
    kinds: Mapping[str, str]
    units: Mapping[str, str]
    sets: Mapping[str, Members]
    vectors: Mapping[str, Mapping[str, Vectors]]
    pairs: Mapping[str, Mapping[Between, Matrix]]
    outside: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def load(config: Config, *, base: Path) -> AssociationData:
    """Read everything that the configuration names.

    Raises
    ------
    DataError
        When a file cannot be used, a set names something that is not there, or the vectors of a
        model have different lengths.
    """
    items = {
        name: load_items(one.source(base, (*needed_columns(config, name),)), what=name)
        for name, one in config.data.items()
    }
    vectors = {
        model: _vectors(model, given, config, items, base)
        for model, given in config.models.items()
        if given.embeddings
    }
    pairs = {
        model: _pairs(model, given, config, items, base)
        for model, given in config.models.items()
        if given.pairs
    }
    series = {
        index: _series(asked, given, items, base)
        for index, asked in enumerate(config.measure)
        if (given := asked.outside or asked.hypothesis) is not None
    }
    read: dict[str, Any] = {**items}
    for by_model in (vectors, pairs):
        for model, found in by_model.items():
            read |= {f"{model}, {_between(name)}": one for name, one in found.items()}
    read |= {f"measure[{index}]": one for index, one in series.items()}
    return AssociationData(
        items=items,
        kinds={name: one.kind for name, one in config.data.items()},
        units={name: one.unit for name, one in config.data.items() if one.unit is not None},
        sets=sets_of(config.sets, items),
        vectors=vectors,
        pairs=pairs,
        outside={index: _figures(one) for index, one in series.items()},
        inputs={file: facts for one in read.values() for file, facts in one.inputs.items()},
        counts={name: dict(one.counts) for name, one in read.items()},
    )


def needed_columns(config: Config, table: str) -> list[str]:
    """Return the columns of a table that units, sets and questions need, each once."""
    unit = config.data[table].unit
    found = [*([unit] if unit is not None else []), *columns_of(config.sets, table)]
    for asked in config.measure:
        if asked.images == table:
            found += [c for c in (asked.groups, asked.regions, asked.label_column) if c is not None]
    return list(dict.fromkeys(found))


def _vectors(
    model: str, given: ModelConfig, config: Config, items: Mapping[str, Items], base: Path
) -> dict[str, Vectors]:
    found = {
        name: load_vectors(
            source.source(base),
            items[name],
            what=f"embeddings of {name} by {model}",
            max_unmatched=config.data[name].max_unmatched,
        )
        for name, source in given.embeddings.items()
    }
    if len({one.dimension for one in found.values()}) > 1:
        listed = ", ".join(f"{name} {one.dimension}" for name, one in found.items())
        raise DataError(
            f"vectors of different lengths: {listed}",
            file=next(iter(found.values())).name,
            expected="all embeddings of a model in one space",
            fix="name what was embedded otherwise as a model of its own",
        )
    return found


def _pairs(
    model: str, given: ModelConfig, config: Config, items: Mapping[str, Items], base: Path
) -> dict[Between, Matrix]:
    found = {}
    for one in given.pairs:
        rows, columns = one.between
        source = one.source(base)
        if not source.names and source.columns is None and _is_array(source):
            source = _named(source, items[columns])
        found[one.between] = load_matrix(
            source,
            items[rows],
            what=f"scores of {rows} and {columns} by {model}",
            max_unmatched=config.data[rows].max_unmatched,
        )
    return found


def _is_array(source: ArraySource) -> bool:
    return (
        isinstance(source.file, Path) and source.file.suffix in (".npy", ".npz", ".safetensors")
    ) or isinstance(source.file, np.ndarray)


def _named(source: ArraySource, items: Items) -> ArraySource:
    from dataclasses import replace

    return replace(source, names=tuple(items.ids))


def _series(
    asked: MeasureConfig, given: OutsideConfig, items: Mapping[str, Items], base: Path
) -> Matrix:
    subjects = [*_subjects(asked, items)]
    ids = np.array(subjects, dtype=object)
    wanted = Items(f"subjects of {asked.metric}", "subject", ids, {}, {}, {"rows": len(ids)})
    # A series of all occupations or nations has more than those asked about, or fewer.
    return load_matrix(given.source(base), wanted, what=given.value, max_unmatched=1.0)


def _subjects(asked: MeasureConfig, items: Mapping[str, Items]) -> Iterator[str]:
    if asked.regions is not None and asked.images is not None:
        yield from items[asked.images].coded[asked.regions].vocabulary
    else:
        yield from asked.target_names


def _figures(series: Matrix) -> dict[str, float]:
    column = series.column(series.names[0])
    return dict(zip(series.ids.tolist(), column.tolist(), strict=True))


def _between(name: str | Between) -> str:
    return name if isinstance(name, str) else " and ".join(name)
