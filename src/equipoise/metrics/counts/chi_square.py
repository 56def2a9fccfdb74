"""Pearson's chi-square of many contingency tables at once, and intervals of effect sizes.

The mean of the estimates sqrt(χ² / (n·d)) lies above the true mean, by an amount that does not
shrink as classes are added while their interval does. What can be estimated without bias, from
tables of any sparseness, are sums of squared effects: χ² less its bias at the observed table (see
`equipoise.stats.association`). Both ends are bounds that such sums imply, whatever the effects.

**High end.** Classes whose effect stands well clear of its noise enter with their own estimate and
variance. For the others, mean V <= sqrt(mean V²) by Jensen's inequality, with the high end of
mean V² from a noncentral chi-squared distribution matched to the sum of their χ². Both are added
by their distances from the estimates (MOVER).

**Low end.** The larger of two bounds. Σ V >= sqrt(ΣV²) with one class, and by Hölder's inequality
Σ V >= (ΣV²)^{3/2} / (ΣV⁴)^{1/2}, an equality where effects are equal or 0, with the low end of ΣV²
and the high end of ΣV⁴. And the MOVER sum of the classes alone whose effect is beyond doubt after
Bonferroni's correction, all others being 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, chndtr, ndtri

from equipoise.core import Booleans, Floats, Integers
from equipoise.metrics.counts.table import Counts, Null
from equipoise.stats.association import Association, Plain, divisor
from equipoise.stats.threads import each

Formulation = Literal["separation", "sufficiency", "independence"]

# Cells that stay in the cache with what is made of them.
_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Layout:
    """How outcomes make up contingency tables.

    Attributes
    ----------
    order : ndarray of int64, shape (outcomes,)
        Outcomes sorted by stratum, then by label.
    column : ndarray of int64, shape (columns,)
        Where in `order` each column (a stratum with a label) begins.
    stratum : ndarray of int64, shape (strata,)
        Where in `column` each stratum begins.
    subject : ndarray of int64, shape (strata,)
        Class of each stratum; -1 for the whole table.
    groups : ndarray of int64
        Groups that are compared.
    """

    order: Integers
    column: Integers
    stratum: Integers
    subject: Integers
    groups: Integers

    @classmethod
    def of(cls, counts: Counts, formulation: Formulation) -> Layout:
        """Find the tables of a formulation, over the groups that are large enough."""
        stratum, label = {
            "separation": (counts.truth, counts.prediction),
            "sufficiency": (counts.prediction, counts.truth),
            "independence": (np.full_like(counts.truth, -1), counts.prediction),
        }[formulation]
        order = np.lexsort((label, stratum))
        strata, labels = stratum[order], label[order]
        new_stratum = np.diff(strata, prepend=-2) != 0
        column = np.flatnonzero(new_stratum | (np.diff(labels, prepend=-2) != 0))
        first = np.flatnonzero(new_stratum[column])
        groups = np.flatnonzero(counts.groups.usable)
        return cls(order, column, first, strata[column[first]], groups)

    def cells(self, tables: Floats) -> Floats:
        """Arrange tables (r, outcomes, groups) as (r, columns, groups compared)."""
        if len(self.groups) < tables.shape[2]:
            tables = tables[:, :, self.groups]
        if (np.diff(self.order) != 1).any():
            tables = tables[:, self.order]
        if len(self.column) < len(self.order):
            tables = np.add.reduceat(tables, self.column, axis=1)
        return tables

    @property
    def begins(self) -> Integers:
        """Where each stratum begins, and where the last one ends."""
        return np.append(self.stratum, len(self.column))

    def chunks(self, cells: Floats) -> Iterator[tuple[Layout, Floats]]:
        """Cut cells (r, columns, groups compared) between strata, each part with its layout."""
        begins, many = self.begins, max(1, cells.size // _CHUNK)
        near = np.searchsorted(begins, np.linspace(0, len(self.column), many + 1))
        for first, last in pairwise(np.unique(near).tolist()):
            part, strata = slice(begins[first], begins[last]), slice(first, last)
            layout = replace(
                self,
                column=self.column[part],
                stratum=self.stratum[strata] - part.start,
                subject=self.subject[strata],
            )
            yield layout, cells[:, part]

    def sum(self, columns: Floats) -> Floats:
        """Sum columns (r, columns, ...) within strata: (r, strata, ...)."""
        return np.add.reduceat(columns, self.stratum, axis=1)

    def spread(self, strata: Floats) -> Floats:
        """Repeat numbers of strata (r, strata) for their columns: (r, columns)."""
        return np.repeat(strata, np.diff(self.begins), axis=1)


Statistic = Literal[
    "cramers_v",
    "phi",
    "tschuprows_t",
    "cramers_v_corrected",
    "phi_corrected",
    "tschuprows_t_corrected",
]

NULL_OF: Mapping[Formulation, Null] = {
    "separation": "class",
    "sufficiency": "prediction",
    "independence": "rows",
}
# Each statistic's form without the correction for bias.
PLAIN: Mapping[str, Plain] = {
    f"{name}{end}": name for end in ("", "_corrected") for name in get_args(Plain)
}

# Below this, chi-square / n is the rounding of sums that are 1 in exact arithmetic: effect sizes
# under 4e-7 are 0, so that proportional tables give 0 however their groups are ordered.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class ChiSquare:
    """Chi-square and its ingredients, each of shape (r, strata).

    Attributes
    ----------
    layout : Layout
    chi2 : ndarray
        0 where the table has fewer than two rows or columns.
    n : ndarray
        Weight of the table after the filter.
    groups, labels : ndarray
        Non-empty rows and columns after the filter.
    groups_before, labels_before, n_before : ndarray
        The same before the filter.
    """

    layout: Layout
    chi2: Floats
    n: Floats
    groups: Floats
    labels: Floats
    groups_before: Floats
    labels_before: Floats
    n_before: Floats

    @property
    def df(self) -> Floats:
        """Degrees of freedom of the chi-square distribution, (groups - 1)(labels - 1)."""
        df: Floats = (self.groups - 1.0).clip(0.0) * (self.labels - 1.0).clip(0.0)
        return df

    def effect_size(self, statistic: Statistic) -> Floats:
        """Return the effect size; NaN where a table has one row or one column.

        The correction of Bergsma 2013 subtracts what independence gives from chi-square and from
        the sizes.
        """
        plain, less = PLAIN[statistic], self.n - 1.0
        groups, labels = self.groups - 1.0, self.labels - 1.0
        with np.errstate(invalid="ignore", divide="ignore"):
            corrected = plain != statistic
            if corrected:
                groups, labels = groups - groups**2 / less, labels - labels**2 / less
            smaller = np.minimum(groups, labels)
            size = divisor(plain, smaller, (groups * labels).clip(0.0))
            if corrected:
                squared = (self.chi2 / self.n - self.df / less).clip(0.0) / size
            else:
                squared = self.chi2 / (self.n * size)
            return np.where((self.df > 0) & (smaller > 0), np.sqrt(squared), np.nan)


def chi_square(
    counts: Counts, tables: Floats, min_expected: float, yates: bool, formulation: Formulation
) -> ChiSquare:
    """Pearson's chi-square of every stratum of every table.

    Parameters
    ----------
    counts : Counts
    tables : ndarray, shape (r, outcomes, groups)
    min_expected : float
        Columns whose smallest expected count over the non-empty groups is below this are
        dropped, once; 0 keeps all.
    yates : bool
        Continuity correction of tables that are 2×2, as `scipy.stats.chi2_contingency`.
    formulation : "separation", "sufficiency" or "independence"
    """
    layout = Layout.of(counts, formulation)
    chunks = layout.chunks(layout.cells(tables))
    found = each(lambda some: _fields(*some, min_expected, yates), chunks)
    columns = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    return ChiSquare(layout, *columns)


def _fields(layout: Layout, cells: Floats, min_expected: float, yates: bool) -> tuple[Floats, ...]:
    """Return the fields of `ChiSquare` for the strata of some cells."""
    labels, groups = cells.sum(axis=2), layout.sum(cells)
    n = groups.sum(axis=2)
    kept = _expected_enough(labels, groups, n, layout, min_expected)
    before = (_nonempty(groups), layout.sum((labels > 0).astype(np.float64)), n)
    if not kept.all():
        cells, labels = cells * kept[:, :, None], labels * kept
        groups = layout.sum(cells)
        n = groups.sum(axis=2)
    # Chi-square / n is the sum of O² / (R·C) - 1.
    inverse = np.divide(1.0, labels, out=np.zeros_like(labels), where=labels > 0)
    squares = cells * cells
    squares *= inverse[:, :, None]
    squares = layout.sum(squares)
    shares = np.divide(squares, groups, out=np.zeros_like(groups), where=groups > 0)
    excess = shares.sum(axis=2) - 1.0
    excess[excess < _ROUNDING] = 0.0
    rows, columns = _nonempty(groups), layout.sum(kept.astype(np.float64))
    if yates:
        # All four cells of a 2×2 table differ from expectation by the same amount: each moves up to
        # a half towards it.
        row_product = (n**2 - (groups**2).sum(axis=2)) / 2.0
        column_product = (n**2 - layout.sum(labels**2)) / 2.0
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.sqrt(excess * row_product * column_product) / n
            left = ((apart - 0.5).clip(0.0) / apart) ** 2
        excess = np.where((rows == 2) & (columns == 2) & (excess > 0), excess * left, excess)
    chi2 = np.where((rows > 1) & (columns > 1), n * excess, 0.0)
    return chi2, n, rows, columns, *before


def why_undefined(found: ChiSquare, formulation: Formulation, min_expected: float) -> list[str]:
    """Say of each stratum of one table why it would have no effect size."""
    label = "true class" if formulation == "sufficiency" else "predicted label"
    reasons = {
        "no rows in the groups that are compared": found.n_before == 0,
        "rows of one group only": found.groups_before < 2,
        f"every row has the same {label}": found.labels_before < 2,
        f"fewer than two {label}s have expected counts of {min_expected:g} or more": found.df == 0,
        "as many groups or labels as rows": np.ones_like(found.df, dtype=bool),
    }
    texts, holds = [*reasons], [one[0] for one in reasons.values()]
    return [texts[place] for place in np.argmax(holds, axis=0).tolist()]


def _nonempty(groups: Floats) -> Floats:
    nonempty: Floats = (groups > 0).sum(axis=2).astype(np.float64)
    return nonempty


def _expected_enough(
    labels: Floats, groups: Floats, n: Floats, layout: Layout, min_expected: float
) -> Booleans:
    """Whether each column stays: expected counts need only the sums of rows and columns."""
    occurs = labels > 0
    if min_expected <= 0:
        return occurs
    smallest = np.where(groups > 0, groups, np.inf).min(axis=2, initial=n.max(initial=0.0))
    # Products instead of quotients: exact for whole counts, also at the boundary.
    return occurs & (labels * layout.spread(smallest) >= min_expected * layout.spread(n))


def summaries(table: Floats, layout: Layout, design: Floats, *, min_expected: float) -> Association:
    """Summarise the tables whose chi-square is taken, those of like width in one pass.

    Parameters
    ----------
    table : ndarray, shape (outcomes, groups)
    layout : Layout
    design : ndarray, shape (strata,)
        Design effects that counts are divided by; NaN counts as 1.
    min_expected : float
        As in `chi_square`.
    """
    cells = layout.cells(table[None])
    labels, groups = cells.sum(axis=2), layout.sum(cells)
    kept = _expected_enough(labels, groups, groups.sum(axis=2), layout, min_expected)[0]
    tables = [
        cells[0, first:end][kept[first:end]] for first, end in pairwise(layout.begins.tolist())
    ]
    # Powers of two: little padding, and few passes.
    widths = np.array([1 << max(len(one) - 1, 0).bit_length() for one in tables])
    places, parts = [], []
    for width in np.unique(widths):
        here = np.flatnonzero(widths == width)
        padded = np.zeros((len(here), width, cells.shape[2]))
        for one, index in zip(padded, here.tolist(), strict=True):
            one[: len(tables[index])] = tables[index]
        divisor = np.where(np.isnan(design[here]), 1.0, design[here])
        places.append(here)
        parts.append(Association.of(padded / divisor[:, None, None]))
    return Association.concatenate(parts).take(np.argsort(np.concatenate(places)))


# Noise of a noncentrality, relative to it, below which its root is nearly without bias.
_CLEAR = 0.25

# Probability that chance alone puts any class beyond doubt.
_DOUBT = 0.0125

# Factor by which a bracket grows until it holds its root.
_WIDER = 1.5


@dataclass(frozen=True, eq=False)
class MeanEffect:
    """Ends of the interval of a mean of effect sizes, at any level.

    Attributes
    ----------
    tables : Association
        Summaries of the classes' tables, shape (classes,), each estimable, counts divided by the
        design effect where there is one.
    statistic : "cramers_v", "phi" or "tschuprows_t"
    inflation : float
        Variance of the mean relative to that of independent classes.

    References
    ----------
    Zou & Donner 2008, Statistics in Medicine 27, 1693-1702 (MOVER). Coverage: docs/coverage.md.
    """

    tables: Association
    statistic: Plain = "cramers_v"
    inflation: float = 1.0

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        if len(self.tables.n) == 1:
            ends = self.tables.interval(self.statistic, level)
            return float(ends[0][0]), float(ends[1][0])
        high = self._high(level)
        # The larger of two bounds, each with half of the probability of error.
        return min(self._low((1.0 + level) / 2.0), high), high

    @cached_property
    def _weight(self) -> Floats:
        """Squared effect size per noncentrality."""
        return 1.0 / (self.tables.n * self.tables.divisor(self.statistic))

    @cached_property
    def _largest(self) -> Floats:
        """Effect sizes of perfect associations."""
        return np.sqrt(self.tables.smaller / self.tables.divisor(self.statistic))

    @cached_property
    def _signal(self) -> Floats:
        return np.maximum(self.tables.unbiased, 0.0)

    @cached_property
    def _spread(self) -> Floats:
        """Standard deviations of the noncentralities, as estimated."""
        return np.sqrt(self.inflation * self.tables.unbiased_variance(self._signal))

    def _high(self, level: float) -> float:
        z = float(ndtri(0.5 + level / 2.0))
        clear = self._spread < _CLEAR * self._signal
        effect, noise = self._roots(clear)
        # The root is concave: less by this share on average.
        estimate = float((effect + noise**2 / (2.0 * effect)).sum())
        square = float(((z * noise) ** 2).sum())
        if not clear.all():
            rest = MeanEffect(self.tables.take(~clear), self.statistic, self.inflation)
            many = int((~clear).sum())
            middle = math.sqrt(many * max(rest._squares, 0.0))
            most = math.sqrt(many * rest._sum_at(max(rest._squares, 0.0) + rest._df, 1.0 - level))
            estimate, square = estimate + middle, square + (most - middle) ** 2
        return float(min(estimate + math.sqrt(square), self._largest.sum()) / len(clear))

    def _low(self, level: float) -> float:
        z, noise, weight = float(ndtri(0.5 + level / 2.0)), self._spread**2, self._weight
        squares = self._sum_at(max(self._squares + self._df, 0.0), 1.0 + level)
        bound = math.sqrt(squares)
        if squares > 0:
            # The high end of the sum of the effect sizes to the power of four.
            variance = weight**4 * (4.0 * self._signal**2 * noise + 2.0 * noise**2)
            high = float((weight**2 * (self.tables.unbiased**2 - noise)).sum())
            high = max(high + z * math.sqrt(float(variance.sum())), squares**2 / len(noise))
            bound = max(bound, math.sqrt(squares**3 / high))
        p = chdtrc(self.tables.df, self.tables.chi2 / self.inflation)
        effect, own = self._roots((p < _DOUBT / len(p)) & (self._signal > 0.0))
        doubtless = float(effect.sum()) - z * math.sqrt(float((own**2).sum()))
        return max(bound, doubtless) / len(weight)

    def _roots(self, kept: Booleans) -> tuple[Floats, Floats]:
        """Return effect sizes and their standard deviations (delta method) under a mask."""
        signal = self._signal[kept]
        effect = np.sqrt(self._weight[kept] * signal)
        return effect, effect * self._spread[kept] / signal / 2.0

    @cached_property
    def _squares(self) -> float:
        """The sum of squared effect sizes as estimated without bias; can be negative."""
        return float((self._weight * self.tables.unbiased).sum())

    @cached_property
    def _df(self) -> float:
        """Mean of the sum of weighted χ² beyond the true sum of squares."""
        return float((self._weight * self.tables.df).sum())

    def _sum_at(self, x: float, twice: float) -> float:
        """Return the true sum of squares at which P(X <= x) is half of `twice`, 0 without one.

        Tables more even than chance makes them do not say that the population is.
        """

        # Square roots are as smooth as effect sizes.
        def excess(root: float) -> float:
            return self._below(x, root * root) - twice / 2.0

        if excess(0.0) <= 0.0:
            return 0.0
        most = math.sqrt(float((self._largest**2).sum()))
        high = math.sqrt(max(x - self._df, 0.0) + math.sqrt(self._variance(0.0)))
        while high < most and excess(high) > 0.0:
            high *= _WIDER
        high = min(high, most)
        if excess(high) < 0.0:
            high = float(brentq(excess, 0.0, high, xtol=1e-10))
        return high * high

    def _below(self, x: float, total: float) -> float:
        """Return P(X <= x) at a true sum."""
        scale = self._variance(total) / (2.0 * self._df + 4.0 * total)
        return float(chndtr(x / scale, self._df / scale, total / scale))

    def _variance(self, total: float) -> float:
        """Return the larger variance of equal effects and of those that the estimates show."""
        weight = self._weight
        shares = [np.full_like(weight, 1.0 / len(weight))]
        shown = weight * self._signal
        if shown.any():
            shares.append(shown / shown.sum())
        squares = np.minimum(total * np.stack(shares), self._largest**2)
        variances = (self.tables.unbiased_variance(squares / weight) * weight**2).sum(axis=1)
        return self.inflation * float(variances.max())
