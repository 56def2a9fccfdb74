"""The filter of similarity: every image like its caption, and like the others of its set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.counterfactuals.filters.candidates import Candidates
from equipoise.counterfactuals.filters.stages import Check, Floats, Pairs, Stage, own_check

THRESHOLD = 0.2
"""The source's: Howard et al. 2024, section 3.3."""

# Numbers of the matrices that are held at once.
_CELLS = 4_000_000


def similarity_filter(
    candidates: Candidates,
    images: npt.ArrayLike,
    captions: npt.ArrayLike,
    *,
    threshold: float = THRESHOLD,
    pairs: float | None = THRESHOLD,
) -> Stage:
    """Hold every image against its caption and against the other images of its candidate.

    Parameters
    ----------
    candidates : Candidates
        n images.
    images : array-like, shape (n, d)
        Embeddings, in the order of the candidates; rows without an image are not read.
    captions : array-like, shape (n, d)
        Of each image's caption, in the same space.
    threshold : float
        What the cosine of image and caption must exceed.
    pairs : float, optional
        What the cosine of any two images of a candidate must exceed; None: not looked at.

    Returns
    -------
    Stage
        Checks "caption similarity" and "pair similarity". An image fails as many pairs as are
        too unlike it, out of those it is in: one odd image fails all of its own, and costs each
        other image one.

    Raises
    ------
    InputError
        When shapes do not fit, or an embedding is zero or not finite.
    """
    made = candidates.made
    seen, told = (
        _units(one, made, candidates.images, what)
        for one, what in ((images, "images"), (captions, "captions"))
    )
    if seen.shape != told.shape:
        raise InputError(
            f"images of {seen.shape[1]} numbers and captions of {told.shape[1]}; expected one space"
        )
    cosine = np.einsum("nd,nd->n", seen, told, dtype=np.float64)
    reason = np.full(candidates.images, f"cosine with the caption ≤ {threshold:g}", dtype=object)
    own = own_check(
        candidates, "caption similarity", cosine, threshold, cosine <= threshold, reason
    )
    if pairs is None:
        return Stage("similarity", (own,))
    return Stage("similarity", (own, _pair_check(candidates, seen, pairs)))


def _units(
    given: npt.ArrayLike, made: npt.NDArray[np.bool_], n: int, what: str
) -> npt.NDArray[np.float32]:
    array = np.asarray(given)
    if array.ndim != 2 or len(array) != n:
        raise InputError(f"{what}: shape {array.shape}; expected ({n}, d), a row for each image")
    units = np.zeros(array.shape, dtype=np.float32)
    rows = array[made].astype(np.float64)
    length = np.linalg.norm(rows, axis=1)
    wrong = ~(np.isfinite(length) & (length > 0))
    if wrong.any():
        row = int(np.flatnonzero(made)[np.argmax(wrong)])
        raise InputError(f"{what}, row {row + 1}: the embedding is zero or not finite")
    units[made] = (rows / length[:, None]).astype(np.float32)
    return units


def _pair_check(candidates: Candidates, units: npt.NDArray[np.float32], least: float) -> Check:
    firsts, seconds, values = [], [], []
    for first, second, value in _pairs(candidates, units):
        firsts.append(first)
        seconds.append(second)
        values.append(value)
    none = np.empty(0, dtype=np.int64)
    first, second = np.concatenate([none, *firsts]), np.concatenate([none, *seconds])
    value = np.concatenate([none.astype(np.float64), *values])
    known = candidates.made[first] & candidates.made[second]
    first, second, value = first[known], second[known], value[known]
    n = candidates.images
    both = np.concatenate([first, second])
    checks = np.bincount(both, minlength=n).astype(np.float64)
    failed = np.bincount(both, np.tile(value <= least, 2), minlength=n)
    lowest = np.full(n, np.inf)
    np.minimum.at(lowest, both, np.tile(value, 2))
    of_set = np.full(len(candidates), np.inf)
    np.minimum.at(of_set, candidates.candidate[first], value)
    text = f"cosine with another image of the set ≤ {least:g}"
    return Check(
        "pair similarity",
        np.where(np.isfinite(lowest), lowest, np.nan),
        least,
        np.where(checks > 0, failed, np.nan),
        checks,
        np.where(failed > 0, text, ""),
        np.where(np.isfinite(of_set), of_set, np.nan),
        np.full(len(candidates), least),
        of_set > least,
        pairs=Pairs(first, second, value),
    )


def _pairs(candidates: Candidates, units: npt.NDArray[np.float32]) -> Iterator[tuple[
    npt.NDArray[np.int64], npt.NDArray[np.int64], Floats
]]:  # fmt: skip
    """Yield pairs and their cosines, candidates of one size at a time."""
    for size in np.unique(candidates.sizes).tolist():
        begin = candidates.starts[:-1][candidates.sizes == size]
        left, right = np.triu_indices(size, 1)
        step = max(1, _CELLS // max(1, size * max(size, units.shape[1])))
        for start in range(0, len(begin), step):
            rows = begin[start : start + step, None] + np.arange(size)
            some = units[rows]
            cosines = np.matmul(some, some.transpose(0, 2, 1))[:, left, right]
            yield rows[:, left].ravel(), rows[:, right].ravel(), cosines.ravel().astype(np.float64)
