"""Accuracy difference of a model trained on balanced and one on imbalanced data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binom, poisson

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, against, number
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.draws import block_sizes
from equipoise.stats.intervals import mean_t, percentile, wilson
from equipoise.stats.resampling import Bootstrap, Exact, Resampling, null_draws
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
    draws = null_draws(resampling)
    swapped = stream(rng, "swap").binomial(many, 0.5, size=(draws, len(many)))
    values = ((2 * swapped - many) * sizes).sum(axis=1)
    return Swaps(values / scale, None, f"{_NULL} {what}; {draws} swaps")


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


MODELS = ("trained on balanced data", "trained on imbalanced data")


def accuracy_difference(
    y_true: Any,
    y_pred_unbiased: Any,
    y_pred_biased: Any,
    *,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Absolute difference in accuracy of two models on one balanced test set.

    Δ = |A_unbiased − A_biased| and %Δ = 100 Δ / A_unbiased, where one model was trained on
    balanced and the other on imbalanced data.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True classes.
    y_pred_unbiased, y_pred_biased : array-like, shape (n,) or (runs, n)
        Labels predicted by the model trained on balanced and the one trained on imbalanced
        data; with repeated training, one row per run, as many for both.
    units : array-like, shape (n,), optional
        Names of the units that repeat: their images are resampled and swapped together.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Δ in [0, 1], higher is worse. Interval: paired percentile bootstrap over images of the
        signed difference, folded at 0, so that it can reach 0. Chance: the two models swap
        their predictions on each image (or unit) with probability 1/2; p is exact (McNemar's
        test for one run) wherever the distribution can be enumerated. `.by` has Δ with the
        accuracy of both models, "percent_difference" = %Δ, "signed_difference" =
        A_unbiased − A_biased, and with several runs "mean_over_runs": the mean of Δ's signed
        differences run by run, with its t-interval, folded.

    Raises
    ------
    InputError
        When lengths or numbers of runs differ, no image is complete, or Exact is asked for where
        there are too many rearrangements.

    References
    ----------
    Mandal 2024, chapter 7; McNemar 1947; Fay 2010 (exact McNemar test).
    """
    paired = pair(y_true, (y_pred_unbiased, y_pred_biased), units)
    if resampling is None:
        return _estimate(paired, None, None, 0.95)
    replicates = None
    if isinstance(resampling, Bootstrap):
        replicates = replicates_of_pair(paired, resampling.replicates, rng)
    return _estimate(paired, swaps(paired, resampling, rng), replicates, resampling.level)


@dataclass(frozen=True, eq=False)
class Folded:
    """Ends of |x| from replicates or runs of x: the interval of x, folded at 0."""

    values: Floats
    student: bool = False

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        low, high = self.signed(level)
        if low <= 0.0 <= high:
            return 0.0, max(abs(low), high) + 0.0  # high may be -0.0
        return min(abs(low), abs(high)), max(abs(low), abs(high))

    def signed(self, level: float) -> tuple[float, float]:
        """Return the ends of x itself."""
        low, high = (
            mean_t(self.values, level) if self.student else percentile(self.values, level)[:2]
        )
        return float(low), float(high)


def _estimate(
    paired: Paired, swapped: Swaps | None, replicates: Floats | None, level: float
) -> Estimate:
    rates = paired.right.sum(axis=1) / (paired.runs * paired.n)
    signed = float(rates[0] - rates[1])
    drawn = None if replicates is None else Folded(replicates[:, 0] - replicates[:, 1])
    held = _against(swapped, abs(signed))
    by_group = _by_group(paired, rates, replicates, level)
    return make_estimate(
        metric="accuracy_difference",
        value=abs(signed),
        n=dict.fromkeys(MODELS, paired.n),
        method=_method(paired, replicates),
        params={"runs": paired.runs},
        **held.fields("no resampling was asked for"),
        by=parts_to_table(
            [
                number(
                    "accuracy_difference",
                    abs(signed),
                    ends=drawn or no_ends,
                    level=level,
                    held=held,
                    n=paired.n,
                    by_group=by_group,
                ),
                _percent_part(paired, rates, replicates, level),
                _signed_part(paired, signed, drawn, level),
                *_run_parts(paired, level),
            ]
        ),
        excluded={"missing true class or prediction": paired.missing} if paired.missing else {},
        unit=paired.unit,
        ends=drawn or no_ends,
    )


def _against(swapped: Swaps | None, value: float) -> Against:
    if swapped is None:
        return NOTHING
    null = np.abs(swapped.differences)
    return against(null, value, "higher", swapped.text, weights=swapped.weights)


def _method(paired: Paired, replicates: Floats | None) -> str:
    if replicates is None:
        return "none: use Bootstrap()"
    what = "images" if paired.keys is None else "units"
    return f"paired percentile bootstrap over {what}, {len(replicates)} replicates"


def _by_group(
    paired: Paired, rates: Floats, replicates: Floats | None, level: float
) -> tuple[GroupValue, ...]:
    """Return both accuracies; Wilson intervals where each image is one independent answer."""
    if paired.keys is None and paired.runs == 1:
        low, high = wilson(paired.right.sum(axis=1), paired.n, level)
    elif replicates is not None:
        low, high, _ = percentile(replicates, level)
    else:
        low = high = np.full(2, np.nan)
    return tuple(
        GroupValue(name, (name,), paired.n, *ends)
        for name, *ends in zip(MODELS, rates.tolist(), low.tolist(), high.tolist(), strict=True)
    )


def _percent_part(paired: Paired, rates: Floats, replicates: Floats | None, level: float) -> Part:
    if rates[0] == 0:
        reason = f"the model {MODELS[0]} is never right"
        return Part("percent_difference", "", np.nan, n=paired.n, reason=reason)
    low, high = np.nan, np.nan
    if replicates is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            drawn = 100.0 * (replicates[:, 0] - replicates[:, 1]) / replicates[:, 0]
        low, high = Folded(np.where(np.isfinite(drawn), drawn, np.nan))(level)
    value = 100.0 * abs(float(rates[0] - rates[1])) / float(rates[0])
    return Part("percent_difference", "", value, low, high, n=paired.n)


def _signed_part(paired: Paired, signed: float, drawn: Folded | None, level: float) -> Part:
    low, high = drawn.signed(level) if drawn else (np.nan, np.nan)
    return Part("signed_difference", "", signed, low, high, n=paired.n)


def _run_parts(paired: Paired, level: float) -> list[Part]:
    if paired.runs == 1:
        return []
    differences = paired.by_run[0] - paired.by_run[1]
    low, high = Folded(differences, student=True)(level)
    return [Part("mean_over_runs", "", abs(float(differences.mean())), low, high, n=paired.runs)]


register(
    MetricSpec(
        name="accuracy_difference",
        title="Accuracy difference",
        kinds=("predictions",),
        unit="points",
        definition=(
            "Absolute difference of the accuracies of two models on one test set, one trained on "
            "balanced and one on imbalanced data; also in per cent of the first."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: imbalanced training data cost more accuracy.",
        chance="above 0",
        interval="paired percentile bootstrap over test images",
        null="the two predictions of an image are exchangeable",
        reference="Mandal 2024, chapter 7 (Accuracy Difference); McNemar 1947 (exact test)",
    )
)
