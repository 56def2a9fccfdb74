"""Generate or read images, run the models of the filters on them, and filter the sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from equipoise.audits.images import pictures_of
from equipoise.audits.outputs import Models, make_images
from equipoise.core import (
    AnyArray,
    Booleans,
    ConfigError,
    DataError,
    Groups,
    InputError,
    Integers,
    Objects,
)
from equipoise.core.groups import CountedGroups
from equipoise.counterfactuals.candidates import IMAGE, Candidates, candidates_of
from equipoise.counterfactuals.captions import agreeing
from equipoise.counterfactuals.filtered import Filtered
from equipoise.counterfactuals.filters import (
    Learned,
    SetThresholds,
    Stage,
    Thresholds,
    attribute_filter,
    content_filter,
    learned_thresholds,
    of_combination,
    similarity_filter,
)
from equipoise.data import Items, ItemSource, load_items, load_matrix, load_vectors
from equipoise.data.outputs import Outputs
from equipoise.evidence.pictures import NotMade, Pictures
from equipoise.evidence.zero_shot import prompts

if TYPE_CHECKING:
    from equipoise.audits.config_fields import ArrayConfig, RunConfig
    from equipoise.audits.generation.config import (
        AttributesConfig,
        CaptionsConfig,
        Config,
        ContentConfig,
        GeneratorConfig,
        ImagesConfig,
        LabelsConfig,
        SimilarityConfig,
    )

GENERATOR = "generator"


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

    filtered: Filtered
    learned: Mapping[tuple[str, str], Learned]
    pictures: Pictures | None
    store: Path
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    copies: int | None = None

    @property
    def ids(self) -> Objects:
        """Ids of the images."""
        return self.filtered.candidates.columns["image_id"]

    def labelled(self, attributes: Sequence[str]) -> Booleans:
        """Return which images have a value of every attribute."""
        columns = [self.filtered.candidates.columns[name] for name in attributes]
        return np.array([all(values) for values in zip(*columns, strict=True)], dtype=bool)

    def grouped(self, attributes: Sequence[str], rows: AnyArray, min_size: int) -> Groups:
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


@dataclass(frozen=True, eq=False)
class Images:
    """Images with their sets and attributes.

    Attributes
    ----------
    table : pyarrow.Table
        A row per image, as `candidates_of` takes it.
    pictures : Pictures or None
    inputs : mapping
        Per file "sha256", "bytes", "rows".
    file : str
        Path of the table, for errors.
    copies : int or None
        In a dry run of a generator: candidates that each row stands for. None where the images
        exist.
    """

    table: pa.Table
    pictures: Pictures | None
    inputs: Mapping[str, Mapping[str, Any]]
    file: str = ""
    copies: int | None = None


def _generated(captions: CaptionsConfig, generator: GeneratorConfig, models: Models) -> Images:
    """Generate the images; in a dry run return a stand-in for each set."""
    from equipoise.counterfactuals import request_captions

    sets, source = captions.sets(), "generator.model"
    request = request_captions(sets, **generator.draws)
    made, outputs = make_images(generator, models, request, GENERATOR, generator.sampling)
    if made is not None:
        ids = made.table["image_id"].to_pylist()
        models.keep(GENERATOR, "images", "captions", ids, source=source, **outputs)
        return Images(made.table, made.pictures, made.inputs)
    captioned = sets.table["caption_id"].to_pylist()
    every = [f"{each}/{n:03d}" for each, n in product(captioned, range(generator.candidates))]
    ids = every[:: generator.candidates]
    table = sets.table.append_column("image_id", pa.array(ids))
    models.keep(GENERATOR, "images", "captions", ids, source=source, **outputs)
    pictures = Pictures("images to be made", np.array(sorted(every), dtype=object), NotMade())
    return Images(table, pictures, {}, copies=generator.candidates)


def _generations(folder: Path) -> Images:
    from equipoise.counterfactuals import read_generated

    generated = read_generated(folder)
    return Images(generated.table, generated.pictures, generated.inputs, str(folder))


def _table(images: ImagesConfig, config: Config, base: Path) -> Images:
    named = images.named | {name: name for name in config.attributes}
    items = load_items(images.source(base, tuple(dict.fromkeys(named.values()))), what="images")
    columns = {name: items.columns[column].tolist() for name, column in named.items()}
    made = [state == IMAGE for state in columns["state"]] if "state" in columns else None
    pictures = pictures_of(images, items, base, made)
    table = pa.table(
        {name: pa.array(cells, pa.string()) for name, cells in columns.items() if name != "path"}
        | {"image_id": items.ids.tolist()}
    )
    # Numbers of candidates are integers, so that the tenth follows the ninth.
    numbers = columns.get("candidate", [])
    if numbers and all(text is not None and text.isdecimal() for text in numbers):
        place = table.schema.get_field_index("candidate")
        table = table.set_column(place, "candidate", table["candidate"].cast(pa.int64()))
    file = images.table.as_posix() if isinstance(images.table, Path) else ""
    return Images(table, pictures, items.inputs, file)


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
    ModelError
        When a generator can't be loaded or controlled, or fails too often.
    """
    if config.captions is not None and config.generator is not None:
        images = _generated(config.captions, config.generator, models)
    elif config.images is not None and config.images.generations is None:
        images = _table(config.images, config, models.base)
    else:
        folder = None if config.images is None else config.images.generations
        images = _generations(models.base / (folder or ""))
    candidates = candidates_of(images.table, config.types, file=images.file)
    if not candidates.made.any():
        raise DataError(
            "there is no image: none of those asked for was made", file=images.file or None
        )
    reader = _Reader(config, models, images, candidates, dict(images.inputs))
    stages, learned = _stages(reader)
    own_counts = {
        "rows": images.table.num_rows,
        "states": dict(Counter(reader.candidates.state.tolist())),
        "of no set, or without attributes": candidates.left_out,
    }
    return GenerationData(
        Filtered(reader.candidates, stages),
        learned,
        images.pictures,
        models.store,
        reader.inputs,
        {"images": own_counts, **reader.counts},
        images.copies,
    )


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
    ) -> tuple[AnyArray, Booleans]:
        """Return a vector for each row of the candidates, and which rows have one."""
        if section.model is not None:
            self.models.capability(name, section, "encoder")
        source = self._source(section.images) or self.models.embed_images(
            name, section, self._pictures
        )
        what = f"{name}, images"
        vectors = load_vectors(source, self.items, what=what, max_unmatched=1.0)
        self._record(what, vectors)
        usable = vectors.usable & (self._rows >= 0)
        values = np.zeros((self.candidates.images, vectors.dimension), dtype=np.float32)
        values[self._rows[usable]] = vectors.take(np.flatnonzero(usable))
        return values, np.isin(np.arange(len(values)), self._rows[usable])

    def scores(self, section: ContentConfig) -> tuple[AnyArray, tuple[str, ...], Booleans]:
        """Return scores for each row of the candidates, their names, and which rows have any."""
        source = self._source(section.scores) or self.models.predict(
            "content", section, self._pictures, expected=section.unsafe
        )
        what = "content, images"
        matrix = load_matrix(source, self.items, what=what, max_unmatched=1.0)
        self._record(what, matrix)
        values = np.full((self.candidates.images, len(matrix.names)), np.nan)
        known = self._rows >= 0
        values[self._rows[known]] = matrix.take(matrix.names)[known]
        if isinstance(source, Outputs) and source.planned:
            # Nothing is unsafe before the model has run.
            values[:] = 0.0
        return values, matrix.names, ~np.isnan(values).any(axis=1)

    def texts(
        self,
        file: ArrayConfig | None,
        name: str,
        section: RunConfig,
        texts: Iterable[str],
        on: str,
        dimension: int,
    ) -> dict[str, AnyArray]:
        """Return a vector for each text, from a file or the model of a section.

        Raises
        ------
        DataError
            When a text has no usable vector, or texts and images have vectors of two spaces.
        """
        every = [*dict.fromkeys(texts)]
        source = self._source(file) or self.models.embed_texts(
            name, section, prompts(every, ("{}",)), on=on
        )
        what = f"similarity, {on}" if on == "captions" else "attributes, texts"
        items = load_items(ItemSource(pa.table({"text": pa.array(every)}), "text"), what=what)
        # Other texts may lie in the same file.
        vectors = load_vectors(source, items, what=what, max_unmatched=1.0)
        self._record(what, vectors)
        if not vectors.usable.all():
            raise DataError(
                f"there is no usable vector of {every[int(np.argmin(vectors.usable))]!r}",
                file=vectors.name,
                expected=f"a vector of each of {len(every)} texts, finite and not zero",
                fix="embed the text word for word, or name a model that does",
            )
        if vectors.dimension != dimension:
            raise DataError(
                f"texts have vectors of {vectors.dimension} numbers, and images of {dimension}",
                file=vectors.name,
                expected="images and texts in one space",
                fix="embed both with one model",
            )
        return dict(zip(every, vectors.take(np.arange(len(every))), strict=True))

    def _source(self, file: ArrayConfig | None) -> Any:
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
    def _rows(self) -> Integers:
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
    lost = int((reader.candidates.state == "unreadable").sum())
    n, most = lost + int(reader.candidates.made.sum()), reader.config.extraction.max_failures
    if lost > most * n:
        raise DataError(
            f"{lost} of {n} images have no output that a filter could use",
            expected=f"a share of at most {most:g}",
            fix="run the models on all images, or raise extraction.max_failures",
        )
    stages: list[Stage] = []
    learned: dict[tuple[str, str], Learned] = {}
    if similarity is not None and vectors is not None:
        stages.append(_similarity(reader, similarity, vectors[0]))
    if content is not None and scores is not None:
        try:
            stage = content_filter(
                reader.candidates, *scores[:2], unsafe=content.unsafe, threshold=content.threshold
            )
        except InputError as error:
            raise ConfigError(f"filters.content.{error}") from None
        stages.append(stage)
    if attributes is not None and looks is not None:
        stage, learned = _attributes(reader, attributes, looks[0])
        stages.append(stage)
    return tuple(stages), learned


