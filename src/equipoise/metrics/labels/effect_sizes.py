"""How differently groups are mistaken: effect sizes per class, their mean and SkewSize.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import chdtrc, chndtr, ndtri

from equipoise.core import (
    Aggregate,
    Booleans,
    Ends,
    Estimate,
    Fact,
    Fields,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    Span,
    floats,
    nans,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.metrics.building import (
    UNTESTED,
    count_estimate,
    ends_of,
    excluded_of,
    explain_undefined,
    group_columns,
    nan_mean,
    parts_table,
    strictest_null,
    too_small,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.labels.part import PartMetric
from equipoise.metrics.labels.table import Adder, Counts, Null
from equipoise.metrics.measure import (
    DEFAULT,
    Draws,
    Measure,
    Topic,
    measure,
    measure_rows,
    measured,
)
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, BANDS, COHEN, SPECS, MetricSpec
from equipoise.stats.association import Association, Plain, divisor
from equipoise.stats.chance import band
from equipoise.stats.draws import TableSampler
from equipoise.stats.intervals import divide, where, wilson
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed
from equipoise.stats.threads import each

Formulation = Literal["separation", "sufficiency", "independence"]

# Cells that stay in the cache with what is made of them.
_CHUNK = 1 << 18


@record
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

    def chunks(self, cells: Floats, margins: Floats) -> Iterator[tuple[Layout, Floats, Floats]]:
        """Cut cells (r, columns, groups compared) between strata, each part with its layout."""
        begins, n_chunks = self.begins, cells.size // _CHUNK
        if n_chunks < 2:
            yield self, cells, margins
            return
        cuts = np.searchsorted(begins, np.linspace(0, len(self.column), n_chunks + 1))
        for first, last in pairwise(np.unique(cuts).tolist()):
            part, strata = slice(begins[first], begins[last]), slice(first, last)
            layout = replace(
                self,
                column=self.column[part],
                stratum=self.stratum[strata] - part.start,
                subject=self.subject[strata],
            )
            yield layout, cells[:, part], margins[:, part]

    def sum(self, columns: Floats) -> Floats:
        """Sum columns (r, columns, ...) within strata: (r, strata, ...)."""
        return self._adder.sum(columns)

    @cached_property
    def _adder(self) -> Adder:
        strata = np.arange(len(self.stratum))
        return Adder.of(strata.repeat(np.diff(self.begins)), len(strata))

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


# Weights are 0 or far above.
_TINY = 1e-300


@record
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

    def effect_sizes(self, statistic: Statistic) -> Floats:
        """Return the effect sizes, made once for all that summarise them."""
        if statistic not in self._cache:
            self._cache[statistic] = self.effect_size(statistic)
        return self._cache[statistic]

    @cached_property
    def _cache(self) -> dict[Statistic, Floats]:
        return {}

    def effect_size(self, statistic: Statistic) -> Floats:
        """Return the effect size; NaN where a table has one row or one column.

        The correction of Bergsma 2013 subtracts what independence gives from chi-square and from
        the sizes.
        """
        plain, less = PLAIN[statistic], self.n - 1.0
        groups, labels = self.groups - 1.0, self.labels - 1.0
        with unwarned():
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
    layout = counts.once(counts.observed, _layout, formulation)
    margins, is_draw = tables, tables is not counts.observed
    if is_draw and counts.exchanged == NULL_OF[formulation] and counts.groups.usable.all():
        observed = counts.once(counts.observed, chi_square, min_expected, yates, formulation)
        # Without a column that is dropped, draws have the observed sums of rows, too.
        margins = counts.observed if (observed.labels == observed.labels_before).all() else tables
    chunks = layout.chunks(layout.cells(tables), layout.cells(margins))
    chunk_fields = each(lambda chunk: _fields(*chunk, min_expected, yates), chunks)
    columns = (np.concatenate(parts, axis=1) for parts in zip(*chunk_fields, strict=True))
    return ChiSquare(layout, *columns)


def _layout(counts: Counts, _: Floats, formulation: Formulation) -> Layout:
    return Layout.of(counts, formulation)


def _fields(
    layout: Layout, cells: Floats, margins: Floats, min_expected: float, yates: bool
) -> tuple[Floats, ...]:
    """Return the fields of `ChiSquare` for the strata of some cells.

    `margins` are cells with the same sums of rows and columns: one table may stand for all.
    """
    labels, groups = margins.sum(axis=2), layout.sum(margins)
    n = groups.sum(axis=2)
    retained = _expected_enough(labels, groups, n, layout, min_expected)
    before = (_nonempty(groups), layout.sum(floats(labels > 0)), n)
    if len(margins) == len(cells) and not retained.all():
        cells, labels = cells * retained[:, :, None], labels * retained
        groups = layout.sum(cells)
        n = groups.sum(axis=2)
    # Chi-square / n is the sum of O² / (R·C) - 1.
    squares = cells * cells
    squares /= np.maximum(labels, _TINY)[:, :, None]
    squares = layout.sum(squares)
    squares /= np.maximum(groups, _TINY)
    excess = squares.sum(axis=2) - 1.0
    excess[excess < _ROUNDING] = 0.0
    rows, columns = _nonempty(groups), layout.sum(floats(retained))
    if yates:
        # All four cells of a 2×2 table differ from expectation by the same amount: each moves up to
        # a half towards it.
        row_product = (n**2 - (groups**2).sum(axis=2)) / 2.0
        column_product = (n**2 - layout.sum(labels**2)) / 2.0
        with unwarned():
            deviation = np.sqrt(excess * row_product * column_product) / n
            shrinkage = ((deviation - 0.5).clip(0.0) / deviation) ** 2
        excess = np.where((rows == 2) & (columns == 2) & (excess > 0), excess * shrinkage, excess)
    chi2 = np.where((rows > 1) & (columns > 1), n * excess, 0.0)
    return chi2, n, rows, columns, *before


def why_undefined(
    chi_squares: ChiSquare, formulation: Formulation, min_expected: float
) -> list[str]:
    """Say of each stratum of one table why it would have no effect size."""
    label = "true class" if formulation == "sufficiency" else "predicted label"
    reasons = {
        "no rows in the groups that are compared": chi_squares.n_before == 0,
        "rows of one group only": chi_squares.groups_before < 2,
        f"every row has the same {label}": chi_squares.labels_before < 2,
        f"fewer than two {label}s have expected counts of {min_expected:g} or more": chi_squares.df
        == 0,
        "as many groups or labels as rows": np.ones_like(chi_squares.df, dtype=bool),
    }
    texts, holds = [*reasons], [mask[0] for mask in reasons.values()]
    return [texts[place] for place in np.argmax(holds, axis=0).tolist()]


def _nonempty(groups: Floats) -> Floats:
    nonempty: Floats = floats((groups > 0).sum(axis=2))
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
    """Summarise contingency tables, tables of similar width in one pass.

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
    retained = _expected_enough(labels, groups, groups.sum(axis=2), layout, min_expected)[0]
    tables = [
        cells[0, first:end][retained[first:end]] for first, end in pairwise(layout.begins.tolist())
    ]
    # Powers of two: little padding, and few passes.
    widths = np.array([1 << max(len(table) - 1, 0).bit_length() for table in tables])
    places, parts = [], []
    for width in np.unique(widths):
        same_width = np.flatnonzero(widths == width)
        padded = np.zeros((len(same_width), width, cells.shape[2]))
        for padded_table, index in zip(padded, same_width.tolist(), strict=True):
            padded_table[: len(tables[index])] = tables[index]
        divisor = np.where(np.isnan(design[same_width]), 1.0, design[same_width])
        places.append(same_width)
        parts.append(Association.of(padded / divisor[:, None, None]))
    return Association.concatenate(parts).take(np.argsort(np.concatenate(places)))


