"""How often extremes of groups that are alike go beyond a limit, against simulation."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from equipoise.stats.alarms import lowest_below, range_above

CASES = [(np.full(20, 100), 0.85, 0.8, 0.2), (np.array([30, 70, 500]), 0.6, 0.55, 0.1)]


@pytest.mark.parametrize(("sizes", "share", "limit", "gap"), CASES)
def test_alarms_agree_with_simulation(sizes, share, limit, gap):
    drawn = np.random.default_rng(0).binomial(sizes, share, size=(100_000, len(sizes))) / sizes
    # Four standard errors of a share of 100,000.
    assert lowest_below(limit, sizes, share) == pytest.approx(
        (drawn.min(axis=1) < limit - 1e-9).mean(), abs=0.0064
    )
    assert range_above(gap, sizes, share) == pytest.approx(
        (np.ptp(drawn, axis=1) > gap + 1e-9).mean(), abs=0.0064
    )


@pytest.mark.parametrize("limit", [0.0, 0.2, 0.25, 0.5, 1.0])
def test_a_range_is_summed_over_all_counts_ties_included(limit):
    sizes, share = np.array([4, 5, 4]), 0.4
    expected = 0.0
    for counts in product(*(range(size + 1) for size in sizes)):
        shares = np.array(counts) / sizes
        mass = binom.pmf(counts, sizes, share).prod()
        expected += mass * (np.ptp(shares) > limit + 1e-9)
    assert range_above(limit, sizes, share) == pytest.approx(expected, abs=1e-12)


def test_a_limit_that_a_share_may_reach_is_kept():
    assert lowest_below(0.8, np.array([10.0]), 0.5) == pytest.approx(binom.cdf(7, 10, 0.5))
    assert lowest_below(0.0, np.array([10.0]), 0.5) == pytest.approx(0.0)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_certain_shares_never_differ(share):
    sizes = np.full(5, 50.0)
    assert range_above(0.01, sizes, share) == pytest.approx(0.0)
    assert lowest_below(share, sizes, share) == pytest.approx(0.0)


@pytest.mark.parametrize("groups", [60, 400])
def test_of_very_many_counts_shares_are_normal(groups):
    sizes = np.full(groups, 20_000)
    limit = 0.014 if groups == 60 else 0.017
    drawn = np.random.default_rng(0).binomial(sizes, 0.2, size=(10_000, groups)) / sizes
    expected = (np.ptp(drawn, axis=1) > limit + 1e-9).mean()
    assert 0.1 < expected < 0.9
    assert range_above(limit, sizes, 0.2) == pytest.approx(expected, abs=0.03)
