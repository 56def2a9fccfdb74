"""Shares corrected for the errors of a classifier, and held against shares from outside."""

import math
from itertools import chain

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.core import InputError
from equipoise.metrics import (
    Confusion,
    association_score,
    corrected_shares,
    mean_share_mad,
    share_gap,
)
from equipoise.metrics.labels.shares import Inequality, likeliest
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import wilson


def known(rows):
    """Confusion counts from outcomes by class."""
    outcomes = tuple(dict.fromkeys(chain(rows, *rows.values())))
    counts = [[row.get(outcome, 0) for outcome in outcomes] for row in rows.values()]
    return Confusion(tuple(rows), outcomes, np.array(counts))


def said(**counts):
    return np.repeat([*counts], [*counts.values()])


TWO = known({"a": {"a": 90, "b": 10}, "b": {"a": 20, "b": 80}})
SOME = said(a=60, b=40)
FEW = Bootstrap(300, 300)


def shares(estimate, metric="corrected_share"):
    return {part.subject: part.value for part in estimate.parts if part.metric == metric}


def test_two_classes_by_hand():
    estimate = corrected_shares(SOME, TWO, resampling=None)
    # What is said less what the other class would give, over the difference of the rates.
    assert shares(estimate) == pytest.approx({"a": 4 / 7, "b": 3 / 7})
    assert shares(estimate, "raw_share") == pytest.approx({"a": 0.6, "b": 0.4})
    assert estimate.value == pytest.approx(1 / 7)
    assert estimate.metric == "share_mad"
    assert estimate.n == {"images": 100}
    assert estimate.params["labelled_images"] == 200
    assert math.isnan(estimate.interval().low)


def test_three_classes_and_an_outcome_that_is_none_by_hand():
    rates = np.array([[80, 10, 0, 10], [10, 70, 10, 10], [0, 20, 60, 20]])
    true = np.array([0.5, 0.3, 0.2])
    outcomes = ("x", "y", "z", "unknown")
    labels = np.repeat(outcomes, np.rint(1000 * true @ rates / 100).astype(int))
    estimate = corrected_shares(labels, Confusion(outcomes[:3], outcomes, rates), resampling=None)
    assert shares(estimate) == pytest.approx({"x": 0.5, "y": 0.3, "z": 0.2}, abs=1e-6)


def test_shares_outside_of_zero_to_one_are_those_of_the_border():
    # The plain inverse is 0.75 / 0.7.
    likely = corrected_shares(said(a=95, b=5), TWO, resampling=None)
    assert shares(likely) == pytest.approx({"a": 1.0, "b": 0.0})


def test_a_class_that_is_set_aside_is_no_part_of_the_shares():
    counts = {
        "man": {"man": 90, "woman": 10},
        "woman": {"man": 10, "woman": 90},
        "no person": {"no person": 100},
    }
    labels = said(**{"man": 33, "woman": 17, "no person": 50})
    estimate = corrected_shares(labels, known(counts), aside=["no person"], resampling=FEW)
    # Of 50 images with a person (0.66 - 0.1) / 0.8.
    assert shares(estimate) == pytest.approx({"man": 0.7, "woman": 0.3})
    assert estimate.chance.mean < estimate.value


def test_without_labelled_images_the_classifier_is_taken_at_its_word():
    estimate = corrected_shares(said(a=30, b=10, other=5), None, classes=["a", "b"], resampling=FEW)
    assert shares(estimate) == pytest.approx({"a": 0.75, "b": 0.25})
    assert estimate.excluded == {"said other: no class": 5}
    assert estimate.params["corrected"] is False
    assert "not corrected" in estimate.method


def test_what_the_labelled_images_were_never_called_is_left_out_and_counted():
    labels = [*said(a=60, b=40, giraffe=7), None, None, None]
    estimate = corrected_shares(labels, TWO, resampling=None)
    assert shares(estimate)["a"] == pytest.approx(4 / 7)
    assert estimate.excluded == {"no prediction": 3, "said giraffe: of no labelled image": 7}


