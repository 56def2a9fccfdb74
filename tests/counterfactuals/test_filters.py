"""The filters, on arrays and tables: what is kept, and what every image was held against."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from equipoise.core import DataError, InputError
from equipoise.counterfactuals import caption_sets
from equipoise.counterfactuals.candidates import candidates_of
from equipoise.counterfactuals.filters import (
    HOWARD_2024,
    Filtered,
    attribute_filter,
    content_filter,
    learned_threshold,
    similarity_filter,
)
from goldens import Golden

VALUES = {"race": ["White", "Black", "Asian"], "gender": ["male", "female"]}
TYPES = (*VALUES,)


def rows(candidates=4):
    """One row for every caption of three subjects, in some candidates."""
    captions = caption_sets(["doctor", "nurse", "cook"], VALUES).table.to_pylist()
    return [
        {"image_id": f"{one['caption_id']}#{number}", "candidate": number, "state": "image"} | one
        for number in range(candidates)
        for one in captions
    ]


def table(given):
    return pa.Table.from_pylist(given)


@pytest.fixture
def candidates():
    return candidates_of(table(rows()), TYPES)


def vectors(candidates, *, odd=None):
    """Images whose cosine with the caption (1, 0) is 0.9, and another number for some."""
    cosine = np.full(candidates.images, 0.9)
    for row, value in (odd or {}).items():
        cosine[row] = value
    return np.stack([cosine, np.sqrt(1 - cosine**2)], axis=1)


def captions(candidates):
    return np.tile([1.0, 0.0], (candidates.images, 1))


def test_rows_in_another_order_are_the_same_candidates(candidates):
    mixed = rows()
    np.random.default_rng(0).shuffle(mixed)
    again = candidates_of(table(mixed), TYPES)
    assert again.names == candidates.names
    per_set = {*zip(candidates.candidate.tolist(), candidates.columns["image_id"], strict=True)}
    assert per_set == {*zip(again.candidate.tolist(), again.columns["image_id"], strict=True)}


def test_a_member_without_a_row_is_absent_and_its_group_known():
    given = [one for one in rows() if one["image_id"] != rows()[3]["image_id"]]
    found = candidates_of(table(given), TYPES)
    assert found.images == 72
    absent = np.flatnonzero(found.state == "absent")
    assert [found.columns[name][absent[0]] for name in TYPES] == [rows()[3][name] for name in TYPES]
    assert Filtered(found, ()).kept.sum() == 11


def test_pairs_are_those_of_plain_loops(candidates):
    images = np.random.default_rng(0).normal(size=(candidates.images, 5)) + 1.6
    texts = np.ones((candidates.images, 5))
    check = similarity_filter(candidates, images, texts, threshold=0.2, pairs=0.3).checks[1]
    units = images / np.linalg.norm(images, axis=1, keepdims=True)
    failed, lowest = np.zeros(len(images)), np.full(len(candidates), np.inf)
    for one in range(len(candidates)):
        begin, end = candidates.starts[one : one + 2]
        for i in range(begin, end):
            for j in range(i + 1, end):
                cosine = units[i] @ units[j]
                lowest[one] = min(lowest[one], cosine)
                failed[[i, j]] += cosine <= 0.3
    np.testing.assert_array_equal(check.rejected, failed)
    np.testing.assert_allclose(check.set_value, lowest, atol=1e-6)
    assert (check.passed == (lowest > 0.3)).all()
    assert 0 < check.passed.sum() < len(candidates)
    assert (check.checks == 5).all()


def test_content_adds_up_the_unsafe_labels(candidates):
    said = np.tile([0.9, 0.06, 0.04], (candidates.images, 1))
    said[3] = [0.4, 0.35, 0.25]
    labels = ("plain", "gore", "nudity")
    found = content_filter(candidates, said, labels, ["gore", "nudity"], threshold=0.5)
    assert found.checks[0].value[3] == pytest.approx(0.6)
    assert found.checks[0].reason[3] == "gore"
    assert np.flatnonzero(~found.passed).tolist() == [0]


def shown(candidates, wrong):
    """Images that look like their own gender and race, but for some that look like no other's."""
    texts = {
        name: (values, np.eye(5)[place : place + len(values)])
        for (name, values), place in zip(VALUES.items(), (0, 3), strict=True)
    }
    images = np.zeros((candidates.images, 5))
    for row in range(candidates.images):
        for name, place in zip(TYPES, (0, 3), strict=True):
            own = VALUES[name].index(candidates.columns[name][row])
            off = row in wrong and name == "gender"
            images[row, place + (1 - own if off else own)] = 1.0
    return images, texts


