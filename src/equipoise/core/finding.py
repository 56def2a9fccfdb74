"""One row of the findings table, the form in which every audit ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pyarrow as pa


class Verdict(StrEnum):
    """What may be concluded from a finding."""

    DISPARITY = "disparity"
    BELOW_THRESHOLD = "below threshold"
    INCONCLUSIVE = "inconclusive"
    NOT_ESTIMABLE = "not estimable"
    NONE = "no verdict"


class Family(StrEnum):
    """Which family of tests a finding belongs to."""

    LEAF = "leaf"
    COMPOSITE = "composite"
    DESCRIPTIVE = "descriptive"


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


@dataclass(frozen=True)
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
    """

    audit: str
    model: str
    metric: str
    subject: str
    groups: str
    version: str
    family: Family
    value: float
    ci_low: float
    ci_high: float
    level: float
    chance: float
    chance_low: float
    chance_high: float
    excess: float
    p_value: float
    q_value: float
    threshold: float
    n: int
    by_group: tuple[GroupValue, ...]
    excluded: tuple[Excluded, ...]
    unit: str
    method: str
    null: str
    parameters: str
    direction: str
    verdict: Verdict
    reason: str
    citation: str


_GROUP_VALUE = pa.struct(
    [
        ("group", pa.string()),
        ("levels", pa.list_(pa.string())),
        ("n", pa.int64()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("note", pa.string()),
    ]
)
_SPECIAL = {
    "n": pa.int64(),
    "by_group": pa.list_(_GROUP_VALUE),
    "excluded": pa.list_(pa.struct([("reason", pa.string()), ("count", pa.int64())])),
}


def _arrow_type(name: str, annotation: object) -> pa.DataType:
    return _SPECIAL.get(name, pa.float64() if annotation == "float" else pa.string())


SCHEMA = pa.schema([(f.name, _arrow_type(f.name, f.type)) for f in fields(Finding)])


def findings_to_table(findings: Iterable[Finding]) -> pa.Table:
    """Return findings as an Arrow table of `SCHEMA`, in the order given."""
    return pa.Table.from_pylist([as_row(finding) for finding in findings], schema=SCHEMA)


def as_row(one: Any) -> dict[str, Any]:
    """Return a finding or part as a row; `asdict` takes ten times as long."""
    row: dict[str, Any] = dict(vars(one))
    row["by_group"] = [vars(group) for group in one.by_group]
    row["excluded"] = [vars(reason) for reason in one.excluded]
    return row


def findings_from_table(table: pa.Table) -> tuple[Finding, ...]:
    """Rebuild findings from the table that `findings_to_table` makes."""
    kinds = {"family": Family, "verdict": Verdict}
    return tuple(Finding(**row) for row in records(table, kinds))


def records(
    table: pa.Table, kinds: Mapping[str, Callable[[str], Any]] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    """Yield rows of findings or parts, with their groups and exclusions as records."""
    lists: dict[str, Callable[..., Any]] = {"by_group": GroupValue, "excluded": Excluded}
    columns: dict[str, list[Any]] = {
        name: nested(column, lists[name]) if name in lists else column.to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    for name, kind in kinds.items():
        columns[name] = [kind(one) for one in columns[name]]
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def nested(column: pa.ChunkedArray, kind: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Rebuild a column of lists of records: column by column, which is several times faster."""
    found: list[tuple[Any, ...]] = []
    for chunk in column.chunks:
        fields = chunk.flatten().flatten()
        every = [kind(*row) for row in zip(*map(_values, fields), strict=True)]
        found += _split(every, chunk)
    return found


def _values(array: pa.Array) -> list[Any]:
    """Return the values of an array, equal texts as one object; lists as tuples."""
    if pa.types.is_list(array.type):
        return _split(_values(array.flatten()), array)
    if pa.types.is_string(array.type):
        coded = array.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        return [texts[code] for code in coded.indices.to_numpy().tolist()]
    values: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
    return values


def _split(values: list[Any], lists: pa.ListArray) -> list[tuple[Any, ...]]:
    ends = lists.offsets.to_numpy()
    return [tuple(values[start:end]) for start, end in pairwise((ends - ends[:1]).tolist())]
