"""Metrics of rates: numerator and denominator of each group, and the record of the rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter, Signature, signature
from itertools import compress
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    Chance,
    ComparedTo,
    Estimate,
    GroupLabels,
    InputError,
    Labels,
    Span,
    no_ends,
    record,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.groups import rows_of
from equipoise.core.labels import Cell, shape_of
from equipoise.metrics.building import sizes
from equipoise.metrics.documenting import Form
from equipoise.metrics.labels.comparisons import AgainstRest, all_others
from equipoise.metrics.labels.group_rates import GroupRate
from equipoise.metrics.labels.rate import ClassGaps, Rate, Terms
from equipoise.metrics.labels.table import Counts, Null, count, fill_labels
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, measure
from equipoise.metrics.spec import MetricSpec, Tested, make_estimate
from equipoise.stats.intervals import divide
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

Data = Labels | GroupLabels | ArrayLike | Iterable[Cell | Iterable[Cell]] | None
"""What counts are made of: columns of rows, and options by name."""
Counting = Callable[..., Counts]
"""From what users have to counts by group."""


def count_rows(
    y_true: Labels | None,
    y_pred: Labels,
    groups: GroupLabels | None = None,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
) -> Counts:
    """Count rows as `equipoise.metrics.count`, with one group without any, or without true classes.

    Raises
    ------
    InputError
        As `equipoise.metrics.count`, and without true classes where rows have several labels.
    """
    shape = shape_of(y_pred)
    if groups is None:
        groups = fill_labels(None, shape[0])
    if y_true is not None:
        return count(y_true, y_pred, groups, weights=weights, units=units)
    if len(shape) != 1:
        raise InputError(f"y_pred: shape {shape}; expected one label per row, shape (n,)")
    check_lengths({"y_pred": shape[0], "groups": rows_of(groups)})
    counts = count(y_pred, y_pred, groups, weights=weights, units=units)
    excluded = {
        reason.replace("true class", "prediction"): n for reason, n in counts.excluded.items()
    }
    return replace(counts, excluded=excluded)


@record
class RateMetric(Form):
    """A rate of groups as a metric: numerator and denominator of each group.

    Call it for the rate over all rows, with that of each group. Its methods compare groups:
    `difference` the highest and the lowest, `ratio` the lowest with the highest, `worst_group` is
    the worst of them, and `against_rest` is one group's minus that of all others.

    They take the data, and these keywords:

    positive : str
        The class that stands against the rest.
    weights, units, resampling, rng
        See `equipoise.metrics`; `against_rest` draws nothing and has no `rng`.

    Attributes
    ----------
    spec : MetricSpec
    rate : Rate
    count : callable
        From the data to counts; by default of true classes, predictions and groups.
    of_all : bool
        Whether it has a number of all classes, which is the share of right predictions.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.true_positive_rate(true, pred, gender, positive="chef")
    <true_positive_rate 0.667 [0.541, 0.773]; n = 120 in 2 groups>
    >>> gap = m.true_positive_rate.difference(true, pred, gender, positive="chef")
    >>> round(gap.value, 3), gap.p_value < 0.01
    (0.667, True)
    >>> m.accuracy(true, pred, gender)
    <accuracy 0.833 [0.757, 0.889]; n = 120 in 2 groups>
    >>> m.accuracy.against_rest(true, pred, gender, group="women").value
    -0.33333333333333337
    """

    spec: MetricSpec
    rate: Rate
    count: Counting = count_rows
    of_all: bool = False

    @classmethod
    def of(
        cls,
        spec: MetricSpec,
        terms: Terms,
        *,
        bases: tuple[str, ...] = ("rows",),
        null: Null = "rows",
        predictions: str = "",
        opposite: RateMetric | None = None,
        count: Counting = count_rows,
        of_all: bool = False,
    ) -> RateMetric:
        """Make a metric of the numerator and the denominator of a rate; see `Rate`.

        Parameters
        ----------
        spec : MetricSpec
        terms : callable
            From `Cells` by name to numerator and denominator. These are cells, or sums and
            differences of cells: the denominator counts each row at most once, and the numerator
            is a part of it, as in `cells["both"], cells["truth"]`. F1 isn't, as it counts a row
            twice: make it a `CountMetric`, whose intervals are drawn. A function may return two
            shares of separate rows, whose mean the rate is.
        bases : tuple of str
            What the denominator of each share counts.
        null : "rows", "class" or "prediction"
            Within what groups are exchanged for the chance level.
        predictions, opposite
            See `Rate`.
        count : callable
            From the data to counts.
        of_all : bool
            Whether it has a number of all classes.

        Raises
        ------
        PluginError
            When the function returns anything else.
        """
        opposite_rate = None if opposite is None else opposite.rate
        rate = Rate(spec.name, null, terms, bases, predictions, opposite_rate)
        of_class = spec.of_class or (count is count_rows and not of_all)
        return cls(replace(spec, rate=True, of_class=of_class), rate, count, of_all)

    def __call__(
        self,
        *data: Data,
        positive: Cell = "",
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **named: Data,
    ) -> Estimate:
        """Return the rate over all rows, with that of each group."""
        counts = self._count(data, named)
        return self._measure(counts, positive, Aggregate.VALUE, None, resampling, rng)

    def difference(
        self,
        *data: Data,
        positive: Cell = "",
        null: Null | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        compared_to: ComparedTo = "",
        **named: Data,
    ) -> Estimate:
        """Return the highest minus the lowest rate; without `positive` the largest over classes.

        With `compared_to="overall"`, how far the worst group is from all rows.

        Raises
        ------
        InputError
            When `compared_to` is neither "" nor "overall".
        """
        if compared_to not in get_args(ComparedTo):
            raise InputError(f'compared_to={compared_to!r}: expected "" or "overall"')
        counts, null = self._count(data, named), null or self.rate.null
        if not (positive or self.of_all or compared_to):
            gaps = ClassGaps(null, self.spec.name, (self.rate,))
            return measure(counts, [gaps], resampling, rng)[0]
        return self._measure(
            counts, positive, Aggregate.DIFFERENCE, null, resampling, rng, compared_to
        )

    def ratio(
        self,
        *data: Data,
        positive: Cell = "",
        null: Null | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **named: Data,
    ) -> Estimate:
        """Return the lowest over the highest rate of groups."""
        counts, null = self._count(data, named), null or self.rate.null
        return self._measure(counts, positive, Aggregate.RATIO, null, resampling, rng)

    def worst_group(
        self,
        *data: Data,
        positive: Cell = "",
        null: Null | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        **named: Data,
    ) -> Estimate:
        """Return the worst rate of a group: the lowest, or the highest where high ones harm."""
        counts, null = self._count(data, named), null or self.rate.null
        return self._measure(counts, positive, Aggregate.WORST_GROUP, null, resampling, rng)

    def against_rest(
        self,
        *data: Data,
        group: Cell = "",
        positive: Cell = "",
        resampling: Resampling | None = DEFAULT,
        **named: Data,
    ) -> Estimate:
        """Return the rate of a group minus that of all other groups, without draws.

        Raises
        ------
        InputError
            When there is no such group, or it or all others have too few rows.
        """
        counts = self._count(data, named)
        name = counts.groups.display_name(str(group))
        subject = self._subject(counts, positive)
        rates = GroupRate(self.rate, subject, Aggregate.AGAINST_REST, None)
        compared = rates.compared(counts)
        usable = [*compress(counts.groups.names, compared)]
        if name not in usable or len(usable) < 2:
            raise InputError(
                f"group={group!r}: expected one of at least two groups that have rows enough: "
                f"{', '.join(usable) or 'none'}"
            )
        place, compare = counts.groups.names.index(name), partial(_compare, counts, rates)
        against = compare(0.95)
        value, mean, low, high, p = (
            float(array[0, place])
            for array in (
                against.difference.value, against.mean, against.chance_low, against.chance_high,
                against.p_value,
            )
        )  # fmt: skip
        drawn = f"rows of the group and of all other groups exchange places{against.null}"
        tests: Tested = {"no_chance": "resampling is off"}
        if resampling is not None:
            tests = {"chance": Chance(mean, low, high, drawn), "p_value": p, "null_drawn": drawn}
        return make_estimate(
            self.spec.name, value, {name: n for name, n in sizes(counts.groups).items() if n},
            NO_INTERVAL if resampling is None else "Newcombe, the group against all others",
            aggregate=Aggregate.AGAINST_REST, **tests, unit=counts.unit,
            params={"group": name, "null": self.rate.null, **rates.params},
            excluded=counts.excluded,
            ends=no_ends if resampling is None else partial(_ends_at, compare, place),
        )  # fmt: skip

    @property
    def __signature__(self) -> Signature:
        """Parameters of the data, and of every metric."""
        keywords = [
            parameter
            for parameter in signature(type(self).__call__).parameters.values()
            if parameter.kind is Parameter.KEYWORD_ONLY
        ]
        data = signature(self.count)
        return data.replace(
            parameters=[*data.parameters.values(), *keywords], return_annotation=Estimate
        )

    def _count(self, data: tuple[Data, ...], named: Mapping[str, Data]) -> Counts:
        """Count the data.

        Raises
        ------
        InputError
            When it takes other data, or needs true classes that aren't there.
        """
        try:
            passed = signature(self.count).bind(*data, **named)
        except TypeError as error:
            raise InputError(f"{self.spec.name}: {error}") from None
        of_truth = self.count is count_rows and self.rate.numerators != {"prediction"}
        if of_truth and passed.arguments["y_true"] is None:
            raise InputError(f"{self.spec.name}: y_true is None; expected the true classes")
        return self.count(*data, **named)

    def _subject(self, counts: Counts, positive: Cell) -> str:
        """Return the class that is meant, "" for all."""
        subject = str(positive)
        if subject not in counts.classes and not (self.of_all and not subject):
            classes = ", ".join(counts.classes)
            raise InputError(f"positive={subject!r}: expected a class, one of {classes}")
        return subject

    def _measure(
        self,
        counts: Counts,
        positive: Cell,
        aggregate: Aggregate,
        null: Null | None,
        resampling: Resampling | None,
        rng: Seed,
        compared_to: ComparedTo = "",
    ) -> Estimate:
        """Measure the rate or a comparison of groups.

        Raises
        ------
        InputError
            When there is no such class, or it is of a worst group and no side of the rate is worse.
        """
        subject = self._subject(counts, positive)
        if (aggregate is Aggregate.WORST_GROUP or compared_to) and self.spec.value_harm == "either":
            raise InputError(
                f"{self.spec.name}: neither a high nor a low one is worse, so no group is the "
                "worst. To do: take the difference or the ratio of groups"
            )
        rates = GroupRate(self.rate, subject, aggregate, null, compared_to)
        return measure(counts, [rates], resampling, rng)[0]


def _compare(counts: Counts, rates: GroupRate, level: float) -> AgainstRest:
    """Compare each group with all others, (1, groups)."""
    if rates.rate.within_one_class or rates.rate.null == "rows":
        compared = rates.compared(counts)
        ((hits, n),) = (
            (np.where(compared, hits, 0.0), np.where(compared, n, 0.0))
            for hits, n in rates.effective(counts)
        )
        against = AgainstRest.of(np.rint(hits)[None], np.rint(n)[None], level)
        exact = (divide(hits, n) - divide(all_others(hits), all_others(n)))[None]
        return replace(against, difference=replace(against.difference, value=exact))
    place = counts.classes.index(rates.subject)
    return AgainstRest.within_classes(counts, rates.rate, level).of_class(place)


def _ends_at(compare: Callable[[float], AgainstRest], place: int, level: float) -> Span:
    difference = compare(level).difference
    return float(difference.low[0, place]), float(difference.high[0, place])
