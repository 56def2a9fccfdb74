"""Generate or read images, run the models of the filters on them, and filter the sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.images import pictures_of
from equipoise.audits.outputs import Models, make_images
from equipoise.audits.quality import Quality
from equipoise.core import (
    AnyArray,
    Booleans,
    ConfigError,
    DataError,
    Facts,
    Fields,
    Groups,
    InputError,
    Integers,
    Objects,
    Strings,
    record,
)
from equipoise.core.groups import CountedGroups
from equipoise.core.types import FileFacts
from equipoise.counterfactuals.candidates import IMAGE, Candidates, candidates_of
from equipoise.counterfactuals.captions import agreeing
from equipoise.counterfactuals.filters import (
    Filtered,
    SetThresholds,
    Stage,
    Thresholds,
    attribute_filter,
    content_filter,
    learned_thresholds,
    of_combination,
    released_columns,
    similarity_filter,
)
from equipoise.data import Items, ItemSource, Matrix, Vectors, load_items, load_matrix, load_vectors
from equipoise.data.labels import Outputs
from equipoise.data.problems import match
from equipoise.evidence.pictures import NotMade, Pictures
from equipoise.evidence.zero_shot import prompts
from equipoise.metrics.numbers.threshold_accuracy import Learned

if TYPE_CHECKING:
    from equipoise.audits.generation.config import (
        AttributesConfig,
        Config,
        ContentConfig,
        ImagesConfig,
        LabelsConfig,
        QualityConfig,
        SimilarityConfig,
    )
    from equipoise.config.fields import ArrayConfig, RunConfig

GENERATOR = "generator"
Joined = TypeVar("Joined", Vectors, Matrix)


@record
class GenerationData:
    """Images that went through the filters.

    Attributes
    ----------
    filtered : Filtered
        Every candidate with its results in each filter.
    learned : mapping of (combination, attribute) to Learned
        Thresholds that were learned from labels of people.
    quality : Quality or None
    places : ndarray of int64, shape (n,)
        Row of each image of the candidates in the tables of `quality`; -1 where there is none.
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
    quality: Quality | None
    places: Integers
    pictures: Pictures | None
    store: Path
    inputs: Mapping[str, FileFacts]
    counts: Facts
    copies: int | None = None

    @property
    def ids(self) -> Objects:
        """Ids of the images."""
        return self.filtered.candidates.columns["image_id"]

    def labelled(self, attributes: Sequence[str]) -> Booleans:
        """Return which images have a value of every attribute."""
        columns = self.filtered.candidates.columns
        return np.asarray(np.all([columns[name].astype(bool) for name in attributes], axis=0))

    def grouped(self, attributes: Sequence[str], rows: AnyArray, min_size: int) -> Groups:
        """Return the groups of some images."""
        columns = self.filtered.candidates.columns
        return Groups.of({name: columns[name][rows] for name in attributes}, min_size=min_size)

    def all_groups(self, attributes: Sequence[str], min_size: int) -> Groups:
        """Return the groups of all images that have the attributes."""
        groups = self.grouped(attributes, self.labelled(attributes), min_size)
        if self.copies is None:
            return groups
        return CountedGroups(groups.facts, groups.counts * self.copies, lambda: groups.codes)


@record
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
    inputs: Mapping[str, FileFacts]
    file: str = ""
    copies: int | None = None


def _generate(config: Config, models: Models) -> Images:
    """Generate the images; in a dry run return a stand-in for each set."""
    from equipoise.counterfactuals import request_captions

    captions, generator = config.captions, config.generator
    assert captions is not None and generator is not None  # noqa: S101, PT018 - see the config
    sets, source = captions.sets(), "generator.model"
    request = request_captions(sets, **generator.draws)
    generated, outputs = make_images(generator, models, request, GENERATOR, generator.sampling)
    if generated is not None:
        ids = generated.table["image_id"].to_pylist()
        models.keep(GENERATOR, "images", "captions", ids, source=source, **outputs)
        return Images(generated.table, generated.pictures, generated.inputs)
    captioned = sets.table["caption_id"].to_pylist()
    image_ids = [
        f"{caption_id}/{n:03d}" for caption_id, n in product(captioned, range(generator.candidates))
    ]
    ids = image_ids[:: generator.candidates]
    table = sets.table.append_column("image_id", pa.array(ids))
    models.keep(GENERATOR, "images", "captions", ids, source=source, **outputs)
    pictures = Pictures("images to be made", np.array(sorted(image_ids), dtype=object), NotMade())
    return Images(table, pictures, {}, copies=generator.candidates)


