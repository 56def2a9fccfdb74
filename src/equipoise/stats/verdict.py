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
    if threshold < 0 or not 0.0 < alpha < 1.0:
        raise InputError(
            f"threshold={threshold}, alpha={alpha}: expected a threshold of at least 0 and a rate "
            "between 0 and 1"
        )
    if math.isnan(value):
        return Verdict.NOT_ESTIMABLE, "the value cannot be estimated"
    if math.isnan(chance_mean):
        return Verdict.NONE, "the number has no chance level to be judged against"
    if math.isnan(threshold):
        return Verdict.NONE, "no practical threshold is set for this metric"
    excess = value - chance_mean
    if harm == "lower":
        excess, reach = -excess, chance_mean - low
    elif harm == "higher":
        reach = high
    else:
        excess, reach = abs(excess), max(abs(low - chance_mean), abs(high - chance_mean))
    if math.isnan(low) or math.isnan(high):
        reach = math.nan
    if reach < threshold:
        about = "" if harm == "higher" else " the distance from chance of"
        return Verdict.BELOW_THRESHOLD, f"the interval stays below{about} the threshold"
    if q <= alpha and excess >= threshold:
        return Verdict.DISPARITY, (
            f"q is at most {alpha:g}, and the excess over chance reaches the threshold"
        )
    doubts = {
        "there was no test against chance": math.isnan(q),
        f"chance may explain it (q above {alpha:g})": q > alpha,
        "the value is no worse than chance gives": excess < 0,
        "the excess over chance is below the threshold": 0 <= excess < threshold,
        "without an interval a disparity cannot be ruled out": math.isnan(reach),
        "the interval reaches the threshold, so a disparity cannot be ruled out": reach
        >= threshold,
    }
    return Verdict.INCONCLUSIVE, "; ".join(why for why, holds in doubts.items() if holds)
