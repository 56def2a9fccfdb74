"""One error tree, and sentences that say where, what and what to do."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise import core
from equipoise.core.errors import (
    ConfigError,
    DataError,
    EquipoiseError,
    InputError,
    MissingExtraError,
    ModelError,
    RunError,
)

ERRORS = [getattr(core, name) for name in core.__all__ if name.endswith("Error")]


@pytest.mark.parametrize("error", ERRORS)
def test_one_tree(error: type[Exception]) -> None:
    assert issubclass(error, EquipoiseError)


def test_the_tree_is_exported_whole() -> None:
    found: set[type] = set()
    todo = [EquipoiseError]
    while todo:
        found.add(one := todo.pop())
        todo += one.__subclasses__()
    assert {error for error in found if error.__module__ == "equipoise.core.errors"} == {*ERRORS}


def test_bad_arguments_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DataError("no rows"), "no rows."),
        (DataError("no rows."), "no rows."),
        (DataError("no rows", file="a.csv"), "a.csv: no rows."),
        (
            DataError("empty", file="a.csv", column="", row=0),
            "a.csv, column '', row 0: empty.",
        ),
        (
            DataError("'x' is no age", column="age", row=3, expected="a number", fix="map it"),
            "column 'age', row 3: 'x' is no age. Expected: a number. To do: map it.",
        ),
        (
            DataError("it is 1.", expected="all of it.", fix="add them."),
            "it is 1. Expected: all of it. To do: add them.",
        ),
        (
            DataError("no 'x'", expected="'y'; did you mean 'y'?", fix="was 'y' meant?"),
            "no 'x'. Expected: 'y'; did you mean 'y'? To do: was 'y' meant?",
        ),
        (
            ModelError(
                f"hf:clip failed on each of 9 images; {'KeyError: no such thing.'}. To do: x"
            ),
            "hf:clip failed on each of 9 images; KeyError: no such thing. To do: x",
        ),
        (InputError("text with {} ...; expected {}."), "text with {} ...; expected {}."),
        (RunError("a: cannot be read: it is cut off..."), "a: cannot be read: it is cut off..."),
        (ConfigError("../a.yaml: empty"), "../a.yaml: empty"),
        (RunError("..: this is the folder you work in"), "..: this is the folder you work in"),
        (ConfigError("in ../.. there is none"), "in ../.. there is none"),
        (
            MissingExtraError("torch", "train"),
            "torch is not installed. To do: pip install 'equipoise[train]'.",
        ),
    ],
)
def test_sentences(error: EquipoiseError, sentence: str) -> None:
    assert str(error) == sentence


SOURCES = sorted((Path(core.__file__).parent.parent).rglob("*.py"))


def ends(node: ast.AST) -> Iterator[str]:
    """What the text of an expression may end in, as far as it is written there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from ends(node.values[-1])
    elif isinstance(node, ast.BinOp):
        yield from ends(node.right)
    elif isinstance(node, ast.IfExp):
        yield from (*ends(node.body), *ends(node.orelse))


def written(path: Path) -> Iterator[str]:
    """The ends of every text that is given as `expected` or `fix` of an error."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg in ("expected", "fix"):
                yield from ends(keyword.value)


def test_no_expected_or_fix_brings_its_own_full_stop() -> None:
    texts = [(path.name, text) for path in SOURCES for text in written(path)]
    assert len(texts) > 300
    assert not [one for one in texts if one[1].endswith((".", "?")) and one[1][-3:] != "..."]


@pytest.mark.parametrize("error", [DataError, InputError, ConfigError, ModelError, RunError])
@pytest.mark.parametrize("end", ["", ".", "?"])
def test_no_message_has_a_doubled_full_stop(error: type[EquipoiseError], end: str) -> None:
    said = str(error(f"the library said: no such thing{end}. To do: look there{end}."))
    assert ".." not in said
    assert "?." not in said
    assert said == str(error(said))
