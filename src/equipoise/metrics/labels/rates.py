"""Confusion rates of every class and group, demographic parity and equalized odds.

A class stands against the rest. Each number is a gap: the largest minus the smallest rate over
groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike
from scipy.special import ndtr

from equipoise.core import (
    Aggregate,
    Booleans,
    Estimate,
    Fact,
    Fields,
    Floats,
    GroupLabels,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    NullHypothesis,
    Span,
    floats,
    record,
    tally,
)
from equipoise.core.labels import shape_of
from equipoise.metrics.building import (
    clustered_method,
    count_estimate,
    explain_undefined,
    gaps,
    group_columns,
    parts_table,
    spread_level,
    too_small,
)
from equipoise.metrics.labels.table import (
    BASES,
    Counts,
    Null,
    count,
    design_effects,
    least_design,
    moments,
)
from equipoise.metrics.measure import (
    DEFAULT,
    Draws,
    ExtremeRate,
    Measure,
    Topic,
    measure,
    measure_rows,
    measured,
)
from equipoise.metrics.spec import PAIRWISE, POINTS, SPECS, MetricSpec, register
from equipoise.stats.intervals import (
    ClosedForm,
    Pair,
    Scored,
    divide,
    largest_gap,
    scored,
    simultaneous_gap,
    studentized_range,
)
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

Combination = Literal["max", "mean"]

# A difference of sums of soft counts below this share of the larger sum is rounding.
_ROUNDING = 1e-9
# Rates whose gaps are, or are below, those of others.
_REPEATED = ("true_negative_rate", "false_negative_rate", "average_odds")
# What is left of the first without the second.
_RESTS = {
    "missed": ("truth", "both"),
    "wrong": ("prediction", "both"),
    "others": ("total", "truth"),
    "unsaid": ("total", "prediction"),
    "neither": ("others", "wrong"),
}


class Cells(dict[str, Floats]):
    """Weights of one-vs-all outcomes and rates by name, each of shape (r, classes, groups).

    `both` are rows of the class that are predicted as it, `truth` its rows, `prediction` rows
    predicted as it, and `total` all rows. What else rates need is made when it is first read.
    `compared` are the groups large enough, shape (groups,); `whole`: all weights are whole numbers.
    """

    def __init__(self, compared: Booleans, whole_counts: bool, **cells: Floats) -> None:
        super().__init__(cells)
        self.compared, self.whole = compared, whole_counts

    @classmethod
    def of(cls, counts: Counts, tables: Floats) -> Cells:
        """Sum tables (r, outcomes, groups), once for all measures of the same draws."""
        return counts.once(tables, cls._sum)

    @classmethod
    def _sum(cls, counts: Counts, tables: Floats) -> Cells:
        truth, prediction = counts.by_truth(tables), counts.by_prediction(tables)
        total = np.broadcast_to(counts.totals(tables)[:, None], truth.shape)
        usable, hits = counts.groups.usable, counts.hits(tables)
        usable = usable if usable.any() else ~usable
        return cls(
            usable,
            counts.independent,
            both=hits,
            truth=truth,
            prediction=prediction,
            total=total,
        )

    def __missing__(self, name: str) -> Floats:
        if name == "right":
            weights = self["both"] + self["neither"]
        else:
            whole, part = _RESTS[name]
            total = self[whole]
            weights = total - self[part]
            if not self.whole:
                weights = np.where(weights > _ROUNDING * total, weights, 0.0)
        self[name] = weights
        return weights


@dataclass(frozen=True)
class Rate:
    """A share of rows, or a number made of two shares of separate rows, per class and group.

    Attributes
    ----------
    name : str
        Public name of the metric.
    null : "rows", "class" or "prediction"
        What its chance level exchanges.
    terms : tuple of (str, str, str)
        Of each share: its numerator and its denominator in `Cells`, and what the latter counts.
    predictions : str
        "" where several shares have a mean. Otherwise the first share is wrong, the second right,
        and the number is how many of these predictions are right if every group has the
        prevalence of all compared rows.
    """

    name: str
    null: Null
    terms: tuple[tuple[str, str, str], ...]
    predictions: str = ""

    @property
    def is_share(self) -> bool:
        """Whether it is a share of rows, as observed or at equal prevalence."""
        return len(self.terms) == 1 or bool(self.predictions)

    @property
    def numerators(self) -> set[str]:
        """Cells of the rows that its shares count."""
        return {numerator for numerator, *_ in self.terms}

    @property
    def within_class(self) -> bool:
        """Whether its rows are of one true class, which exchange their groups among them."""
        return {denominator for _, denominator, _ in self.terms} == {"truth"}

    def counts(self, cells: Cells) -> list[Pair]:
        """Return numerator and denominator of each share, each (r, classes, groups)."""
        return [(cells[numerator], cells[denominator]) for numerator, denominator, _ in self.terms]

    def pooled(self, cells: Cells) -> Pair:
        """Return the right rows and all rows of a share as observed."""
        *_, (right, _) = self.counts(cells)
        return right, self.totals(cells)

    def shares(self, cells: Cells) -> Floats:
        """Return the rate of every class and group, (r, classes, groups); NaN without rows."""
        if self.name not in cells:
            term_shares = [divide(*pair) for pair in self.counts(cells)]
            if self.predictions:
                wrong, right = term_shares
                rate = divide(right, right + self.odds(cells) * wrong)
            else:
                rate = np.asarray(sum(term_shares) / len(term_shares))
            cells[self.name] = rate
        return cells[self.name]

    def odds(self, cells: Cells) -> Floats:
        """Return how many rows of compared groups can be wrong for one that can be right."""
        # Sums of groups, which some tables hold beside them, are no groups.
        groups = np.flatnonzero(cells.compared)
        (_, wrong), (_, right) = self.counts(cells)
        return divide(_sum_of_groups(wrong, groups), _sum_of_groups(right, groups))

    def totals(self, cells: Cells) -> Floats:
        """Return the rows behind the rate, (r, classes, groups)."""
        pairs = self.counts(cells)
        if self.predictions:
            return floats(sum(numerator for numerator, _ in pairs))
        return floats(sum(denominator for _, denominator in pairs))

    def fewest(self, counts: Counts) -> Floats:
        """Return the smaller of the observed denominators, (classes, groups)."""
        cells = Cells.of(counts, counts.observed)
        denominators = [self.totals(cells), *(totals for _, totals in self.counts(cells))]
        return floats(reduce(np.minimum, denominators)[0])

    def large(self, counts: Counts) -> Booleans:
        """Whether observed denominators have the minimum size, as rounded where it is shown.

        A rate of a handful of rows is 0 or 1 by chance, and would be the largest or smallest of
        all groups; draws leave out what the observed table leaves out.
        """
        return counts.once(counts.observed, _large, self)

    def gaps(self, counts: Counts, cells: Cells) -> Floats:
        """Return the gap of every class between groups large enough, (r, classes)."""
        rate = _SAME_GAPS.get(self.name, self)
        name = f"gap in {rate.name}"
        if name not in cells:
            usable = counts.groups.usable & rate.large(counts)
            cells[name] = gaps(rate.shares(cells), usable)
        return cells[name]

    def scored(self, pairs: Sequence[Pair], level: float, cells: Cells) -> Scored:
        """Return the rate in one table with hybrid intervals from the counts of its terms."""
        scored_terms = [scored(*pair, level) for pair in pairs]
        if not self.predictions:
            return reduce(Scored.plus, scored_terms).scaled(1.0 / len(scored_terms))
        wrong, right = scored_terms
        odds, ratio = self.odds(cells)[0], wrong.over(right)
        value = divide(right.value, right.value + odds * wrong.value)
        return Scored(value, *(1.0 / (1.0 + odds * end) for end in (ratio.high, ratio.low)))

    def effective(self, counts: Counts) -> list[Pair]:
        """Return observed counts of its terms in independent rows, each (classes, groups)."""
        term_weights = self.counts(Cells.of(counts, counts.observed))
        pairs = [(numerator[0], totals[0]) for numerator, totals in term_weights]
        squares = counts.once(counts.observed, moments)
        if squares is None:
            return pairs
        least = least_design(counts)
        effective_pairs = []
        for (numerator, base, _), pair in zip(self.terms, pairs, strict=True):
            numerator_cells, base_cells = _parts_of(numerator), _parts_of(base)
            # Sums of squares and products of each numerator and its base.
            product = partial(np.einsum, "i,ijcg,j->cg")
            design = design_effects(
                *pair,
                product(numerator_cells, squares, numerator_cells),
                product(numerator_cells, squares, base_cells),
                product(base_cells, squares, base_cells),
                least=least,
            )
            effective_pairs.append((pair[0] / design, pair[1] / design))
        return effective_pairs


def _large(counts: Counts, _: Floats, rate: Rate) -> Booleans:
    least = counts.groups.min_size
    return np.asarray((np.rint(rate.fewest(counts)) >= least) | (least <= 1))


def _parts_of(name: str) -> Floats:
    """Return how often the cells of `BASES` count in a cell."""
    if name in BASES:
        return floats(np.eye(len(BASES))[BASES.index(name)])
    if name == "right":
        return _parts_of("both") + _parts_of("neither")
    total, part = _RESTS[name]
    return _parts_of(total) - _parts_of(part)


_CLASS, _OTHERS = "rows of the class", "rows of other classes"
TRUE_POSITIVE_RATE = Rate("true_positive_rate", "class", (("both", "truth", _CLASS),))
FALSE_POSITIVE_RATE = Rate("false_positive_rate", "class", (("wrong", "others", _OTHERS),))
SELECTION_RATE = Rate("selection_rate", "rows", (("prediction", "total", "rows"),))
RATES = (
    TRUE_POSITIVE_RATE,
    FALSE_POSITIVE_RATE,
    Rate("true_negative_rate", "class", (("neither", "others", _OTHERS),)),
    Rate("false_negative_rate", "class", (("missed", "truth", _CLASS),)),
    Rate(
        "precision",
        "class",
        (*FALSE_POSITIVE_RATE.terms, *TRUE_POSITIVE_RATE.terms),
        "predictions of the class",
    ),
    Rate(
        "negative_predictive_value",
        "class",
        (("missed", "truth", _CLASS), ("neither", "others", _OTHERS)),
        "predictions of other classes",
    ),
    SELECTION_RATE,
    Rate("accuracy", "rows", (("right", "total", "rows"),)),
    Rate("average_odds", "class", (*TRUE_POSITIVE_RATE.terms, *FALSE_POSITIVE_RATE.terms)),
)

RATE_OF: Mapping[str, Rate] = MappingProxyType({rate.name: rate for rate in RATES})
"""Every rate by its name."""

# Rates that are 1 minus another.
_SAME_GAPS = {
    "true_negative_rate": FALSE_POSITIVE_RATE,
    "false_negative_rate": TRUE_POSITIVE_RATE,
}


def largest(values: Floats) -> Floats:
    """Largest of the last axis, NaN left out; NaN when there is no other."""
    return floats(np.fmax.reduce(values, axis=-1, initial=np.nan))


def too_few(value: float, base: str) -> str:
    """Say why there is no gap, "" when there is one."""
    return explain_undefined(value, f"fewer than two groups have {base}")


def _sum_of_groups(weights: Floats, groups: Integers) -> Floats:
    """Return sums over some groups, (r, classes, 1)."""
    return floats(np.moveaxis(weights, -1, 0)[groups].sum(axis=0)[..., None])


class RateGaps(Measure):
    """A measure of the gaps of some rates, of every class.

    Its numbers are a summary, maybe further ones, and last the gaps by rate and class.
    """

    name: str
    over: str
    resamples = False
    by_class = True

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates."""
        raise NotImplementedError

    def facts(self, counts: Counts) -> list[Fact]:
        """Return the gap over all classes, then that of each; none of what others sum up."""
        names = ("", *counts.classes) if self.whole else ()
        return [Fact(self.name, Aggregate.DIFFERENCE, name) for name in names]

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest gap, and gaps by rate and class."""
        rate_gaps = self.gaps(counts, tables)
        flat = rate_gaps.reshape(len(tables), -1)
        return np.concatenate([largest(flat)[:, None], flat], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        n_classes = len(counts.classes)
        starts = range(
            len(draws.observed) - len(self.rates) * n_classes, len(draws.observed), n_classes
        )
        families = [
            Family(rate, counts, draws, start)
            for rate, start in zip(self.rates, starts, strict=True)
        ]
        method = f"pairwise Newcombe intervals, simultaneous over {self.over} and groups"
        return count_estimate(
            self.name,
            counts,
            draws,
            method=clustered_method(counts, method),
            ends=ClosedForm(self.ends, (families,)),
            params={**vars(self)},
            by=lambda: self.table(families),
            interval_kind=IntervalKind.SIMULTANEOUS,
            reason=too_few(draws.observed[0], "enough rows"),
        )

    def ends(self, families: Sequence[Family], level: float) -> Pair:
        """Return ends of the largest gap of several rates; the low end holds for all together."""
        leading = [family for family in families if family.rate.name not in _REPEATED]
        joint_level = spread_level(
            level, int(sum(np.isfinite(family.value).sum() for family in leading))
        )
        low = [family.ends(joint_level)[0] for family in leading]
        high = [family.ends(level)[1] for family in leading]
        return largest(np.ravel(low)), largest(np.ravel(high))

    def table(self, families: Sequence[Family]) -> pa.Table:
        """Return one part per rate and class: the gap, its interval, and every group."""
        tables = [
            parts_table(
                family.rate.name,
                family.counts.classes,
                family.draws,
                family.start,
                family.ends(family.draws.level),
                aggregate=Aggregate.DIFFERENCE,
                **family.columns(),
            )
            for family in families
        ]
        return pa.concat_tables(tables).combine_chunks()

    def gaps(self, counts: Counts, tables: Floats) -> Floats:
        """Return the gaps (r, rates, classes)."""
        cells = Cells.of(counts, tables)
        # Replicates stay next to each other in memory.
        stacked = np.stack([rate.gaps(counts, cells).T for rate in self.rates])
        return stacked.transpose(2, 0, 1)


@record
class Family:
    """The gaps of one rate over all classes.

    Attributes
    ----------
    rate : Rate
    counts : Counts
    draws : Draws
    start : int
        Place of the first class's gap in the draws; the others follow.
    """

    rate: Rate
    counts: Counts
    draws: Draws
    start: int

    @cached_property
    def cells(self) -> Cells:
        """The observed table."""
        return Cells.of(self.counts, self.counts.observed)

    @cached_property
    def large(self) -> Booleans:
        """Which cells (classes, groups) have rows enough."""
        return self.rate.large(self.counts)

    @cached_property
    def effective(self) -> list[Pair]:
        """Counts of each term in independent rows."""
        return self.rate.effective(self.counts)

    @property
    def value(self) -> Floats:
        """The gap of each class."""
        return self.draws.observed[self.start : self.start + len(self.counts.classes)]

    def columns(self) -> Fields:
        """Return further columns of each class's part, for `parts_table`."""
        groups = self.counts.groups
        base = self.rate.predictions or " and ".join(base for *_, base in self.rate.terms)
        least = f"at least {groups.min_size} {base}" if groups.min_size > 1 else base
        fewest, large = self.rate.fewest(self.counts), groups.usable & self.large
        absent = (groups.usable & (fewest == 0)).sum(axis=-1)
        small = (groups.usable & (fewest > 0) & ~large).sum(axis=-1)
        totals = self.rate.totals(self.cells)[0]
        few = f"groups with fewer than {groups.min_size} {base}"
        scored_rates = self.rate.scored(self.effective, self.draws.level, self.cells)
        empty = [
            *(denominator[0] == 0 for _, denominator in self.rate.counts(self.cells)),
            totals == 0,
        ]
        bases = [*(term[-1] for term in self.rate.terms), self.rate.predictions]
        notes: list[Any] = [*(f"no {counted}" for counted in bases), too_small(groups)]
        note = np.select([*empty, ~large], notes, "")
        return {
            "by_group": group_columns(groups, totals, *scored_rates.arrays, note),
            "n": np.rint(np.where(large & (fewest > 0), totals, 0.0).sum(axis=-1)),
            "excluded": {f"groups without {base}": absent, few: small},
            "reason": [too_few(gap, least) for gap in self.value.tolist()],
        }

    def ends(self, level: float) -> Pair:
        """Return the ends of the gap of each class."""
        usable = self.counts.groups.usable
        if not (self.draws.intervals and usable.sum() >= 2):
            return np.full_like(self.value, np.nan), np.full_like(self.value, np.nan)
        compared = [
            (
                np.where(self.large, numerator, 0.0)[:, usable],
                np.where(self.large, n, 0.0)[:, usable],
            )
            for numerator, n in self.effective
        ]
        if len(compared) == 1:
            return simultaneous_gap(*compared[0], level)
        critical = studentized_range(level, tally(usable))
        wide = self.rate.scored(compared, 1.0 - 2.0 * float(ndtr(-critical)), self.cells)
        narrow = self.rate.scored(compared, level, self.cells)
        return largest_gap(wide, narrow)