def _similarity(reader: _Reader, section: SimilarityConfig, vectors: AnyArray) -> Stage:
    candidates = reader.candidates
    captions, made = candidates.columns["caption"], candidates.made
    own = captions[made].tolist()
    if None in own:
        raise DataError("an image has no caption to be like", column="caption")
    texts = reader.texts(section.captions, "similarity", section, own, "captions", vectors.shape[1])
    of_captions = np.zeros_like(vectors)
    of_captions[made] = [texts[caption] for caption in own]
    return similarity_filter(
        candidates, vectors, of_captions, threshold=section.threshold, pairs=section.pairs
    )


def _attributes(
    reader: _Reader, section: AttributesConfig, looks: AnyArray
) -> tuple[Stage, dict[tuple[str, str], Learned]]:
    candidates, types = reader.candidates, reader.config.types
    values = {
        name: tuple(str(value) for value in dict.fromkeys(candidates.columns[name]) if value)
        for name in types
    }
    texts = {
        (name, value): _text(section.template(name), value)
        for name, own in values.items()
        for value in own
    }
    name, model = "attributes", cast("RunConfig", section)
    if section.shared and reader.config.filters.similarity is not None:
        name, model = "similarity", reader.config.filters.similarity
    vectors = reader.texts(section.texts, name, model, texts.values(), "values", looks.shape[1])
    by_type = {
        name: (own, np.stack([vectors[texts[name, value]] for value in own]))
        for name, own in values.items()
    }
    # Labels are of images that exist.
    planned = reader.images.copies is not None
    learned: dict[tuple[str, str], Learned] = {}
    try:
        if section.labels is not None and not planned:
            labels = _labels(reader, section.labels)
            loose = attribute_filter(
                candidates, looks, by_type, _thresholds({}, {}, candidates, types)
            )
            level = reader.config.resampling.level
            learned = learned_thresholds(candidates, loose, labels, level=level)
        thresholds = _thresholds(section.fixed, learned, candidates, types if planned else ())
        return attribute_filter(candidates, looks, by_type, thresholds), learned
    except InputError as error:
        raise ConfigError(f"filters.attributes.{error}") from None


