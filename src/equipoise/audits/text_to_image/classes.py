"""The class of every image, by a classifier or by answers, and shares to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from equipoise.audits.config_fields import located
from equipoise.audits.images import pictures_of, required
from equipoise.core import DataError, Objects
from equipoise.data import Items, Vectors, load_items, load_vectors, read_table
from equipoise.evidence import class_vectors, zero_shot
from equipoise.evidence.zero_shot import prompts
from equipoise.metrics.counts.shares import Confusion

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.text_to_image.config import Config, LabelledConfig, SharesConfig
    from equipoise.audits.text_to_image.loading import Encoder, GeneratedImages
    from equipoise.evidence.pictures import Pictures


UNKNOWN, REFUSED, OTHER = "unknown", "refused an answer", "other answer"
"""Outcomes that are no class."""


@dataclass(frozen=True, eq=False)
class Judged:
    """Classes of images.

    Attributes
    ----------
    outcomes : mapping of str to ndarray of objects, shape (n,)
        By generator: a class, another outcome, or None of an image without any.
    confusion : Confusion or None
        Errors on labelled images, the same for all generators.
    inputs : mapping
    """

    outcomes: Mapping[str, Objects]
    confusion: Confusion | None
    inputs: Mapping[str, Mapping[str, Any]]


def read_labelled(share: SharesConfig, base: Path) -> Items:
    """Read the labelled images of a share.

    Raises
    ------
    DataError
        When the table can't be read, or a label is no class.
    """
    section = share.labelled
    assert section is not None  # noqa: S101 - only of shares that have labelled images
    items = load_items(section.source(base, section.columns), what=f"labelled images, {share.of}")
    for row, label in enumerate(items.columns[section.label].tolist(), start=1):
        if label not in (None, *share.classes):
            raise DataError(
                f"the label is {label!r}",
                file=items.name,
                column=section.label,
                row=row,
                expected=f"one of {', '.join(share.classes)}",
            )
    return items


def labelled_pictures(share: SharesConfig, items: Items, base: Path) -> Pictures:
    """Return the pictures of labelled images; refuse to run a model without them."""
    pictures = None if share.labelled is None else pictures_of(share.labelled, items, base)
    fix = "name the column of files under 'labelled.path'"
    return required(pictures, f"shares ({share.of})", share.model or "", fix)


def judge_images(
    share: SharesConfig,
    config: Config,
    models: Models,
    made: Mapping[str, GeneratedImages],
    encoders: Mapping[str, Encoder],
    labelled: Items | None,
) -> Judged:
    """Return the classes of the images of every generator, and the errors on labelled ones.

    Raises
    ------
    DataError
        When a table can't be used, or classes have no vectors.
    """
    encoder = encoders.get(share.model or "") if share.zero_shot else None
    classifier = _Classifier(share, config, models, encoder)
    outcomes = {name: classifier.of_generator(name, images) for name, images in made.items()}
    confusion = None
    if labelled is not None and share.labelled is not None:
        classified = classifier.of_labelled(labelled, share.labelled)
        true = np.asarray(labelled.columns[share.labelled.label])
        confusion, _ = Confusion.of_labels(true, classified, outcomes=tuple(share.classes))
        classifier.inputs |= labelled.inputs
    return Judged(outcomes, confusion, classifier.inputs)


@dataclass(eq=False)
class _Classifier:
    """Classifies images by an encoder, by a model's answers, or by answers in a file."""

    share: SharesConfig
    config: Config
    models: Models
    encoder: Encoder | None
    inputs: dict[str, Any] = field(default_factory=dict)

    def of_generator(self, name: str, images: GeneratedImages) -> Objects:
        """Return the outcome of each image of a generator."""
        share, said = self.share, self.share.said.get(name)
        if self.encoder is not None:
            return _classified(
                share, self.encoder, self.encoder.images.get(name), len(images.items)
            )
        answers = dict[str, str | None]()
        if share.model is not None:
            for batch in images.batches:
                pictures = required(batch.pictures, f"generators.{name}.images", share.model)
                answers |= self._ask(pictures, f"{batch.name}, {share.of}")
        elif said is not None:
            items = load_items(
                said.source(self.models.base, (said.said,)), what=f"answers about {name}"
            )
            self.inputs |= items.inputs
            answers = dict(zip(items.ids.tolist(), items.columns[said.said].tolist(), strict=True))
            if answers.keys().isdisjoint(images.items.ids):
                raise DataError(
                    f"none of its ids is that of an image of {name}",
                    file=items.name,
                    column=said.id,
                    expected=f"ids such as {images.items.ids[0]!r}",
                )
        return _outcomes(share, images.items, answers)

    def of_labelled(self, labelled: Items, section: LabelledConfig) -> Objects:
        """Return the outcome of each labelled image."""
        share = self.share
        if self.encoder is not None:
            source = self.encoder.labelled.get(share.of)
            if source is None:
                raise DataError(
                    f"models.{share.model}.labelled: no vectors of the images of {share.of!r}",
                    expected="vectors of the labelled images",
                    fix="name them, or leave 'labelled' out: nothing is corrected then",
                )
            what = f"embeddings of labelled images by {share.model}"
            vectors = load_vectors(source, labelled, what=what, max_unmatched=1.0)
            self.inputs |= vectors.inputs
            return _classified(share, self.encoder, vectors, len(labelled))
        if share.model is not None:
            pictures = labelled_pictures(share, labelled, self.models.base)
            return _outcomes(share, labelled, self._ask(pictures, f"{share.of}, labelled"))
        texts = zip(labelled.ids, labelled.columns[section.said or ""], strict=True)
        return _outcomes(share, labelled, dict(texts))

    def _ask(self, pictures: Pictures, on: str) -> dict[str, str | None]:
        """Ask a model about every picture; None of one without an answer."""
        name, question = self.share.model or "", self.share.question or ""
        answers = self.models.answer(name, self.config.models[name], pictures, question, on=on)
        labels, ids = answers.labels, answers.ids.to_list()
        assert labels is not None  # noqa: S101 - answers are texts
        if answers.planned:
            # A plan takes every answer for the first class: it needs sizes alone.
            return dict.fromkeys(ids, next(iter(self.share.classes)))
        codes = labels.codes[:, 0].tolist()
        texts = [(labels.vocabulary[code] or None) if code >= 0 else None for code in codes]
        return dict(zip(ids, texts, strict=True))


