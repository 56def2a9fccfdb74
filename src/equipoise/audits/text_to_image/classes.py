"""The class of every image, by a classifier or by answers, and shares to compare with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_fields import located
from equipoise.core.errors import ConfigError, DataError
from equipoise.data import Items, Outputs, Vectors, load_items, load_vectors, read_table
from equipoise.evidence import class_vectors, pictures_of_table, zero_shot
from equipoise.evidence.zero_shot import prompts
from equipoise.metrics.counts.shares import Confusion

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.audits.text_to_image.config import Config, SharesConfig
    from equipoise.audits.text_to_image.loading import Encoder, GeneratedImages
    from equipoise.evidence.pictures import Pictures

Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]

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
    inputs, counts : mapping
    """

    outcomes: Mapping[str, Objects] = field(repr=False)
    confusion: Confusion | None
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]


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
        if label is not None and label not in share.classes:
            raise DataError(
                f"the label is {label!r}",
                file=items.name,
                column=section.label,
                row=row,
                expected=f"one of {', '.join(share.classes)}",
                fix="name the class in shares, or leave the image out",
            )
    return items


def labelled_pictures(share: SharesConfig, items: Items, base: Path) -> Pictures:
    """Return the pictures of labelled images; refuse to run a model without them."""
    section = share.labelled
    if section is None or section.path is None:
        raise ConfigError(
            f"shares ({share.of}): models.{share.model}.model runs on the labelled images, and "
            "nothing says where they are. To do: name the column of files under 'labelled.path'"
        )
    paths = [path or "" for path in items.columns[section.path].tolist()]
    return pictures_of_table(
        items.ids.tolist(), paths, root=base / (section.root or ""), name=items.name,
        column=section.path,
    )  # fmt: skip


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
    inputs = dict(labelled.inputs) if labelled is not None else {}
    model, section = share.model or "", share.labelled
    given: Objects | None = None
    if share.zero_shot:
        own = encoders[model]
        classes = _class_vectors(share, own)
        outcomes = {
            name: _classified(share, own, own.images.get(name), len(images.items), classes)
            for name, images in made.items()
        }
        if labelled is not None:
            vectors = _labelled_vectors(share, own, labelled)
            inputs |= vectors.inputs
            given = _classified(share, own, vectors, len(labelled), classes)
    elif share.model is not None:
        models.capability(model, config.models[model], "answerer")
        outcomes = {name: _answered(share, config, models, own) for name, own in made.items()}
        if labelled is not None:
            pictures = labelled_pictures(share, labelled, models.base)
            answers = models.answer(
                model, config.models[model], pictures, share.question or "",
                on=f"{share.of}, labelled",
            )  # fmt: skip
            known = _texts(share, answers)
            given = _outcomes(share, [known.get(id_) for id_ in labelled.ids.tolist()])
    else:
        outcomes = {
            name: _read(share, name, images, models.base, inputs) for name, images in made.items()
        }
        if labelled is not None and section is not None:
            given = _outcomes(share, labelled.columns[section.said or ""].tolist())
    confusion = None
    if labelled is not None and section is not None and given is not None:
        true = np.asarray(labelled.columns[section.label])
        confusion, _ = Confusion.of_labels(true, given, outcomes=tuple(share.classes))
    counts = {name: dict(Counter(map(str, each))) for name, each in outcomes.items()}
    return Judged(outcomes, confusion, inputs, counts)


def _labelled_vectors(share: SharesConfig, encoder: Encoder, labelled: Items) -> Vectors:
    if share.of not in encoder.labelled:
        raise DataError(
            f"models.{share.model}.labelled: no vectors of the labelled images of {share.of!r}",
            expected="vectors of the labelled images",
            fix="name them, or leave 'labelled' out: nothing is corrected then",
        )
    what = f"embeddings of labelled images by {share.model}"
    return load_vectors(encoder.labelled[share.of], labelled, what=what, max_unmatched=1.0)


def _read(
    share: SharesConfig, name: str, images: GeneratedImages, base: Path, inputs: dict[str, Any]
) -> Objects:
    ids, known = images.items.ids.tolist(), dict[str, Any]()
    if (section := share.said.get(name)) is not None:
        items = load_items(section.source(base, (section.said,)), what=f"what was said of {name}")
        inputs |= items.inputs
        known = dict(zip(items.ids.tolist(), items.columns[section.said].tolist(), strict=True))
        if not {*known} & {*ids}:
            raise DataError(
                f"none of its ids is that of an image of {name}; the first is {items.ids[0]!r}",
                file=items.name,
                column=section.id,
                expected=f"ids such as {ids[0]!r}",
                fix="name the column of the images' ids",
            )
    return _outcomes(share, [known.get(id_) for id_ in ids])


def _answered(
    share: SharesConfig, config: Config, models: Models, images: GeneratedImages
) -> Objects:
    """Ask a model about every image; None of an image without an answer."""
    name, known = share.model or "", dict[str, str | None]()
    for batch in images.batches:
        answers = models.answer(
            name, config.models[name], batch.need_pictures(name), share.question or "",
            on=f"{batch.name}, {share.of}",
        )  # fmt: skip
        known |= {batch.prefix + id_: text for id_, text in _texts(share, answers).items()}
    return _outcomes(share, [known.get(id_) for id_ in images.items.ids.tolist()])


