"""Run models on the images of an audit of generation, and put the images through the filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.audits.generation.images import Images, images_of
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.core.groups import CountedGroups, Groups
from equipoise.counterfactuals.articles import agreeing
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
from equipoise.data.outputs import Outputs
from equipoise.evidence.prompts import prompts

if TYPE_CHECKING:
    from equipoise.audits.config_arrays import ArrayConfig
    from equipoise.audits.generation.config import (
        AttributesConfig,
        Config,
        ContentConfig,
        LabelsConfig,
        SimilarityConfig,
    )
    from equipoise.audits.outputs import Models
    from equipoise.audits.running.config import RunConfig
    from equipoise.data import ArraySource
    from equipoise.evidence.pictures import Pictures

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Labels = dict[str, dict[str, bool]]


@dataclass(frozen=True, eq=False)
class GenerationData:
    """Images that went through the filters.

    Attributes
    ----------
    filtered : Filtered
        Every candidate with its results in each filter.
    learned : mapping of (combination, attribute) to Learned
        Thresholds that were learned from labels of people.
    pictures : Pictures or None
    store : Path
        Folder of the evidence.
    inputs, counts : mapping
        Of every file.
    copies : int or None
        In a dry run of a generator: candidates that each of `filtered` stands for.
    """

    filtered: Filtered = field(repr=False)
    learned: Mapping[tuple[str, str], Learned]
    pictures: Pictures | None = field(repr=False)
    store: Path
    inputs: Mapping[str, Mapping[str, Any]] = field(repr=False)
    counts: Mapping[str, Any] = field(repr=False)
    copies: int | None = None

    @property
    def ids(self) -> npt.NDArray[np.object_]:
        """Ids of the images."""
        return self.filtered.candidates.columns["image_id"]

    def labelled(self, attributes: Sequence[str]) -> Bools:
        """Return which images have a value of every attribute."""
        columns = [self.filtered.candidates.columns[name] for name in attributes]
        return np.array([all(values) for values in zip(*columns, strict=True)], dtype=bool)

    def grouped(self, attributes: Sequence[str], rows: npt.NDArray[Any], min_size: int) -> Groups:
        """Return the groups of some images."""
        columns = self.filtered.candidates.columns
        return Groups.of({name: columns[name][rows] for name in attributes}, min_size=min_size)

    def all_groups(self, attributes: Sequence[str], min_size: int) -> Groups:
        """Return the groups of all images that have the attributes."""
        groups = self.grouped(attributes, self.labelled(attributes), min_size)
        if self.copies is None:
            return groups
        parts = groups.attributes, groups.levels, groups.min_size
        return CountedGroups(parts, groups.counts * self.copies, lambda: groups.codes)


def load(config: Config, models: Models) -> GenerationData:
    """Generate or read the images, run the models of the filters, and filter the sets.

    Raises
    ------
    ConfigError
        When a model can't do what its filter needs, thresholds don't fit the sets, or labels are
        too few.
    DataError
        When a file can't be read or joined, or more images than `extraction.max_failures` lack
        outputs.
    """
    images = images_of(config, models)
    file = images.file
    candidates = candidates_of(images.table, config.types, file=file)
    if not candidates.made.any():
        raise DataError("there is no image: none of those asked for was made", file=file or None)
    reader = _Reader(config, models, images, candidates, dict(images.inputs))
    stages, learned = _stages(reader)
    names, counts = np.unique(reader.candidates.state.astype(str), return_counts=True)
    return GenerationData(
        Filtered(reader.candidates, stages, config.filters.best),
        learned,
        images.pictures,
        models.store,
        reader.inputs,
        {
            "images": {
                "rows": images.table.num_rows,
                "states": dict(zip(names.tolist(), counts.tolist(), strict=True)),
                "of no set, or without attributes": candidates.left_out,
            },
            **reader.counts,
        },
        images.copies,
    )


def values_of(columns: Mapping[str, Sequence[object]]) -> dict[str, tuple[str, ...]]:
    """Return the values of each attribute, in the order in which they appear."""
    return {
        name: tuple(str(value) for value in dict.fromkeys(cells) if value)
        for name, cells in columns.items()
    }


def _texts(
    section: AttributesConfig, values: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], str]:
    """Return the text of every value, such as "an old person", by attribute and value."""
    return {
        (name, value): _text(section.template(name), value)
        for name, every in values.items()
        for value in every
    }


def _text(template: str, value: str) -> str:
    before, after = template.split("{}")
    words = f"{value}{after}"
    if not before.strip():
        return words.strip()
    return f"{agreeing(before.strip(), words)} {words}" if before.endswith(" ") else before + words


@dataclass(eq=False)
class _Reader:
    """Runs models or reads files, and joins them to the candidates."""

    config: Config
    models: Models
    images: Images
    candidates: Candidates
    inputs: dict[str, Any]
    counts: dict[str, Any] = field(default_factory=dict)

    def vectors(
        self, name: str, section: SimilarityConfig | AttributesConfig
    ) -> tuple[Floats, Bools]:
        """Return a vector for each row of the candidates, and which rows have one."""
        if section.model is not None:
            self.models.capability(name, section, "encoder")
        source = self._source(section.images) or self.models.embed_images(
            name, section, self._pictures
        )
        what = f"{name}, images"
        vectors = load_vectors(source, self.items, what=what, max_unmatched=1.0)
        usable = (vectors.rows >= 0) & ~vectors.not_finite & ~vectors.zero & (self._rows >= 0)
        values = np.zeros((self.candidates.images, vectors.dimension), dtype=np.float32)
        values[self._rows[usable]] = vectors.take(np.flatnonzero(usable))
        self._record(what, vectors)
        present = np.zeros(self.candidates.images, dtype=bool)
        present[self._rows[usable]] = True
        return values, present

    def scores(
        self, section: ContentConfig
    ) -> tuple[npt.NDArray[np.float64], tuple[str, ...], Bools]:
        """Return scores for each row of the candidates, their names, and which rows have any."""
        source = self._source(section.scores) or self.models.predict(
            "content", section, self._pictures, expected=section.unsafe
        )
        what = "content, images"
        matrix = load_matrix(source, self.items, what=what, max_unmatched=1.0)
        values = np.full((self.candidates.images, len(matrix.names)), np.nan)
        known = self._rows >= 0
        values[self._rows[known]] = matrix.take(matrix.names)[known]
        if isinstance(source, Outputs) and source.planned:
            # Nothing is unsafe before the model has run.
            values[:] = 0.0
        self._record(what, matrix)
        return values, matrix.names, ~np.isnan(values).any(axis=1)

    def texts(
        self, file: ArrayConfig | None, name: str, section: RunConfig, texts: Sequence[str], on: str
    ) -> dict[str, Floats]:
        """Return a vector for each text, from a file or the model of a section."""
        every = [*dict.fromkeys(texts)]
        source = self._source(file) or self.models.embed_texts(
            name, section, prompts(every, ("{}",)), on=on
        )
        what = f"similarity, {on}" if on == "captions" else "attributes, texts"
        items = load_items(ItemSource(pa.table({"text": pa.array(every)}), "text"), what=what)
        # Other texts may lie in the same file.
        vectors = load_vectors(source, items, what=what, max_unmatched=1.0)
        self._record(what, vectors)
        if (vectors.rows < 0).any():
            raise DataError(
                f"there is no vector of {every[int(np.argmax(vectors.rows < 0))]!r}",
                file=vectors.name,
                expected=f"a vector of each of {len(every)} texts",
                fix="embed the text word for word, or name a model that does",
            )
        return dict(zip(every, vectors.take(np.arange(len(every))), strict=True))

    def _source(self, file: ArrayConfig | None) -> ArraySource | None:
        return None if file is None else file.source(self.models.base)

    @property
    def _pictures(self) -> Pictures:
        assert self.images.pictures is not None  # noqa: S101 - the config requires them of models
        return self.images.pictures

    @cached_property
    def items(self) -> Items:
        """The images in the order of their table, which files without ids follow."""
        return load_items(
            ItemSource(self.images.table.select(["image_id"]), "image_id"), what="images"
        )

    @cached_property
    def _rows(self) -> npt.NDArray[np.int64]:
        """Row of each image of the table in the candidates; -1 where it is in none."""
        rows = {name: row for row, name in enumerate(self.candidates.columns["image_id"].tolist())}
        return np.array([rows.get(name, -1) for name in self.items.ids.tolist()], dtype=np.int64)

    def _record(self, what: str, joined: Any) -> None:
        self.inputs |= joined.inputs
        self.counts[what] = joined.counts


def _stages(reader: _Reader) -> tuple[tuple[Stage, ...], dict[tuple[str, str], Learned]]:
    """Join everything first: a set is incomplete where an image lacks any output."""
    filters = reader.config.filters
    similarity, content, attributes = filters.similarity, filters.content, filters.attributes
    vectors = None if similarity is None else reader.vectors("similarity", similarity)
    scores = None if content is None else reader.scores(content)
    looks = None
    if attributes is not None:
        looks = vectors if attributes.shared else reader.vectors("attributes", attributes)
    reasons = ("no vector of the image", "no content score", "no vector to see attributes by")
    for joined, reason in zip((vectors, scores, looks), reasons, strict=True):
        if joined is not None:
            reader.candidates = reader.candidates.without(~joined[-1], "unreadable", reason)
    _check_failures(reader)
    stages: list[Stage] = []
    learned: dict[tuple[str, str], Learned] = {}
    if similarity is not None and vectors is not None:
        stages.append(_similarity(reader, similarity, vectors[0]))
    if content is not None and scores is not None:
        stages.append(_content(reader, content, scores[0], scores[1]))
    if attributes is not None and looks is not None:
        stage, learned = _attributes(reader, attributes, looks[0])
        stages.append(stage)
    return tuple(stages), learned


def _check_failures(reader: _Reader) -> None:
    lost = int((reader.candidates.state == "unreadable").sum())
    every, share = lost + int(reader.candidates.made.sum()), reader.config.extraction.max_failures
    if lost > share * every:
        raise DataError(
            f"{lost} of {every} images have no output that a filter could use",
            expected=f"a share of at most {share:g}",
            fix="run the models on all images, or raise extraction.max_failures",
        )


def _similarity(reader: _Reader, section: SimilarityConfig, vectors: Floats) -> Stage:
    candidates = reader.candidates
    captions = candidates.columns["caption"]
    own = captions[candidates.made].tolist()
    every = [*filter(None, own)]
    texts = reader.texts(section.captions, "similarity", section, every, "captions")
    if None in own:
        raise DataError("an image has no caption to be like", column="caption")
    of_captions = np.zeros_like(vectors, shape=(candidates.images, len(next(iter(texts.values())))))
    for row in np.flatnonzero(candidates.made).tolist():
        of_captions[row] = texts[captions[row]]
    try:
        return similarity_filter(
            candidates, vectors, of_captions, threshold=section.threshold, pairs=section.pairs
        )
    except InputError as error:
        raise DataError(f"filters.similarity: {error}") from None


def _content(
    reader: _Reader,
    section: ContentConfig,
    scores: npt.NDArray[np.float64],
    labels: Sequence[str],
) -> Stage:
    try:
        return content_filter(
            reader.candidates, scores, labels, unsafe=section.unsafe, threshold=section.threshold
        )
    except InputError as error:
        raise ConfigError(f"filters.content.{error}") from None


def _attributes(
    reader: _Reader, section: AttributesConfig, looks: Floats
) -> tuple[Stage, dict[tuple[str, str], Learned]]:
    candidates, types = reader.candidates, reader.config.types
    values = values_of({name: candidates.columns[name].tolist() for name in types})
    texts = _texts(section, values)
    name, model = "attributes", cast("RunConfig", section)
    if section.shared and reader.config.filters.similarity is not None:
        name, model = "similarity", reader.config.filters.similarity
    vectors = reader.texts(section.texts, name, model, [*texts.values()], "values")
    by_type = {
        name: (every, np.stack([vectors[texts[name, value]] for value in every]))
        for name, every in values.items()
    }
    # Labels are of images that exist.
    planned = reader.images.copies is not None
    learned: dict[tuple[str, str], Learned] = {}
    try:
        if section.labels is not None and not planned:
            labels = _labels(reader, section.labels)
            loose = attribute_filter(candidates, looks, by_type, dict.fromkeys(types, 1.0))
            level = reader.config.resampling.level
            learned = learned_thresholds(candidates, loose, labels, level=level)
        thresholds = _thresholds(section.fixed, learned, candidates, types if planned else ())
        return attribute_filter(candidates, looks, by_type, thresholds), learned
    except InputError as error:
        raise ConfigError(f"filters.attributes.{error}") from None


def _thresholds(
    fixed: Thresholds,
    learned: Mapping[tuple[str, str], Learned],
    candidates: Candidates,
    unknown: Sequence[str],
) -> Thresholds:
    """Return thresholds of every combination: from the config, else learned; 1.0 if unknown."""
    every: dict[str, dict[str, float]] = {}
    for combination in candidates.combinations:
        own = {
            name: threshold
            for name, threshold in of_combination(fixed, combination).items()
            if not isinstance(threshold, Mapping)
        }
        size = int(candidates.sizes[candidates.of_candidates("attributes") == combination].max())
        shares = {
            name: float(result.threshold) / size
            for (where, name), result in learned.items()
            if where == combination
        }
        every[combination] = {**dict.fromkeys(unknown, 1.0), **shares, **own}
    return every


def _labels(reader: _Reader, section: LabelsConfig) -> Labels:
    """Read the labels of people, by attribute and candidate.

    Raises
    ------
    DataError
        When a cell is neither yes nor no, or every row is about an unknown set or image.
    """
    candidates = reader.candidates
    columns = tuple(dict.fromkeys(section.columns.values()))
    items = load_items(
        section.source(reader.models.base, columns), what="filters.attributes.labels"
    )
    reader.inputs |= items.inputs
    owner = {name: name for name in candidates.names}
    names = [candidates.names[place] for place in candidates.candidate.tolist()]
    for image, name in zip(candidates.columns["image_id"].tolist(), names, strict=True):
        if image:
            owner.setdefault(image, name)
    owners = [owner.get(name) for name in items.ids.tolist()]
    if not any(owners):
        raise DataError(
            f"none of the {len(owners)} rows is about a set of images, such as {items.ids[0]!r}",
            file=items.name,
            column=section.id,
            expected=f"names such as {candidates.names[0]!r}, or ids of images",
            fix="label sets that were generated",
        )
    return {
        name: _by_candidate(items, column, section, owners)
        for name, column in section.columns.items()
    }


def _by_candidate(
    items: Items, column: str, section: LabelsConfig, owners: list[str | None]
) -> dict[str, bool]:
    labels: dict[str, bool] = {}
    cells = zip(owners, items.columns[column].tolist(), strict=True)
    for row, (name, cell) in enumerate(cells, start=1):
        if name is None or cell is None:
            continue
        text = str(cell).strip().casefold()
        if text not in (*section.yes, *section.no):
            raise DataError(
                f"{cell!r} is neither yes nor no",
                file=items.name,
                column=column,
                row=row,
                expected=f"one of {', '.join((*section.yes, *section.no))}",
                fix="list it under filters.attributes.labels.yes or no, or under missing",
            )
        labels[name] = labels.get(name, True) and text in section.yes
    return labels
