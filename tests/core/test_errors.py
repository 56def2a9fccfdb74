"""One error tree, and sentences that say where, what and what to do."""

import pytest

from equipoise import core
from equipoise.core.errors import DataError, EquipoiseError, InputError, MissingExtraError

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
            MissingExtraError("torch", "train"),
            "torch is not installed. To do: pip install 'equipoise[train]'.",
        ),
    ],
)
def test_sentences(error: EquipoiseError, sentence: str) -> None:
    assert str(error) == sentence
