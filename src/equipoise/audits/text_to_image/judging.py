"""The class of every image: by a zero-shot classifier, or by answers to a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import ConfigError, DataError
from equipoise.data import ArraySource, Items, Outputs, Vectors, load_items, load_vectors
from equipoise.evidence import class_vectors, pictures_of_table, zero_shot
from equipoise.evidence.prompts import prompts

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config_shares import LabelledConfig, SharesConfig
    from equipoise.audits.text_to_image.images import GeneratedImages
    from equipoise.evidence.pictures import Pictures

Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]
Source = ArraySource | Outputs

UNKNOWN, REFUSED, OTHER = "unknown", "refused an answer", "other answer"
"""Outcomes that are no class."""


@dataclass(frozen=True, eq=False)
class Spaces:
    """Texts and images in the space of each model.

    Attributes
    ----------
    texts : mapping of str to Items
        By model.
    text_vectors : mapping of str to Vectors
    vectors : mapping of (str, str) to Vectors
        By model and generator.
    """

    texts: Mapping[str, Items]
    text_vectors: Mapping[str, Vectors]
    vectors: Mapping[tuple[str, str], Vectors]


@dataclass(frozen=True, eq=False)
class Sources:
    """Files or outputs of models.

    Attributes
    ----------
    images : dict of (str, str) to source
        Vectors by model and generator.
    texts : dict of str to source
        Vectors by model.
    labelled : dict of (str, str) to source
        Vectors or answers of labelled images, by model and entry of `shares`.
    answers : dict of (str, str) to Outputs
        By entry of `shares` and generator.
    scales : dict of str to float or None
        By model: what makes logits of cosines.
    """

    images: dict[tuple[str, str], Source] = field(default_factory=dict)
    texts: dict[str, Source] = field(default_factory=dict)
    labelled: dict[tuple[str, str], Source] = field(default_factory=dict)
    answers: dict[tuple[str, str], Outputs] = field(default_factory=dict)
    scales: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Labelled:
    """Images whose class is known.

    Attributes
    ----------
    of : str
        Entry of `shares`.
    section : LabelledConfig
    items : Items
    """

    of: str
    section: LabelledConfig
    items: Items

    def need_pictures(self, model: str, base: Path) -> Pictures:
        """Return the pictures; refuse to run a model without them."""
        column = self.section.path
        if column is None:
            raise ConfigError(
                f"shares ({self.of}): models.{model}.model runs on the labelled images, and "
                "nothing says where they are. To do: name the column of files under "
                "'labelled.path'"
            )
        paths = [path or "" for path in self.items.columns[column].tolist()]
        return pictures_of_table(
            self.items.ids.tolist(), paths, root=base / (self.section.root or ""),
            name=self.items.name, column=column,
        )  # fmt: skip


def read_labelled(share: SharesConfig, base: Path) -> Labelled:
    """Read the labelled images of a share.

    Raises
    ------
    DataError
        When the table can't be read, or a label is no class.
    """
    section = share.labelled
    assert section is not None  # noqa: S101 - only of shares that have labelled images
    items = load_items(section.source(base, section.columns), what=f"labelled images, {share.of}")
    known = [*share.classes]
    for row, label in enumerate(items.columns[section.label].tolist(), start=1):
        if label is not None and label not in known:
            raise DataError(
                f"the label is {label!r}",
                file=items.name,
                column=section.label,
                row=row,
                expected=f"one of {', '.join(known)}",
                fix="name the class in shares, or leave the image out",
            )
    return Labelled(share.of, section, items)


@dataclass(frozen=True, eq=False)
class Judged:
    """Classes of images.

    Attributes
    ----------
    said : mapping of str to ndarray of objects, shape (n,)
        By generator: a class, another outcome, or None of an image without any.
    true, said_of_labelled : ndarray of objects, shape (m,), or None
        Classes of labelled images, and those that the classifier gave them.
    inputs, counts : mapping
    """

    said: Mapping[str, Objects] = field(repr=False)
    true: Objects | None = field(repr=False)
    said_of_labelled: Objects | None = field(repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def judge_images(
    share: SharesConfig,
    made: Mapping[str, GeneratedImages],
    spaces: Spaces,
    sources: Sources,
    labelled: Labelled | None,
    base: Path,
) -> Judged:
    """Return the classes of the images of every generator, and of the labelled ones.

    Raises
    ------
    DataError
        When a table can't be used, or classes have no vectors.
    """
    inputs: dict[str, Mapping[str, Any]] = {}
    by_zero_shot = share.model is not None and share.question is None
    classes = _class_vectors(share, spaces) if by_zero_shot else None
    said: dict[str, Objects] = {}
    for name, images in made.items():
        if classes is not None:
            vectors = spaces.vectors.get((share.model or "", name))
            said[name] = _classified(share, vectors, len(images.items), classes, sources)
        elif share.model is not None:
            said[name] = _answered(share, sources.answers[share.of, name], images.items)
        else:
            said[name] = _read(share, name, images, base, inputs)
    true = of_labelled = None
    if labelled is not None:
        inputs |= labelled.items.inputs
        true = np.asarray(labelled.items.columns[labelled.section.label])
        of_labelled = _of_labelled(share, labelled, classes, sources, inputs)
    counts = {name: dict(Counter(map(str, each))) for name, each in said.items()}
    return Judged(said, true, of_labelled, inputs, counts)


def _read(
    share: SharesConfig,
    name: str,
    images: GeneratedImages,
    base: Path,
    inputs: dict[str, Mapping[str, Any]],
) -> Objects:
    section = share.said.get(name)
    if section is None:
        return np.full(len(images.items), None, dtype=object)
    items = load_items(section.source(base, (section.said,)), what=f"what was said of {name}")
    inputs |= items.inputs
    outcomes = _outcomes(share, items.columns[section.said])
    known = dict(zip(items.ids.tolist(), outcomes.tolist(), strict=True))
    ids = images.items.ids.tolist()
    if not {*known} & {*ids}:
        raise DataError(
            f"none of its ids is that of an image of {name}; the first is {items.ids[0]!r}",
            file=items.name,
            column=section.id,
            expected=f"ids such as {ids[0]!r}",
            fix="name the column of the images' ids",
        )
    return _objects([known.get(id_) for id_ in ids])


def _answered(share: SharesConfig, outputs: Outputs, items: Items) -> Objects:
    """Return what the answer about each image means; None of an image without an answer."""
    labels = outputs.labels
    assert labels is not None  # noqa: S101 - answers are texts
    texts = [
        (labels.vocabulary[code] or None) if code >= 0 else None
        for code in labels.codes[:, 0].tolist()
    ]
    if outputs.planned:
        # A plan takes every answer for the first class: it needs sizes alone.
        texts = [next(iter(share.classes))] * len(texts)
    known = dict(zip(outputs.ids.to_list(), texts, strict=True))
    return _outcomes(share, _objects([known.get(id_) for id_ in items.ids.tolist()]))


def _of_labelled(
    share: SharesConfig,
    labelled: Labelled,
    classes: Floats | None,
    sources: Sources,
    inputs: dict[str, Mapping[str, Any]],
) -> Objects:
    if share.model is None:
        return _outcomes(share, labelled.items.columns[labelled.section.said or ""])
    source = sources.labelled.get((share.model, share.of))
    if source is None:
        raise DataError(
            f"models.{share.model}.labelled: no vectors of the labelled images of {share.of!r}",
            expected="vectors of the labelled images",
            fix="name them, or leave 'labelled' out: nothing is corrected then",
        )
    if classes is None:
        assert isinstance(source, Outputs)  # noqa: S101 - answers of a model
        return _answered(share, source, labelled.items)
    vectors = load_vectors(
        source, labelled.items, what=f"embeddings of labelled images by {share.model}",
        max_unmatched=1.0,
    )  # fmt: skip
    inputs |= vectors.inputs
    return _classified(share, vectors, len(labelled.items), classes, sources)


def _outcomes(share: SharesConfig, answers: Objects) -> Objects:
    """Return what every answer means."""
    known = meanings(share)
    return _objects(
        [None if one is None else known.get(plain(one), OTHER) for one in answers.tolist()]
    )


def _class_vectors(share: SharesConfig, spaces: Spaces) -> Floats:
    model = share.model or ""
    items, vectors = spaces.texts[model], spaces.text_vectors[model]
    places = {text: row for row, text in enumerate(items.ids.tolist()) if vectors.usable[row]}
    texts, owner = [], []
    for place, (name, own) in enumerate(class_texts(share).items()):
        for text in own:
            if text not in places:
                raise DataError(
                    f"the text {text!r} of the class {name!r} has no usable vector",
                    file=vectors.name,
                    expected="a vector of each text of a class, named by the text",
                    fix="embed it, or leave the text out",
                )
            texts.append(places[text])
            owner.append(place)
    return np.asarray(class_vectors(vectors.take(np.array(texts)), np.array(owner)))


def _classified(
    share: SharesConfig, vectors: Vectors | None, n: int, classes: Floats, sources: Sources
) -> Objects:
    """Return the likeliest class of each image; None of an image without a vector."""
    labels = np.full(n, None, dtype=object)
    if vectors is None:
        return labels
    kept = np.flatnonzero(vectors.usable)
    scale = sources.scales[share.model or ""]
    scores = zero_shot(vectors.take(kept), classes, scale=100.0 if scale is None else scale)
    likeliest = np.array([*share.classes], dtype=object)[scores.top[:, 0]]
    likeliest[scores.scores[:, 0] < share.least] = UNKNOWN
    labels[kept] = likeliest
    return labels


def _objects(values: list[str | None]) -> Objects:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def class_texts(share: SharesConfig) -> dict[str, tuple[str, ...]]:
    """Return the texts of every class, in the templates.

    Raises
    ------
    InputError
        When there is no such list of templates, or one makes a text twice.
    """
    made = prompts(share.classes, share.templates)
    return {
        name: tuple(
            t for t, owner in zip(made.texts, made.owner.tolist(), strict=True) if owner == i
        )
        for i, name in enumerate(made.names)
    }


def plain(answer: str) -> str:
    """Return an answer without case, spaces around it and a full stop at its end."""
    return " ".join(answer.casefold().split()).rstrip(".!").strip()


def meanings(share: SharesConfig) -> Mapping[str, str]:
    """Return the outcome that each plain answer means."""
    found = {plain(text): UNKNOWN for text in (*share.unknown, UNKNOWN)}
    found |= {plain(text): REFUSED for text in share.refused}
    for name, texts in share.classes.items():
        found |= {plain(text): name for text in (name, *texts)}
    return found
