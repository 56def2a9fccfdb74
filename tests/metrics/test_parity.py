"""Demographic parity and equalized odds: golden values, fairlearn, invariances, chance."""

import numpy as np
import pytest

from equipoise.core import InputError
from equipoise.metrics import demographic_parity, equalized_odds
from equipoise.stats import Bootstrap
from equipoise.stats.intervals import simultaneous_gap
from prediction_rows import EXAMPLE, column, random_rows, rows_of

# From the same rows by an independent implementation (tests/prediction_rows.py).
PARITY = [0.1975346111642892, 0.05514439801087945, 0.14239021315340972]
ODDS_MAX = [0.634313725490196, 0.12149234693877553, 0.29340989882417284]
ODDS_MEAN = [0.339693953971547, 0.07844553135314826, 0.1796009555861169]

FEW = Bootstrap(replicates=100, permutations=200)


def parity_of(rows, **options):
    return demographic_parity(None, rows[1], rows[2], **options)


def odds_of(rows, **options):
    return equalized_odds(*rows, **options)


def values(estimate):
    return column(estimate.by, "value")


def test_golden_values():
    example = rows_of(EXAMPLE)
    parity = parity_of(example)
    assert values(parity) == pytest.approx(PARITY, rel=0, abs=1e-12)
    assert parity.value == max(values(parity))
    for aggregate, expected in (("max", ODDS_MAX), ("mean", ODDS_MEAN)):
        odds = odds_of(example, aggregate=aggregate)
        assert values(odds) == pytest.approx(expected, rel=0, abs=1e-12)
        assert odds.value == max(values(odds))


def test_mean_reproduces_table_1_of_the_skewsize_paper():
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


@pytest.mark.parametrize(("aggregate", "together"), [("max", 1), ("mean", 2)])
def test_ends_of_odds_are_those_of_both_conditions(aggregate, together):
    y_true, y_pred, group = random_rows(0)
    part = odds_of((y_true, y_pred, group), aggregate=aggregate).by.to_pylist()[0]
    combine = getattr(np, aggregate)
    ends = {}
    for side, level in ((0, 1 - 0.05 / 2), (1, 1 - 0.05 / together)):
        gaps = []
        for rows in (y_true == 0, y_true != 0):
            counts = [(y_pred[rows & (group == g)] == 0) for g in np.unique(group)]
            sums = np.array([[hits.sum(), len(hits)] for hits in counts], float).T
            gaps.append(simultaneous_gap(*sums, level)[side])
        ends[side] = combine(gaps)
    assert (part["low"], part["high"]) == pytest.approx((ends[0], ends[1]), abs=1e-12)


def test_attribute_that_determines_the_class_has_no_odds():
    y_true = np.repeat([0, 1], 40)
    estimate = odds_of((y_true, np.roll(y_true, 3), y_true), resampling=FEW)
    assert np.isnan(estimate.value)
    assert estimate.p_value is None
    assert estimate.chance is None
    assert estimate.reason
    assert set(column(estimate.by, "reason")) == {
        "fewer than two groups have at least 30 rows of the class; "
        "fewer than two groups have at least 30 rows of other classes"
    }


def test_odds_show_the_rates_of_the_condition_that_decides():
    estimate = odds_of(rows_of(EXAMPLE), resampling=None)
    parts = estimate.by.to_pylist()
    assert [part["shows"] for part in parts] == [
        "true_positive_rate",
        "true_positive_rate",
        "false_positive_rate",
    ]
    rates = [group["value"] for group in parts[2]["by_group"]]
    assert max(rates) - min(rates) == pytest.approx(ODDS_MAX[2], abs=1e-12)


def test_errors():
    with pytest.raises(InputError, match=r"^y_pred: shape \(2, 2\); expected one label per row, "):
        demographic_parity(None, [[0, 1], [1, 0]], [0, 1])
    with pytest.raises(InputError, match=r"^aggregate='median': expected 'max' or 'mean'$"):
        equalized_odds([0, 1], [0, 1], [0, 1], aggregate="median")
