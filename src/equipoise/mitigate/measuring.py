"""Measures of a model before and after: bias of neutral prompts, accuracy and recall."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.core import AnyArray, Floats, Floats32, Integers, ModelError, Objects, Positions
from equipoise.metrics import cosine_scores, retrieval_measures, similarity_gap
from equipoise.metrics.rankings.recall import recall_hits
from equipoise.mitigate.recipe import Progress
from equipoise.mitigate.sets import ImageSets, Lookup, SubjectTexts
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import unit_vectors

Numbers = dict[tuple[str, str], dict[str, float]]
"""By measure and by attribute or data set: numbers of units by name."""

NDKL, GAP, ACCURACY = "ndkl", "logit_gap", "accuracy"
RANKS = (1, 5, 10)
_PART = 256


def embed_images(model: DualEncoder, images: Any, progress: Progress | None = None) -> Floats32:
    """Return vectors of images, (n, dimension), not normalised.

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    return image_rows(model, images, lambda vectors: vectors, progress)


def image_rows(
    model: DualEncoder,
    images: Any,
    function: Callable[[Floats32], AnyArray],
    progress: Progress | None = None,
) -> AnyArray:
    """Return what a function makes of the vector of each image, so that not all need be held."""
    found: AnyArray = np.empty((0, model.info.dimension or 0), dtype=np.float32)
    for start in range(0, len(images), _PART):
        if progress is not None:
            progress("embedding images", start, len(images))
        rows = range(start, min(start + _PART, len(images)))
        part = function(_finite(model.embed_images([images[row] for row in rows]), model))
        if not start:
            found = np.empty((len(images), part.shape[1]), dtype=part.dtype)
        found[start : rows.stop] = part
    return found


