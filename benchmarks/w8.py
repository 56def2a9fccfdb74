"""W8: the command on a small table, beside importing the libraries that it stands on.

The config is examples/predictions.yaml, with drawn tables of the same shape in the place of its
own: 3,000 images, two models, race and race × gender. Both sides are processes, from start to end;
a run with every file and its report is written, and bytecode and kernels lie in their caches.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import yaml

from benchmarks import harness
from benchmarks.harness import Row, alternate, audit, python, quick

EXAMPLE = Path(__file__).parent.parent / "examples" / "predictions.yaml"
LIBRARIES = "numpy, polars, pyarrow, numba, altair, pydantic, scipy.stats"
GENDERS, RACES = np.array(["Female", "Male"]), np.array([f"race {index}" for index in range(7)])


def write_evidence(folder, rows):
    """Write the config of the example, and tables of its shape; models err in one row of five."""
    rng = np.random.default_rng(0)
    gender, race = rng.integers(0, 2, rows), rng.integers(0, 7, rows)
    ids = [f"image_{index:05d}.jpg" for index in range(rows)]
    labels = pl.DataFrame({"image_id": ids, "gender": GENDERS[gender], "race": RACES[race]})
    labels.write_csv(folder / "labels.csv")
    config = yaml.safe_load(EXAMPLE.read_text("utf-8"))
    config["data"]["table"] = "labels.csv"
    for name, model in config["models"].items():
        answers = GENDERS[gender ^ (rng.random(rows) < 0.2)]
        model["table"] = f"{name}.csv"
        pl.DataFrame({"image_id": ids, "gender": answers}).write_csv(folder / model["table"])
    (folder / "audit.yaml").write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")


def rows():
    """Yield the row of the workload."""
    n_images = 1_000 if quick() else 3_000
    with tempfile.TemporaryDirectory() as folder:
        write_evidence(Path(folder), n_images)
        imports = partial(python, "-c", f"import {LIBRARIES}")
        ours, theirs = alternate(partial(audit, Path(folder)), imports, repeats=11)
    yield Row(
        "W8", "a whole audit by the command, with report", f"{n_images:,} images, two models",
        "importing its libraries", theirs, ours, goal=1.6, over="the imports",
        note=f"imports of {LIBRARIES}",
    )  # fmt: skip


if __name__ == "__main__":
    harness.main(rows)
