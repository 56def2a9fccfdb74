"""Memory that audits take for a row more: measured in processes of their own, never timed."""

import os
import subprocess
import sys

import numpy as np
import polars as pl

FEW, MANY = 50_000, 200_000

# What getrusage tells includes the process that this one was forked from, so Linux's own record
# of the program goes first.
CHILD = """
import resource, sys
from pathlib import Path
from equipoise import audits
config = Path(sys.argv[1])
audits.run(audits.load_config(config), base=config.parent)
status = Path("/proc/self/status")
if status.exists():
    lines = status.read_text().splitlines()
    print(next(int(one.split()[1]) * 1024 for one in lines if one.startswith("VmHWM:")))
else:
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


def images(rows):
    rng = np.random.default_rng(rows)
    return {
        "image_id": pl.Series(np.arange(rows)).cast(pl.String).str.zfill(20),
        "sex": pl.Series(np.array(["Female", "Male"])[rng.integers(0, 2, rows)]),
        "region": pl.Series(np.array([f"region {k}" for k in range(6)])[rng.integers(0, 6, rows)]),
    }


def predictions(folder, rows):
    rng = np.random.default_rng(1)
    names, truth = np.array([f"class {k:02d}" for k in range(20)]), rng.integers(0, 20, rows)
    table = pl.DataFrame(images(rows) | {"target": names[truth]})
    table.write_parquet(folder / "labels.parquet")
    for model in ("first", "second"):
        label = names[(truth + (rng.random(rows) < 0.2)) % 20]
        answers = table.select("image_id").with_columns(label=pl.Series(label))
        answers.sample(fraction=1.0, shuffle=True, seed=2).write_parquet(
            folder / f"{model}.parquet"
        )
    text = """
        audit: predictions
        data: {table: labels.parquet, id: image_id, target: target, groups: [sex, [sex, region]]}
        models:
          first: {table: first.parquet, prediction: label}
          second: {table: second.parquet, prediction: label}
        resampling: {replicates: 20, permutations: 20}
    """
    (folder / "audit.yaml").write_text(text)


def peak(folder, rows):
    folder.mkdir()
    predictions(folder, rows)
    command = [sys.executable, "-c", CHILD, str(folder / "audit.yaml")]
    environment = {**os.environ, "EQUIPOISE_THREADS": "2", "OMP_NUM_THREADS": "1"}
    # What threads of the readers hold at the same moment varies by some megabytes; the rows that
    # the sizes are apart may take a hundred and fifty.
    return int(subprocess.check_output(command, text=True, env=environment).split()[-1])


def test_a_row_more_takes_no_more_than_so_many_bytes(tmp_path):
    small, large = (peak(tmp_path / str(rows), rows) for rows in (FEW, MANY))
    assert (large - small) / (MANY - FEW) < 1000
