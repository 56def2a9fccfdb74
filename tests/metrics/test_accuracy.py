"""Accuracy, worst group and gaps: goldens, brute force, real data, fairlearn, invariances."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest

from equipoise.core import Aggregate, Groups, InputError, IntervalKind
from equipoise.core.parts import parts_from_table
from equipoise.metrics import accuracy, accuracy_gap, count, measure, worst_group_accuracy
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.stats import Bootstrap, Permutation
from equipoise.stats.intervals import (
    clopper_pearson,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)
from prediction_rows import EXAMPLE, rows_of

accuracy_range = partial(accuracy_gap, versus="best")
METRICS = (accuracy, worst_group_accuracy, accuracy_gap, accuracy_range)
TESTED = (worst_group_accuracy, accuracy_gap, accuracy_range)

# Of `EXAMPLE`, by an independent implementation.
EXPECTED = {
    "accuracy": 0.8033333333333333,
    "worst": 0.6824644549763034,
    "gap": 0.12086887835702997,
    "range": 0.1992559751312235,
}
BY_GROUP = (0.8817204301075269, 0.6824644549763034, 0.8571428571428571)


def part(estimate):
    return parts_from_table(estimate.by)[0]


def test_golden_values():
    rows = rows_of(EXAMPLE)
    for function, name in zip(METRICS, EXPECTED, strict=True):
        estimate = function(*rows)
        assert estimate.value == pytest.approx(EXPECTED[name], abs=1e-12)
        assert [group.value for group in part(estimate).by_group] == pytest.approx(
            BY_GROUP, abs=1e-12
        )
        assert estimate.n == {"0": 186, "1": 211, "2": 203}


# Six rows, small enough for all 720 permutations of their groups.
TRUTH, LABEL, GROUP = (
    np.array(x) for x in ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 0], [0, 0, 1, 0, 1, 1])
)


def rearranged(null):
    for order in permutations(range(6)):
        if null == "rows" or (TRUTH[[*order]] == TRUTH).all():
            yield GROUP[[*order]]


@pytest.mark.parametrize("null", ["rows", "class"])
@pytest.mark.parametrize("function", TESTED)
def test_chance_is_that_of_all_permutations(function, null):
    all_groups = Groups.of(GROUP, min_size=1)
    estimate = function(TRUTH, LABEL, all_groups, null=null, resampling=Permutation(40_000))
    values = []
    for group in rearranged(null):
        shares = [(TRUTH == LABEL)[group == code].mean() for code in (0, 1)]
        statistics = -min(shares), (TRUTH == LABEL).mean() - min(shares), np.ptp(shares)
        values.append(statistics[TESTED.index(function)])
    observed = -estimate.value if function is worst_group_accuracy else estimate.value
    expected = np.mean([value >= observed - 1e-12 for value in values])
    assert estimate.p_value == pytest.approx(expected, abs=0.01)
    assert abs(estimate.chance.mean) == pytest.approx(abs(np.mean(values)), abs=0.005)


def test_intervals_are_the_closed_forms():
    rows = rows_of(EXAMPLE)
    right, total = EXAMPLE[[0, 1, 2], [0, 1, 2]].sum(axis=0), EXAMPLE.sum(axis=(0, 1))
    expected = (
        wilson(right.sum(), total.sum(), 0.9),
        simultaneous_minimum(right, total, 0.9),
        simultaneous_shortfall(right, total, 0.9),
        simultaneous_gap(right, total, 0.9),
    )
    for function, (low, high) in zip(METRICS, expected, strict=True):
        for resampling in (Bootstrap(10, 10), Permutation(10)):
            interval = function(*rows, resampling=resampling).interval(0.9)
            assert (interval.low, interval.high) == (float(low), float(high))


def test_small_groups_are_shown_and_left_out():
    groups = Groups.of([*"xxxyyyz"], min_size=2)
    truth, label = [1] * 7, [1, 1, 0, 1, 1, 1, 0]
    worst, gap, difference = (f(truth, label, groups, resampling=Permutation(20)) for f in TESTED)
    assert worst.value == pytest.approx(2 / 3)
    assert gap.value == pytest.approx(5 / 6 - 2 / 3)
    assert difference.value == pytest.approx(1 - 2 / 3)
    assert worst.excluded == {"groups under 2 rows": 1}
    assert [(group.n, group.value, group.note) for group in part(worst).by_group] == [
        (3, pytest.approx(2 / 3), ""),
        (3, 1.0, ""),
        (1, 0.0, "fewer than 2 rows"),
    ]


def test_two_groups_of_a_size_are_twice_as_far_apart_as_from_all_rows():
    group = np.repeat(["women", "men"], 1000)
    truth = np.arange(2000) % 3
    label = np.where(np.r_[np.arange(1000) < 220, np.arange(1000) < 140], (truth + 1) % 3, truth)
    gap, difference = (f(truth, label, group) for f in (accuracy_gap, accuracy_range))
    assert difference.value == pytest.approx(0.08)
    assert gap.value == pytest.approx(0.04)
    assert difference.p_value == gap.p_value


def test_an_unknown_comparison_is_refused():
    with pytest.raises(InputError) as error:
        accuracy_gap([1, 0], [1, 1], ["a", "b"], versus="worst")
    assert "versus" in str(error.value)


def test_units_of_one_row_give_the_interval_of_rows():
    rows = [1, 1, 0], [1, 0, 0], Groups.of([0, 1, 1], min_size=1)
    for function in TESTED:
        clustered, plain = function(*rows, units=["p", "q", "r"]), function(*rows)
        assert clustered.interval().low == plain.interval().low
        assert clustered.interval().high == plain.interval().high


def clustered(rng, shares, units, size):
    """Rows by group, right with a share of the unit's own; the beta has correlation 0.3."""
    group = np.repeat(np.arange(len(shares)), units * size)
    unit = np.repeat(np.arange(len(shares) * units), size)
    alpha = np.repeat(shares, units) * 0.7 / 0.3
    unit_rates = rng.beta(alpha, 0.7 / 0.3 - alpha)
    return rng.random(len(group)) < np.repeat(unit_rates, size), group, unit


