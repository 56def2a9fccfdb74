"""A rate of every class and group, from the counts of a class against the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from equipoise.core import (
    Aggregate,
    Booleans,
    Estimate,
    Fact,
    Fields,
    Floats,
    Integers,
    IntervalKind,
    floats,
    record,
)
from equipoise.core.errors import PluginError
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
    design_effects,
    least_design,
    moments,
)
from equipoise.metrics.measure import Draws, Measure
from equipoise.metrics.spec import spec_for
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

Combination = Literal["max", "mean"]

# A difference of sums of soft counts below this share of the larger sum is rounding.
_ROUNDING = 1e-9
# What is left of the first without the second.
_RESTS = {
    "missed": ("truth", "both"),
    "wrong": ("prediction", "both"),
    "others": ("total", "truth"),
    "unsaid": ("total", "prediction"),
    "neither": ("others", "wrong"),
}


# Rows that a table of one class against the rest may have, with their counts in `BASES`.
_ROWS = {
    "of the class that is predicted as it": (1, 1, 1, 1),
    "of the class that is predicted as another": (0, 1, 0, 1),
    "of another class that is predicted as it": (0, 0, 1, 1),
    "of another class that is predicted as another": (0, 0, 0, 1),
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

    @classmethod
    def right_or_wrong(cls, counts: Counts, tables: Floats) -> Cells:
        """Sum tables as if right predictions were a class, and all rows of it."""
        return counts.once(tables, cls._sum_right)

    @classmethod
    def _sum_right(cls, counts: Counts, tables: Floats) -> Cells:
        right, total = tables[:, counts.right].sum(axis=1)[:, None], counts.totals(tables)[:, None]
        usable, whole = counts.groups.usable, counts.independent
        return cls(usable, whole, both=right, truth=total, prediction=right, total=total)

    def of_class(self, place: int) -> Cells:
        """Return the cells of one class, each (r, 1, groups)."""
        cells = {name: self[name][:, place : place + 1] for name in BASES}
        return Cells(self.compared, self.whole, **cells)

    def of_all(self, groups: Booleans) -> Cells:
        """Return the sums over some groups, as one group."""
        sums = {name: self[name][..., groups].sum(axis=-1)[..., None] for name in BASES}
        return Cells(np.ones(1, dtype=bool), self.whole, **sums)

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


Terms = Callable[[Cells], Pair | tuple[Pair, Pair]]
"""From the cells to numerator and denominator of a rate, or those of two shares of other rows."""


@dataclass(frozen=True)
class Rate:
    """A share of rows, or a number made of two shares of separate rows, per class and group.

    Its intervals and tests are those of shares: denominators count each row at most once, and a
    numerator counts rows of its denominator.

    Raises
    ------
    PluginError
        When the terms count rows in another way, as those of F1 do.

    Attributes
    ----------
    name : str
        Public name of the metric.
    null : "rows", "class" or "prediction"
        What its chance level exchanges.
    terms : callable
        Numerators and denominators are sums and differences of cells.
    bases : tuple of str
        What the denominator of each share counts.
    predictions : str
        "" where several shares have a mean. Otherwise the first share is wrong, the second right,
        and the number is how many of these predictions are right if every group has the
        prevalence of all compared rows.
    opposite : Rate or None
        The rate of which this one is 1 minus, so that gaps are the same.
    """

    name: str
    null: Null
    terms: Terms
    bases: tuple[str, ...]
    predictions: str = ""
    opposite: Rate | None = None

    def __post_init__(self) -> None:
        _check_terms(self)

    def counts(self, cells: Cells) -> list[Pair]:
        """Return numerator and denominator of each share, each (r, classes, groups)."""
        terms = self.terms(cells)
        return [terms] if isinstance(terms[0], np.ndarray) else [*terms]

    @property
    def repeats(self) -> bool:
        """Whether its gaps are, or are below, the gaps of other rates."""
        return self.opposite is not None or (len(self.bases) > 1 and not self.predictions)

    @property
    def is_share(self) -> bool:
        """Whether it is a share of rows, as observed or at equal prevalence."""
        return len(self.bases) == 1 or bool(self.predictions)

    @property
    def numerators(self) -> frozenset[str]:
        """Cells of the rows that its shares count."""
        cells = _bases()
        counted = [numerator for numerator, _ in self.counts(cells)]
        return frozenset(
            name for name in (*BASES, *_RESTS, "right")
            if any(np.array_equal(cells[name], numerator) for numerator in counted)
        )  # fmt: skip

    def pooled(self, cells: Cells) -> Pair:
        """Return the right rows and all rows of a share as observed."""
        *_, (right, _) = self.counts(cells)
        return right, self.totals(cells)

    @property
    def within_one_class(self) -> bool:
        """Whether it is a share of the rows of the class alone."""
        bases, truth = [base for _, base in self.counts(_bases())], _bases()["truth"]
        return len(bases) == 1 and np.array_equal(bases[0], truth)

    def shares(self, cells: Cells) -> Floats:
        """Return the rate of every class and group, (r, classes, groups); NaN without rows."""
        name = f"rate {self.name}"  # A rate may be called as a cell is.
        if name not in cells:
            term_shares = [divide(*pair) for pair in self.counts(cells)]
            if self.predictions:
                wrong, right = term_shares
                rate = divide(right, right + self.odds(cells) * wrong)
            else:
                rate = np.asarray(sum(term_shares) / len(term_shares))
            cells[name] = rate
        return cells[name]

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
        rate = self.opposite or self
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

    def ends(self, pairs: Sequence[Pair], cells: Cells, level: float) -> Pair:
        """Return ends of the rate with these counts of its terms, in independent rows."""
        rates = self.scored(pairs, level, cells)
        return rates.low, rates.high

    def gap_ends(self, pairs: Sequence[Pair], cells: Cells, level: float) -> Pair:
        """Return ends of the gap between groups, from counts of its terms in independent rows."""
        if len(pairs) == 1:
            return simultaneous_gap(*pairs[0], level)
        critical = studentized_range(level, pairs[0][0].shape[-1])
        wide = self.scored(pairs, 1.0 - 2.0 * float(ndtr(-critical)), cells)
        return largest_gap(wide, self.scored(pairs, level, cells))

    def effective(self, counts: Counts) -> list[Pair]:
        """Return observed counts of its terms in independent rows, each (classes, groups)."""
        term_weights = self.counts(Cells.of(counts, counts.observed))
        pairs = [(numerator[0], totals[0]) for numerator, totals in term_weights]
        squares = counts.once(counts.observed, moments)
        if squares is None:
            return pairs
        least = least_design(counts)
        effective_pairs = []
        for (numerator_cells, base_cells), pair in zip(self.counts(_bases()), pairs, strict=True):
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


def _check_terms(rate: Rate) -> None:
    """Refuse terms that aren't numerators and denominators of shares.

    Raises
    ------
    PluginError
        With the row that counts otherwise, and how often.
    """
    rows = np.array([*_ROWS.values()], dtype=np.float64)
    times = 100.25 + np.arange(len(rows))
    tables = np.concatenate([rows, [times @ rows]]).T[..., None, None]
    cells = Cells(np.ones(1, dtype=bool), True, **dict(zip(BASES, tables, strict=True)))
    names, n_shares = ", ".join((*BASES, *_RESTS, "right")), len(rate.bases)
    try:
        terms = floats(rate.counts(cells))
    except KeyError as error:
        raise _refused(rate, f"no cell is called {error}", f"name one of {names}") from None
    except (TypeError, ValueError, IndexError):
        terms = np.empty(0)
    if terms.shape != (n_shares, 2, len(rows) + 1, 1, 1):
        problem = f"its function returns no numerator and denominator for each of {n_shares} bases"
        raise _refused(rate, problem, f"return cells, or sums of cells, from {names}")
    numerator, denominator = terms[:, 0, :-1, 0, 0], terms[:, 1, :-1, 0, 0]
    fits = np.isin(denominator, (0, 1)) & ((numerator == 0) | (numerator == denominator))
    wrong = ~fits.all(axis=0) | (denominator.sum(axis=0) > 1)
    fix = "use CountMetric, whose intervals are drawn"
    if wrong.any():
        row, place = [*_ROWS][int(wrong.argmax())], int(wrong.argmax())
        counts = f"{numerator[:, place].sum():g} and {denominator[:, place].sum():g}"
        problem = f"a row {row} counts {counts} in numerator and denominator; expected 0 or 1"
        raise _refused(rate, problem, fix)
    if not np.allclose(terms[:, :, :-1, 0, 0] @ times, terms[:, :, -1, 0, 0]):
        raise _refused(rate, "several rows count otherwise than the sum of each row", fix)


def _refused(rate: Rate, problem: str, fix: str) -> PluginError:
    return PluginError(problem, fix, noun="metric", name=rate.name, packages=("",))


def _large(counts: Counts, _: Floats, rate: Rate) -> Booleans:
    least = counts.groups.min_size
    return np.asarray((np.rint(rate.fewest(counts)) >= least) | (least <= 1))


def _bases() -> Cells:
    """Return cells that hold how often each of `BASES` counts in them."""
    return Cells(np.ones(1, dtype=bool), True, **dict(zip(BASES, np.eye(len(BASES)), strict=True)))


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

    Attributes
    ----------
    name : str
        Metric of the summary.
    rates : tuple of Rate
    over : str
        What intervals are simultaneous over, beside groups.
    """

    name: str
    rates: tuple[Rate, ...]
    over = "classes"
    resamples = False
    by_class = True

    @property
    def params(self) -> Fields:
        """The parameters that decide the numbers."""
        return {"null": self.null}

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
            spec_for(self.name, Aggregate.DIFFERENCE),
            counts,
            draws,
            clustered_method(counts, method),
            ends=ClosedForm(self.ends, (families,)),
            params=self.params,
            by=lambda: self.table(families),
            interval_kind=IntervalKind.SIMULTANEOUS,
            reason=too_few(draws.observed[0], "enough rows"),
        )

    def ends(self, families: Sequence[Family], level: float) -> Pair:
        """Return ends of the largest gap of several rates; the low end holds for all together."""
        leading = [family for family in families if not family.rate.repeats] or families
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


@dataclass(frozen=True)
class ClassGaps(RateGaps):
    """The measure of the gaps of one rate, of every class."""

    null: Null
    name: str
    rates: tuple[Rate, ...]


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
        base = self.rate.predictions or " and ".join(self.rate.bases)
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
        bases = [*self.rate.bases, self.rate.predictions]
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
        return self.rate.gap_ends(compared, self.cells, level)
