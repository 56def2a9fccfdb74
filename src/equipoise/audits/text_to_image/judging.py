"""What was said of every image: by a zero-shot classifier, or in answers to a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.text_to_image.wording import (
    OTHER,
    UNKNOWN,
    class_texts,
    meanings,
    plain,
)
from equipoise.core.errors import DataError
from equipoise.data import Items, Vectors, load_items, load_vectors

if TYPE_CHECKING:
    from equipoise.audits.text_to_image.config import Config
    from equipoise.audits.text_to_image.config_shares import (
        LabelledConfig,
        SaidConfig,
        SharesConfig,
    )
    from equipoise.audits.text_to_image.loading import Made

Objects = npt.NDArray[np.object_]
Floats = npt.NDArray[np.float64]
Spaces = tuple[Mapping[str, Items], Mapping[str, Vectors], Mapping[tuple[str, str], Vectors]]


@dataclass(frozen=True, eq=False)
class Judged:
    """What was said of images.

    Attributes
    ----------
    said : mapping of str to ndarray of objects, shape (n,)
        By generator: a class, another outcome, or None of an image that nothing was said of.
    true, said_of_labelled : ndarray of objects, shape (m,), or None
        Classes of labelled images, and what was said of them.
    by : str
        Who said it, in words.
    inputs, counts : mapping
    """

    said: Mapping[str, Objects] = field(repr=False)
    true: Objects | None = field(repr=False)
    said_of_labelled: Objects | None = field(repr=False)
    by: str
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)


def judged(
    share: SharesConfig, config: Config, made: Mapping[str, Made], spaces: Spaces, base: Path
) -> Judged:
    """Return what was said of the images of every generator, and of the labelled ones.

    Raises
    ------
    DataError
        When a table cannot be used, or classes have no vectors.
    """
    labelled = None
    inputs: dict[str, Mapping[str, Any]] = {}
    if share.labelled is not None:
        labelled = load_items(
            share.labelled.source(base, share.labelled.columns), what=f"labelled images, {share.of}"
        )
        inputs |= labelled.inputs
    true = None if labelled is None else _true(share, share.labelled, labelled)
    if share.model is None:
        said, told = _tables(share, made, base)
        inputs |= told
        again = None
        if labelled is not None and share.labelled is not None:
            again = _outcomes(share, labelled.columns[share.labelled.said or ""])
        by = "answers to a question, as given"
    else:
        said = _zero_shot(share, config, made, spaces)
        again = _of_labelled(share, config, labelled, spaces, base, inputs)
        by = f"zero-shot classes by {share.model}"
    counts = {name: dict(Counter(str(one) for one in found)) for name, found in said.items()}
    return Judged(said, true, again, by, inputs, counts)


def _true(share: SharesConfig, given: LabelledConfig | None, items: Items) -> Objects:
    assert given is not None  # noqa: S101 - there are labelled images
    labels = items.columns[given.label]
    known = [*share.classes]
    for row, one in enumerate(labels.tolist(), start=1):
        if one is not None and one not in known:
            raise DataError(
                f"the label is {one!r}",
                file=items.name,
                column=given.label,
                row=row,
                expected=f"one of {', '.join(known)}",
                fix="name the class in shares, or leave the image out",
            )
    return np.asarray(labels)


def _tables(
    share: SharesConfig, made: Mapping[str, Made], base: Path
) -> tuple[dict[str, Objects], dict[str, Mapping[str, Any]]]:
    said: dict[str, Objects] = {}
    inputs: dict[str, Mapping[str, Any]] = {}
    for name, images in made.items():
        given: SaidConfig | None = share.said.get(name)
        if given is None:
            said[name] = np.full(len(images.items), None, dtype=object)
            continue
        items = load_items(given.source(base, (given.said,)), what=f"what was said of {name}")
        inputs |= dict(items.inputs)
        outcomes = _outcomes(share, items.columns[given.said])
        known = dict(zip(items.ids.tolist(), outcomes.tolist(), strict=True))
        ids = images.items.ids.tolist()
        if not {*known} & {*ids}:
            raise DataError(
                f"none of its ids is that of an image of {name}; the first is {items.ids[0]!r}",
                file=items.name,
                column=given.id,
                expected=f"ids such as {ids[0]!r}",
                fix="name the column of the images' ids",
            )
        said[name] = _objects([known.get(one) for one in ids])
    return said, inputs


def _outcomes(share: SharesConfig, answers: Objects) -> Objects:
    """Return what every answer means."""
    known = meanings(share)
    return _objects(
        [None if one is None else known.get(plain(one), OTHER) for one in answers.tolist()]
    )


def _zero_shot(
    share: SharesConfig, config: Config, made: Mapping[str, Made], spaces: Spaces
) -> dict[str, Objects]:
    classes = _class_vectors(share, spaces)
    said = {}
    for name, images in made.items():
        vectors = spaces[2].get((share.model or "", name))
        found = np.full(len(images.items), None, dtype=object)
        if vectors is not None:
            kept = np.flatnonzero(vectors.usable)
            found[kept] = _classified(share, config, vectors.take(kept), classes)
        said[name] = found
    return said


def _of_labelled(
    share: SharesConfig,
    config: Config,
    labelled: Items | None,
    spaces: Spaces,
    base: Path,
    inputs: dict[str, Mapping[str, Any]],
) -> Objects | None:
    if labelled is None:
        return None
    given = config.models[share.model or ""].labelled.get(share.of)
    if given is None:
        raise DataError(
            f"models.{share.model}.labelled: no vectors of the labelled images of {share.of!r}",
            expected="vectors of the labelled images",
            fix="name them, or leave 'labelled' out: nothing is corrected then",
        )
    vectors = load_vectors(
        given.source(base), labelled, what=f"embeddings of labelled images by {share.model}",
        max_unmatched=1.0,
    )  # fmt: skip
    inputs |= dict(vectors.inputs)
    found = np.full(len(labelled), None, dtype=object)
    kept = np.flatnonzero(vectors.usable)
    found[kept] = _classified(share, config, vectors.take(kept), _class_vectors(share, spaces))
    return found


def _class_vectors(share: SharesConfig, spaces: Spaces) -> Floats:
    from equipoise.evidence import class_vectors

    model = share.model or ""
    items, vectors = spaces[0][model], spaces[1][model]
    places = {one: row for row, one in enumerate(items.ids.tolist()) if vectors.usable[row]}
    texts, owner = [], []
    for place, (name, every) in enumerate(class_texts(share).items()):
        for text in every:
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


def _classified(share: SharesConfig, config: Config, rows: Any, classes: Floats) -> Objects:
    from equipoise.evidence import zero_shot

    scale = config.models[share.model or ""].scale
    found = zero_shot(rows, classes, scale=100.0 if scale is None else scale)
    names = np.array([*share.classes], dtype=object)
    said = names[found.top[:, 0]]
    said[found.scores[:, 0] < share.least] = UNKNOWN
    return np.asarray(said)


def _objects(values: list[str | None]) -> Objects:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
