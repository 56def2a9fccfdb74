"""Effect sizes per class and SkewSize: goldens, the paper's listing, scipy, chance, intervals."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, skew

from equipoise.core import Groups, InputError
from equipoise.metrics import count, effect_sizes, mev_sweep, skewsize
from equipoise.metrics.labels.effect_sizes import MeanEffect, skewness
from equipoise.metrics.spec import band_of
from equipoise.stats import Association, Bootstrap

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "skewsize.json").read_text())


def golden_rows():
    rows = [
        (name, label, group)
        for name, table in GOLDEN["tables"].items()
        for group, counts in zip(GOLDEN["groups"], table, strict=True)
        for label, times in zip(GOLDEN["labels"], counts, strict=True)
        for _ in range(times)
    ]
    truth, predicted, groups = zip(*rows, strict=True)
    return np.array(truth), np.array(predicted), np.array(groups)


def random_rows(seed, n=1200, classes=4, groups=3):
    rng = np.random.default_rng(seed)
    truth, group = rng.integers(0, classes, n), rng.integers(0, groups, n)
    shift = rng.integers(0, classes, n) * (rng.random(n) < 0.2 + 0.15 * group)
    return truth, (truth + shift) % classes, group


def part_values(estimate):
    rows = estimate.by.select(["subject", "value"]).to_pylist()
    return {row["subject"]: row["value"] for row in rows}


def assert_close(estimate, expected, tolerance):
    assert estimate.keys() == expected.keys()
    for name, value in expected.items():
        number = np.nan if value is None else value
        assert estimate[name] == pytest.approx(number, abs=tolerance, nan_ok=True), name


@pytest.mark.parametrize("min_expected", [0, 5])
def test_golden_values(min_expected):
    expected = GOLDEN["expected"][f"mev{min_expected}"]
    options = {"min_expected": min_expected, "resampling": None}
    shape = skewsize(*golden_rows(), **options)
    assert shape.value == pytest.approx(expected["skewsize"], abs=1e-12)
    estimate = effect_sizes(*golden_rows(), **options)
    assert_close(part_values(estimate), expected["effect_size"], 1e-12)
    assert estimate.params["classes"] == shape.params["classes"] == expected["n_classes"]
    for row in estimate.by.to_pylist():
        dropped = expected["dropped"][row["subject"]]
        counted = [row_excluded["count"] for row_excluded in row["excluded"]]
        assert counted == ([dropped["columns"], dropped["rows"]] if dropped["columns"] else [])


@pytest.mark.parametrize("statistic", ["cramers_v", "phi", "tschuprows_t", "cramers_v_corrected"])
def test_every_class_is_a_table_of_its_own(statistic):
    rows = random_rows(1)
    estimate = effect_sizes(*rows, statistic=statistic, min_expected=0, resampling=None)
    for name, value in part_values(estimate).items():
        of_class = rows[0] == int(name)
        table = pd.crosstab(rows[2][of_class], rows[1][of_class]).to_numpy()
        chi2 = chi2_contingency(table, correction=False).statistic
        squared, (r, c) = chi2 / table.sum(), np.array(table.shape) - 1.0
        less = table.sum() - 1.0
        corrected = max(squared - r * c / less, 0) / min(r - r**2 / less, c - c**2 / less)
        expected = {
            "cramers_v": squared / min(r, c),
            "phi": squared,
            "tschuprows_t": squared / np.sqrt(r * c),
            "cramers_v_corrected": corrected,
        }
        assert value == pytest.approx(np.sqrt(expected[statistic]), abs=1e-7)


def test_value_is_the_mean_over_estimable_classes():
    estimate = effect_sizes(*golden_rows(), resampling=None)
    assert estimate.value == pytest.approx(np.nanmean([*part_values(estimate).values()]))
    assert estimate.excluded == {
        "labels, smallest expected count below 5": 54,
        "rows with a label in too few rows, smallest expected count below 5": 510,
        "classes not estimable": 3,
    }


def test_sufficiency_exchanges_truth_and_prediction():
    truth, predicted, group = random_rows(2)
    estimate = effect_sizes(truth, predicted, group, formulation="sufficiency", resampling=None)
    assert_close(part_values(estimate), part_values(effect_sizes(predicted, truth, group)), 1e-12)
    null = effect_sizes(truth, predicted, group, formulation="sufficiency").null_drawn
    assert null.startswith("groups are exchangeable within each predicted label")


def test_the_filter_keeps_an_expected_count_at_the_minimum():
    truth, group = np.zeros(40), Groups.of(np.repeat([0, 1], 20), min_size=1)
    predicted = np.concatenate([np.arange(20) < 3, np.arange(20) < 7])
    assert effect_sizes(truth, predicted, group, min_expected=5, resampling=None).value > 0
    estimate = effect_sizes(truth, predicted, group, min_expected=5.01, resampling=None)
    assert np.isnan(estimate.value)


@pytest.mark.parametrize(
    ("predicted", "group", "reason"),
    [
        (["a"] * 40, ["x", "y"] * 20, "every row has the same predicted label"),
        (["a", "b"] * 20, ["x"] * 40, "rows of one group only"),
        (
            ["a"] * 39 + ["b"],
            ["x", "y"] * 20,
            "fewer than two predicted labels have expected counts of 5 or more",
        ),
    ],
)
def test_not_estimable_says_why(predicted, group, reason):
    estimate = effect_sizes(["a"] * 40, predicted, Groups.of(group, min_size=1))
    part = estimate.by.to_pylist()[0]
    assert (part["reason"], estimate.reason) == (reason, "no class can be estimated; see the parts")
    assert np.isnan([estimate.value, part["value"], part["low"], part["p_value"]]).all()
    assert (estimate.chance, estimate.p_value, estimate.excluded["classes not estimable"]) == (
        None,
        None,
        1,
    )


def test_parts_show_each_groups_wrong_predictions():
    truth, predicted, group = random_rows(9)
    estimate = effect_sizes(truth, predicted, group)
    for part in estimate.by.to_pylist():
        of_class = truth == int(part["subject"])
        assert part["n"] == of_class.sum()
        for group_value in part["by_group"]:
            mine = of_class & (group == int(group_value["group"]))
            assert group_value["n"] == mine.sum()
            assert group_value["value"] == pytest.approx((predicted != truth)[mine].mean())
            assert group_value["low"] <= group_value["value"] <= group_value["high"]


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.6])
def test_interval_of_the_mean_covers(strength):
    """200 worlds of 12 classes; the mean itself is far above the truth near 0."""
    shares = (1 - strength) * np.full(4, 0.25) + strength * np.eye(4)[:3]
    joint = shares / 3
    expected = np.outer(joint.sum(1), joint.sum(0))
    truth = np.sqrt(((joint - expected) ** 2 / expected).sum() / 2)
    counts = np.random.default_rng(12).multinomial(150, joint.ravel(), size=(200, 12))
    tables = counts.reshape(200, 12, 3, 4)
    low, high = np.transpose([MeanEffect(Association.of(table))(0.95) for table in tables])
    summary = Association.of(tables)
    assert ((low <= truth) & (truth <= high)).mean() >= 0.92
    assert (np.sqrt(summary.chi2 / summary.n / 2).mean(axis=1) > truth).mean() >= 0.65


def test_parts_have_the_interval_of_their_filtered_table():
    truth, predicted, group = random_rows(21)
    predicted[:2] = 77
    estimate = effect_sizes(truth, predicted, group)
    for part in estimate.by.to_pylist():
        of_class = (truth == int(part["subject"])) & (predicted != 77)
        low, high = Association.of(pd.crosstab(group[of_class], predicted[of_class])).interval()
        assert (part["low"], part["high"]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("name", "value"), [("min_expected", -1), ("statistic", "gamma"), ("formulation", "parity")]
)
def test_bad_parameters(name, value):
    with pytest.raises(InputError, match=f"^{name}={value!r}: expected"):
        effect_sizes(*random_rows(0), **{name: value})


def test_bands_begin_where_they_say():
    values = [0.0, 0.0999, 0.1, 0.3, 0.49, 0.5, 1.2, np.nan]
    bands = ["negligible", "negligible", "small", "medium", "medium", "large", "large", ""]
    assert [band_of(value) for value in values] == bands


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=30).filter(lambda v: len({*v}) > 1))
def test_scipy_agrees(thousandths):
    values = np.array(thousandths) / 1000
    with_missing = np.array([[np.nan, *values, np.nan]])
    assert skewness(with_missing)[0] == pytest.approx(skew(values), abs=1e-9)


@pytest.mark.parametrize("values", [[0.1, 0.4], [0.3, 0.3, 0.3], [np.nan] * 4, [0.0] * 5, []])
def test_not_estimable(values):
    assert np.isnan(skewness(np.array([values]))[0])


def test_without_a_number_there_is_no_interval():
    """Of three classes one is too rare to be estimated, and not in every replicate."""
    # Of "c" three are taken for "a": 1.5 are expected in each group, of the 2 that are asked for.
    truth = np.repeat(["a", "b", "c"], [60, 60, 16])
    pred = np.concatenate([np.tile(["a", "a", "b"], 40), np.repeat(["a", "c"], [3, 13])])
    groups = np.tile(["x", "y"], 68)
    estimate = skewsize(truth, pred, groups, resampling=Bootstrap(200), rng=1, min_expected=2.0)
    assert "of 2 classes can be estimated" in estimate.reason
    assert np.isnan([estimate.interval().low, estimate.interval().high]).all()


def test_what_must_stand_beside_it():
    estimate = skewsize(*golden_rows())
    effects = effect_sizes(*golden_rows())
    assert estimate.params["mean_effect_size"] == pytest.approx(effects.value)
    shares = estimate.params["band_shares"]
    assert shares == {"negligible": 1 / 6, "small": 0.0, "medium": 5 / 6, "large": 0.0}
    low, mean, high = (estimate.params[f"chance_{name}"] for name in ("low", "skewsize", "high"))
    assert low < mean < high
    assert json.dumps(estimate.params)
    assert str(estimate.parts) == str(effects.parts)


def test_sweep_follows_the_metric():
    rows = golden_rows()
    sweep = mev_sweep(count(*rows)).to_pylist()
    assert [row["min_expected"] for row in sweep] == [0, 1, 2, 5, 10]
    for row in sweep:
        skewness = skewsize(*rows, min_expected=row["min_expected"], resampling=None)
        assert row["skewsize"] == skewness.value
        assert row["mean_effect_size"] == skewness.params["mean_effect_size"]
        assert row["classes"] + row["not_estimable"] == 9
    # The filter takes the classes with the fewest mistakes, and the sign with them.
    assert sweep[3]["skewsize"] < 0 < sweep[4]["skewsize"]
    assert (sweep[3]["columns_dropped"], sweep[3]["rows_dropped"]) == (54, 510)
