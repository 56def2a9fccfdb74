"""Demographic parity and equalized odds: whether a label is given to all groups equally often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.building import (
    GroupColumns,
    count_estimate,
    drawn_ends,
    parts_table,
    spread_level,
)
from equipoise.metrics.counts.confusion import (
    FALSE_POSITIVE_RATE,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    Family,
    Pair,
    families,
    gap_method,
    gaps_and_shares,
    largest,
    needed,
    simultaneous_largest_gap,
    too_few,
)
from equipoise.metrics.counts.table import Counts, count
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm, percentile, simultaneous_gap
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]
Aggregate = Literal["max", "mean"]

_CONDITIONS = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)


def demographic_parity(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    per_class: bool = True,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted.

    For class c, DP(c) = max over groups a of P(prediction = c | a) minus the min over groups;
    the value is the largest DP(c).

    Parameters
    ----------
    y_true : array-like, shape (n,), or None
        True classes: their own parity, and how far that of the predictions exceeds it, stand
        among the parameters. They don't change the value.
    y_pred : array-like, shape (n,)
        Predicted labels. None, NaN and "" are missing.
    groups, units
        See `equipoise.metrics.counts.count`.
    per_class : bool
        Whether `.by` has the parts; False saves their cost.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: the same maximum when groups are exchangeable over
        all rows; it is above 0. Interval: pairwise Newcombe intervals, simultaneous over classes
        and groups, or bootstrap over units. `.by` has DP(c) of each class, with the selection
        rate of every group. NaN when fewer than two groups have rows enough.

    Raises
    ------
    InputError
        When `y_pred` is not one label per row, shapes do not fit, or no row is complete.

    References
    ----------
    Calders, Kamiran & Pechenizkiy 2009; Albuquerque et al. 2024, "SkewSize", eq. 5.
    """
    shape = np.shape(y_pred)
    if len(shape) != 1:
        raise InputError(f"y_pred: shape {shape}; expected one label per row, shape (n,)")
    counts = count(y_pred, y_pred, groups, units=units)
    excluded = dict(counts.excluded)
    if "missing true class" in excluded:
        excluded = {"missing prediction": excluded.pop("missing true class")} | excluded
    measured = DemographicParity(per_class)
    found = measure(replace(counts, excluded=excluded), [measured], resampling, rng)[0]
    if y_true is None:
        return found
    labels = demographic_parity(None, y_true, groups, per_class=False, resampling=None).value
    beside = {"labels": labels, "beyond_labels": found.value - labels}
    return replace(found, params={**found.params, **beside})


@dataclass(frozen=True)
class DemographicParity:
    """The measure behind `demographic_parity`.

    Attributes
    ----------
    per_class : bool
        Whether the estimate has parts.
    """

    per_class: bool = True
    null: Literal["rows"] = "rows"

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest gap, the gap of each class, and shares where they are replicated."""
        found, shares = gaps_and_shares(counts, tables, [SELECTION_RATE])
        return np.concatenate([largest(found[:, 0])[:, None], found[:, 0], *shares], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        (family,) = families(counts, draws, [SELECTION_RATE], 1)
        closed = ClosedForm(simultaneous_largest_gap, family.compared)
        return count_estimate(
            "demographic_parity",
            counts,
            draws,
            method=gap_method(counts, draws, "classes", rates=1),
            ends=drawn_ends(counts, draws, 0, closed),
            params={"null": self.null},
            by=family.table("demographic_parity") if self.per_class else None,
            reason=too_few(draws.observed[0], needed(counts.groups, SELECTION_RATE.base)),
        )


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
        conditions, shares = gaps_and_shares(counts, tables, _CONDITIONS)
        odds = conditions.max(axis=1) if self.aggregate == "max" else conditions.mean(axis=1)
        flat = conditions.reshape(len(tables), -1)
        return np.concatenate([largest(odds)[:, None], odds, flat, *shares], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        both = families(counts, draws, _CONDITIONS, 1 + len(counts.classes))
        successes, totals = np.stack([one.compared for one in both], axis=1)
        closed = ClosedForm(_largest_odds_ends, (successes, totals, self.aggregate))
        base = " and ".join(needed(counts.groups, rate.base) for rate in _CONDITIONS)
        return count_estimate(
            "equalized_odds",
            counts,
            draws,
            method=gap_method(counts, draws, "classes, true-class conditions", rates=2),
            ends=drawn_ends(counts, draws, 0, closed),
            params={"aggregate": self.aggregate, "null": self.null},
            by=self._table(counts, draws, both, (successes, totals)),
            reason=too_few(draws.observed[0], base),
        )

    def _table(self, counts: Counts, draws: Draws, both: list[Family], compared: Pair) -> pa.Table:
        """Return EO of each class with the groups' rates in the condition of the larger gap."""
        classes = len(counts.classes)
        low = high = np.full(classes, np.nan)
        if draws.boot is not None:
            low, high, _ = percentile(draws.boot[:, 1 : 1 + classes], draws.level)
        elif draws.intervals and counts.independent:
            low, high = _odds_ends(*compared, self.aggregate, draws.level)
        conditions = np.stack([one.value for one in both])
        deciding = np.argmax(np.where(np.isnan(conditions), np.inf, conditions), axis=0)
        of_both = [one.by_group() for one in both]
        chosen = (
            np.where(deciding[:, None] == 0, *(getattr(one, name) for one in of_both))
            for name in ("n", "value", "low", "high", "note")
        )
        return parts_table(
            "equalized_odds",
            counts.classes,
            draws,
            1,
            (low, high),
            by_group=GroupColumns(counts.groups, *chosen),
            n=both[0].n + both[1].n,
            excluded=[one + other for one, other in zip(*(f.excluded for f in both), strict=True)],
            reason=[
                "; ".join(filter(None, pair))
                for pair in zip(*(one.reason for one in both), strict=True)
            ],
            shows=[_CONDITIONS[place].name for place in deciding.tolist()],
        )