# Noise of a noncentrality, relative to it, below which its root is nearly without bias.
_CLEAR = 0.25

# Probability that chance alone puts any class beyond doubt.
_DOUBT = 0.0125

# Factor by which a bracket grows until it holds its root.
_WIDER = 1.5
# Width of the bracket of a root that is precise enough.
_EXACT = 1e-10


@record
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
    Zou & Donner 2008, Statistics in Medicine 27, 1693-1702 (MOVER). Coverage: docs/calibration.
    """

    tables: Association
    statistic: Plain = "cramers_v"
    inflation: float = 1.0

    def __call__(self, level: float) -> Span:
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
            unclear = MeanEffect(self.tables.take(~clear), self.statistic, self.inflation)
            n_unclear = tally(~clear)
            middle = math.sqrt(n_unclear * max(unclear._squares, 0.0))
            high_end = math.sqrt(
                n_unclear * unclear._sum_at(max(unclear._squares, 0.0) + unclear._df, 1.0 - level)
            )
            estimate, square = estimate + middle, square + (high_end - middle) ** 2
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
        effect, effect_sd = self._roots((p < _DOUBT / len(p)) & (self._signal > 0.0))
        doubtless = float(effect.sum()) - z * math.sqrt(float((effect_sd**2).sum()))
        return max(bound, doubtless) / len(weight)

    def _roots(self, mask: Booleans) -> tuple[Floats, Floats]:
        """Return effect sizes and their standard deviations (delta method) under a mask."""
        signal = self._signal[mask]
        effect = np.sqrt(self._weight[mask] * signal)
        return effect, effect * self._spread[mask] / signal / 2.0

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
        largest = math.sqrt(float((self._largest**2).sum()))
        high = math.sqrt(max(x - self._df, 0.0) + math.sqrt(self._variance(0.0)))
        while high < largest and excess(high) > 0.0:
            high *= _WIDER
        low, high = 0.0, min(high, largest)
        crossed = excess(high) < 0.0
        while crossed and high - low > _EXACT:
            middle = (low + high) / 2.0
            if excess(middle) > 0.0:
                low = middle
            else:
                high = middle
        return high * high

    def _below(self, x: float, total: float) -> float:
        """Return P(X <= x) at a true sum."""
        scale = self._variance(total) / (2.0 * self._df + 4.0 * total)
        return float(chndtr(x / scale, self._df / scale, total / scale))

    def _variance(self, total: float) -> float:
        """Return the larger variance: of equal effects, or of the estimated effects."""
        weight = self._weight
        shares = [np.full_like(weight, 1.0 / len(weight))]
        estimated = weight * self._signal
        if estimated.any():
            shares.append(estimated / estimated.sum())
        squares = np.minimum(total * np.stack(shares), self._largest**2)
        variances = (self.tables.unbiased_variance(squares / weight) * weight**2).sum(axis=1)
        return self.inflation * float(variances.max())


NO_CHANCE = (
    "SkewSize is descriptive: it describes the shape of the effect sizes, not their level, so "
    "it has no chance level to compare with; the value of chance tables is a parameter"
)
NO_TEST = (
    "SkewSize is descriptive: the models' values are set side by side, their difference is not "
    "tested, and its interval is a resampling spread"
)
# Spread of effect sizes, relative to the largest, that is rounding: all are equal.
_EQUAL = 1e-12


_effect = partial(
    MetricSpec,
    kinds=("predictions",),
    group_label="share of wrong predictions",
    groups_harm="higher",
    sentence="{direction}: {title}{model} is {value}{groups}.",
    pair_clause="the mistakes of {worse}{of} depend more on {groups}: {label}",
    within_class="always",
    threshold=0.1,
    threshold_reason=COHEN,
    bands=BANDS,
    reference="Albuquerque et al. 2024, SkewSize, eq. 3 and appendix D.3; Cramér 1946, chapter 21",
    direction="Higher: groups of one class get different labels.",
    chance="above 0, more so for few rows and many labels",
)
_table = partial(
    _effect,
    interval=(
        "inversion of the noncentral χ²; divided by the design effect for units of repeated rows"
    ),
    null="groups are exchangeable within each true class; of a table, over all rows",
)
_corrected = partial(
    _table,
    reference="Bergsma 2013",
    chance="near 0",
    interval="that of the statistic without correction",
)


@metric(
    _effect(
        name="effect_sizes",
        range_note="φ up to sqrt(min(groups, labels) − 1)",
        definition=(
            "Cramér's V (or another statistic) of group by predicted label per true class. The "
            "value is the mean over classes that can be estimated."
        ),
        interval="noncentral χ² per class; inversion of the expected mean",
        null=(
            "groups are exchangeable within each true class; by formulation, within each predicted "
            "label or over all rows"
        ),
    )
)
def effect_sizes(  # noqa: PLR0913 - one keyword for each choice
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    statistic: Statistic = "cramers_v",
    min_expected: float = 5.0,
    yates: bool = False,
    formulation: Formulation = "separation",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean over classes of how strongly the predicted label depends on the group.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    statistic : str
        "cramers_v", "phi", "tschuprows_t", or one of them with "_corrected" (Bergsma 2013).
    min_expected : float
        Per class, drop labels whose smallest expected count is below this; 0 keeps all.
    yates : bool
        Continuity correction of 2×2 tables.
    formulation : "separation", "sufficiency" or "independence"
        One table per true class, per predicted label, or of all rows.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        At least 0, higher is worse; V and T are at most 1. Chance: groups permuted within the
        true class, within the predicted label, or over all rows. `.by` has each class with its
        interval, chance level and shares of wrong predictions; NaN with one label or one group.

    Raises
    ------
    InputError
        When shapes do not fit, no row is complete, or a parameter is none of the above.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", eq. 3 and appendix D.3.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender, true = ["women", "men"] * 60, ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.effect_sizes(true, pred, gender)
    <effect_sizes 0.707 [0.495, 0.813]; chance 0.102, p ≤ 0.001, n = 120 in 2 groups>
    """
    effects = EffectSizes(statistic, min_expected, yates, formulation)
    return measure_rows(
        [effects], y_true, y_pred, groups, weights=weights, units=units,
        resampling=resampling, rng=rng,
    )[0]  # fmt: skip


