"""Counting: what enters, what does not and why, and that order, names and shards do not matter."""

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.core.labels import Encoded
from equipoise.metrics import count
from equipoise.stats.draws import ItemSampler
from prediction_rows import weights_of

NAN = float("nan")


def cells(counts):
    return weights_of(counts, counts.table)


def test_what_is_missing_is_counted_once_by_its_first_reason():
    counts = count(
        [None, None, "a", "a", "a"], [None, "a", None, "a", "a"], [NAN, "g", "", "", "g"]
    )
    assert counts.excluded == {
        "missing true class": 2,
        "missing prediction": 1,
        "missing group": 1,
    }
    assert counts.table.sum() == 1


@pytest.mark.parametrize(
    ("truth", "label"),
    [
        ([1, 0], [1.0, 0.0]),
        ([1.0, NAN, 0.0], np.array([1, None, 0], dtype=object)),
        (np.array([1.0, None, 0.0], dtype=object), [1, 1, 0]),
        ([True, False], np.array([True, False], dtype=object)),
    ],
)
def test_the_same_class_in_another_type_is_the_same_class(truth, label):
    counts = count(truth, label, ["g"] * len(truth))
    assert len(counts.classes) == 2
    assert counts.hits(counts.table[None]).sum() == 2


def test_numbers_are_in_their_order_and_before_words():
    assert count([10, 9, 2], ["10", "nan", "b"], [1, 1, 1]).classes == ("2", "9", "10", "b", "nan")


@pytest.mark.parametrize(
    ("truth", "group", "expected"),
    [
        (["a", "a", "b"], ["x", "x", "y"], True),
        (["a", "a", "b"], ["x", "y", "y"], False),
        (["a", "a", "a"], ["x", "y", "y"], False),
    ],
)
def test_attributes_that_determine_the_class(truth, group, expected):
    assert count(truth, truth, group).determines_target is expected


def test_weights_of_the_k_best_labels():
    counts = count(
        ["a", "b"], [["a", "b"], ["b", "a"]], ["x"] * 2, weights=[[0.9, 0.1], [0.6, 0.4]]
    )
    assert cells(counts) == {
        ("a", "a", "x"): 0.9,
        ("a", "b", "x"): 0.1,
        ("b", "b", "x"): 0.6,
        ("b", "a", "x"): 0.4,
    }


def test_nan_among_the_best_labels_is_missing_and_no_class():
    counts = count(["a", "a"], [["a", NAN], ["a", "b"]], ["x", "x"])
    assert counts.excluded == {"missing prediction": 1}
    assert counts.classes == ("a", "b")


def test_coded_best_labels():
    top = Encoded(np.array([[0, 2], [2, -1]]), ("a", "unused", "c"))
    counts = count(["a", "a"], top, ["x", "x"])
    assert cells(counts) == {("a", "a", "x"): 0.5, ("a", "c", "x"): 0.5}
    assert counts.excluded == {"missing prediction": 1}


def test_probabilities_are_soft_counts_of_the_sorted_classes():
    scores = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]])
    counts = count([10, 2, 9], scores, ["x", "x", "y"])
    assert counts.classes == ("2", "9", "10")
    assert cells(counts) == {
        ("10", "2", "x"): 0.5,
        ("10", "9", "x"): 0.25,
        ("10", "10", "x"): 0.25,
        ("2", "9", "x"): 1.0,
        ("9", "2", "y"): 0.25,
        ("9", "10", "y"): 0.75,
    }


def test_rows_without_a_unit_are_units_of_their_own_whatever_their_order():
    rng = np.random.default_rng(3)
    truth, label, group = rng.integers(0, 3, (3, 60))
    unit = np.array([f"u{i // 3}" if i % 2 else None for i in range(60)], dtype=object)
    order = rng.permutation(60)
    first = count(truth, label, group, units=unit)
    second = count(truth[order], label[order], group[order], units=unit[order])
    assert isinstance(first.sampler, ItemSampler)
    assert len(first.sampler.keys) == 30 + 20
    strata = first.strata("class")
    for first_column, other in zip(
        (*first.sampler.bootstrap(20, 1), *first.sampler.permute(strata, 20, 1)),
        (*second.sampler.bootstrap(20, 1), *second.sampler.permute(strata, 20, 1)),
        strict=True,
    ):
        assert first_column.tobytes() == other.tobytes()


ONE = ["a"], [["a", "b"]], ["x"]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ((["a"], ["a", "b"], ["x"]), {}, "y_pred: 2 rows"),
        ((["a"], ["a"], ["x"]), {"units": [1, 2]}, "units: 2 rows"),
        (([None], ["a"], ["x"]), {}, "no row has a true class"),
        ((["a"], np.zeros((1, 0), int), ["x"]), {}, r"y_pred: shape \(1, 0\)"),
        ((["a"], [["a"], ["b", "c"]], ["x"]), {}, "y_pred: rows of different lengths"),
        (ONE, {"weights": [[1]]}, r"weights: shape \(1, 1\)"),
        ((["a", "b"], [[0.5, 0.5], [NAN, 1.0]], ["x", "x"]), {}, "y_pred, row 2"),
        ((["a", "b"], [[50.0, 50.0], [0.0, 100.0]], ["x", "x"]), {}, "y_pred, row 1"),
        ((["a", "a"], [[0.5, 0.5], [0.0, 1.0]], ["x", "x"]), {}, "y_pred: probabilities of 2"),
        ((["a"], [0.5], ["x"]), {}, "y_pred, row 1: 0.5 isn't a label"),
    ],
)
def test_refused_input(rows, options, message):
    with pytest.raises(InputError, match=f"^{message}"):
        count(*rows, **options)


@pytest.mark.parametrize("subject", ["y_true", "y_pred", "groups"])
def test_masked_columns_are_refused(subject):
    masked = np.ma.masked_array([0, 1, 3, 0] * 5, mask=[0, 0, 1, 0] * 5)
    columns = {name: np.array([0, 1] * 10) for name in ("y_true", "y_pred", "groups")}
    with pytest.raises(
        InputError, match=rf"^{subject}.*: the array is masked, and its masked rows"
    ):
        count(**(columns | {subject: masked}))
