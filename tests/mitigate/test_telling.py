"""Which value an image shows: what is learned, how often it is right, and in which directions."""

from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.mitigate import ImageSets
from equipoise.mitigate.telling import directions_of, gate_of, told_right, values_of
from equipoise.models.wrapped import unit_vectors

D = 12


def planted(shown: str = "axis", seed: int = 0) -> tuple[Any, ImageSets]:
    """Return sets whose age lies on an axis, or on one of each subject's own, or nowhere."""
    rng = np.random.default_rng(seed)
    vectors, owner, named, ages = [], [], [], []
    for subject in range(5):
        for number in range(8):
            place = rng.standard_normal(D) * 0.1
            place[subject] += 1.0
            for age, sign in (("old", 1.0), ("young", -1.0)):
                one = place + rng.standard_normal(D) * 0.02
                axis = {"axis": 6, "own": 7 + subject, "nowhere": None}[shown]
                if axis is not None:
                    one[axis] += sign
                vectors.append(one)
                owner.append(str(subject))
                named.append(f"{subject}-{number}")
                ages.append(age)
    columns = [np.array(one, dtype=object) for one in (owner, named, named)]
    return unit_vectors(vectors), ImageSets(
        vectors, *columns, {"age": np.array(ages, dtype=object)}
    )


def test_a_value_on_one_axis_is_told_of_subjects_left_out() -> None:
    vectors, sets = planted()
    values = values_of(sets)
    assert values == {"age": ["old", "young"]}
    assert told_right(vectors, sets, values) == {"age": {"old": 1.0, "young": 1.0}}


@pytest.mark.parametrize(("shown", "most"), [("own", 0.7), ("nowhere", 0.7)])
def test_what_other_subjects_do_not_teach_is_told_by_chance(shown: str, most: float) -> None:
    # A rule that is asked about the subjects it learned from would be right of "own".
    vectors, sets = planted(shown)
    values = values_of(sets)
    assert np.mean([*told_right(vectors, sets, values)["age"].values()]) < most
    slopes, offsets = gate_of(vectors, sets, values)
    place = (vectors @ slopes + offsets).argmax(axis=1)
    right = (np.array(values["age"])[place] == sets.attributes["age"]).mean()
    assert right == 1.0 if shown == "own" else right < 0.9


def test_an_image_without_a_label_teaches_nothing() -> None:
    vectors, sets = planted()
    hidden = sets.attributes["age"].copy()
    hidden[::3] = None
    some = ImageSets(sets.images, sets.subject, sets.set, sets.caption, {"age": hidden})
    values = values_of(some)
    moved = vectors.copy()
    moved[::3] = -moved[::3]
    for one, other in zip(
        gate_of(vectors, some, values), gate_of(moved, some, values), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_the_direction_is_that_of_the_axis() -> None:
    vectors, sets = planted()
    (row,) = directions_of(vectors, sets, values_of(sets))
    assert abs(row[6]) > 0.99


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            ["old"] * 80,
            "^images show 'old' alone of age; expected at least two values. To do: l",
        ),
        ([None] * 80, "^images show no value of age; expected at least two values"),
    ],
)
def test_one_value_is_an_error(column: list[Any], message: str) -> None:
    _, sets = planted()
    ages = {"age": np.array(column, dtype=object)}
    with pytest.raises(InputError, match=message):
        values_of(ImageSets(sets.images, sets.subject, sets.set, sets.caption, ages))
