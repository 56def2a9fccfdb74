"""SkewSize: golden values, scipy's skewness, what stands beside it, and the filter's sweep."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import skew

from equipoise.metrics.counts import count
from equipoise.metrics.counts.effect_sizes import (
    SkewSize,
    effect_sizes,
    mev_sweep,
    skewness,
    skewsize,
)
from equipoise.stats.resampling import Bootstrap

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "skewsize.json").read_text())


def golden_rows() -> tuple[np.ndarray, ...]:
    tables = np.array([*GOLDEN["tables"].values()])
    times = tables.ravel()
    classes, groups, labels = (np.repeat(axis.ravel(), times) for axis in np.indices(tables.shape))
    names = np.array([*GOLDEN["tables"]])
    return names[classes], np.array(GOLDEN["labels"])[labels], np.array(GOLDEN["groups"])[groups]


@pytest.mark.parametrize("min_expected", [0, 5])
def test_golden_values(min_expected: int) -> None:
    found = skewsize(*golden_rows(), min_expected=min_expected, resampling=None)
    expected = GOLDEN["expected"][f"mev{min_expected}"]
    assert found.value == pytest.approx(expected["skewsize"], abs=1e-12)
    assert found.params["classes"] == expected["n_classes"]


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=30).filter(lambda v: len({*v}) > 1))
def test_scipy_agrees(thousandths: list[int]) -> None:
    values = np.array(thousandths) / 1000
    with_missing = np.array([[np.nan, *values, np.nan]])
    assert skewness(with_missing)[0] == pytest.approx(skew(values), abs=1e-9)


@pytest.mark.parametrize("values", [[0.1, 0.4], [0.3, 0.3, 0.3], [np.nan] * 4, [0.0] * 5, []])
def test_not_estimable(values: list[float]) -> None:
    assert np.isnan(skewness(np.array([values]))[0])


def test_without_a_number_there_is_no_interval() -> None:
    """Of three classes one is too rare to be estimated, and not in every replicate."""
    # Of "c" three are taken for "a": 1.5 are expected in each group, of the 2 that are asked for.
    truth = np.repeat(["a", "b", "c"], [60, 60, 16])
    pred = np.concatenate([np.tile(["a", "a", "b"], 40), np.repeat(["a", "c"], [3, 13])])
    groups = np.tile(["x", "y"], 68)
    found = skewsize(truth, pred, groups, resampling=Bootstrap(200), rng=1, min_expected=2.0)
    assert found.reason == "2 classes can be estimated; skewness needs at least 3"
    assert np.isnan([found.interval().low, found.interval().high]).all()
    counts = count(truth, pred, groups)
    drawn = SkewSize(min_expected=2.0)
    shares = counts.table.ravel() / len(truth)
    weights = np.random.default_rng(5).multinomial(len(truth), shares, size=200)
    several = drawn(counts, weights.reshape(200, *counts.table.shape).astype(float))
    assert np.isfinite(several[:, 0]).any()


def test_equal_effect_sizes_say_so() -> None:
    truth = np.repeat(["a", "b", "c"], 60)
    predicted, group = np.tile(["a", "b"], 90), np.tile(["x", "x", "y", "y"], 45)
    found = skewsize(truth, predicted, group)
    assert np.isnan(found.value)
    assert found.reason == "all effect sizes are equal"


def test_what_must_stand_beside_it() -> None:
    found = skewsize(*golden_rows())
    beside = effect_sizes(*golden_rows())
    assert found.params["mean_effect_size"] == pytest.approx(beside.value)
    shares = found.params["band_shares"]
    assert shares == {"negligible": 1 / 6, "small": 0.0, "medium": 5 / 6, "large": 0.0}
    low, mean, high = (found.params[f"chance_{name}"] for name in ("low", "skewsize", "high"))
    assert low < mean < high
    assert json.dumps(found.params)
    assert found.by == beside.by or found.by.num_rows == beside.by.num_rows


def test_sweep_follows_the_metric() -> None:
    rows = golden_rows()
    sweep = mev_sweep(count(*rows)).to_pylist()
    assert [row["min_expected"] for row in sweep] == [0, 1, 2, 5, 10]
    for row in sweep:
        one = skewsize(*rows, min_expected=row["min_expected"], resampling=None)
        assert row["skewsize"] == one.value
        assert row["mean_effect_size"] == one.params["mean_effect_size"]
        assert row["classes"] + row["not_estimable"] == 9
    # The filter takes the classes with the fewest mistakes, and the sign with them.
    assert sweep[3]["skewsize"] < 0 < sweep[4]["skewsize"]
    assert (sweep[3]["columns_dropped"], sweep[3]["rows_dropped"]) == (54, 510)
