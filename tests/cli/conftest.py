"""A small project in the working directory: one model that is right, one that fails a group."""

import re
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


def write_project():
    """Write the project into the working directory."""
    rng = np.random.default_rng(0)
    ids, truth, group = range(400), rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    wrong = (rng.random(400) < 0.6) & (group == 1)
    write_csv("labels.csv", "id,y,g", zip(ids, truth, group, strict=True))
    write_csv("good.csv", "id,p", zip(ids, truth, strict=True))
    write_csv("bad.csv", "id,p", zip(ids, np.where(wrong, 1 - truth, truth), strict=True))
    Path("c.yaml").write_text(CONFIG)


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_project()
    return tmp_path


def one_line(err):
    """Undo the line breaks of an error message."""
    start = re.search("^error: ", err, re.MULTILINE)
    if start is None:
        return err
    return err[: start.start()] + re.sub(r"\n(?:  +|(?=To do: ))", " ", err[start.start() :])


@pytest.fixture
def raw_command(capsys):
    """Run the command line here; return its exit code, stdout and stderr."""

    def ran(*arguments):
        capsys.readouterr()
        code = run([*arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return ran


@pytest.fixture
def command(raw_command):
    """Run the command line here; return its exit code, stdout and errors of one line."""

    def ran(*arguments):
        code, out, err = raw_command(*arguments)
        return code, out, one_line(err)

    return ran
