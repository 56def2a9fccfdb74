"""The data of an audit of concepts: images, labels, and scores of files or live models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.audits.columns import ImageData
from equipoise.audits.concepts.config import Config, LabelsConfig, MatrixConfig, ModelConfig
from equipoise.audits.images import ID, AuditImages, labels_of
from equipoise.audits.outputs import Models, average_prompts, filled_in
from equipoise.config.fields import given_keys, located
from equipoise.core import (
    AnyArray,
    Booleans,
    ConfigError,
    DataError,
    Facts,
    InputError,
    Strings,
    record,
)
from equipoise.core.types import FileFacts
from equipoise.data import (
    Coded,
    Items,
    Matrix,
    load_matrix,
    read_table,
    synset_text,
)
from equipoise.data.labels import without
from equipoise.data.problems import listed, match
from equipoise.data.tables import NamedFrame

if TYPE_CHECKING:
    from equipoise.data.labels import Outputs

# Names that an error lists.
_LISTED = 5


@record
class Labels:
    """Labels of each image.

    Attributes
    ----------
    config : LabelsConfig
    name : str
        Of the file.
    labelled : tuple of str
        Every concept that is labelled.
    columns : tuple of str
        What `read` knows.
    read : callable
        Returns the labels of one column, shape (images,), before any mapping.
    without : ndarray of bool, shape (images,)
        Images without a row of labels.
    inputs, counts : mapping
    """

    config: LabelsConfig
    name: str
    labelled: Strings
    columns: Strings
    read: Callable[[str], Booleans]
    without: Booleans
    inputs: Mapping[str, FileFacts]
    counts: Facts

    def by_image(self, concepts: Sequence[str], name: str | None) -> Booleans:
        """Return labels under a mapping, shape (images, concepts)."""
        columns = self.config.columns(concepts, name, self.columns)
        return _largest_columns(columns, self.read, len(self.without), np.dtype(np.bool_))

    @property
    def absent(self) -> Strings:
        """Labels that a mapping names and no image has."""
        named = self.config.every_column(self.config.mapped, ())
        return tuple(label for label in named if label not in self.columns)


@record
class Scores:
    """Scores of one model.

    Attributes
    ----------
    config : MatrixConfig
    matrix : Matrix
        By image.
    concepts : tuple of str
        The concepts that are measured for the model.
    """

    config: MatrixConfig
    matrix: Matrix
    concepts: Strings

    @property
    def without(self) -> Booleans:
        """Images without scores."""
        return np.asarray(self.matrix.rows < 0)

    def other_classes(self, name: str | None) -> Strings:
        """Return columns that stand for no concept that is measured under a mapping."""
        used = {*chain(*self.config.columns(self.concepts, name))}
        used |= {*self.matrix.counts["columns_left_out"]}
        return tuple(name for name in self.matrix.names if name not in used)

    def by_image(self, name: str | None) -> AnyArray:
        """Return scores under a mapping, shape (images, concepts), in their stored type."""
        matrix, columns = self.matrix, self.config.columns(self.concepts, name)

        def read(column: str) -> AnyArray:
            return matrix.take([column])[:, 0]

        return _largest_columns(columns, read, len(matrix.rows), matrix.dtype)


def _largest_columns(
    columns: Sequence[Sequence[str]], read: Callable[[str], AnyArray], n: int, dtype: Any
) -> AnyArray:
    """Return the largest of some columns for each concept, shape (n, concepts)."""
    values = np.zeros((n, len(columns)), dtype, order="F")
    for place, names in enumerate(columns):
        if names:
            values[:, place] = reduce(np.maximum, map(read, names))
    return values


@record
class ConceptData(ImageData):
    """The data of an audit of concepts.

    Attributes
    ----------
    labels : Labels
    models : mapping of str to Scores
    units : Coded or None
        What is resampled and exchanged as a whole, where that is not the image.
    """

    labels: Labels
    models: Mapping[str, Scores]
    units: Coded | None


def load(config: Config, models: Models) -> ConceptData:
    """Read images and labels, and read or run every model.

    Raises
    ------
    DataError
        When a table cannot be read or joined, a score is missing or infinite, a label is not 0
        or 1, a concept has no column, or a model has no more classes than `hit_rate`; it names
        the file, column and row.
    """
    section = config.data.images
    pictured, images = models.read_items(section, config.columns)
    labels = _open_labels(config, pictured, images, models)
    named = {"concepts": config.concepts}
    named |= {
        f"models.{name}.map or maps": section.mapped for name, section in config.models.items()
    }
    for place, names in named.items():
        if unlabelled := [name for name in names if name not in labels.labelled]:
            raise DataError(
                f"{place}: {listed(unlabelled, _LISTED)} without labels",
                file=labels.name,
                expected=f"some of {listed(sorted(labels.labelled))}",
                fix="correct the names, or remove them",
            )
    matrices = {
        name: load_matrix(
            model.source(models.base)
            if model.model is None
            else _run_model(
                models, name, model, pictured, config.concepts or sorted(labels.labelled)
            ),
            images,
            subject=f"scores of {name}",
            max_unmatched=config.data.max_unmatched,
        )
        for name, model in config.models.items()
    }
    scored = {
        concept
        for name, matrix in matrices.items()
        for concept in (*matrix.names, *config.models[name].mapped)
    }
    concepts = config.concepts or tuple(concept for concept in labels.labelled if concept in scored)
    for column in labels.config.every_column(concepts, labels.columns):
        labels.read(column)
    scores = {
        name: _check_scores(config, name, matrix, labels, concepts)
        for name, matrix in matrices.items()
    }
    inputs: dict[str, FileFacts] = {**images.inputs, **labels.inputs}
    for matrix in matrices.values():
        inputs |= matrix.inputs
    counts = {
        "images": {**images.counts, "images": len(images)},
        "labels": {**labels.counts, "concepts": len(concepts)},
        "models": {
            name: {
                **scored_model.matrix.counts,
                "concepts": len(scored_model.concepts),
                "concepts_without_scores": len({*labels.labelled} - {*scored_model.concepts}),
            }
            for name, scored_model in scores.items()
        },
    }
    units = images.coded[section.unit] if section.unit else None
    return ConceptData(images, inputs, counts, labels, scores, units)


def _open_labels(config: Config, images: AuditImages, items: Items, models: Models) -> Labels:
    """Open the labels: a column per concept, or a row for each concept that an image shows."""
    section = config.data.labels
    if section.file is None:
        label_frame = NamedFrame(labels_of(images), images.name)
        return _read_listed_labels(config, label_frame, ID, "label", items)
    if section.concept is not None:
        table = located(section.file, models.base)
        return _read_listed_labels(config, table, section.id or items.id, section.concept, items)
    matrix = load_matrix(
        section.source(models.base),
        items,
        subject="labels",
        max_unmatched=config.data.max_unmatched,
    )

    def read(column: str) -> Booleans:
        values = matrix.labels(column)
        _check_finite(matrix, column, values, section.id or items.id)
        return np.asarray(values == 1)

    labelled = _labelled_concepts(section, matrix.names, config.choices.map)
    return Labels(
        section, matrix.name, labelled, matrix.names, cache(read), np.asarray(matrix.rows < 0),
        matrix.inputs, matrix.counts,
    )  # fmt: skip


def _labelled_concepts(
    section: LabelsConfig, columns: Iterable[str], baseline: str | None
) -> Strings:
    """Return every labelled concept: columns that the baseline does not merge, and mapped ones.

    A mapping of a version alone leaves the columns that it merges concepts of the baseline.
    """
    mapping = {**section.map, **section.maps.get(baseline or "", {})}
    merged = {column for merged_columns in mapping.values() for column in merged_columns} - {
        *mapping
    }
    plain = (column for column in columns if column not in merged)
    return tuple(dict.fromkeys([*plain, *section.mapped]))


def _read_listed_labels(
    config: Config, table: Any, key: str, concept: str, images: Items
) -> Labels:
    """Read a table with a row for each concept that an image shows."""
    section, limit = config.data.labels, config.data.max_unmatched
    read = read_table(
        table,
        texts=(key, concept),
        role="labels",
        encoding=section.encoding,
        delimiter=section.delimiter,
    )
    concepts = without(Coded.of(read.texts[concept]), section.missing)
    image = match(read.texts[key], pl.Series(images.ids, dtype=pl.String))
    unknown = image < 0
    if unknown.mean() > limit:
        raise DataError(
            f"{int(unknown.sum())} of {len(image)} rows name an image that the table of images "
            "does not have",
            file=read.name,
            column=key,
            row=int(np.argmax(unknown)) + 1,
            expected=f"at most a share of {limit:g} (data.max_unmatched)",
            fix="check that both tables name images alike, or raise data.max_unmatched",
        )

    def column(name: str) -> Booleans:
        flags: Booleans = np.zeros(len(images), dtype=np.bool_)
        # A list says nothing of labels that no image has.
        if name not in concepts.vocabulary:
            return flags
        flags[image[~unknown & (concepts.codes == concepts.vocabulary.index(name))]] = True
        return flags

    counts = {
        "rows": read.rows,
        "empty": int((concepts.codes < 0).sum()),
        "rows_without_item": int(unknown.sum()),
    }
    labelled = _labelled_concepts(section, concepts.vocabulary, config.choices.map)
    none: Booleans = np.zeros(len(images), dtype=np.bool_)
    return Labels(
        section, read.name, labelled, concepts.vocabulary, cache(column), none,
        {read.name: read.digest}, counts,
    )  # fmt: skip


def _check_scores(
    config: Config, name: str, matrix: Matrix, labels: Labels, concepts: Sequence[str]
) -> Scores:
    """Return the scores of a model for every concept that it has, checked."""
    section = config.models[name]
    scored = tuple(
        concept_name
        for concept_name in concepts
        if concept_name in section.mapped or concept_name in matrix.names
    )
    lacking = [concept_name for concept_name in config.concepts if concept_name not in scored]
    if lacking or not scored:
        raise DataError(
            f"no scores for the concepts {listed(lacking or sorted(labels.labelled), _LISTED)}",
            file=matrix.name,
            expected=f"scores by the names of concepts; there are {listed(matrix.names, _LISTED)}",
            fix=f"say under models.{name}.map which of these stand for them",
        )
    model_scores = Scores(section, matrix, scored)
    other_classes = model_scores.other_classes(config.choices.map) if config.hit_rate else ()
    if config.hit_rate:
        _check_hits(config.hit_rate, name, section, model_scores, other_classes)
    wrong = {**matrix.counts["missing"], **matrix.counts["infinite"]}
    for column in (*section.every_column(scored), *other_classes):
        # Reading a column that there is not says so.
        if column in wrong or column not in matrix.names:
            values, key = matrix.take([column])[:, 0], section.id or str(config.data.images.id)
            _check_finite(matrix, column, values, key)
    return model_scores


def _check_hits(
    k: int, name: str, model: ModelConfig, scores: Scores, other_classes: Strings
) -> None:
    """Refuse to rank concepts alone where the model has other classes, or among too few."""
    if model.model is None and not other_classes and not model.all_classes:
        raise DataError(
            f"hit_rate: models.{name} has scores of the measured concepts only, and among these "
            "a hit says little",
            file=scores.matrix.name,
            expected="scores of all classes of the model",
            fix=f"add them, or set models.{name}.all_classes: true if the model has no others",
        )
    classes = len(scores.concepts) + len(other_classes)
    if k >= classes:
        raise DataError(
            f"hit_rate {k}: models.{name} has {classes} classes, so that every image is a hit",
            file=scores.matrix.name,
            expected=f"a hit_rate of 1 to {classes - 1}",
            fix="lower hit_rate, or remove it",
        )


def _check_finite(matrix: Matrix, column: str, values: AnyArray, id_column: str) -> None:
    """Refuse numbers that are missing or infinite in images that have a row."""
    bad = ~np.isfinite(values) & (matrix.rows >= 0)
    if bad.any():
        image = int(np.argmax(bad))
        raise DataError(
            f"{int(bad.sum())} numbers are missing or infinite, the first of {id_column} "
            f"{matrix.ids[image]!r}",
            file=matrix.name,
            column=column,
            row=int(matrix.rows[image]) + 1,
            expected="a finite number for every image that has a row",
            fix="fill it in, or remove the row: images without a row are counted",
        )


def _run_model(
    models: Models, name: str, section: ModelConfig, images: AuditImages, concepts: Sequence[str]
) -> Outputs:
    """Score every image for the columns of the concepts.

    Raises
    ------
    ConfigError
        When the model can't score images, lacks a class, or has no prompts.
    """
    from equipoise.evidence.zero_shot import concept_scores

    pictures = images.need_pictures(name)
    columns = section.every_column(concepts)
    capability = models.capability(name, section, "encoder", "classifier", "scorer")
    if capability == "classifier":
        for key in given_keys(section, ("templates", "words")):
            raise ConfigError(
                f"models.{name}.{key}: {section.called} is a classifier, whose classes are "
                "its own; name them under 'map'"
            )
        outputs = models.predict(name, section, pictures, expected=columns)
        names = _number_repeated_names(outputs.names)
        return replace(outputs, names=names, source=f"models.{name}.model")
    words = {column: section.words.get(column) or (_synset_words(column),) for column in columns}
    prompts = filled_in(words, section.templates, place=f"models.{name}")
    if capability == "scorer":
        return average_prompts(models.score_pairs(name, section, pictures, prompts.texts), prompts)
    outputs = models.embed_images(name, section, pictures)
    texts = models.embed_texts(name, section, prompts, on="concepts")
    values: AnyArray = np.broadcast_to(np.float32(0.5), (len(outputs.ids), len(texts.ids)))
    if not outputs.planned:
        cosines = concept_scores(outputs.numbers, texts.numbers)
        values = cosines.astype(np.float32, copy=False)
    return replace(outputs, content="scores", values=values, names=prompts.names)


def _synset_words(column: str) -> str:
    """Return the words of a synset; other names unchanged."""
    try:
        return synset_text(column)
    except InputError:
        return column


def _number_repeated_names(names: Sequence[str]) -> Strings:
    """Return names with a number where one repeats: ImageNet has two classes "crane"."""
    occurrences: Counter[str] = Counter()
    numbered = []
    for name in names:
        occurrences[name] += 1
        numbered.append(name if occurrences[name] == 1 else f"{name} ({occurrences[name]})")
    return tuple(numbered)
