"""The scenes as an experiment, on the shipped models; docs/mitigation.md has the numbers."""

import pytest

from equipoise.cli.mitigation_world import build_recipes, run_demonstration

pytestmark = pytest.mark.slow(whole=True)


def test_the_conclusion_separates_recipes_that_transfer():
    tables = run_demonstration().tables
    outcomes = tables["mitigation_recipes"].to_pylist()
    conclusions = {row["recipe"]: row["conclusion"] for row in outcomes}
    assert conclusions.keys() == {recipe.name for recipe in build_recipes()}
    assert conclusions["matched_prompts"] == "transfers"
    assert conclusions["contrastive"] == "does not transfer"
    for row in tables["mitigation"].to_pylist():
        if conclusions[row["recipe"]] == "transfers" and row["role"] == "bias":
            assert row["n"] == 24
            assert row["q_value"] < 0.05
            assert row["before"] - row["after"] >= 0.5 * (row["before"] - row["floor"])
        if conclusions[row["recipe"]] == "transfers" and row["measure"] == "accuracy":
            assert row["difference"] >= -0.02
