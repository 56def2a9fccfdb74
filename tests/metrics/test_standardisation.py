"""Direct standardisation against sums by hand, the bootstrap of `explained_disparity`, coverage."""

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics.labels.standardisation import standardise


def table_of(side, stratum, outcome, strata):
    places = (side * strata + stratum) * 2 + outcome
    return np.bincount(places, minlength=4 * strata).reshape(2, strata, 2).astype(float)


def rows(seed, n=1500):
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 2, n)
    stratum = np.where(rng.random(n) < np.where(side, 0.7, 0.2), 1, 0)
    share = np.array([[0.65, 0.95], [0.68, 0.95]])[side, stratum]
    return side, stratum, (rng.random(n) < share).astype(int)


def test_rates_are_those_of_sums_by_hand():
    # 100 and 100 rows against 50 and 150.
    standardised = standardise(np.array([[[10.0, 90], [50, 50]], [[10, 40], [90, 60]]]))
    first = (150 * 0.9 + 250 * 0.5) / 400
    second = (150 * 0.8 + 250 * 0.4) / 400
    assert standardised.rates == pytest.approx((0.7, 0.5))
    assert standardised.standardised_rates == pytest.approx((first, second))
    assert standardised.difference == pytest.approx(0.1)
    assert standardised.moved == pytest.approx(0.1)
    assert standardised.rows == (200, 200)
    assert standardised.left_out == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_those_of_explained_disparity(seed):
    side, stratum, outcome = rows(seed)
    standardised = standardise(table_of(side, stratum, outcome, 2))
    groups = np.where(side, "b", "a")
    explained = m.explained_disparity(outcome, groups, stratum.astype(str), first="a")
    ends = explained.interval()
    assert standardised.moved == pytest.approx(explained.value)
    assert standardised.moved_ends == pytest.approx((ends.low, ends.high), abs=0.006)
    equal = explained.by.to_pylist()[1]
    assert standardised.difference == pytest.approx(equal["value"])
    assert standardised.ends == pytest.approx((equal["low"], equal["high"]), abs=0.008)


def test_intervals_cover_the_differences_of_the_population():
    shares, base = np.array([[0.65, 0.95], [0.68, 0.95]]), np.array([[0.8, 0.2], [0.3, 0.7]])
    equal = float(base.mean(axis=0) @ (shares[0] - shares[1]))
    moved = float((base[0] * shares[0]).sum() - (base[1] * shares[1]).sum() - equal)
    covered = np.zeros(2)
    for seed in range(300):
        standardised = standardise(table_of(*rows(seed, 800), 2))
        ends, moved_ends = standardised.ends, standardised.moved_ends
        covered += [ends[0] <= equal <= ends[1], moved_ends[0] <= moved <= moved_ends[1]]
    assert (covered / 300 > 0.92).all()


def test_strata_without_rows_of_a_side_are_left_out():
    standardised = standardise(np.array([[[10.0, 90], [20, 20]], [[10, 40], [3, 1]]]))
    assert standardised.rows == (100, 50)
    assert standardised.left_out == (40, 4)
    assert standardised.difference == pytest.approx(0.1)


def test_sides_without_a_stratum_in_common_have_no_difference():
    assert standardise(np.array([[[10.0, 90], [0, 0]], [[0, 0], [10, 40]]])) is None


def test_a_rate_without_an_error_has_an_interval():
    standardised = standardise(np.array([[[0.0, 20], [0, 30]], [[0, 25], [0, 25]]]))
    assert standardised.difference == 0.0
    low, high = standardised.ends
    assert low < 0.0 < high


def test_rows_that_repeat_in_units_widen_intervals_as_much_as_they_repeat():
    side, stratum, outcome = (np.repeat(codes, 4) for codes in rows(5, 600))
    table = table_of(side, stratum, outcome, 2)
    units, places = np.repeat(np.arange(600), 4), (side * 2 + stratum) * 2 + outcome
    alone, together = standardise(table), standardise(table, units=(units, places))
    for name in ("ends", "moved_ends"):
        (low, high), (unit_low, unit_high) = getattr(alone, name), getattr(together, name)
        assert (unit_high - unit_low) / (high - low) == pytest.approx(2.0, rel=0.05)


def test_a_table_of_another_shape_is_refused():
    with pytest.raises(InputError):
        standardise(np.zeros((3, 2, 2)))


def test_the_widest_of_several_pairs_has_a_wider_interval():
    table = np.array([[[10.0, 90], [50, 50]], [[20, 80], [60, 40]]])
    alone, widest = standardise(table), standardise(table, pairs=6)
    assert widest.p_value == pytest.approx(6 * alone.p_value)
    assert widest.ends[0] < alone.ends[0] < alone.ends[1] < widest.ends[1]
    assert widest.moved_ends == alone.moved_ends
