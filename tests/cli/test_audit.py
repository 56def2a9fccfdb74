"""`audit`, `check` and `report`: what they write, print and return."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.project import CONFIG, result
from equipoise import audits
from equipoise.evidence import read_predictions
from equipoise.report import read

Command = Callable[..., tuple[int, str, str]]


def measuring(monkeypatch, **changes):
    def measured(ready, **_):
        return result(ready.config, **changes)

    monkeypatch.setattr(audits, "run", measured)


def test_an_audit_writes_a_whole_run(command, project):
    code, out, err = command("audit", "c.yaml", "--out", "runs/one")
    assert (code, err) == (0, "")
    run = project / "runs" / "one"
    assert {path.name for path in run.iterdir()} >= {
        "config.yaml", "findings.json", "findings.parquet", "images.parquet", "manifest.json",
        "predictions", "report.html",
    }  # fmt: skip
    assert (run / "config.yaml").read_text() == CONFIG
    assert read(run).findings[0].metric == "worst_group_accuracy"
    assert read_predictions(run).models["m"].versions["default"].label.tolist() == ["x"] * 8
    assert "note: small data" in out
    assert "verdicts of m: 1 disparity" in out
    assert "report: runs/one/report.html" in out
    assert "Gate: 1 check, 0 breached, 0 could not be checked." in out


def test_the_findings_stand_in_a_table(command, project):
    out = command("audit", "c.yaml")[1]
    row = next(line for line in out.splitlines() if line.startswith("m  "))
    expected = [
        "m",
        "g",
        "worst_group_accuracy",
        "0.600",
        "[0.508,",
        "0.596]",
        "0.061",
        "disparity",
    ]
    assert row.split() == expected


def test_an_audit_as_json(command, project):
    code, out, err = command("audit", "c.yaml", "--out", "r", "--json")
    facts = json.loads(out)
    assert (code, err) == (0, "")
    assert (facts["run"], facts["report"]) == ("r", "r/report.html")
    assert facts["verdicts"] == {"disparity": 1}
    assert facts["findings"][0]["value"] == 0.6
    assert facts["gate"]["passed"] is True


def test_another_run_is_refused_before_anything_is_measured(command, project, monkeypatch):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0

    def never(*args, **kwargs):
        pytest.fail("measured")

    with monkeypatch.context() as patch:
        patch.setattr(audits, "run", never)
        assert command("audit", "c.yaml", "--out", "r")[0] == 2
    assert command("audit", "c.yaml", "--out", "r", "--overwrite")[0] == 0


def test_a_folder_of_other_files_is_refused(command, project):
    assert command("audit", "c.yaml", "--out", "c.yaml")[0] == 2
    (project / "photos").mkdir()
    (project / "photos" / "mine.jpg").touch()
    assert command("audit", "c.yaml", "--out", "photos", "--overwrite")[0] == 2


def test_a_wrong_key_stops_the_audit(command, project):
    Path("c.yaml").write_text(CONFIG.replace("gate:", "gates:"))
    code, out, err = command("audit", "c.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("error: c.yaml, line 5: gates: ")
    assert not (project / "runs").exists()


@pytest.mark.parametrize("target", ["run", "c.yaml"])
@pytest.mark.parametrize(
    ("value", "code", "said"),
    [
        (0.6, 0, "PASSED: "),
        (0.4, 1, "BREACHED: "),
        (float("nan"), 2, "NOT ESTIMABLE: "),
    ],
)
def test_check_holds_the_rules_and_names_what_breaks(
    command,
    project,
    monkeypatch,
    target,
    value,
    code,
    said,
):
    def measured(ready, **_):
        return result(ready.config, reason="too few" * (code == 2), measured=value)

    monkeypatch.setattr(audits, "run", measured)
    assert command("audit", "c.yaml", "--out", "run")[0] == 0
    got, out, err = command("check", target, "--junit", "gate.xml")
    assert (got, err) == (code, "")
    assert out.startswith(said)
    suite = ET.parse("gate.xml").getroot()
    assert suite.get("tests") == "1"
    assert (suite.get("failures"), suite.get("errors")) == (
        str(int(code == 1)),
        str(int(code == 2)),
    )
    got, out, err = command("check", target, "--json")
    assert (got, err) == (code, "")
    assert json.loads(out)["passed"] is (code == 0)


@pytest.mark.parametrize("name", ["check", "report", "compare"])
def test_a_folder_that_is_no_run(command, project, name):
    (project / "empty").mkdir()
    code, out, err = command(name, "empty")
    assert (code, out) == (2, "")
    assert err.startswith("error: empty: ")


def test_a_report_is_written_again(command, project):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    page = project / "r" / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert command("report", "r") == (0, "report: r/report.html\n", "")
    assert page.read_bytes() == first
    assert json.loads(command("report", "r", "--out", "p.html", "--json")[1]) == {
        "run": "r",
        "report": "p.html",
    }
    assert (project / "p.html").read_bytes() == first


def test_a_run_whose_report_was_written_again_can_be_replaced(command, project):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    page = project / "r" / "report.html"
    page.write_text(page.read_text().replace("</body>", "</body> "))
    assert "'report.html'" in command("audit", "c.yaml", "--out", "r", "--overwrite")[2]
    assert command("report", "r")[0] == 0
    assert command("audit", "c.yaml", "--out", "r", "--overwrite")[0] == 0
