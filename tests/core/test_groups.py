"""Groups: intersections, empty and small ones known by their counts."""

from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups

RACE = ["x", "x", "y", None, "y", "x"]
GENDER = ["f", "m", "f", "f", "", "f"]


def test_one_attribute() -> None:
    groups = Groups.of(RACE)
    assert (groups.name, groups.names, len(groups)) == ("group", ("x", "y"), 2)
    assert groups.codes.tolist() == [0, 0, 1, -1, 1, 0]
    assert (groups.counts.tolist(), groups.n_missing) == ([3, 2], 1)


def test_intersections_have_every_combination_and_a_row_missing_one_label_has_no_group() -> None:
    groups = Groups.of({"race": RACE, "gender": GENDER}, min_size=2)
    assert groups.name == "race × gender"
    assert groups.names == ("x, f", "x, m", "y, f", "y, m")
    assert groups.levels[1] == ("x", "m")
    assert groups.codes.tolist() == [0, 1, 2, -1, -1, 0]
    assert (groups.counts.tolist(), groups.n_missing) == ([2, 1, 1, 0], 2)
    assert groups.usable.tolist() == [True, False, False, False]


def test_three_attributes_match_the_labels_of_each_row() -> None:
    rng = np.random.default_rng(0)
    labels = {name: rng.integers(0, k, 200) for name, k in (("a", 2), ("b", 3), ("c", 5))}
    groups = Groups.of(labels)
    for row, code in enumerate(groups.codes.tolist()):
        assert groups.levels[code] == tuple(str(column[row]) for column in labels.values())


def test_an_empty_group_is_never_usable() -> None:
    groups = Groups.of({"a": ["x", "y"], "b": ["u", "v"]}, min_size=0)
    assert groups.usable.tolist() == [True, False, False, True]


def test_a_selection_keeps_the_levels() -> None:
    groups = Groups.of(RACE, min_size=2)
    for rows in (np.array([1, 2]), np.array([False, True, True, False, False, False])):
        taken = groups.take(rows)
        assert (taken.levels, taken.min_size) == (groups.levels, 2)
        assert (taken.codes.tolist(), taken.counts.tolist()) == ([0, 1], [1, 1])


def test_groups_pass_through() -> None:
    groups = Groups.of(RACE, min_size=3)
    assert Groups.of(groups, min_size=7) is groups


def test_groups_whose_labels_hold_commas_have_names_of_their_own() -> None:
    groups = Groups.of({"a": ["u, v", "u"], "b": ["w", "v, w"]})
    assert len(set(groups.names)) == 4
    assert groups.names[1] == "'u', 'w'"


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({}, "^groups: an empty mapping; expected at least one attribute$"),
        (
            {"a": [1, 2], "b": [1]},
            r"^groups: attributes of different lengths \[1, 2\]; expected one length$",
        ),
        ({"a": [[1]]}, r"^groups\['a'\]: shape \(1, 1\); expected one label per row"),
        (
            {1: ["x"], "1": ["y"]},
            r"^groups: attributes \[1, '1'\] share a name; expected distinct$",
        ),
        (
            {"a": range(101), "b": range(101)},
            "^groups: 10201 intersections; expected at most 10000. Use fewer attributes",
        ),
        # A product of 64-bit integers would wrap around to 0 here.
        (dict.fromkeys(map(str, range(16)), range(16)), "^groups: 18446744073709551616 inter"),
    ],
)
def test_refused_groups(groups: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Groups.of(groups)
