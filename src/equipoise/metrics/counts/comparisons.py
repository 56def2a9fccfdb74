"""Differences and ratios of every group's rates to other groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core.arrays import Floats, Integers
from equipoise.core.errors import InputError
from equipoise.metrics.building import spread_level
from equipoise.metrics.counts.rates import RATES, Cells, Rate, divide
from equipoise.metrics.counts.table import Counts, count
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import SPECS
from equipoise.stats.intervals import Pair, Scored, percentile
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import Seed

_TEXTS = ("metric", "subject", "group", "versus", "versus_group")
_NUMBERS = ("difference", "low", "high", "ratio", "ratio_low", "ratio_high")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.float64()) for name in _NUMBERS),
        ("n", pa.int64()),
        ("reason", pa.string()),
    ]
)


def rate_comparisons(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    reference: str | None = None,
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> pa.Table:
    """Differences and ratios of every group's rates to other groups.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    reference : str, optional
        Display name of the reference group, such as "White, Male".
    resampling : Bootstrap, Permutation or None
        Gives the level of the intervals; Bootstrap also resamples units where rows are not
        independent. None leaves the intervals NaN.
    rng : int or Generator
        Seed.

    Returns
    -------
    pyarrow.Table
        One row per metric, class (`subject`), group and `versus`. `difference` = rate of the
        group − rate of `versus_group`, in [-1, 1]; `ratio` their quotient, NaN where the
        latter is 0. `n` counts the group's rows in the rate's denominator. Metrics are those of
        `rates`: the difference of selection_rate is the statistical parity difference, that of
        true_positive_rate the equal opportunity difference, that of average_odds the average
        odds difference. "best" is the highest rate ("lowest" for false positive and false
        negative rate) of the groups large enough, "worst" the opposite; "overall" is the rate
        of all rows.

        Intervals of independent rows: Newcombe's for differences and the hybrid score interval
        of Donner & Zou for ratios, both from Wilson intervals, so that shares of 0 and 1 need
        no correction (Katz' interval of the logarithm has no value there). Against "best" and
        "worst", which the data choose, they hold for all pairs of groups together (Bonferroni).
        Against "overall", which contains the group, the interval against all other groups is
        rescaled with the group's share held fixed. Other rows: percentile bootstrap over units.

    Raises
    ------
    InputError
        When `reference` names no group, shapes do not fit or no row is complete.

    References
    ----------
    Newcombe 1998, Statistics in Medicine 17, 873-890; Donner & Zou 2012, Statistical Methods in
    Medical Research 21, 347-359; Bellamy et al. 2019 (average odds difference).
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    names, usable = counts.groups.names, counts.groups.usable
    if reference is not None and reference not in names:
        raise InputError(f"reference={reference!r}: no such group; expected one of {names}")
    blocks: tuple[Floats, ...] = ()
    if isinstance(resampling, Bootstrap) and not counts.independent:
        blocks = (*counts.sampler.bootstrap(resampling.replicates, rng),)
    observed, *drawn = (_cells(counts, tables) for tables in (counts.observed, *blocks))
    pairs, tables = int(usable.sum() * (usable.sum() - 1) // 2), []
    for rate in RATES:
        values = rate.shares(observed)[0, :, :-2]
        better = -values if SPECS[rate.name].harm == "higher" else values
        partners: dict[str, Integers] = {}
        for versus, score in (("best", better), ("worst", -better)):
            known = np.where(usable & ~np.isnan(score), score, -np.inf)
            partners[versus] = np.where(np.isneginf(known).all(axis=1), -1, known.argmax(axis=1))
        if reference is not None:
            partners["reference"] = np.full(len(values), names.index(reference))
        partners["overall"] = np.full(len(values), -2)
        for versus, partner in partners.items():
            ends = None
            if resampling is not None and (drawn or counts.independent):
                # A group that the data choose costs all pairs.
                chosen = versus in ("best", "worst")
                level = spread_level(resampling.level, pairs if chosen else 1)
                ends = _ends(rate, observed, drawn, partner, level)
            tables.append(_table(counts, rate, observed, versus, partner, ends))
    return pa.concat_tables(tables)


def _cells(counts: Counts, tables: Floats) -> Cells:
    """Return the cells of tables, with all rows as last but one group and none as the last."""
    every = tables.sum(axis=2, keepdims=True)
    return Cells.of(counts, np.concatenate([tables, every, np.zeros_like(every)], axis=2))


def _differences(rate: Rate, cells: Cells, partner: Integers) -> tuple[Floats, Floats]:
    """Return differences and ratios of the groups to the partner of each class."""
    values = rate.shares(cells)
    other = values[:, np.arange(len(partner)), partner][..., None]
    values = values[..., :-2]
    with np.errstate(invalid="ignore", divide="ignore"):
        single = (other > 0) & (bool(rate.predictions) or len(rate.terms) == 1)
        return values - other, np.where(single, values / other, np.nan)


def _ends(
    rate: Rate, cells: Cells, drawn: Sequence[Cells], partner: Integers, level: float
) -> list[Pair]:
    """Return low and high ends of the differences and of the ratios."""
    if drawn:
        replicates = zip(*(_differences(rate, one, partner) for one in drawn), strict=True)
        return [percentile(np.concatenate(some), level) for some in replicates]
    if (partner == -2).all():
        pairs = [(some[0, :, :-2], n[0, :, :-2]) for some, n in rate.counts(cells)]
        # Terms that have a mean are rescaled one by one.
        each = [pairs] if rate.predictions else [[pair] for pair in pairs]
        both = [_with_rest(rate, some, level, cells) for some in each]
        difference = reduce(Scored.plus, (one for one, _ in both)).scaled(1.0 / len(both))
        return [(one.low, one.high) for one in (difference, both[0][1])]
    pairs = [(some[0], totals[0]) for some, totals in rate.counts(cells)]
    every = rate.scored(pairs, level, cells)
    own, other = every[:, :-2], every[np.arange(len(partner)), partner][:, None]
    return [(one.low, one.high) for one in (own.minus(other), own.over(other))]


def _table(
    counts: Counts,
    rate: Rate,
    cells: Cells,
    versus: str,
    partner: Integers,
    ends: Sequence[Pair] | None,
) -> pa.Table:
    """Return one row per class and group."""
    difference, ratio = (one[0] for one in _differences(rate, cells, partner))
    numbers = []
    for place, value in enumerate((difference, ratio)):
        both = ends[place] if ends else (np.nan, np.nan)
        numbers += [value, *(np.where(np.isnan(value), np.nan, end) for end in both)]
    names = (*counts.groups.names, "", "")
    # A group is not compared with itself.
    subject, group = np.nonzero(np.arange(len(counts.groups)) != partner[:, None])
    undefined = "ratio: the rate compared with is 0"
    if rate.name == "average_odds":
        undefined = "ratio: average odds are compared by their difference only"
    base = rate.predictions or " or ".join(base for *_, base in rate.terms)
    reasons = {
        f"the group has no {base}": np.isnan(rate.shares(cells)[0, :, :-2]),
        f"what it is compared with has no {base}": np.isnan(difference),
        undefined: np.isnan(ratio),
    }
    many = len(group)
    columns = [
        [rate.name] * many,
        [counts.classes[place] for place in subject],
        [names[place] for place in group],
        [versus] * many,
        [names[place] for place in partner[subject]],
        *(one[subject, group] for one in numbers),
        np.rint(rate.totals(cells)[0][subject, group]).astype(np.int64),
        np.select([*reasons.values()], [*reasons], "")[subject, group],
    ]
    return pa.table(columns, schema=SCHEMA)


def _with_rest(
    rate: Rate, pairs: Sequence[Pair], level: float, cells: Cells
) -> tuple[Scored, Scored]:
    """Return difference and ratio of each group to all rows, its share of them held fixed."""
    rest = [
        tuple(np.maximum(one.sum(axis=1, keepdims=True) - one, 0.0) for one in pair)
        for pair in pairs
    ]
    own, others = (rate.scored(some, level, cells) for some in (pairs, rest))
    totals = np.asarray(sum(n for _, n in pairs))
    share = divide(totals, totals.sum(axis=1, keepdims=True))
    with np.errstate(divide="ignore"):
        ratios = (1.0 / (share + (1.0 - share) / one) for one in own.over(others).arrays)
        return own.minus(others).scaled(1.0 - share), Scored(*ratios)
