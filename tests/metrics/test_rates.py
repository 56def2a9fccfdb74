"""Confusion rates, their gaps and comparisons: scikit-learn, closed forms, bootstrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from equipoise import metrics
from equipoise.core import Aggregate, Groups, InputError
from equipoise.metrics import count, measure, rate_comparisons, rates
from equipoise.metrics.labels.rates import Rates
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import scored
from prediction_rows import EXAMPLE, column, part, random_rows, rows_of

RATES = (
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
    "precision",
    "negative_predictive_value",
    "selection_rate",
    "accuracy",
)
FEW = Bootstrap(replicates=100, permutations=200)


def one_vs_all(y_true, y_pred, label, prevalence):
    """Rates from scikit-learn's confusion matrix, predictive ones at a prevalence."""
    (tn, fp), (fn, tp) = confusion_matrix(y_true == label, y_pred == label, labels=[False, True])
    n = tn + fp + fn + tp
    tpr, fpr = tp / (tp + fn), fp / (fp + tn)
    caught, let_go = prevalence * tpr, (1 - prevalence) * (1 - fpr)
    return {
        "true_positive_rate": tp / (tp + fn),
        "false_positive_rate": fp / (fp + tn),
        "true_negative_rate": tn / (fp + tn),
        "false_negative_rate": fn / (tp + fn),
        "precision": caught / (caught + (1 - prevalence) * fpr),
        "negative_predictive_value": let_go / (let_go + prevalence * (1 - tpr)),
        "selection_rate": (tp + fp) / n,
        "accuracy": (tp + tn) / n,
    }


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_scikit_learn_in_every_class_and_group(seed):
    y_true, y_pred, group = random_rows(seed)
    estimate = rates(y_true, y_pred, group, resampling=None)
    for label in range(3):
        expected = [
            one_vs_all(
                y_true[group == code], y_pred[group == code], label, (y_true == label).mean()
            )
            for code in range(4)
        ]
        for name in RATES:
            ours = part(estimate.by, name, str(label))
            theirs = [row[name] for row in expected]
            assert [group["value"] for group in ours["by_group"]] == pytest.approx(
                theirs, abs=1e-12
            )
            assert ours["value"] == pytest.approx(max(theirs) - min(theirs), abs=1e-12)
        odds = [(row["true_positive_rate"] + row["false_positive_rate"]) / 2 for row in expected]
        ours = part(estimate.by, "average_odds", str(label))
        assert [group["value"] for group in ours["by_group"]] == pytest.approx(odds, abs=1e-12)
        assert ours["value"] == pytest.approx(max(odds) - min(odds), abs=1e-12)
    for null in ("class", "rows"):
        (estimate,) = measure(count(y_true, y_pred, group), [Rates(null)], None, 0)
        largest = max(row["value"] for row in estimate.by.to_pylist())
        assert estimate.value == pytest.approx(largest, abs=1e-12)


def test_a_rate_without_positives_is_nan_with_a_note():
    y_true, y_pred = np.array([1, 0, 1, 0, 0, 0]), np.array([1, 0, 0, 1, 1, 0])
    group = Groups.of([*"aabbcc"], min_size=1)
    tpr = part(rates(y_true, y_pred, group, resampling=None).by, "true_positive_rate", "1")
    ours = tpr["by_group"][2]
    assert np.isnan([ours["value"], ours["low"], ours["high"]]).all()
    assert (ours["n"], ours["note"]) == (0, "no rows of the class")
    assert tpr["value"] == 1.0
    assert tpr["excluded"] == [{"reason": "groups without rows of the class", "count": 1}]


def test_value_is_the_largest_gap_with_its_interval():
    estimate = rates(*rows_of(EXAMPLE))
    assert estimate.value == pytest.approx(max(column(estimate.by, "value")), abs=1e-12)
    interval = estimate.interval()
    assert 0 < interval.low < estimate.value < interval.high
    assert interval.high == pytest.approx(max(column(estimate.by, "high")), abs=1e-12)


def test_within_class_null_is_blind_to_base_rates():
    # Both groups have the same rates given the truth, but other shares of the classes.
    counts = np.array([[[180, 60], [20, 7]], [[6, 18], [54, 162]]])
    table = rates(*rows_of(counts)).by
    assert part(table, "true_positive_rate", "0")["p_value"] > 0.2
    assert part(table, "average_odds", "0")["p_value"] > 0.2
    assert part(table, "selection_rate", "0")["p_value"] < 0.01
    assert part(table, "precision", "0")["p_value"] > 0.2
    assert part(table, "negative_predictive_value", "0")["p_value"] > 0.2


