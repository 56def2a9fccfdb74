"""Size of the group that leads because it was picked as the most extreme."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import Floats, InputError, floats, record
from equipoise.stats.intervals import Pair, check_level, wilson

Side = Literal["lowest", "highest"]
Reference = Literal["others", "opposite"]

_HALVINGS = 60


@record
class LeadingSize:
    """Size of the leading group, or of its gap to a reference, in the unit of the estimates.

    `index` is the place of the group, `value` the raw size, `low` and `high` the ends of the
    simultaneous interval, and `corrected` the size corrected for selection, inside the interval.
    """

    index: int
    value: float
    low: float
    high: float
    corrected: float


def simultaneous_shares(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Pair:
    """Return Wilson intervals of shares that hold for all groups together (Bonferroni).

    Parameters
    ----------
    successes, n : array-like, shape (..., groups)
        Counts; a group with n = 0 is ignored.
    level : float
        Confidence level in (0, 1) of all intervals together.

    Returns
    -------
    low, high : ndarray, shape (..., groups)
        In [0, 1]; NaN where `n` is 0.

    Raises
    ------
    InputError
        When `level` is outside (0, 1), a count lies outside [0, n], or rows differ in their
        number of groups with n > 0.

    References
    ----------
    Wilson 1927, JASA 22, 209-212.
    """
    check_level(level)
    sizes = np.unique((floats(n) > 0).sum(axis=-1))
    if len(sizes) > 1:
        raise InputError("n: expected the same number of groups with n > 0 in all rows")
    return wilson(successes, n, _single_level(level, int(sizes[0]) if len(sizes) else 1))


def simultaneous_normal(estimates: ArrayLike, errors: ArrayLike, level: float = 0.95) -> Pair:
    """Return normal intervals that hold for all groups together (Bonferroni).

    Parameters
    ----------
    estimates, errors : array-like, shape (groups,)
        Estimates and their standard errors, in one unit; a NaN estimate is ignored.
    level : float
        Confidence level in (0, 1) of all intervals together.

    Returns
    -------
    low, high : ndarray, shape (groups,)
        Unlimited range; NaN where the estimate is NaN.

    Raises
    ------
    InputError
        When `level` is outside (0, 1), shapes differ or an error isn't positive and finite.
    """
    check_level(level)
    centres, spreads = _estimates(estimates, errors)
    half = _critical(level, int(np.isfinite(centres).sum())) * spreads
    return centres - half, centres + half


def share_errors(successes: ArrayLike, n: ArrayLike) -> Floats:
    """Return standard errors of shares with two successes and two failures added.

    Parameters
    ----------
    successes, n : array-like
        Counts, broadcast together.

    Returns
    -------
    errors : ndarray
        Positive, also for 0 of n and n of n; NaN where `n` is 0.

    Raises
    ------
    InputError
        When a count lies outside [0, n].

    References
    ----------
    Agresti & Coull 1998, The American Statistician 52, 119-126.
    """
    s, trials = np.broadcast_arrays(floats(successes), floats(n))
    if ((s < 0) | (s > trials)).any():
        raise InputError("successes: expected counts between 0 and n")
    share = (s + 2.0) / (trials + 4.0)
    return np.where(trials > 0, np.sqrt(share * (1.0 - share) / (trials + 4.0)), np.nan)


def leading_size(
    estimates: ArrayLike,
    errors: ArrayLike,
    *,
    side: Side = "lowest",
    level: float = 0.95,
    ends: Pair | None = None,
) -> LeadingSize:
    """Return the size of the lowest or highest group, corrected for its selection.

    From three groups on the corrected size is the median-unbiased estimate of a normal mean
    that is observed beyond the runner-up, limited to the simultaneous interval. It isn't
    shrunk to a mean. Fewer groups keep their raw size.

    Parameters
    ----------
    estimates, errors : array-like, shape (groups,)
        Independent estimates and their standard errors, in one unit; NaN estimates are ignored.
    side : "lowest" or "highest"
        The end of the order that is picked.
    level : float
        Confidence level in (0, 1) of the intervals of all groups together.
    ends : pair of array-like, shape (groups,), optional
        Simultaneous ends, such as those of `simultaneous_shares`. By default
        `simultaneous_normal`.

    Returns
    -------
    LeadingSize
        In the unit of the estimates.

    Raises
    ------
    InputError
        When `level` is outside (0, 1), `side` is unknown, shapes differ, an error isn't
        positive and finite, or no estimate is finite.

    References
    ----------
    Andrews, Kitagawa & McCloskey 2024, Inference on Winners, Quarterly Journal of Economics
    139, 305-358.
    """
    if side not in ("lowest", "highest"):
        raise InputError(f"side={side!r}: expected 'lowest' or 'highest'")
    centres, spreads = _estimates(estimates, errors)
    lows, highs = simultaneous_normal(centres, spreads, level) if ends is None else ends
    sign = 1.0 if side == "highest" else -1.0
    order = np.argsort(np.where(np.isfinite(centres), -sign * centres, np.inf), kind="stable")
    index = int(order[0])
    value, low, high = float(centres[index]), float(lows[index]), float(highs[index])
    corrected = value
    if np.isfinite(centres).sum() >= 3:
        runner_up = sign * float(centres[order[1]])
        bound = sign * (low if side == "highest" else high)
        corrected = sign * _median_unbiased(sign * value, runner_up, float(spreads[index]), bound)
    return LeadingSize(index, value, low, high, corrected)


def leading_gap(
    estimates: ArrayLike,
    errors: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reference: Reference = "others",
    side: Side = "lowest",
    level: float = 0.95,
    ends: Pair | None = None,
) -> LeadingSize:
    """Return how far the leading group is from a reference, corrected for its selection.

    Parameters
    ----------
    estimates, errors, side, level, ends
        As in `leading_size`.
    weights : array-like, shape (groups,), optional
        Rows of the groups, which weigh the others. By default all groups weigh the same.
    reference : "others" or "opposite"
        All other groups pooled, or the group at the other end of the order, which is corrected
        for its selection as well.

    Returns
    -------
    LeadingSize
        Group minus reference: at most 0 for the lowest group, at least 0 for the highest. The
        ends combine those of both terms (Zou & Donner 2008).

    Raises
    ------
    InputError
        As `leading_size`; also with fewer than two groups, an unknown reference, or others
        without weight.
    """
    if reference not in ("others", "opposite"):
        raise InputError(f"reference={reference!r}: expected 'others' or 'opposite'")
    centres, spreads = _estimates(estimates, errors)
    usable = np.isfinite(centres)
    if usable.sum() < 2:
        raise InputError("estimates: expected at least two groups with a finite estimate")
    lead = leading_size(centres, spreads, side=side, level=level, ends=ends)
    if reference == "opposite":
        opposite: Side = "highest" if side == "lowest" else "lowest"
        base = leading_size(centres, spreads, side=opposite, level=level, ends=ends)
    else:
        shares = np.where(usable, 1.0 if weights is None else floats(weights), 0.0)
        shares[lead.index] = 0.0
        if not shares.sum() > 0.0:
            raise InputError("weights: expected a positive weight of another group")
        shares = shares / shares.sum()
        mean = float((shares[usable] * centres[usable]).sum())
        error = math.sqrt(float(((shares[usable] * spreads[usable]) ** 2).sum()))
        half = _critical(level, int(usable.sum())) * error
        base = LeadingSize(-1, mean, mean - half, mean + half, mean)
    value = lead.value - base.value
    low = value - math.hypot(lead.value - lead.low, base.high - base.value)
    high = value + math.hypot(lead.high - lead.value, base.value - base.low)
    corrected = min(max(lead.corrected - base.corrected, low), high)
    return LeadingSize(lead.index, value, low, high, corrected)


def _estimates(estimates: ArrayLike, errors: ArrayLike) -> Pair:
    centres, spreads = floats(estimates), floats(errors)
    if centres.ndim != 1 or centres.shape != spreads.shape:
        raise InputError("errors: expected one standard error for each estimate")
    usable = np.isfinite(centres)
    if not usable.any():
        raise InputError("estimates: expected at least one finite estimate")
    if not (np.isfinite(spreads[usable]) & (spreads[usable] > 0.0)).all():
        raise InputError("errors: expected positive, finite standard errors")
    return centres, spreads


def _single_level(level: float, groups: int) -> float:
    """Return the level of one interval of several that hold together."""
    return 1.0 - (1.0 - level) / max(groups, 1)


def _critical(level: float, groups: int) -> float:
    return float(-special.ndtri((1.0 - level) / (2.0 * max(groups, 1))))


def _median_unbiased(value: float, runner_up: float, error: float, low: float) -> float:
    """Return the mean at which a value beyond the runner-up is a median, at least `low`.

    The logarithms of both tails keep the ratio exact far from the mean. The estimate never
    exceeds the value.
    """
    high = value
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above, beyond = special.log_ndtr(
            ((middle - value) / error, (middle - runner_up) / error)
        ).tolist()
        if above - beyond < -math.log(2.0):
            low = middle
        else:
            high = middle
    return (low + high) / 2.0