def rates(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Gaps between groups in every confusion rate, one class against the rest.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        The largest gap (max − min over groups) over classes and rates, in [0, 1], higher is
        worse. It has no chance level. `.by` has the gap of every rate and class with interval,
        chance level and p-value, and the rate of every group: true and false positive and negative
        rate, precision, negative_predictive_value and average_odds (groups permuted within each
        true class), selection_rate and accuracy (over all rows). Precision is at equal prevalence:
        π TPR / (π TPR + (1 − π) FPR), π of all compared rows. A rate without rows is NaN.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    See Also
    --------
    equipoise.metrics.rate_comparisons : differences and ratios to other groups.

    References
    ----------
    Hardt, Price & Srebro 2016; Chouldechova 2017; Bellamy et al. 2019 (average odds).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> estimate = m.rates(true, pred, gender)
    >>> print(estimate.table().rows[0])
    ('chef true_positive_rate difference', '0.667', '[0.455, 0.808]', '[0.000, 0.267]', '60')
    """
    estimates = measure_rows(
        [Rates("class"), Rates("rows")],
        y_true,
        y_pred,
        groups,
        weights=weights,
        units=units,
        resampling=resampling,
        rng=rng,
    )
    values = np.array([estimate.value for estimate in estimates])

    def ends(level: float) -> Span:
        joint_level = spread_level(level, len(estimates))
        low = largest(np.array([estimate.ends(joint_level)[0] for estimate in estimates]))
        high = largest(np.array([estimate.ends(level)[1] for estimate in estimates]))
        return float(low), float(high)

    return replace(
        estimates[0],
        value=float(largest(values)),
        params={},
        chance=None,
        no_chance="rates have different nulls: each part in `by` has its own chance level",
        p_value=None,
        null=NullHypothesis.NONE,
        null_drawn="",
        by=pa.concat_tables([estimate.by for estimate in estimates]),
        reason="" if np.isfinite(values).any() else estimates[0].reason,
        ends=ends,
    )


@dataclass(frozen=True)
class Rates(RateGaps):
    """The measure behind `rates`: the gaps of all rates that share a null hypothesis.

    Attributes
    ----------
    null : "class" or "rows"
        The null hypothesis, which chooses the rates.
    """

    null: Null
    name = "rates"
    over = "rates, classes"
    whole = False

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates of the null hypothesis."""
        return tuple(rate for rate in RATES if rate.null == self.null)


class LeadingRates(Rates):
    """Rates of a null hypothesis that don't repeat another metric."""

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates, fewer than of `Rates`."""
        return tuple(rate for rate in super().rates if not SPECS[rate.name].fold)


MOST_FOLDED = 100
"""Beyond so many classes, findings are left out that state the fact of another of the class, or
that can't be estimated."""


@measured("rates", Topic.RATES)
def _rates(counts: Counts) -> list[Measure]:
    rates = LeadingRates if len(counts.classes) > MOST_FOLDED else Rates
    return [rates("class"), rates("rows")]


def demographic_parity(
    y_true: Labels | None,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted.

    For class c, DP(c) = max over groups a of P(prediction = c | a) minus the min over groups;
    the value is the largest DP(c).

    Parameters
    ----------
    y_true : array-like, shape (n,), or None
        True classes: their own parity, and how far that of the predictions exceeds it, stand
        among the parameters. Rows without one are not counted.
    y_pred : array-like, shape (n,)
        Predicted labels. None, NaN and "" are missing.
    groups, units
        See `equipoise.metrics.count`.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: the maximum when groups are exchangeable over all
        rows. Interval: pairwise Newcombe, simultaneous over classes and groups. `.by` has DP(c)
        and selection rates by class. NaN when fewer than two groups are large enough.

    Raises
    ------
    InputError
        When `y_pred` is not one label per row, shapes do not fit, or no row is complete.

    References
    ----------
    Calders, Kamiran & Pechenizkiy 2009; Albuquerque et al. 2024, "SkewSize", eq. 5.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> parity = m.demographic_parity(true, pred, gender)
    >>> round(parity.value, 3), round(parity.chance.mean, 3), parity.p_value < 0.01
    (0.333, 0.067, True)
    """
    shape = shape_of(y_pred)
    if len(shape) != 1:
        raise InputError(f"y_pred: shape {shape}; expected one label per row, shape (n,)")
    counts = count(y_pred if y_true is None else y_true, y_pred, groups, units=units)
    if y_true is None:
        excluded_rows = counts.excluded.items()
        excluded = {
            reason.replace("true class", "prediction"): rows for reason, rows in excluded_rows
        }
        counts = replace(counts, excluded=excluded)
    estimate = measure(counts, [DemographicParity()], resampling, rng)[0]
    if y_true is None:
        return estimate
    labels = demographic_parity(None, y_true, groups, resampling=None).value
    label_params = {"labels": labels, "beyond_labels": estimate.value - labels}
    return replace(estimate, params={**estimate.params, **label_params})


@measured("demographic_parity", Topic.GAPS)
@dataclass(frozen=True)
class DemographicParity(RateGaps):
    """The measure behind `demographic_parity`."""

    null: Null = "rows"
    name = "demographic_parity"
    over = "classes"
    rates = (replace(SELECTION_RATE, name="demographic_parity"),)
    extreme = ExtremeRate(("selection_rate",), "gap", label=None)


def equalized_odds(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    aggregate: Combination = "max",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted, given the truth.

    D_k = max − min over groups a of P(prediction = c | a, k), for a class c against the rest and
    k in {truth = c, truth ≠ c}. EO(c) aggregates both D_k. The value is the largest EO(c).

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    aggregate : "max" or "mean"
        How the two D_k make EO(c). `mean` reproduces the tables of the SkewSize paper.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: groups permuted within each true class. Interval:
        pairwise Newcombe intervals, simultaneous over classes, conditions and groups. `.by` has
        EO(c) of each class, with the groups' rates in the condition of the larger D_k. A class
        with fewer than two groups large enough in a condition is not estimable.

    Raises
    ------
    InputError
        When `aggregate` is unknown, shapes do not fit or no row is complete.

    References
    ----------
    Hardt, Price & Srebro 2016; Albuquerque et al. 2024, eq. 6 (see docs/metrics for its erratum).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.equalized_odds(true, pred, gender)
    <equalized_odds difference 0.667 [0.382, 0.808]; chance 0.096, p = 0.001, n = 120 in 2 groups>
    """
    return measure_rows(
        [EqualizedOdds(aggregate)],
        y_true,
        y_pred,
        groups,
        weights=weights,
        units=units,
        resampling=resampling,
        rng=rng,
    )[0]


@measured("equalized_odds", Topic.GAPS)
@dataclass(frozen=True)
class EqualizedOdds(RateGaps):
    """The measure behind `equalized_odds`.

    Attributes
    ----------
    aggregate : "max" or "mean"
        How the gaps of the two conditions are combined.
    """

    aggregate: Combination = "max"
    null: Null = "class"
    name = "equalized_odds"
    over = "classes, true-class conditions"
    rates = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)

    def __post_init__(self) -> None:
        if self.aggregate not in get_args(Combination):
            raise InputError(f"aggregate={self.aggregate!r}: expected 'max' or 'mean'")

    @property
    def extreme(self) -> ExtremeRate:
        """The rates of both conditions."""
        return ExtremeRate(
            ("true_positive_rate", "false_positive_rate"), "gap", mean=self.aggregate == "mean",
            label=None, group_metric="true_positive_rate",
        )  # fmt: skip

    def reads_classes_apart(self, counts: Counts) -> bool:
        """Of two classes, the false positive rate of one is about the other class alone."""
        return len(counts.targets) <= 2

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest EO, then EO, and D of both conditions."""
        conditions = self.gaps(counts, tables)
        odds = conditions.max(axis=1) if self.aggregate == "max" else conditions.mean(axis=1)
        flat = conditions.reshape(len(tables), -1)
        return np.concatenate([largest(odds)[:, None], odds, flat], axis=1)

    def tested_numbers(self, observed: Floats) -> Booleans:
        """Return a mask of tested numbers, without single conditions."""
        return super().tested_numbers(observed) & (np.arange(len(observed)) <= len(observed) // 3)

    def ends(self, families: Sequence[Family], level: float) -> Pair:
        """Return ends of the largest EO; low ends hold for all classes together (Bonferroni)."""
        classes = np.isfinite([family.value for family in families]).all(axis=0).sum()
        low, high = self._ends(families, level, int(classes))
        return largest(low), largest(high)

    def _ends(self, families: Sequence[Family], level: float, classes: int = 1) -> Pair:
        """Return ends per class.

        Low ends hold for all conditions and `classes` classes together (Bonferroni), on top of the
        pairs of groups. A high end of a maximum needs no correction: it is too low only when that
        of the truly largest gap is. The high end of a mean holds for all conditions.
        """
        n_conditions = len(families)
        low_level = spread_level(level, n_conditions * classes)
        low = [family.ends(low_level)[0] for family in families]
        if self.aggregate == "max":
            high = [family.ends(level)[1] for family in families]
            return np.max(low, axis=0), np.max(high, axis=0)
        high_level = spread_level(level, n_conditions)
        high = [family.ends(high_level)[1] for family in families]
        return np.mean(low, axis=0), np.mean(high, axis=0)

    def table(self, families: Sequence[Family]) -> pa.Table:
        """Return EO of each class with the groups' rates in the condition of the larger gap."""
        counts, draws = families[0].counts, families[0].draws
        places = np.arange(len(counts.classes))
        conditions = np.stack([family.value for family in families])
        deciding = np.argmax(np.where(np.isnan(conditions), np.inf, conditions), axis=0)
        first, second = (family.columns() for family in families)
        by_group = pa.concat_arrays([first["by_group"], second["by_group"]])
        return parts_table(
            self.name,
            counts.classes,
            draws,
            1,
            self._ends(families, draws.level),
            by_group=by_group.take(pa.array(deciding * len(places) + places)),
            n=first["n"] + second["n"],
            excluded=first["excluded"] | second["excluded"],
            reason=[
                "; ".join(filter(None, pair))
                for pair in zip(first["reason"], second["reason"], strict=True)
            ],
            shows=[self.rates[place].name for place in deciding.tolist()],
        )


_gap = partial(
    MetricSpec,
    aggregate=Aggregate.DIFFERENCE,
    kinds=("predictions",),
    unit="points",
    threshold=0.05,
    threshold_reason=POINTS,
    chance="above 0",
    interval=PAIRWISE,
)
_rate = partial(
    _gap,
    aggregate=Aggregate.VALUE,
    unit="share",
    rate=True,
    of_class=True,
    harm="lower",
    chance="above 0 for the gap between groups",
    null="groups are exchangeable within each true class",
    reference="Hardt, Price & Srebro 2016 (rates given the truth); Chouldechova 2017 (predictive)",
)
register(
    _rate(
        name="rates",
        aggregate=Aggregate.DIFFERENCE,
        title="All confusion rates",
        unit="points",
        rate=False,
        harm="higher",
        threshold=None,
        threshold_reason="",
        definition=(
            "Largest gap between groups over classes and rates. The parts are the gap of each rate "
            "of each class."
        ),
        direction="Higher: groups differ more in some rate.",
        chance="none for the summary; each part has its own",
        null="each part has its own",
    ),
    _rate(
        name="true_positive_rate",
        within_class="always",
        rest_metric="true_positive_rate",
        kinds=("predictions", "concepts"),
        symbol="TPR",
        group_label="true positive rate",
        clause="{model} recognises {subject} for {groups}",
        errors="rest",
        error_clause="{model} misses {subject}",
        definition="Share of rows of a class that are predicted as it.",
        direction="Lower: more members of the class are missed.",
    ),
    _rate(
        name="false_positive_rate",
        rest_metric="false_positive_rate",
        mirror="true_positive_rate",
        kinds=("predictions", "concepts"),
        symbol="FPR",
        harm="higher",
        group_label="false positive rate",
        clause="{model} predicts {subject} wrongly for {groups}",
        errors="value",
        error_clause="{model} predicts {subject} wrongly",
        definition="Share of rows of other classes that are predicted as the class.",
        direction="Higher: the label is given wrongly more often.",
    ),
    _rate(
        name="true_negative_rate",
        fold="false_positive_rate",
        symbol="TNR",
        group_label="true negative rate",
        clause="{model} rules out {subject} rightly for {groups}",
        errors="rest",
        error_clause="{model} predicts {subject} wrongly",
        definition="1 minus the false positive rate.",
        direction="Lower: the label is given wrongly more often.",
    ),
    _rate(
        name="false_negative_rate",
        fold="true_positive_rate",
        symbol="FNR",
        harm="higher",
        group_label="false negative rate",
        clause="{model} misses {subject} for {groups}",
        errors="value",
        error_clause="{model} misses {subject}",
        definition="1 minus the true positive rate.",
        direction="Higher: more members of the class are missed.",
    ),
    _rate(
        name="precision",
        of_base_rates=True,
        rest_metric="precision",
        kinds=("predictions", "concepts"),
        symbol="PPV",
        group_label="precision",
        clause="When {model} predicts {subject}, it is right for {groups}",
        definition=(
            "Share of rows predicted as a class that are of it. Of predictions: at the prevalence "
            "π of all rows, π TPR / (π TPR + (1 − π) FPR), so that groups are compared at equal "
            "prevalence."
        ),
        direction="Lower: the label is wrong more often.",
    ),
    _rate(
        name="negative_predictive_value",
        of_base_rates=True,
        rest_metric="negative_predictive_value",
        mirror="precision",
        symbol="NPV",
        group_label="negative predictive value",
        clause="When {model} rules out {subject}, it is right for {groups}",
        definition=(
            "Share of rows not predicted as a class that are not of it, at the prevalence of all "
            "rows."
        ),
        direction="Lower: the absence of the label is wrong more often.",
    ),
    _rate(
        name="selection_rate",
        of_base_rates=True,
        of_labels=True,
        fold="demographic_parity",
        group_label="selection rate",
        clause="{model} predicts {subject} for {groups}",
        definition="Share of rows predicted as a class.",
        direction=(
            "Lower: the group receives the label less often; whether that harms depends on the "
            "label."
        ),
        null="groups are exchangeable over all rows",
    ),
    _rate(
        name="average_odds",
        mirror="average_odds",
        definition="Mean of true and false positive rate of a class.",
        direction="Lower: at the same truth, the group receives the label less often.",
        interval="pairwise hybrid score, simultaneous over groups",
    ),
    _gap(
        name="demographic_parity",
        of_base_rates=True,
        of_labels=True,
        rest_metric="selection_rate",
        mirror="demographic_parity",
        of_class=True,
        title="Demographic parity difference",
        symbol="DP",
        definition=(
            "Largest minus smallest share of rows predicted as a class, over groups. Summary: the "
            "largest over classes."
        ),
        group_label="share of predictions",
        clause="{model} predicts {subject} for {groups}",
        direction="Higher: one group receives the label more often than another.",
        null="groups are exchangeable over all rows",
        reference="Calders et al. 2009; Albuquerque et al. 2024, eq. 5",
        errata=(
            "Table 1 of Albuquerque et al. exchanges its first two class columns in the rows of "
            "classes 0 and 1: the removed class's difference must be the sum of the others'."
        ),
    ),
    _gap(
        name="equalized_odds",
        combines=("true_positive_rate", "false_positive_rate"),
        within_class="two classes",
        mirror="equalized_odds",
        title="Equalized odds difference",
        symbol="EO",
        definition=(
            "Difference between groups in the share of rows predicted as a class, among rows of "
            "the class and among all others; the larger of both. Summary: the largest over classes."
        ),
        direction=(
            "Higher: at the same truth, one group receives the label more often than another."
        ),
        null="groups are exchangeable within each true class",
        reference=(
            "Hardt, Price & Srebro 2016; Albuquerque et al. 2024, eq. 6, one condition at a time"
        ),
        errata=(
            "Eq. 6 as printed takes max minus min over groups and conditions together, which is "
            "near 1 for every good classifier. Its Table 1 is reproduced by the mean over "
            "conditions."
        ),
    ),
)

_unanswered = partial(
    _gap,
    aggregate=Aggregate.VALUE,
    unit="share",
    kinds=("answers",),
    rate=True,
    direction="Higher: the group gets no answer more often.",
    chance="above 0 for the gap between groups",
    null="groups are exchangeable over all rows",
    reference="equipoise: rows without an answer are in no other metric",
)
register(
    _unanswered(
        name="unanswered_rate",
        of_state=True,
        state="unanswered",
        of_exclusion=True,
        rest_metric="unanswered_rate",
        kinds=("predictions", "answers"),
        group_label="share without an answer",
        clause="{model} gives no usable answer for {groups}",
        definition=(
            "Share of rows without a usable prediction: missing, unknown or refused. Where true "
            "classes are known, of the rows that have one."
        ),
    ),
    _unanswered(
        name="right_rate",
        of_state=True,
        state="right",
        rest_metric="right_rate",
        kinds=("predictions", "answers"),
        harm="lower",
        group_label="share of right predictions",
        clause="{model} gives a right answer for {groups}",
        definition="Share of rows with a true class, answered or not, that are predicted right.",
        direction="Lower: the group gets a right answer less often.",
        reference="equipoise: right, wrong and unanswered rates sum to 1",
    ),
    _unanswered(
        name="wrong_rate",
        of_state=True,
        state="wrong",
        rest_metric="wrong_rate",
        kinds=("predictions", "answers"),
        group_label="share of wrong predictions",
        clause="{model} gives a wrong answer for {groups}",
        errors="value",
        error_clause="{model} gives a wrong answer",
        definition="Share of rows with a true class, answered or not, that are predicted wrong.",
        direction="Higher: the group gets a wrong answer more often.",
        reference="equipoise: right, wrong and unanswered rates sum to 1",
    ),
    _unanswered(
        name="unknown_rate",
        of_state=True,
        state="unknown",
        rest_metric="unknown_rate",
        group_label="unknown rate",
        clause="{model} says that it does not know for {groups}",
        definition="Share of rows on which the model says that it does not know.",
    ),
    _unanswered(
        name="refused_rate",
        of_state=True,
        state="refused",
        rest_metric="refused_rate",
        group_label="refused rate",
        clause="{model} refuses to answer for {groups}",
        definition="Share of rows on which the model refuses to answer.",
    ),
    _unanswered(
        name="empty_rate",
        of_state=True,
        state="missing",
        rest_metric="empty_rate",
        group_label="empty rate",
        clause="{model} gives an empty answer for {groups}",
        definition="Share of rows with an empty answer, or with none because the model failed.",
    ),
    _gap(
        name="answer_gap",
        of_base_rates=True,
        of_labels=True,
        rest_metric="answer_gap",
        mirror="answer_gap",
        of_class=True,
        kinds=("answers",),
        groups_harm="higher",
        group_label="share of answers",
        clause="{model} answers {subject} for {groups}",
        definition=(
            "Largest minus smallest share of the answered rows of a group that get an answer, "
            "after normalisation. Summary: the largest over answers."
        ),
        direction="Higher: one group gets the answer more often than another.",
        chance="above 0, more so for many answers",
        null="groups are exchangeable over all answered rows",
        reference="Calders et al. 2009, of answers in place of classes",
    ),
    _gap(
        name="label_gap",
        of_labels=True,
        rest_metric="label_gap",
        mirror="label_gap",
        of_class=True,
        kinds=("dataset",),
        groups_harm="higher",
        group_label="share of images with the label",
        clause="In {model}, {subject} is the label of {groups}",
        definition=(
            "Largest minus smallest share of the labelled images of a group that have the label. "
            "Summary: the largest over labels."
        ),
        direction="Higher: the label goes with one group more often than with another.",
        chance="above 0, more so for many labels",
        null="groups are exchangeable over all labelled images",
        reference="Calders et al. 2009, of labels in place of predictions",
    ),
    _unanswered(
        name="missing_rate",
        rest_metric="missing_rate",
        kinds=("dataset",),
        group_label="share of images without a value",
        clause="In {model}, {subject} is missing for {groups}",
        definition="Share of images of which a label or an attribute is missing.",
        direction="Higher: the group's images are annotated less often.",
        reference="equipoise: rows without a value are in no other metric",
    ),
    _unanswered(
        name="image_defect_rate",
        rest_metric="image_defect_rate",
        kinds=("dataset",),
        group_label="share of images with the defect",
        clause="In {model}, {groups} have the defect {subject}",
        definition=(
            "Share of images that can't be read, are small or elongated, or have the same bytes as "
            "another image."
        ),
        direction="Higher: the group's images are worse.",
        reference="equipoise: what a model's preprocessing loses, and what repeats",
    ),
)
