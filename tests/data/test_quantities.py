"""Quantities where classes or groups are expected: ages are refused, codes are not."""

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise.core import DataError, Verdict
from equipoise.data import ItemSource, LabelSource, PredictionSource, load_items, load_predictions

ROWS = 3000


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def join(target, predicted):
    ids = [str(row) for row in range(len(target))]
    labels = pl.DataFrame({"id": ids, "y": target, "g": ["a", "b"] * (len(ids) // 2)})
    predictions = pl.DataFrame({"id": ids, "p": predicted})
    source = PredictionSource(predictions, prediction="p", open_vocabulary=True)
    return load_predictions(LabelSource(labels, "id", "y", ("g",)), {"m": source})


def estimates(rng, values, spread):
    return np.round(values + rng.normal(0, spread, len(values))).astype(int)


def ages(rng):
    return np.clip(np.round(rng.gamma(6, 6, ROWS)), 1, 90).astype(int)


@pytest.mark.parametrize("spread", [2, 6, 15])
@pytest.mark.parametrize("scale", [1, 100])
def test_a_target_that_predictions_estimate_is_refused(rng, spread, scale):
    target = ages(rng)
    with pytest.raises(DataError) as raised:
        join(scale * target, scale * estimates(rng, target, spread))
    assert raised.value.column == "y"
    assert str(len({*target.tolist()})) in raised.value.problem


def test_numbers_with_decimals_are_no_target(rng):
    target = np.round(rng.normal(30, 9, ROWS), 1)
    with pytest.raises(DataError) as raised:
        join(target, rng.permutation(target))
    assert raised.value.column == "y"


def codes_of_neighbours(rng, n_classes, right):
    """Return targets and predictions that confuse a class with the 40 codes around it."""
    target = rng.integers(0, n_classes, ROWS)
    near = np.clip(target + rng.integers(-20, 21, ROWS), 0, n_classes - 1)
    return target, np.where(rng.random(ROWS) < right, target, near)


@pytest.mark.parametrize("n_classes", [10, 21, 200, 1000])
@pytest.mark.parametrize("right", [0.25, 0.7, 0.95])
def test_codes_of_classes_are_classes(rng, n_classes, right):
    target, predicted = codes_of_neighbours(rng, n_classes, right)
    assert len(join(target, predicted).classes) == len({*target.tolist()})


def test_codes_that_no_model_learned_are_classes(rng):
    target = rng.integers(0, 1000, ROWS)
    assert join(target, rng.integers(0, 1000, ROWS)).classes


def test_digits_are_classes_however_near_the_mistakes(rng):
    target = rng.integers(0, 10, ROWS)
    assert len(join(target, np.clip(estimates(rng, target, 1), 0, 9)).classes) == 10


@pytest.mark.parametrize("option", ["pred", "score"])
def test_the_quick_audit_measures_errors_of_ages(rng, option):
    target = ages(rng)
    frame = pl.DataFrame({
        "age": target, "guess": target + rng.normal(0, 5, ROWS), "race": ["a", "b"] * (ROWS // 2),
    })  # fmt: skip
    result = equipoise.audit(frame, target="age", groups="race", **{option: "guess"})
    assert {finding.audit for finding in result.findings} == {"regression"}


@pytest.mark.parametrize(
    ("name", "prediction", "black", "white"),
    [("age-regression-integers.csv", "pred", 7.05, 3.22),
     ("age-regression.csv", "pred_age", 7.34, 3.27)],
)  # fmt: skip
def test_a_table_of_ages_has_mean_errors(shared_dir, name, prediction, black, white):
    path = shared_dir / "inputs" / name
    result = equipoise.audit(path, target="age", pred=prediction, groups="race")
    lead = result.conclusions[0]
    assert (lead.group, lead.other, lead.verdict) == ("Black", "White", Verdict.DISPARITY)
    assert (lead.group_value, lead.other_value) == pytest.approx((black, white), abs=0.005)


def group_of(values, **options):
    frame = pl.DataFrame({"id": [str(row) for row in range(len(values))], "group": values})
    return load_items(ItemSource(frame, "id", ("group",), attributes=("group",), **options))


@pytest.mark.parametrize("kind", ["years", "decimals", "incomes"])
def test_a_quantity_is_no_attribute(rng, kind):
    values = {
        "years": ages(rng),
        "decimals": np.repeat(np.arange(0, 30, 0.5), 50),
        "incomes": rng.integers(50, 90_000, ROWS),
    }[kind]
    with pytest.raises(DataError) as raised:
        group_of(values)
    assert raised.value.column == "group"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([str(code) for code in range(20)] * 50, id="20 codes"),
        pytest.param([f"{code:05}" for code in range(501, 541)] * 50, id="zip codes"),
        pytest.param([str(code * 37 % 900) for code in range(40)] * 50, id="codes of countries"),
        pytest.param([f"site {code}" for code in range(60)] * 50, id="codes in words"),
    ],
)
def test_codes_of_groups_are_groups(values):
    assert len(group_of(values).coded["group"].vocabulary) == len({*values})


def test_numbers_that_the_user_names_are_groups():
    values = [str(code) for code in range(30)] * 40
    assert len(group_of(values, levels=tuple(values[:30])).coded["group"].vocabulary) == 30