@pytest.mark.parametrize(
    ("confusion", "reason"),
    [
        (
            {"a": {"a": 51, "b": 49}, "b": {"a": 49, "b": 51}},
            "the condition number of the confusion matrix is 50, above 20",
        ),
        ({"a": {"a": 90}, "b": {"a": 80}}, "the condition number of the confusion matrix is inf"),
        ({"a": {"a": 90, "b": 1}, "b": {"b": 4}}, "fewer than 10 labelled images (b: 4)"),
    ],
)
def test_what_cannot_be_estimated_says_why(confusion, reason):
    estimate = corrected_shares(SOME, known(confusion), resampling=FEW)
    assert not estimate.estimable
    assert estimate.reason.startswith(reason)
    assert all(math.isnan(share) for share in shares(estimate).values())
    assert all(p.reason.startswith(reason) for p in estimate.parts if p.metric == "corrected_share")
    gap = share_gap(estimate)
    assert math.isnan(gap.value)
    assert gap.reason == estimate.reason


def test_intervals_grow_with_fewer_labelled_images_and_with_units():
    few = known({"a": {"a": 18, "b": 2}, "b": {"a": 4, "b": 16}})
    units = [f"seed {place // 10}" for place in range(100)]
    widths = [
        refused.interval().high - refused.interval().low
        for refused in (
            share_gap(corrected_shares(SOME, TWO, resampling=FEW)),
            share_gap(corrected_shares(SOME, few, resampling=FEW)),
            share_gap(corrected_shares(SOME, TWO, units=units, resampling=FEW)),
        )
    ]
    assert widths[1] > 1.3 * widths[0]
    assert widths[2] > 1.3 * widths[0]
    clustered = corrected_shares(SOME, TWO, units=units, resampling=FEW)
    assert clustered.unit == "unit"
    assert clustered.params["effective_images"] < 15


def test_images_that_come_twice_in_a_unit_count_once():
    estimate = corrected_shares(
        np.tile(SOME, 2), TWO, units=np.tile(np.arange(100), 2), resampling=FEW
    )
    raw, _ = (part for part in estimate.parts if part.metric == "raw_share")
    low, high = wilson(60, 100)
    assert (raw.low, raw.high) == pytest.approx((float(low), float(high)), abs=0.002)


def test_the_gap_to_shares_from_outside_by_hand():
    estimate = corrected_shares(SOME, TWO, resampling=FEW)
    gap = share_gap(estimate, {"a": 20, "b": 80})
    assert gap.value == pytest.approx(4 / 7 - 0.2)
    by_class = shares(gap, "share_difference")
    assert by_class == pytest.approx({"a": 4 / 7 - 0.2, "b": 3 / 7 - 0.8})
    assert gap.p_value < 0.01
    ends = gap.interval()
    assert 0 < ends.low < gap.value < ends.high
    assert all(part.p_value < 0.02 for part in gap.parts)
    same = share_gap(estimate, {"a": 4, "b": 3})
    assert same.p_value > 0.3
    assert same.interval().low == 0.0


def test_the_mean_over_sets_of_images():
    estimates = {
        name: corrected_shares(said(a=a, b=100 - a), TWO, resampling=FEW, name=name)
        for name, a in (("x", 80), ("y", 30))
    }
    estimate = mean_share_mad(estimates)
    assert estimate.value == pytest.approx(
        sum(estimate.value for estimate in estimates.values()) / 2
    )
    assert estimate.p_value < 0.01
    assert estimate.interval().low < estimate.value < estimate.interval().high
    not_estimable = corrected_shares(said(a=0, b=0), TWO, resampling=FEW)
    assert mean_share_mad({**estimates, "z": not_estimable}).excluded == {"not estimable": 1}


def test_the_mean_of_small_sets_holds_the_truth():
    # Of 28 sets of 4 images, the mean of drawn inequalities lay between 0.89 and 1.08.
    sets = {
        str(place): corrected_shares(said(a=4), None, classes=["a", "b", "c"], name=str(place))
        for place in range(28)
    }
    estimate = mean_share_mad(sets)
    assert (estimate.value, estimate.corrected) == pytest.approx((4 / 3, 4 / 3))
    ends = estimate.interval()
    assert 1.2 < ends.low < 2 * (0.98 - 1 / 3) < ends.high == pytest.approx(4 / 3)


@pytest.mark.parametrize(("images", "sets"), [(4, 1), (20, 1), (4, 24), (20, 8)])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.98, 1.0])
def test_intervals_of_inequality_hold_the_truth(share, images, sets):
    # Own draws; every other set favours the other class.
    rng, truth, hits = np.random.default_rng(int(1000 * share) + images), 2 * share - 1, []
    for _ in range(80):
        first = rng.binomial(images, share, sets) / images
        shares = np.stack([first, 1 - first], axis=1)
        shares[::2] = shares[::2, ::-1]
        n = np.full(sets, float(images))
        inequality = Inequality(shares, n, np.eye(2), None, lambda: np.random.default_rng(0))
        low, high = inequality(0.95)
        hits.append(low - 1e-9 <= truth <= high + 1e-9)
        assert low - 0.02 <= inequality.estimate <= high + 1e-9
    # Three standard errors of 80 samples below 95 %.
    assert np.mean(hits) >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 80)


