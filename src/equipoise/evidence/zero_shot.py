"""Classes of images from the vectors of images and of class texts: no training, no labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.evidence.prompts import units

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Activation = Literal["softmax", "sigmoid", "none"]
Score = Literal["cosine", "logit", "sigmoid"]

# Rows at a time: memory is bounded, and the same rows meet in one product whatever the machine.
_ROWS = 4096

# Cosines that differ by less than what a float64 product can say are a tie.
_DIGITS = 12


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """The best classes of images.

    Attributes
    ----------
    top : ndarray of int64, shape (n, k)
        Places of the classes of rank 1 to k; of equal ones the first class is ranked first.
    scores : ndarray of float64, shape (n, k)
        Probability of each of these, or cosine where there is no activation.
    tied : int
        Images whose two best classes are equal.
    """

    top: Places
    scores: Floats
    tied: int


def activation_of(info: Mapping[str, Any]) -> Activation:
    """Return what a model makes of its logits.

    Parameters
    ----------
    info : mapping
        Facts of a `ModelInfo`; a model that was trained with a bias (SigLIP) judges each pair
        for itself.

    Returns
    -------
    str
        "sigmoid" or "softmax".
    """
    return "sigmoid" if info.get("bias") else "softmax"


def zero_shot(
    images: npt.ArrayLike,
    classes: npt.ArrayLike,
    *,
    scale: float,
    bias: float = 0.0,
    activation: Activation = "softmax",
    k: int = 1,
) -> ZeroShot:
    """Rank the classes of each image by the cosine of their vectors.

    Parameters
    ----------
    images : array_like of float, shape (n, d)
    classes : array_like of float, shape (m, d)
        One vector for each class, see `class_vectors`.
    scale, bias : float
        The model's own: `scale * cosine + bias` is its logit.
    activation : str
        "softmax" over the classes, "sigmoid" of each class, or "none" for cosines.
    k : int
        Ranks to keep; all classes where there are fewer.

    Returns
    -------
    ZeroShot
        The same for any number of threads; every number is computed in float64.

    Raises
    ------
    InputError
        When a vector is zero or not finite, dimensions differ, or k is below 1.

    References
    ----------
    Radford et al. 2021; Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training".
    """
    if k < 1:
        raise InputError(f"k is {k}; expected at least 1")
    _allowed("activation", activation, get_args(Activation))
    cosines = _Cosines(images, classes)
    k = min(k, cosines.columns)
    top = np.empty((cosines.rows, k), dtype=np.int64)
    scores = np.empty((cosines.rows, k))
    tied = 0
    for start in range(0, cosines.rows, _ROWS):
        some = cosines.block(start)
        rows = slice(start, start + len(some))
        top[rows] = best(some, k)
        scores[rows] = np.take_along_axis(_activated(some, scale, bias, activation), top[rows], 1)
        if some.shape[1] > 1:
            two = -np.partition(-some, 1, axis=1)[:, :2]
            tied += int((two[:, 0] == two[:, 1]).sum())
    return ZeroShot(top, scores, tied)


def concept_scores(
    images: npt.ArrayLike,
    concepts: npt.ArrayLike,
    *,
    scale: float = 1.0,
    bias: float = 0.0,
    of: Score = "cosine",
) -> Floats:
    """Return how well each concept fits each image, every concept for itself.

    Parameters
    ----------
    images : array_like of float, shape (n, d)
    concepts : array_like of float, shape (m, d)
    scale, bias : float
        The model's own, for "logit" and "sigmoid".
    of : str
        "cosine" in [-1, 1]; "logit" = `scale * cosine + bias`; "sigmoid" of the logit in (0, 1).

    Returns
    -------
    ndarray of float64, shape (n, m)
        Higher fits better.

    Raises
    ------
    InputError
        When a vector is zero or not finite, or dimensions differ.
    """
    _allowed("of", of, get_args(Score))
    cosines = _Cosines(images, concepts)
    found = np.empty((cosines.rows, cosines.columns))
    for start in range(0, cosines.rows, _ROWS):
        some = cosines.block(start)
        logits = some if of == "cosine" else scale * some + bias
        found[start : start + len(some)] = _sigmoid(logits) if of == "sigmoid" else logits
    return found


class _Cosines:
    """Cosines of rows with columns, a block of rows at a time."""

    def __init__(self, images: npt.ArrayLike, classes: npt.ArrayLike) -> None:
        self._images = np.asarray(images)
        self._classes = units(classes, what="class")
        if self._images.ndim != 2 or self._images.shape[1] != self._classes.shape[1]:
            raise InputError(
                f"the images have shape {self._images.shape} and the classes "
                f"{self._classes.shape}; expected vectors of one space, as many numbers in each"
            )
        self.rows, self.columns = len(self._images), len(self._classes)

    def block(self, start: int) -> Floats:
        some = units(self._images[start : start + _ROWS], what="image", first=start)
        cosines: Floats = np.round(some @ self._classes.T, _DIGITS)
        return cosines


def best(scores: npt.ArrayLike, k: int) -> Places:
    """Return the places of the k highest of each row, equal ones in the order of the columns.

    Parameters
    ----------
    scores : array_like of float, shape (n, m)
    k : int
        All columns where there are fewer.
    """
    found: Places
    given = np.asarray(scores)
    if k >= given.shape[1]:
        found = np.argsort(-given, axis=1, kind="stable")
        return found
    some = np.sort(np.argpartition(-given, k, axis=1)[:, : k + 1], axis=1)
    values = np.take_along_axis(given, some, 1)
    order = np.argsort(-values, axis=1, kind="stable")
    found = np.take_along_axis(some, order[:, :k], 1)
    ranked = np.take_along_axis(values, order, 1)
    # Where rank k + 1 equals rank k, others may be as high that were left out.
    left_out = ranked[:, k - 1] == ranked[:, k]
    found[left_out] = np.argsort(-given[left_out], axis=1, kind="stable")[:, :k]
    return found


def _activated(cosines: Floats, scale: float, bias: float, activation: Activation) -> Floats:
    if activation == "none":
        return cosines
    logits = scale * cosines + bias
    if activation == "sigmoid":
        return _sigmoid(logits)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(logits: Floats) -> Floats:
    shares: Floats = np.exp(-np.logaddexp(0.0, -logits))
    return shares


def _allowed(what: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(f"{what} is {given!r}; expected one of {', '.join(allowed)}")
