"""Differences and ratios of every group's rates to other groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from equipoise.stats.intervals import Scored, percentile, scored
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
    names = counts.groups.names
    if reference is not None and reference not in names:
        raise InputError(f"reference={reference!r}: no such group; expected one of {names}")
    blocks: tuple[Floats, ...] = ()
    if isinstance(resampling, Bootstrap) and not counts.independent:
        blocks = (*counts.sampler.bootstrap(resampling.replicates, rng),)
    observed, tables = Cells.of(counts, counts.observed), []
    for rate in RATES:
        values = rate.shares(observed)[0]
        better = -values if SPECS[rate.name].harm == "higher" else values
        partners: dict[str, Integers] = {}
        for versus, score in (("best", better), ("worst", -better)):
            usable = np.where(counts.groups.usable & ~np.isnan(score), score, -np.inf)
            none = np.isneginf(usable).all(axis=1)
            partners[versus] = np.where(none, -1, usable.argmax(axis=1))
        if reference is not None:
            partners["reference"] = np.full(len(values), names.index(reference))
        partners["overall"] = np.full(len(values), -1)
        for versus, partner in partners.items():
            one = _Comparison(counts, rate, versus, partner)
            tables.append(one.table(resampling, blocks))
    return pa.concat_tables(tables)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """One rate of all classes and groups against one group per class, or against all rows.

    Attributes
    ----------
    counts : Counts
    rate : Rate
    versus : "best", "worst", "reference" or "overall"
    partner : ndarray of int64, shape (classes,)
        The group compared with, -1 where there is none.
    """

    counts: Counts
    rate: Rate
    versus: str
    partner: Integers

    def _partners(self, values: Floats) -> Floats:
        """Return the values (..., classes, groups) of the partners, (..., classes, 1)."""
        found = values[..., np.arange(len(self.partner)), self.partner]
        return np.where(self.partner >= 0, found, np.nan)[..., None]

    def differences(self, tables: Floats) -> tuple[Floats, Floats]:
        """Return differences and ratios of tables (r, outcomes, groups)."""
        values = self.rate.shares(Cells.of(self.counts, tables))
        if self.versus == "overall":
            other = self.rate.shares(Cells.of(self.counts, tables.sum(axis=2, keepdims=True)))
        else:
            other = self._partners(values)
        with np.errstate(invalid="ignore", divide="ignore"):
            single = (other > 0) & (len(self.rate.terms) == 1)
            return values - other, np.where(single, values / other, np.nan)

    def _ends(
        self, resampling: Resampling | None, blocks: Iterable[Floats]
    ) -> Sequence[tuple[Floats, Floats]]:
        """Return low and high ends of the differences and of the ratios."""
        if resampling is None or not (self.counts.independent or blocks):
            missing = np.full((len(self.counts.classes), len(self.counts.groups)), np.nan)
            return [(missing, missing)] * 2
        usable, level = int(self.counts.groups.usable.sum()), resampling.level
        if self.versus in ("best", "worst"):
            # A group that the data choose costs all pairs.
            level = spread_level(level, usable * (usable - 1) // 2)
        if not self.counts.independent:
            drawn = zip(*map(self.differences, blocks), strict=True)
            return [percentile(np.concatenate(some), level) for some in drawn]
        cells = Cells.of(self.counts, self.counts.observed)
        if self.versus == "overall":
            pairs = self.rate.counts(cells)
            both = [_with_rest(some[0], every[0], level) for some, every in pairs]
            difference = reduce(Scored.plus, (one for one, _ in both)).scaled(1.0 / len(both))
            return [(one.low, one.high) for one in (difference, both[0][1])]
        own = self.rate.scored(cells, level)
        other = Scored(*map(self._partners, own.arrays))
        return [(one.low, one.high) for one in (own.minus(other), own.over(other))]

    def table(self, resampling: Resampling | None, blocks: Iterable[Floats]) -> pa.Table:
        """Return one row per class and group."""
        counts, rate = self.counts, self.rate
        difference, ratio = (one[0] for one in self.differences(counts.observed))
        numbers = []
        for value, ends in zip((difference, ratio), self._ends(resampling, blocks), strict=True):
            numbers += [value, *(np.where(np.isnan(value), np.nan, end) for end in ends)]
        # A group is not compared with itself.
        subject, group = np.nonzero(np.arange(len(counts.groups)) != self.partner[:, None])
        cells, names = Cells.of(counts, counts.observed), (*counts.groups.names, "")
        undefined = "ratio: the rate compared with is 0"
        if len(rate.terms) > 1:
            undefined = "ratio: average odds are compared by their difference only"
        base = " or ".join(base for *_, base in rate.terms)
        reasons = {
            f"the group has no {base}": np.isnan(rate.shares(cells)[0]),
            f"what it is compared with has no {base}": np.isnan(difference),
            undefined: np.isnan(ratio),
        }
        many = len(group)
        columns = [
            [rate.name] * many,
            [counts.classes[place] for place in subject],
            [names[place] for place in group],
            [self.versus] * many,
            [names[place] for place in self.partner[subject]],
            *(one[subject, group] for one in numbers),
            np.rint(rate.totals(cells)[0][subject, group]).astype(np.int64),
            np.select([*reasons.values()], [*reasons], "")[subject, group],
        ]
        return pa.table(columns, schema=SCHEMA)


def _with_rest(successes: Floats, totals: Floats, level: float) -> tuple[Scored, Scored]:
    """Return difference and ratio of each group to all rows, its share of them held fixed."""
    every = totals.sum(axis=1, keepdims=True)
    rest = np.maximum(successes.sum(axis=1, keepdims=True) - successes, 0.0)
    own = scored(successes, totals, level)
    others = scored(rest, every - totals, level)
    share = divide(totals, every)
    with np.errstate(divide="ignore"):
        ratios = (1.0 / (share + (1.0 - share) / one) for one in own.over(others).arrays)
        return own.minus(others).scaled(1.0 - share), Scored(*ratios)