def _outcomes(share: SharesConfig, items: Items, answers: Mapping[str, str | None]) -> Objects:
    """Return the outcome that the answer about each item means; None of one without an answer."""
    known = {_plain(text): UNKNOWN for text in (*share.unknown, UNKNOWN)}
    known |= {_plain(text): REFUSED for text in share.refused}
    for name, texts in share.classes.items():
        known |= {_plain(text): name for text in (name, *texts)}
    every = [answers.get(id_) for id_ in items.ids.tolist()]
    outcomes = np.empty(len(every), dtype=object)
    outcomes[:] = [None if text is None else known.get(_plain(text), OTHER) for text in every]
    return outcomes


def _plain(answer: str) -> str:
    """Return an answer without case, spaces around it and a full stop at its end."""
    return " ".join(answer.casefold().split()).rstrip(".!").strip()


def _classified(share: SharesConfig, encoder: Encoder, vectors: Vectors | None, n: int) -> Objects:
    """Return the likeliest class of each image; None of an image without a vector."""
    labels = np.full(n, None, dtype=object)
    if vectors is not None:
        words = prompts(share.classes, share.templates)
        rows = [encoder.places[text] for text in words.texts]
        classes = class_vectors(encoder.texts.take(rows), words.owner)
        kept = np.flatnonzero(vectors.usable)
        scale = 100.0 if encoder.scale is None else encoder.scale
        scores = zero_shot(vectors.take(kept), classes, scale=scale)
        likeliest = np.array([*share.classes], dtype=object)[scores.top[:, 0]]
        likeliest[scores.scores[:, 0] < share.least] = UNKNOWN
        labels[kept] = likeliest
    return labels


@dataclass(frozen=True, eq=False)
class ExternalShares:
    """Shares of the world outside.

    Attributes
    ----------
    name : str
    by_target : mapping of str to mapping of str to float
        Share or count of each class, by target that has them.
    inputs : mapping
        Of the file.
    uniform : bool
        Whether all classes are equal.
    """

    name: str
    by_target: Mapping[str, Mapping[str, float]]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    uniform: bool = False


def external_shares(share: SharesConfig, targets: tuple[str, ...], base: Path) -> ExternalShares:
    """Read shares from outside, or take equal ones.

    Raises
    ------
    DataError
        When the table cannot be read, no target of the audit is in it, or a target that is lacks
        one share of each class, 0 or more.
    """
    section = share.outside
    if isinstance(section, str) or section is None:
        equal = dict.fromkeys(share.compared, 1.0)
        return ExternalShares("equal shares", dict.fromkeys(targets, equal), uniform=True)
    columns = {"target": section.target, "group": section.group, "value": section.value}
    table = read_table(
        located(section.table, base), texts=(*columns.values(),), encoding=section.encoding,
        delimiter=section.delimiter, role=f"outside shares of {share.of}",
    )  # fmt: skip
    cells = pl.DataFrame({name: table.texts[column] for name, column in columns.items()})
    cells = cells.with_columns(pl.col("value").cast(pl.Float64, strict=False))
    cells = cells.filter(pl.col("target").is_in(targets), pl.col("group").is_in(share.compared))
    by_target = {}
    for (target,), rows in cells.group_by("target", maintain_order=True):
        own = rows.select("group", "value")
        values, compared = own["value"].fill_null(-1), sorted(own["group"])
        usable = values.is_between(0, np.inf, closed="left").all() and values.sum() > 0
        if not usable or compared != sorted(share.compared):
            raise DataError(
                f"{target!r} has the shares {own.rows()}",
                file=table.name,
                column=section.value,
                expected=f"one share or count of each of {', '.join(share.compared)}, at least 0",
                fix="mend them, or leave the target out",
            )
        by_target[str(target)] = dict(own.rows())
    if not by_target:
        raise DataError(
            "it has none of the targets",
            file=table.name,
            column=section.target,
            expected=f"some of {', '.join(targets[:5])}",
        )
    return ExternalShares(section.name, by_target, {table.name: table.digest})
