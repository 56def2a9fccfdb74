"""Average odds: the mean of true and false positive rate, compared between groups."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from equipoise.core.finding import GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part
from equipoise.metrics.building import against_chance, part
from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    TRUE_POSITIVE_RATE,
    Confusion,
    comparable,
    enough,
)
from equipoise.metrics.counts import Counts
from equipoise.metrics.gaps import (
    Known,
    compared_rows,
    needed,
    replicated_shares,
    too_few,
    without_rows,
)
from equipoise.metrics.hybrid import Scored
from equipoise.metrics.measure import Draws
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


def average_odds_parts(
    counts: Counts, draws: Draws, place: int, share_place: int | None
) -> list[Part]:
    """Return one part per class: the gap of average odds, and every group.

    Parameters
    ----------
    counts : Counts
    draws : Draws
    place, share_place : int, int or None
        Where the gap of the first class and its first group stand in the draws.
    """
    cells = Confusion.of(counts, counts.table[None])
    scored = scored_average_odds(cells, draws.level)
    # As the denominators of a rate are: the smaller of both where it is too small.
    fewest = np.minimum(cells.truth[0], cells.others[0])
    known = np.where(enough(fewest, counts.groups) & (fewest > 0), cells.total[0], fewest)
    low, high = _ends(counts, draws, cells, place)
    parts = []
    for index, name in enumerate(counts.classes):
        value = draws.observed[place + index]
        boot = replicated_shares(counts, draws, share_place, index)
        parts.append(
            part(
                NAME,
                name,
                draws,
                place + index,
                ends=Known(float(low[index]), float(high[index])),
                against=against_chance(draws, place + index, "higher"),
                n=compared_rows(counts.groups, known[index]),
                by_group=_group_values(counts.groups, scored, cells, index, boot, draws.level),
                excluded=without_rows(counts.groups, known[index], _BASE),
                reason=too_few(value, needed(counts.groups, _BASE)),
            )
        )
    return parts


def _ends(counts: Counts, draws: Draws, cells: Confusion, place: int) -> tuple[Floats, Floats]:
    classes = len(counts.classes)
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


def _group_values(
    groups: Groups,
    scored: Scored,
    cells: Confusion,
    index: int,
    boot: Floats | None,
    level: float,
) -> tuple[GroupValue, ...]:
    low, high = scored.low[index], scored.high[index]
    if boot is not None:
        low, high, _ = percentile(boot, level)
    columns = (scored.value[index], low, high, cells.truth[0, index], cells.others[0, index])
    rows = zip(*(one.tolist() for one in columns), groups.usable.tolist(), strict=True)
    return tuple(
        GroupValue(
            groups.names[place],
            groups.levels[place],
            round(positives + negatives),
            value,
            lower,
            upper,
            _note(groups, positives, negatives, large),
        )
        for place, (value, lower, upper, positives, negatives, large) in enumerate(rows)
    )


def _note(groups: Groups, positives: float, negatives: float, large: bool) -> str:
    if positives == 0:
        return f"no {TRUE_POSITIVE_RATE.base}"
    if negatives == 0:
        return f"no {FALSE_POSITIVE_RATE.base}"
    fewest = np.array([positives, negatives])
    large = large and bool(enough(fewest, groups).all())
    return "" if large else f"fewer than {groups.min_size} rows"
