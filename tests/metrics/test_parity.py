"""Demographic parity and equalized odds: golden values, fairlearn, invariances, chance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fairlearn.metrics import demographic_parity_difference, equalized_odds_difference
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.counts import count
from equipoise.metrics.measure import measure
from equipoise.metrics.odds import EqualizedOdds, equalized_odds
from equipoise.metrics.parity import DemographicParity, demographic_parity
from equipoise.stats.resampling import Bootstrap, Exact, Permutation
from prediction_rows import EXAMPLE, Rows, column, random_rows, rows, rows_of

# From the same rows by an independent implementation (tests/prediction_rows.py).
PARITY = [0.1975346111642892, 0.05514439801087945, 0.14239021315340972]
ODDS_MAX = [0.634313725490196, 0.12149234693877553, 0.29340989882417284]
ODDS_MEAN = [0.339693953971547, 0.07844553135314826, 0.1796009555861169]

FEW = Bootstrap(replicates=100, permutations=200)


def parity_of(rows: Rows, **options: Any) -> Estimate:
    return demographic_parity(rows[1], rows[2], **options)


def odds_of(rows: Rows, **options: Any) -> Estimate:
    return equalized_odds(*rows, **options)


BOTH = pytest.mark.parametrize("metric", [parity_of, odds_of])


def values(estimate: Estimate) -> np.ndarray[Any, Any]:
    assert estimate.by is not None
    return column(estimate.by, "value")


def numbers(estimate: Estimate) -> list[str]:
    """Everything of an estimate that must not depend on the order of rows; as text, for NaN."""
    chance, interval = estimate.chance, estimate.interval()
    found = [estimate.value, interval.low, interval.high, estimate.p_value]
    return [repr(one) for one in (*found, chance)]


def test_golden_values() -> None:
    example = rows_of(EXAMPLE)
    parity = parity_of(example)
    assert values(parity) == pytest.approx(PARITY, rel=0, abs=1e-12)
    assert parity.value == max(values(parity))
    for aggregate, expected in (("max", ODDS_MAX), ("mean", ODDS_MEAN)):
        odds = odds_of(example, aggregate=aggregate)
        assert values(odds) == pytest.approx(expected, rel=0, abs=1e-12)
        assert odds.value == max(values(odds))


def test_mean_reproduces_table_1_of_the_skewsize_paper() -> None:
    # A class that takes the removed class's images has a demographic parity of 0.050 and equalized
    # odds of 0.038 in print: with three balanced classes the mean of (0.050 / (2/3)) and 0.
    n = 12_000
    counts = np.zeros((3, 3, 2), dtype=int)
    counts[0, 0] = counts[1, 1] = counts[2, 2] = n
    counts[0, 1, 1] = round(0.15 * n)
    counts[0, 0, 1] -= counts[0, 1, 1]
    example = rows_of(counts)
    assert values(parity_of(example, resampling=None))[1] == pytest.approx(0.050)
    assert values(odds_of(example, aggregate="mean", resampling=None))[1] == pytest.approx(0.0375)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_fairlearn_on_two_classes(seed: int) -> None:
    y_true, y_pred, group = random_rows(seed, classes=2)
    given = {"sensitive_features": group}
    parity = parity_of((y_true, y_pred, group), resampling=None)
    assert parity.value == pytest.approx(
        demographic_parity_difference(y_true, y_pred, **given), abs=1e-12
    )
    for ours, theirs in (("max", "worst_case"), ("mean", "mean")):
        odds = odds_of((y_true, y_pred, group), aggregate=ours, resampling=None)
        expected = equalized_odds_difference(y_true, y_pred, agg=theirs, **given)
        assert values(odds) == pytest.approx([expected, expected], abs=1e-12)


def test_unlike_fairlearn_a_group_without_positives_is_left_out_and_said() -> None:
    y_true = np.array([1, 1, 0, 0, 1, 1, 0, 0, 0, 0])
    y_pred = np.array([1, 0, 0, 1, 1, 0, 0, 1, 1, 0])
    group = np.array(list("aaaabbbbcc"))
    # fairlearn takes c's true positive rate, 0/0, for 0.
    assert equalized_odds_difference(y_true, y_pred, sensitive_features=group) == 0.5
    found = odds_of((y_true, y_pred, group), resampling=None)
    assert values(found).tolist() == [0.0, 0.0]
    assert found.by is not None
    assert [part["excluded"] for part in found.by.to_pylist()] == [
        [{"reason": "groups without rows of other classes", "count": 1}],
        [{"reason": "groups without rows of the class", "count": 1}],
    ]


def test_missing_groups_predictions_and_truths_are_counted() -> None:
    y_true = [0, 1, 0, 1, None, 1]
    y_pred = [0, 1, 1, None, 1, 1]
    group = ["a", "b", "a", "b", "a", None]
    odds = odds_of((y_true, y_pred, group), resampling=None)  # type: ignore[arg-type]
    assert odds.excluded == {
        "missing true class": 1,
        "missing prediction": 1,
        "missing group": 1,
    }
    parity = demographic_parity(y_pred, group, resampling=None)
    assert parity.excluded == {"missing prediction": 1, "missing group": 1}


def test_attribute_that_determines_the_class_has_no_odds() -> None:
    y_true = np.repeat([0, 1], 20)
    found = odds_of((y_true, np.roll(y_true, 3), y_true), resampling=FEW)
    assert np.isnan(found.value)
    assert found.p_value is None
    assert found.chance is None
    assert found.reason == (
        "fewer than two groups have rows of the class and rows of other classes"
    )
    assert found.by is not None
    assert set(column(found.by, "reason")) == {
        "fewer than two groups have rows of the class; "
        "fewer than two groups have rows of other classes"
    }


def test_groups_under_the_minimum_size_are_reported_but_not_compared() -> None:
    y_pred = np.array([0] * 50 + [1] * 50 + [1] * 3)
    group = np.array(["a", "b"] * 50 + ["tiny"] * 3)
    found = demographic_parity(y_pred, Groups.of(group, min_size=30), resampling=FEW)
    assert found.value == 0.0
    assert found.n == {"a": 50, "b": 50, "tiny": 3}
    assert found.excluded == {"groups under 30 rows": 1}
    assert found.by is not None
    tiny = found.by.to_pylist()[0]["by_group"][2]
    assert (tiny["n"], tiny["value"], tiny["note"]) == (3, 0.0, "fewer than 30 rows")


@pytest.mark.parametrize("clustered", [False, True])
def test_cells_under_the_minimum_size_take_no_part_in_odds(clustered: bool) -> None:
    # True class × predicted × group; group 2 has 5 rows of class 0, all of them right.
    counts = np.array([[[30, 24, 5], [30, 36, 0]], [[20, 20, 20], [80, 80, 80]]])
    y_true, y_pred, group = rows_of(counts)
    units = np.arange(len(group)) if clustered else None
    sized = Groups.of(group, min_size=30)
    found = equalized_odds(y_true, y_pred, sized, units=units, resampling=FEW)
    kept = group < 2
    two = equalized_odds(y_true[kept], y_pred[kept], group[kept], resampling=FEW)
    assert found.value == two.value == pytest.approx(0.1)
    assert found.chance is not None
    assert found.chance.high < 0.5
    assert found.interval().high < 0.5
    assert found.by is not None
    first = found.by.to_pylist()[0]
    assert first["high"] < 0.5
    small = first["by_group"][2]
    assert (small["n"], small["value"], small["note"]) == (5, 1.0, "fewer than 30 rows")
    assert [one["note"] for one in first["by_group"][:2]] == ["", ""]
    reasons = [(one["reason"], one["count"]) for one in first["excluded"]]
    assert reasons == [("groups with fewer than 30 rows of the class", 1)]


@BOTH
def test_one_group_only_is_not_estimable(metric: Callable[..., Estimate]) -> None:
    found = metric((np.array([0, 1, 1]), np.array([0, 1, 0]), np.array(["a"] * 3)), resampling=FEW)
    assert np.isnan(found.value)
    assert found.reason.startswith("fewer than two groups have rows")
    assert np.isnan([found.interval().low, found.interval().high]).all()


@BOTH
def test_planted_gap_is_found_and_nothing_else(metric: Callable[..., Estimate]) -> None:
    counts = np.full((4, 4, 2), 2)
    counts[np.arange(4), np.arange(4)] = 200
    counts[0, 0, 1], counts[0, 1, 1] = 100, 102
    found = metric(rows_of(counts))
    assert found.by is not None
    # The 100 rows that group 1 loses in class 0 appear in class 1; 2 and 3 are untouched.
    assert (column(found.by, "p_value") < 0.01).tolist() == [True, True, False, False]
    assert (column(found.by, "low") > 0).tolist() == [True, True, False, False]
    assert found.p_value is not None
    assert found.p_value < 0.01
    assert found.interval().low > 0
    assert found.excess > 0.05


@BOTH
def test_p_values_without_a_disparity_are_not_small_too_often(
    metric: Callable[..., Estimate],
) -> None:
    few = Permutation(replicates=99)
    p = [
        metric(random_rows(1000 + seed, n=150), resampling=few, rng=seed).p_value or 0.0
        for seed in range(150)
    ]
    # Binomial(150, 0.1) exceeds 26 with probability 0.001.
    assert (np.array(p) <= 0.1).sum() <= 26


@BOTH
def test_exact_and_sampled_chance_agree(metric: Callable[..., Estimate]) -> None:
    few = rows_of(np.array([[[5, 2], [1, 4]], [[2, 1], [4, 3]]]))
    exact = metric(few, resampling=Exact())
    sampled = metric(few, resampling=Permutation(replicates=20_000))
    assert exact.chance is not None
    assert sampled.chance is not None
    assert sampled.p_value == pytest.approx(exact.p_value, abs=0.015)
    assert sampled.chance.mean == pytest.approx(exact.chance.mean, abs=0.01)


@BOTH
def test_composite_interval_contains_that_of_the_largest_class(
    metric: Callable[..., Estimate],
) -> None:
    found = metric(rows_of(EXAMPLE))
    assert found.by is not None
    low, high = found.interval().low, found.interval().high
    assert 0 < low < max(column(found.by, "low"))
    assert high == max(column(found.by, "high"))
    assert found.interval(0.5).low > low


@BOTH
@given(example=rows(), seed=st.integers(0, 3))
@settings(max_examples=20)
def test_permuted_rows_and_renamed_groups_give_the_same_numbers(
    metric: Callable[..., Estimate], example: Rows, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(example[0]))
    y_true, y_pred, group = (one[order] for one in example)
    renamed = np.array(["z", "y", "x"])[group]
    expected = numbers(metric(example, resampling=FEW))
    assert numbers(metric((y_true, y_pred, group), resampling=FEW)) == expected
    # Groups with equal counts may change places in the draws: value and interval stay.
    assert numbers(metric((y_true, y_pred, renamed), resampling=FEW))[:3] == expected[:3]


def test_renamed_groups_give_the_same_draws() -> None:
    y_true, y_pred, group = rows_of(EXAMPLE)
    renamed = np.array(["z", "y", "x"])[group]
    for metric in (parity_of, odds_of):
        found = numbers(metric((y_true, y_pred, renamed)))
        assert found == numbers(metric((y_true, y_pred, group)))


@given(example=rows(), cut=st.integers(0, 20))
@settings(max_examples=30)
def test_tables_of_shards_add_up(example: Rows, cut: int) -> None:
    whole = count(*example)
    for measured in (DemographicParity(), EqualizedOdds("max"), EqualizedOdds("mean")):
        expected = measured(whole, whole.table[None])
        shards = np.zeros_like(whole.table)
        for part in (slice(None, cut), slice(cut, None)):
            np.add.at(
                shards,
                (_outcome(whole, *(one[part] for one in example[:2])), example[2][part]),
                1.0,
            )
        np.testing.assert_array_equal(measured(whole, shards[None]), expected)


def _outcome(counts: Any, y_true: Any, y_pred: Any) -> np.ndarray[Any, Any]:
    place = {
        pair: index for index, pair in enumerate(zip(counts.truth, counts.prediction, strict=True))
    }
    codes = {name: index for index, name in enumerate(counts.classes)}
    pairs = zip(y_true.astype(str), y_pred.astype(str), strict=True)
    return np.array([place[codes[t], codes[p]] for t, p in pairs], dtype=int)


@BOTH
def test_units_widen_the_interval_of_repeated_rows(metric: Callable[..., Estimate]) -> None:
    example = rows_of(EXAMPLE)
    copies = tuple(np.repeat(one, 5) for one in example)
    units = np.repeat(np.arange(len(example[0])), 5)
    alone = metric(copies, resampling=FEW).interval()
    found = metric(copies, units=units, resampling=FEW)
    clustered = found.interval()
    assert found.method == "percentile bootstrap over units, 100 replicates"
    assert clustered.high - clustered.low > 1.4 * (alone.high - alone.low)
    assert found.by is not None
    group = found.by.to_pylist()[0]["by_group"][0]
    assert group["low"] < group["value"] < group["high"]


def test_units_without_bootstrap_have_no_interval() -> None:
    y_true, y_pred, group = rows_of(EXAMPLE)
    units = np.arange(len(group)) // 2
    found = equalized_odds(y_true, y_pred, group, units=units, resampling=Permutation(50))
    assert np.isnan(found.interval().low)
    assert found.method == "none: rows are not independent; use Bootstrap()"
    assert found.p_value is not None


def test_all_measures_share_one_set_of_draws() -> None:
    counts = count(*rows_of(EXAMPLE))
    together = measure(counts, [DemographicParity(), EqualizedOdds("mean")], FEW, 3)
    alone = measure(counts, [EqualizedOdds("mean")], FEW, 3)[0]
    assert numbers(together[1]) == numbers(alone)
    assert together[1].by == alone.by


def test_value_alone_without_resampling_and_parts_only_on_request() -> None:
    found = parity_of(rows_of(EXAMPLE), per_class=False, resampling=None)
    assert found.value == pytest.approx(PARITY[0], abs=1e-12)
    assert (found.by, found.chance, found.p_value) == (None, None, None)


def test_odds_show_the_rates_of_the_condition_that_decides() -> None:
    found = odds_of(rows_of(EXAMPLE), resampling=None)
    assert found.by is not None
    parts = found.by.to_pylist()
    assert [part["shows"] for part in parts] == [
        "true_positive_rate",
        "true_positive_rate",
        "false_positive_rate",
    ]
    rates = [one["value"] for one in parts[2]["by_group"]]
    assert max(rates) - min(rates) == pytest.approx(ODDS_MAX[2], abs=1e-12)


def test_soft_predictions_need_no_whole_counts() -> None:
    y_true, y_pred, group = random_rows(0, n=60)
    sure = np.eye(3)[y_pred]
    hard = equalized_odds(y_true, y_pred, group, resampling=None)
    soft = equalized_odds(y_true, sure, group, resampling=None)
    assert values(soft) == pytest.approx(values(hard), abs=1e-12)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^y_pred: shape \(2, 2\); expected one label per row, "):
        demographic_parity([[0, 1], [1, 0]], [0, 1])
    with pytest.raises(InputError, match=r"^groups: 1 rows; expected 2, as in y_true$"):
        demographic_parity([0, 1], ["a"])
    with pytest.raises(InputError, match=r"^aggregate='median': expected 'max' or 'mean'$"):
        equalized_odds([0, 1], [0, 1], [0, 1], aggregate="median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^no row has a true class, a prediction and a group; "):
        demographic_parity([None, None], ["a", "b"])