def test_cells_under_the_minimum_size_take_no_part_in_gaps():
    # Group 2 has 5 rows of class 0, all right: its other rates have rows enough.
    counts = np.array([[[30, 24, 5], [30, 36, 0]], [[20, 20, 30], [80, 80, 70]]])
    y_true, y_pred, group = rows_of(counts)
    table = rates(y_true, y_pred, Groups.of(group, min_size=30), resampling=FEW).by
    large = group < 2
    two = rates(y_true[large], y_pred[large], group[large], resampling=FEW).by
    for metric in ("true_positive_rate", "average_odds"):
        ours, theirs = part(table, metric, "0"), part(two, metric, "0")
        for name in ("value", "n"):
            assert ours[name] == theirs[name]
        assert ours["high"] == pytest.approx(theirs["high"], abs=1e-12)
        assert ours["by_group"][2]["note"] == "fewer than 30 rows"
        assert ours["excluded"][0]["count"] == 1
    assert part(table, "true_positive_rate", "0")["by_group"][2]["value"] == 1.0
    assert part(table, "false_positive_rate", "0")["value"] == pytest.approx(0.1)


def test_average_odds_interval_agrees_with_the_bootstrap():
    counts = 4 * EXAMPLE
    closed = part(rates(*rows_of(counts)).by, "average_odds", "0")
    flat = counts.ravel() / counts.sum()
    replicates = np.random.default_rng(0).multinomial(counts.sum(), flat, 2000)
    replicates = replicates.reshape(-1, *counts.shape)
    group_counts, rest_counts = replicates[:, 0], replicates[:, 1:].sum(axis=1)
    odds = (
        group_counts[:, 0] / group_counts.sum(axis=1) + rest_counts[:, 0] / rest_counts.sum(axis=1)
    ) / 2
    for ours, theirs in zip(closed["by_group"], odds.T, strict=True):
        expected = np.quantile(theirs, [0.025, 0.975])
        assert [ours["low"], ours["high"]] == pytest.approx(expected, abs=0.01)
    low, high = np.quantile(np.ptp(odds, axis=1), [0.025, 0.975])
    # The low end pays for three pairs of groups, the percentile interval does not.
    assert low - 0.05 < closed["low"] < low
    assert closed["high"] == pytest.approx(high, abs=0.02)


def comparison(table, metric, group, versus):
    (row,) = [
        candidate
        for candidate in table.to_pylist()
        if (candidate["metric"], candidate["subject"], candidate["group"], candidate["versus"])
        == (metric, "0", group, versus)
    ]
    return row


def test_comparisons_with_a_reference_group_are_newcombe_intervals():
    table = rate_comparisons(*rows_of(EXAMPLE), reference="2")
    row = comparison(table, "true_positive_rate", "1", "reference")
    assert (row["versus_group"], row["n"]) == ("2", 60)
    assert row["difference"] == pytest.approx(14 / 60 - 59 / 68, abs=1e-12)
    assert row["ratio"] == pytest.approx((14 / 60) / (59 / 68), abs=1e-12)
    difference = scored(14, 60).minus(scored(59, 68))
    assert [row["low"], row["high"]] == pytest.approx(
        [float(difference.low), float(difference.high)], abs=1e-12
    )
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"] < 1


def test_best_and_worst_follow_the_harm_of_the_rate():
    table = rate_comparisons(*rows_of(EXAMPLE))
    assert comparison(table, "true_positive_rate", "1", "best")["versus_group"] == "2"
    assert comparison(table, "false_negative_rate", "1", "best")["versus_group"] == "2"
    assert comparison(table, "false_positive_rate", "0", "worst")["versus_group"] == "1"
    # A group is not compared with itself.
    assert table.num_rows == 9 * 3 * (2 + 2 + 3)
    assert set(column(table, "versus")) == {"best", "worst", "overall"}


def test_best_is_chosen_by_the_data_and_pays_for_all_pairs():
    table = rate_comparisons(*rows_of(EXAMPLE), reference="2")
    chosen = comparison(table, "true_positive_rate", "1", "best")
    reference_row = comparison(table, "true_positive_rate", "1", "reference")
    assert chosen["difference"] == reference_row["difference"]
    assert chosen["low"] < reference_row["low"] < reference_row["high"] < chosen["high"]


