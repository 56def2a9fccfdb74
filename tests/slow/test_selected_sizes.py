"""Sizes corrected for selection: bias and coverage in simulated audits."""

import numpy as np
import pytest

from equipoise.stats import leading_gap, leading_size, share_errors, simultaneous_shares

pytestmark = pytest.mark.slow

WORLDS = 400
EQUAL, UNEVEN = np.full(20, 100), np.geomspace(30, 833, 20).astype(int)


def spread(rng):
    return np.clip(0.8 + 0.03 * rng.standard_normal(20), 0, 1)


def below(points, groups=20):
    return lambda rng: np.r_[0.8 - points, np.full(groups - 1, 0.8)]


def audits(n, shares):
    """Yield the errors of the raw and corrected size, of the gap, and whether ends cover."""
    rng = np.random.default_rng(1)
    for _ in range(WORLDS):
        truth = shares(rng)
        s = rng.binomial(n, truth)
        ends, errors = simultaneous_shares(s, n), share_errors(s, n)
        size = leading_size(s / n, errors, ends=ends)
        gap = leading_gap(s / n, errors, weights=n, ends=ends)
        leading = truth[size.index]
        others = np.arange(len(n)) != size.index
        true_gap = leading - np.average(truth[others], weights=n[others])
        yield (
            size.value - leading,
            size.corrected - leading,
            gap.corrected - true_gap,
            size.low <= leading <= size.high,
            gap.low <= true_gap <= gap.high,
        )


@pytest.mark.parametrize(
    ("n", "shares", "raw_bias"),
    [
        (EQUAL, spread, -0.065),
        (UNEVEN, spread, -0.076),
        (EQUAL, below(0.12), -0.028),
        (EQUAL, below(0.2), 0.001),
        (np.full(2, 200), below(0.05, 2), -0.008),
    ],
)
def test_the_leading_size_is_unbiased_and_covered(n, shares, raw_bias):
    raw, corrected, gap, covered, gap_covered = np.mean([*audits(n, shares)], axis=0)
    assert raw == pytest.approx(raw_bias, abs=0.006)
    assert max(abs(corrected), abs(gap)) <= 0.02
    assert min(covered, gap_covered) >= 0.90