def _texts(share: SharesConfig, answers: Outputs) -> dict[str, str | None]:
    labels = answers.labels
    assert labels is not None  # noqa: S101 - answers are texts
    codes = labels.codes[:, 0].tolist()
    texts = [(labels.vocabulary[code] or None) if code >= 0 else None for code in codes]
    if answers.planned:
        # A plan takes every answer for the first class: it needs sizes alone.
        texts = [next(iter(share.classes))] * len(texts)
    return dict(zip(answers.ids.to_list(), texts, strict=True))


def _outcomes(share: SharesConfig, answers: list[str | None]) -> Objects:
    """Return the outcome that each answer means."""
    known = {_plain(text): UNKNOWN for text in (*share.unknown, UNKNOWN)}
    known |= {_plain(text): REFUSED for text in share.refused}
    for name, texts in share.classes.items():
        known |= {_plain(text): name for text in (name, *texts)}
    outcomes = np.empty(len(answers), dtype=object)
    outcomes[:] = [None if text is None else known.get(_plain(text), OTHER) for text in answers]
    return outcomes


def _plain(answer: str) -> str:
    """Return an answer without case, spaces around it and a full stop at its end."""
    return " ".join(answer.casefold().split()).rstrip(".!").strip()


def _class_vectors(share: SharesConfig, encoder: Encoder) -> Floats:
    rows, owner = [], []
    for place, (name, own) in enumerate(class_texts(share).items()):
        for text in own:
            row = encoder.places[text]
            if not encoder.texts.usable[row]:
                raise DataError(
                    f"the text {text!r} of the class {name!r} has no usable vector",
                    file=encoder.texts.name,
                    expected="a vector of each text of a class, named by the text",
                    fix="embed it, or leave the text out",
                )
            rows.append(row)
            owner.append(place)
    return np.asarray(class_vectors(encoder.texts.take(np.array(rows)), np.array(owner)))


def _classified(
    share: SharesConfig, encoder: Encoder, vectors: Vectors | None, n: int, classes: Floats
) -> Objects:
    """Return the likeliest class of each image; None of an image without a vector."""
    labels = np.full(n, None, dtype=object)
    if vectors is not None:
        kept = np.flatnonzero(vectors.usable)
        scale = 100.0 if encoder.scale is None else encoder.scale
        scores = zero_shot(vectors.take(kept), classes, scale=scale)
        likeliest = np.array([*share.classes], dtype=object)[scores.top[:, 0]]
        likeliest[scores.scores[:, 0] < share.least] = UNKNOWN
        labels[kept] = likeliest
    return labels


def class_texts(share: SharesConfig) -> dict[str, tuple[str, ...]]:
    """Return the texts of every class, in the templates.

    Raises
    ------
    InputError
        When there is no such list of templates, or one makes a text twice.
    """
    made = prompts(share.classes, share.templates)
    texts = np.array(made.texts, dtype=object)
    return {name: tuple(texts[made.owner == place]) for place, name in enumerate(made.names)}


@dataclass(frozen=True, eq=False)
class ExternalShares:
    """Shares of the world outside.

    Attributes
    ----------
    name : str
    by_target : mapping of str to (mapping of str to float, or "uniform")
        Targets that have such shares.
    inputs : mapping
        Of the file.
    """

    name: str
    by_target: Mapping[str, Mapping[str, float] | Literal["uniform"]]
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def external_shares(share: SharesConfig, targets: tuple[str, ...], base: Path) -> ExternalShares:
    """Read shares from outside, or take equal ones.

    Raises
    ------
    DataError
        When the table cannot be read, no target of the audit is in it, a class of a target that
        is has no number, or a cell is none.
    """
    section = share.outside
    if isinstance(section, str) or section is None:
        return ExternalShares("equal shares", dict.fromkeys(targets, "uniform"))
    columns = (section.target, section.group, section.value)
    table = read_table(
        located(section.table, base), texts=columns, role=f"outside shares of {share.of}",
        encoding=section.encoding, delimiter=section.delimiter,
    )  # fmt: skip
    shares: dict[str, dict[str, float]] = {}
    cells = (table.texts[column].to_list() for column in columns)
    for row, (target, group, text) in enumerate(zip(*cells, strict=True), start=1):
        if target not in targets or group not in share.compared:
            continue
        own = shares.setdefault(target, {})
        if group in own:
            raise DataError(
                f"{target!r} and {group!r} are there twice", file=table.name, row=row,
                expected="one share of each class of a target", fix="remove one of the rows",
            )  # fmt: skip
        try:
            own[group] = float(text or "")
        except ValueError:
            own[group] = np.nan
        if not 0 <= own[group] < np.inf:
            raise DataError(
                f"the share is {text!r}",
                file=table.name,
                column=section.value,
                row=row,
                expected="a share or count, at least 0",
                fix="fill it in, or leave the target out",
            )
    if not shares:
        raise DataError(
            "it has none of the targets",
            file=table.name,
            column=section.target,
            expected=f"some of {', '.join(targets[:5])}",
            fix="name the column of the targets' names",
        )
    for target, own in shares.items():
        missing = [name for name in share.compared if name not in own]
        if missing or not sum(own.values()):
            what = f"{missing[0]!r} has no share" if missing else "all shares are 0"
            raise DataError(
                f"{target!r}: {what}",
                file=table.name,
                expected=f"a share of each of {', '.join(share.compared)}",
                fix="add it, or leave the target out",
            )
    return ExternalShares(section.name, shares, {table.name: table.digest})
