"""Accuracy difference of a model trained on balanced and one on imbalanced data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Chance, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.paired import Paired, Swaps, pair, replicates_of_pair, swaps
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.chance import PValue, band, p_value
from equipoise.stats.intervals import mean_t, percentile, wilson
from equipoise.stats.resampling import Bootstrap, Resampling

Floats = npt.NDArray[np.float64]

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
    chance, found = _against(swapped, abs(signed))
    by_group = _by_group(paired, rates, replicates, level)
    return make_estimate(
        metric="accuracy_difference",
        value=abs(signed),
        n=dict.fromkeys(MODELS, paired.n),
        method=_method(paired, replicates),
        params={"runs": paired.runs},
        chance=chance,
        no_chance="" if chance else "no resampling was asked for",
        p_value=found.value if found else None,
        null=f"{chance.method}; {found.method}" if chance and found else "",
        by=parts_to_table(
            [
                _difference_part(paired, signed, drawn, level, (chance, found), by_group),
                _percent_part(paired, rates, replicates, level),
                _signed_part(paired, signed, drawn, level),
                *_run_parts(paired, level),
            ]
        ),
        excluded={"missing true class or prediction": paired.missing} if paired.missing else {},
        unit=paired.unit,
        ends=drawn or no_ends,
    )


def _against(swapped: Swaps | None, value: float) -> tuple[Chance | None, PValue | None]:
    if swapped is None:
        return None, None
    null = np.abs(swapped.differences)
    return (
        band(null, method=swapped.text, weights=swapped.weights),
        p_value(null, value, "higher", weights=swapped.weights),
    )


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


def _difference_part(
    paired: Paired,
    signed: float,
    drawn: Folded | None,
    level: float,
    against: tuple[Chance | None, PValue | None],
    by_group: tuple[GroupValue, ...],
) -> Part:
    low, high = (drawn or no_ends)(level)
    chance, found = against
    return Part(
        "accuracy_difference",
        "",
        abs(signed),
        low,
        high,
        chance=chance.mean if chance else np.nan,
        chance_low=chance.low if chance else np.nan,
        chance_high=chance.high if chance else np.nan,
        p_value=found.value if found else np.nan,
        n=paired.n,
        by_group=by_group,
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
