"""Preferences of rankings: widths, coverage, and tests where queries resemble each other."""

import math

import pytest

from stats import ranking_coverage as worlds

pytestmark = pytest.mark.slow
WHOLE = pytest.mark.slow(whole=True)

SAMPLES = 200
ERROR = 3 * math.sqrt(0.05 * 0.95 / SAMPLES)
# A standard deviation from so many samples is off by 5 %.
WIDTH_ERROR = 3 / math.sqrt(2 * SAMPLES)


@pytest.mark.parametrize(
    ("queries", "shared", "shift"),
    [
        (24, 0.0, 0.0),
        pytest.param(24, 0.3, 0.0, marks=WHOLE),
        pytest.param(100, 0.0, 0.0, marks=WHOLE),
        pytest.param(100, 0.3, 0.0, marks=WHOLE),
        pytest.param(200, 0.0, 0.0, marks=WHOLE),
        pytest.param(200, 0.3, 0.0, marks=WHOLE),
        pytest.param(24, 0.0, 0.3, marks=WHOLE),
        pytest.param(24, 0.3, 0.3, marks=WHOLE),
    ],
)
def test_an_interval_of_a_preference_is_as_wide_as_needed(queries, shared, shift):
    case = worlds.widths(queries, shared, SAMPLES, shift)
    assert case.coverage >= 0.93 - ERROR
    assert case.ratio <= 1.3 * (1 + WIDTH_ERROR)
    if queries >= 100 and not shared:
        assert case.small >= 0.9


@pytest.mark.parametrize(
    ("likeness", "groups"),
    [
        (0.5, 6),
        pytest.param(0.9, 2, marks=WHOLE),
        pytest.param(0.9, 6, marks=WHOLE),
        pytest.param(0.7, 2, marks=WHOLE),
        pytest.param(0.7, 6, marks=WHOLE),
        pytest.param(0.5, 2, marks=WHOLE),
        pytest.param(0.3, 2, marks=WHOLE),
        pytest.param(0.3, 6, marks=WHOLE),
    ],
)
def test_blocks_of_alike_queries_keep_the_level(likeness, groups):
    case = worlds.level(likeness, groups, 64, SAMPLES)
    assert case.rejected <= 0.05 + ERROR
    # Six blocks of 24 queries: the less alike they are, the more they count as.
    assert case.effective <= (8 if likeness >= 0.7 else 18)


@pytest.mark.parametrize("groups", [2, pytest.param(6, marks=WHOLE)])
def test_independent_queries_stay_apart_and_keep_their_power(groups):
    assert worlds.level(0.0, groups, 64, SAMPLES).rejected <= 0.05 + ERROR
    shifted = worlds.level(0.0, groups, 64, SAMPLES // 2, shift=0.6)
    assert shifted.independent >= 23.5
    assert shifted.rejected >= 0.55