@pytest.mark.parametrize("shares", [np.full(3, 0.8), np.full(12, 0.8), np.linspace(0.72, 0.85, 12)])
def test_extremes_over_groups_of_units_hold_the_truth(shares):
    rng, hits = np.random.default_rng(5), []
    for _ in range(60):
        right, group, unit = clustered(rng, shares, 20, 8)
        counts = count(np.ones(len(right), int), right.astype(int), group, units=unit)
        measures = [
            Accuracy(Aggregate.WORST_GROUP, "rows"),
            Accuracy(Aggregate.DIFFERENCE, "rows", "overall"),
            Accuracy(Aggregate.DIFFERENCE, "rows"),
        ]
        estimates = measure(counts, measures, Permutation(1))
        truths = shares.min(), shares.mean() - shares.min(), np.ptp(shares)
        for estimate, truth in zip(estimates, truths, strict=True):
            ends = estimate.interval()
            hits.append(ends.low - 1e-9 <= truth <= ends.high + 1e-9)
    by_metric = np.reshape(hits, (-1, 3)).mean(axis=0)
    assert (by_metric >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)).all()


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("size", [1, 5, 40])
def test_units_that_are_all_right_or_wrong_have_an_exact_interval(right, size):
    n_units = 30
    truth = np.tile(["a", "b"], n_units * size // 2)
    predicted = truth if right else np.where(truth == "a", "b", "a")
    unit = np.repeat(np.arange(n_units), size)
    estimate = accuracy(truth, predicted, unit % 2, units=unit)
    exact = clopper_pearson(n_units * right, n_units)
    if size > 1:
        # However many rows a unit has, it counts as one.
        ends = (estimate.interval().low, estimate.interval().high)
        assert ends == pytest.approx([float(end) for end in exact])
        assert estimate.interval_kind is IntervalKind.CONFIDENCE
    assert estimate.interval().low < estimate.interval().high
