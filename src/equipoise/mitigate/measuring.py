"""What is measured of a model before and after: whom neutral prompts prefer, and what it can do."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics import cosine_scores, retrieval_measures, similarity_gap
from equipoise.metrics.rankings.recall import recall_hits
from equipoise.mitigate.embedding import embedded, in_parts, queries_of, texts_read
from equipoise.mitigate.sets import ImageSets, Objects, Rows, SubjectTexts
from equipoise.models.wrapped import unit_vectors

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

NDKL, GAP = "ndkl", "logit_gap"
ACCURACY = "accuracy"
RANKS = (1, 5, 10)


@dataclass(frozen=True, eq=False)
class ZeroShotSet:
    """Images with a class each, and the prompts of every class.

    Attributes
    ----------
    name : str
    images : sequence of n images
    label : ndarray of str objects, shape (n,)
    prompts : mapping of str to tuple of str
        By class.
    """

    name: str
    images: Any = field(repr=False)
    label: Objects = field(repr=False)
    prompts: Mapping[str, tuple[str, ...]] = field(repr=False)

    def __post_init__(self) -> None:
        unknown = sorted({*self.label.tolist()} - {*self.prompts})
        if unknown:
            raise InputError(f"{self.name}: images of {unknown[0]!r}, which has no prompts")


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """Images and captions that belong to them.

    Attributes
    ----------
    name : str
    images : sequence of n images
    caption : ndarray of str objects, shape (m,)
    owner : ndarray of int, shape (m,)
        Place of the image of each caption; a text that stands there for several images belongs to
        each of them.
    about : ndarray of str objects, shape (n,), optional
        Subject of each image, where a model may be asked about some subjects alone.
    """

    name: str
    images: Any = field(repr=False)
    caption: Objects = field(repr=False)
    owner: npt.NDArray[np.int64] = field(repr=False)
    about: Objects | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Test:
    """On what models are measured.

    Attributes
    ----------
    images : ImageSets
        Counterfactual sets.
    texts : mapping of str to SubjectTexts
        By subject, of all subjects in `images`.
    zero_shot : tuple of ZeroShotSet
    retrieval : tuple of RetrievalSet
    """

    images: ImageSets
    texts: Mapping[str, SubjectTexts]
    zero_shot: tuple[ZeroShotSet, ...] = ()
    retrieval: tuple[RetrievalSet, ...] = ()

    __test__ = False  # pytest takes what is called so for a class of tests


@dataclass(frozen=True)
class Measured:
    """What was found of one model.

    Attributes
    ----------
    bias : mapping of (str, str) to mapping of str to float
        By measure and attribute, a number for each subject: 0 or above, lower is better.
    utility : mapping of (str, str) to mapping of str to float
        By measure and data set, a number for each image or query, by its name: higher is better.
    """

    bias: Mapping[tuple[str, str], Mapping[str, float]]
    utility: Mapping[tuple[str, str], Mapping[str, float]]

    def joined(self, other: Measured) -> Measured:
        """Return this together with what was found of other subjects."""
        return Measured(_joined(self.bias, other.bias), _joined(self.utility, other.utility))


def _joined(
    one: Mapping[tuple[str, str], Mapping[str, float]],
    other: Mapping[tuple[str, str], Mapping[str, float]],
) -> dict[tuple[str, str], dict[str, float]]:
    return {key: {**one.get(key, {}), **other.get(key, {})} for key in (*one, *other)}


def measured(
    model: DualEncoder,
    test: Test,
    *,
    only: Collection[str] | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Measure one model.

    Parameters
    ----------
    model : DualEncoder
    test : Test
    only : collection of str, optional
        Subjects to ask about. The classes and the images among which they are to be found stay all.
    progress : callable, optional

    Returns
    -------
    Measured
    """
    utility: dict[tuple[str, str], dict[str, float]] = {}
    for one in test.zero_shot:
        utility[ACCURACY, one.name] = _named_right(model, one, only, progress)
    for pairs in test.retrieval:
        utility |= _recalls(model, pairs, only, progress)
    images = test.images if only is None else test.images.of(only)
    return Measured(_bias(model, images, test.texts, progress), utility)


