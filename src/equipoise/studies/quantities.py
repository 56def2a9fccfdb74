"""Numbers of a run, as the tables and claims of a study declare them."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PositiveInt, Tag

from equipoise.config.fields import Label, Listed, Name, Section, keys_of
from equipoise.core import Aggregate, Finding, IntervalKind
from equipoise.core.estimate import name_with
from equipoise.core.types import Json
from equipoise.metrics.spec import own_aggregate, spec_of
from equipoise.studies.repetition import Repetition, Settings, contains

MISSING = "not in this run"
SEVERAL = "several in this run"
UNDEFINED = "can't be estimated"


@dataclass(frozen=True)
class Reading:
    """A number of a run.

    Attributes
    ----------
    name : str
        The name of the quantity.
    value, low, high : float
        The number and its confidence interval, whose ends are equal where the number is exact; NaN
        where unknown.
    chance : float
        Its chance level; NaN without one.
    chance_low, chance_high : float
        The band of chance; NaN without one.
    missing : str
        Why there is no number; "" where there is one.
    text : str
        In place of a number: names.
    """

    name: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    missing: str = ""
    text: str = ""
    chance_low: float = math.nan
    chance_high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def minus(self, other: Reading) -> Reading:
        """Return the difference of unpaired numbers; its interval is from end to end."""
        return Reading(
            f"{self.name} minus {other.name}",
            self.value - other.value,
            self.low - other.high,
            self.high - other.low,
            missing=self.missing or other.missing,
        )

    def scaled(self, times: float, *, absolute: bool) -> Reading:
        """Return the number times a factor, and without its sign if `absolute`."""
        value, chance = self.value * times, self.chance * times
        low, high = sorted((self.low * times, self.high * times))
        band_low, band_high = sorted((self.chance_low * times, self.chance_high * times))
        if absolute:
            band_low = band_high = math.nan
            value, chance = abs(value), abs(chance)
            nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
            low, high = nearest, max(abs(low), abs(high))
        if not self.has_interval:
            low = high = math.nan
        return replace(
            self, value=value, low=low, high=high, chance=chance, chance_low=band_low,
            chance_high=band_high,
        )  # fmt: skip


def exact(name: str, value: float) -> Reading:
    """Return a number that is counted or declared, not estimated."""
    return Reading(name, value, value, value)


class Quantity(Section):
    """A number of a run.

    Attributes
    ----------
    times : float
        Factor from the unit and sign of the run to those of the source: 100 for percent.
    absolute : bool
        Whether the sign is left out.
    """

    times: float = 1.0
    absolute: bool = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the quantity."""

    @abstractmethod
    def _reading(self, run: Repetition) -> Reading:
        """Read the number in the unit of the run."""

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return ()

    @property
    def any_model(self) -> list[Where]:
        """Its findings of no particular model."""
        return [where for where in self.wheres if where.model is None]

    def read(self, run: Repetition) -> Reading:
        """Read the number from a run."""
        reading = self._reading(run)
        if not (reading.missing or reading.text) and math.isnan(reading.value):
            reading = replace(reading, missing=UNDEFINED)
        return reading.scaled(self.times, absolute=self.absolute)


NameOrSettings = Label | Settings
_NO_FIELDS = (
    "times", "absolute", "model", "version", "level", "parameter", "parameters", "run",
    "spread",
)  # fmt: skip
"""Keys that aren't compared with the field of a finding."""