def _text(template: str, value: str) -> str:
    """Return the text of a value, such as "an old person"."""
    before, after = template.split("{}")
    words = f"{value}{after}"
    if not before.strip():
        return words.strip()
    return f"{agreeing(before.strip(), words)} {words}" if before.endswith(" ") else before + words


def _thresholds(
    fixed: Thresholds,
    learned: Mapping[tuple[str, str], Learned],
    candidates: Candidates,
    unknown: Sequence[str],
) -> SetThresholds:
    """Return thresholds of every combination: from the config, else learned; 1.0 if unknown."""
    every: dict[str, dict[str, float]] = {
        combination: dict.fromkeys(unknown, 1.0) for combination in candidates.combinations
    }
    for (combination, name), result in learned.items():
        every[combination][name] = float(result.threshold) / result.size
    for combination, own in every.items():
        of_config = of_combination(fixed, combination).items()
        own |= {name: limit for name, limit in of_config if not isinstance(limit, Mapping)}
    return every


def _labels(reader: _Reader, section: LabelsConfig) -> dict[str, dict[str, bool]]:
    """Read the labels of people, by attribute and candidate.

    Raises
    ------
    DataError
        When a cell is neither yes nor no, or every row is about an unknown set or image.
    """
    candidates = reader.candidates
    columns = tuple(dict.fromkeys(section.columns.values()))
    source = section.source(reader.models.base, columns)
    items = load_items(source, what="filters.attributes.labels")
    reader.inputs |= items.inputs
    names = [candidates.names[place] for place in candidates.candidate.tolist()]
    # A set's name goes before that of an image.
    owner = dict(zip(candidates.columns["image_id"].tolist(), names, strict=True))
    owner |= {name: name for name in candidates.names}
    if owner.keys().isdisjoint(items.ids):
        raise DataError(
            f"none of the rows is about a set of images, such as {items.ids[0]!r}",
            file=items.name,
            column=section.id,
            expected=f"names such as {candidates.names[0]!r}, or ids of images",
        )
    answers = dict.fromkeys(section.yes, True) | dict.fromkeys(section.no, False)
    labels: dict[str, dict[str, bool]] = {name: {} for name in section.columns}
    for name, column in section.columns.items():
        cells = zip(items.ids.tolist(), items.columns[column].tolist(), strict=True)
        for row, (id_, cell) in enumerate(cells, start=1):
            if id_ not in owner or cell is None:
                continue
            answer = answers.get(str(cell).strip().casefold())
            if answer is None:
                raise DataError(
                    f"{cell!r} is neither yes nor no",
                    file=items.name,
                    column=column,
                    row=row,
                    expected=f"one of {', '.join(answers)}",
                    fix="list it under filters.attributes.labels.yes or no, or under missing",
                )
            labels[name][owner[id_]] = labels[name].get(owner[id_], True) and answer
    return labels