@measured("effect_sizes", Topic.MISTAKES)
@dataclass(frozen=True)
class EffectSizes(Measure):
    """The measure behind `effect_sizes`; its parameters are documented there."""

    resamples = False
    by_class = of_mistakes = True

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
    def null(self) -> Null:  # type: ignore[override]
        """Stratum within which groups are exchanged."""
        return NULL_OF[self.formulation]

    def aggregate(self, values: Floats) -> Floats:
        """Return the mean of effect sizes (r, classes) over classes, shape (r,)."""
        return nan_mean(values)

    def facts(self, counts: Counts) -> list[Fact]:
        """Return the mean, then the statistic of each class."""
        subjects = counts.once(counts.observed, _layout, self.formulation).subject
        classes = [counts.classes[place] for place in subjects.tolist() if place >= 0]
        by_class = [Fact(self.statistic, Aggregate.VALUE, name) for name in classes]
        return [Fact("effect_size_mean", Aggregate.VALUE), *by_class]

    def reads_classes_apart(self, counts: Counts) -> bool:  # noqa: ARG002 - the form of all
        """Tables of true classes stand alone."""
        return self.formulation == "separation"

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the aggregate of each table, then the effect sizes of its classes.

        Where rows are not independent, then chi-square over its degrees of freedom, too.
        """
        chi_squares = self.chi_square(counts, tables)
        values = chi_squares.effect_sizes(self.statistic)
        numbers = [self.aggregate(values)[:, None], values]
        if not counts.independent:
            numbers.append(divide(chi_squares.chi2, chi_squares.df))
        return np.concatenate(numbers, axis=1)

    @property
    def params(self) -> Fields:
        """The parameters that decide the numbers."""
        return asdict(self)

    def chi_square(self, counts: Counts, tables: Floats) -> ChiSquare:
        """Return the contingency tables' chi-squares, one per class.

        They are made once for all statistics and aggregates of the same draws.
        """
        return counts.once(tables, chi_square, self.min_expected, self.yates, self.formulation)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        classes = Classes(self, counts, draws)
        return count_estimate(
            SPECS["effect_sizes"],
            counts,
            draws,
            classes.method,
            ends=classes.mean_ends(),
            params=self.params | {"classes": tally(classes.estimable)},
            by=classes.table,
            excluded=classes.excluded(),
            reason=explain_undefined(draws.observed[0], "no class can be estimated; see the parts"),
        )


@record
class Classes:
    """Every class: its table, its interval, its chance level, and what did not enter.

    Attributes
    ----------
    tables : EffectSizes
    counts : Counts
    draws : Draws
        Of the numbers of `EffectSizes`.
    """

    tables: EffectSizes
    counts: Counts
    draws: Draws

    @cached_property
    def chi_squares(self) -> ChiSquare:
        """Chi-squares of the observed counts, (1, classes)."""
        return self.tables.chi_square(self.counts, self.counts.observed)

    @cached_property
    def design(self) -> Floats:
        """Design effect of each class, NaN when unknown.

        The mean of chi-square over its degrees of freedom under the null, 1 for independent rows
        (first-order correction of Rao and Scott 1981).
        """
        n_classes = len(self.values)
        if self.counts.independent:
            return np.ones(n_classes)
        designs = [nan_mean(null[:, 1 + n_classes :].T) for null in self.draws.nulls]
        design = np.fmax.reduce([nans(n_classes), *designs])
        return np.where(design > 0, design, np.nan)

    @cached_property
    def values(self) -> Floats:
        """Effect sizes, shape (classes,); NaN where not estimable."""
        return self.draws.observed[1 : 1 + len(self.chi_squares.layout.subject)]

    @cached_property
    def estimable(self) -> Booleans:
        """Which classes have an effect size."""
        return ~np.isnan(self.values)

    @property
    def method(self) -> str:
        """How intervals were made."""
        if np.isnan(self.design).all():
            return "none: rows are not independent; add bootstrap replicates or permutations"
        inverted = (
            "inversion of noncentral chi-squares matched to the tables; corrects the upward bias "
            "of the value, which may be above it"
        )
        if self.counts.independent:
            return inverted
        return f"{inverted}, scaled by the design effect of {self.counts.unit}s under permutation"

    @cached_property
    def dropped(self) -> dict[str, Floats]:
        """Labels and rows that the filter of expected counts dropped, by class."""
        chi_squares, small = (
            self.chi_squares,
            f"smallest expected count below {self.tables.min_expected:g}",
        )
        return {
            f"labels, {small}": chi_squares.labels_before[0] - chi_squares.labels[0],
            f"rows with a label in too few rows, {small}": chi_squares.n_before[0]
            - chi_squares.n[0],
        }

    def mean_ends(self) -> Ends:
        """Return the interval of the mean over estimable classes."""
        used = self.estimable
        if not self.draws.intervals or not used.any() or np.isnan(self.design[used]).any():
            return no_ends
        inflation = 1.0
        for null in () if self.counts.independent else self.draws.nulls:
            # How much units that span classes widen the spread of the mean.
            alone = np.nanvar(null[:, 1 + np.flatnonzero(used)], axis=0).sum()
            together = np.nanvar(null[:, 0]) * used.sum() ** 2
            inflation = float(max(inflation, together / alone)) if alone > 0 else inflation
        return MeanEffect(self._summaries.take(used), PLAIN[self.tables.statistic], inflation)

    @cached_property
    def _summaries(self) -> Association:
        """Summaries of all contingency tables, after the filter of expected counts."""
        least = self.tables.min_expected
        return summaries(
            self.counts.table, self.chi_squares.layout, self.design, min_expected=least
        )

    def table(self) -> pa.Table:
        """Return one part per class, as `equipoise.core.parts` has them."""
        low = high = corrected = nans(len(self.values))
        if self.draws.nulls and self.tables.statistic in get_args(Plain):
            # What the squared values exceed chance by.
            places = range(1, 1 + len(self.values))
            columns = [strictest_null(self.draws, place, "higher") for place in places]
            chance = nan_mean(floats(columns) ** 2)
            corrected = np.sqrt(np.maximum(self.values**2 - chance, 0.0))
        if self.draws.intervals:
            # Every class's interval in one pass.
            has_interval = self.estimable & ~np.isnan(self.design)
            ends = self._summaries.interval(PLAIN[self.tables.statistic], self.draws.level)
            low, high = where(has_interval, *ends)
        names = self.counts.classes
        reasons = why_undefined(self.chi_squares, self.tables.formulation, self.tables.min_expected)
        return parts_table(
            self.tables.statistic,
            [
                names[place] if place >= 0 else ""
                for place in self.chi_squares.layout.subject.tolist()
            ],
            self.draws,
            1,
            (low, high),
            by_group=self._shares(),
            n=self.chi_squares.n_before[0],
            excluded=self.dropped,
            reason=np.where(self.estimable, "", reasons).tolist(),
            corrected=corrected,
        )

    def _shares(self) -> pa.ListArray:
        """Return each group's rows and share of wrong predictions, per class."""
        groups, table = self.counts.groups, self.counts.observed
        all_groups = replace(self.chi_squares.layout, groups=np.arange(len(groups)))
        right = (self.counts.truth == self.counts.prediction)[:, None]
        totals = all_groups.sum(all_groups.cells(table))[0]
        hits = all_groups.sum(all_groups.cells(table * right))[0]
        wrong = (totals - hits).clip(0.0)
        # As many independent rows as would know the class's table equally well.
        design = self.design[:, None]
        ends = wilson(wrong / design, totals / design, self.draws.level)
        note = np.select([totals == 0, ~groups.usable], ["no rows", too_small(groups)], "")
        return group_columns(groups, totals, divide(wrong, totals), *ends, note)

    def excluded(self) -> dict[str, int]:
        """Return what did not enter an aggregate: rows, groups, dropped labels, classes."""
        dropped = {reason: round(counts.sum()) for reason, counts in self.dropped.items()}
        excluded = excluded_of(self.counts.groups, self.counts.excluded)
        return excluded | dropped | {"classes not estimable": tally(~self.estimable)}