def test_labelled_images_are_counted():
    true = np.array(["a"] * 100 + ["b"] * 100 + ["a", ""], dtype=object)
    labels = np.array(["a"] * 90 + ["b"] * 10 + ["a"] * 20 + ["b"] * 80 + [None, "a"], dtype=object)
    confusion, left_out = Confusion.of_labels(true, labels, outcomes=["b", "never"])
    assert left_out == 2
    assert (confusion.classes, confusion.outcomes) == (("a", "b"), ("b", "never", "a"))
    assert confusion.counts.tolist() == [[10, 0, 90], [80, 0, 20]]


@given(
    st.lists(st.floats(0.02, 1.0), min_size=3, max_size=3),
    st.lists(st.floats(0.0, 0.4), min_size=3, max_size=3),
    st.lists(st.integers(0, 60), min_size=3, max_size=3).filter(any),
)
@example([1.0, 1.0, 0.0625], [0.0, 0.25, 0.375], [1, 2, 4])
@settings(max_examples=25, deadline=None)
def test_no_other_shares_are_likelier_than_those_found(right, wrong, predicted):
    rates = np.diag(right) + np.roll(np.diag(wrong), 1, axis=1) + 0.05
    rates /= rates.sum(axis=1, keepdims=True)
    share = np.array(predicted, dtype=float)[None] / sum(predicted)
    estimated = likeliest(share, rates[None])[0]
    assert estimated.sum() == pytest.approx(1.0)
    assert (estimated >= 0).all()

    def loss(shares):
        return float(-(share[0] * np.log(np.maximum(shares @ rates, 1e-12))).sum())

    other_shares = np.random.default_rng(0).dirichlet(np.full(3, 0.5), size=400)
    near = 0.98 * estimated + 0.02 * other_shares
    assert loss(estimated) <= min(map(loss, (*other_shares, *near))) + 1e-9


EVEN = ["a", "b"]
KNOWN = corrected_shares(EVEN, TWO, resampling=None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Confusion(("a",), ("a",), np.array([[-1]])), "confusion: "),
        (lambda: Confusion(("a",), ("a",), np.array([[1.5]])), "confusion: "),
        (lambda: Confusion(("a",), ("a", "b"), np.array([[1]])), r"confusion: .* \(1, 2\)"),
        (lambda: Confusion.of_labels(np.array(["a"]), np.array(EVEN)), "true labels: 1"),
        (lambda: corrected_shares(EVEN, TWO, units=["x"]), "units: 1 rows; expected 2"),
        (lambda: corrected_shares(EVEN, TWO, classes=["a"]), r"classes: \['a'\]"),
        (lambda: corrected_shares(EVEN, TWO, classes=["a", "a"]), "classes: "),
    ],
)
def test_refused_counts(make, message):
    with pytest.raises(InputError, match=f"^{message}"):
        make()


@pytest.mark.parametrize("outside", [{"a": 1}, {"a": -1, "b": 1}, {"a": 0, "b": 0}, "even"])
def test_refused_outside_shares(outside):
    with pytest.raises(InputError, match="^outside: "):
        share_gap(KNOWN, outside)


def test_refused_estimates():
    other = association_score([[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]])
    seeds = {str(rng): corrected_shares(EVEN, TWO, rng=rng, resampling=FEW) for rng in (0, 1)}
    none = {"x": corrected_shares(said(a=0, b=0), TWO)}
    nameless = dict.fromkeys("xy", corrected_shares(EVEN, TWO, resampling=FEW))
    few = known({"a": {"a": 18, "b": 2}, "b": {"a": 4, "b": 16}})
    labelled = {
        name: corrected_shares(EVEN, confusion, resampling=FEW, name=name)
        for name, confusion in (("x", TWO), ("y", few))
    }
    refused = [(mean_share_mad, arguments) for arguments in (seeds, none, nameless, labelled)]
    for function, passed in [(share_gap, other), *refused]:
        with pytest.raises(InputError, match="^(shares|estimates): "):
            function(passed)
