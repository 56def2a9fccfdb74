"""Causes in planted worlds: which ranks first, and whether intervals cover what it explains."""

from functools import cache

import pytest

from cause_worlds import KINDS, World, ranked_first
from equipoise import metrics as m
from equipoise.stats import Bootstrap

pytestmark = pytest.mark.slow


@pytest.mark.slow(whole=True)
def test_the_planted_cause_ranks_first_in_18_of_20_worlds(tmp_path):
    right = 0
    for kind in KINDS:
        for seed in range(1, 5):
            folder = tmp_path / f"{kind} {seed}"
            folder.mkdir()
            right += ranked_first(kind, folder, seed)
    assert right >= 18


@cache
def planted_difference(kind):
    """Δ with the cause in the generator, less Δ without it, from many images."""
    return World(kind, 400_000, 7).gap - World(kind, 400_000, 7, planted=False).gap


@pytest.mark.parametrize("kind", [kind for kind, cause in KINDS.items() if cause])
def test_intervals_cover_the_planted_difference(kind):
    covered = 0
    for seed in range(50):
        world = World(kind, 1500, seed)
        cause, method = world.cause()
        estimate = m.explained_disparity(
            world.right, world.group, cause, how=method, first="women", resampling=Bootstrap(400, 1)
        )
        low, high = estimate.interval().low, estimate.interval().high
        covered += bool(low <= planted_difference(kind) <= high)
    assert covered >= 45


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_of_a_world_is_planted(kind):
    assert abs(World(kind, 400_000, 7).gap) > 0.15
    assert World(kind, 400_000, 7, planted=False).gap == pytest.approx(0.0, abs=0.01)
