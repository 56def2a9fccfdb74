"""Items, their sets, embeddings or scores of every model, and external figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.engines.associations.spaces import AssociationData
from equipoise.audits.outputs import average_prompts, prompts_of
from equipoise.core.arrays import Integers
from equipoise.core.errors import DataError
from equipoise.data import (
    ArraySource,
    Items,
    Matrix,
    Outputs,
    Vectors,
    load_items,
    load_matrix,
    load_vectors,
)
from equipoise.data.problems import listed, nearest, show

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config, ModelConfig
    from equipoise.audits.engines.associations.config import MeasureConfig
    from equipoise.audits.images import Known
    from equipoise.audits.outputs import Models
    from equipoise.models.protocols import Offer

Source = ArraySource | Outputs
Between = tuple[str, str]
_ARRAYS = (".npy", ".npz", ".safetensors")


def load(config: Config, models: Models) -> AssociationData:
    """Read everything that a config names, and run the models that are named.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, or a model lacks the capability.
    DataError
        When a file cannot be used, a set names something that is not there, or the vectors of a
        model have different lengths.
    """
    images = {
        name: models.read_images(section, config.columns(name), name=name, place=f"data.{name}")
        for name, section in config.data.items()
        if section.kind == "image"
    }
    items = models.once(
        "items",
        lambda: {
            name: load_items(
                images.get(name, section).source(models.base, tuple(config.columns(name))),
                what=name,
            )
            for name, section in config.data.items()
        },
    )
    read: dict[str, Items | Vectors | Matrix] = {**items}
    vectors, pairs = dict[str, Any](), dict[str, Any]()
    for model, section in config.models.items():
        embedded, scored = _sources(config, model, section, models, images)
        if embedded:
            vectors[model] = own = _vectors(model, embedded, config, items)
            read |= {f"{model}, {table}": each for table, each in own.items()}
            continue
        pairs[model] = {
            (rows, columns): load_matrix(
                _with_names(source, items[columns]),
                items[rows],
                what=f"scores of {rows} and {columns} by {model}",
                max_unmatched=config.data[rows].max_unmatched,
            )
            for (rows, columns), source in scored.items()
        }
        read |= {f"{model}, {' and '.join(tables)}": m for tables, m in pairs[model].items()}
    outside = {}
    for index, options in enumerate(config.measure):
        if options.figures is not None:
            read[f"measure[{index}]"] = series = _series(options, items, models.base)
            numbers = series.column(series.names[0]).tolist()
            outside[index] = dict(zip(series.ids.tolist(), numbers, strict=True))
    return AssociationData(
        items=items,
        kinds={name: section.kind for name, section in config.data.items()},
        units={n: section.unit for n, section in config.data.items() if section.unit is not None},
        sets=_sets(config, items),
        vectors=vectors,
        pairs=pairs,
        outside=outside,
        planned=frozenset(outputs.model for outputs in models.outputs if outputs.planned),
        inputs={file: digest for each in read.values() for file, digest in each.inputs.items()},
        counts={name: dict(each.counts) for name, each in read.items()},
    )


def _sources(
    config: Config,
    name: str,
    section: ModelConfig,
    models: Models,
    images: Mapping[str, Known],
) -> tuple[Mapping[str, Source], Mapping[Between, Source]]:
    """Return a model's embeddings by table, or its scores by pair of tables."""
    if section.model is None:
        return (
            {table: array.source(models.base) for table, array in section.embeddings.items()},
            {scores.between: scores.source(models.base) for scores in section.pairs},
        )
    texts = {table: own for table, own in config.data.items() if own.kind == "text"}
    allowed: list[Offer] = ["encoder"]
    # A classifier embeds images only; a model of pairs needs both sides.
    allowed += ["classifier"] if images else []
    allowed += ["scorer"] if images and texts else []
    capability = models.capability(name, section, *allowed)
    pictures = {on: known.need_pictures(name, place=f"data.{on}") for on, known in images.items()}
    prompts = {
        on: prompts_of(own, models.base, what=f"data.{on}")
        for on, own in (texts.items() if capability != "classifier" else ())
    }
    if capability == "scorer":
        return {}, {
            (on, table): average_prompts(
                models.score_pairs(name, section, pictures[on], words.texts, on=on), words
            )
            for table, words in prompts.items()
            for on in pictures
        }
    return {
        **{on: models.embed_images(name, section, own, on=on) for on, own in pictures.items()},
        **{on: models.embed_texts(name, section, own, on=on) for on, own in prompts.items()},
    }, {}


