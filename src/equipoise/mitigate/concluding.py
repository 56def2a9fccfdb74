"""Conclusions about recipes: the disparity that leads before and after, and the price."""

import math
from collections.abc import Mapping, Sequence

from equipoise.core import Aggregate, Verdict
from equipoise.core.conclusion import Conclusion, Standing
from equipoise.mitigate.measuring import ACCURACY, ALPHA, MARGIN, Outcome, Row

BEFORE = "before"
OUTCOMES = (
    "transfers", "price not measured", "transfers in part", "not enough data", "costs too much",
    "does not transfer",
)  # fmt: skip
"""What becomes of a recipe, the best first."""


def conclusions_of_recipes(
    rows: Sequence[Row], outcomes: Sequence[Outcome]
) -> tuple[Conclusion, ...]:
    """Conclude what each recipe changes, and what it costs.

    Parameters
    ----------
    rows : sequence of Row
        In the order of the findings.
    outcomes : sequence of Outcome

    Returns
    -------
    tuple of Conclusion
        Recipes that transfer first; of each the disparity that is the largest before among those
        clear of the floor, then the price: accuracy, or the recall that changes most.
    """
    ordered = sorted(outcomes, key=lambda outcome: OUTCOMES.index(outcome.conclusion))
    conclusions = list[Conclusion]()
    for recipe in (outcome.recipe for outcome in ordered):
        places = {place: row for place, row in enumerate(rows) if row.recipe == recipe}
        for role, key in (("bias", _place_of_bias), ("utility", _place_of_price)):
            members = {place: row for place, row in places.items() if row.role == role}
            if members:
                lead = min(members, key=lambda place: key(members[place]))
                conclusions.append(_conclude(lead, members))
    return tuple(conclusions)


def _place_of_bias(row: Row) -> tuple[bool, float]:
    floor = 0.0 if math.isnan(row.floor) else row.floor
    return bool(row.share_reason), -(row.before - floor)


def _place_of_price(row: Row) -> tuple[bool, float]:
    return row.measure != ACCURACY, row.difference


def _conclude(lead: int, members: Mapping[int, Row]) -> Conclusion:
    row = members[lead]
    verdict = verdict_of_price(row.low, row.high, differs=row.q_value < ALPHA)
    if row.role == "bias":
        verdict = _verdict_of_bias(row)
    change = Standing(model=row.recipe, value=row.after)
    before = Standing(model=BEFORE, value=row.before)
    fell = row.difference < 0
    standings = (change, before) if fell == (row.role == "bias") else (before, change)
    real = verdict in (Verdict.DISPARITY, Verdict.DETECTED)
    return Conclusion(
        model=row.recipe, verdict=verdict, groups=row.about, metric=row.measure,
        aggregate=Aggregate.VALUE, size=row.difference, low=row.low, high=row.high, n=row.n,
        finding=lead,
        restated_by=tuple(
            place for place, other in members.items()
            if place != lead and (other.difference < 0) == fell and other.q_value < ALPHA
        ),
        standings=standings, worse=standings[-1].model if real else "",
    )  # fmt: skip


def _verdict_of_bias(row: Row) -> Verdict:
    """Return whether a disparity changed, and by half of its way to the floor."""
    if row.reaches:
        return Verdict.DISPARITY
    if row.q_value < ALPHA:
        return Verdict.DETECTED
    return Verdict.INCONCLUSIVE if row.open or row.share_reason else Verdict.BELOW_THRESHOLD


def verdict_of_price(low: float, high: float, *, differs: bool) -> Verdict:
    """Return whether accuracy or a recall changed, and by more than the margin.

    Parameters
    ----------
    low, high : float
        Interval of the change; NaN where there is none.
    differs : bool
        Whether chance doesn't explain it.
    """
    if math.isnan(low):
        return Verdict.INCONCLUSIVE
    if low > -MARGIN and high < MARGIN:
        return Verdict.BELOW_THRESHOLD
    if not differs:
        return Verdict.INCONCLUSIVE
    return Verdict.DISPARITY if high < -MARGIN or low > MARGIN else Verdict.DETECTED
