"""Names of marks, legends and wide tables have the room that they need, or say where to look."""

from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from equipoise.report import mark_names
from equipoise.report.mark_names import spread


def boxes(rows: list[dict[str, Any]], wider: float) -> list[tuple[float, float, float, float]]:
    """Return where the names lie in a plot that is wider than the narrowest."""
    width, least = mark_names._WIDTH, min(row["x"] for row in rows)
    across = max(row["x"] for row in rows) - least
    low = min(row["y"] for row in rows)
    up = max(row["y"] for row in rows) - low
    return [
        mark_names._box(
            row["name"],
            wider * width * ((row["x"] - least) / across if across else 0.5),
            300 - 300 * ((row["y"] - low) / up if up else 0.5),
            row["align"], row["dx"], row["dy"],
        )
        for row in rows
        if row["name"]
    ]  # fmt: skip


places = st.tuples(st.floats(-1, 1), st.floats(0, 1), st.sampled_from(["", "nurse", "librarian"]))


@given(st.lists(places, min_size=1, max_size=12), st.floats(1, 5))
def test_no_name_lies_on_another(marks: list[tuple[float, float, str]], wider: float) -> None:
    rows = [{"x": x, "y": y, "name": name} for x, y, name in marks]
    found = boxes(spread(rows, 300), wider)
    for one, other in combinations(found, 2):
        apart = max(one[0] - other[1], other[0] - one[1], one[2] - other[3], other[2] - one[3])
        assert apart >= -1e-6


def test_names_of_marks_that_are_apart_stay_and_of_a_crowd_some_go() -> None:
    apart = [{"x": x, "y": y, "name": "nurse"} for x in (0.0, 1.0) for y in (0.0, 1.0)]
    assert [row["name"] for row in spread(apart, 300)] == ["nurse"] * 4
    # What lies at the right edge has its name to the left.
    assert [row["align"] for row in spread(apart, 300)] == ["left", "left", "right", "right"]
    crowd = [{"x": place / 1000, "y": 0.5, "name": "librarian"} for place in range(30)]
    assert 0 < sum(bool(row["name"]) for row in spread(crowd, 300)) < 30


def test_no_name_lies_on_the_numbers_of_an_axis() -> None:
    told = spread(
        [
            {"name": "a name of some length", "x": 0.0, "y": 0.0},
            {"name": "another of some length", "x": 1.0, "y": 1.0},
        ],
        300,
    )
    assert all(row["name"] for row in told)
    assert all(box[0] >= 0 and box[3] <= 300 for box in boxes(told, 1.0))
    wide = [{"name": "n" * 60, "x": x, "y": x} for x in (0.0, 0.5, 1.0)]
    assert [row["name"] for row in spread(wide, 300)] == ["", "", ""]
