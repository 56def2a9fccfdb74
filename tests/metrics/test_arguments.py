"""An argument of wrong shape or type is named by the error, for every metric."""

import re
from inspect import signature

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics import SPECS
from equipoise.stats import Bootstrap
from metrics.test_contract import (
    ALL,
    FEW,
    GROUP,
    LABEL,
    RIGHT,
    RNG,
    UNITS,
    N,
)

SCORED = {"y_true": RIGHT.astype(int), "y_score": RNG.random(N), "groups": GROUP}
NUMBERED = {"y_true": RNG.random(N), "y_pred": RNG.random(N), "groups": GROUP}
SHARED = {"rows": RIGHT.astype(float), "groups": GROUP}
OF_ROWS = {
    **dict.fromkeys(
        ("auroc", "average_precision", "brier_score", "equal_error_rate",
         "expected_calibration_error"), SCORED,
    ),
    **dict.fromkeys(("mean_absolute_error", "mean_error", "share_within_tolerance"), NUMBERED),
    **dict.fromkeys(("outcome_share", "unsound_rate"), SHARED),
}  # fmt: skip
CASES = ALL | OF_ROWS
OPTIONS = {"units": UNITS, "weights": np.ones(N), "within": LABEL, "sets": np.arange(N)}
# Rows that belong to no others: any number of them is right.
ALONE = {
    *("targets", "a", "b", "c1", "c2", "m_images", "f_images", "x", "y", "target_images"),
    *("target_texts", "a_texts", "b_texts", "c_texts"),
    *("a_images", "b_images", "c_images", "mcas_values", "embeddings", "probabilities"),
    *("features", "reference", "table", "answers"),
}
# Labels of anything, nested or not.
NESTED = {("hit_rate", "y_true_sets")}


def call(name, arguments):
    function = getattr(m, name)
    return function(
        **arguments, **{"resampling": FEW} if "resampling" in signature(function).parameters else {}
    )


def arguments_of(name):
    """Return the call's arguments, with those that are optional."""
    case = CASES[name]
    rows = [value for value in case.values() if isinstance(value, np.ndarray) and len(value) == N]
    optional = {
        key: value
        for key, value in OPTIONS.items()
        if rows and key in {*signature(getattr(m, name)).parameters} and key not in case
    }
    return case, optional


def wrong_values(name, key, value):
    """Yield an array in shapes, and of a type, that don't fit."""
    if key not in ALONE and not (name.startswith("representation") and key == "groups"):
        yield value[:-1]
    yield np.array(value.flat[0])
    if (name, key) not in NESTED:
        yield np.stack([np.stack([value] * 2, -1)] * 2, -1)
    if value.dtype.kind == "f":
        yield np.full(value.shape, "text")


def test_every_metric_has_a_case():
    assert {*SPECS} <= {*CASES}


@pytest.mark.parametrize("name", CASES)
def test_an_argument_of_wrong_shape_or_type_is_named(name):
    case, optional = arguments_of(name)
    arrays = {key: value for key, value in case.items() if isinstance(value, np.ndarray)}
    for key, value in (arrays | optional).items():
        for wrong in wrong_values(name, key, value):
            with pytest.raises(InputError) as refused:
                call(name, {**case, key: wrong})
            assert re.search(rf"\b{key}\b", str(refused.value)), (key, wrong.shape, refused.value)


@pytest.mark.parametrize("weights", [np.ones(N), np.ones((N, 1))])
def test_weights_have_the_shape_of_predictions(weights):
    weighted = m.accuracy(**ALL["accuracy"], weights=weights, resampling=None)
    assert weighted.value == m.accuracy(**ALL["accuracy"], resampling=None).value
    for wrong in (np.ones((N, 2)), np.ones(3), 1.0):
        with pytest.raises(InputError, match=r"^weights: "):
            m.accuracy(**ALL["accuracy"], weights=wrong, resampling=None)


@pytest.mark.parametrize("name", CASES)
def test_a_level_is_a_share_for_every_metric(name):
    estimate = call(name, CASES[name])
    for level in (95, 1.0, 0.0, float("nan"), "0.95"):
        with pytest.raises(InputError, match=r"^level="):
            estimate.interval(level)


def test_a_percentage_for_a_level_is_named_as_a_share():
    with pytest.raises(InputError, match="0.95"):
        Bootstrap(level=95)


RATES = (
    "true_positive_rate", "false_positive_rate", "true_negative_rate", "false_negative_rate",
    "precision", "negative_predictive_value", "selection_rate", "average_odds",
)  # fmt: skip


@pytest.mark.parametrize("name", RATES)
def test_a_ratio_of_zero_to_zero_says_so(name):
    rate, groups = getattr(m, name), ["a"] * 60 + ["b"] * 60
    true, reasons = ["1", "0"] * 60, set()
    for predicted in (true, ["0"] * 120, ["1"] * 120, ["0", "1"] * 60):
        arguments = (true, predicted, groups)
        ratio, gap = (
            function(*arguments, positive="1") for function in (rate.ratio, rate.difference)
        )
        if gap.estimable and not ratio.estimable:
            reasons.add(ratio.reason)
            assert np.isnan([ratio.interval().low, ratio.interval().high]).all()
    assert len(reasons) == 1
    assert "0 in every group" in reasons.pop()


@pytest.mark.parametrize("units", [None, np.arange(120) // 2])
def test_a_rate_of_no_rows_names_what_is_missing(units):
    true, groups = ["0"] * 120, ["a"] * 60 + ["b"] * 60
    predicted = ["0", "1"] * 60
    recall = m.true_positive_rate(true, predicted, groups, positive="1", units=units)
    assert (recall.estimable, recall.reason) == (False, "no rows of the class")
    precision = m.precision(predicted, true, groups, positive="1", units=units)
    assert (precision.estimable, precision.reason) == (False, "no predictions of the class")
