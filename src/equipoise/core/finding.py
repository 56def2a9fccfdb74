"""One row of the findings table, the form in which every audit ends."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

from equipoise.core.plain_json import number_from_json, plain
from equipoise.core.sentences import EMPTY, Phrase, Sentence
from equipoise.core.types import Facts, Fields


class Verdict(StrEnum):
    """What may be concluded from a finding."""

    DISPARITY = "disparity"
    DETECTED = "detected"
    BELOW_THRESHOLD = "below threshold"
    INCONCLUSIVE = "inconclusive"
    NOT_ESTIMABLE = "not estimable"
    NONE = "no verdict"


REAL = (Verdict.DISPARITY, Verdict.DETECTED)
"""Verdicts that a difference was found."""


class Family(StrEnum):
    """Which family of tests a finding belongs to."""

    LEAF = "leaf"
    COMPOSITE = "composite"
    QUERY = "query"
    """Of single queries or their mean: corrected by itself."""
    DESCRIPTIVE = "descriptive"
    WITHHELD = "withheld"
    """Not tested, as another number of the model says that this one means nothing."""
    FOLD = "fold"
    """States the fact of another finding, shares its test and verdict, and isn't counted."""


class Aggregate(StrEnum):
    """Whether a number is a level of the rows or a comparison of groups."""

    VALUE = "value"
    """Pooled over rows; a metric of one class has its subject."""
    DIFFERENCE = "difference"
    """Between groups, or of the worst group from all rows."""
    RATIO = "ratio"
    WORST_GROUP = "worst_group"
    AGAINST_REST = "against_rest"
    """A group minus all other groups."""


class IntervalKind(StrEnum):
    """Meaning of the ends of an interval."""

    CONFIDENCE = "confidence"
    PERCENTILE = "percentile"
    """Percentiles of bootstrap replicates."""
    SIMULTANEOUS = "simultaneous"
    """A confidence interval of a largest or smallest number of several."""
    SPREAD = "spread"
    """Percentiles of replicates that are no confidence interval; they decide no verdict."""
    NONE = "none"


class NullHypothesis(StrEnum):
    """The units that are exchangeable under the null hypothesis of a test."""

    NONE = ""
    ROWS = "rows"
    WITHIN_CLASS = "within_class"
    WITHIN_PREDICTION = "within_prediction"
    WITHIN_SETS = "within_sets"
    POOL_ORDER = "pool_order"
    UNITS = "units"
    MEMBERS = "members"
    REPLICATES = "replicates"
    MODELS = "models"
    SIGNS = "signs"
    HYPOTHESIS = "hypothesis"
    LARGEST = "largest"
    SHARES = "shares"
    REFERENCE = "reference"
    MAPS = "maps"
    CAUSE = "cause"
    NORMAL = "normal"
    SAMPLES = "samples"


class Variant(StrEnum):
    """Variant of a measure, next to the main one."""

    MAIN = ""
    POOL_ORDER = "pool_order"
    """Against a random order of the whole pool, where the main one is within sets."""
    UNIFORM_TARGET = "uniform_target"
    POOL_TARGET = "pool_target"
    OWN_LEAN = "own_lean"
    """Of the attributes themselves, rather than of targets."""


ComparedTo = Literal["", "overall"]
"""What a difference is from: the group farthest away (""), or all rows."""


TESTED = (Family.LEAF, Family.COMPOSITE, Family.QUERY)
"""Families whose findings are tests of their own."""


class Fact(NamedTuple):
    """The facts that identify a finding.

    Attributes
    ----------
    metric, aggregate, subject : str, Aggregate, str
    compared_to : str
        As in `Finding`.
    groups : str
        Where other than those of the finding that folds into it.
    """

    metric: str
    aggregate: Aggregate
    subject: str = ""
    compared_to: ComparedTo = ""
    groups: str = ""


@dataclass(frozen=True)
class GroupValue:
    """The number of one group behind a finding, with its interval and sample size."""

    group: str
    levels: tuple[str, ...]
    n: int
    value: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class Ratio:
    """How often the group that is worse off has an error, for one of the group it is compared with.

    Attributes
    ----------
    value, low, high : float
        The ratio, at least 1, and its interval, simultaneous over pairs of groups; infinite where
        the other group has no error.
    decides : bool
        Whether the verdict rests on the ratio, as the difference in points is too small for it.
    """

    value: float
    low: float
    high: float
    decides: bool = False

    @classmethod
    def from_json(cls, item: Mapping[str, Any] | None) -> Ratio | None:
        """Rebuild a ratio from a file, see `plain` for its numbers."""
        if item is None:
            return None
        ends = {name: number_from_json(item[name]) for name in ("value", "low", "high")}
        return cls(**ends, decides=item["decides"])


