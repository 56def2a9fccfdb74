"""What may be concluded from a number, its interval, its chance level and its q-value.

θ₀ is the population value without disparity, t the practical threshold, e the excess over the mean
of the chance level in the direction of harm, and h the distance from θ₀ to the harmful end of the
interval (to the farther end where either direction is harm). The first rule that fits decides:

1. no value: `not estimable`; no chance level or no practical threshold: `no verdict`;
2. a group that is compared has too few units: `inconclusive`;
3. h < t: `below threshold`, whatever q;
4. q <= alpha, e >= t, and the interval doesn't hold θ₀: `disparity`;
5. q <= alpha: `detected`: real, but perhaps too small to matter;
6. otherwise `inconclusive`.

The interval estimates the population value, so h is counted from θ₀ and not from chance. Where θ₀
is the least or the greatest value of a statistic, such as 0 of a largest difference, its interval
can't leave it, and rule 4 goes by q and e.

Errors that are rare have small differences whoever makes them, so their ratio r can raise a
verdict, and never lowers it: with q <= alpha, r >= 1.25 gives at least `detected`, and an interval
of r that begins at 1.25 or above gives `disparity`.
"""

import math

from equipoise.core import REAL, Harm, InputError, Ratio, Verdict

LEAST_RATIO = 1.25
"""The smallest ratio of rare errors that matters."""
RARE, RARE_OF_ALL = 0.02, 0.05
"""Errors are rare where fewer rows than these shares have one: of the group with the fewest, and of
all compared rows. With more of all, points show what matters."""


def harmful_excess(value: float, chance: float, harm: Harm) -> float:
    """Return the distance from the chance level in the direction of harm; negative: harmless."""
    excess = value - chance
    if harm == "either":
        return abs(excess)
    return -excess if harm == "lower" else excess


def harmful_reach(low: float, high: float, harm: Harm, neutral: float = 0.0) -> float:
    """Return how far an interval reaches from `neutral` in the direction of harm.

    To the farther end where either direction is harm; NaN without an interval.
    """
    if math.isnan(low) or math.isnan(high):
        return math.nan
    if harm == "either":
        return max(abs(low - neutral), abs(high - neutral))
    return neutral - low if harm == "lower" else high - neutral


def holds(low: float, high: float, neutral: float, limits: tuple[float, float]) -> bool:
    """Whether an interval holds the value without disparity, of a statistic to both sides of it.

    Parameters
    ----------
    low, high : float
        NaN without an interval.
    neutral : float
        The value without disparity.
    limits : (float, float)
        The range of the statistic.
    """
    return low <= neutral <= high and limits[0] < neutral < limits[1]


def judge(
    *,
    value: float,
    excess: float,
    reach: float,
    q: float,
    threshold: float,
    alpha: float,
    holds_null: bool = False,
    too_few: str = "",
) -> tuple[Verdict, str]:
    """Return the verdict on a finding, and why in plain words.

    The rules stand at the head of this module.

    Parameters
    ----------
    value : float
        NaN when it cannot be estimated.
    excess : float
        How far the number exceeds chance in the direction of harm, see `harmful_excess`; NaN
        when there is no chance level.
    reach : float
        Distance from the population value without disparity to the harmful end of the interval,
        see `harmful_reach`; NaN when there is no interval.
    q : float
        P-value corrected for the number of tests; NaN when there was no test.
    threshold : float
        The smallest excess that matters in practice, at least 0; NaN when none is set.
    alpha : float
        Rate of false discoveries that is accepted, in (0, 1).
    holds_null : bool
        Whether the interval holds the population value without disparity, see `holds`.
    too_few : str
        What groups have too few of for a verdict; "" where they have enough.

    Raises
    ------
    InputError
        When `threshold` is negative or `alpha` outside (0, 1).
    """
    if threshold < 0 or not 0.0 < alpha < 1.0:
        raise InputError(
            f"threshold={threshold}, alpha={alpha}: expected a threshold of at least 0 and a rate "
            "between 0 and 1"
        )
    if math.isnan(value):
        return Verdict.NOT_ESTIMABLE, "the value cannot be estimated"
    if math.isnan(excess):
        return Verdict.NONE, "the number has no chance level to be judged against"
    if math.isnan(threshold):
        return Verdict.NONE, "no practical threshold is set for this metric"
    if too_few:
        return Verdict.INCONCLUSIVE, too_few
    if reach < threshold:
        return Verdict.BELOW_THRESHOLD, "the whole interval is below the threshold"
    if q <= alpha:
        return _judge_real(excess=excess, threshold=threshold, alpha=alpha, holds_null=holds_null)
    explanation = f"chance may explain it (q above {alpha:g})"
    if math.isnan(q):
        explanation = "there was no test against chance"
    end = "the interval reaches the threshold"
    if math.isnan(reach):
        end = "there is no interval to rule a disparity out"
    return Verdict.INCONCLUSIVE, f"{explanation}, and {end}"


def _judge_real(
    *, excess: float, threshold: float, alpha: float, holds_null: bool
) -> tuple[Verdict, str]:
    """Return the verdict on a difference that chance doesn't explain, and why."""
    if excess < threshold:
        return Verdict.DETECTED, (
            f"q is at most {alpha:g}, but the excess over chance is below the threshold: the "
            "difference is real and may be too small to matter"
        )
    if holds_null:
        return Verdict.DETECTED, (
            f"q is at most {alpha:g}, but the interval reaches the value without disparity"
        )
    return Verdict.DISPARITY, (
        f"q is at most {alpha:g}, and the excess over chance reaches the threshold"
    )


def raise_by_ratio(verdict: Verdict, ratio: Ratio, q: float, alpha: float) -> Verdict:
    """Return the verdict on a difference in rare errors, raised where their ratio asks for it.

    The rule stands at the head of this module.

    Parameters
    ----------
    verdict : Verdict
        On the difference in points, see `judge`.
    ratio : Ratio
        Of errors.
    q, alpha : float
        As in `judge`.
    """
    judged = verdict in (*REAL, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
    if not judged or not q <= alpha or not ratio.value >= LEAST_RATIO:
        return verdict
    if ratio.low >= LEAST_RATIO:
        return Verdict.DISPARITY
    return verdict if verdict in REAL else Verdict.DETECTED
