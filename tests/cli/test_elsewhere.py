"""Runs whose configuration has relative paths, used from another folder."""

import json

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from PIL import Image

from equipoise.cli.app import app
from equipoise.evidence.examples import names_files
from equipoise.review.server import application
from review.browser import HOST, TOKEN, ask

ROWS = 80
MODELS = """
models:
  m: {table: said.csv, prediction: said, id: id}
  n: {table: said.csv, prediction: job, id: id}
gate:
  - {metric: accuracy, min: 0.1}
resampling: {replicates: 20, permutations: 99}
"""
CONFIGS = {
    "a table": "data: {table: people.csv, id: id, target: job, groups: [gender]}",
    "pictures": (
        "data:\n  images: {table: people.csv, id: id, path: file, root: pictures}\n"
        "  target: job\n  groups: [gender]"
    ),
}


def equipoise(*arguments):
    outcome = CliRunner().invoke(app, [*map(str, arguments)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


@pytest.fixture(params=CONFIGS)
def run(request, tmp_path, monkeypatch):
    """Return a run, seen from another folder than the one where it was made."""
    home, other = tmp_path / "home", tmp_path / "other" / "folder"
    (home / "pictures").mkdir(parents=True)
    other.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for place in range(ROWS):
        level = int(rng.integers(256))
        Image.new("RGB", (4, 4), (level, level, level)).save(home / f"pictures/{place}.png")
    jobs = ["nurse", "nurse", "pilot", "pilot"] * (ROWS // 4)
    people = pl.DataFrame({
        "id": [f"i{place}" for place in range(ROWS)],
        "file": [f"{place}.png" for place in range(ROWS)],
        "gender": ["woman", "man"] * (ROWS // 2),
        "job": jobs,
        "light": rng.choice(["day", "night"], ROWS).tolist(),
    })  # fmt: skip
    people.write_csv(home / "people.csv")
    wrong = pl.Series(np.arange(ROWS) % 8 == 0)
    people.with_columns(said=pl.when(wrong).then(pl.lit("pilot")).otherwise("job")).write_csv(
        home / "said.csv"
    )
    (home / "audit.yaml").write_text(f"audit: predictions\n{CONFIGS[request.param]}{MODELS}")
    monkeypatch.chdir(home)
    equipoise("audit", "audit.yaml", "--out", "runs/first")
    monkeypatch.chdir(other)
    return home / "runs" / "first"


@pytest.mark.parametrize("command", ["show", "check", "report", "compare", "export"])
def test_commands_read_a_run_from_another_folder(run, command):
    assert equipoise(command, run)


def test_causes_find_the_columns_of_the_configuration(run):
    ranked = json.loads(equipoise("causes", run, "--model", "m", "--cause", "light", "--json"))
    assert "light" in json.dumps(ranked)


def test_pictures_are_found_from_another_folder(run):
    if not names_files(run):
        return
    equipoise("causes", run, "--model", "m", "--cause", "brightness")
    status, _, page = ask(application(run, HOST, TOKEN), "/")
    assert status == 200
    assert b"nurse" in page


def test_a_run_moves_with_its_data(run, tmp_path, monkeypatch):
    moved = (tmp_path / "home").rename(tmp_path / "moved")
    monkeypatch.chdir(moved / "runs")
    assert equipoise("causes", "first", "--model", "m", "--cause", "light")
