"""Preferences of rankings: widths, coverage, and tests where queries resemble each other."""

import math
from itertools import product

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


BLOCKS = [*product(worlds.LIKENESS[1:], worlds.GROUPS, worlds.DIMENSIONS)]
HARDEST = (0.3, 6, 16)


@pytest.mark.parametrize(
    ("likeness", "groups", "dimensions"),
    [HARDEST, *(pytest.param(*case, marks=WHOLE) for case in BLOCKS if case != HARDEST)],
)
def test_blocks_of_alike_queries_keep_the_level(likeness, groups, dimensions):
    case = worlds.level(likeness, groups, dimensions, 2 * SAMPLES)
    assert case.rejected <= 0.05 + ERROR / math.sqrt(2)
    # Six blocks of 24 queries: the less alike they are, the more they count as.
    assert case.effective <= (8 if likeness >= 0.7 else 18)


@pytest.mark.parametrize(
    ("groups", "dimensions", "found"),
    [
        (2, 64, 0.65),
        pytest.param(6, 64, 0.55, marks=WHOLE),
        pytest.param(2, 16, 0.5, marks=WHOLE),
        pytest.param(6, 16, 0.45, marks=WHOLE),
    ],
)
def test_independent_queries_stay_apart_and_keep_their_power(groups, dimensions, found):
    assert worlds.level(0.0, groups, dimensions, SAMPLES).rejected <= 0.05 + ERROR
    shifted = worlds.level(0.0, groups, dimensions, SAMPLES, shift=0.6)
    assert shifted.independent >= (23.5 if dimensions == 64 else 20)
    assert shifted.rejected >= found