def _read_table(images: ImagesConfig, config: Config, models: Models) -> Images:
    base, attributes = models.base, tuple(config.attributes)
    named = images.named | {name: name for name in attributes}
    source = images.source(base, tuple(dict.fromkeys(named.values())))
    source = replace(source, attributes=attributes)
    items = models.once("images", lambda: load_items(source, subject="images"))
    columns = {name: items.columns[column].tolist() for name, column in named.items()}
    columns["image_id"] = items.ids.tolist()
    has_image = [state == IMAGE for state in columns["state"]] if "state" in columns else None
    pictures = pictures_of(images, items, base, has_image)
    columns.pop("path", None)
    types = dict.fromkeys(columns, pa.string())
    # Numbers of candidates are integers, so that the tenth follows the ninth.
    if "candidate" in columns and all((text or "").isdecimal() for text in columns["candidate"]):
        columns["candidate"] = [*map(int, columns["candidate"])]
        types["candidate"] = pa.int64()
    table = pa.table({name: pa.array(cells, types[name]) for name, cells in columns.items()})
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
    if config.images is None:
        images = _generate(config, models)
    elif config.images.generations is None:
        images = _read_table(config.images, config, models)
    else:
        from equipoise.counterfactuals import read_generated

        generated = read_generated(models.base / config.images.generations)
        images = Images(
            generated.table, generated.pictures, generated.inputs, str(generated.folder)
        )
    candidates = candidates_of(images.table, config.types, file=images.file)
    if not candidates.made.any():
        raise DataError("there is no image: the generator made none", file=images.file or None)
    if config.write_sets == "social_counterfactuals":
        try:
            released_columns(candidates)
        except InputError as error:
            raise ConfigError(f"write_sets: {error}") from None
    reader = _Reader(config, models, images, candidates, dict(images.inputs))
    stages = _run_filters(reader)
    quality = None if config.quality is None else _load_quality(reader, config.quality)
    own_counts = {
        "rows": images.table.num_rows,
        "states": dict(Counter(reader.candidates.state.tolist())),
        "of no set, or without attributes": candidates.left_out,
    }
    return GenerationData(
        Filtered(reader.candidates, stages),
        reader.learned,
        quality,
        np.empty(0, np.int64) if quality is None else reader.places,
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
    inputs: Fields
    counts: Fields = field(default_factory=dict)
    learned: dict[tuple[str, str], Learned] = field(default_factory=dict)

    def vectors(
        self, name: str, section: SimilarityConfig | AttributesConfig
    ) -> tuple[AnyArray, Booleans]:
        """Return a vector for each row of the candidates, and which rows have one."""
        if section.model is not None:
            self.models.capability(name, section, "encoder")
        source = self._source(section.images) or self.models.embed_images(
            name, section, self.pictures
        )
        vectors = self.joined(load_vectors, source, self.items, f"{name}, images")
        has_vector = (self.places >= 0) & vectors.usable[self.places]
        values = np.zeros((len(has_vector), vectors.dimension), dtype=np.float32)
        values[has_vector] = vectors.take(self.places[has_vector])
        return values, has_vector

    def scores(self, section: ContentConfig) -> tuple[AnyArray, Booleans, Strings]:
        """Return scores for each row of the candidates, which rows have any, and their names."""
        source = self._source(section.scores) or self.models.predict(
            "content", section, self.pictures, expected=section.unsafe
        )
        matrix = self.joined(load_matrix, source, self.items, "content, images")
        has_scores = self.places >= 0
        values = np.full((len(has_scores), len(matrix.names)), np.nan)
        values[has_scores] = matrix.take(matrix.names)[self.places[has_scores]]
        if isinstance(source, Outputs) and source.planned:
            # Nothing is unsafe before the model has run.
            values[:] = 0.0
        return values, ~np.isnan(values).any(axis=1), matrix.names

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
        distinct_texts = [*dict.fromkeys(texts)]
        source = self._source(file) or self.models.embed_texts(
            name, section, prompts(distinct_texts, ("{}",)), on=on
        )
        label = f"similarity, {on}" if on == "captions" else "attributes, texts"
        items = load_items(
            ItemSource(pa.table({"text": pa.array(distinct_texts)}), "text"), subject=label
        )
        vectors = self.joined(load_vectors, source, items, label)
        if not vectors.usable.all():
            raise DataError(
                f"there is no usable vector of {distinct_texts[int(np.argmin(vectors.usable))]!r}",
                file=vectors.name,
                expected=f"a vector of each of {len(distinct_texts)} texts, finite and not zero",
                fix="embed the text word for word, or name a model that does",
            )
        if vectors.dimension != dimension:
            raise DataError(
                f"texts have vectors of {vectors.dimension} numbers, and images of {dimension}",
                file=vectors.name,
                expected="images and texts in one space",
                fix="embed both with one model",
            )
        return dict(zip(distinct_texts, vectors.take(np.arange(len(distinct_texts))), strict=True))

    def _source(self, file: ArrayConfig | None) -> Any:
        return None if file is None else file.source(self.models.base)

    def joined(self, load: Callable[..., Joined], source: Any, items: Items, label: str) -> Joined:
        """Join numbers to items; the file may also hold other images and texts."""
        joined = load(source, items, subject=label, max_unmatched=1.0)
        self.inputs |= joined.inputs
        self.counts[label] = joined.counts
        return joined

    @property
    def pictures(self) -> Pictures:
        """The pictures, which the config requires of models."""
        assert self.images.pictures is not None  # noqa: S101 - see the config
        return self.images.pictures

    @cached_property
    def items(self) -> Items:
        """The images in the order of their table, which files without ids follow."""
        return load_items(
            ItemSource(self.images.table.select(["image_id"]), "image_id"), subject="images"
        )

    @cached_property
    def places(self) -> Integers:
        """Place in the table of each row of the candidates; -1 where there is no image."""
        ids = self.candidates.columns["image_id"], self.items.ids
        return match(*(pl.Series(id_column, dtype=pl.String) for id_column in ids))


def _run_filters(reader: _Reader) -> tuple[Stage, ...]:
    """Join everything first: a set is incomplete where an image lacks any output."""
    filters = reader.config.filters
    similarity, content, attributes = filters.similarity, filters.content, filters.attributes
    vectors = None if similarity is None else reader.vectors("similarity", similarity)
    scores = None if content is None else reader.scores(content)
    looks = None
    if attributes is not None:
        looks = vectors if attributes.shared else reader.vectors("attributes", attributes)
    steps: dict[str, tuple[Any, str, Callable[..., Stage]]] = {
        "similarity": (vectors, "no vector of the image", _filter_similarity),
        "content": (scores, "no content score", _filter_content),
        "attributes": (looks, "no vector to see attributes by", _filter_attributes),
    }
    used = {name: step for name, step in steps.items() if step[0] is not None}
    for (_, has_output, *_), reason, _ in used.values():
        reader.candidates = reader.candidates.without(~has_output, "unreadable", reason)
    n_unreadable = int((reader.candidates.state == "unreadable").sum())
    n, max_failures = (
        n_unreadable + int(reader.candidates.made.sum()),
        reader.config.extraction.max_failures,
    )
    if n_unreadable > max_failures * n:
        raise DataError(
            f"{n_unreadable} of {n} images have no output that a filter could use",
            expected=f"a share of at most {max_failures:g}",
            fix="run the models on all images, or raise extraction.max_failures",
        )
    stages: list[Stage] = []
    for name, ((values, _, *names), _, stage) in used.items():
        try:
            stages.append(stage(reader, getattr(filters, name), values, *names))
        except InputError as error:
            raise ConfigError(f"filters.{name}.{error}") from None
    return tuple(stages)


def _load_quality(reader: _Reader, section: QualityConfig) -> Quality:
    models, name = reader.models, "quality"
    offer = models.capability(name, section, "classifier", "encoder")
    source = models.embed_images(name, section, reader.pictures)
    features = reader.joined(load_vectors, source, reader.items, "quality, images")
    scores, reference = None, None
    if offer == "classifier":
        source = models.predict(name, section, reader.pictures)
        scores = reader.joined(load_vectors, source, reader.items, "quality, probabilities")
    if section.reference is not None:
        place = "quality.reference"
        about = models.read_images(section.reference, name="reference", place=place)
        items = load_items(about.source(models.base), subject=place)
        pictures = about.need_pictures(name, place=place)
        source = models.embed_images(name, section, pictures, on="reference")
        reader.inputs |= about.inputs
        reference = reader.joined(load_vectors, source, items, place)
    return Quality(features, scores, {} if reference is None else {"": reference})


def _filter_content(
    reader: _Reader, section: ContentConfig, values: AnyArray, names: Strings
) -> Stage:
    unsafe, threshold = section.unsafe, section.threshold
    return content_filter(reader.candidates, values, names, unsafe=unsafe, threshold=threshold)


def _filter_similarity(reader: _Reader, section: SimilarityConfig, vectors: AnyArray) -> Stage:
    candidates = reader.candidates
    captions, has_image = candidates.columns["caption"], candidates.made
    captions_of_images = captions[has_image].tolist()
    if None in captions_of_images:
        raise DataError("an image has no caption to be like", column="caption")
    texts = reader.texts(
        section.captions, "similarity", section, captions_of_images, "captions", vectors.shape[1]
    )
    of_captions = np.zeros_like(vectors)
    of_captions[has_image] = [texts[caption] for caption in captions_of_images]
    return similarity_filter(
        candidates, vectors, of_captions, threshold=section.threshold, pairs=section.pairs
    )


def _filter_attributes(reader: _Reader, section: AttributesConfig, looks: AnyArray) -> Stage:
    candidates, types = reader.candidates, reader.config.types
    texts: dict[str, dict[str, str]] = {}
    for name in types:
        by_value = texts[name] = {}
        for value in map(str, filter(None, candidates.columns[name])):
            by_value[value] = _fill_template(section.template(name), value)
    name, model = "attributes", cast("RunConfig", section)
    if section.shared and reader.config.filters.similarity is not None:
        name, model = "similarity", reader.config.filters.similarity
    all_texts = [*chain.from_iterable(by_value.values() for by_value in texts.values())]
    vectors = reader.texts(section.texts, name, model, all_texts, "values", looks.shape[1])
    values = {}
    for name, by_value in texts.items():
        values[name] = [*by_value], np.stack([vectors[text] for text in by_value.values()])
    # Labels are of images that exist.
    planned = reader.images.copies is not None
    if section.labels is not None and not planned:
        labels = _read_labels(reader, section.labels)
        loose = attribute_filter(
            candidates, looks, values, _thresholds_of_sets({}, {}, candidates, types)
        )
        level = reader.config.resampling.level
        reader.learned = learned_thresholds(candidates, loose, labels, level=level)
    unknown = types if planned else ()
    thresholds = _thresholds_of_sets(section.fixed, reader.learned, candidates, unknown)
    return attribute_filter(candidates, looks, values, thresholds)


def _fill_template(template: str, value: str) -> str:
    """Return the text of a value, such as "an old person"."""
    before, after = template.split("{}")
    words = f"{value}{after}"
    if not before.strip():
        return words.strip()
    return f"{agreeing(before.strip(), words)} {words}" if before.endswith(" ") else before + words


def _thresholds_of_sets(
    fixed: Thresholds,
    learned: Mapping[tuple[str, str], Learned],
    candidates: Candidates,
    unknown: Sequence[str],
) -> SetThresholds:
    """Return thresholds of every combination: from the config, else learned; 1.0 if unknown."""
    thresholds: dict[str, dict[str, float]] = {
        combination: dict.fromkeys(unknown, 1.0) for combination in candidates.combinations
    }
    for (combination, name), result in learned.items():
        thresholds[combination][name] = float(result.threshold) / result.size
    for combination, set_thresholds in thresholds.items():
        of_config = of_combination(fixed, combination).items()
        for name, limit in of_config:
            if not isinstance(limit, Mapping):
                set_thresholds[name] = limit
    return thresholds


def _read_labels(reader: _Reader, section: LabelsConfig) -> dict[str, dict[str, bool]]:
    """Read the labels of people, by attribute and candidate.

    Raises
    ------
    DataError
        When a cell is neither yes nor no, or every row is about an unknown set or image.
    """
    candidates = reader.candidates
    columns = tuple(dict.fromkeys(section.columns.values()))
    source = section.source(reader.models.base, columns)
    items = load_items(source, subject="filters.attributes.labels")
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
