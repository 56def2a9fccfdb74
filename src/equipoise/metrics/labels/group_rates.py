"""A rate of one class, or of all rows: its level, and how groups compare in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from equipoise.core import (
    Aggregate,
    Booleans,
    ComparedTo,
    Ends,
    Estimate,
    Fields,
    Floats,
    GroupValue,
    IntervalKind,
    Span,
    nans,
    no_ends,
    tally,
)
from equipoise.metrics.building import (
    ShareInterval,
    clustered_method,
    compare_with_chance,
    count_estimate,
    ends_of,
    group_rows,
    part,
    replicates_text,
    share_interval,
    spread_level,
    too_small,
)
from equipoise.metrics.labels.rate import Cells, Rate
from equipoise.metrics.labels.table import Counts, Null, accuracy_design
from equipoise.metrics.measure import Draws, Measure
from equipoise.metrics.spec import spec_for
from equipoise.stats.intervals import (
    ClosedForm,
    Pair,
    divide,
    simultaneous_minimum,
    simultaneous_shortfall,
)

_Comparison = tuple[Aggregate, ComparedTo]
_METHODS: Mapping[_Comparison, str] = {
    (Aggregate.WORST_GROUP, ""): "simultaneous Wilson intervals of all groups",
    (Aggregate.DIFFERENCE, ""): "pairwise Newcombe intervals, simultaneous over groups",
    (Aggregate.DIFFERENCE, "overall"): (
        "simultaneous Newcombe intervals of each group against the rest"
    ),
    (Aggregate.RATIO, ""): "score intervals of ratios, simultaneous over pairs of groups",
}


class GroupRates(Measure):
    """The measure of a rate of one class, or of all rows.

    Attributes
    ----------
    rate : Rate
    subject : str
        The class; "" for right predictions of all.
    aggregate : Aggregate
        The rate itself, that of the worst group, or how groups compare.
    null : "rows", "class" or None
        What chance exchanges; None for the rate itself.
    compared_to : "" or "overall"
        Whether a difference is from the best group, or from all rows.
    """

    rate: Rate
    subject: str
    aggregate: Aggregate
    compared_to: ComparedTo
    no_chance = "the rate itself compares no groups"

    @property
    def compares(self) -> bool:  # type: ignore[override]
        """The rate itself is of all rows."""
        return self.aggregate is not Aggregate.VALUE

    @property
    def params(self) -> Fields:
        """The parameters that decide the number."""
        return {
            name: value for name, value in (("null", self.null), ("subject", self.subject)) if value
        }

    def cells(self, counts: Counts, tables: Floats) -> Cells:
        """Return the cells of the class, each (r, 1, groups)."""
        if not self.subject:
            return Cells.right_or_wrong(counts, tables)
        return Cells.of(counts, tables).of_class(counts.classes.index(self.subject))

    def effective(self, counts: Counts) -> list[Pair]:
        """Return observed counts of the rate's terms in independent rows, each (groups,)."""
        if self.subject:
            place = counts.classes.index(self.subject)
            pairs = self.rate.effective(counts)
            return [(numerator[place], base[place]) for numerator, base in pairs]
        design = accuracy_design(counts)
        ((numerator, base),) = self.rate.counts(self.cells(counts, counts.observed))
        return [(numerator[0, 0] / design, base[0, 0] / design)]

    def compared(self, counts: Counts) -> Booleans:
        """Whether each group has rows enough."""
        if not self.subject:
            return counts.groups.usable
        large = self.rate.large(counts)[counts.classes.index(self.subject)]
        return np.asarray(counts.groups.usable & large)

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, then each group's rate, shape (r, 1 + groups)."""
        cells, usable = self.cells(counts, tables), self.compared(counts)
        compared = usable if self.compares else np.ones_like(usable)
        shares = self.rate.shares(cells)[:, 0]
        number = self.rate.shares(cells.of_all(compared))[:, 0, 0]
        if self.compares:
            # A replicate may leave a small group empty; the others still have a minimum.
            low = np.fmin.reduce(shares[:, usable], axis=1, initial=np.nan)
            high = np.fmax.reduce(shares[:, usable], axis=1, initial=np.nan)
            number = self._compare(number, low, high) if usable.sum() >= 2 else nans(len(tables))
        return np.concatenate([number[:, None], shares], axis=1)

    def _compare(self, overall: Floats, low: Floats, high: Floats) -> Floats:
        worst = high if self._high_is_worse else low
        if self.aggregate is Aggregate.WORST_GROUP:
            return worst
        if self.aggregate is Aggregate.RATIO:
            return np.divide(low, high, out=np.full_like(low, np.nan), where=high > 0)
        return np.abs(overall - worst) if self.compared_to else high - low

    @property
    def _high_is_worse(self) -> bool:
        return spec_for(self.rate.name).harm == "higher"

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the number into the estimate."""
        comparison, usable = (self.aggregate, self.compared_to), self.compared(counts)
        cells = self.cells(counts, counts.observed)
        level, method = self.level(counts, draws, cells), _METHODS.get(comparison)
        ends, kind = level.ends, level.kind
        if method is not None:
            kind = IntervalKind.SIMULTANEOUS
            ends = self._ends(counts, cells, draws) if usable.sum() >= 2 else no_ends
            if self.compared_to and len(self.rate.bases) > 1:
                method = "hybrid intervals of each group and all rows, simultaneous over groups"
            method = clustered_method(counts, method)
        reason = ""
        if math.isnan(draws.observed[0]):
            ends, reason = no_ends, self._reason(cells, usable)
        spec = spec_for(self.rate.name, *comparison)
        chance_test = compare_with_chance(draws, 0, spec.value_harm)
        totals = self.rate.totals(cells)[0, 0]
        total = totals[usable].sum() if self.compares else totals.sum()
        rate_part = part(
            spec.name, self.subject, draws, 0, ends=ends, chance_test=chance_test, n=round(total),
            by_group=self.by_group(counts, draws), aggregate=self.aggregate,
        )  # fmt: skip
        return count_estimate(
            spec, counts, draws, method or level.method, interval_kind=kind, ends=ends,
            chance_test=chance_test,
            no_chance=self.no_chance if self.null is None else "",
            params=self.params, by=[rate_part],
            reason=reason,
        )  # fmt: skip

    def _reason(self, cells: Cells, usable: Booleans) -> str:
        """Say why there is no number."""
        if self.compares and tally(usable) < 2:
            return "fewer than two groups have enough rows"
        if self.aggregate is Aggregate.RATIO:
            return "the rate is 0 in every group, so there is no ratio"
        of_all = cells.of_all(np.ones_like(usable))
        counted = [*(base for _, base in self.rate.counts(of_all)), self.rate.totals(of_all)]
        names = [*self.rate.bases, self.rate.predictions or "rows"]
        empty = (name for name, n in zip(names, counted, strict=True) if not n.any())
        return f"no {next(empty, 'rows')}"

    def level(self, counts: Counts, draws: Draws, cells: Cells) -> ShareInterval:
        """Return the interval of the rate itself."""
        everyone = cells.of_all(np.ones(len(counts.groups), dtype=bool))
        pairs = self.rate.counts(everyone)
        if self.rate.predictions:
            pairs = [(pairs[1][0], self.rate.totals(everyone))]
        if len(pairs) == 1:
            successes, total = (float(weights.item()) for weights in pairs[0])
            return share_interval(counts, draws, 0, successes, total)
        if counts.independent:
            rows = [(numerator[0], base[0]) for numerator, base in pairs]
            hybrid = partial(_single, self.rate.ends, rows, everyone)
            return ShareInterval(hybrid, "hybrid interval of Wilson's of both shares")
        if draws.boot is None:
            return ShareInterval(
                no_ends, "none: rows are not independent; add bootstrap replicates"
            )
        over = replicates_text(draws.boot, f"{counts.unit}s")
        return ShareInterval(ends_of(draws.boot, 0), over, IntervalKind.PERCENTILE)

    def by_group(self, counts: Counts, draws: Draws) -> tuple[GroupValue, ...]:
        """Return the rate of each group with its interval."""
        cells = self.cells(counts, counts.observed)
        totals, shares = self.rate.totals(cells)[0, 0], self.rate.shares(cells)[0, 0]
        rates = self.rate.scored(
            [(numerator[None], base[None]) for numerator, base in self.effective(counts)],
            draws.level, cells,
        )  # fmt: skip
        bases = [*self.rate.bases, self.rate.predictions]
        empty = [*(base[0, 0] == 0 for _, base in self.rate.counts(cells)), totals == 0]
        notes: list[Any] = [*(f"no {base}" for base in bases), too_small(counts.groups)]
        note = np.select([*empty, ~self.compared(counts)], notes, "").tolist()
        return group_rows(counts.groups, totals, shares, rates.low[0], rates.high[0], note)

    def _ends(self, counts: Counts, cells: Cells, draws: Draws) -> Ends:
        """Return the ends of a comparison of groups."""
        usable, effective = self.compared(counts), self.effective(counts)
        pairs = [(numerator[None, usable], base[None, usable]) for numerator, base in effective]
        if self.aggregate is Aggregate.RATIO:
            return partial(self._ratio_ends, pairs, cells, draws.observed[1:][usable])
        if self.aggregate is Aggregate.DIFFERENCE and not self.compared_to:
            return partial(_single, self.rate.gap_ends, pairs, cells)
        if len(pairs) > 1 and self.compared_to:
            of_all = [
                _together(n, *(array[0, 0, usable] for array in weights))
                for (_, n), weights in zip(pairs, self.rate.counts(cells), strict=True)
            ]
            return partial(self._distance_ends, pairs, of_all, cells)
        if len(pairs) > 1:
            return partial(self._worst_ends, pairs, cells)
        (hits, n), high_is_worse = (array[0] for array in pairs[0]), self._high_is_worse
        hits = n - hits if high_is_worse else hits
        if self.compared_to:
            weights = self.rate.counts(cells)[0]
            hits_of_rows, rows = (array[0, 0][usable] for array in weights)
            design = np.where(n > 0, rows / np.where(n > 0, n, 1.0), 1.0)
            hits_of_rows = rows - hits_of_rows if high_is_worse else hits_of_rows
            shortfall = partial(simultaneous_shortfall, design=design)
            return ClosedForm(shortfall, (hits_of_rows, rows))
        least = ClosedForm(simultaneous_minimum, (hits, n))
        return partial(_complement, least) if high_is_worse else least

    def _worst_ends(self, pairs: Sequence[Pair], cells: Cells, level: float) -> Span:
        """Return ends of the worst group's rate where it is made of two shares."""
        wide = self.rate.scored(pairs, spread_level(level, pairs[0][0].size), cells)
        narrow = self.rate.scored(pairs, level, cells)
        if self._high_is_worse:
            return float(np.nanmax(wide.low)), float(np.nanmax(narrow.high))
        return float(np.nanmin(narrow.low)), float(np.nanmin(wide.high))

    def _distance_ends(
        self, pairs: Sequence[Pair], of_all: Sequence[Pair], cells: Cells, level: float
    ) -> Span:
        """Return ends of the worst group's distance from all rows, for a rate of two shares.

        All rows contain the group, so that the interval of independent rates is wide enough.
        """
        wide, narrow = (
            self.rate.scored(pairs, joint_level, cells).minus(
                self.rate.scored(of_all, joint_level, cells)
            )
            for joint_level in (spread_level(level, pairs[0][0].size), level)
        )
        if self._high_is_worse:
            low, high = np.nanmax(wide.low), np.nanmax(narrow.high)
        else:
            low, high = np.nanmax(-wide.high), np.nanmax(-narrow.low)
        return max(float(low), 0.0), float(high)

    def _ratio_ends(
        self, pairs: Sequence[Pair], cells: Cells, shares: Floats, level: float
    ) -> Span:
        """Return ends of the ratio of the lowest to the highest rate.

        The two are picked for their distance, so they hold for all pairs (Bonferroni).
        """
        n_groups = len(shares)
        joint_level = spread_level(level, n_groups * (n_groups - 1) // 2)
        rates = self.rate.scored(pairs, joint_level, cells)
        places = (0, int(np.nanargmin(shares))), (0, int(np.nanargmax(shares)))
        low, high = (rates[place] for place in places)
        ratio = low.over(high)
        return float(ratio.low), min(float(ratio.high), 1.0)


@dataclass(frozen=True)
class GroupRate(GroupRates):
    """The measure behind the methods of a `RateMetric`."""

    rate: Rate
    subject: str
    aggregate: Aggregate
    null: Null | None
    compared_to: ComparedTo = ""


def _single(
    ends: Callable[[Sequence[Pair], Cells, float], Pair],
    pairs: Sequence[Pair],
    cells: Cells,
    level: float,
) -> Span:
    low, high = ends(pairs, cells, level)
    return low.item(), high.item()


def _together(n: Floats, weights: Floats, totals: Floats) -> Pair:
    """Return the share of all rows by their weights, of as many rows as groups have in effect."""
    size = n.sum(keepdims=True)
    return size * divide(weights.sum(), totals.sum()), size


def _complement(ends: Ends, level: float) -> Span:
    low, high = ends(level)
    return 1.0 - high, 1.0 - low
