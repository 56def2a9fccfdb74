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
    similarity_filter,
)
from equipoise.metrics.numbers.threshold_accuracy import learned_threshold
from goldens import Golden

VALUES = {"race": ["White", "Black", "Asian"], "gender": ["male", "female"]}
TYPES = (*VALUES,)


def rows(candidates=4):
    """One row for every caption of three subjects, in some candidates."""
    captions = caption_sets(["doctor", "nurse", "cook"], VALUES).table.to_pylist()
    return [
        {"image_id": f"{caption['caption_id']}#{number}", "candidate": number, "state": "image"}
        | caption
        for number in range(candidates)
        for caption in captions
    ]


def table(records):
    return pa.Table.from_pylist(records)


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
    records = [row for row in rows() if row["image_id"] != rows()[3]["image_id"]]
    candidates = candidates_of(table(records), TYPES)
    assert candidates.images == 72
    absent = np.flatnonzero(candidates.state == "absent")
    assert [candidates.columns[name][absent[0]] for name in TYPES] == [
        rows()[3][name] for name in TYPES
    ]
    assert Filtered(candidates, ()).kept.sum() == 11


def test_pairs_equal_plain_loops(candidates):
    images = np.random.default_rng(0).normal(size=(candidates.images, 5)) + 1.6
    texts = np.ones((candidates.images, 5))
    check = similarity_filter(candidates, images, texts, threshold=0.2, pairs=0.3).checks[1]
    units = images / np.linalg.norm(images, axis=1, keepdims=True)
    failed, lowest = np.zeros(len(images)), np.full(len(candidates), np.inf)
    for set_index in range(len(candidates)):
        begin, end = candidates.starts[set_index : set_index + 2]
        for i in range(begin, end):
            for j in range(i + 1, end):
                cosine = units[i] @ units[j]
                lowest[set_index] = min(lowest[set_index], cosine)
                failed[[i, j]] += cosine <= 0.3
    np.testing.assert_array_equal(check.rejected, failed)
    np.testing.assert_allclose(check.set_value, lowest, atol=1e-6)
    assert (check.passed == (lowest > 0.3)).all()
    assert 0 < check.passed.sum() < len(candidates)
    assert (check.checks == 5).all()


def test_content_adds_up_the_unsafe_labels(candidates):
    probabilities = np.tile([0.9, 0.06, 0.04], (candidates.images, 1))
    probabilities[3] = [0.4, 0.35, 0.25]
    labels = ("plain", "gore", "nudity")
    filtered = content_filter(candidates, probabilities, labels, ["gore", "nudity"], threshold=0.5)
    assert filtered.checks[0].value[3] == pytest.approx(0.6)
    assert filtered.checks[0].reason[3] == "gore"
    assert np.flatnonzero(~filtered.passed).tolist() == [0]


def shown(candidates, wrong):
    """Return images that show their gender and race, except wrong rows with another gender."""
    texts = {
        name: (values, np.eye(5)[place : place + len(values)])
        for (name, values), place in zip(VALUES.items(), (0, 3), strict=True)
    }
    images = np.zeros((candidates.images, 5))
    for row in range(candidates.images):
        for name, place in zip(TYPES, (0, 3), strict=True):
            value = VALUES[name].index(candidates.columns[name][row])
            off = row in wrong and name == "gender"
            images[row, place + (1 - value if off else value)] = 1.0
    return images, texts


def test_enough_images_of_a_set_show_their_attribute(candidates):
    images, texts = shown(candidates, [0, 6, 7])
    for threshold, rejected_sets in ((5, [1]), (1.0, [0, 1]), (0.6, []), (6, [0, 1])):
        least = {"race-gender": {"race": 6, "gender": threshold}}
        filtered = attribute_filter(candidates, images, texts, least)
        assert np.flatnonzero(~filtered.passed).tolist() == rejected_sets
    race, gender = filtered.checks
    assert (race.name, gender.name) == ("race shown", "gender shown")
    assert np.flatnonzero(gender.rejected).tolist() == [0, 6, 7]
    assert gender.reason[0].startswith("looks more like “")
    assert race.set_value.tolist() == [6.0] * 12


def test_the_thresholds_of_the_source_are_its_table_10():
    thresholds = {name: dict(limits) for name, limits in HOWARD_2024.items()}
    assert thresholds == Golden("social_counterfactuals.json")["detectability_thresholds"]


def test_the_summary_adds_up(candidates):
    images = vectors(candidates, odd={7: 0.1, 20: 0.15})
    image_vectors, texts = shown(candidates, [0, 30])
    filtered = Filtered(
        candidates.without(np.arange(candidates.images) == 40, "unreadable"),
        (
            similarity_filter(candidates, images, captions(candidates), threshold=0.2, pairs=0.2),
            attribute_filter(
                candidates, image_vectors, texts, {"race-gender": {"race": 1.0, "gender": 1.0}}
            ),
        ),
    )
    summary = filtered.summary().to_pylist()
    assert [row["stage"] for row in summary] == ["complete", "similarity", "attributes"]
    assert [row["sets_rejected"] for row in summary] == [1, 2, 2]
    for unit in ("sets", "images"):
        for row in summary:
            assert row[f"{unit}_before"] - row[f"{unit}_rejected"] == row[f"{unit}_after"]
        for row, after in pairwise(summary):
            assert row[f"{unit}_after"] == after[f"{unit}_before"]
    assert summary[0]["images_before"] == candidates.images
    assert summary[-1]["sets_after"] == filtered.kept.sum() == 7


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("race", lambda records: table(records).drop(["race"])),
        ("set", lambda records: table([*records, {**records[0], "image_id": "other"}])),
        ("image_id", lambda records: table([*records[:6], {**records[0], "set": "other"}])),
        (None, lambda records: table([{**record, "attributes": ""} for record in records])),
    ],
)
def test_a_table_without_candidates_is_refused(column, change):
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
    counts = np.random.default_rng(0).integers(3, 13, 240)
    learned = learned_threshold(counts, counts >= 9, 12, np.repeat(np.arange(60), 4))
    assert learned.threshold == 9
    assert learned.agreement == learned.accuracy == 1.0
    assert learned.low > 0.9


def test_accuracy_is_that_on_labels_it_was_not_chosen_by():
    """Random labels: agreement is too high, and accuracy is not."""
    agreement, accuracy = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        learned = learned_threshold(
            rng.integers(1, 31, 40), rng.random(40) < 0.5, 30, np.arange(40)
        )
        agreement.append(learned.agreement)
        accuracy.append(learned.accuracy)
        assert learned.majority >= 0.5
    assert np.mean(agreement) > 0.55
    assert abs(np.mean(accuracy) - 0.5) < 0.06


def test_labels_of_one_caption_set_stay_in_one_fold():
    """Every caption set has its own number and label, so other sets teach nothing."""
    rng = np.random.default_rng(1)
    counts = np.repeat(rng.permutation(20) + 1, 10)
    labels = np.repeat(rng.random(20) < 0.5, 10)
    together = learned_threshold(counts, labels, 20, counts)
    separate = learned_threshold(counts, labels, 20, np.arange(200))
    assert together.accuracy < separate.accuracy
    assert together.high - together.low > separate.high - separate.low
