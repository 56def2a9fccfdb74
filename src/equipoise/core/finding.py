"""One row of the findings table, the form in which every audit ends."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa


class Verdict(StrEnum):
    """What may be concluded from a finding."""

    DISPARITY = "disparity"
    DETECTED = "detected"
    BELOW_THRESHOLD = "below threshold"
    INCONCLUSIVE = "inconclusive"
    NOT_ESTIMABLE = "not estimable"
    NONE = "no verdict"


class Family(StrEnum):
    """Which family of tests a finding belongs to."""

    LEAF = "leaf"
    COMPOSITE = "composite"
    QUERY = "query"
    """Of single queries or their mean: corrected by itself, and no report starts with it."""
    DESCRIPTIVE = "descriptive"
    FOLD = "fold"
    """States the fact of another finding, shares its test and verdict, and isn't counted."""


TESTED = (Family.LEAF, Family.COMPOSITE, Family.QUERY)
"""Families whose findings are tests of their own."""


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
class Excluded:
    """How many rows or groups did not enter a finding, and why."""

    reason: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A value about a subject and groups, with everything needed to judge it.

    Attributes
    ----------
    audit, model, metric, subject, groups, version : str
        What was measured: the audit's kind, the model, the metric's public name, the class
        or concept ("" for the whole), the attributes (joined by " × "), and the version of
        the design choices ("default" when there is one only).
    value, ci_low, ci_high, level : float
        The value and its interval.
    chance, chance_low, chance_high, excess : float
        The chance level with its 95 % band, and value minus chance; NaN when there is none.
    p_value, q_value : float
        Against the chance level, and after the correction within `family`.
    threshold : float
        Practical threshold on the excess; NaN when the metric has none.
    n : int
        Rows behind the value.
    by_group : tuple of GroupValue
        What each group contributes.
    excluded : tuple of Excluded
        What did not enter, with reasons.
    unit, method, null, parameters : str
        Unit of resampling, how the interval was made, what the null is and how it was drawn,
        and the parameters as JSON.
    direction : str
        Who is worse off, in words.
    verdict : Verdict
    reason : str
        Why there is no value, no chance level or no verdict; or what to know about it.
    citation : str
        Where the definition comes from.
    corrected : float
        The value without the bias of small samples, which the interval is of; NaN where the
        interval is of `value` itself.
    more : float
        About how many more images would decide an inconclusive finding; NaN where unknown or
        more than a hundred times today's.
    more_of : str
        The group or groups that these images show.
    group : str
        The group that is compared with all others; "" where all groups are compared.
    leads : bool
        Whether a report may start with the finding.
    beside : str
        What stands beside the value, as a sentence.
    """

    audit: str
    model: str
    metric: str
    subject: str = ""
    groups: str
    version: str = "default"
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
    threshold: float = math.nan
    n: int
    by_group: tuple[GroupValue, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    unit: str
    method: str
    null: str
    parameters: str
    direction: str
    verdict: Verdict = Verdict.NONE
    reason: str = ""
    citation: str = ""
    corrected: float = math.nan
    more: float = math.nan
    more_of: str = ""
    group: str = ""
    leads: bool = True
    beside: str = ""

    @property
    def tested(self) -> bool:
        """Whether the finding is a test of its own with a verdict."""
        without = (Verdict.NONE, Verdict.NOT_ESTIMABLE)
        return self.family in TESTED and self.verdict not in without


_TYPES = {
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
    "tuple[str, ...]": pa.list_(pa.string()),
}


def schema_of(record: type) -> pa.Schema:
    """Return the Arrow schema of a dataclass; what has no type of its own is text."""
    return pa.schema([(f.name, _TYPES.get(str(f.type), pa.string())) for f in fields(record)])


_TYPES["tuple[GroupValue, ...]"] = pa.list_(pa.struct(schema_of(GroupValue)))
_TYPES["tuple[Excluded, ...]"] = pa.list_(pa.struct(schema_of(Excluded)))
SCHEMA = schema_of(Finding)


def findings_to_table(findings: Iterable[Finding]) -> pa.Table:
    """Return findings as an Arrow table of `SCHEMA`, in the order given."""
    return pa.Table.from_pylist([as_row(finding) for finding in findings], schema=SCHEMA)


class Numbered(Protocol):
    """A finding or a part: a number with what each group contributes, and what is left out."""

    @property
    def by_group(self) -> tuple[GroupValue, ...]:
        """What each group contributes."""

    @property
    def excluded(self) -> tuple[Excluded, ...]:
        """What did not enter, with counts."""


def as_row(one: Numbered) -> dict[str, Any]:
    """Return a finding or part as a row; `asdict` takes ten times as long."""
    row: dict[str, Any] = dict(vars(one))
    row["by_group"] = [vars(group) for group in one.by_group]
    row["excluded"] = [vars(reason) for reason in one.excluded]
    return row


def findings_from_table(table: pa.Table) -> tuple[Finding, ...]:
    """Rebuild findings from the table that `findings_to_table` makes."""
    return tuple(
        Finding(**row | {"family": Family(row["family"]), "verdict": Verdict(row["verdict"])})
        for row in map(with_records, table.to_pylist())
    )


def with_records(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of findings or parts with its groups and exclusions as records."""
    groups = [GroupValue(**one | {"levels": tuple(one["levels"])}) for one in row["by_group"]]
    excluded = [Excluded(**one) for one in row["excluded"]]
    return {**row, "by_group": tuple(groups), "excluded": tuple(excluded)}
