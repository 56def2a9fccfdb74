"""Read the images, the embeddings of every model, and the reference data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.taking import rows_of
from equipoise.core.errors import DataError
from equipoise.core.groups import Groups
from equipoise.data import Items, Vectors, load_items, load_vectors
from equipoise.metrics.chosen_rows import Table

if TYPE_CHECKING:
    from equipoise.audits.config_arrays import ArrayConfig
    from equipoise.audits.diversity.config import Config
    from equipoise.audits.pictures.config import PicturesConfig

Floats = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class DiversityData:
    """What an audit of diversity measures.

    Attributes
    ----------
    images : Items
    models : mapping of str to Vectors
    references : mapping of str to mapping of str to Vectors
        By reference data set and model.
    inputs, counts : mapping
        Of every file read.
    """

    images: Items
    models: Mapping[str, Vectors]
    references: Mapping[str, Mapping[str, Vectors]]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


def load(config: Config, *, base: Path) -> DiversityData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        When a file cannot be read or joined, or a reference has another dimension.
    """
    data = config.data
    images, models = _read(data.images, data.columns, config.models, base, data.max_unmatched)
    inputs = dict(images.inputs)
    counts: dict[str, Any] = {"images": images.counts}
    counts["models"] = {name: one.counts for name, one in models.items()}
    for one in models.values():
        inputs |= one.inputs
    references = {}
    for name, about in config.references.items():
        items, vectors = _read(about.images, (), about.models, base, data.max_unmatched)
        _check_dimensions(name, vectors, models)
        inputs |= items.inputs
        for one in vectors.values():
            inputs |= one.inputs
        counts.setdefault("references", {})[name] = {
            "images": items.counts, "models": {m: v.counts for m, v in vectors.items()},
        }  # fmt: skip
        references[name] = vectors
    return DiversityData(images, models, references, inputs, counts)


def _read(
    table: PicturesConfig,
    columns: tuple[str, ...],
    models: Mapping[str, ArrayConfig],
    base: Path,
    unmatched: float,
) -> tuple[Items, dict[str, Vectors]]:
    items = load_items(table.source(base, columns), what="images")
    vectors = {
        name: load_vectors(one.source(base), items, what=name, max_unmatched=unmatched)
        for name, one in models.items()
    }
    return items, vectors


def _check_dimensions(
    name: str, vectors: Mapping[str, Vectors], models: Mapping[str, Vectors]
) -> None:
    for model, one in vectors.items():
        wanted = models[model].dimension
        if one.dimension != wanted:
            raise DataError(
                f"embeddings of {one.dimension} numbers, and {models[model].name} has {wanted}",
                file=one.name,
                expected=f"embeddings of reference {name} by the same model as {model}",
                fix="embed both with the same model and settings",
            )


@dataclass(frozen=True, eq=False)
class Part:
    """The sets of one model, one choice of attributes and one value of `within`.

    Attributes
    ----------
    model, groups, within : str
        `within` is "" where the sets are not split.
    sets : mapping of str to ndarray or ChosenRows
        Embeddings of the sets that are large enough.
    small : mapping of str to int
        Sizes of those that are not.
    images : mapping of str to ndarray of int
        Places of each set's images in the table.
    """

    model: str
    groups: str
    within: str
    sets: Mapping[str, Table]
    small: Mapping[str, int]
    images: Mapping[str, npt.NDArray[np.int64]]


def parts(config: Config, data: DiversityData) -> Iterator[Part]:
    """Yield the sets to measure: model × attributes × value of `within`."""
    within = _names(data.images, (config.data.within,)) if config.data.within else None
    values = [""] if within is None else sorted({str(v) for v in within if v is not None})
    for model, vectors in data.models.items():
        for attributes in config.data.sets:
            names = _names(data.images, attributes)
            for value in values:
                chosen = vectors.usable & np.array([n is not None for n in names])
                if within is not None:
                    chosen &= within == value
                yield _part(model, " × ".join(attributes), value, names, chosen, vectors, config)


def _part(
    model: str,
    groups: str,
    within: str,
    names: npt.NDArray[np.object_],
    chosen: npt.NDArray[np.bool_],
    vectors: Vectors,
    config: Config,
) -> Part:
    rows = np.flatnonzero(chosen)
    levels, codes = np.unique(names[rows].astype(str), return_inverse=True)
    members = {level: rows[codes == code] for code, level in enumerate(levels.tolist())}
    large = {n: r for n, r in members.items() if len(r) >= config.data.min_set_size}
    small = {n: len(r) for n, r in members.items() if n not in large}
    sets = {name: rows_of(vectors, found) for name, found in large.items()}
    return Part(model, groups, within, sets, small, large)


def _names(images: Items, attributes: tuple[str | None, ...]) -> npt.NDArray[np.object_]:
    """Return the set of each image, None where an attribute is missing."""
    groups = Groups.of({str(name): images.columns[str(name)] for name in attributes})
    # Where values hold the comma that joins them, these names quote them.
    names = np.array([*groups.names, None], dtype=object)
    return np.asarray(names[groups.codes], dtype=object)
