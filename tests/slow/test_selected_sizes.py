"""Sizes of conclusions, corrected for selection: bias and coverage in simulated audits.

400 audits of each world, of two balanced classes with the same accuracy. A bias over all audits has
a Monte Carlo error of 0.2 to 0.5 points; among those with a disparity it is part of the limit.
"""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise.core import Aggregate

pytestmark = pytest.mark.slow(whole=True)

WORLDS = 400
LARGEST_BIAS, SMALLEST_COVERAGE, FEWEST = 0.02, 0.90, 30
EQUAL, UNEVEN, TWO = np.full(20, 100), np.geomspace(30, 833, 20).astype(int), np.full(2, 200)


class Errors(NamedTuple):
    """Errors of a conclusion's numbers; negative ones exaggerate."""

    raw: float
    group: float
    raw_gap: float
    gap: float
    covered: bool
    disparity: bool


def spread(rng):
    return np.clip(0.8 + 0.03 * rng.standard_normal(20), 0, 1)


def below(points, groups=20):
    return lambda rng: np.r_[0.8 - points, np.full(groups - 1, 0.8)]


def table(rng, n, accuracy):
    group = np.repeat([f"g{place:02d}" for place in range(len(n))], n)
    label = rng.choice(["a", "b"], len(group))
    right = rng.random(len(group)) < np.repeat(accuracy, n)
    predicted = np.where(right, label, np.where(label == "a", "b", "a"))
    return pl.DataFrame({"group": group, "label": label, "predicted": predicted})


def errors_of(result, n, accuracy):
    """Return the errors of the leading conclusion; None where its metric compares no groups."""
    conclusion = result.conclusions[0]
    if np.isnan(conclusion.corrected):
        return None
    finding = result.findings[conclusion.finding]
    values = {part.group: part.value for part in finding.by_group}
    truth = dict(zip((f"g{place:02d}" for place in range(len(n))), accuracy, strict=True))
    rows = dict(zip(truth, n, strict=True))
    if conclusion.metric in ("demographic_parity", "selection_rate"):
        truth = dict.fromkeys(truth, 0.5)
    elif np.mean([*values.values()]) < 0.5:
        truth = {group: 1 - share for group, share in truth.items()}
    # Equal groups are said to be the same: the first stands for both.
    group = conclusion.group or finding.by_group[0].group
    value = values[group] if math.isnan(conclusion.group_value) else conclusion.group_value
    others = [name for name in truth if name != group]
    base = truth.get(conclusion.other)
    if base is None:
        base = np.average([truth[group] for group in others], weights=[rows[g] for g in others])
    side = -1 if conclusion.group_value > conclusion.other_value else 1
    gap = side * (base - truth[group])
    sign = -side if conclusion.aggregate is Aggregate.AGAINST_REST else 1
    return Errors(
        side * (value - truth[group]),
        side * (conclusion.group_corrected - truth[group]),
        gap - sign * conclusion.size,
        gap - sign * conclusion.corrected,
        conclusion.group_low <= truth[group] <= conclusion.group_high,
        conclusion.verdict == "disparity",
    )


def audits(n, shares):
    for seed in range(WORLDS):
        rng = np.random.default_rng([seed, len(n), int(n[0])])
        accuracy = shares(rng)
        rows = table(rng, n, accuracy)
        result = equipoise.audit(rows, target="label", pred="predicted", groups="group")
        if (errors := errors_of(result, n, accuracy)) is not None:
            yield errors


@pytest.mark.parametrize(
    ("n", "shares", "largest"),
    [
        pytest.param(EQUAL, spread, 0.05, id="20 groups"),
        pytest.param(UNEVEN, spread, LARGEST_BIAS, id="20 uneven groups"),
        pytest.param(EQUAL, below(0.12), LARGEST_BIAS, id="12 points below 19"),
        pytest.param(EQUAL, below(0.2), LARGEST_BIAS, id="20 points below 19"),
        pytest.param(TWO, below(0.05, 2), LARGEST_BIAS, id="two groups, 5 points"),
        pytest.param(TWO, below(0.10, 2), LARGEST_BIAS, id="two groups, 10 points"),
    ],
)
def test_the_leading_size_is_unbiased_and_covered(n, shares, largest):
    errors = np.array([*audits(n, shares)], np.float64)
    raw, group, raw_gap, gap, covered, _ = errors.mean(axis=0)
    assert len(errors) > 0.9 * WORLDS
    assert abs(group) <= LARGEST_BIAS
    assert covered >= SMALLEST_COVERAGE
    assert abs(gap) < abs(raw_gap)
    # Selected by significance as well: the rarer a disparity, the more it exaggerates.
    disparities = errors[errors[:, -1] == 1]
    if len(disparities) >= FEWEST:
        raw, group = disparities[:, :2].mean(axis=0)
        monte_carlo = disparities[:, 1].std() / np.sqrt(len(disparities))
        assert abs(group) < abs(raw)
        assert abs(group) <= largest + 2 * monte_carlo


def test_two_equal_groups_keep_the_bias_of_their_order():
    errors = np.array([*audits(TWO, below(0.0, 2))], np.float64)
    _, group, _, gap, covered, _ = errors.mean(axis=0)
    # Without a difference the lower of two groups is low by chance: 0.56 standard errors.
    assert group == pytest.approx(-0.02, abs=0.008)
    assert gap == pytest.approx(-0.034, abs=0.01)
    assert covered >= SMALLEST_COVERAGE
