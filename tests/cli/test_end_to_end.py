"""The commands with everything behind them, on small tables, good and bad."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise.cli.app import run

Command = Callable[..., tuple[int, str, str]]
CONFIG = """\
audit: predictions
data: {table: labels.csv, id: id, target: y, groups: [g]}
models:
  good: {table: good.csv, prediction: p}
  bad: {table: bad.csv, prediction: p}
resampling: {replicates: 50}
gate:
  - {metric: worst_group_accuracy, min: 0.8}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    ids, truth, group = range(400), rng.integers(0, 3, 400), rng.integers(0, 2, 400)
    wrong = (rng.random(400) < 0.6) & (group == 1)
    _write("labels.csv", "id,y,g", zip(ids, truth, group, strict=True))
    _write("good.csv", "id,p", zip(ids, truth, strict=True))
    _write("bad.csv", "id,p", zip(ids, np.where(wrong, 0, truth), strict=True))
    Path("c.yaml").write_text(CONFIG)
    return tmp_path


def _write(name, header, rows):
    lines = [",".join(map(str, row)) for row in rows]
    Path(name).write_text("\n".join([header, *lines]) + "\n")


def test_from_a_plan_to_a_comparison(command, project):
    assert command("plan", "c.yaml")[0] == 0
    code, out, err = command("audit", "c.yaml", "--out", "r")
    assert (code, err) == (0, "")
    assert "- Accuracy of bad is " in out
    code, out, err = command("check", "r")
    assert (code, err) == (1, "")
    assert "BREACHED: worst_group_accuracy ≥ 0.8: bad, g: breached with" in out
    assert "PASSED: worst_group_accuracy ≥ 0.8: good, g: passed with 1.0000." in out
    assert command("report", "r")[0] == 0
    code, out, err = command("compare", "r", "--out", "both", "--json")
    assert (code, err) == (0, "")
    assert {row["model"] for row in json.loads(out)["ranking"]} == {"good", "bad"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bad.csv", "no.csv", "no.csv"),
        ("target: y", "target: why", "'why'"),
        ("groups: [g]", "groups: [h]", "'h'"),
        (
            "groups: [g]",
            "groups: [g], min_group_size: 500",
            "fewer than two groups have 500 or more rows",
        ),
        ("id: id", "id: g", "column 'g'"),
        ("table: bad.csv", "table: .", "."),
    ],
)
def test_a_bad_input_is_one_error_and_leaves_nothing(command, project, old, new, said):
    Path("c.yaml").write_text(CONFIG.replace(old, new))
    before = sorted(project.iterdir())
    for arguments in (["audit", "c.yaml", "--out", "runs/r"], ["check", "c.yaml"]):
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("error: ")
        assert said in err
        assert "unexpected" not in err
        assert len(err.splitlines()) == 1
    assert sorted(set(project.iterdir()) - {project / "runs"}) == before
    assert [*project.glob("runs/*")] == []


CELLS = st.text(alphabet='ab,"\n\r\t ;0.é\x00\ufeff', max_size=8) | st.sampled_from(
    ["nan", "inf", "-1", "1e999", "true", "=1+1", "\x1b[31m"]
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6),
    st.lists(st.tuples(CELLS, CELLS), max_size=6),
    st.booleans(),
)
def test_no_table_makes_a_traceback(
    project,
    capsys,
    labels,
    predictions,
    lenient,
):
    _write("labels.csv", "id,y,g", labels)
    _write("good.csv", "id,p", predictions)
    _write("bad.csv", "id,p", predictions[::-1])
    extra = "resampling: {method: none}\n"
    if lenient:
        loose = "groups: [g], min_group_size: 1, max_unmatched: 1}"
        extra += "metrics: {skewsize: {min_expected: 0}}\n"
        Path("c.yaml").write_text(
            CONFIG.replace("groups: [g]}", loose)
            .replace("prediction: p}", "prediction: p, open_vocabulary: true}")
            .replace("resampling: {replicates: 50}\n", extra)
        )
    else:
        Path("c.yaml").write_text(CONFIG.replace("resampling: {replicates: 50}\n", extra))
    code = run(["check", "c.yaml"])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "unexpected" not in err
    assert "Traceback" not in err + out
    assert "\x1b" not in err + out


@given(content=st.binary(max_size=200))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet", "labels.jsonl"])
def test_no_bytes_of_a_file_make_a_traceback(project, capsys, name, content):
    Path(name).write_bytes(content)
    Path("c.yaml").write_text(CONFIG.replace("labels.csv", name))
    assert run(["plan", "c.yaml"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "unexpected" not in err
