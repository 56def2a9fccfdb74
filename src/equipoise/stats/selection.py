"""Size of the group that leads because it was picked as the most extreme."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from equipoise.core import Floats, InputError, Span, floats, record
from equipoise.core.arguments import check_level
from equipoise.stats.intervals import Pair, wilson

Side = Literal["lowest", "highest"]
Reference = Literal["others", "opposite"]

_HALVINGS = 40


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


@record
class Selection:
    """What made the gap of a group be looked at.

    Attributes
    ----------
    index : int or None
        The group that leads; None for the one at the end of the order.
    margins : array-like, shape (groups,), or None
        Distances from estimates to what was ordered, such as the end of an interval; None where
        the estimates were.
    cutoff : float
        Smallest size of a gap that is looked at, at least 0; larger than the gap counts as the gap.
    """

    index: int | None = None
    margins: ArrayLike | None = None
    cutoff: float = 0.0


@record
class LeadingGap(LeadingSize):
    """Gap of the leading group to a reference, and the size of the group itself (`group`)."""

    group: LeadingSize


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


def leading_gap(
    estimates: ArrayLike,
    errors: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reference: Reference = "others",
    side: Side = "lowest",
    selection: Selection | None = None,
    level: float = 0.95,
    ends: Pair | None = None,
) -> LeadingGap:
    """Return how far the leading group is from a reference, corrected for its selection.

    The corrected sizes are median-unbiased given what made them be looked at: the group leads, and
    its gap reaches a cutoff. They aren't shrunk to a mean. All other directions of the estimates
    stay as observed, so the condition is a range of the gap. Of two groups, and of the two ends of
    the order, the condition holds for both directions of the gap: the same pair would have been
    named. So two groups without a cutoff keep their sizes.

    Parameters
    ----------
    estimates, errors : array-like, shape (groups,)
        Independent estimates and their standard errors, in one unit; NaN estimates are ignored.
    weights : array-like, shape (groups,), optional
        Rows of the groups, which weigh the others. By default all groups weigh the same.
    reference : "others" or "opposite"
        All other groups pooled, or the group at the other end of the order.
    side : "lowest" or "highest"
        The end of the order that is picked.
    selection : Selection, optional
        What was picked; by default the group at the end of the order, whatever its gap.
    level : float
        Confidence level in (0, 1) of the intervals of all groups together.
    ends : pair of array-like, shape (groups,), optional
        Simultaneous ends, such as those of `simultaneous_shares`. By default
        `simultaneous_normal`.

    Returns
    -------
    LeadingGap
        Group minus reference: at most 0 for the lowest group, at least 0 for the highest. The
        ends combine those of both terms (Zou & Donner 2008).

    Raises
    ------
    InputError
        When `level` is outside (0, 1), `side` or `reference` is unknown, shapes differ, an error
        isn't positive and finite, fewer than two estimates are finite, the group that leads isn't
        one of them, or the others have no weight.

    References
    ----------
    Andrews, Kitagawa & McCloskey 2024, Inference on Winners, Quarterly Journal of Economics
    139, 305-358; Lee, Sun, Sun & Taylor 2016, Annals of Statistics 44, 907-927.
    """
    if side not in ("lowest", "highest"):
        raise InputError(f"side={side!r}: expected 'lowest' or 'highest'")
    if reference not in ("others", "opposite"):
        raise InputError(f"reference={reference!r}: expected 'others' or 'opposite'")
    picked = selection or Selection()
    centres, spreads = _estimates(estimates, errors)
    low_ends, high_ends = simultaneous_normal(centres, spreads, level) if ends is None else ends
    usable = np.flatnonzero(np.isfinite(centres))
    if len(usable) < 2:
        raise InputError("estimates: expected at least two groups with a finite estimate")
    # The group that leads is the lowest of what follows.
    sign = 1.0 if side == "lowest" else -1.0
    x, s = sign * centres[usable], spreads[usable]
    low, high = (sign * floats(end)[usable] for end in (low_ends, high_ends)[:: int(sign)])
    beyond = np.zeros(len(x)) if picked.margins is None else floats(picked.margins)[usable]
    lead = int(np.argmin(x + beyond)) if picked.index is None else _place(usable, picked.index)
    far = int(np.argmax(np.where(np.arange(len(x)) == lead, -np.inf, x)))
    unit = np.eye(len(x))
    if reference == "opposite":
        pooled, base_low, base_high = unit[far], low[far], high[far]
    else:
        pooled = _pooled(len(x), lead, None if weights is None else floats(weights)[usable])
        half = _critical(level, len(x)) * float(np.linalg.norm(pooled * s))
        base_low, base_high = pooled @ x - half, pooled @ x + half
    gap = unit[lead] - pooled
    condition = _Condition(
        x, s, gap, lead, far if reference == "opposite" else None, beyond, picked.cutoff
    )
    value, base = float(gap @ x), float(pooled @ x)
    spans = (
        (value, value - math.hypot(x[lead] - low[lead], base_high - base),
         value + math.hypot(high[lead] - x[lead], base - base_low)),
        (float(x[lead]), float(low[lead]), float(high[lead])),
    )  # fmt: skip
    sizes = []
    for contrast, (size, start, end) in zip((gap, unit[lead]), spans, strict=True):
        first, last = sorted((float(sign * start), float(sign * end)))
        corrected = float(sign * condition.median(contrast, start, end))
        sizes.append(LeadingSize(int(usable[lead]), sign * size, first, last, corrected))
    return LeadingGap(**vars(sizes[0]), group=sizes[1])


@record
class _Condition:
    """What made a gap of the lowest group be looked at.

    Its estimate plus its margin is the lowest, `far` (where it is set) is the highest, and the
    gap is at most `-cutoff`.
    """

    x: Floats
    s: Floats
    gap: Floats
    lead: int
    far: int | None
    margins: Floats
    cutoff: float

    def median(self, contrast: Floats, low: float, high: float) -> float:
        """Return the mean at which an observed contrast is a median, from `low` to `high`."""
        variance = float(contrast**2 @ self.s**2)
        spans = self._spans(contrast * self.s**2 / variance, float(contrast @ self.x))
        return _median_unbiased(float(contrast @ self.x), math.sqrt(variance), spans, low, high)

    def _spans(self, step: Floats, value: float) -> list[Span]:
        """Return the values of a contrast under the condition.

        `step` is how the estimates move with it; everything else stays as observed.
        """
        ordered = self.x + self.margins
        slack, rise = ordered - ordered[self.lead], step[self.lead] - step
        if self.far is not None:
            slack = np.append(slack, self.x[self.far] - self.x)
            rise = np.append(rise, step - step[self.far])
        # A group that leads against the order wasn't picked by it.
        bounding = (slack >= 0.0) & (rise > 0.0)
        room = slack[bounding] / rise[bounding]
        gap, gap_step = float(self.gap @ self.x), float(self.gap @ step)
        cutoff = min(self.cutoff, abs(gap))
        end = min(room.min(initial=math.inf), (-cutoff - gap) / gap_step)
        spans = [(-math.inf, value + max(end, 0.0))]
        # In the other direction the group is at the other end of the order.
        if (self.far is not None or len(self.x) == 2) and not (slack[rise <= 0.0] > 0.0).any():
            start = max(room.max(initial=-math.inf), (cutoff - gap) / gap_step)
            spans.append((max(value + start, spans[0][1]), math.inf))
        return spans


def _place(usable: NDArray[np.intp], index: int) -> int:
    places = np.flatnonzero(usable == index)
    if not len(places):
        raise InputError(f"index={index}: expected a group with a finite estimate")
    return int(places[0])


def _pooled(groups: int, lead: int, weights: Floats | None) -> Floats:
    """Return the shares of all groups but one in their mean."""
    shares = np.ones(groups) if weights is None else weights.copy()
    shares[lead] = 0.0
    if not shares.sum() > 0.0:
        raise InputError("weights: expected a positive weight of another group")
    mean: Floats = shares / shares.sum()
    return mean


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


def _median_unbiased(
    value: float, error: float, spans: Sequence[Span], low: float, high: float
) -> float:
    """Return the mean from `low` to `high` at which a value within spans is a median."""
    below = [(start, min(end, value)) for start, end in spans if start < value]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        share = _log_mass(below, middle, error) - _log_mass(spans, middle, error)
        low, high = (low, middle) if share < -math.log(2.0) else (middle, high)
    return (low + high) / 2.0


def _log_mass(spans: Sequence[Span], mean: float, error: float) -> float:
    """Return the logarithm of a normal's probability of spans, exact in both tails."""
    masses = []
    for start, end in spans:
        a, b = (start - mean) / error, (end - mean) / error
        if a > 0.0:
            a, b = -b, -a
        lower, upper = special.log_ndtr((a, b)).tolist()
        if lower < upper:
            masses.append(upper + math.log(-math.expm1(lower - upper)))
    largest = max(masses, default=-math.inf)
    return largest + math.log(sum(math.exp(mass - largest) for mass in masses) or 1.0)
