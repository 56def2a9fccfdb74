"""Errors of predicted numbers: by hand, against SciPy, planted truth and bad input."""

import math

import numpy as np
import pytest
from scipy import stats

from equipoise import metrics as m
from equipoise.core import Aggregate, InputError
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.registry import metrics_of
from equipoise.stats import Bootstrap

NUMBER_METRICS = metrics_of(NumberMetric, "regression")
QUICK = Bootstrap(200, 999)
TRUE = [20.0, 30.0, 40.0, 50.0]
PREDICTED = [21.0, 28.0, 40.0, 56.0]


def people(n=240, *, women=4.0, men=4.0, seed=0):
    """Ages, estimates with a mean distance by gender, and genders."""
    rng = np.random.default_rng(seed)
    gender = np.array(["man", "woman"] * (n // 2))
    age = rng.uniform(18, 80, n)
    spread = np.where(gender == "woman", women, men) * math.sqrt(math.pi / 2)
    return age, age + spread * rng.normal(size=n), gender


@pytest.mark.parametrize(
    ("metric", "options", "value"),
    [
        (m.mean_absolute_error, {}, 2.25),
        (m.mean_error, {}, 1.25),
        (m.share_within_tolerance, {"tolerance": 2.0}, 0.75),
        (m.share_within_tolerance, {"tolerance": 0.0}, 0.25),
    ],
)
def test_values_by_hand(metric, options, value):
    assert metric(TRUE, PREDICTED, **options).value == pytest.approx(value)


def test_the_interval_of_independent_rows_is_students():
    true, predicted, _ = people()
    estimate = m.mean_absolute_error(true, predicted)
    errors = np.abs(predicted - true)
    ends = stats.t.interval(0.9, len(errors) - 1, errors.mean(), stats.sem(errors))
    assert (estimate.interval(0.9).low, estimate.interval(0.9).high) == pytest.approx(ends)


def test_the_interval_of_shares_is_wilsons():
    true, predicted, _ = people()
    estimate = m.share_within_tolerance(true, predicted, tolerance=4.0)
    near = int((np.abs(predicted - true) <= 4.0).sum())
    ends = stats.binomtest(near, len(true)).proportion_ci(method="wilson")
    assert (estimate.interval().low, estimate.interval().high) == pytest.approx(tuple(ends))


def test_repeats_of_units_add_nothing():
    true, predicted, gender = people(120)
    once = m.mean_absolute_error(true, predicted, gender)
    repeated = m.mean_absolute_error(
        np.repeat(true, 5), np.repeat(predicted, 5), np.repeat(gender, 5),
        units=np.repeat(np.arange(120), 5),
    )  # fmt: skip
    assert repeated.interval().low == pytest.approx(once.interval().low)
    assert repeated.interval().high == pytest.approx(once.interval().high)


def test_a_planted_difference_is_the_difference_of_the_means():
    true, predicted, gender = people(400, women=8.0)
    gap = m.mean_absolute_error.difference(true, predicted, gender, resampling=QUICK)
    errors = np.abs(predicted - true)
    means = [errors[gender == name].mean() for name in ("man", "woman")]
    (part,) = gap.parts
    assert gap.aggregate is Aggregate.DIFFERENCE
    assert gap.value == pytest.approx(means[1] - means[0])
    assert [group.value for group in part.by_group] == pytest.approx(means)
    assert gap.interval().low > 0.0
    assert gap.p_value < 0.01


def test_three_groups_are_also_compared_with_all_others():
    true, predicted, _ = people(300)
    groups = np.array(["a", "b", "c"] * 100)
    gap = m.mean_error.difference(true, predicted, groups, resampling=QUICK)
    leaves = [part for part in gap.parts if part.aggregate is Aggregate.AGAINST_REST]
    errors = predicted - true
    for name, part in zip("abc", leaves, strict=True):
        expected = errors[groups == name].mean() - errors[groups != name].mean()
        assert part.value == pytest.approx(expected)
        assert part.low <= part.value <= part.high


@pytest.mark.parametrize("metric", NUMBER_METRICS.values(), ids=[*NUMBER_METRICS])
def test_groups_without_a_difference_are_rarely_told_apart(metric):
    p_values = []
    for seed in range(60):
        true, predicted, gender = people(80, seed=seed)
        options = dict.fromkeys(metric.options, 4.0)
        gap = metric.difference(true, predicted, gender, resampling=QUICK, **options)
        p_values.append(gap.p_value)
    # 9 of 60 or more happen to a valid test once in 500 times.
    assert sum(p <= 0.05 for p in p_values) <= 8


@pytest.mark.parametrize("metric", NUMBER_METRICS.values(), ids=[*NUMBER_METRICS])
def test_the_order_of_rows_changes_nothing(metric):
    true, predicted, gender = people(60)
    order = np.random.default_rng(1).permutation(60)
    estimates = [
        metric(true[rows], predicted[rows], gender[rows]) for rows in (np.arange(60), order)
    ]
    assert repr(estimates[0]) == repr(estimates[1])


def test_a_row_without_a_prediction_is_counted():
    estimate = m.mean_absolute_error(TRUE, [21.0, math.nan, 40.0, 56.0])
    assert estimate.excluded == {"rows without a number": 1}
    assert sum(estimate.n.values()) == 3


def test_one_row_has_no_interval():
    estimate = m.mean_absolute_error([20.0], [21.0])
    assert math.isnan(estimate.interval().low)


def test_the_tolerance_is_about_a_quarter_of_the_standard_deviation():
    ages = np.linspace(0, 100, 101)
    assert m.share_within_tolerance(ages, ages).params == {"tolerance": 10.0}
    assert m.share_within_tolerance(ages / 1000, ages / 1000).params["tolerance"] == 0.01
    assert m.share_within_tolerance([1.0, 1.0], [1.0, 1.0]).value == 1.0


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (([1.0, 2.0], [1.0]), {}),
        (([[1.0]], [[1.0]]), {}),
        (([1.0], [math.inf]), {}),
        (([1.0], [1.0]), {"tolerance": 1.0}),
        (([1.0, 2.0], [1.0, 2.0], ["a"]), {}),
    ],
)
def test_bad_input_is_refused(arguments, options):
    with pytest.raises(InputError):
        m.mean_absolute_error(*arguments, **options)


def test_a_number_as_far_as_the_tolerance_is_within():
    true = np.arange(1, 401) / 10
    assert m.share_within_tolerance(true, true + 0.3, tolerance=0.3).value == 1.0


def test_a_negative_tolerance_is_refused():
    with pytest.raises(InputError):
        m.share_within_tolerance(TRUE, PREDICTED, tolerance=-1.0)


def test_intervals_of_few_units_end_where_shares_do():
    groups, scenes = np.tile(["a", "b", "c"], 90), np.repeat([0, 1, 2], 90)
    shares = np.where(groups == "a", 1.0 - 0.2 * scenes, 0.1 * scenes)
    for gap in (
        m.paired_outcome_gap(shares, groups, scenes, resampling=QUICK),
        m.unsound_rate.difference(shares, groups, units=scenes, resampling=QUICK),
    ):
        leaves = [part for part in gap.parts if part.aggregate is Aggregate.AGAINST_REST]
        assert (gap.interval().low, gap.interval().high) == (0.0, 1.0)
        assert max(part.high for part in leaves) == 1.0
