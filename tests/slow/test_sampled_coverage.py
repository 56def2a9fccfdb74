"""Intervals from human labels on a sample hold the truth in 94 % of samples or more."""

import numpy as np
import pytest

from label_worlds import World, coverage, recalls

pytestmark = pytest.mark.slow

RUNS = 2500
# 94 %, less two standard errors of the share of runs.
LEAST = 0.94 - 2 * np.sqrt(0.94 * 0.06 / RUNS)
WORLDS = {
    "group-dependent errors": {"a": (3000, 0.3, 0.05, 0.02), "b": (1500, 0.4, 0.3, 0.1)},
    "few errors": {"a": (3000, 0.3, 0.01, 0.0), "b": (1500, 0.3, 0.02, 0.02)},
    "no errors in a group": {"a": (3000, 0.3, 0.0, 0.0), "b": (3000, 0.5, 0.2, 0.2)},
    "rare attribute": {"a": (4000, 0.02, 0.3, 0.01), "b": (4000, 0.05, 0.5, 0.02)},
    "useless machine": {"a": (3000, 0.5, 0.5, 0.5), "b": (3000, 0.6, 0.5, 0.5)},
    "small group": {"a": (5000, 0.4, 0.1, 0.1), "b": (120, 0.3, 0.3, 0.1)},
}


@pytest.mark.parametrize("name", WORLDS)
def test_shares_and_gap_from_200_labels(name):
    coverages, _ = coverage(WORLDS[name], 200, RUNS)
    print(name, coverages)  # noqa: T201 - docs/labels.md has the numbers
    assert coverages.min() >= LEAST


@pytest.mark.parametrize("name", ["group-dependent errors", "few errors", "useless machine"])
def test_rates_given_the_human_label(name):
    coverages, _ = coverage(WORLDS[name], 200, RUNS, estimate=recalls, truth=World.recall)
    print(name, coverages)  # noqa: T201
    assert coverages.min() >= LEAST


def test_machine_labels_that_explain_60_percent_narrow_intervals_by_30_percent():
    groups = dict.fromkeys("ab", (3000, 0.5, 0.1127, 0.1127))
    widths, alone = (
        coverage(groups, 200, RUNS // 5, labels_alone=choice)[1] for choice in (False, True)
    )
    print("widths", widths, alone)  # noqa: T201
    assert (widths <= 0.7 * alone).all()
