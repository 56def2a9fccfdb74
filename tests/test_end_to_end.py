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
for command in " ".join(sys.argv[1:]).split(" , "):
    if code := run(command.split()):
        sys.exit(code)
"""


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, n, kinds = np.random.default_rng(5), 600, ["cat", "dog", "owl"]
    table = pl.DataFrame({
        "id": [f"i{index}" for index in range(n)], "kind": rng.choice(kinds, n),
        "place": rng.choice(["in", "out"], n), "time": rng.choice(["day", "night"], n),
        "scene": [f"s{index // 4}" for index in range(n)],
    })  # fmt: skip
    table.write_csv(tmp_path / "labels.csv")
    for name, choices in (("ours", kinds), ("theirs", [*kinds, "no"])):
        predicted = np.where(rng.random(n) < 0.3, rng.choice(choices, n), table["kind"])
        table.select("id", kind=pl.Series(predicted)).write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "audit.yaml").write_text(CONFIG)
    return tmp_path


def test_no_command_opens_a_socket(tables):
    done = alone(
        GUARD,
        "plan audit.yaml , audit audit.yaml --out run , report run",
        ", compare run --out comparison , check run , metrics skewsize",
    )
    assert done.returncode == 0, done.stderr
    assert (tables / "comparison" / "report.html").stat().st_size > 10_000


def test_findings_have_the_same_bytes_with_one_thread_and_with_two(tables):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "ARROW_NUM_THREADS")
    for threads in ("1", "2"):
        limits = dict.fromkeys(names, threads)
        done = alone(GUARD, "audit", "audit.yaml", "--out", f"run{threads}", **limits)
        assert done.returncode == 0, done.stderr
    for file in ("findings.parquet", "findings.json", "tables/classes.parquet"):
        assert (tables / "run1" / file).read_bytes() == (tables / "run2" / file).read_bytes()
