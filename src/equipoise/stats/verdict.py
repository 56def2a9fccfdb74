"""What may be concluded from a number, its interval, its chance level and its q-value.

The rules, the first that fits:

1. no value: `not estimable`; no chance level or no practical threshold: `no verdict`;
2. the harmful end of the interval lies below the threshold: `below threshold`, whatever q;
3. q <= alpha and the excess over chance reaches the threshold: `disparity`;
4. otherwise `inconclusive`.

The excess counts towards harm: value - chance where higher is worse, chance - value where
lower is, and its absolute value where either is. The harmful end is the high end of the
interval where higher is worse. Otherwise it is the end farthest from chance in the harmful
direction, and its distance from chance is compared with the threshold.
"""

from __future__ import annotations

import math

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.core.finding import Verdict


def judge(
    *,
    value: float,
    low: float,
    high: float,
    chance_mean: float,
    q: float,
    threshold: float,
    alpha: float,
    harm: Harm,
) -> tuple[Verdict, str]:
    """Return the verdict on a finding, and why in plain words.

    The rules stand at the head of this module.

    Parameters
    ----------
    value, low, high : float
        The number and its interval; NaN when there is none.
    chance_mean : float
        Mean of the chance level; NaN when there is none.
    q : float
        P-value corrected for the number of tests; NaN when there was no test.
    threshold : float
        The smallest excess that matters in practice, at least 0; NaN when none is set.
    alpha : float
        Rate of false discoveries that is accepted, in (0, 1).
    harm : "higher", "lower" or "either"
        Which side of the chance level is worse.

    Raises
    ------
    InputError
        When `threshold` is negative or `alpha` outside (0, 1).
    """
    _check(threshold, alpha)
    if math.isnan(value):
        return Verdict.NOT_ESTIMABLE, "the value cannot be estimated"
    if math.isnan(chance_mean):
        return Verdict.NONE, "the number has no chance level to be judged against"
    if math.isnan(threshold):
        return Verdict.NONE, "no practical threshold is set for this metric"
    reach = _reach(low, high, chance_mean, harm)
    excess = _excess(value, chance_mean, harm)
    if reach < threshold:
        return Verdict.BELOW_THRESHOLD, _below(reach, threshold, harm)
    if q <= alpha and excess >= threshold:
        return Verdict.DISPARITY, (
            f"{_compare('q', q, alpha)}, and the excess over chance "
            f"{_compare('', excess, threshold)}, the threshold"
        )
    return Verdict.INCONCLUSIVE, _doubt(q, alpha, excess, threshold, reach)


def _check(threshold: float, alpha: float) -> None:
    if threshold < 0:
        raise InputError(
            f"threshold={threshold}: expected at least 0, the smallest excess to act on"
        )
    if not 0.0 < alpha < 1.0:
        raise InputError(f"alpha={alpha}: expected a rate between 0 and 1")


def _excess(value: float, chance: float, harm: Harm) -> float:
    difference = value - chance
    if harm == "either":
        return abs(difference)
    return difference if harm == "higher" else -difference


def _reach(low: float, high: float, chance: float, harm: Harm) -> float:
    """Return how far towards harm the interval reaches; NaN without an interval."""
    if math.isnan(low) or math.isnan(high):
        return math.nan
    if harm == "higher":
        return high
    if harm == "lower":
        return chance - low
    return max(abs(low - chance), abs(high - chance))


def _below(reach: float, threshold: float, harm: Harm) -> str:
    what = {
        "higher": "the interval ends at",
        "lower": "the interval stays above chance minus",
        "either": "the interval stays within chance plus or minus",
    }[harm]
    return f"{what} {_compare('', reach, threshold)}, the threshold"


def _doubt(q: float, alpha: float, excess: float, threshold: float, reach: float) -> str:
    reasons = []
    if math.isnan(q):
        reasons.append("there was no test against chance")
    elif q > alpha:
        reasons.append(f"chance may explain it ({_compare('q', q, alpha)})")
    if excess < 0:
        reasons.append("the value is no worse than chance gives")
    elif excess < threshold:
        reasons.append(f"the excess over chance {_compare('', excess, threshold)}, the threshold")
    if math.isnan(reach):
        reasons.append("without an interval a disparity cannot be ruled out")
    else:
        reasons.append("the interval reaches the threshold, so a disparity cannot be ruled out")
    return "; ".join(reasons)


def _compare(name: str, left: float, right: float) -> str:
    """Write both numbers with as many digits as tell them apart."""
    sign = "<" if left < right else ">" if left > right else "="
    left, right = left + 0.0, right + 0.0  # 0 has no sign
    texts = [(f"{left:.{digits}g}", f"{right:.{digits}g}") for digits in (2, 3, 4, 6, 9, 17)]
    first, second = next(
        (pair for pair in texts if (pair[0] != pair[1]) != (sign == "=")), texts[0]
    )
    return f"{name} {first} {sign} {second}".strip()
