"""A generation that is killed or interrupted at random moments ends as one that never was."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from equipoise.counterfactuals import Generated, generate_sets
from generator_models import captions

N, PART, CANDIDATES = 4 * 6 * 25, 12, 25
MODEL = "python:generator_models:swatches"
HERE = Path(__file__).parent.parent
PROGRAM = """
import sys
from pathlib import Path
from equipoise.counterfactuals import generate_sets
from generator_models import captions

def tell(step, done, total):
    print(done, flush=True)

print(0, flush=True)
model = "python:generator_models:swatches"
generate_sets(captions(), model, Path(sys.argv[1]), candidates=25, part=12, progress=tell)
"""


def stopped(store: Path, target: int, delay: float, number: int) -> int:
    """Run until so many images are done and a moment more, then send a signal; the exit code."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=HERE,
        env=os.environ | {"SWATCH_SECONDS": "0.002"},
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= target:
            break
    time.sleep(delay)
    process.send_signal(number)
    process.stdout.close()
    return process.wait()


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
    number: int, times: int, tmp_path: Path
) -> None:
    how = {"candidates": CANDIDATES, "part": PART}
    whole = generate_sets(captions(), MODEL, tmp_path / "whole", **how)
    assert whole.table.num_rows == N
    rng = np.random.default_rng(number)
    targets = np.sort(rng.integers(0, N - 100, times))
    codes = [
        stopped(tmp_path / "store", int(target), float(rng.uniform(0, 0.05)), number)
        for target in targets
    ]
    assert sum(code != 0 for code in codes) >= times - 1
    found = generate_sets(captions(), MODEL, tmp_path / "store", **how)
    assert 0 < found.computed <= N - targets[-1] + PART
    check(found, whole)
