"""Effect sizes of one table: against golden values, scipy, enumeration and their own bounds."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

from equipoise.core.errors import InputError
from equipoise.metrics.counts.effect_sizes import cramers_v, phi, tschuprows_t
from equipoise.stats.resampling import Permutation

GOLDENS = json.loads((Path(__file__).parent / "goldens" / "contingency.json").read_text())
WIDE = [[20, 10, 5], [11, 14, 3]]

tables = arrays(
    np.int64,
    st.tuples(st.integers(2, 5), st.integers(2, 6)),
    elements=st.integers(0, 30),
).filter(lambda table: bool((table.sum(0) > 0).sum() > 1 and (table.sum(1) > 0).sum() > 1))


def assert_same(found, expected, tolerance=1e-12):
    if expected is None:
        assert found is None or np.isnan(found)
    else:
        assert found == pytest.approx(expected, rel=0, abs=tolerance)


def assert_golden(case, kind):
    table, expected, yates = case["table"], case[kind], kind == "yates"
    plain = cramers_v(table, yates=yates, resampling=None)
    assert_same(plain.value, expected["V"])
    # A statistic in the thousands has a unit in the last place near 1e-12.
    assert_same(plain.params["chi2"], expected["chi2"], 1e-15 * (expected["chi2"] or 0) + 1e-12)
    assert_same(phi(table, yates=yates, resampling=None).value, expected["phi"])
    assert_same(tschuprows_t(table, yates=yates, resampling=None).value, expected["T"])
    corrected = cramers_v(table, yates=yates, bias_corrected=True, resampling=None)
    assert_same(corrected.value, expected["V_corrected"])


@pytest.mark.parametrize("kind", ["plain", "yates"])
@pytest.mark.parametrize("case", GOLDENS["cases"], ids=lambda case: f"{np.shape(case['table'])}")
def test_golden_values(case, kind):
    assert_golden(case, kind)


@given(tables, st.booleans())
def test_scipy_agrees(table, yates):
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    expected = chi2_contingency(table, correction=yates)
    found = cramers_v(table, yates=yates, resampling=None)
    assert found.params["chi2"] == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert found.params["df"] == expected.dof
    by_scipy = association(table, method="cramer", correction=yates)
    assert found.value == pytest.approx(by_scipy, abs=1e-6)
    by_scipy = association(table, method="tschuprow", correction=yates)
    assert tschuprows_t(table, yates=yates, resampling=None).value == pytest.approx(
        by_scipy, abs=1e-6
    )


@given(tables, st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(table, random):
    rows, columns = list(range(table.shape[0])), list(range(table.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    for function in (cramers_v, phi, tschuprows_t):
        value = function(table, resampling=None).value
        shuffled = table[rows][:, columns]
        assert function(shuffled, resampling=None).value == pytest.approx(value, abs=1e-12)
        assert function(shuffled.T, resampling=None).value == pytest.approx(value, abs=1e-12)
        padded = np.pad(table, ((0, 1), (1, 0)))
        assert function(padded, resampling=None).value == pytest.approx(value, abs=1e-12)


def test_yates_applies_to_two_by_two_only():
    assert cramers_v(WIDE, yates=True, resampling=None).value == (
        cramers_v(WIDE, resampling=None).value
    )
    table, padded = [[9, 4], [3, 8]], [[9, 0, 4], [0, 0, 0], [3, 0, 8]]
    corrected = cramers_v(padded, yates=True, resampling=None).value
    assert corrected == cramers_v(table, yates=True, resampling=None).value
    assert corrected < cramers_v(table, resampling=None).value


def permuted_values(table):
    """V after every permutation of the rows' groups, one by one."""
    groups, labels = np.nonzero(np.ones_like(table))
    rows_group = np.repeat(groups, table.ravel())
    rows_label = np.repeat(labels, table.ravel())
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    values = []
    for order in itertools.permutations(range(len(rows_group))):
        drawn = np.zeros_like(table)
        np.add.at(drawn, (rows_group[list(order)], rows_label), 1)
        values.append(np.sqrt(((drawn - expected) ** 2 / expected).sum() / table.sum()))
    return np.array(values)


@pytest.mark.parametrize("table", [[[3, 1], [1, 2]], [[2, 1], [0, 4]], [[3, 0, 1], [0, 1, 2]]])
def test_chance_is_that_of_every_permutation(table):
    values = permuted_values(np.array(table))
    found = cramers_v(table, resampling=Permutation(40_000))
    assert found.chance is not None
    assert found.p_value == pytest.approx((values >= found.value - 1e-9).mean(), abs=0.01)
    assert found.chance.mean == pytest.approx(values.mean(), abs=0.01)
    squares = (values**2).mean() * np.sum(table)
    assert found.params["chance_chi2"] == pytest.approx(squares, rel=1e-12)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ([[12, 0], [10, 0]], "every row has the same predicted label"),
        ([[12, 5], [0, 0]], "rows of one group only"),
        ([[3]], "rows of one group only"),
    ],
)
def test_one_row_or_column_is_not_estimable(table, reason):
    found = cramers_v(table)
    assert np.isnan(found.value)
    assert np.isnan(found.interval().high)
    assert (found.reason, found.p_value, found.chance) == (reason, None, None)


def test_correction_needs_more_rows_than_groups():
    found = cramers_v(np.eye(3, dtype=int), bias_corrected=True, resampling=None)
    assert found.reason == "as many groups or labels as rows"


@pytest.mark.parametrize(
    "table",
    [
        [[1, 2], [3, -1]],
        [[1, np.nan], [3, 1]],
        [[1, np.inf], [3, 1]],
        [1, 2, 3],
        np.ones((2, 2, 2)),
        [[0, 0], [0, 0]],
        np.empty((0, 3)),
        [[1, 2], [3]],
        [["a", "b"]],
    ],
)
def test_bad_tables(table):
    with pytest.raises(InputError, match="^table: expected whole counts"):
        cramers_v(table)
