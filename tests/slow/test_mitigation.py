"""The scenes as an experiment, on the shipped models; decisions 0011 and 0012 tell of others."""

import pytest

from equipoise.cli.mitigation_world import recipes, scenes_experiment

pytestmark = pytest.mark.slow


def test_recipes_that_transfer_and_those_that_do_not_are_told() -> None:
    found = scenes_experiment()
    said = {one.recipe: one.conclusion for one in found.outcomes}
    assert said.keys() == {recipe.name for recipe in recipes()}
    assert said["set_shrinkage"] == said["matched_prompts"] == "transfers"
    assert said["contrastive"] == "does not transfer"
    for row in found.rows:
        if said[row.recipe] == "transfers" and row.role == "bias":
            assert row.n == 24
            assert row.q_value < 0.05
            assert row.before - row.after >= 0.5 * (row.before - row.floor)
        if said[row.recipe] == "transfers" and row.measure == "accuracy":
            assert row.difference >= -0.02
