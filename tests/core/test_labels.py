"""Labels of any type become codes; missing values never become a label of their own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.core.labels import encode, in_order, natural

NAN = float("nan")


def decoded(labels: Any) -> list[str | None]:
    codes, names = encode(labels)
    return [None if code < 0 else names[code] for code in codes.tolist()]


@dataclass(frozen=True)
class Codes:
    codes: Any
    vocabulary: tuple[str, ...]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", "a", "b"], ["b", "a", "b"]),
        (["b", None, ""], ["b", None, None]),
        # numpy turns this list into strings, and NaN into the text "nan".
        (["b", NAN], ["b", None]),
        (["b", np.float32("nan")], ["b", None]),
        (np.array(["b", np.float32("nan")], dtype=object), ["b", None]),
        (np.array(["b", ""]), ["b", None]),
        (["nan", "NaT", "<NA>", "None"], ["nan", "NaT", "<NA>", "None"]),
        ([2, 10, 2], ["2", "10", "2"]),
        ([2.0, NAN, 10.0], ["2", None, "10"]),
        ([2.0, None, 10.0], ["2", None, "10"]),
        (np.array([2, None, np.int64(2), 2.0], dtype=object), ["2", None, "2", "2"]),
        ([True, False], ["True", "False"]),
        (np.array([True, None], dtype=object), ["True", None]),
        (["x", 1], ["x", "1"]),
        (pd.Series(["x", pd.NA, pd.NaT, None]), ["x", None, None, None]),
        (pd.Series([1, pd.NA], dtype="Int64"), ["1", None]),
        (pd.Series(["x", None], dtype="category"), ["x", None]),
        (pd.Series(["x", None], dtype="string"), ["x", None]),
        (pl.Series(["x", None]), ["x", None]),
        (pl.Series([1, None]), ["1", None]),
        (Codes(np.array([1, -1, 1]), ("unused", "x")), ["x", None, "x"]),
        ([], []),
    ],
)
def test_labels_keep_their_names_and_missing_values(labels: Any, expected: Any) -> None:
    assert decoded(labels) == expected


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 9], ("9", "10")),
        ([10.0, 9.0, NAN], ("9", "10")),
        (np.array([10, 9, None], dtype=object), ("9", "10")),
        (["10", "9"], ("10", "9")),
        ([-1, 1, 0], ("-1", "0", "1")),
        (Codes(np.array([0, 1, 2]), ("c", "a", "b")), ("a", "b", "c")),
    ],
)
def test_names_are_sorted_and_numbers_numerically(labels: Any, names: tuple[str, ...]) -> None:
    assert encode(labels)[1] == names


@given(st.lists(st.one_of(st.text(), st.none(), st.just(NAN), st.integers())))
def test_any_label_comes_back(labels: list[Any]) -> None:
    expected = [None if x is None or x is NAN or x == "" else str(x) for x in labels]
    assert decoded(labels) == expected
    assert decoded(np.array(labels, dtype=object)) == expected


@given(st.lists(st.text(alphabet="ab\x00")))
def test_trailing_nul_characters_tell_labels_apart(labels: list[str]) -> None:
    assert decoded(labels) == [label or None for label in labels]


def test_one_long_label_does_not_widen_all_others() -> None:
    labels = [*("ab" * 50_000), "x" * 100_000]
    codes, names = encode(labels)
    assert names == ("a", "b", "x" * 100_000)
    assert codes[-3:].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1, 2]], r"^y: shape \(1, 2\); expected one label per row, shape \(n,\)$"),
        ("abc", r"^y: shape \(\); expected one label per row"),
        ([[1], [2, 3]], r"^y: rows of different lengths; expected one shape$"),
        (
            [1.0, 0.37],
            r"^y, row 2: 0.37 is no label; expected text, a whole number or a boolean\. ",
        ),
        ([1.0, np.inf], r"^y, row 2: inf is no label"),
        (np.array(["a", 0.5], dtype=object), r"^y, row 2: 0.5 is no label"),
        (np.array(["a", -np.inf], dtype=object), r"^y, row 2: -inf is no label"),
        ([b"a"], r"^y, row 1: b'a' is no label"),
    ],
)
def test_what_is_no_label_is_refused(labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encode(labels, what="y")


def test_natural_order_is_total_even_with_words_that_read_as_numbers() -> None:
    names = ["b", "nan", "10", "inf", "9", "-1", "1e3", "NaN", ""]
    ordered = ["-1", "9", "10", "1e3", "", "NaN", "b", "inf", "nan"]
    for start in range(len(names)):
        assert sorted(names[start:] + names[:start], key=natural) == ordered


# Half of a surrogate pair, too, which the text of Hypothesis leaves out.
_WORDS = st.text(st.characters(exclude_categories=()), max_size=4)


@given(st.lists(_WORDS | st.integers().map(str) | st.floats().map(str)))
def test_names_in_order_are_those_sorted_by_natural(names: list[str]) -> None:
    ordered, places = in_order(names)
    assert ordered == tuple(sorted(set(names), key=natural))
    assert [ordered[place] for place in places.tolist()] == names


@given(st.lists(st.integers(-5_000, 5_000), max_size=30), st.sampled_from(["i8", "i2", ">i4"]))
def test_numbers_are_encoded_as_by_sorting(values: list[int], kind: str) -> None:
    codes, names = encode(np.array(values, dtype=kind))
    expected, places = np.unique(np.array(values, dtype=int), return_inverse=True)
    assert (codes.tolist(), names) == (places.tolist(), tuple(map(str, expected.tolist())))
    assert codes.dtype == np.int32


def test_text_that_utf_8_cannot_hold() -> None:
    codes, names = encode(["\ud800", "", "a", "\ud800"])
    assert (codes.tolist(), names) == ([1, -1, 0, 1], ("a", "\ud800"))
