"""A small project in the working directory: one model that is right, one that fails a group."""

from pathlib import Path

import numpy as np
import pytest

from equipoise.cli.app import run

CONFIG = """\
audit: predictions
data: {table: labels.csv, id: id, target: y, groups: [g]}
models:
  good: {table: good.csv, prediction: p}
  bad: {table: bad.csv, prediction: p}
resampling: {replicates: 200}
gate:
  - {metric: accuracy, of: worst_group, min: 0.8}
"""


def write_csv(name, header, rows):
    lines = [",".join(map(str, row)) for row in rows]
    Path(name).write_text("\n".join([header, *lines]) + "\n")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids, truth, group = range(400), rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    wrong = (rng.random(400) < 0.6) & (group == 1)
    write_csv("labels.csv", "id,y,g", zip(ids, truth, group, strict=True))
    write_csv("good.csv", "id,p", zip(ids, truth, strict=True))
    write_csv("bad.csv", "id,p", zip(ids, np.where(wrong, 1 - truth, truth), strict=True))
    Path("c.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def command(capsys):
    """Run the command line here; give its exit code, stdout and stderr."""

    def ran(*arguments):
        capsys.readouterr()
        code = run([*arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return ran