def _bias(
    model: DualEncoder,
    images: ImageSets,
    texts: Mapping[str, SubjectTexts],
    progress: Progress | None,
) -> dict[tuple[str, str], dict[str, float]]:
    subjects = images.subjects
    # These read vectors in float32 block by block, and take cosines of them in float64.
    scores = cosine_scores(
        embedded(model, images.images, progress),
        queries_of(model, [texts[name].neutral for name in subjects]),
        names=subjects,
    )
    k, prefixes = _depths(images)
    asked: dict[str, Any] = {"queries": images.subject, "sets": images.set, "resampling": None}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for attribute, groups in images.attributes.items():
        ranked = retrieval_measures(
            scores, groups, k=k, prefixes=prefixes, measures=("ndkl",), **asked
        )["ndkl"]
        gap = similarity_gap(scores, groups, scale=model.info.scale or 1.0, **asked)
        found[NDKL, attribute] = _by_subject(ranked, "ndkl", subjects)
        found[GAP, attribute] = _by_subject(gap, GAP, subjects)
    return found


def _depths(images: ImageSets) -> tuple[int, int]:
    """Return how many of the best count: one for each combination of values, and its square."""
    combinations = {*zip(*(values.tolist() for values in images.attributes.values()), strict=True)}
    smallest = min(int((images.subject == name).sum()) for name in images.subjects)
    k = max(1, min(len(combinations), smallest - 1))
    return k, max(1, min(k * k, smallest - 1))


def _by_subject(estimate: Any, metric: str, subjects: Collection[str]) -> dict[str, float]:
    if len(subjects) == 1 and not estimate.parts:
        return {next(iter(subjects)): estimate.value}
    kept = {part.subject: part.value for part in estimate.parts if part.metric == metric}
    return {name: kept.get(name, math.nan) for name in subjects}


def _named_right(
    model: DualEncoder,
    given: ZeroShotSet,
    only: Collection[str] | None,
    progress: Progress | None,
) -> dict[str, float]:
    rows = _rows(given.label, only)
    if not len(rows):
        return {}
    classes = [*given.prompts]
    scores = _cosines(
        model, Rows(given.images, rows), queries_of(model, [*given.prompts.values()]), progress
    )
    named = scores.argmax(axis=1)
    return {
        str(row): float(classes[found] == given.label[row])
        for row, found in zip(rows.tolist(), named.tolist(), strict=True)
    }


def _cosines(model: DualEncoder, images: Any, texts: Floats, progress: Progress | None) -> Floats:
    """Return cosines of images and unit vectors of texts, (images, texts); no vector is kept."""
    found = np.empty((len(images), len(texts)))
    for rows, vectors in in_parts(model, images, progress):
        found[rows] = unit_vectors(vectors) @ texts.T
    return found


def _rows(labels: Objects, only: Collection[str] | None) -> npt.NDArray[np.intp]:
    wanted = None if only is None else {*only}
    return np.flatnonzero([wanted is None or label in wanted for label in labels])


def _recalls(
    model: DualEncoder,
    pairs: RetrievalSet,
    only: Collection[str] | None,
    progress: Progress | None,
) -> dict[tuple[str, str], dict[str, float]]:
    texts, own = np.unique(pairs.caption.astype(str), return_inverse=True)
    relevant = np.zeros((len(pairs.images), len(texts)), dtype=bool)
    relevant[pairs.owner, own] = True
    scores = _cosines(model, pairs.images, texts_read(model, texts.tolist()), progress)
    asked = np.arange(len(scores)) if pairs.about is None else _rows(pairs.about, only)
    about = relevant[asked].any(axis=0)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for k in RANKS:
        if k <= len(texts):
            hits = recall_hits(scores[asked], relevant[asked], k=k, to="texts")
            named = dict(zip(map(str, asked.tolist()), hits.tolist(), strict=True))
            found[f"text_recall_at_{k}", pairs.name] = named
        if k <= len(scores):
            hits = recall_hits(scores[:, about], relevant[:, about], k=k, to="images")
            named = dict(zip(texts[about].tolist(), hits.tolist(), strict=True))
            found[f"image_recall_at_{k}", pairs.name] = named
    return found