def _vectors(
    model: str, sources: Mapping[str, Source], config: Config, items: Mapping[str, Items]
) -> dict[str, Vectors]:
    vectors = {
        table: load_vectors(
            source,
            items[table],
            what=f"embeddings of {table} by {model}",
            max_unmatched=config.data[table].max_unmatched,
        )
        for table, source in sources.items()
    }
    if len({each.dimension for each in vectors.values()}) > 1:
        widths = ", ".join(f"{table} {each.dimension}" for table, each in vectors.items())
        raise DataError(
            f"vectors of different lengths: {widths}",
            file=next(iter(vectors.values())).name,
            expected="all embeddings of a model in one space",
            fix="name what was embedded otherwise as a model of its own",
        )
    return vectors


def _with_names(source: Source, items: Items) -> Source:
    """Name the columns of an array without names, which are in the order of their table."""
    if not isinstance(source, ArraySource) or source.names or source.columns is not None:
        return source
    file = source.file
    is_array = isinstance(file, np.ndarray) or (isinstance(file, Path) and file.suffix in _ARRAYS)
    return replace(source, names=tuple(items.ids)) if is_array else source


def _series(options: MeasureConfig, items: Mapping[str, Items], base: Path) -> Matrix:
    """Read the external figures of a measurement, by target or region."""
    section, subjects = options.figures, options.target_names
    assert section is not None  # noqa: S101 - only of measurements that have figures
    if options.regions is not None and options.images is not None:
        subjects = (*items[options.images].coded[options.regions].vocabulary,)
    ids = np.array(subjects, dtype=object)
    wanted = Items(f"subjects of {options.metric}", "subject", ids, {}, {}, {"rows": len(ids)})
    # A series of all occupations or nations has more than the subjects, or fewer.
    return load_matrix(section.source(base), wanted, what=section.value, max_unmatched=1.0)


def _sets(config: Config, items: Mapping[str, Items]) -> dict[str, dict[str, Integers]]:
    """Return the members of every set by table, in the order of its ids or of the table."""
    places = {
        table: dict(zip(items[table].ids, count()))
        for table in {
            table
            for by_table in config.sets.values()
            for table, wanted in by_table.items()
            if not isinstance(wanted, Mapping)
        }
    }
    return {
        name: {
            table: _with_values(name, wanted, items[table])
            if isinstance(wanted, Mapping)
            else _positions(name, wanted, places[table], items[table], items[table].id)
            for table, wanted in by_table.items()
        }
        for name, by_table in config.sets.items()
    }


def _positions(
    name: str, wanted: tuple[str, ...], known: Mapping[str, int], items: Items, column: str
) -> Integers:
    for value in wanted:
        if value not in known:
            close = nearest(value, known)
            raise DataError(
                f"the set {name!r} names {show(value)}, which no row has",
                file=items.name,
                column=column,
                expected=f"some of {listed([*known])}",
                fix=f"write {show(close)} if that was meant" if close else "name one of these",
            )
    return np.array([known[value] for value in wanted], dtype=np.int64)


def _with_values(name: str, wanted: Mapping[str, tuple[str, ...]], items: Items) -> Integers:
    kept = np.ones(len(items), dtype=bool)
    for column, values in wanted.items():
        coded = items.coded[column]
        codes = _positions(name, values, dict(zip(coded.vocabulary, count())), items, column)
        kept &= np.isin(coded.codes, codes)
    if not kept.any():
        conditions = " and ".join(f"{column} {' or '.join(v)}" for column, v in wanted.items())
        raise DataError(
            f"the set {name!r} is empty: no row has {conditions}",
            file=items.name,
            expected="at least one row",
        )
    return np.flatnonzero(kept)