def test_comparison_with_all_rows_has_no_interval_of_its_own():
    row = comparison(rate_comparisons(*rows_of(EXAMPLE)), "true_positive_rate", "1", "overall")
    assert row["difference"] == pytest.approx(14 / 60 - 122 / 185, abs=1e-12)
    assert row["ratio"] == pytest.approx((14 / 60) / (122 / 185), abs=1e-12)
    assert np.isnan([row[name] for name in ("low", "high", "ratio_low", "ratio_high")]).all()
    alone = rate_comparisons([0, 1] * 40, [0, 1] * 40, ["a"] * 80)
    assert {*alone["versus"].to_pylist()} == {"overall"}


def test_ratio_to_a_rate_of_zero_is_nan():
    counts = np.array([[[0, 5], [10, 5]], [[0, 0], [8, 8]]])
    table = rate_comparisons(*rows_of(counts), reference="0")
    row = comparison(table, "true_positive_rate", "1", "reference")
    assert row["difference"] == 0.5
    assert np.isnan([row["ratio"], row["ratio_low"], row["ratio_high"]]).all()
    odds = comparison(table, "average_odds", "1", "reference")
    assert (odds["difference"], np.isnan(odds["ratio"])) == (0.25, True)
    precision = comparison(table, "precision", "1", "reference")
    assert np.isnan(precision["difference"])
    with pytest.raises(InputError, match=r"^reference='d': unknown group"):
        rate_comparisons(*rows_of(counts), reference="d")


@given(
    a=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    b=st.tuples(st.integers(0, 30), st.integers(1, 30)),
)
def test_ratio_interval_contains_the_ratio_and_mirrors(a, b):
    first_values, second_values = (
        scored(np.array([hits]), np.array([hits + misses + 1]), 0.95) for hits, misses in (a, b)
    )
    forth, back = first_values.over(second_values), second_values.over(first_values)
    assert np.isnan(forth.value[0]) == (b[0] == 0)
    assert 0 <= forth.low[0] < forth.high[0]
    assert np.isinf(forth.high[0]) == (b[0] == 0)
    if a[0] and b[0]:
        assert forth.low[0] < forth.value[0] < forth.high[0]
        mirrored = [1 / back.high[0], 1 / back.low[0]]
        assert [forth.low[0], forth.high[0]] == pytest.approx(mirrored, rel=1e-9)


@pytest.mark.parametrize(("recall", "runs"), [((0.8, 0.8), 300), ((0.9, 0.6), 300)])
def test_precision_at_equal_prevalence_has_a_valid_test_and_interval(recall, runs):
    rng = np.random.default_rng(3)
    # Groups of 300 rows, of which 60 and 180 are of the class; false positive rate 0.2.
    group = np.repeat([0, 1], 300)
    truth = np.concatenate([np.arange(300) < 60, np.arange(300) < 180])
    chance = np.where(truth, np.array(recall)[group], 0.2)
    odds = 0.6 / 0.4
    true = np.ptp([rate / (rate + odds * 0.2) for rate in recall])
    small, covered = 0, 0
    for run in range(runs):
        predicted = rng.random(600) < chance
        precision = part(
            rates(truth, predicted, group, resampling=Bootstrap(1, 99), rng=run).by,
            "precision",
            "True",
        )
        small += precision["p_value"] <= 0.05
        covered += precision["low"] <= true <= precision["high"]
    assert covered >= 0.93 * runs
    if not true:
        assert small <= 0.08 * runs


@pytest.mark.parametrize("positive", ["", "x"])
@pytest.mark.parametrize("name", sorted({*RATES} - {"selection_rate"}))
def test_a_difference_is_a_gap_whatever_it_is_of(name, positive):
    """One group's predictions are half at random: of a class and of all, that is beyond chance."""
    rng = np.random.default_rng(0)
    group, true = np.repeat(["a", "b"], 300), rng.choice(["x", "y", "z"], 600)
    random = (group == "b") & (rng.random(600) < 0.5)
    predicted = np.where(random, rng.choice(["x", "y", "z"], 600), true)
    gap = getattr(metrics, name).difference(true, predicted, group, positive=positive)
    assert (gap.aggregate, gap.harm) == (Aggregate.DIFFERENCE, "higher")
    assert gap.p_value < 0.01 < gap.value
    even = getattr(metrics, name).difference(true, true, group, positive=positive)
    assert (even.value, even.p_value) == (0.0, 1.0)
