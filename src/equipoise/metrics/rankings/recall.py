"""Recall@K: how often what belongs to a query is among its K best."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import gammaln

from equipoise.core import Floats, InputError

Direction = Literal["images", "texts"]


def recall_hits(scores: Any, relevant: Any, *, k: int, to: Direction = "images") -> Floats:
    """Return whether each query finds something relevant among its k best, shape (queries,).

    Parameters
    ----------
    scores : array-like, shape (images, texts)
        Similarity; higher is better.
    relevant : array-like of bool, shape (images, texts), or of int, shape (texts,)
        Whether a text belongs to an image; or the place of the one image of each text.
    k : int
        How many of the best count; at most as many as there are to find.
    to : "images" or "texts"
        What is found: images for each text, or texts for each image.

    Returns
    -------
    ndarray of float64
        0 or 1; a tie at the k-th place counts with the probability that a random order of the tied
        ones puts something relevant among the k best.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, k is out of range, or a query has nothing
        relevant.

    References
    ----------
    Karpathy & Fei-Fei 2015, "Deep Visual-Semantic Alignments", section 4.1.
    """
    table, right = np.asarray(scores, dtype=np.float64), np.asarray(relevant)
    if table.ndim != 2 or not table.size:
        raise InputError(f"scores: shape {table.shape}; expected (images, texts), at least one")
    if not np.isfinite(table).all():
        raise InputError("scores: expected finite numbers; look at the model's vectors")
    images, texts = table.shape
    if (
        right.shape == (texts,)
        and right.dtype.kind in "iu"
        and {*right.tolist()} <= {*range(images)}
    ):
        right = np.arange(images)[:, None] == right
    if right.shape != table.shape or right.dtype != bool:
        raise InputError(
            f"relevant: {right.dtype} of shape {right.shape}; expected bool of shape "
            f"{table.shape}, or {texts} places of images from 0 to {images - 1}"
        )
    if to not in ("images", "texts"):
        raise InputError(f"to is {to!r}; expected 'images' or 'texts'")
    if to == "images":
        table, right = table.T, right.T
    if not 1 <= k <= table.shape[1]:
        raise InputError(f"k={k}: expected 1 to {table.shape[1]}, the number of {to}")
    nothing = np.flatnonzero(~right.any(axis=1))
    if len(nothing):
        raise InputError(
            f"{len(nothing)} queries have nothing relevant, the first is number {nothing[0]}; "
            "expected something to find for each. To do: leave them out"
        )
    best = np.where(right, table, -np.inf).max(axis=1)
    above = (table > best[:, None]).sum(axis=1)
    tied = table == best[:, None]
    own, other = (tied & right).sum(axis=1), (tied & ~right).sum(axis=1)
    return _found(k - above, own, other)


def _found(slots: Any, own: Any, other: Any) -> Floats:
    """Return the probability that one of `own` is among the first `slots` of own and others."""
    found = np.where(slots >= 1, 1.0, 0.0)
    partly = np.flatnonzero((slots >= 1) & (slots <= other))
    s, a, b = slots[partly], own[partly], other[partly]
    missed = gammaln(b + 1) - gammaln(b - s + 1) - gammaln(a + b + 1) + gammaln(a + b - s + 1)
    found[partly] = 1.0 - np.exp(missed)
    return found