def test_enough_images_of_a_set_show_their_attribute(candidates):
    images, texts = shown(candidates, [0, 6, 7])
    for threshold, lost in ((5, [1]), (1.0, [0, 1]), (0.6, []), (6, [0, 1])):
        least = {"race-gender": {"race": 6, "gender": threshold}}
        found = attribute_filter(candidates, images, texts, least)
        assert np.flatnonzero(~found.passed).tolist() == lost
    race, gender = found.checks
    assert (race.name, gender.name) == ("race shown", "gender shown")
    assert np.flatnonzero(gender.rejected).tolist() == [0, 6, 7]
    assert gender.reason[0].startswith("looks more like “")
    assert race.set_value.tolist() == [6.0] * 12


def test_the_thresholds_of_the_source_are_its_table_10():
    found = {name: dict(one) for name, one in HOWARD_2024.items()}
    assert found == Golden("social_counterfactuals.json")["detectability_thresholds"]


def test_the_summary_adds_up(candidates):
    images = vectors(candidates, odd={7: 0.1, 20: 0.15})
    seen, texts = shown(candidates, [0, 30])
    found = Filtered(
        candidates.without(np.arange(candidates.images) == 40, "unreadable"),
        (
            similarity_filter(candidates, images, captions(candidates), threshold=0.2, pairs=0.2),
            attribute_filter(
                candidates, seen, texts, {"race-gender": {"race": 1.0, "gender": 1.0}}
            ),
        ),
    )
    summary = found.summary().to_pylist()
    assert [one["stage"] for one in summary] == ["complete", "similarity", "attributes"]
    assert [one["sets_rejected"] for one in summary] == [1, 2, 2]
    for unit in ("sets", "images"):
        for one in summary:
            assert one[f"{unit}_before"] - one[f"{unit}_rejected"] == one[f"{unit}_after"]
        for one, after in pairwise(summary):
            assert one[f"{unit}_after"] == after[f"{unit}_before"]
    assert summary[0]["images_before"] == candidates.images
    assert summary[-1]["sets_after"] == found.kept.sum() == 7


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("race", lambda given: table(given).drop(["race"])),
        ("set", lambda given: table([*given, {**given[0], "image_id": "other"}])),
        ("image_id", lambda given: table([*given[:6], {**given[0], "set": "other"}])),
        (None, lambda given: table([{**one, "attributes": ""} for one in given])),
    ],
)
def test_a_table_that_cannot_be_candidates_is_told(column, change):
    with pytest.raises(DataError) as raised:
        candidates_of(change(rows(1)), TYPES, file="x.csv")
    assert (raised.value.file, raised.value.column) == ("x.csv", column)


@pytest.mark.parametrize(
    ("share", "unsafe", "where"), [(0.5, "gore", "unsafe:"), (2.0, "a", "scores")]
)
def test_content_that_cannot_be_judged(candidates, share, unsafe, where):
    with pytest.raises(InputError, match=f"^{where}"):
        content_filter(
            candidates, np.full((candidates.images, 2), share), ("a", "b"), [unsafe], threshold=0.5
        )


def test_the_threshold_that_people_use_is_found():
    """Sets of 12 that people accept from 9 images on."""
    shown = np.random.default_rng(0).integers(3, 13, 240)
    found = learned_threshold(shown, shown >= 9, 12, np.repeat(np.arange(60), 4))
    assert found.threshold == 9
    assert found.agreement == found.accuracy == 1.0
    assert found.low > 0.9


def test_accuracy_is_that_on_labels_it_was_not_chosen_by():
    """Labels that have nothing to do with what was detected: agreement flatters, accuracy not."""
    agreement, accuracy = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found = learned_threshold(rng.integers(1, 31, 40), rng.random(40) < 0.5, 30, np.arange(40))
        agreement.append(found.agreement)
        accuracy.append(found.accuracy)
        assert found.majority >= 0.5
    assert np.mean(agreement) > 0.55
    assert abs(np.mean(accuracy) - 0.5) < 0.06


def test_labels_of_one_caption_set_stay_in_one_fold():
    """Every caption set has its own number and label: nothing is to be learned from others."""
    rng = np.random.default_rng(1)
    shown = np.repeat(rng.permutation(20) + 1, 10)
    labels = np.repeat(rng.random(20) < 0.5, 10)
    together = learned_threshold(shown, labels, 20, shown)
    apart = learned_threshold(shown, labels, 20, np.arange(200))
    assert together.accuracy < apart.accuracy
    assert together.high - together.low > apart.high - apart.low
