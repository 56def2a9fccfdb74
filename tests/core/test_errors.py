"""One error tree, and sentences that say where, what and what to do."""

import pytest

from equipoise import core
from equipoise.core import (
    ConfigError,
    DataError,
    EquipoiseError,
    InputError,
    MissingExtraError,
    RunError,
)


def test_the_tree_is_exported_whole():
    classes = set()
    todo = [EquipoiseError]
    while todo:
        classes.add(error_class := todo.pop())
        todo += error_class.__subclasses__()
    exported = {getattr(core, name) for name in core.__all__ if name.endswith("Error")}
    assert {error for error in classes if error.__module__ == "equipoise.core.errors"} == exported
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (DataError("no rows."), "no rows."),
        (DataError("empty", file="a.csv", column="", row=0), "a.csv, column '', row 0: empty."),
        (
            DataError("'x' is no age", column="age", row=3, expected="a number", fix="map it"),
            "column 'age', row 3: 'x' is no age. Expected: a number. To do: map it.",
        ),
        (
            DataError("no 'x'", expected="'y'; did you mean 'y'?", fix="add it."),
            "no 'x'. Expected: 'y'; did you mean 'y'? To do: add it.",
        ),
        (InputError("text with {} ...; expected {}."), "text with {} ...; expected {}."),
        (RunError("a: cannot be read: it is cut off..."), "a: cannot be read: it is cut off..."),
        (ConfigError("in ../.. there is none.."), "in ../.. there is none."),
        (
            MissingExtraError("torch", "train"),
            "torch is not installed. To do: run pip install '.[train]' in a checkout of equipoise.",
        ),
    ],
)
def test_sentences(error, sentence):
    assert str(error) == sentence
