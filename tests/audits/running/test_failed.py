"""Failures by group, and in words."""

import numpy as np

from equipoise.audits.running import identical
from equipoise.audits.running.failed import by_group, members_of, told

IDS = np.array([*"abcdef"], dtype=object)
COLUMNS = {
    "race": np.array(["x", "x", "y", "y", "y", None], dtype=object),
    "sex": np.array([*"mfmfmf"], dtype=object),
}


def test_an_image_is_in_each_of_its_groups_once() -> None:
    ids = np.array(["a", "a", "b", "c"], dtype=object)
    columns = {"who": np.array(["p", "q", "p", "p"], dtype=object)}
    assert members_of(ids, columns, [("who",)]) == {"who": {"p": {"a", "b", "c"}, "q": {"a"}}}


def test_intersections_leave_out_what_lacks_an_attribute() -> None:
    found = members_of(IDS, COLUMNS, [("race",), ("race", "sex")])
    assert found["race"] == {"x": {"a", "b"}, "y": {"c", "d", "e"}}
    assert {one for ids in found["race × sex"].values() for one in ids} == {*"abcde"}


def test_every_stage_and_group_has_a_row_also_where_none_failed() -> None:
    members = members_of(IDS, COLUMNS, [("race",)])
    rows = by_group("m", "images", {"a": "read", "c": "decode", "f": "read"}, IDS, members)
    assert [(r["stage"], r["group"], r["n"], r["of"]) for r in rows] == [
        ("decode", "", 1, 6),
        ("decode", "x", 0, 2),
        ("decode", "y", 1, 3),
        ("read", "", 2, 6),
        ("read", "x", 1, 2),
        ("read", "y", 0, 3),
    ]


def test_images_that_the_model_was_not_asked_about_do_not_count() -> None:
    members = {"race": {"x": {"a", "b"}, "y": {"d"}}}
    rows = by_group("m", "images", {"a": "read"}, ["a", "b", "c"], members)
    assert [(r["group"], r["n"], r["of"]) for r in rows] == [("", 1, 3), ("x", 1, 2)]


def test_no_failure_makes_no_row() -> None:
    assert by_group("m", "images", {}, IDS, {}) == []
    assert [*told([])] == []


def test_words_name_the_groups_that_lost_most_and_least() -> None:
    members = members_of(IDS, COLUMNS, [("race",), ("sex",)])
    rows = by_group("m", "images", {"a": "read", "b": "decode"}, IDS, members)
    rows += by_group("m", "others", {"z": "model"}, ["z", "y"], {})
    assert [*told(rows)] == [
        "m: 2 of 6 images failed and are in no number (pictures that could not be decoded: 1; "
        "files that could not be read: 1).",
        "m, race: 2 of the 2 images of x failed, and 0 of the 3 of y.",
        "m, others: 1 of 2 images failed and are in no number (the model gave no number: 1).",
    ]


def test_equal_shares_are_not_told_apart() -> None:
    rows = by_group("m", "images", {"a": "read", "b": "read"}, IDS, {"sex": {"m": "ac", "f": "bd"}})
    assert len([*told(rows)]) == 1


def test_images_with_the_same_bytes_are_counted_by_group_and_told() -> None:
    members = members_of(IDS, COLUMNS, [("race",)])
    shared = (("a", "c", "d"), ("e", "f"))
    counts = identical.counted(shared, members)
    assert counts == {"images": 5, "pictures": 2, "groups": {"race": {"x": 1, "y": 3}}}
    assert [*identical.told("images", shared, 6, counts)] == [
        "images: 5 of 6 images have the same bytes as another (2 pictures under several ids, the "
        "first 'a' and 'c'); every id keeps its row and counts.",
        "images, race: images with the same bytes as another are x 1, y 3.",
    ]
