"""A generation that is killed or interrupted at random moments ends as one that never was."""

import signal
from pathlib import Path

import numpy as np
import pytest

from equipoise.counterfactuals import Generated, generate_sets
from generator_models import captions
from killed_work import generate, stopped

N, PART, CANDIDATES = 4 * 6 * 25, 12, 25
MODEL = "python:generator_models:swatches"


def check(found: Generated, whole: Generated) -> None:
    """Nothing lost, nothing doubled, nothing left behind, no set incomplete."""
    assert found.table.equals(whole.table)
    assert found.inputs == whole.inputs
    names = [[path.name for path in one.folder.iterdir()] for one in (found, whole)]
    assert sorted(names[0]) == sorted(names[1])
    for part in whole.folder.glob("part-*.parquet"):
        assert (found.folder / part.name).read_bytes() == part.read_bytes()
    counts = found.table.group_by(["set", "candidate"]).aggregate(
        [("caption_id", "count_distinct")]
    )
    assert {*counts["caption_id_count_distinct"].to_pylist()} == {6}


@pytest.mark.parametrize(
    ("number", "times"),
    [
        (signal.SIGKILL, 4),
        (signal.SIGINT, 2),
        pytest.param(signal.SIGKILL, 20, marks=pytest.mark.slow),
    ],
)
def test_stopped_at_random_moments_it_ends_as_if_it_never_was(
    number: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"candidates": CANDIDATES, "part": PART}
    whole = generate_sets(captions(), MODEL, tmp_path / "whole", **how)
    assert whole.table.num_rows == N
    rng = np.random.default_rng(number)
    targets = np.sort(rng.integers(0, N - 100, times))
    monkeypatch.setenv("SWATCH_SECONDS", "0.002")
    given = tmp_path / "store", MODEL, how
    codes = [
        stopped(generate, given, target=target, delay=rng.uniform(0, 0.05), number=number)
        for target in targets
    ]
    assert sum(code != 0 for code in codes) >= times - 1
    found = generate_sets(captions(), MODEL, tmp_path / "store", **how)
    assert 0 < found.computed <= N - targets[-1] + PART
    check(found, whole)
