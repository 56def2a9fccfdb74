"""docs/run-directory names every table and column of a run, in their order."""

import csv
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
from equipoise.core.conclusion import Adjustment, Conclusion
from equipoise.core.finding import SCHEMA
from equipoise.studies.claims import _CLAIMS, _COMPARISONS, CLAIMS, COMPARISONS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "run-directory.md").read_text(encoding="utf-8")


def rows(name):
    """The rows of a table of columns."""
    with (DOCS / "run-directory" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


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
    assert [row["column"] for row in rows("findings")] == SCHEMA.names


def test_every_field_of_a_group_and_of_an_exclusion():
    meanings = {row["column"]: row["meaning"] for row in rows("findings")}
    names = [field.name for field in fields(GroupValue)]
    assert re.findall("`(\\w+)`", meanings["by_group"]) == names
    assert re.findall("`(\\w+)`", meanings["excluded"]) == ["reason", "count"]


def test_every_column_of_every_table(tables):
    documented = {}
    for row in rows("tables"):
        documented.setdefault(row["table"], []).append(row["column"])
    assert documented == {name: table.column_names for name, table in tables.items()}


def test_the_page_lists_every_table_and_no_other(tables):
    section = PAGE.split("\n## Tables\n")[1]
    listed = [name for line in re.findall("^- (.+?):", section, re.M) for name in line.split(", ")]
    assert {name.strip("`") for name in listed} == tables.keys()


def test_every_field_of_a_conclusion():
    documented = {name for row in rows("conclusions") for name in row["field"].split(", ")}
    adjustments = {f"adjustments.{field.name}" for field in fields(Adjustment)}
    assert documented == {field.name for field in fields(Conclusion)} | adjustments
