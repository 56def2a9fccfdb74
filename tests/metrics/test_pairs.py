"""Accuracy difference: the printed table's form, McNemar's exact test, enumeration, coverage."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from equipoise.core import InputError
from equipoise.metrics import accuracy_difference
from equipoise.metrics.labels import paired
from equipoise.stats import Bootstrap, Permutation
from prediction_rows import part

# Mandal 2024, Table 7.2: accuracy difference and percent of it, by architecture.
TABLE_7_2 = {
    "Inception": (0.1, 15),
    "ResNet152": (0.18, 24.24),
    "VGG16": (0.1, 18.36),
    "Xception": (0.06, 10),
    "ViT-B16": (0.17, 39.19),
    "ViT-B32": (0.18, 39),
    "ViT-L16": (0.13, 31),
    "ViT-L32": (0.2, 42),
}
FEW = Bootstrap(replicates=200)


def images(both_right, first, second, neither):
    """Truth and two models' predictions: both right, only one, neither."""
    right = np.repeat([[1, 1, 0, 0], [1, 0, 1, 0]], [both_right, first, second, neither], axis=1)
    return np.ones(right.shape[1], dtype=int), *right


@pytest.mark.parametrize(("difference", "percent"), TABLE_7_2.values(), ids=TABLE_7_2)
def test_percent_is_relative_to_the_model_trained_on_balanced_data(difference, percent):
    n = 10_000
    unbiased = round(n * 100 * difference / percent)
    n_lost = round(n * difference)
    estimate = accuracy_difference(
        *images(unbiased - n_lost, n_lost, 0, n - unbiased), resampling=FEW
    )
    assert estimate.value == pytest.approx(difference, abs=1e-12)
    assert part(estimate.by, "percent_difference", "")["value"] == pytest.approx(percent, abs=0.02)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(1, 40))
def test_p_value_is_mcnemars_exact_test(both_right, first, second, neither):
    estimate = accuracy_difference(
        *images(both_right, first, second, neither), resampling=Permutation(10)
    )
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert estimate.p_value == pytest.approx(expected, abs=1e-12)
    n = both_right + first + second + neither
    assert estimate.value == pytest.approx(abs(first - second) / n, abs=1e-15)
    assert estimate.null_drawn.endswith("every swap enumerated; exact")


@given(
    right=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 1)),
        min_size=1,
        max_size=7,
    )
)
def test_p_value_of_repeated_runs_enumerates_all_swaps(right):
    runs = np.array(right).T.reshape(2, 2, -1)
    estimate = accuracy_difference(np.ones(len(right), dtype=int), *runs, resampling=Permutation())
    differences = runs[0].sum(axis=0) - runs[1].sum(axis=0)
    swaps = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = np.mean([swap >= abs(differences.sum()) for swap in swaps])
    assert estimate.p_value == pytest.approx(expected, abs=1e-12)
    assert estimate.chance.mean == pytest.approx(np.mean(swaps) / (2 * len(differences)), abs=1e-12)


def test_interval_covers():
    rng = np.random.default_rng(2)
    joint, truth, hits = [0.6, 0.2, 0.1, 0.1], 0.1, 0
    for seed in range(200):
        estimate = accuracy_difference(
            *images(*rng.multinomial(300, joint)), resampling=FEW, rng=seed
        )
        hits += estimate.interval().low <= truth <= estimate.interval().high
    # Binomial(200, 0.95) stays at or above 181 with probability 0.998.
    assert hits >= 181


def test_runs_give_their_mean_and_its_t_interval():
    rng = np.random.default_rng(0)
    y_true = np.ones(200, dtype=int)
    first, second = (rng.random((5, 200)) < share for share in (0.8, 0.7))
    estimate = accuracy_difference(y_true, first.astype(int), second.astype(int), resampling=FEW)
    differences = first.mean(axis=1) - second.mean(axis=1)
    runs = part(estimate.by, "mean_over_runs", "")
    assert estimate.params == {"runs": 5}
    assert runs["value"] == pytest.approx(estimate.value) == pytest.approx(differences.mean())
    low, high = ttest_1samp(differences, 0).confidence_interval(0.95)
    assert [runs["low"], runs["high"]] == pytest.approx([low, high])
    assert runs["n"] == 5


def test_missing_images_are_counted():
    y_true = ["x", None, "x", "x"]
    estimate = accuracy_difference(
        y_true, ["x", "x", None, "y"], ["x", "x", "x", "x"], resampling=FEW
    )
    assert estimate.n == {"trained on balanced data": 2, "trained on imbalanced data": 2}
    assert estimate.excluded == {"missing true class or prediction": 2}
    assert estimate.value == 0.5


def test_percent_of_an_accuracy_of_zero_is_nan_with_the_reason():
    estimate = part(accuracy_difference([1, 1], [0, 0], [1, 1]).by, "percent_difference", "")
    assert np.isnan([estimate["value"], estimate["low"], estimate["high"]]).all()
    assert estimate["reason"] == "the model trained on balanced data is never right"


def test_many_kinds_of_images_are_sampled(monkeypatch):
    monkeypatch.setattr(paired, "_EXACT_WORK", 0)
    first = np.random.default_rng(1).random((5, 400)) < 0.9
    estimate = accuracy_difference(
        np.ones(400, dtype=int), first.astype(int), 0 * first, resampling=Permutation(500)
    )
    assert estimate.p_value == pytest.approx(1 / 501)
    assert estimate.null_drawn.startswith(
        "the two models are exchangeable on each image; 500 swaps"
    )


def test_errors():
    y = ["x", "y"]
    with pytest.raises(InputError, match=r"^y_pred_biased: shape \(1,\); expected \(2,\) or "):
        accuracy_difference(y, y, ["x"])
    with pytest.raises(InputError, match=r"^y_pred_biased: 2 runs; expected 1, as in y_pred_unb"):
        accuracy_difference(y, y, [y, y])
    with pytest.raises(InputError, match=r"^no image has a true class and a prediction of both "):
        accuracy_difference([None, "x"], y, ["x", None])


def test_groups_are_no_second_prediction():
    y, gender = ["cat", "dog"] * 30, ["women", "men"] * 30
    with pytest.raises(InputError, match=r"^y_pred_biased: .*'men'.*accuracy\.difference\("):
        accuracy_difference(y, y, gender)
    # A model may have labels that no other has, on less than half of the rows.
    assert accuracy_difference(y, y, ["cat", "bird"] * 30, resampling=None).value == 0.5
