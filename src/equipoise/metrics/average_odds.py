"""Average odds: the mean of true and false positive rate, compared between groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import ndtr

from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    TRUE_POSITIVE_RATE,
    Confusion,
    comparable,
    enough,
)
from equipoise.metrics.counts import Counts
from equipoise.metrics.gaps import (
    compared_rows,
    needed,
    replicated_ends,
    too_few,
    without_rows,
)
from equipoise.metrics.hybrid import Scored
from equipoise.metrics.measure import Draws
from equipoise.metrics.part_table import GroupColumns, PartColumns, against_each
from equipoise.stats.critical import studentized_range
from equipoise.stats.intervals import percentile

Floats = npt.NDArray[np.float64]

NAME = "average_odds"
_BOTH = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)
_BASE = "rows of the class and of other classes"


def average_odds(cells: Confusion) -> Floats:
    """Return the mean of true and false positive rate, (r, classes, groups); NaN without one."""
    hit, alarm = (cells.shares(rate) for rate in _BOTH)
    return 0.5 * (hit + alarm)


def comparable_odds(counts: Counts, values: Floats) -> Floats:
    """Return average odds, NaN where one of both observed denominators is too small."""
    for rate in _BOTH:
        values = comparable(counts, rate, values)
    return values


def scored_average_odds(cells: Confusion, level: float) -> Scored:
    """Return average odds of the first table with hybrid intervals, (classes, groups)."""
    hit, alarm = (Scored.of(*rate.counts(cells), level) for rate in _BOTH)
    both = hit.plus(alarm).scaled(0.5)
    return Scored(both.value[0], both.low[0], both.high[0])


def average_odds_table(
    counts: Counts, draws: Draws, place: int, share_place: int | None
) -> pa.Table:
    """Return one part per class: the gap of average odds, and every group.

    Parameters
    ----------
    counts : Counts
    draws : Draws
    place, share_place : int, int or None
        Where the gap of the first class and its first group stand in the draws.
    """
    cells = Confusion.of(counts, counts.observed)
    scored = scored_average_odds(cells, draws.level)
    # As the denominators of a rate are: the smaller of both where it is too small.
    fewest = np.minimum(cells.truth[0], cells.others[0])
    known = np.where(enough(fewest, counts.groups) & (fewest > 0), cells.total[0], fewest)
    low, high = _ends(counts, draws, cells, place)
    many = len(counts.classes)
    value = draws.observed[place : place + many]
    return PartColumns(
        metric=NAME,
        subject=counts.classes,
        value=value,
        low=low,
        high=high,
        **against_each(draws, range(place, place + many), "higher"),
        n=compared_rows(counts.groups, known),
        by_group=_group_columns(counts, draws, cells, scored, share_place),
        excluded=without_rows(counts.groups, known, _BASE),
        reason=[too_few(one, needed(counts.groups, _BASE)) for one in value.tolist()],
    ).table()


def _ends(counts: Counts, draws: Draws, cells: Confusion, place: int) -> tuple[Floats, Floats]:
    classes = len(counts.classes)
    if not draws.intervals:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    if draws.boot is not None:
        return percentile(draws.boot[:, place : place + classes], draws.level)[:2]
    usable = counts.groups.usable
    if not counts.independent or usable.sum() < 2:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    taking = enough(cells.truth[0], counts.groups) & enough(cells.others[0], counts.groups)
    return gap_ends(cells, usable, taking, draws.level)


def gap_ends(
    cells: Confusion,
    usable: npt.NDArray[np.bool_],
    taking: npt.NDArray[np.bool_],
    level: float,
) -> tuple[Floats, Floats]:
    """Return ends of the gap of average odds per class, as `simultaneous_gap` has them.

    Of the usable groups, those of `taking` (classes, groups) take part in a class.
    """
    critical = studentized_range(level, int(usable.sum()))
    wide = scored_average_odds(cells, 1.0 - 2.0 * float(ndtr(-critical))).known(taking)
    narrow = scored_average_odds(cells, level).known(taking)
    wide, narrow = wide.where(usable), narrow.where(usable)
    lows, highs = [np.zeros(len(cells.both[0]))], [np.zeros(len(cells.both[0]))]
    for group in range(int(usable.sum())):
        lows.append(np.fmax.reduce(_against_others(wide, group).low, axis=-1))
        highs.append(np.fmax.reduce(_against_others(narrow, group).high, axis=-1))
    several = (~np.isnan(narrow.value)).sum(axis=-1) >= 2
    low, high = np.fmax.reduce(lows), np.fmin(np.fmax.reduce(highs), 1.0)
    return np.where(several, low, np.nan), np.where(several, high, np.nan)


def _against_others(scored: Scored, group: int) -> Scored:
    others = np.arange(scored.value.shape[-1]) != group
    return scored.where(~others).minus(scored.where(others))


def _group_columns(
    counts: Counts, draws: Draws, cells: Confusion, scored: Scored, share_place: int | None
) -> GroupColumns:
    groups, positives, negatives = counts.groups, cells.truth[0], cells.others[0]
    low, high = replicated_ends(counts, draws, share_place) or (scored.low, scored.high)
    large = groups.usable & enough(positives, groups) & enough(negatives, groups)
    note = np.select([positives == 0, negatives == 0, ~large], [1, 2, 3], 0)
    notes = (
        "",
        *(f"no {rate.base}" for rate in _BOTH),
        f"fewer than {groups.min_size} rows",
    )
    return GroupColumns(groups, positives + negatives, scored.value, low, high, note, notes)
