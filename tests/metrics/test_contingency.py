"""Effect sizes of one table: against golden values, scipy, enumeration and their own bounds."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2_contingency
from scipy.stats.contingency import association

from equipoise.core import InputError
from equipoise.metrics import cramers_v, cramers_v_corrected, phi, tschuprows_t

GOLDENS = json.loads((Path(__file__).parent / "goldens" / "contingency.json").read_text())

tables = arrays(
    np.int64,
    st.tuples(st.integers(2, 5), st.integers(2, 6)),
    elements=st.integers(0, 30),
).filter(lambda table: bool((table.sum(0) > 0).sum() > 1 and (table.sum(1) > 0).sum() > 1))


def assert_same(estimate, expected, tolerance=1e-12):
    if expected is None:
        assert estimate is None or np.isnan(estimate)
    else:
        assert estimate == pytest.approx(expected, rel=0, abs=tolerance)


@pytest.mark.parametrize("kind", ["plain", "yates"])
@pytest.mark.parametrize("case", GOLDENS["cases"], ids=lambda case: f"{np.shape(case['table'])}")
def test_golden_values(case, kind):
    table, expected, yates = case["table"], case[kind], kind == "yates"
    plain = cramers_v(table, yates=yates, resampling=None)
    assert_same(plain.value, expected["V"])
    # A statistic in the thousands has a unit in the last place near 1e-12.
    assert_same(plain.params["chi2"], expected["chi2"], 1e-15 * (expected["chi2"] or 0) + 1e-12)
    assert_same(phi(table, yates=yates, resampling=None).value, expected["phi"])
    assert_same(tschuprows_t(table, yates=yates, resampling=None).value, expected["T"])
    corrected = cramers_v_corrected(table, yates=yates, resampling=None)
    assert_same(corrected.value, expected["V_corrected"])


@given(tables, st.booleans())
def test_scipy_agrees(table, yates):
    table = table[table.sum(1) > 0][:, table.sum(0) > 0]
    expected = chi2_contingency(table, correction=yates)
    estimate = cramers_v(table, yates=yates, resampling=None)
    assert estimate.params["chi2"] == pytest.approx(expected.statistic, rel=1e-9, abs=1e-9)
    assert estimate.params["df"] == expected.dof
    by_scipy = association(table, method="cramer", correction=yates)
    assert estimate.value == pytest.approx(by_scipy, abs=1e-6)
    by_scipy = association(table, method="tschuprow", correction=yates)
    assert tschuprows_t(table, yates=yates, resampling=None).value == pytest.approx(
        by_scipy, abs=1e-6
    )


def test_chance_of_chi_square_is_its_mean_over_tables_with_the_same_margins():
    assert cramers_v([[5, 3, 1], [2, 6, 4]]).params["chance_chi2"] == pytest.approx(21 / 20 * 2)


def test_correction_needs_more_rows_than_groups():
    estimate = cramers_v_corrected(np.eye(3, dtype=int), resampling=None)
    assert estimate.reason == "as many groups or labels as rows"


@pytest.mark.parametrize(
    "table",
    [
        [[1, 2], [3, -1]],
        [[1, np.nan], [3, 1]],
        [[1, 2.5], [3, 1]],
        [1, 2, 3],
        [[0, 0], [0, 0]],
        [[1, 2], [3]],
    ],
)
def test_bad_tables(table):
    with pytest.raises(InputError, match="^table: expected whole counts"):
        cramers_v(table)