def _odds_ends(
    successes: Floats, totals: Floats, aggregate: Aggregate, level: float, classes: int = 1
) -> Pair:
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
) -> Pair:
    estimable = ((totals > 0).sum(axis=-1) >= 2).all(axis=0).sum()
    low, high = _odds_ends(successes, totals, aggregate, level, int(estimable))
    return largest(low), largest(high)


register(
    MetricSpec(
        name="demographic_parity",
        of_class=True,
        title="Demographic parity difference",
        symbol="DP",
        kinds=("predictions",),
        definition=(
            "Largest minus smallest share of rows predicted as a class, over groups. Summary: the "
            "largest over classes."
        ),
        unit="points",
        group_label="share of predictions",
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: one group receives the label more often than another.",
        chance="above 0",
        interval=PAIRWISE,
        null="groups are exchangeable over all rows",
        reference="Calders et al. 2009; Albuquerque et al. 2024, eq. 5",
        errata=(
            "Table 1 of Albuquerque et al. exchanges its first two class columns in the rows of "
            "classes 0 and 1: the removed class's difference must be the sum of the others'."
        ),
    )
)
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

_unanswered = partial(
    MetricSpec,
    kinds=("answers",),
    unit="points",
    rate=True,
    threshold=0.05,
    threshold_reason=POINTS,
    direction="Higher: the group gets no answer more often.",
    chance="above 0 for the gap between groups",
    interval=PAIRWISE,
    null="groups are exchangeable over all rows",
    reference="equipoise: rows without an answer are in no other metric",
)
register(
    _unanswered(
        name="unanswered_rate",
        title="Unanswered rate",
        kinds=("predictions", "answers"),
        group_label="share without an answer",
        definition="Share of rows without a usable prediction: missing, unknown or refused.",
    )
)
register(
    _unanswered(
        name="unknown_rate",
        title="Unknown rate",
        group_label="unknown rate",
        definition="Share of rows on which the model says that it does not know.",
    )
)
register(
    _unanswered(
        name="refused_rate",
        title="Refused rate",
        group_label="refused rate",
        definition="Share of rows on which the model refuses to answer.",
    )
)
register(
    _unanswered(
        name="empty_rate",
        title="Empty rate",
        group_label="empty rate",
        definition="Share of rows with an empty answer, or with none because the model failed.",
    )
)
register(
    MetricSpec(
        name="answer_gap",
        of_class=True,
        title="Answer gap",
        kinds=("answers",),
        unit="points",
        groups_harm="higher",
        group_label="share of answers",
        definition=(
            "Largest minus smallest share of the answered rows of a group that get an answer, "
            "after normalisation. Summary: the largest over answers."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: one group gets the answer more often than another.",
        chance="above 0, more so for many answers",
        interval=PAIRWISE,
        null="groups are exchangeable over all answered rows",
        parameters={
            "least": "rarer answers are pooled: 10",
            "most": "answers compared by themselves: 50",
        },
        reference="Calders et al. 2009, of answers in place of classes",
    )
)
