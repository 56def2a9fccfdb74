"""Findings and parts as tables, and the estimate they come from."""

import math
from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from equipoise.core import Chance, Estimate, Excluded, Family, Finding, GroupValue, Verdict
from equipoise.core.errors import InputError
from equipoise.core.finding import SCHEMA, findings_from_table, findings_to_table
from equipoise.core.parts import SCHEMA as PARTS
from equipoise.core.parts import Part, parts_from_table, parts_to_table

GROUPS = (
    GroupValue("x, f", ("x", "f"), 12, 0.5, 0.2, 0.8),
    GroupValue("y, f", ("y", "f"), 0, 0.0, -math.inf, math.inf, "no rows"),
)
LEFT_OUT = (Excluded("missing group", 3),)


def example_finding(**changes: Any) -> Finding:
    found: dict[str, Any] = {}
    for field in fields(Finding):
        found[field.name] = 0.25 if field.type == "float" else field.name
    found |= {"family": Family.LEAF, "verdict": Verdict.DISPARITY, "n": 12}
    return Finding(**found | {"by_group": GROUPS, "excluded": LEFT_OUT} | changes)


def test_findings_come_back_from_their_table() -> None:
    findings = (
        example_finding(),
        example_finding(by_group=(), excluded=(), verdict=Verdict.NONE, value=-math.inf),
    )
    table = findings_to_table(findings)
    assert table.schema == SCHEMA
    assert findings_from_table(table) == findings
    assert findings_to_table(findings_from_table(table)).equals(table)


def test_no_findings_have_the_schema_too() -> None:
    assert findings_to_table([]).schema == SCHEMA
    assert findings_from_table(findings_to_table([])) == ()


def test_nan_stays_a_number_in_the_table() -> None:
    table = findings_to_table([example_finding(p_value=math.nan)])
    assert table["p_value"].null_count == 0
    assert math.isnan(findings_from_table(table)[0].p_value)


def test_every_field_of_a_finding_is_a_column_of_its_type() -> None:
    assert SCHEMA.names == [field.name for field in fields(Finding)]
    kinds = {field.name: field.type for field in fields(Finding)}
    for column in SCHEMA:
        expected = {"float": pa.float64(), "int": pa.int64()}.get(str(kinds[column.name]))
        assert expected in (None, column.type), column.name


def test_parts_come_back_from_their_table() -> None:
    parts = (Part("tpr", "cat", 0.5, n=3, by_group=GROUPS, excluded=LEFT_OUT, low=0.1, high=1.0),)
    table = parts_to_table(parts)
    assert table.schema == PARTS
    assert PARTS.names == [field.name for field in fields(Part)]
    back = parts_from_table(table)
    assert str(back) == str(parts)
    assert back[0].by_group == GROUPS


def estimate(**changes: Any) -> Estimate:
    made = Estimate("accuracy", 0.7, {"x": 3}, "Wilson interval", "a paper")
    return replace(made, **changes)


def test_an_estimate_without_more_has_no_interval_and_no_chance() -> None:
    found = estimate()
    assert (float(found), found.estimable, found.chance, found.p_value) == (0.7, True, None, None)
    assert math.isnan(found.excess)
    interval = found.interval(0.9)
    assert (math.isnan(interval.low), math.isnan(interval.high)) == (True, True)
    assert (interval.level, interval.method) == (0.9, "Wilson interval")


def test_an_estimate_takes_its_ends_at_any_level() -> None:
    found = estimate(ends=lambda level: (0.5 - level / 10, 0.5 + level / 10))
    assert (found.interval(0.5).low, found.interval(0.5).high) == (0.45, 0.55)
    assert found.interval().level == 0.95


def test_excess_is_value_minus_the_mean_of_chance() -> None:
    assert estimate(chance=Chance(0.2, 0.1, 0.3, "")).excess == pytest.approx(0.5)


def test_not_estimable() -> None:
    assert not estimate(value=math.nan, reason="one group").estimable


def test_estimates_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        estimate().value = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        estimate().params["null"] = "rows"  # type: ignore[index]


def test_parts_as_data_frames() -> None:
    found = estimate(by=parts_to_table([Part("tpr", "cat", 0.5)]))
    assert isinstance(found.to_pandas(), pd.DataFrame)
    assert isinstance(found.to_polars(), pl.DataFrame)
    assert found.to_pandas()["value"].tolist() == found.to_polars()["value"].to_list() == [0.5]


def test_data_frames_need_parts() -> None:
    message = "^accuracy: has no parts, `by` is None; read `value`$"
    for form in ("to_pandas", "to_polars"):
        with pytest.raises(InputError, match=message):
            getattr(estimate(), form)()


def test_a_missing_data_frame_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match="^pandas is not installed. To do: pip install pandas, or"):
        estimate(by=parts_to_table([])).to_pandas()
