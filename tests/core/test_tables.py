"""Findings, parts and estimates, and their tables."""

import math
from dataclasses import fields
from unittest.mock import Mock

from equipoise.core import (
    Aggregate,
    Estimate,
    Excluded,
    Family,
    Finding,
    GroupValue,
    IntervalKind,
    NullHypothesis,
    Part,
    Ratio,
    Variant,
    Verdict,
    parts_to_table,
)
from equipoise.core.finding import SCHEMA, findings_from_table, findings_to_table
from equipoise.core.parts import SCHEMA as PARTS
from equipoise.core.parts import parts_from_table
from equipoise.core.sentences import Sentence, named

GROUPS = (
    GroupValue("x, f", ("x", "f"), 12, 0.5, 0.2, 0.8),
    GroupValue("y, f", ("y", "f"), 0, 0.0, -math.inf, math.inf, "no rows"),
)
LEFT_OUT = (Excluded("missing group", 3),)


def example_finding(**changes):
    values = {}
    for field in fields(Finding):
        values[field.name] = 0.25 if field.type == "float" else field.name
    values |= {"family": Family.LEAF, "verdict": Verdict.DISPARITY, "n": 12, "leads": False}
    values |= {"p_at_most": True, "q_at_most": True}
    values |= {
        "aggregate": Aggregate.DIFFERENCE, "variant": Variant.POOL_ORDER, "top_k": 5,
        "interval": IntervalKind.SPREAD, "null": NullHypothesis.ROWS, "parameters": {"k": 5},
    }  # fmt: skip
    values["sides"] = ("men", "women")
    values["direction"] = Sentence("worse for ", named("men"))
    values["ratio"] = Ratio(math.inf, 2.5, math.inf, decides=True)
    return Finding(**values | {"by_group": GROUPS, "excluded": LEFT_OUT} | changes)


def test_findings_come_back_from_their_table():
    findings = (
        example_finding(),
        example_finding(
            by_group=(), ratio=None, excluded=(), verdict=Verdict.NONE, value=-math.inf
        ),
    )
    table = findings_to_table(findings)
    assert table.schema == SCHEMA
    assert findings_from_table(table) == findings
    assert findings_to_table(findings_from_table(table)).equals(table)


def test_parts_come_back_from_their_table():
    parts = (Part("tpr", "cat", 0.5, n=3, by_group=GROUPS, excluded=LEFT_OUT, low=0.1, high=1.0),)
    table = parts_to_table(parts)
    assert table.schema == PARTS
    assert PARTS.names == [field.name for field in fields(Part)]
    back = parts_from_table(table)
    assert str(back) == str(parts)
    assert back[0].by_group == GROUPS


def test_parts_are_made_once_and_only_when_they_are_read():
    make = Mock(return_value=parts_to_table([Part("gap", "one", 0.5)]))
    estimate = Estimate("accuracy", 0.7, {"x": 3}, "Wilson interval", "a paper", by=make)
    make.assert_not_called()
    assert estimate.by is estimate.by is make.return_value
    assert [part.subject for part in estimate.parts] == ["one"]
    make.assert_called_once()