class Where(Quantity):
    """A finding, by its fields.

    Attributes
    ----------
    model, version : str or mapping, optional
        By name, or by settings of the run's configuration. A name to which the study's
        configurations give settings stands for these, whatever the run calls them.
    metric, aggregate, compared_to, change_from, subject, part_of, groups, within, within_value,
    variant, group : str, optional
        Fields of the finding. Unless given, `aggregate` is that of the metric, `version` is
        "default", and `compared_to`, `change_from` and `group` are "".
    level : str, optional
        A group, whose number is taken in place of the finding's.
    parameter : str, optional
        A parameter, whose value is taken in place of the finding's.
    parameters : mapping, optional
        Parameters that the finding must have.
    run : mapping, optional
        Settings that the run's configuration must have.
    spread : bool
        Whether a resampling spread, which is no confidence interval, may decide a claim.
    """

    model: NameOrSettings | None = None
    metric: Name | None = None
    aggregate: Name | None = None
    compared_to: str | None = None
    change_from: str | None = None
    subject: Label | None = None
    part_of: Label | None = None
    groups: str | None = None
    within: str | None = None
    within_value: str | None = None
    version: NameOrSettings | None = None
    variant: str | None = None
    group: Label | None = None
    level: Label | None = None
    parameter: Name | None = None
    parameters: Settings = Field(default_factory=dict)
    run: Settings = Field(default_factory=dict)
    spread: bool = False

    @property
    def name(self) -> str:
        """The metric with its aggregate, and the other fields."""
        metric = self.metric or ""
        if self.metric:
            metric = name_with(spec_of(self.metric).title, self._aggregate)
        fields = (
            self.subject,
            self.part_of,
            self.groups,
            self.level,
            self.group,
            self.model,
            self.version,
        )
        texts = (
            text if isinstance(text, str) or text is None else json.dumps(dict(text))
            for text in (*fields, *map(str, self.parameters.values()), self.parameter)
        )
        return ", ".join(filter(None, [metric, *texts]))

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The finding itself."""
        return (self,)

    @property
    def _aggregate(self) -> Aggregate:
        if self.aggregate is not None:
            return Aggregate(self.aggregate)
        return own_aggregate(self.metric) if self.metric else Aggregate.VALUE

    def findings(self, run: Repetition) -> list[Finding]:
        """Return the findings of a run that have the fields."""
        if not contains(run.resolved, self.run):
            return []
        fields = {name: getattr(self, name) for name in self.model_fields_set - {*_NO_FIELDS}}
        defaults = {
            "aggregate": self._aggregate, "change_from": "", "compared_to": "", "group": "",
        }  # fmt: skip
        conditions = defaults | {name: text for name, text in fields.items() if text is not None}
        fields_of, values = attrgetter(*conditions), tuple(conditions.values())
        versions = run.versions("default" if self.version is None else self.version)
        models = None if self.model is None else run.models(self.model)
        return [
            finding
            for finding in run.findings
            if fields_of(finding) == values
            and finding.version in versions
            and (models is None or finding.model in models)
            and contains(finding.parameters, self.parameters)
        ]

    def number_of(self, finding: Finding) -> Reading:
        """Return the number that is taken of a finding."""
        if self.parameter is not None:
            value = finding.parameters.get(self.parameter)
            if value is None:
                return Reading(self.name, missing=MISSING)
            return Reading(self.name, float(value))
        low, high, value, chance = finding.ci_low, finding.ci_high, finding.value, finding.chance
        band = (finding.chance_low, finding.chance_high)
        if self.level is not None:
            groups = [group for group in finding.by_group if group.group == self.level]
            if not groups:
                return Reading(self.name, missing=MISSING)
            value, low, high, chance = groups[0].value, groups[0].low, groups[0].high, math.nan
            band = (math.nan, math.nan)
        unknown = finding.interval is IntervalKind.NONE and self.level is None
        if unknown or not self._decides(finding):
            low = high = math.nan
        return Reading(self.name, value, low, high, chance, chance_low=band[0], chance_high=band[1])

    def _decides(self, finding: Finding) -> bool:
        """Return whether intervals of a finding and its groups may decide a claim."""
        return finding.interval is not IntervalKind.SPREAD or self.spread

    def _reading(self, run: Repetition) -> Reading:
        return _only(self.name, map(self.number_of, self.findings(run)))

    def by(self, over: Over, run: Repetition) -> dict[str, Reading]:
        """Return the numbers of a run by subject, model or group, without the whole's.

        A number that isn't the only one of its subject, or is undefined, is left out too. Within a
        chosen value of an attribute a number has the subject that it is a part of.
        """
        key_field = "part_of" if over == "subject" and self.within_value else over
        readings = dict[str, list[Reading]]()
        for finding in self.findings(run):
            key = getattr(finding, key_field)
            if key:
                readings.setdefault(key, []).append(self.number_of(finding))
        numbers = {key: _only(self.name, series) for key, series in readings.items()}
        return {
            key: reading.scaled(self.times, absolute=self.absolute)
            for key, reading in numbers.items()
            if not math.isnan(reading.value)
        }


Over = Literal["subject", "model", "group"]


def _only(name: str, readings: Iterable[Reading]) -> Reading:
    """Return the only number; equal numbers, such as of two tests, are that of the first."""
    # NaN differs from itself, and its text doesn't.
    distinct = dict[str, Reading]()
    for reading in readings:
        distinct.setdefault(repr((reading.value, reading.low, reading.high)), reading)
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    return Reading(name, missing=SEVERAL if distinct else MISSING)


class MeanOf(Quantity):
    """The mean of numbers, such as of the models of a family.

    Its interval lies between the means of the numbers' ends, which is wide enough whether their
    errors are shared or not.

    Attributes
    ----------
    mean_of : list of Where
    """

    mean_of: Annotated[Listed[Where], Field(min_length=2)]

    @property
    def name(self) -> str:
        """All numbers."""
        return f"mean of {' and '.join(where.name for where in self.mean_of)}"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return self.mean_of

    def _reading(self, run: Repetition) -> Reading:
        readings = [where.read(run) for where in self.mean_of]
        if missing := next(filter(None, (reading.missing for reading in readings)), ""):
            return Reading(self.name, missing=missing)
        value, low, high, chance = (
            sum(getattr(reading, name) for reading in readings) / len(readings)
            for name in ("value", "low", "high", "chance")
        )
        return Reading(self.name, value, low, high, chance)


def _is_mean(value: Any) -> str:
    return "mean_of" if "mean_of" in keys_of(value) else "finding"


FindingOrMean = Annotated[
    Annotated[Where, Tag("finding")] | Annotated[MeanOf, Tag("mean_of")], Discriminator(_is_mean)
]


class PercentAbove(Quantity):
    """Percent by which a number lies above another; its interval is from end to end.

    Attributes
    ----------
    percent_above : list of Where or MeanOf
        The number, and what it is compared with.
    """

    percent_above: Annotated[Listed[FindingOrMean], Field(min_length=2, max_length=2)]

    @property
    def name(self) -> str:
        """Both numbers."""
        first, second = self.percent_above
        return f"{first.name} above {second.name}, in percent"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return tuple(where for number in self.percent_above for where in number.wheres)

    def _reading(self, run: Repetition) -> Reading:
        first, second = (number.read(run) for number in self.percent_above)
        if missing := first.missing or second.missing:
            return Reading(self.name, missing=missing)
        if second.value <= 0:
            return Reading(self.name, missing=UNDEFINED)
        low = high = math.nan
        if second.low > 0:
            low, high = _percent(first.low, second.high), _percent(first.high, second.low)
        return Reading(self.name, _percent(first.value, second.value), low, high)


def _percent(value: float, base: float) -> float:
    return 100.0 * (value / base - 1.0)


class Correlation(Quantity):
    """Pearson's correlation of two numbers over subjects or models, by Fisher's z.

    Attributes
    ----------
    correlation : list of Where
        The two numbers.
    over : "subject", "model" or "group"
    """

    correlation: Annotated[Listed[Where], Field(min_length=2, max_length=2)]
    over: Over = "subject"

    @property
    def name(self) -> str:
        """Both numbers."""
        first, second = self.correlation
        return f"correlation of {first.name} and {second.name} over {self.over}s"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return () if self.over == "model" else self.correlation

    def _reading(self, run: Repetition) -> Reading:
        import numpy as np

        from equipoise.stats.intervals import fisher_z

        first, second = _paired(self.correlation, self.over, run)
        if not first:
            return Reading(self.name, missing=MISSING)
        if min(np.ptp(first), np.ptp(second)) == 0.0:
            return Reading(self.name, missing=UNDEFINED)
        r = float(np.corrcoef(first, second)[0, 1])
        low, high = fisher_z(min(max(r, -1.0), 1.0), len(first))
        return Reading(self.name, r, float(low), float(high))


class Change(Quantity):
    """The mean over subjects or models of a number minus another, by Student's t.

    Attributes
    ----------
    change : list of Where
        The number, and what is subtracted from it.
    over : "subject", "model" or "group"
    absolute : bool
        Whether the sign of each subject's difference is left out.
    """

    change: Annotated[Listed[Where], Field(min_length=2, max_length=2)]
    over: Over = "subject"

    @property
    def name(self) -> str:
        """Both numbers."""
        first, second = self.change
        size = "size of the change" if self.absolute else "change"
        return f"mean {size} of {first.name} from {second.name} over {self.over}s"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return () if self.over == "model" else self.change

    def _reading(self, run: Repetition) -> Reading:
        import numpy as np

        from equipoise.stats.intervals import mean_t

        first, second = _paired(self.change, self.over, run)
        if not first:
            return Reading(self.name, missing=MISSING)
        differences = np.subtract(first, second)
        if self.absolute:
            differences = np.abs(differences)
        low, high = mean_t(differences)
        return Reading(self.name, float(differences.mean()), float(low), float(high))


def _paired(
    pair: tuple[Where, ...], over: Over, run: Repetition
) -> tuple[list[float], list[float]]:
    """Return the values of two numbers for the subjects that have both."""
    first, second = (where.by(over, run) for where in pair)
    common = [key for key in first if key in second]
    return [first[key].value for key in common], [second[key].value for key in common]


class Mean(Quantity):
    """The mean over subjects, models or groups of a number, by Student's t.

    Attributes
    ----------
    mean : Where
    subjects : list of str
        Those that count; all without.
    over : "subject", "model" or "group"
    """

    mean: Where
    subjects: Listed[Label] = ()
    over: Over = "subject"

    @property
    def name(self) -> str:
        """The number, and how many subjects are named."""
        named = f" named here ({len(self.subjects)})" if self.subjects else ""
        return f"mean of {self.mean.name} over {self.over}s{named}"

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return () if self.over == "model" else (self.mean,)

    def _reading(self, run: Repetition) -> Reading:
        import numpy as np

        from equipoise.stats.intervals import mean_t

        readings = self.mean.by(self.over, run)
        values = [readings[key].value for key in self.subjects or readings if key in readings]
        if not values:
            return Reading(self.name, missing=MISSING)
        low, high = mean_t(np.array(values))
        return Reading(self.name, float(np.mean(values)), float(low), float(high))


class Count(Quantity):
    """The number of subjects or models whose number lies between two bounds.

    Its interval counts those whose interval lies inside, and those whose interval reaches in.

    Attributes
    ----------
    count : Where
    reaching, below : float, optional
        The bounds, the first of them allowed itself.
    over : "subject", "model" or "group"
    total : Where, optional
        Of subjects: the number of what each is a part of, which is subtracted from its own.
    """

    count: Where
    reaching: float = -math.inf
    below: float = math.inf
    over: Over = "subject"
    total: Where | None = None

    @property
    def name(self) -> str:
        """The number and its bounds."""
        bounds = [
            f"of at least {self.reaching:g}" if self.reaching > -math.inf else "",
            f"below {self.below:g}" if self.below < math.inf else "",
        ]
        less = f"minus {self.total.name}" if self.total else ""
        return " ".join(filter(None, [f"{self.over}s with {self.count.name}", less, *bounds]))

    @property
    def wheres(self) -> tuple[Where, ...]:
        """The findings that it is made of."""
        return () if self.over == "model" else (self.count,)

    def _reading(self, run: Repetition) -> Reading:
        readings = [*self._readings(run)]
        if not readings:
            return Reading(self.name, missing=MISSING)
        inside = sum(self.reaching <= reading.value < self.below for reading in readings)
        if (self.reaching, self.below) == (-math.inf, math.inf):
            return exact(self.name, inside)
        whole = sum(self.reaching <= r.low and r.high < self.below for r in readings)
        outside = sum(r.high < self.reaching or r.low >= self.below for r in readings)
        return Reading(self.name, inside, whole, len(readings) - outside)

    def _readings(self, run: Repetition) -> Iterable[Reading]:
        """Return counted numbers less those of their totals."""
        readings = self.count.by(self.over, run)
        if self.total is None:
            return readings.values()
        totals = self.total.by(self.over, run)
        part_of = {finding.subject: finding.part_of for finding in self.count.findings(run)}
        return [
            reading.minus(totals[parent])
            for key, reading in readings.items()
            if (parent := part_of.get(key)) in totals
        ]


class Entry(Quantity):
    """A count of the run's record, such as of images.

    Attributes
    ----------
    recorded : str
        Its keys in `counts` of the manifest, with points between them.
    """

    recorded: Name

    @property
    def name(self) -> str:
        """Its keys."""
        return self.recorded

    def _reading(self, run: Repetition) -> Reading:
        value: Any = run.result.manifest.counts
        for key in self.recorded.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(value, int | float):
            return Reading(self.name, missing=MISSING)
        return exact(self.name, value)


class Cell(Quantity):
    """A number in a table of the run's record, such as a quartile over queries.

    Attributes
    ----------
    table : str
    column : str
    per : str, optional
        Column that the number is divided by.
    ends : list of two str, optional
        Columns of the ends of its confidence interval.
    row : mapping
        Columns with the values that the row has; a model by its name in the study.
    """

    table: Name
    column: Name
    per: Name | None = None
    ends: tuple[Name, Name] | None = Field(default=None, strict=False)
    row: Settings = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """The column and the row."""
        column = self.column if self.per is None else f"{self.column} / {self.per}"
        return ", ".join([f"{self.table}: {column}", *map(str, self.row.values())])

    def _reading(self, run: Repetition) -> Reading:
        return _only(self.name, map(self._number_of, _rows(run, self.table, self.row)))

    def _number_of(self, row: Settings) -> Reading:
        value, divisor = row.get(self.column), 1 if self.per is None else row.get(self.per)
        if not isinstance(value, int | float) or not isinstance(divisor, int | float):
            return Reading(self.name, missing=MISSING)
        ends = [row.get(name) for name in self.ends or ()]
        low, high = (
            end if isinstance(end, int | float) else math.nan for end in ends or (None, None)
        )
        return Reading(self.name, value / divisor if divisor else math.nan, low, high)


def _rows(run: Repetition, name: str, wanted: Settings) -> list[Settings]:
    """Return the rows of a table of the record that have some values."""
    table = run.result.tables.get(name)
    models = run.models(wanted["model"]) if "model" in wanted else ()
    return [
        row
        for row in ([] if table is None else table.to_pylist())
        if all(
            row.get(key) in models if key == "model" else row.get(key) == value
            for key, value in wanted.items()
        )
    ]


class Top(Quantity):
    """The names with the largest numbers in a table of the run's record, equal ones in its order.

    Attributes
    ----------
    top : int
        How many.
    table, column, by : str
        The table, its column of names, and that of numbers.
    row : mapping
        Columns with the values that the rows have; a model by its name in the study.
    """

    top: PositiveInt
    table: Name
    column: Name
    by: Name
    row: Settings = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """The column and the rows."""
        return ", ".join([f"{self.column} with the most {self.by}", *map(str, self.row.values())])

    def _reading(self, run: Repetition) -> Reading:
        rows = _rows(run, self.table, self.row)
        if not rows:
            return Reading(self.name, missing=MISSING)
        first = sorted(rows, key=lambda row: -float(row[self.by]))[: self.top]
        return Reading(self.name, text=", ".join(str(row[self.column]) for row in first))


NESTED = ("correlation", "change", "count", "row", "mean", "mean_of", "percent_above")
"""Keys of quantities that hold findings, or a row."""
_BESIDE = ("over", "reaching", "below", "total")
"""Keys beside these, which are no fields of a finding."""


def _kind(value: Any) -> str:
    """Return which quantity a mapping declares."""
    keys = keys_of(value)
    return next((key for key in ("top", *NESTED, "recorded") if key in keys), "finding")


AnyQuantity = Annotated[
    Annotated[Where, Tag("finding")]
    | Annotated[Correlation, Tag("correlation")]
    | Annotated[Change, Tag("change")]
    | Annotated[Mean, Tag("mean")]
    | Annotated[Count, Tag("count")]
    | Annotated[Cell, Tag("row")]
    | Annotated[Top, Tag("top")]
    | Annotated[MeanOf, Tag("mean_of")]
    | Annotated[PercentAbove, Tag("percent_above")]
    | Annotated[Entry, Tag("recorded")],
    Discriminator(_kind),
]
"""A finding, or a number of several."""


def merged(row: Settings, column: Settings) -> Settings:
    """Return the declaration of a cell: what its row declares, and its column.

    Fields of a finding enter the findings of a correlation, change, mean or count, and the row of a
    table. A count of the record has none.
    """
    special, other = (row, column) if {*row} & {*NESTED, "recorded"} else (column, row)
    keys = [key for key in (*NESTED, "recorded") if key in special]
    if not keys:
        return {**row, **column}
    own_keys = (*Quantity.model_fields, *NESTED, *_BESIDE)
    fields = {key: other[key] for key in other if key not in own_keys}
    cell = {key: other[key] for key in other if key not in fields} | dict(special)
    for key in NESTED:
        if key in special:
            declared = [part[key] for part in (other, special) if key in part]
            mappings = [nested for nested in declared if isinstance(nested, Mapping)]
            nested = {**mappings[0], **mappings[1]} if len(mappings) == 2 else special[key]
            cell[key] = _with_fields(nested, fields)
    return cell


def _with_fields(wheres: Json, fields: Settings) -> Json:
    """Return findings, one or several, with further fields, unless they have them."""
    if isinstance(wheres, Mapping):
        nested = {key: _with_fields(wheres[key], fields) for key in NESTED if key in wheres}
        return {**wheres, **nested} if nested else {**fields, **wheres}
    return [_with_fields(where, fields) for where in wheres] if isinstance(wheres, list) else wheres
