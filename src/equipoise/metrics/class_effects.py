"""What a contingency table per class says: effect size, interval, chance level, exclusions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, no_ends
from equipoise.core.finding import Excluded
from equipoise.metrics.building import (
    GroupColumns,
    PartColumns,
    against_each,
    excluded_of,
    group_columns,
    known_mean,
)
from equipoise.metrics.chi_square import (
    NULL_OF,
    PLAIN,
    ChiSquare,
    Formulation,
    Layout,
    Plain,
    Statistic,
    chi_square,
    contingency_tables,
    why_undefined,
)
from equipoise.metrics.counts import Counts, Null
from equipoise.metrics.effect_intervals import MeanEffect, summaries
from equipoise.metrics.measure import Draws
from equipoise.stats.association import Association
from equipoise.stats.intervals import wilson

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EffectTables:
    """Which contingency tables are measured, and with which statistic.

    Attributes
    ----------
    statistic, min_expected, yates, formulation
        See `equipoise.metrics.effect_sizes.effect_sizes`.
    """

    statistic: Statistic = "cramers_v"
    min_expected: float = 5.0
    yates: bool = False
    formulation: Formulation = "separation"

    def __post_init__(self) -> None:
        if self.statistic not in PLAIN:
            raise InputError(f"statistic={self.statistic!r}: expected one of {', '.join(PLAIN)}")
        if self.formulation not in NULL_OF:
            raise InputError(
                f"formulation={self.formulation!r}: expected one of {', '.join(NULL_OF)}"
            )
        if not (math.isfinite(self.min_expected) and self.min_expected >= 0):
            raise InputError(
                f"min_expected={self.min_expected}: expected a number of at least 0; 0 keeps all"
            )

    @property
    def null(self) -> Null:
        """Groups are exchanged within what the tables are conditioned on."""
        return NULL_OF[self.formulation]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters that decide the numbers."""
        return {
            "statistic": self.statistic,
            "min_expected": self.min_expected,
            "yates": self.yates,
            "formulation": self.formulation,
        }

    def chi_square(self, counts: Counts, tables: Floats) -> tuple[Layout, ChiSquare]:
        """Return the contingency tables' chi-squares, one per class.

        They are made once for all statistics and aggregates of the same draws.
        """
        return counts.once(tables, _ChiSquares(self.min_expected, self.yates, self.formulation))

    def numbers(self, counts: Counts, tables: Floats) -> tuple[Floats, Floats]:
        """Return effect sizes (r, classes), and what else `Classes` reads from each draw.

        Where rows are not independent that is chi-square over its degrees of freedom.
        """
        _, found = self.chi_square(counts, tables)
        values = found.effect_size(self.statistic)
        if counts.independent:
            return values, values[:, :0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return values, found.chi2 / found.df


@dataclass(frozen=True)
class _ChiSquares:
    """Makes chi-squares; equal ones make the same, which is how measures share them."""

    min_expected: float
    yates: bool
    formulation: Formulation

    def __call__(self, counts: Counts, tables: Floats) -> tuple[Layout, ChiSquare]:
        layout = Layout.of(counts, self.formulation)
        found = chi_square(tables, layout, min_expected=self.min_expected, yates=self.yates)
        return layout, found


@dataclass(frozen=True, eq=False)
class Classes:
    """Every class: its table, its interval, its chance level, and what did not enter.

    Attributes
    ----------
    tables : EffectTables
    counts : Counts
    draws : Draws
        An aggregate in column 0, then both parts of `EffectTables.numbers`.
    layout : Layout
    observed : ChiSquare
        Of the observed counts, shape (1, classes).
    design : ndarray, shape (classes,)
        Design effect: the mean of chi-square over its degrees of freedom under the null, 1 for
        independent rows (first-order correction of Rao and Scott 1981), NaN when unknown.
    """

    tables: EffectTables
    counts: Counts
    draws: Draws
    layout: Layout
    observed: ChiSquare
    design: Floats

    @classmethod
    def of(cls, tables: EffectTables, counts: Counts, draws: Draws) -> Classes:
        """Measure the observed table and read the design effects from the null draws."""
        layout, observed = tables.chi_square(counts, counts.observed)
        many = len(layout.subject)
        design = np.ones(many)
        if not counts.independent:
            null = draws.null
            design = np.full(many, np.nan) if null is None else known_mean(null[:, 1 + many :].T)
            design = np.where(design > 0, design, np.nan)
        return cls(tables, counts, draws, layout, observed, design)

    @property
    def values(self) -> Floats:
        """Effect sizes, shape (classes,); NaN where not estimable."""
        return self.draws.observed[1 : 1 + len(self.layout.subject)]

    @property
    def estimable(self) -> npt.NDArray[np.bool_]:
        """Which classes have an effect size."""
        return ~np.isnan(self.values)

    @property
    def method(self) -> str:
        """How intervals were made."""
        if np.isnan(self.design).all():
            return "none: rows are not independent; use Bootstrap() or Permutation()"
        inverted = (
            "inversion of noncentral chi-squares matched to the tables; corrects the upward bias "
            "of the value, which may lie above it"
        )
        if self.counts.independent:
            return inverted
        return f"{inverted}, scaled by the design effect of {self.counts.unit}s under permutation"

    @property
    def labels_dropped(self) -> Floats:
        """Labels that the filter of expected counts dropped, per class."""
        dropped: Floats = self.observed.labels_before[0] - self.observed.labels[0]
        return dropped

    @property
    def rows_dropped(self) -> Floats:
        """Weight of the rows that have a dropped label, per class."""
        dropped: Floats = self.observed.n_before[0] - self.observed.n[0]
        return dropped

    def mean_ends(self) -> Ends:
        """Return the interval of the mean over estimable classes."""
        used = self.estimable
        if not self.draws.intervals or not used.any() or np.isnan(self.design[used]).any():
            return no_ends
        return MeanEffect(self._summaries.take(used), self._plain, self._inflation())

    @property
    def _plain(self) -> Plain:
        return PLAIN[self.tables.statistic]

    @cached_property
    def _summaries(self) -> Association:
        """Summaries of all contingency tables, after the filter of expected counts."""
        found = contingency_tables(
            self.counts.table, self.layout, min_expected=self.tables.min_expected
        )
        return summaries(found, self.design)

    def _inflation(self) -> float:
        """How much units that span classes widen the spread of the mean."""
        if self.counts.independent or self.draws.null is None:
            return 1.0
        used = np.flatnonzero(self.estimable)
        alone = np.nanvar(self.draws.null[:, 1 + used], axis=0).sum()
        together = np.nanvar(self.draws.null[:, 0]) * len(used) ** 2
        return float(max(1.0, together / alone)) if alone > 0 else 1.0

    def table(self) -> pa.Table:
        """Return one part per class, as `equipoise.core.parts` has them."""
        many = len(self.layout.subject)
        low, high = self._intervals()
        against = against_each(self.draws, range(1, 1 + many), "higher")
        reasons = why_undefined(self.observed, self.tables.formulation, self.tables.min_expected)
        return PartColumns(
            metric=self.tables.statistic,
            subject=[
                self.counts.classes[i] if i >= 0 else "" for i in self.layout.subject.tolist()
            ],
            value=self.values,
            low=low,
            high=high,
            **against,
            n=self.observed.n_before[0],
            by_group=self._shares(),
            excluded=self._dropped(),
            reason=np.where(self.estimable, "", reasons).tolist(),
        ).table()

    def _intervals(self) -> tuple[Floats, Floats]:
        """Return every class's interval in one pass; NaN where values alone were asked for."""
        if not self.draws.intervals:
            unknown = np.full(len(self.values), np.nan)
            return unknown, unknown
        ends = self._summaries.interval(self._plain, self.draws.level)
        known = self.estimable & ~np.isnan(self.design)
        low, high = (np.where(known, end, np.nan) for end in ends)
        return low, high

    def _shares(self) -> GroupColumns:
        """Return each group's rows and share of wrong predictions, per class."""
        right = (self.counts.truth == self.counts.prediction)[:, None]
        every = replace(self.layout, groups=np.arange(len(self.counts.groups)))
        table = self.counts.observed
        totals, hits = (every.sum(every.cells(t))[0] for t in (table, table * right))
        wrong = (totals - hits).clip(0.0)
        # As many independent rows as would know the class's table equally well.
        design = self.design[:, None]
        low, high = wilson(wrong / design, totals / design, self.draws.level)
        return group_columns(self.counts.groups, wrong, totals, (low, high))

    @property
    def _too_few(self) -> str:
        return f"smallest expected count below {self.tables.min_expected:g}"

    def _dropped(self) -> list[tuple[Excluded, ...]]:
        labels, rows = (np.rint(one).tolist() for one in (self.labels_dropped, self.rows_dropped))
        first, second = f"labels, {self._too_few}", f"rows with such a label, {self._too_few}"
        return [
            (Excluded(first, int(label)), Excluded(second, int(row))) if label else ()
            for label, row in zip(labels, rows, strict=True)
        ]

    def excluded(self) -> dict[str, int]:
        """Return what did not enter an aggregate: rows, groups, dropped labels, classes."""
        found = excluded_of(self.counts.groups, dict(self.counts.excluded))
        if self.labels_dropped.any():
            found[f"labels, {self._too_few}"] = round(self.labels_dropped.sum())
            found[f"rows with such a label, {self._too_few}"] = round(self.rows_dropped.sum())
        lost = int((~self.estimable).sum())
        if lost:
            found["classes not estimable"] = lost
        return found
