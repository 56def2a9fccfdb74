"""Errors that people see, agreement of a detector with them, subjects that are told apart."""

import math

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import (
    confusable_subjects,
    demographic_parity,
    detector_precision,
    detector_recall,
    label_errors,
    subject_accuracy,
)
from equipoise.metrics.values.labels import STATES
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import wilson

DRAWN = Bootstrap(100, 200)


def labelled(n=240, seed=0):
    """Labels of which group "b" has errors twice as often."""
    rng = np.random.default_rng(seed)
    groups = np.array(["a", "b", "c"])[np.arange(n) % 3]
    wrong = rng.random(n) < np.where(groups == "b", 0.5, 0.15)
    kinds = rng.choice(np.array(STATES[1:]), n)
    return np.where(wrong, kinds, STATES[0]), groups


def part(found, metric, subject):
    return next(one for one in found.parts if (one.metric, one.subject) == (metric, subject))


def test_errors_are_compared_as_shares_of_labels_are():
    labels, groups = labelled()
    found = label_errors(labels, groups, resampling=DRAWN, rng=5)
    drawn = demographic_parity(None, labels, groups, resampling=DRAWN, rng=5)
    plain = {one.subject: one for one in drawn.parts}
    for kind in ("any error", *STATES[1:]):
        shown = labels == kind if kind in STATES else labels != "good"
        gap, rate = (part(found, f"label_error_{name}", kind) for name in ("gap", "rate"))
        rates = [shown[groups == group].mean() for group in "abc"]
        assert [one.value for one in gap.by_group] == pytest.approx(rates)
        assert gap.value == pytest.approx(max(rates) - min(rates))
        assert kind not in plain or gap.p_value == plain[kind].p_value
        for own, right, many in ((rate, shown, 240), (gap.by_group[1], shown[groups == "b"], 80)):
            ends = [float(one) for one in wilson(right.sum(), many, 0.95)]
            assert [own.value, own.low, own.high] == pytest.approx([right.mean(), *ends])
    assert found.value == part(found, "label_error_gap", "any error").value
    assert found.p_value < 0.02
    assert found.value > found.chance.high
    assert not [one for one in found.parts if one.subject == "good"]


def test_missing_labels_are_counted_and_no_error_is_no_gap():
    labels, groups = labelled(30)
    found = label_errors([None, "", *labels[2:]], groups, resampling=None)
    assert sum(found.excluded.values()) == 2
    assert part(found, "label_error_rate", "any error").n == 28
    fine = label_errors(["good"] * 30, groups, resampling=DRAWN)
    assert (fine.value, fine.p_value) == (0.0, 1.0)
    rate = part(fine, "label_error_rate", "any error")
    assert (rate.value, rate.high) == (0.0, pytest.approx(float(wilson(0, 30, 0.95)[1])))
    units = np.arange(30) // 3
    some = label_errors(["good"] * 29 + ["out of frame"], groups, units=units, resampling=DRAWN)
    first = part(some, "label_error_gap", "any error").by_group[0]
    assert (first.value, first.high) == (0.0, pytest.approx(float(wilson(0, 10, 0.95)[1])))


def agreement(n=200, seed=1):
    rng = np.random.default_rng(seed)
    shown = rng.random(n) < 0.7
    detected = np.where(rng.random(n) < 0.85, shown, ~shown)
    return detected, shown, np.array(["x", "y"])[np.arange(n) % 2]


def test_precision_and_recall_are_shares_with_wilsons_interval():
    detected, shown, groups = agreement()
    both = int((detected & shown).sum())
    for found, total in (
        (detector_precision(detected, shown, groups=groups), int(detected.sum())),
        (detector_recall(detected, shown, groups=groups), int(shown.sum())),
    ):
        assert found.value == both / total
        assert found.ends(0.9) == tuple(float(one) for one in wilson(both, total, 0.9))
        assert found.n == {"images": total}
        assert sum(one.n for one in found.parts) == total
        mean = sum(one.value * one.n for one in found.parts) / total
        assert mean == pytest.approx(found.value)
        assert found.chance is None


def test_units_never_make_an_interval_narrower_than_wilsons():
    detected, shown, _ = agreement(50)
    many = [np.repeat(one, 6) for one in (detected, shown)]
    alone = detector_recall(*many).ends(0.95)
    low, high = detector_recall(*many, units=np.repeat(np.arange(50), 6), resampling=DRAWN).ends(
        0.95
    )
    assert low < alone[0]
    assert high > alone[1]


