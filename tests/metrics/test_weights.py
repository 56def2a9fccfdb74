"""Weights of predictions at the edges: the right value, or one error that names the row."""

import numpy as np
import pytest

from equipoise.core import Groups, InputError
from equipoise.metrics import (
    accuracy,
    count,
    equalized_odds,
    rates,
    worst_group_accuracy,
)

N = 90


def rows():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, N)
    predicted = np.where(rng.random((N, 2)) < 0.5, truth[:, None], rng.integers(0, 3, (N, 2)))
    return truth, predicted, np.array(["a", "b"])[rng.integers(0, 2, N)]


def but_the_third(value):
    weights = np.full((N, 2), 0.5)
    weights[2] = value
    return weights


@pytest.mark.parametrize("value", [np.inf, np.nan, -1, 1e300, 1e308, 1e-300, 5e-324, 1.1e9])
def test_a_weight_that_cannot_be_used_is_refused(value):
    with pytest.raises(InputError, match=r"^weights, row 3: "):
        count(*rows(), weights=but_the_third([0, value]))


@pytest.mark.parametrize(
    "weights",
    [
        np.full((N, 2), "x"),
        np.ma.masked_array(np.ones((N, 2)), np.eye(N, 2) > 0),
        [[10**400, 1]] * N,
        [[1.0, 1.0]] * (N - 1) + [[1.0]],
        np.ones((N, 3)),
        np.zeros((N, 2)),
    ],
)
def test_weights_that_are_no_numbers_of_the_right_shape_are_refused(weights):
    with pytest.raises(InputError, match=r"^weights: "):
        accuracy(*rows(), weights=weights)


def number(metric, weights, selected=slice(None)):
    truth, predicted, groups = rows()
    few = Groups.of(groups[selected], min_size=1)
    estimate = metric(
        truth[selected], predicted[selected], few, weights=weights[selected], resampling=None
    )
    return getattr(estimate, "value", None)


@pytest.mark.parametrize("metric", [accuracy, equalized_odds])
@pytest.mark.parametrize("scale", [2e-9, 1.0, 2.0**20, 1e9])
def test_shares_do_not_depend_on_the_scale_of_weights(metric, scale):
    weights = np.random.default_rng(1).uniform(0.5, 1, (N, 2))
    expected = number(metric, weights)
    assert number(metric, scale * weights) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", [worst_group_accuracy, rates])
def test_a_row_without_weight_is_left_out(metric):
    selected = np.arange(N) % 5 > 0
    weights = np.where(selected[:, None], 0.5, 0.0) * np.ones((N, 2))
    assert number(metric, weights) == number(metric, weights, selected)
    counted = count(*rows(), weights=weights)
    assert counted.excluded["no weight"] == N // 5
