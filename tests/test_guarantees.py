"""Every guarantee on the page names tests, and each of them exists."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
BEFORE_LIMITS = PAGE.partition("## Limits")[0]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", BEFORE_LIMITS)


@cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_test_exists(path, name):
    assert name.startswith("test_")
    assert name in functions(path)


def test_every_guarantee_names_a_test():
    rows = [line for line in BEFORE_LIMITS.splitlines() if line.startswith("| ")]
    without = [row for row in rows if not row.startswith("| case |") and "`tests/" not in row]
    assert without == []
    assert len(rows) > 20
