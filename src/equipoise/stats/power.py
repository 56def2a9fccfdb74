"""What a sample can show: minimum detectable effects, and the sample sizes wanted ones need.

Every function takes `alpha`, the rate of false positives of a family of tests, and `tests`, how
many tests share it equally (Bonferroni: slightly pessimistic beside Benjamini-Hochberg). All
pairs of k groups are k (k - 1) / 2 tests.
"""

import math
from collections.abc import Callable

from scipy import special

from equipoise.core import InputError

# Halvings of an interval of length 1: to the spacing of floats.
_STEPS = 53
_MOST_ROWS = 2**53


def power_of_difference(
    n1: float, n2: float, baseline: float, difference: float, alpha: float = 0.05, tests: int = 1
) -> float:
    """Probability that a two-sided test finds a difference of two proportions.

    Parameters
    ----------
    n1, n2 : float
        Rows of the two groups.
    baseline, difference : float
        Rate of the first group, and rate of the second minus it.
    alpha, tests : float, int
        See the module.

    Returns
    -------
    float
        In [0, 1], by the normal approximation with the pooled rate under the null.

    Raises
    ------
    InputError
        When a rate lies outside [0, 1], a size or `tests` is not positive, or `alpha` lies
        outside (0, 1).

    References
    ----------
    Fleiss, Levin & Paik 2003, Statistical Methods for Rates and Proportions, chapter 4.
    """
    _check_positive(n1=n1, n2=n2, tests=tests)
    second_rate = baseline + difference
    _check_rates(alpha=alpha, baseline=baseline, other=second_rate)
    pooled = (n1 * baseline + n2 * second_rate) / (n1 + n2)
    under_null = math.sqrt(max(pooled * (1.0 - pooled), 0.0) * (1.0 / n1 + 1.0 / n2))
    spread = baseline * (1.0 - baseline) / n1 + second_rate * (1.0 - second_rate) / n2
    actual = math.sqrt(max(spread, 0.0))
    critical = -float(special.ndtri(alpha / tests / 2.0)) * under_null
    if actual == 0.0:
        return float(abs(difference) > critical)
    above = special.ndtr((abs(difference) - critical) / actual)
    below = special.ndtr((-abs(difference) - critical) / actual)
    return float(above + below)


def minimum_difference(
    n1: float,
    n2: float,
    baseline: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> float:
    """Smallest difference of two proportions that is found with the wanted power.

    The second group is taken to do worse than the first or, where even a rate of 0 would not be
    found, better.

    Parameters
    ----------
    n1, n2 : float
        Rows of the two groups.
    baseline : float
        Rate of the first group.
    power : float
        Probability of finding the difference, in (0, 1).
    alpha, tests : float, int
        See the module.

    Returns
    -------
    float
        In (0, 1]; NaN when these sizes cannot find any difference.

    Raises
    ------
    InputError
        As in `power_of_difference`.
    """
    _check_rates(power=power, alpha=alpha)
    for sign, room in ((-1.0, baseline), (1.0, 1.0 - baseline)):

        def enough(difference: float, sign: float = sign) -> bool:
            reached_power = power_of_difference(n1, n2, baseline, sign * difference, alpha, tests)
            return reached_power >= power

        if enough(room):
            return _smallest(enough, room)
    return math.nan


def sample_size_for_difference(
    baseline: float,
    difference: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
    ratio: float = 1.0,
) -> int:
    """Rows the first group needs so that a difference of two proportions is found.

    Parameters
    ----------
    baseline, difference : float
        Rate of the first group, and rate of the second minus it.
    power : float
        Probability of finding the difference, in (0, 1).
    alpha, tests : float, int
        See the module.
    ratio : float
        Rows of the second group per row of the first.

    Raises
    ------
    InputError
        As in `power_of_difference`, and when `difference` is 0.
    """
    _check_positive(ratio=ratio)
    _check_rates(power=power, alpha=alpha)

    def enough(n: float) -> bool:
        return power_of_difference(n, ratio * n, baseline, difference, alpha, tests) >= power

    low, high = 0, 1
    while not enough(high):
        low, high = high, high * 2
        if high > _MOST_ROWS:
            raise InputError(f"difference={difference}: no number of rows finds it")
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def power_of_association(
    n: float, effect_size: float, df: int, divisor: float, alpha: float = 0.05, tests: int = 1
) -> float:
    """Probability that the chi-squared test finds an association of a given strength.

    Parameters
    ----------
    n : float
        The table's total.
    effect_size : float
        Cramér's V, phi or Tschuprow's T, in [0, 1].
    df : int
        Degrees of freedom, (r - 1)(c - 1).
    divisor : float
        min(r, c) - 1 for Cramér's V, 1 for phi, sqrt((r - 1)(c - 1)) for Tschuprow's T.
    alpha, tests : float, int
        See the module.

    Returns
    -------
    float
        In [0, 1], from the noncentral chi-squared distribution.

    Raises
    ------
    InputError
        When `effect_size` lies outside [0, 1], `alpha` outside (0, 1), or a size, `df`,
        `divisor` or `tests` is not positive.

    References
    ----------
    Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, chapter 7.
    """
    _check_positive(n=n, df=df, divisor=divisor, tests=tests)
    _check_rates(alpha=alpha, effect_size=effect_size)
    critical = special.chdtri(df, alpha / tests)
    return float(1.0 - special.chndtr(critical, df, n * divisor * effect_size**2))


def minimum_effect_size(
    n: float,
    df: int,
    divisor: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
) -> float:
    """Smallest effect size of a table that is found with the wanted power.

    Parameters
    ----------
    n, df, divisor, alpha, tests
        As in `power_of_association`.
    power : float
        Probability of finding the effect, in (0, 1).

    Returns
    -------
    float
        In (0, 1]; NaN when even a perfect association would not be found.

    Raises
    ------
    InputError
        As in `power_of_association`.
    """
    _check_rates(power=power, alpha=alpha)

    def enough(effect_size: float) -> bool:
        return power_of_association(n, effect_size, df, divisor, alpha, tests) >= power

    return _smallest(enough, 1.0) if enough(1.0) else math.nan


def _smallest(suffices: Callable[[float], bool], largest: float) -> float:
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


def _check_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise InputError(f"{name}={number}: expected a positive number")


def _check_rates(**rates: float) -> None:
    for name, rate in rates.items():
        inside = 0.0 < rate < 1.0 if name in ("alpha", "power") else -1e-12 <= rate <= 1.0 + 1e-12
        if not inside:
            label = "the rate of the second group" if name == "other" else name
            raise InputError(f"{label}={rate:g}: expected a rate between 0 and 1")