@dataclass(frozen=True)
class Excluded:
    """How many rows or groups did not enter a finding, and why."""

    reason: str
    count: int


MEAN_OF = "mean_of"
"""Parameter of findings whose rows each have a mean, with what it is of: shares count no rows."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A value about a subject and groups, with everything needed to judge it.

    Attributes
    ----------
    audit, model, metric, subject, groups, version : str
        What was measured: the audit's kind, the model, the metric's registered name, the class
        or concept ("" for the whole), the attributes (joined by " × "), and the version of
        the design choices ("default" when there is one only).
    aggregate : Aggregate
        Whether `value` is the level of the metric, or how groups compare in it.
    compared_to : "" or "overall"
        Of a difference: from the group farthest away, or from all rows.
    within : str
        Attributes within whose values the groups are compared; "" where all rows are.
    within_value : str
        The value of these attributes that all rows of the finding have; "" for all values.
    part_of : str or None
        The subject that `subject` is a part of, such as the query of "query | value"; "" for a
        part of the whole, None where `subject` is no part of another.
    variant : Variant
        Which variant of the measure stands beside the main one; `version` names it for people.
    change_from : str
        The model or run that `value` is a change from; "" for a level.
    value, ci_low, ci_high, level : float
        The value and its interval.
    chance, chance_low, chance_high, excess : float
        The chance level with its 95 % band, and value minus chance; NaN when there is none.
    p_value, q_value : float
        Against the chance level, and after the correction within `family`.
    p_at_most, q_at_most : bool
        Whether they are only upper ends: no sampled draw was as extreme, so that more draws could
        make them smaller.
    threshold : float
        Practical threshold on the excess; NaN when the metric has none.
    n : int
        Rows behind the value.
    by_group : tuple of GroupValue
        What each group contributes.
    by_group_of : str
        The subject that `by_group` is about, where the finding is about all of them: the class with
        the largest gap. "" elsewhere.
    ratio : Ratio or None
        Of rare errors, how many times as often the group that is worse off has them.
    excluded : tuple of Excluded
        What did not enter, with reasons.
    unit, method : str
        Unit of resampling, and how the interval was made.
    null : NullHypothesis
    null_drawn : str
        How the null hypothesis was drawn, and how the p-value was reached.
    interval : IntervalKind
    top_k : int or None
        How many of the first of a ranking count.
    parameters : mapping
        The parameters that decide the number, as `plain_parameters` gives them.
    direction : Sentence
        Who is worse off, in words that know which of them name groups.
    verdict : Verdict
    reason : str
        Why there is no value, no chance level or no verdict; or what to know about it.
    citation : str
        Where the definition comes from.
    corrected : float
        The value without the bias of small samples, which the interval is of; NaN where the
        interval is of `value` itself.
    more : float
        About how many more images would decide an inconclusive finding; NaN where unknown,
        more than a hundred times today's, or where today's are enough on paper.
    more_of : str
        The group or groups that these images show; "" where images of all groups decide.
    group : str
        The group that is compared with all others, or, of two models, whose change it is; "" where
        all groups are compared.
    leads : bool
        Whether a report may start with the finding.
    beside : str
        What stands beside the value, as a sentence.
    sides : tuple of str
        The two sets of groups whose difference has a sign: the value is positive for the first.
        () where groups are attributes.
    """

    audit: str
    model: str
    metric: str
    aggregate: Aggregate = Aggregate.VALUE
    compared_to: ComparedTo = ""
    change_from: str = ""
    subject: str = ""
    groups: str
    within: str = ""
    within_value: str = ""
    part_of: str | None = None
    version: str = "default"
    variant: Variant = Variant.MAIN
    family: Family
    value: float
    ci_low: float
    ci_high: float
    level: float
    chance: float = math.nan
    chance_low: float = math.nan
    chance_high: float = math.nan
    excess: float = math.nan
    p_value: float
    q_value: float = math.nan
    p_at_most: bool = False
    q_at_most: bool = False
    threshold: float = math.nan
    n: int
    by_group: tuple[GroupValue, ...] = ()
    by_group_of: str = ""
    ratio: Ratio | None = None
    excluded: tuple[Excluded, ...] = ()
    unit: str
    interval: IntervalKind = IntervalKind.CONFIDENCE
    method: str
    null: NullHypothesis
    null_drawn: str = ""
    top_k: int | None = None
    parameters: Facts = field(hash=False)
    direction: Sentence = EMPTY
    verdict: Verdict = Verdict.NONE
    reason: str = ""
    citation: str = ""
    corrected: float = math.nan
    more: float = math.nan
    more_of: str = ""
    group: str = ""
    leads: bool = True
    beside: str = ""
    sides: tuple[str, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes whose intersections are compared."""
        return attributes_of(self.groups)

    @property
    def tested(self) -> bool:
        """Whether the finding is a test of its own with a verdict."""
        without = (Verdict.NONE, Verdict.NOT_ESTIMABLE)
        return self.family in TESTED and self.verdict not in without

    @property
    def by_ratio(self) -> bool:
        """Whether the verdict rests on the ratio of errors rather than on points."""
        return self.ratio is not None and self.ratio.decides


_TYPES = {
    "float": pa.float64(),
    "float | None": pa.float64(),
    "int": pa.int64(),
    "int | None": pa.int64(),
    "bool": pa.bool_(),
    "tuple[str, ...]": pa.list_(pa.string()),
}


def schema_of(record: type) -> pa.Schema:
    """Return the Arrow schema of a dataclass; what has no type of its own is text."""
    return pa.schema([(f.name, _TYPES.get(str(f.type), pa.string())) for f in fields(record)])


_TYPES["tuple[GroupValue, ...]"] = pa.list_(pa.struct(schema_of(GroupValue)))
_TYPES["Ratio | None"] = pa.struct(schema_of(Ratio))
_TYPES["Sentence"] = pa.list_(pa.struct(schema_of(Phrase)))
_TYPES["tuple[Excluded, ...]"] = pa.list_(pa.struct(schema_of(Excluded)))
SCHEMA = schema_of(Finding)


def findings_to_table(findings: Iterable[Finding]) -> pa.Table:
    """Return findings as an Arrow table of `SCHEMA`, in the order given."""
    return pa.Table.from_pylist([as_row(finding) for finding in findings], schema=SCHEMA)


def attributes_of(groups: str) -> tuple[str, ...]:
    """Return the attributes whose intersections findings call `groups`."""
    return tuple(groups.split(" × ")) if groups else ()


class Numbered(Protocol):
    """A finding or part: a number, each group's contribution, and exclusions."""

    @property
    def by_group(self) -> tuple[GroupValue, ...]:
        """The contribution of each group."""

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        """What did not enter, with counts."""


def as_row(number: Numbered) -> dict[str, Any]:
    """Return a finding or part as a row; `asdict` takes ten times as long."""
    row: dict[str, Any] = dict(vars(number))
    row["by_group"] = [vars(group) for group in number.by_group]
    row["excluded"] = [vars(reason) for reason in number.excluded]
    if "parameters" in row:
        row["parameters"] = json.dumps(row["parameters"], sort_keys=True)
    if row.get("ratio") is not None:
        row["ratio"] = vars(row["ratio"])
    if "direction" in row:
        row["direction"] = [vars(part) for part in row["direction"].parts]
    return row


def plain_parameters(parameters: Facts) -> Fields:
    """Return parameters as they read back from a file; see `plain`."""
    text = json.dumps(plain(parameters), sort_keys=True, allow_nan=False)
    read_back: Fields = json.loads(text)
    return read_back


_DECODERS: Mapping[str, Callable[[Any], object]] = MappingProxyType({
    "family": Family, "interval": IntervalKind, "null": NullHypothesis, "parameters": json.loads,
    "ratio": Ratio.from_json, "verdict": Verdict, "sides": tuple,
    "direction": lambda parts: Sentence(*(Phrase(**part) for part in parts)),
})  # fmt: skip
"""What makes a field of what a file holds, where that is no text."""


def findings_from_table(table: pa.Table) -> tuple[Finding, ...]:
    """Rebuild findings from the table that `findings_to_table` makes."""
    return tuple(
        Finding(**row | {name: decode(row[name]) for name, decode in _DECODERS.items()})
        for row in map(with_records, table.to_pylist())
    )


def with_records(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of findings or parts with its groups and exclusions as records."""
    groups = [GroupValue(**group | {"levels": tuple(group["levels"])}) for group in row["by_group"]]
    excluded = [Excluded(**reason) for reason in row["excluded"]]
    return {
        **row,
        "aggregate": Aggregate(row["aggregate"]),
        "variant": Variant(row["variant"]),
        "by_group": tuple(groups),
        "excluded": tuple(excluded),
    }
