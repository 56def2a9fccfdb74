"""The one result of every metric: a number that says how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyarrow as pa

from equipoise.core.arguments import check_level
from equipoise.core.finding import Aggregate, ComparedTo, IntervalKind, NullHypothesis, Variant
from equipoise.core.frames import Frame, frame_of, frame_of_table
from equipoise.core.parts import Part, parts_from_table, parts_to_table
from equipoise.core.records import record
from equipoise.core.types import Facts, Span
from equipoise.core.views import Mark, Plot, TextTable
from equipoise.core.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDS = {"value": float, "low": float, "high": float}
BY_GROUP: Mapping[str, type] = {"metric": str, "class": str, "group": str, **_ENDS, "n": int}
"""Columns of the values of groups, with their types."""
_CHANCE = {"chance": float, "p_value": float}
BY_CLASS: Mapping[str, type] = {"metric": str, "class": str, **_ENDS, **_CHANCE, "n": int}
Harm = Literal["higher", "lower", "either"]
Ends = Callable[[float], Span]


@dataclass(frozen=True)
class Interval:
    """An interval for a value: its ends, confidence level and method."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Chance:
    """The same statistic when groups are exchangeable: its mean and 95 % band."""

    mean: float
    low: float
    high: float
    method: str


def no_ends(level: float) -> Span:  # noqa: ARG001 - the form of `Ends`
    """Ends of an interval that does not exist: NaN at every level."""
    return math.nan, math.nan


Parts: TypeAlias = pa.Table | Iterable[Part] | None


class LaterParts:
    """The field `Estimate.by`: parts, or a function that makes them when they are first read."""

    def __get__(self, estimate: Estimate | None, kind: type[Estimate]) -> pa.Table | None:
        """Return the table, made once; None as the default of the field."""
        if estimate is None:
            return None
        fields = vars(estimate)
        if callable(fields["by"]):
            fields["by"] = _table(fields["by"]())
        return fields["by"]

    def __set__(self, estimate: Estimate, parts: Parts | Callable[[], Parts]) -> None:
        """Keep the value as passed, parts as a table."""
        vars(estimate)["by"] = parts if callable(parts) else _table(parts)


def _table(parts: Parts) -> pa.Table | None:
    if parts is None or isinstance(parts, pa.Table):
        return parts
    return parts_to_table(parts)


