"""Equalized odds: whether a label is given to all groups equally often, given the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import against_chance, part
from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    TRUE_POSITIVE_RATE,
    Confusion,
    comparable,
)
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.gaps import (
    Family,
    Known,
    compared,
    compared_rows,
    family_groups,
    gap_estimate,
    gap_method,
    gaps,
    largest,
    needed,
    replicates_shares,
    spread_level,
    too_few,
    without_rows,
)
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm, percentile, simultaneous_gap
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]
Aggregate = Literal["max", "mean"]

_CONDITIONS = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)


def equalized_odds(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    aggregate: Aggregate = "max",
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted, given the truth.

    For class c against the rest and k in {truth = c, truth ≠ c}, D_k = max over groups a of
    P(prediction = c | a, k) minus the min over groups; EO(c) aggregates both, and the value is
    the largest EO(c).

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    aggregate : "max" or "mean"
        How the two D_k make EO(c). `mean` reproduces the tables of the SkewSize paper.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: the same number when groups are exchangeable within
        each true class. Interval: pairwise Newcombe intervals, simultaneous over classes,
        conditions and groups, or bootstrap over units. `.by` has EO(c) of each class, with the
        groups' rates in the condition of the larger D_k, which `reason` names. A group without
        rows of a condition, or with fewer than the minimum size, is left out of it and counted; a
        class with fewer than two groups in a condition is not estimable.

    Raises
    ------
    InputError
        When `aggregate` is unknown, shapes do not fit or no row is complete.

    References
    ----------
    Hardt, Price & Srebro 2016. The max − min printed in Albuquerque et al. 2024, eq. 6, runs
    over groups and conditions jointly, which is near 1 for every good classifier.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return measure(counts, [EqualizedOdds(aggregate)], resampling, rng)[0]


@dataclass(frozen=True)
class EqualizedOdds:
    """The measure behind `equalized_odds`.

    Attributes
    ----------
    aggregate : "max" or "mean"
        How the gaps of the two conditions are combined.
    """

    aggregate: Aggregate = "max"
    null: Literal["class"] = "class"

    def __post_init__(self) -> None:
        if self.aggregate not in ("max", "mean"):
            raise InputError(f"aggregate={self.aggregate!r}: expected 'max' or 'mean'")

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest EO, then EO, D of both conditions, and shares where replicated."""
        cells = Confusion.of(counts, tables)
        shares = [cells.shares(rate) for rate in _CONDITIONS]
        taking = [
            comparable(counts, rate, one) for rate, one in zip(_CONDITIONS, shares, strict=True)
        ]
        conditions = gaps(np.stack(taking, axis=1), counts.groups.usable)
        odds = conditions.max(axis=1) if self.aggregate == "max" else conditions.mean(axis=1)
        numbers = [largest(odds)[:, None], odds, conditions.reshape(len(tables), -1)]
        if replicates_shares(counts, 2):
            numbers.append(np.stack(shares, axis=1).reshape(len(tables), -1))
        return np.concatenate(numbers, axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        conditions = _conditions(counts)
        of_both = [compared(counts, one) for one in conditions]
        successes, totals = np.stack(of_both, axis=1)
        low, high = self._ends(counts, draws, successes, totals)
        ends = [Known(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
        parts = [_part(counts, draws, conditions, *one) for one in enumerate(ends)]
        return gap_estimate(
            "equalized_odds",
            counts,
            draws,
            ends=ClosedForm(_largest_odds_ends, (successes, totals, self.aggregate)),
            method=gap_method(counts, draws, "classes, true-class conditions", rates=2),
            base=" and ".join(needed(counts.groups, rate.base) for rate in _CONDITIONS),
            params={"aggregate": self.aggregate, "null": self.null},
            by=parts_to_table(parts),
        )

    def _ends(
        self, counts: Counts, draws: Draws, successes: Floats, totals: Floats
    ) -> tuple[Floats, Floats]:
        classes = len(counts.classes)
        if draws.boot is not None:
            return percentile(draws.boot[:, 1 : 1 + classes], draws.level)[:2]
        if not counts.independent:
            return np.full(classes, np.nan), np.full(classes, np.nan)
        return _odds_ends(successes, totals, self.aggregate, draws.level)


def _odds_ends(
    successes: Floats, totals: Floats, aggregate: Aggregate, level: float, classes: int = 1
) -> tuple[Floats, Floats]:
    """Return ends of EO per class from (conditions, classes, groups).

    Low ends hold for both conditions and `classes` classes together. A high end of a maximum
    needs no correction (see `simultaneous_largest_gap`); that of a mean holds for both.
    """
    combine = np.max if aggregate == "max" else np.mean
    low, _ = simultaneous_gap(successes, totals, spread_level(level, 2 * classes))
    high_level = level if aggregate == "max" else spread_level(level, 2)
    _, high = simultaneous_gap(successes, totals, high_level)
    return np.asarray(combine(low, axis=0)), np.asarray(combine(high, axis=0))


def _largest_odds_ends(
    successes: Floats, totals: Floats, aggregate: Aggregate, level: float = 0.95
) -> tuple[Floats, Floats]:
    estimable = ((totals > 0).sum(axis=-1) >= 2).all(axis=0).sum()
    low, high = _odds_ends(successes, totals, aggregate, level, int(estimable))
    return largest(low), largest(high)


def _part(
    counts: Counts, draws: Draws, conditions: tuple[Family, Family], index: int, ends: Known
) -> Part:
    """Return EO of class `index` with the groups' rates in the condition of the larger gap."""
    both = np.array([draws.observed[family.gaps + index] for family in conditions])
    deciding = conditions[int(np.argmax(np.where(np.isnan(both), np.inf, both)))]
    missing = [
        too_few(gap, needed(counts.groups, one.base))
        for gap, one in zip(both, conditions, strict=True)
    ]
    found = part(
        "equalized_odds",
        counts.classes[index],
        draws,
        1 + index,
        ends=ends,
        held=against_chance(draws, 1 + index, "higher"),
        n=sum(int(compared_rows(counts.groups, one.totals[index])) for one in conditions),
        by_group=family_groups(counts, draws, deciding, index),
        excluded=tuple(
            one
            for family in conditions
            for one in without_rows(counts.groups, family.totals[[index]], family.base)[0]
        ),
        reason="; ".join(filter(None, missing)),
    )
    return replace(found, shows=deciding.metric)


def _conditions(counts: Counts) -> tuple[Family, Family]:
    cells = Confusion.of(counts, counts.observed)
    classes, size = len(counts.classes), len(counts.classes) * len(counts.groups)
    kept = replicates_shares(counts, 2)
    hit, alarm = (
        Family(
            rate.name,
            rate.base,
            *_first(rate.counts(cells)),
            1 + (1 + place) * classes,
            1 + 3 * classes + place * size if kept else None,
        )
        for place, rate in enumerate(_CONDITIONS)
    )
    return hit, alarm


def _first(tables: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return tables[0][0], tables[1][0]


register(
    MetricSpec(
        name="equalized_odds",
        title="Equalized odds difference",
        symbol="EO",
        kinds=("predictions",),
        definition=(
            "Difference between groups in the share of rows predicted as a class, among rows of "
            "the class and among all others; the larger of both. Summary: the largest over classes."
        ),
        unit="points",
        threshold=0.05,
        threshold_reason=POINTS,
        direction=(
            "Higher: at the same truth, one group receives the label more often than another."
        ),
        chance="above 0",
        interval=PAIRWISE,
        null="groups are exchangeable within each true class",
        parameters={"aggregate": "max, or mean over both conditions"},
        reference=(
            "Hardt, Price & Srebro 2016; Albuquerque et al. 2024, eq. 6, one condition at a time"
        ),
        errata=(
            "Eq. 6 as printed takes max minus min over groups and conditions together, which is "
            "near 1 for every good classifier. Its Table 1 is reproduced by the mean over "
            "conditions."
        ),
    )
)
