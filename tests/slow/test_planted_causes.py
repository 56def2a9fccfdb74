"""Planted causes end as one conclusion each, however many numbers they move."""

import pytest

from conclusions.planted_causes import SIZES, outcome, world

BLOCKS, WORLDS = 5, 20
LEAST = 18


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_each_cause_has_a_conclusion_and_there_are_hardly_more(k, n, block):
    outcomes = [outcome(world(seed, k, n)) for seed in range(WORLDS * block, WORLDS * (block + 1))]
    assert sum(named and count <= k + 1 for named, count in outcomes) >= LEAST
