"""How the code reads, in numbers: names, summaries, and text that is read back as data."""

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "equipoise"
VAGUE = frozenset((
    "one", "ones", "each", "found", "every", "many", "held", "own", "some", "made", "there",
    "what", "known", "both", "such", "beside", "several", "whole", "others", "rest", "alike",
    "apart", "shown", "said", "asked", "given", "told", "drawn", "kept", "far", "most", "enough",
    "why", "how", "taken", "left", "here", "gone", "seen", "wanted", "meant", "thing", "things",
    "lost", "placed", "moved", "lent",
))  # fmt: skip
CLAUSES = re.compile(
    r"\b(what (?:is|was|are|a|an|the|it|they|each|models?|people)|whose|whom|beside|none where|"
    r"held against|of which|those|told|said|lies?|such(?! as)|let alone|taken as|as it is)\b",
    re.IGNORECASE,
)
TEXT_FIELDS = frozenset(
    ("method", "null", "version", "reason", "subject", "parameters", "direction")
)
PARSERS = frozenset(
    ("startswith", "endswith", "partition", "split", "removeprefix", "removesuffix")
)


@cache
def _trees():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def _nodes():
    return (node for tree in _trees().values() for node in ast.walk(tree))


def _bindings():
    for node in _nodes():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _summaries():
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in _nodes():
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text.partition("\n")[0]


def _parses_text(node):
    """Return whether a call parses a text field of a finding."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in PARSERS
        and isinstance(node.func.value, ast.Attribute)
        and node.func.value.attr in TEXT_FIELDS
    )


def test_variables_are_named_by_what_they_hold():
    names = [*_bindings()]
    assert 1000 * sum(name in VAGUE for name in names) / len(names) <= 5


def test_summaries_are_plain():
    summaries = [*_summaries()]
    words = sum(len(summary.split()) for summary in summaries)
    assert 1000 * sum(len(CLAUSES.findall(summary)) for summary in summaries) / words <= 3


def test_no_text_of_a_finding_is_read_back_as_data():
    parsed = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path, tree in _trees().items()
        if path.relative_to(PACKAGE).parts[0] not in ("report", "cli")
        for node in ast.walk(tree)
        if _parses_text(node)
    ]
    assert parsed == []
