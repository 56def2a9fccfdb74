"""`equipoise compare` with runs of several kinds: a mitigation's gain and its price on one page."""

import json
from pathlib import Path

import pytest

from equipoise.cli.app import run

PREDICTIONS = """
audit: predictions
data: {table: table.csv, id: id, target: y, groups: [g]}
models:
  one: {table: table.csv, prediction: p}
  two: {table: table.csv, prediction: q}
resampling: {replicates: 200}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    config = EXAMPLES / "similarity" / "audit.yaml"
    for name in ("one", "two"):
        assert run(["audit", str(config), "--out", str(folder / name)]) == 0
    return folder


def test_with_predictions_one_page_holds_both(runs, command):
    rows = [f"{i},{'xy'[i % 2]},{'ab'[i // 2 % 2]},{'xy'[i % 3 == 0]},x" for i in range(120)]
    (runs / "table.csv").write_text("id,y,g,p,q\n" + "\n".join(rows) + "\n")
    (runs / "predictions.yaml").write_text(PREDICTIONS)
    labelled = runs / "predictions"
    assert run(["audit", str(runs / "predictions.yaml"), "--out", str(labelled)]) == 0
    run_paths = (f"{runs}/one", f"{runs}/two", str(labelled))
    code, out, _ = command("compare", *run_paths, "--out", f"{runs}/both", "--json")
    assert code == 0
    output = json.loads(out)
    assert {"changes", "ranking"} <= output.keys()
    page = (runs / "both" / "report.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in ("changes", "ranking", "differences"))


def test_a_comparison_is_no_run(runs, command):
    out = runs / "first"
    assert command("compare", f"{runs}/one", f"{runs}/two", "--out", str(out))[0] == 0
    code, _, err = command("compare", str(out), f"{runs}/one")
    assert code == 2
    assert "first: a comparison; expected runs of `equipoise audit`" in err
