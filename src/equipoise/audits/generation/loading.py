"""Read images with what models said of them, and put them through the filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.generation import reading
from equipoise.audits.generation.labels import labels_of
from equipoise.audits.generation.texts import captions_of, texts_of, values_of
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.counterfactuals.filters import (
    Candidates,
    Filtered,
    Learned,
    Stage,
    attribute_filter,
    candidates_of,
    content_filter,
    learned_thresholds,
    similarity_filter,
)
from equipoise.counterfactuals.filters.thresholds import Thresholds, of_combination
from equipoise.data import Items, ItemSource, load_items, load_matrix, load_vectors

if TYPE_CHECKING:
    from equipoise.audits.config_arrays import ArrayConfig
    from equipoise.audits.generation.config import Config
    from equipoise.audits.generation.config_filters import AttributesConfig, ContentConfig
    from equipoise.evidence.pictures import Pictures

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class GenerationData:
    """What an audit of generation measures.

    Attributes
    ----------
    filtered : Filtered
        Every candidate with what each filter said of it.
    learned : mapping of (combination, attribute) to Learned
        Thresholds that were learned from labels of people.
    pictures : Pictures or None
    store : Path
        Folder of the evidence.
    inputs, counts : mapping
        Of every file read.
    """

    filtered: Filtered
    learned: Mapping[tuple[str, str], Learned]
    pictures: Pictures | None
    store: Path
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


@dataclass(eq=False)
class _Read:
    """What is read on the way: the candidates lose images that a model has nothing for."""

    config: Config
    base: Path
    candidates: Candidates
    ids: pa.Table
    inputs: dict[str, Any]
    counts: dict[str, Any] = field(default_factory=dict)

    def images(self, about: ArrayConfig, what: str) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return a vector for each row, and which have one."""
        found = load_vectors(about.source(self.base), self.items, what=what, max_unmatched=1.0)
        usable = (found.rows >= 0) & ~found.not_finite & ~found.zero & (self._rows >= 0)
        vectors = np.zeros((self.candidates.images, found.dimension), dtype=np.float32)
        vectors[self._rows[usable]] = found.take(np.flatnonzero(usable))
        self._seen(what, found)
        present = np.zeros(self.candidates.images, dtype=bool)
        present[self._rows[usable]] = True
        return vectors, present

    def scores(
        self, about: ArrayConfig, what: str
    ) -> tuple[npt.NDArray[np.float64], tuple[str, ...], npt.NDArray[np.bool_]]:
        """Return numbers for each row, their names, and which rows have any."""
        found = load_matrix(about.source(self.base), self.items, what=what, max_unmatched=1.0)
        values = np.full((self.candidates.images, len(found.names)), np.nan)
        known = self._rows >= 0
        values[self._rows[known]] = found.take(found.names)[known]
        self._seen(what, found)
        return values, found.names, ~np.isnan(values).any(axis=1)

    def texts(self, about: ArrayConfig, texts: Sequence[str], what: str) -> dict[str, Floats]:
        """Return a vector for each text."""
        every = [*dict.fromkeys(texts)]
        items = load_items(ItemSource(pa.table({"text": pa.array(every)}), "text"), what=what)
        # Other texts may lie in the same file.
        found = load_vectors(about.source(self.base), items, what=what, max_unmatched=1.0)
        self._seen(what, found)
        if (found.rows < 0).any():
            raise DataError(
                f"there is no vector of {every[int(np.argmax(found.rows < 0))]!r}",
                file=found.name,
                expected=f"one of each of {len(every)} texts",
                fix="embed the text word for word, or name a model that does",
            )
        return dict(zip(every, found.take(np.arange(len(every))), strict=True))

    @cached_property
    def items(self) -> Items:
        """The images in the order of their table, which files without ids follow."""
        return load_items(ItemSource(self.ids, "image_id"), what="images")

    @cached_property
    def _rows(self) -> npt.NDArray[np.int64]:
        """Row of each image of the table in the candidates; -1 where it is in none."""
        place = {one: row for row, one in enumerate(self.candidates.columns["image_id"].tolist())}
        return np.array([place.get(one, -1) for one in self.items.ids.tolist()], dtype=np.int64)

    def _seen(self, what: str, found: Any) -> None:
        self.inputs |= found.inputs
        self.counts[what] = found.counts


def load(config: Config, *, base: Path) -> GenerationData:
    """Read the images, and what every filter needs; put them through the filters.

    Raises
    ------
    DataError
        When a file cannot be read or joined, or more images than `extraction.max_failures` lack
        what a model says.
    ConfigError
        When thresholds do not fit the sets, or labels are too few.
    """
    table, pictures, inputs = reading.read(config, base)
    source = config.images.table if config.images is not None else None
    file = source.as_posix() if isinstance(source, Path) else ""
    candidates = candidates_of(table, config.types, file=file)
    if not candidates.made.any():
        raise DataError("there is no image: none of those asked for was made", file=file or None)
    read = _Read(config, base, candidates, table.select(["image_id"]), dict(inputs))
    stages, learned = _stages(read)
    filtered = Filtered(read.candidates, stages, config.filters.best)
    counts = {
        "images": {
            "rows": table.num_rows,
            "states": _counted(read.candidates),
            "of no set, or without attributes": candidates.left_out,
        },
        **read.counts,
    }
    store = base / config.extraction.store
    return GenerationData(filtered, learned, pictures, store, read.inputs, counts)