effect_size_mean = metric(
    _effect(
        name="effect_size_mean",
        profile="mean_effect_size",
        aliases=("mean Cramér's V",),
        title="Mean effect size",
        range_note="φ up to sqrt(min(groups, labels) − 1)",
        definition="Mean of the effect sizes over classes that can be estimated.",
        interval="inversion of the expected mean, over equal and uneven effects",
        null="that of the effect sizes",
    )
)(PartMetric("effect_size_mean", effect_sizes, of_whole=True))


@metric(
    MetricSpec(
        name="skewsize",
        profile="skewsize",
        title="SkewSize",
        kinds=("predictions",),
        range=ANY_NUMBER,
        harm="lower",
        definition=(
            "Skewness g1 = m3 / m2^(3/2) of the effect sizes of all classes. It ignores their "
            "level, so read it together with their mean."
        ),
        direction="Lower: many classes have large effects. Descriptive.",
        chance="none: descriptive; the value for exchangeable groups is among the parameters",
        interval="resampling spread: bootstrap percentiles, no confidence interval",
        reference="Albuquerque et al. 2024, SkewSize, eq. 4 with the 1/n of its listing and tables",
        errata=(
            "Eq. 4 as printed lacks the 1/n of the moments and gives g1/sqrt(n). The listing and "
            "the published values are g1."
        ),
    )
)
def skewsize(  # noqa: PLR0913 - one keyword for each choice
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    statistic: Statistic = "cramers_v",
    min_expected: float = 5.0,
    yates: bool = False,
    formulation: Formulation = "separation",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Fisher-Pearson skewness of the effect sizes of all classes.

    Parameters
    ----------
    y_true, y_pred, groups, statistic, min_expected, yates, formulation
        As in `effect_sizes`.
    weights, units, resampling, rng
        As in `effect_sizes`; only Bootstrap gives a resampling spread.

    Returns
    -------
    Estimate
        Any real number; lower is worse (many classes with large effects, few with small ones).
        Descriptive: no p-value, no chance level, and a resampling spread in place of an interval.
        `.params` has "mean_effect_size", "band_shares", and "chance_skewsize", "chance_low" and
        "chance_high" of permuted groups. `.by` is that of `effect_sizes`. NaN below three classes.

    Raises
    ------
    InputError
        When shapes do not fit, no row is complete, or a parameter is none of those documented.

    Notes
    -----
    Equation 4 as printed is g1 / sqrt(n). The published values are g1, as computed here.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> true, gender = rng.choice(list("abcd"), 800), rng.choice(["women", "men"], 800)
    >>> wrong = (true == "a") & (gender == "women") & (rng.random(800) < 0.5)
    >>> pred = np.where(wrong, "b", np.where(rng.random(800) < 0.1, "c", true))
    >>> m.skewsize(true, pred, gender)
    <skewsize 0.707 [0.529, 0.707]; n = 800 in 2 groups>
    """
    skewness = SkewSize(statistic, min_expected, yates, formulation)
    return measure_rows(
        [skewness], y_true, y_pred, groups, weights=weights, units=units,
        resampling=resampling, rng=rng,
    )[0]  # fmt: skip


@measured("skewsize", Topic.MISTAKES)
@dataclass(frozen=True)
class SkewSize(EffectSizes):
    """The measure behind `skewsize`: the same tables, with another aggregate."""

    resamples = True
    by_class = False
    no_test = NO_TEST

    def facts(self, counts: Counts) -> list[Fact]:  # noqa: ARG002 - the form of all measures
        """Return the skewness alone."""
        return [Fact("skewsize", Aggregate.VALUE)]

    def aggregate(self, values: Floats) -> Floats:
        """Return the skewness over classes."""
        return skewness(values)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        classes = Classes(self, counts, draws)
        # Replicates may have classes enough where the data have not: no number, no interval.
        estimable, n_estimable, reason = (
            not np.isnan(draws.observed[0]),
            tally(classes.estimable),
            "",
        )
        if n_estimable < 3:
            reason = (
                f"effect sizes of {n_estimable} classes can be estimated; skewness needs at least 3"
            )
        elif not estimable:
            reason = "all effect sizes are equal"
        method = "none: a resampling spread needs Bootstrap()"
        if draws.boot is not None:
            method = (
                f"resampling spread: percentiles of {len(draws.boot)} bootstrap replicates over "
                f"{counts.unit}s; not a confidence interval"
            )
        return count_estimate(
            SPECS["skewsize"],
            counts,
            draws,
            method,
            interval_kind=IntervalKind.SPREAD,
            ends=ends_of(draws.boot, 0) if estimable else no_ends,
            chance_test=UNTESTED,
            no_chance=NO_CHANCE,
            params=self.params | _context(classes, draws),
            by=classes.table,
            excluded=classes.excluded(),
            reason=reason,
        )


def skewness(values: Floats) -> Floats:
    """Return g1 = m3 / m2^(3/2) of each row, central moments with 1/n.

    Parameters
    ----------
    values : ndarray, shape (r, classes)
        NaN entries are left out. NaN is returned where fewer than three are left or all are
        equal, as `scipy.stats.skew` does for equal ones.
    """
    defined = ~np.isnan(values)
    n_defined = defined.sum(axis=1)
    filled = np.where(defined, values, 0.0)
    with unwarned():
        deviations = np.where(defined, filled - nan_mean(values)[:, None], 0.0)
        # Scaled, so that powers of small effect sizes keep their digits.
        widest = np.abs(deviations).max(axis=1, initial=0.0)
        scaled = deviations / widest[:, None]
        square = scaled * scaled
        second, third = square.sum(axis=1) / n_defined, (square * scaled).sum(axis=1) / n_defined
        g1 = third / second**1.5
    uneven = widest > _EQUAL * np.abs(filled).max(axis=1, initial=0.0)
    return np.where((n_defined >= 3) & uneven, g1, np.nan)


def _context(classes: Classes, draws: Draws) -> Fields:
    """Return what SkewSize must be read with."""
    n_estimable = tally(classes.estimable)
    null = strictest_null(draws, 0, SPECS["skewsize"].value_harm)
    chance = band(null, weights=draws.weights)
    numbers = {
        "mean_effect_size": float(nan_mean(classes.values)),
        "chance_skewsize": chance.mean,
        "chance_low": chance.low,
        "chance_high": chance.high,
    }
    finite = classes.values[np.isfinite(classes.values)]
    places = np.searchsorted([*BANDS.values()], finite, side="right") - 1
    banded = np.bincount(places, minlength=len(BANDS)).tolist()
    return {
        "classes": n_estimable,
        "band_shares": {
            name: count / n_estimable if n_estimable else None
            for name, count in zip(BANDS, banded, strict=True)
        },
        **{name: None if math.isnan(number) else number for name, number in numbers.items()},
    }


MEV_SWEEP = (0.0, 1.0, 2.0, 5.0, 10.0)
"""Minimum expected counts of a sweep."""


def mev_sweep(
    counts: Counts,
    values: Sequence[float] = MEV_SWEEP,
    *,
    statistic: Statistic = "cramers_v",
    yates: bool = False,
    formulation: Formulation = "separation",
) -> pa.Table:
    """Return the aggregates under several minimum expected counts.

    Parameters
    ----------
    counts : Counts
    values : sequence of float
        Minimum expected counts.
    statistic, yates, formulation
        As in `effect_sizes`.

    Returns
    -------
    pyarrow.Table
        One row per value: min_expected, skewsize, mean_effect_size, classes (estimable),
        not_estimable, columns_dropped, rows_dropped.

    Raises
    ------
    InputError
        When a value is negative.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", Table 7.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.mev_sweep(m.count(true, pred, gender)).num_rows
    5
    """
    rows = []
    for value in values:
        effects = EffectSizes(statistic, float(value), yates, formulation)
        chi_squares = effects.chi_square(counts, counts.observed)
        sizes = chi_squares.effect_sizes(statistic)
        n_estimable = tally(~np.isnan(sizes))
        rows.append(
            {
                "min_expected": effects.min_expected,
                "skewsize": float(skewness(sizes)[0]),
                "mean_effect_size": float(nan_mean(sizes)[0]),
                "classes": n_estimable,
                "not_estimable": sizes.size - n_estimable,
                "columns_dropped": round((chi_squares.labels_before - chi_squares.labels).sum()),
                "rows_dropped": round((chi_squares.n_before - chi_squares.n).sum()),
            }
        )
    return pa.Table.from_pylist(rows)


def dropped_columns(
    counts: Counts,
    min_expected: float,
    *,
    statistic: Statistic = "cramers_v",
    yates: bool = False,
    formulation: Formulation = "separation",
) -> dict[str, tuple[int, int]]:
    """Return how many labels, and rows with them, the minimum expected count drops, by class."""
    effects = EffectSizes(statistic, float(min_expected), yates, formulation)
    chi_squares = effects.chi_square(counts, counts.observed)
    labels = chi_squares.labels_before[0] - chi_squares.labels[0]
    rows = chi_squares.n_before[0] - chi_squares.n[0]
    return {
        counts.classes[place] if place >= 0 else "": (round(labels[index]), round(rows[index]))
        for index, place in enumerate(chi_squares.layout.subject.tolist())
    }


@record
class TableEffect(Form):
    """An effect size of a table of counts as a metric.

    Those that are `corrected` have 0 passed from above as often as from below under independence
    (Bergsma 2013); their interval is that of the uncorrected one.

    Attributes
    ----------
    statistic : str
        As of `effect_sizes`.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.cramers_v([[30, 10], [12, 28]])
    <cramers_v 0.451 [0.236, 0.633]; chance 0.088, p ≤ 0.001, n = 80 in 2 groups>
    >>> round(m.cramers_v_corrected([[30, 10], [12, 28]], resampling=None).value, 3)
    0.439
    """

    statistic: Statistic

    def __call__(
        self,
        table: ArrayLike,
        *,
        yates: bool = False,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Estimate:
        """Return the effect size of a table.

        Parameters
        ----------
        table : array-like, shape (groups, labels)
            Counts; empty rows and columns are dropped.
        yates : bool
            Continuity correction where the table is 2×2, as `scipy.stats.chi2_contingency`.
        resampling, rng
            See `equipoise.metrics`.

        Returns
        -------
        Estimate
            At least 0, higher is a stronger association. Interval: inversion of a noncentral
            chi-square matched to the table (`equipoise.stats.Association`), which can reach 0 and
            is not [0, 0] where χ² is 0; without continuity correction. Chance: tables with the
            same margins. `.params` has "chi2", "df" and "chance_chi2", the exact mean
            n / (n - 1) · df under the null. NaN where only one group or one label is not empty.

        Raises
        ------
        InputError
            When the table is not two-dimensional, holds anything but whole counts, or is empty.
        """
        return _of_table(table, self.statistic, yates, resampling, rng)


def _of_table(
    table: Any,
    statistic: Statistic,
    yates: bool,
    resampling: Resampling | None,
    rng: Seed,
) -> Estimate:
    try:
        array = floats(table)
    except (TypeError, ValueError):
        array = np.empty(0)
    valid = np.isfinite(array) & (array >= 0) & (array == np.floor(array))
    if array.ndim != 2 or not valid.all() or not array.any():
        raise InputError("table: expected whole counts of at least 0, shape (groups, labels)")
    # One row stands for each group that is not empty: the table itself holds the counts.
    rows = tuple(f"row {index + 1}" for index in range(len(array)))
    present = np.flatnonzero(array.sum(axis=1)).astype(np.int32)
    labels = np.arange(array.shape[1])
    counts = Counts(
        groups=Groups(("group",), tuple((row,) for row in rows), present),
        classes=tuple(f"column {index + 1}" for index in labels),
        truth=np.zeros_like(labels),
        prediction=labels,
        sampler=TableSampler(np.ascontiguousarray(array.T)),
        excluded={},
        unit="row",
    )
    effects = EffectSizes(statistic, 0.0, yates, "independence")
    estimate = measure(counts, [effects], resampling, rng)[0]
    observed = effects.chi_square(counts, counts.observed)
    n, df = float(observed.n[0, 0]), int(observed.df[0, 0])
    return replace(
        estimate,
        metric=statistic,
        n=dict(zip(rows, np.rint(array.sum(axis=1)).astype(int).tolist(), strict=True)),
        params={
            "yates": yates,
            "chi2": float(observed.chi2[0, 0]) if df else None,
            "df": df,
            # Of tables with these margins; without continuity correction.
            "chance_chi2": n / (n - 1.0) * df if df and n > 1 else None,
        },
        by=None,
        excluded={},
        reason="" if estimate.by is None else str(estimate.by["reason"][0]),
        corrected=math.nan if estimate.by is None else float(estimate.by["corrected"][0].as_py()),
        reference=SPECS[statistic].reference,
    )


cramers_v = metric(
    _table(
        name="cramers_v",
        aliases=("Cramer's V",),
        title="Cramér's V",
        symbol="V",
        kinds=("predictions", "answers", "dataset"),
        definition=(
            "sqrt(χ² / (n · (min(groups, labels) − 1))) of a table of groups by labels, without "
            "empty rows and columns."
        ),
        reference="Cramér 1946, chapter 21; Albuquerque et al. 2024, eq. 3",
        errata=(
            "The listing of Albuquerque et al. applies Yates' correction to 2×2 tables; eq. 3 does "
            "not. yates=True reproduces the listing."
        ),
    )
)(TableEffect("cramers_v"))
cramers_v_corrected = metric(
    _corrected(
        name="cramers_v_corrected",
        title="Cramér's V, corrected for bias",
        symbol="Ṽ",
        definition=(
            "V after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0, and "
            "both sizes are reduced."
        ),
    )
)(TableEffect("cramers_v_corrected"))
phi = metric(
    _table(
        name="phi",
        aliases=("phi coefficient",),
        symbol="φ",
        range=(0.0, math.inf),
        range_note="at most sqrt(min(groups, labels) − 1)",
        definition="sqrt(χ² / n) of a table of groups by labels.",
        reference="Cramér 1946, chapter 21",
    )
)(TableEffect("phi"))
phi_corrected = metric(
    _corrected(
        name="phi_corrected",
        title="Phi, corrected for bias",
        range=(0.0, math.inf),
        range_note="at most sqrt(min(groups, labels) − 1)",
        definition=(
            "Phi after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0."
        ),
    )
)(TableEffect("phi_corrected"))
tschuprows_t = metric(
    _table(
        name="tschuprows_t",
        aliases=("Tschuprow's T",),
        title="Tschuprow's T",
        symbol="T",
        range=(0.0, 1.0),
        range_note="1 in square tables only",
        definition=(
            "sqrt(χ² / (n · sqrt((groups − 1)(labels − 1)))) of a table of groups by labels."
        ),
        reference="Tschuprow 1939",
    )
)(TableEffect("tschuprows_t"))
tschuprows_t_corrected = metric(
    _corrected(
        name="tschuprows_t_corrected",
        title="Tschuprow's T, corrected for bias",
        definition=(
            "T after (groups − 1)(labels − 1) / (n − 1) is taken from χ² / n, not below 0, and "
            "both sizes are reduced."
        ),
    )
)(TableEffect("tschuprows_t_corrected"))
