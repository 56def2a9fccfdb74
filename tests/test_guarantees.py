"""Every guarantee names tests, and each of them exists."""

import ast
import csv
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
with (ROOT / "docs" / "guarantees" / "guarantees.csv").open(encoding="utf-8", newline="") as file:
    GUARANTEES = [*csv.DictReader(file)]
NAMED = sorted({name for row in GUARANTEES for name in row["tests"].split()})


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("test", NAMED)
def test_a_named_test_exists(test):
    path, _, name = test.partition("::")
    assert path.startswith("tests/")
    assert name.startswith("test_")
    assert name in functions(path)


def test_every_guarantee_names_a_test():
    assert [row["case"] for row in GUARANTEES if not row["tests"]] == []
    assert all(row["case"] and row["guarantee"] and row["section"] for row in GUARANTEES)


def test_the_page_counts_the_guarantees():
    assert f"Each of the {len(GUARANTEES)} guarantees" in " ".join(PAGE.split())
