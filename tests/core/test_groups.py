"""Labels become codes and groups; missing values never become a label of their own."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import Groups, InputError, encode
from equipoise.core.labels import Encoded, in_order, natural

NAN = float("nan")
# Half of a surrogate pair, too, which the text of Hypothesis leaves out.
_WORDS = st.text(st.characters(exclude_categories=()), max_size=4)


def decoded(labels):
    codes, names = encode(labels)
    return [None if code < 0 else names[code] for code in codes.tolist()]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["b", None, ""], ["b", None, None]),
        # numpy turns this list into strings, and NaN into the text "nan".
        (["b", NAN], ["b", None]),
        (np.array(["b", np.float32("nan")], dtype=object), ["b", None]),
        ([2.0, NAN, 10.0], ["2", None, "10"]),
        (np.array([2, None, np.int64(2), 2.0], dtype=object), ["2", None, "2", "2"]),
        (pd.Series(["x", pd.NA, pd.NaT, None]), ["x", None, None, None]),
        (pd.Series(["x", None], dtype="category"), ["x", None]),
        (Encoded(np.array([1, -1, 1]), ("unused", "x")), ["x", None, "x"]),
        ([], []),
    ],
)
def test_labels_keep_their_names_and_missing_values(labels, expected):
    assert decoded(labels) == expected


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10.0, 9.0, NAN], ("9", "10")),
        (np.array([10, 9, None], dtype=object), ("9", "10")),
        (["10", "9"], ("10", "9")),
        (Encoded(np.array([0, 1, 2]), ("c", "a", "b")), ("a", "b", "c")),
    ],
)
def test_names_are_sorted_and_numbers_numerically(labels, names):
    assert encode(labels)[1] == names


@given(st.lists(st.one_of(_WORDS, st.none(), st.just(NAN), st.integers())))
def test_any_label_comes_back(labels):
    expected = [None if x is None or x is NAN or x == "" else str(x) for x in labels]
    assert decoded(labels) == expected
    assert decoded(np.array(labels, dtype=object)) == expected


@given(st.lists(_WORDS | st.integers().map(str) | st.floats().map(str)))
def test_names_in_order_are_sorted_by_natural(names):
    ordered, places = in_order(names)
    assert ordered == tuple(sorted(set(names), key=natural))
    assert [ordered[place] for place in places.tolist()] == names


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ([[1, 2]], "y"),
        ([1.0, 0.37], "y, row 2"),
        (np.array(["a", 0.5], dtype=object), "y, row 2"),
        (np.ma.masked_array([1, 2], mask=[True, False]), "y: the array is masked"),
    ],
)
def test_values_that_are_no_label_are_refused(labels, where):
    with pytest.raises(InputError, match=f"^{where}"):
        encode(labels, subject="y")


RACE = ["x", "x", "y", None, "y", "x"]
GENDER = ["f", "m", "f", "f", "", "f"]


def test_intersections_have_every_combination_and_a_row_missing_one_label_has_no_group():
    groups = Groups.of({"race": RACE, "gender": GENDER}, min_size=2)
    assert groups.name == "race × gender"
    assert groups.names == ("x, f", "x, m", "y, f", "y, m")
    assert groups.levels[1] == ("x", "m")
    assert groups.codes.tolist() == [0, 1, 2, -1, -1, 0]
    assert (groups.counts.tolist(), groups.n_missing) == ([2, 1, 1, 0], 2)
    assert groups.usable.tolist() == [True, False, False, False]


def test_a_selection_keeps_the_levels():
    groups = Groups.of(RACE, min_size=2)
    for rows in (np.array([1, 2]), np.array([False, True, True, False, False, False])):
        selection = groups.take(rows)
        assert (selection.levels, selection.min_size) == (groups.levels, 2)
        assert (selection.codes.tolist(), selection.counts.tolist()) == ([0, 1], [1, 1])


def test_groups_with_commas_in_labels_have_distinct_names():
    groups = Groups.of({"a": ["u, v", "u"], "b": ["w", "v, w"]})
    assert len(set(groups.names)) == 4
    assert groups.names[1] == "'u', 'w'"


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ((0, 1), ("Male 0", "Male 1")),
        ((-1, 1), ("Male -1", "Male 1")),
        ((True, False), ("Male False", "Male True")),
        (("yes", "No"), ("Male No", "Male yes")),
        (("0.5", "1.0"), ("Male 0.5", "Male 1.0")),
        (("18–29", "30+", "under 18"), ("Male under 18", "Male 18–29", "Male 30+")),
        (("man", "woman"), ("man", "woman")),
        (("level 1", "level 2"), ("level 1", "level 2")),
        (("0", "other"), ("Male 0", "other")),
    ],
)
def test_bare_codes_stand_after_their_attribute(labels, names):
    groups = Groups.of({"Male": [*labels]})
    assert {*groups.names} == {*names}
    assert {*groups.levels} == {(str(label),) for label in labels}


def test_intersections_name_each_attribute_and_bands_lose_the_word():
    groups = Groups.of({"Male": [0, 1], "hair": ["grey", "red"], "age band": ["18–29", "30+"]})
    assert groups.names[0] == "Male 0, grey, age 18–29"


def test_an_array_alone_has_no_attribute_to_name():
    groups = Groups.of([0, 1, 1])
    assert groups.names == ("0", "1")
    assert groups.take(np.array([0])).names == ("0", "1")


def test_a_group_is_found_by_its_labels_and_its_display_name():
    groups = Groups.of({"Male": [0, 1], "Young": ["yes", "no"]})
    assert groups.display_name("0, yes") == "Male 0, Young yes"
    assert groups.display_name("Male 0, Young yes") == "Male 0, Young yes"
    assert Groups.of({"Male": [0, 1]}).display_name("2") == "Male 2"


@pytest.mark.parametrize(
    ("groups", "where"),
    [
        ({}, "groups: an empty mapping"),
        ({"a": [1, 2], "b": [1]}, r"groups: attributes of different lengths \[1, 2\]"),
        ({"a": range(101), "b": range(101)}, "groups: 10201 intersections"),
        # A product of 64-bit integers would wrap around to 0 here.
        (dict.fromkeys(map(str, range(16)), range(16)), "groups: 18446744073709551616 inter"),
    ],
)
def test_refused_groups(groups, where):
    with pytest.raises(InputError, match=f"^{where}"):
        Groups.of(groups)


def grouped(sizes, units_of):
    """Groups of so many rows, whose rows are spread evenly over so many units."""
    units = np.concatenate([
        np.arange(size) % units_of[name] + 1000 * place
        for place, (name, size) in enumerate(sizes.items())
    ])  # fmt: skip
    return Groups(("group",), tuple((name,) for name in sizes),
                  np.repeat(np.arange(len(sizes)), [*sizes.values()]), 30, True, units)  # fmt: skip


def test_a_group_of_few_units_is_left_out_where_two_others_remain():
    sizes = {"a": 100, "b": 100, "c": 100, "d": 20}
    groups = grouped(sizes, {"a": 10, "b": 50, "c": 9, "d": 20})
    assert groups.n_units.tolist() == [10, 50, 9, 20]
    assert groups.usable.tolist() == [True, True, False, False]
    assert not groups.few_units


def test_groups_of_few_units_are_compared_where_no_two_others_remain():
    groups = grouped({"a": 100, "b": 100, "c": 100}, {"a": 50, "b": 9, "c": 3})
    assert groups.usable.tolist() == [True, True, True]
    assert groups.few_units


def test_rows_without_a_unit_are_units_of_their_own():
    groups = Groups(("group",), (("a",), ("b",)), np.repeat([0, 1, -1], [12, 12, 5]), 1, True,
                    np.tile(-1, 29))  # fmt: skip
    assert groups.n_units.tolist() == [12, 12]
    assert groups.take(np.arange(3)).n_units.tolist() == [3, 0]


def test_groups_of_independent_rows_have_no_units():
    groups = Groups.of(np.repeat(["a", "b"], 40))
    assert groups.n_units.tolist() == [40, 40]
    assert not groups.few_units