@record
class Estimate:
    """A measured value with its interval, chance level, sample sizes and method.

    Attributes
    ----------
    metric : str
        Registered name of the metric.
    aggregate, compared_to : Aggregate, str
        Whether `value` is the level of the metric or how groups compare in it, as in `Finding`.
    value : float
        The number; NaN when it cannot be estimated, and `reason` says why.
    n : mapping of str to int
        Sample size per group.
    chance : Chance or None
        Chance level, or None with `no_chance` saying why there is none.
    p_value : float or None
        Against the chance level.
    p_at_most : bool
        Whether no draw was as extreme, so that p is at most `p_value`.
    null, null_drawn : NullHypothesis, str
        What is exchangeable under the null hypothesis; how it was drawn, and how p was reached.
    harm : "higher", "lower" or "either"
        Which side of the chance level is worse.
    by : pyarrow.Table or None
        Parts of the value (per class, group, ...), see `equipoise.core.parts`. It may be given as
        `Part` records, or a function that makes the parts when they are first read.
    excluded : mapping of str to int
        Rows or groups that did not enter, by reason.
    unit : str
        What was resampled: "row" or the name of the clustering unit.
    method : str
        How the interval was made.
    interval_kind : IntervalKind
        What its ends are.
    params : mapping
        The parameters that decide the number.
    reference : str
        Where the definition comes from.
    corrected : float
        The value without the bias of small samples, which the interval is of; NaN where the
        interval is of `value` itself.
    limits : (float, float)
        The range of the metric, which its interval doesn't leave.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> gap = m.accuracy_gap(true, pred, gender)
    >>> round(gap.value, 3), gap.n
    (0.167, {'men': 60, 'women': 60})
    >>> gap.interval(0.9).method[:9]
    'simultane'
    """

    metric: str
    value: float
    n: Mapping[str, int]
    method: str
    reference: str
    params: Facts = field(default_factory=lambda: MappingProxyType({}))
    chance: Chance | None = None
    no_chance: str = ""
    p_value: float | None = None
    p_at_most: bool = False
    null: NullHypothesis = NullHypothesis.NONE
    null_drawn: str = ""
    harm: Harm = "higher"
    by: LaterParts = LaterParts()
    excluded: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    unit: str = "row"
    reason: str = ""
    ends: Ends = no_ends
    corrected: float = math.nan
    interval_kind: IntervalKind = IntervalKind.CONFIDENCE
    aggregate: Aggregate = Aggregate.VALUE
    compared_to: ComparedTo = ""
    limits: Span = (-math.inf, math.inf)

    def interval(self, level: float = 0.95) -> Interval:
        """Return the interval at a confidence level in (0, 1); NaN ends when there is none.

        Raises
        ------
        InputError
            When the level is no share between 0 and 1, such as 0.95.
        """
        check_level(level)
        least, most = self.limits
        # NaN stays, as it is neither below nor above.
        low, high = (max(min(end, most), least) for end in self.ends(level))
        return Interval(low, high, level, self.method)

    @property
    def excess(self) -> float:
        """Value minus the mean of the chance level; NaN when there is no chance level."""
        return math.nan if self.chance is None else self.value - self.chance.mean

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The rows of `by` as records, read once; none without parts."""
        return () if self.by is None else parts_from_table(self.by)

    @property
    def estimable(self) -> bool:
        """Whether there is a value at all."""
        return not math.isnan(self.value)

    def to_frame(self) -> Frame:
        """Return the parts (`by`), one a row, as a polars data frame; no row without parts."""
        return frame_of_table(parts_to_table(()) if self.by is None else self.by)

    @property
    def by_group(self) -> Frame:
        """The groups' own values, one a row.

        The columns are `metric` (what the value is), `class` ("" over all classes), `group`,
        `value`, `low` and `high` (the interval), and `n`.
        """
        values = {
            (part.shows or part.metric, part.subject, group.group): group
            for part in self.parts
            if part.aggregate is not Aggregate.AGAINST_REST
            for group in part.by_group
        }
        rows = [(*key, row.value, row.low, row.high, row.n) for key, row in values.items()]
        return frame_of(BY_GROUP, rows)

    @property
    def by_class(self) -> Frame:
        """The values of the classes, one a row; no row where there is no value by class.

        The columns are `metric`, `class`, `value`, `low` and `high` (the interval), `chance`,
        `p_value`, and `n`. Of rankings and scores, queries and concepts take the place of classes.
        """
        rows = [
            (
                name_with(part.metric, part.aggregate), part.subject, part.value, part.low,
                part.high, part.chance, part.p_value, part.n,
            )
            for part in self.parts
            if part.subject and part.variant is Variant.MAIN
        ]  # fmt: skip
        return frame_of(BY_CLASS, rows)

    def table(self) -> TextTable:
        """Return the values of the groups as a table; of several classes or queries, their own."""
        title, marks, sizes = self._marks()
        rows = [
            (mark.label, number(mark.value), _ends(mark.low, mark.high),
             _ends(mark.chance_low, mark.chance_high), f"{n:,}")
            for mark, n in zip(marks, sizes, strict=True)
        ]  # fmt: skip
        return TextTable(title, ("", "Value", "Interval", "Chance", "n"), tuple(rows))

    def plot(self, ax: Axes | None = None) -> Plot:
        """Return the values of `table` as a chart with intervals, which notebooks show.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw it, too.

        Examples
        --------
        >>> from equipoise import metrics as m
        >>> gender, true = ["women", "men"] * 60, ["chef", "chef", "nurse", "nurse"] * 30
        >>> gap = m.accuracy_gap(true, ["nurse"] * 60 + true[60:], gender)
        >>> gap.plot().save("gap.svg")  # doctest: +SKIP
        """
        title, marks, _ = self._marks()
        plot = Plot(title, tuple(mark for mark in marks if not math.isnan(mark.value)))
        if ax is not None:
            plot.draw(ax)
        return plot

    @property
    def _label(self) -> str:
        """The metric, and how groups compare in it where the value is no level."""
        return name_with(self.metric, self.aggregate)

    def _marks(self) -> tuple[str, list[Mark], list[int]]:
        """Return what values are of, the values, and their sample sizes."""
        parts, ends = self.parts, self.interval()
        if not parts:
            n = sum(self.n.values())
            parts = (Part(self._label, "", self.value, ends.low, ends.high, n=n),)
        if len(parts) == 1 and parts[0].by_group:
            groups = parts[0].by_group
            marks = [Mark(group.group, group.value, group.low, group.high) for group in groups]
            return f"{self._label} by group", marks, [group.n for group in groups]
        mixed = len({(part.metric, part.aggregate) for part in parts}) > 1
        marks = [
            Mark(
                f"{part.subject} {name_with(part.metric, part.aggregate)}".strip()
                if mixed
                else part.subject or self._label,
                part.value, part.low, part.high, "", part.chance_low, part.chance_high,
            )
            for part in parts
        ]  # fmt: skip
        return self._label, marks, [part.n for part in parts]

    def __repr__(self) -> str:
        if not self.estimable:
            return f"<{self._label} can't be estimated: {self.reason}>"
        ends, facts = self.interval(), []
        interval = "" if math.isnan(ends.low) else f" {_ends(ends.low, ends.high)}"
        if self.chance is not None:
            facts.append(f"chance {number(self.chance.mean)}")
        if self.p_value is not None:
            facts.append(f"p {'≤' if self.p_at_most else '='} {self.p_value:.2g}")
        groups = f" in {len(self.n)} groups" if len(self.n) > 1 else ""
        facts.append(f"n = {sum(self.n.values()):,}{groups}")
        return f"<{self._label} {number(self.value)}{interval}; {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        text = escape(repr(self)[1:-1]).replace(" [", ", 95 % interval [", 1)
        return f"<p>{text}</p>{self.table()._repr_html_()}"

    def __float__(self) -> float:
        return self.value


def name_with(metric: str, aggregate: Aggregate) -> str:
    """Return a metric's name and aggregate, for display; a level has the name alone."""
    level = aggregate is Aggregate.VALUE
    return metric if level else f"{metric} {aggregate.value.replace('_', ' ')}"


def _ends(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"[{number(low)}, {number(high)}]"
