"""On drawn faces a network reads the hair, and mixing faces makes it read the tool."""

import pytest

from equipoise.cli.augmentation import run_synthetic
from equipoise.core import Verdict

pytestmark = pytest.mark.slow(whole=True)


def test_mixing_helps_and_the_experiment_shows_it(tmp_path):
    result = run_synthetic(
        tmp_path, images=1600, repeats=3, networks=("cnn",), seed=0, progress=None
    )
    rows = {row["arm"]: row for row in result.tables["augmentation"].to_pylist()}
    assert rows["biased"]["accuracy"] < 0.8
    assert rows["balanced"]["accuracy"] > 0.95
    mixed, _, balanced = result.findings
    assert mixed.verdict is Verdict.DISPARITY
    assert mixed.value > 0.15
    assert balanced.verdict is Verdict.DISPARITY
    # Whole faces pull features of one group's tools together; covered ones do so less.
    associations = result.tables["augmentation_associations"].to_pylist()

    def mean(arm, faces):
        values = [r["value"] for r in associations if (r["arm"], r["faces"]) == (arm, faces)]
        return sum(map(abs, values)) / len(values)

    assert mean("biased", "whole") > 2 * mean("balanced", "whole")
