"""What a user is promised of a whole run: no network, the same bytes whatever the threads."""

import numpy as np
import polars as pl
import pytest

from alone import alone

CONFIG = """
audit: predictions
data: {table: labels.csv, id: id, target: kind, groups: [place, [place, time]], unit: scene}
models:
  ours: {table: ours.csv, prediction: kind}
  theirs: {table: theirs.csv, prediction: kind, refused: [no]}
resampling: {replicates: 200, seed: 3}
gate:
  - {metric: accuracy, of: worst_group, min: 0.1}
"""

# A guard in the process itself: any socket, even one that is never connected, ends the run.
GUARD = """
import socket, sys

class Refused(socket.socket):
    def __init__(self, *args, **kwargs):
        print("a socket was opened", file=sys.stderr)
        raise SystemExit(99)

socket.socket = Refused
socket.create_connection = Refused
from equipoise.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Audit the same tables with one thread and with two; return the processes that did it."""
    folder = tmp_path_factory.mktemp("runs")
    rng, n, kinds = np.random.default_rng(5), 600, ["cat", "dog", "owl"]
    table = pl.DataFrame({
        "id": [f"i{index}" for index in range(n)], "kind": rng.choice(kinds, n),
        "place": rng.choice(["in", "out"], n), "time": rng.choice(["day", "night"], n),
        "scene": [f"s{index // 4}" for index in range(n)],
    })  # fmt: skip
    table.write_csv(folder / "labels.csv")
    for name, choices in (("ours", kinds), ("theirs", [*kinds, "no"])):
        predicted = np.where(rng.random(n) < 0.3, rng.choice(choices, n), table["kind"])
        table.select("id", kind=pl.Series(predicted)).write_csv(folder / f"{name}.csv")
    (folder / "audit.yaml").write_text(CONFIG)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS")
    arguments = ("audit", str(folder / "audit.yaml"), "--out")
    return {
        folder / f"run{threads}": alone(
            GUARD, *arguments, str(folder / f"run{threads}"), **dict.fromkeys(names, threads)
        )
        for threads in ("1", "2")
    }


def test_no_audit_of_tables_opens_a_socket(runs):
    assert [(process.returncode, process.stderr) for process in runs.values()] == [(0, "")] * 2


def test_findings_have_the_same_bytes_with_one_thread_and_with_two(runs):
    first, second = runs
    for file in ("findings.parquet", "findings.json", "tables/classes.parquet"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
