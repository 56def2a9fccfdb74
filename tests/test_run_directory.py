"""docs/run-directory.md names every table and column of a run, in their order."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from equipoise.audits import compare, parse_config, prepare, run
from equipoise.audits.comparison import CHANGES
from equipoise.audits.demonstrating import _PLANTED, PLANTED
from equipoise.audits.group_sizes import FAILURES
from equipoise.core import GroupValue
from equipoise.core.finding import SCHEMA
from equipoise.studies.claims import _CLAIMS, _COMPARISONS, CLAIMS, COMPARISONS

PAGE = (Path(__file__).parent.parent / "docs" / "run-directory.md").read_text(encoding="utf-8")


def documented(title):
    """Columns in the first table under a heading."""
    section = re.split(rf"^##+ {title}\n", PAGE, flags=re.MULTILINE)[1]
    section = re.split("^##", section, flags=re.MULTILINE)[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


@pytest.fixture(scope="module")
def tables():
    """Every table that an audit, a comparison and the demonstration write."""
    rng = np.random.default_rng(0)
    labels = {"id": [f"{i}" for i in range(200)], "group": rng.choice([*"xy"], 200)}
    frame = pl.DataFrame(
        labels | {name: rng.choice([*"abc"], 200) for name in ("target", "one", "two")}
    )
    config = parse_config(
        {
            "audit": "predictions",
            "data": {"table": frame, "id": "id", "target": "target", "groups": ["group"]},
            "models": {name: {"table": frame, "prediction": name} for name in ("one", "two")},
            "resampling": {"replicates": 20, "permutations": 20},
        }
    )
    scored = frame.with_columns(
        target=pl.col("target").replace("c", "b"), score=pl.Series(rng.random(200))
    )
    values = {
        "audit": "predictions",
        "data": {"table": scored, "id": "id", "target": "target", "positive": "a",
                 "groups": ["group"]},
        "models": {"three": {"table": scored, "score": "score"}},
        "resampling": {"replicates": 20, "permutations": 20},
    }  # fmt: skip
    data = prepare(config).data
    written = (
        dict(run(parse_config(values)).tables)
        | dict(run(config).tables)
        | dict(compare({"": (config, data)}).tables)
    )
    planted = {
        "planted": _PLANTED,
        "planted_scenes": PLANTED,
        "failures": FAILURES,
        "changes": pa.schema(CHANGES),
        CLAIMS: _CLAIMS,
        COMPARISONS: _COMPARISONS,
    }
    return written | {name: schema.empty_table() for name, schema in planted.items()}


def test_every_column_of_the_findings():
    assert documented("Findings") == SCHEMA.names


def test_every_field_of_a_group_and_of_an_exclusion():
    lines = {
        name: next(x for x in PAGE.splitlines() if x.startswith(f"| `{name}`"))
        for name in ("by_group", "excluded")
    }
    names = [field.name for field in fields(GroupValue)]
    assert re.findall("`(\\w+)`", lines["by_group"])[1:] == names
    assert re.findall("`(\\w+)`", lines["excluded"])[1:] == ["reason", "count"]


def test_every_table_and_no_other(tables):
    section = PAGE.split("\n## Tables\n")[1]
    assert set(re.findall("^### (.+)$", section, re.MULTILINE)) == tables.keys()


def test_every_column_of_every_table(tables):
    assert {name: documented(name) for name in tables} == {
        name: table.column_names for name, table in tables.items()
    }