def test_nothing_detected_has_no_precision_and_a_recall_of_zero():
    found = detector_precision([False] * 5, [True] * 5, groups=["a"] * 5)
    assert math.isnan(found.value)
    assert found.reason == found.parts[0].reason != ""
    assert detector_recall([0] * 5, [1] * 5).value == 0.0


TEXTS = np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
NAMES = ("nurse", "doctor", "pilot", "chef")


def test_subjects_whose_texts_are_alike_are_listed():
    found = confusable_subjects(TEXTS, NAMES)
    assert found.params["subjects"] == ["nurse", "doctor"]
    assert found.value == 0.5
    assert [one.subject for one in found.parts] == ["nurse | doctor"]
    assert found.parts[0].value == pytest.approx(1 / math.sqrt(1.01))
    assert confusable_subjects(TEXTS, NAMES, threshold=0.999).value == 0.0
    assert confusable_subjects(np.ones((3, 2)), threshold=1.0).value == 1.0
    some = confusable_subjects(TEXTS, NAMES, threshold=0.05)
    assert [one.subject for one in some.parts] == ["nurse | doctor", "doctor | pilot"]


def test_subjects_that_images_are_not_told_by_are_listed():
    rng = np.random.default_rng(0)
    subjects = np.repeat(NAMES, 60)
    images = TEXTS[[NAMES.index(one) for one in subjects]] + 0.15 * rng.standard_normal((240, 3))
    images[subjects == "chef"] = TEXTS[2] + 0.05 * rng.standard_normal((60, 3))
    found = subject_accuracy(images, TEXTS, subjects, names=NAMES)
    unit = images / np.linalg.norm(images, axis=1, keepdims=True)
    text = TEXTS / np.linalg.norm(TEXTS, axis=1, keepdims=True)
    plain = np.array(NAMES)[[int(np.argmax([a @ b for b in text])) for a in unit]]
    assert found.value == pytest.approx((plain == subjects).mean())
    own = {one.subject: one for one in found.parts}
    assert own["pilot"].value > 0.95
    assert own["chef"].value == 0.0
    assert own["chef"].shows == "taken for pilot most"
    assert found.params["not_told_apart"][-1] == "chef"
    assert "pilot" not in found.params["not_told_apart"]
    assert found.params["chance"] == 0.25


def test_images_without_a_text_are_counted():
    subjects = ["nurse", None, "baker", "pilot"]
    found = subject_accuracy(TEXTS, TEXTS, subjects, names=NAMES, resampling=None)
    assert found.excluded == {"images without a subject's text": 2}
    assert found.n == {"images": 2}
    assert [one.subject for one in found.parts] == ["nurse", "pilot"]


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: label_errors([None, ""], ["a", "b"]), "labels: none"),
        (lambda: label_errors(["good"], ["a", "b"]), "groups: 2 rows"),
        (lambda: detector_precision([True], [True, False]), "detected and shown: "),
        (lambda: detector_precision([0, 2], [1, 1]), "detected and shown: "),
        (lambda: detector_recall([True, True], ["yes", "no"]), "detected and shown: "),
        (lambda: detector_recall([True] * 2, [True] * 2, groups=["a"]), "groups: 1 images"),
        (lambda: confusable_subjects(TEXTS, NAMES[:2]), "names: 2"),
        (lambda: confusable_subjects(TEXTS, ["a"] * 4), "names: 4"),
        (lambda: confusable_subjects(np.zeros((2, 3))), "texts: row 1"),
        (lambda: confusable_subjects(TEXTS, threshold=2.0), "threshold=2.0"),
        (lambda: subject_accuracy(np.eye(2), TEXTS, ["a", "b"], names=NAMES), "images of 2"),
        (lambda: subject_accuracy(np.eye(3), TEXTS, ["nurse"], names=NAMES), "subjects: 1"),
        (lambda: subject_accuracy(np.eye(3), TEXTS, ["x"] * 3, names=NAMES), "subjects: no"),
    ],
)
def test_bad_input(call, where):
    with pytest.raises(InputError, match=f"^{where}"):
        call()
