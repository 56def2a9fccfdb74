"""Demographic parity: whether a label is given to all groups equally often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.confusion import SELECTION_RATE, Confusion, comparable
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.gaps import (
    Family,
    compared,
    family_table,
    gap_estimate,
    gap_method,
    gaps,
    largest,
    needed,
    replicates_shares,
    simultaneous_largest_gap,
)
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]


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
    excluded = {_FOR_PREDICTIONS.get(why, why): many for why, many in counts.excluded.items()}
    found = measure(counts, [DemographicParity(per_class)], resampling, rng)[0]
    found = _excluding(found, excluded, counts)
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
        selected = Confusion.of(counts, tables).shares(SELECTION_RATE)
        by_class = gaps(comparable(counts, SELECTION_RATE, selected), counts.groups.usable)
        numbers = [largest(by_class)[:, None], by_class]
        if replicates_shares(counts, 1):
            numbers.append(selected.reshape(len(tables), -1))
        return np.concatenate(numbers, axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        family = _family(counts, "demographic_parity")
        return gap_estimate(
            "demographic_parity",
            counts,
            draws,
            ends=ClosedForm(simultaneous_largest_gap, compared(counts, family)),
            method=gap_method(counts, draws, "classes", rates=1),
            base=needed(counts.groups, SELECTION_RATE.base),
            params={"null": self.null},
            by=family_table(counts, draws, family) if self.per_class else None,
        )


_FOR_PREDICTIONS = {"missing true class": "missing prediction"}


def _excluding(found: Estimate, excluded: dict[str, int], counts: Counts) -> Estimate:
    kept = {why: n for why, n in found.excluded.items() if why not in counts.excluded}
    return replace(found, excluded=excluded | kept)


def _family(counts: Counts, metric: str) -> Family:
    successes, totals = SELECTION_RATE.counts(Confusion.of(counts, counts.observed))
    start = 1 + len(counts.classes) if replicates_shares(counts, 1) else None
    return Family(metric, SELECTION_RATE.base, successes[0], totals[0], 1, start)


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
