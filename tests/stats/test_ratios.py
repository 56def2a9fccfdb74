"""Ratios of rare errors: what they make of a verdict, and how many rows repeated ones are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.core import Ratio, Verdict
from equipoise.stats.intervals import wilson, wilson_size
from equipoise.stats.verdict import raise_by_ratio

SMALL, DETECTED, DISPARITY = Verdict.BELOW_THRESHOLD, Verdict.DETECTED, Verdict.DISPARITY
ORDER = [SMALL, Verdict.INCONCLUSIVE, DETECTED, DISPARITY]


@pytest.mark.parametrize(
    ("verdict", "value", "low", "q", "expected"),
    [
        (SMALL, 10.0, 5.0, 0.01, DISPARITY),
        (SMALL, 1.25, 1.25, 0.05, DISPARITY),
        (SMALL, 1.25, 1.0, 0.05, DETECTED),
        (Verdict.INCONCLUSIVE, np.inf, 0.9, 0.01, DETECTED),
        (DETECTED, 10.0, 5.0, 0.01, DISPARITY),
        (DISPARITY, 1.3, 1.0, 0.01, DISPARITY),
        # Points decide.
        (SMALL, 1.2, 1.1, 0.01, SMALL),
        (SMALL, 10.0, 5.0, 0.06, SMALL),
        (SMALL, 10.0, 5.0, np.nan, SMALL),
        (Verdict.NONE, 10.0, 5.0, 0.01, Verdict.NONE),
        (Verdict.NOT_ESTIMABLE, 10.0, 5.0, 0.01, Verdict.NOT_ESTIMABLE),
    ],
)
def test_verdicts_by_ratio(verdict, value, low, q, expected):
    assert raise_by_ratio(verdict, Ratio(value, low, np.inf), q, 0.05) is expected


@given(st.sampled_from(ORDER), st.floats(1.0, 100.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_ratio_never_lowers_a_verdict(verdict, value, share, q):
    raised = raise_by_ratio(verdict, Ratio(value, share * value, np.inf), q, 0.05)
    assert ORDER.index(raised) >= ORDER.index(verdict)


@given(st.integers(1, 10_000), st.floats(0.0, 1.0), st.sampled_from([0.8, 0.95, 0.999]))
def test_the_size_behind_a_wilson_interval_comes_back(n, share, level):
    low, high = wilson(share * n, n, level)
    assert wilson_size(share, high - low, level) == pytest.approx(n, rel=1e-6)