def _counted(candidates: Candidates) -> dict[str, int]:
    names, counts = np.unique(candidates.state.astype(str), return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _stages(read: _Read) -> tuple[tuple[Stage, ...], dict[tuple[str, str], Learned]]:
    """Read everything first: an image that one model has nothing for is no image of a set."""
    filters = read.config.filters
    alike, content, shown = filters.similarity, filters.content, filters.attributes
    seen = said = looks = None
    if alike is not None and alike.images is not None:
        seen = read.images(alike.images, "similarity, images")
    if content is not None and content.scores is not None:
        said = read.scores(content.scores, "content, images")
    if shown is not None:
        looks = seen if shown.images is None else read.images(shown.images, "attributes, images")
    lacks = ("no vector of the image", "no content score", "no vector to see attributes by")
    for one, why in zip((seen, said, looks), lacks, strict=True):
        if one is not None:
            read.candidates = read.candidates.without(~one[-1], "unreadable", why)
    _check_failures(read)
    stages: list[Stage] = []
    learned: dict[tuple[str, str], Learned] = {}
    if alike is not None and seen is not None and alike.captions is not None:
        stages.append(_similarity(read, seen[0]))
    if content is not None and said is not None:
        stages.append(_content(read, content, said[0], said[1]))
    if shown is not None and looks is not None:
        stage, learned = _attributes(read, shown, looks[0])
        stages.append(stage)
    return tuple(stages), learned


def _content(
    read: _Read, content: ContentConfig, said: npt.NDArray[np.float64], labels: Sequence[str]
) -> Stage:
    about: dict[str, Any] = {"unsafe": content.unsafe, "threshold": content.threshold}
    try:
        return content_filter(read.candidates, said, labels, **about)
    except InputError as error:
        raise ConfigError(f"filters.content.{error}") from None


def _check_failures(read: _Read) -> None:
    lost, allowed = int((read.candidates.state == "unreadable").sum()), read.config.extraction
    every = lost + int(read.candidates.made.sum())
    if lost > allowed.max_failures * every:
        raise DataError(
            f"{lost} of {every} images have nothing that a filter could go by",
            expected=f"a share of at most {allowed.max_failures:g}",
            fix="run the models on all images, or raise extraction.max_failures",
        )


def _similarity(read: _Read, seen: Floats) -> Stage:
    about, candidates = read.config.filters.similarity, read.candidates
    assert about is not None  # noqa: S101 - the caller sees to both
    assert about.captions is not None  # noqa: S101
    captions = candidates.columns["caption"]
    table = pa.table({"caption": pa.array(captions[candidates.made].tolist(), pa.string())})
    vectors = read.texts(about.captions, captions_of(table), "similarity, captions")
    if None in captions[candidates.made]:
        raise DataError("an image has no caption to be like", column="caption")
    told = np.zeros_like(seen, shape=(candidates.images, len(next(iter(vectors.values())))))
    for row in np.flatnonzero(candidates.made).tolist():
        told[row] = vectors[captions[row]]
    try:
        return similarity_filter(
            candidates, seen, told, threshold=about.threshold, pairs=about.pairs
        )
    except InputError as error:
        raise DataError(f"filters.similarity: {error}") from None


def _attributes(
    read: _Read, shown: AttributesConfig, looks: Floats
) -> tuple[Stage, dict[tuple[str, str], Learned]]:
    candidates, types = read.candidates, read.config.types
    values = values_of(
        pa.table({name: pa.array(candidates.columns[name].tolist()) for name in types}), types
    )
    texts = texts_of(shown, values)
    assert shown.texts is not None  # noqa: S101 - the schema or what ran before sees to it
    vectors = read.texts(shown.texts, [*texts.values()], "attributes, texts")
    by_type = {
        name: (every, np.stack([vectors[texts[name, value]] for value in every]))
        for name, every in values.items()
    }
    # A plan has one candidate of each set, and no labels of it.
    planned = read.config.generator is not None
    learned: dict[tuple[str, str], Learned] = {}
    try:
        if shown.labels is not None and not planned:
            labels, inputs = labels_of(shown.labels, candidates, read.base)
            read.inputs |= inputs
            free = attribute_filter(candidates, looks, by_type, dict.fromkeys(types, 1.0))
            level = read.config.resampling.level
            learned = learned_thresholds(candidates, free, labels, level=level)
        thresholds = _thresholds(shown.given, learned, candidates, types if planned else ())
        return attribute_filter(candidates, looks, by_type, thresholds), learned
    except InputError as error:
        raise ConfigError(f"filters.attributes.{error}") from None


def _thresholds(
    given: Thresholds,
    learned: Mapping[tuple[str, str], Learned],
    candidates: Candidates,
    any_for: Sequence[str],
) -> Thresholds:
    """Return thresholds of every combination: those given, else those learned."""
    found: dict[str, dict[str, float]] = {}
    for combination in candidates.combinations:
        about = of_combination(given, combination)
        own = {name: one for name, one in about.items() if not isinstance(one, Mapping)}
        size = int(candidates.sizes[candidates.of_candidates("attributes") == combination].max())
        more = {
            name: float(one.threshold) / size
            for (where, name), one in learned.items()
            if where == combination
        }
        found[combination] = {**dict.fromkeys(any_for, 1.0), **more, **own}
    return found