def queries_of(model: DualEncoder, prompts: Sequence[Sequence[str]]) -> Floats:
    """Return one unit vector for each group of prompts: the mean of their unit vectors."""
    vectors = text_vectors(model, [text for group in prompts for text in group])
    ends = np.cumsum([len(group) for group in prompts])[:-1]
    return unit_vectors(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def text_vectors(model: DualEncoder, texts: Sequence[str]) -> Floats:
    """Return unit vectors of texts, (n, dimension).

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    return unit_vectors(_finite(model.embed_texts(texts), model))


def _finite(vectors: Floats32, model: DualEncoder) -> Floats32:
    if not (np.isfinite(vectors).all() and (np.abs(vectors).max(axis=1) > 0).all()):
        raise ModelError(
            f"{model.info.name} gave a vector that is zero or not finite. To do: dtype: float32"
        )
    return vectors


@dataclass(frozen=True, eq=False)
class ZeroShotSet:
    """Images with a class each, and the prompts of every class.

    Attributes
    ----------
    name : str
    images : sequence of n images
    label : ndarray of str objects, shape (n,)
    prompts : mapping of str to sequence of str
        By class.
    """

    name: str
    images: Any
    label: Objects
    prompts: Mapping[str, Sequence[str]]


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
        Subject of each image, so that a model can be measured on some subjects alone.
    """

    name: str
    images: Any
    caption: Objects
    owner: Integers
    about: Objects | None = None


@dataclass(frozen=True, eq=False)
class Test:
    """Data that models are measured on.

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

    __test__ = False  # no class of tests, as pytest would take it for

    def of(self, subjects: Collection[str]) -> Test:
        """Return the same with the counterfactual sets of some subjects alone."""
        return replace(self, images=self.images.of(subjects))


@dataclass(frozen=True)
class Measured:
    """Measures of one model.

    Attributes
    ----------
    bias : mapping of (str, str) to mapping of str to float
        By measure and attribute, a number for each subject: 0 or above, lower is better.
    utility : mapping of (str, str) to mapping of str to float
        By measure and data set, a number for each image or query, by its name: higher is better.
    """

    bias: Numbers
    utility: Numbers

    def joined(self, other: Measured) -> Measured:
        """Return this together with the measures of other subjects."""
        bias, utility = (
            {key: {**one.get(key, {}), **two.get(key, {})} for key in {**one, **two}}
            for one, two in ((self.bias, other.bias), (self.utility, other.utility))
        )
        return Measured(bias, utility)


def measure(
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
        Subjects to measure. The classes and the images among which they are to be found stay all.
    progress : callable, optional

    Returns
    -------
    Measured
    """
    utility: Numbers = {}
    for images in test.zero_shot:
        rows = _rows(images.label, only)
        some = Lookup([(images.images, row) for row in rows.tolist()])
        classes = np.array([*images.prompts], dtype=object)
        scores = _cosines(model, some, queries_of(model, [*images.prompts.values()]), progress)
        right = classes[scores.argmax(axis=1)] == images.label[rows]
        utility[ACCURACY, images.name] = _named(rows, right.astype(np.float64))
    for pairs in test.retrieval:
        utility |= _recalls(model, pairs, only, progress)
    sets = test.images if only is None else test.images.of(only)
    return Measured(_bias(model, sets, test.texts, progress), utility)


def _bias(
    model: DualEncoder,
    images: ImageSets,
    texts: Mapping[str, SubjectTexts],
    progress: Progress | None,
) -> Numbers:
    subjects = images.subjects
    # These read vectors in float32 block by block, and take cosines of them in float64.
    scores = cosine_scores(
        embed_images(model, images.images, progress),
        queries_of(model, [texts[name].neutral for name in subjects]),
        names=subjects,
    )
    # One image for each combination of values, and prefixes up to its square.
    combinations = {*zip(*(values.tolist() for values in images.attributes.values()), strict=True)}
    most = max(1, min(int((images.subject == name).sum()) for name in subjects) - 1)
    k = min(len(combinations), most)
    shared: dict[str, Any] = {"queries": images.subject, "sets": images.set, "resampling": None}
    numbers: Numbers = {}
    for attribute, groups in images.attributes.items():
        ranked = retrieval_measures(
            scores, groups, k=k, prefixes=min(k * k, most), measures=("ndkl",), **shared
        )[NDKL]
        gap = similarity_gap(scores, groups, scale=model.info.scale or 1.0, **shared)
        numbers[NDKL, attribute] = _by_subject(ranked, NDKL, subjects)
        numbers[GAP, attribute] = _by_subject(gap, GAP, subjects)
    return numbers


def _by_subject(estimate: Any, metric: str, subjects: Sequence[str]) -> dict[str, float]:
    if len(subjects) == 1 and not estimate.parts:
        return {subjects[0]: estimate.value}
    kept = {part.subject: part.value for part in estimate.parts if part.metric == metric}
    return {name: kept.get(name, math.nan) for name in subjects}


def _cosines(model: DualEncoder, images: Any, texts: Floats, progress: Progress | None) -> Floats:
    """Return cosines of images and unit vectors of texts, (images, texts); no vector is kept."""
    return image_rows(model, images, lambda vectors: unit_vectors(vectors) @ texts.T, progress)


def _rows(labels: Objects, only: Collection[str] | None) -> Positions:
    return np.flatnonzero([only is None or label in only for label in labels])


def _named(names: AnyArray, numbers: Floats) -> dict[str, float]:
    return dict(zip(names.astype(str).tolist(), numbers.tolist(), strict=True))


def _recalls(
    model: DualEncoder,
    pairs: RetrievalSet,
    only: Collection[str] | None,
    progress: Progress | None,
) -> Numbers:
    texts, own = np.unique(pairs.caption.astype(str), return_inverse=True)
    relevant = np.zeros((len(pairs.images), len(texts)), dtype=bool)
    relevant[pairs.owner, own] = True
    scores = _cosines(model, pairs.images, text_vectors(model, texts.tolist()), progress)
    rows = np.arange(len(scores)) if pairs.about is None else _rows(pairs.about, only)
    about = relevant[rows].any(axis=0)
    numbers: Numbers = {}
    for k in RANKS:
        if k <= len(texts):
            hits = recall_hits(scores[rows], relevant[rows], k=k, to="texts")
            numbers[f"text_recall_at_{k}", pairs.name] = _named(rows, hits)
        if k <= len(scores):
            hits = recall_hits(scores[:, about], relevant[:, about], k=k, to="images")
            numbers[f"image_recall_at_{k}", pairs.name] = _named(texts[about], hits)
    return numbers
