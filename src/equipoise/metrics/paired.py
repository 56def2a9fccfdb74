"""Right answers of two models on the same images, resampled and swapped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, poisson

from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.stats.draws import block_sizes
from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling
from equipoise.stats.streams import stream, unit_keys, unit_uniforms

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_NULL = "the two models are exchangeable on each"
# Multiplications that make the exact distribution of swapped differences: a second of work.
_EXACT_WORK = 200_000_000


@dataclass(frozen=True, eq=False)
class Paired:
    """Right answers of two models on the same images.

    Attributes
    ----------
    right : ndarray of int64, shape (2, units)
        Right answers of each model, summed over the runs and the images of a unit.
    images : ndarray of int64, shape (units,)
        Images of each unit.
    keys : ndarray of uint64 or None
        Names of the units as keys of random streams; None where each image is its own.
    by_run : ndarray, shape (2, runs)
        Accuracy of each training run.
    missing : int
        Images without a true class or without some prediction.
    """

    right: Indices
    images: Indices
    keys: npt.NDArray[np.uint64] | None
    by_run: Floats
    missing: int

    @property
    def runs(self) -> int:
        """Training runs of each model."""
        return int(self.by_run.shape[1])

    @property
    def n(self) -> int:
        """Images."""
        return int(self.images.sum())

    @property
    def unit(self) -> str:
        """What is resampled and swapped."""
        return "row" if self.keys is None else "unit"


def pair(y_true: Any, predictions: tuple[Any, Any], units: Any) -> Paired:
    """Compare two models' predictions with the truth, see `accuracy_difference`.

    Raises
    ------
    InputError
        When lengths or numbers of runs differ, or no image is complete.
    """
    truth, names = encode(y_true, what="y_true")
    texts = np.array([*names, ""], dtype=object)[truth]
    labels = [
        _runs(given, len(texts), what)
        for given, what in zip(predictions, ("y_pred_unbiased", "y_pred_biased"), strict=True)
    ]
    if labels[0].shape != labels[1].shape:
        first, second = (len(one) for one in labels)
        raise InputError(f"y_pred_biased: {second} runs; expected {first}, as in y_pred_unbiased")
    both = np.stack(labels)
    kept = (texts != "") & (both != "").all(axis=(0, 1))
    if not kept.any():
        raise InputError("no image has a true class and a prediction of both models; expected one")
    right = (both[:, :, kept] == texts[kept]).astype(np.int64)
    by_run = right.sum(axis=2) / kept.sum()
    per_image, images = right.sum(axis=1), np.ones(int(kept.sum()), dtype=np.int64)
    missing = int((~kept).sum())
    if units is None:
        return Paired(per_image, images, None, by_run, missing)
    return Paired(*_by_unit(per_image, units, kept), by_run, missing)


def _runs(given: Any, n: int, what: str) -> npt.NDArray[Any]:
    """Return labels as texts, shape (runs, n), "" where missing."""
    array = np.asarray(given)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise InputError(f"{what}: shape {array.shape}; expected ({n},) or (runs, {n}), as y_true")
    codes, names = encode(array.ravel(), what=what)
    texts: npt.NDArray[Any] = np.array([*names, ""], dtype=object)[codes]
    return texts.reshape(-1, n)


def _by_unit(
    right: Indices, units: Any, kept: npt.NDArray[np.bool_]
) -> tuple[Indices, Indices, npt.NDArray[np.uint64]]:
    codes, names = encode(units, what="units")
    if len(codes) != len(kept):
        raise InputError(f"units: {len(codes)} rows; expected {len(kept)}, as in y_true")
    # An image without a unit is a unit of its own.
    alone = np.flatnonzero(codes < 0)
    every = codes.astype(np.int64)
    every[alone] = len(names) + np.arange(len(alone))
    labels = np.array([*names, *(f"\x00{index}" for index in range(len(alone)))], dtype=np.str_)
    present, inverse = np.unique(every[kept], return_inverse=True)
    sums = np.stack([np.bincount(inverse, one) for one in right]).astype(np.int64)
    return sums, np.bincount(inverse).astype(np.int64), unit_keys(labels[present])


@dataclass(frozen=True, eq=False)
class Swaps:
    """Differences of two swapped models: draws, or all values with their probabilities."""

    differences: Floats
    weights: Floats | None
    text: str


def swaps(paired: Paired, resampling: Resampling, rng: int) -> Swaps:
    """Return differences in accuracy when each image, or unit, may swap the two models.

    All of them with their probabilities where that is feasible, else draws.

    Raises
    ------
    InputError
        When Exact is asked for and is not feasible.
    """
    sums = np.abs(paired.right[0] - paired.right[1])
    sizes, many = np.unique(sums[sums > 0], return_counts=True)
    scale = float(paired.runs * paired.n)
    what = "image" if paired.keys is None else "unit"
    if _work(sizes, many) <= _EXACT_WORK:
        values, weights = _enumerated(sizes, many)
        return Swaps(values / scale, weights, f"{_NULL} {what}; every swap enumerated")
    if isinstance(resampling, Exact):
        raise InputError(
            "resampling=Exact: too many different swaps of the two models; use Permutation()"
        )
    draws = _draws(resampling)
    swapped = stream(rng, "swap").binomial(many, 0.5, size=(draws, len(many)))
    values = ((2 * swapped - many) * sizes).sum(axis=1)
    return Swaps(values / scale, None, f"{_NULL} {what}; {draws} swaps")


def _draws(resampling: Bootstrap | Permutation) -> int:
    least = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    return max(least, int(np.ceil(1.0 / resampling.resolution)))


def _work(sizes: Indices, many: Indices) -> int:
    """Multiplications of the convolutions that `_enumerated` makes."""
    lengths = 2 * np.cumsum(sizes * many) + 1
    return int((lengths[1:] * (2 * sizes * many + 1)[1:]).sum()) if len(sizes) > 1 else 0


def _enumerated(sizes: Indices, many: Indices) -> tuple[Floats, Floats]:
    """Return every sum of ±size, and its probability when signs are fair coins."""
    masses = [np.ones(1)]
    for size, count in zip(sizes.tolist(), many.tolist(), strict=True):
        mass = np.zeros(2 * size * count + 1)
        mass[:: 2 * size] = binom.pmf(np.arange(count + 1), count, 0.5)
        masses.append(mass)
    total = reduce(np.convolve, masses)
    reach = (len(total) - 1) // 2
    possible = np.flatnonzero(total > 0)
    return (possible - reach).astype(np.float64), total[possible]


def replicates_of_pair(paired: Paired, replicates: int, rng: int) -> Floats:
    """Return accuracies of both models on resampled images, shape (replicates, 2).

    Images of one joint outcome (who was right, how often) are alike: a multinomial draw.
    """
    if paired.keys is not None:
        return _by_weights(paired, paired.keys, replicates, rng)
    return _by_table(paired, replicates, rng)


def _by_table(paired: Paired, replicates: int, rng: int) -> Floats:
    kinds, times = np.unique(paired.right, axis=1, return_counts=True)
    drawn = stream(rng, "bootstrap").multinomial(paired.n, times / paired.n, size=replicates)
    return np.stack([(drawn * kind).sum(axis=1) for kind in kinds], axis=1) / (
        paired.runs * paired.n
    )


def _by_weights(paired: Paired, keys: npt.NDArray[np.uint64], replicates: int, rng: int) -> Floats:
    found = []
    for start, size in block_sizes(replicates, len(keys)):
        uniforms = unit_uniforms(rng, "bootstrap", keys, range(start, start + size))
        times = poisson.ppf(uniforms, 1.0).astype(np.int64)
        images = (times * paired.images).sum(axis=1)
        right = np.stack([(times * one).sum(axis=1) for one in paired.right], axis=1)
        found.append(np.where(images > 0, right.T / np.maximum(images, 1), np.nan).T / paired.runs)
    return np.concatenate(found)
