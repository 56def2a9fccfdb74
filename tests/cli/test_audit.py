"""`plan`, `audit`, `check`, `report` and `compare` on small tables, good and bad."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import equipoise
from cli.conftest import CONFIG
from equipoise import audits
from equipoise.cli.runs import _record
from equipoise.core import RunError, Verdict
from equipoise.evidence import read_predictions
from equipoise.report import read
from equipoise.report.concluding import conclusions_of
from report.synthetic import comparison


def test_an_audit_writes_a_whole_run(command, project):
    code, out, err = command("audit", "c.yaml", "--out", "runs/one")
    assert (code, err) == (0, "")
    folder = project / "runs" / "one"
    assert {path.name for path in folder.iterdir()} >= {
        "config.yaml", "findings.json", "findings.parquet", "images.parquet", "manifest.json",
        "predictions", "report.html",
    }  # fmt: skip
    assert (folder / "config.yaml").read_text() == CONFIG
    findings = read(folder).findings
    assert len(read_predictions(folder).models["bad"].versions["default"].label) == 400
    assert "bad is right for " in " ".join(out.split())
    assert len(out.splitlines()) <= 30
    assert max(map(len, out.splitlines())) <= 80
    assert "report runs/one/report.html" in out
    _, out, _ = command("show", "runs/one", "--all")
    assert "note: Groups are as the data label them" in out
    gap = next(
        finding
        for finding in findings
        if (finding.model, finding.metric, finding.aggregate) == ("bad", "accuracy", "difference")
        and finding.tested
        and not finding.subject
    )
    start = "bad    g       accuracy difference"
    rows = [line.split() for line in out.splitlines() if line.startswith(start)]
    assert (f"{gap.value:.3f}", "Disparity") in [(row[4], row[-1]) for row in rows]
    output = json.loads(command("audit", "c.yaml", "--out", "r", "--json")[1])
    assert (output["run"], output["report"]) == ("r", "r/report.html")
    assert gap.value in [row["value"] for row in output["findings"]]


def test_a_run_of_the_same_configuration_is_named(command, project):
    assert command("audit", "c.yaml", "--out", "runs/one")[0] == 0
    code, _, err = command("audit", "c.yaml", "--out", "runs/one")
    text = " ".join(err.split())
    assert code == 2
    assert "runs/one: holds the run of this configuration already." in text
    assert "runs/one/report.html, or pass --overwrite" in text
    (project / "c.yaml").write_text(CONFIG + "\n# another\n")
    assert "holds a run already" in command("audit", "c.yaml", "--out", "runs/one")[2]
    assert command("audit", "c.yaml", "--out", "runs/one", "--overwrite")[0] == 0


def test_conclusions_in_json_name_findings_of_the_same_document(command, project):
    documents = [json.loads(command("audit", "c.yaml", "--out", "r", "--json")[1])]
    documents.append(json.loads(command("show", "r", "--json")[1]))
    assert documents[0]["conclusions"] == documents[1]["conclusions"]
    documents.append(json.loads(command("compare", "r", "--out", "both", "--json")[1]))
    for folder, document in zip(("r", "r", "both"), documents, strict=True):
        by_place = {row["place"]: row for row in document["findings"]}
        assert len(by_place) == len(document["findings"])
        measured = read(project / folder).findings
        assert all(measured[place].metric == row["metric"] for place, row in by_place.items())
        assert document["conclusions"]
        for conclusion in document["conclusions"]:
            stated = by_place[conclusion["finding"]]
            assert (stated["metric"], stated["groups"]) == (
                conclusion["metric"], conclusion["groups"],
            )  # fmt: skip
            assert {*conclusion["restated_by"]} <= {*by_place}


def test_a_reverse_of_a_comparison_has_its_verdict():
    first = comparison().conclusions or conclusions_of(comparison().findings, ())
    conclusion = next(item for item in first if item.standings)
    reversed_twice = replace(conclusion, reverse=replace(conclusion, verdict=Verdict.DISPARITY))
    assert _record(reversed_twice)["reverse"]["verdict"] == "difference"


def test_a_comparison_never_replaces_a_run_that_it_compares(command, project):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    assert command("audit", "c.yaml", "--out", "s")[0] == 0
    before = (project / "r/findings.json").read_bytes()
    for out in ("r", "./s/../r", str(project / "r")):
        code, _, err = command("compare", "r", "s", "--out", out, "--overwrite")
        assert (code, (project / "r/findings.json").read_bytes()) == (2, before)
        assert "would replace this run" in err
    for again in ("r", "./s/../r", str(project / "r")):
        code, _, err = command("compare", "r", again, "--out", "both")
        assert code == 2
        assert "twice" in err
    result = equipoise.compare(project / "r", project / "s")
    for folder in ("r", "s"):
        with pytest.raises(RunError):
            result.save(project / folder, overwrite=True)
    assert (project / "r/findings.json").read_bytes() == before
    result.save(project / "both")
    assert result.save(project / "both", overwrite=True).findings == result.findings


def test_another_run_is_refused_before_anything_is_measured(command, project, monkeypatch):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    with monkeypatch.context() as patch:
        patch.setattr(audits, "run", lambda *_, **__: pytest.fail("measured"))
        assert command("audit", "c.yaml", "--out", "r")[0] == 2
        assert command("audit", "c.yaml", "--out", "c.yaml")[0] == 2
        (project / "photos").mkdir()
        (project / "photos" / "mine.jpg").touch()
        assert command("audit", "c.yaml", "--out", "photos", "--overwrite")[0] == 2
    assert command("audit", "c.yaml", "--out", "r", "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("rule", "code", "expected_text"),
    [
        ("accuracy, of: worst_group, min: 0.1", 0, "PASSED: accuracy worst group ≥ 0.1: good, "),
        (
            "accuracy, of: worst_group, min: 0.8",
            1,
            "BREACHED: accuracy worst group ≥ 0.8: bad, ",
        ),
        ("skewsize, max: 1", 2, "NOT ESTIMABLE: skewsize ≤ 1: good, g: "),
    ],
)
def test_check_holds_the_rules_and_names_what_breaks(command, project, rule, code, expected_text):
    Path("c.yaml").write_text(CONFIG.replace("accuracy, of: worst_group, min: 0.8", rule))
    assert command("audit", "c.yaml", "--out", "run")[0] == 0
    got, out, err = command("check", "run", "--junit", "gate.xml")
    assert (got, err) == (code, "")
    assert expected_text in out
    suite = ET.parse("gate.xml").getroot()
    outcomes = [suite.get(name) for name in ("tests", "failures", "errors")]
    assert outcomes == ["2", str(int(code == 1)), str(2 * (code == 2))]
    got, out, err = command("check", "run", "--json")
    assert (got, err, json.loads(out)["passed"]) == (code, "", code == 0)
    concluded = {
        item["sentence"] for item in json.loads(command("show", "run", "--json")[1])["conclusions"]
    }
    sentences = [check["conclusion"] for check in json.loads(out)["checks"]]
    assert {*sentences} - {""} <= concluded
    assert [element.text for element in suite.iter("system-out")] == [*filter(None, sentences)]
    assert any(sentences) == (code < 2)


def check_against(command, rule, name):
    """Audit with a rule, and return the exit code and the checks of the run."""
    Path("c.yaml").write_text(CONFIG.replace("metric: accuracy, of: worst_group, min: 0.8", rule))
    assert command("audit", "c.yaml", "--out", name, "--overwrite")[0] == 0
    code, out, err = command("check", name, "--json")
    assert "Traceback" not in err
    return code, json.loads(out).get("checks") or err


def test_check_finds_a_model_that_got_worse_for_a_group(command, project):
    assert command("audit", "c.yaml", "--out", "runs/base")[0] == 0
    rule = "worse_than: runs/base, metric: accuracy"
    code, checks = check_against(command, rule, "runs/same")
    assert (code, [check["outcome"] for check in checks]) == (0, ["passed"])
    good = Path("good.csv").read_text()
    Path("good.csv").write_text(Path("bad.csv").read_text())
    code, checks = check_against(command, rule, "runs/worse")
    assert code == 1
    assert {check["outcome"] for check in checks} == {"breached"}
    sentences = [check["sentence"] for check in checks]
    assert any(", g, g 1: breached" in sentence for sentence in sentences), sentences
    assert not any(", g, g 0: breached" in sentence for sentence in sentences)
    assert command("check", "runs/worse", "--junit", "gate.xml")[0] == 1
    suite = ET.parse("gate.xml").getroot()
    assert suite.get("failures") == suite.get("tests") == str(len(checks))
    Path("good.csv").write_text(good)


def test_check_says_what_a_comparison_lacks(command, project):
    code, error = check_against(command, "worse_than: runs/absent", "r")
    assert code == 2
    assert "runs/absent" in error


def test_check_on_verdicts_and_the_false_alarms_of_extremes(command, project):
    code, checks = check_against(command, "verdict: disparity", "r")
    assert (code, [check["outcome"] for check in checks]) == (1, ["breached", "passed"])
    assert checks[0]["sentence"].count("bad")
    code, checks = check_against(command, "metric: accuracy, of: worst_group, min: 0.1", "r")
    assert code == 0
    assert all(0 <= check["false_alarms"] < 0.01 for check in checks)
    code, checks = check_against(
        command, "metric: accuracy, of: worst_group, min: 0.8, on: whole", "r"
    )
    assert (code, {check["false_alarms"] for check in checks}) == (1, {None})


def test_a_report_is_written_again(command, project):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    page = project / "r" / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert command("report", "r") == (0, "report: r/report.html\n", "")
    assert page.read_bytes() == first
    page.write_text(page.read_text().replace("</body>", "</body> "))
    assert "'report.html'" in command("audit", "c.yaml", "--out", "r", "--overwrite")[2]
    assert command("report", "r")[0] == 0
    assert command("audit", "c.yaml", "--out", "r", "--overwrite")[0] == 0


def test_from_a_plan_to_a_comparison(command, project):
    code, out, err = command("plan", "c.yaml")
    assert (code, err) == (0, "")
    assert "\ngroups:\n" in out
    assert json.loads(command("plan", "c.yaml", "--json")[1])["groups"][0]["rows"] > 100
    for name in ("one", "two"):
        assert command("audit", "c.yaml", "--out", f"runs/{name}")[0] == 0
    code, out, err = command("compare", "runs/one", "runs/two", "--out", "both")
    assert (code, err) == (0, "")
    assert "DIFFERENCE" in out.splitlines()[0]
    assert "  Prefer one: good and two: good: they are worse on no leading metric." in out
    output = json.loads(command("compare", "runs/one", "--out", "again", "--json")[1])
    assert {row["model"] for row in output["ranking"]} == {"good", "bad"}
    assert "difference" in output["verdicts"]
    first, *_ = output["conclusions"]
    assert (first["worse"], first["verdict"]) == ("bad", "difference")


@pytest.mark.parametrize(
    ("old", "new", "expected_text"),
    [
        ("gate:", "gates:", "c.yaml, line 7: gates: "),
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
def test_a_bad_input_is_one_error_and_leaves_nothing(command, project, old, new, expected_text):
    Path("c.yaml").write_text(CONFIG.replace(old, new))
    before = sorted(project.iterdir())
    code, out, err = command("audit", "c.yaml", "--out", "runs/r")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert expected_text in err
    assert "unexpected" not in err
    assert len(err.splitlines()) == 1
    assert sorted(set(project.iterdir()) - {project / "runs"}) == before
    assert [*project.glob("runs/*")] == []


def test_bounds_on_the_command_line_need_no_gate(command, project):
    Path("c.yaml").write_text(CONFIG.partition("gate:")[0])
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    code, out, _ = command("check", "r", "--min", "accuracy.worst_group=.8", "--json")
    outcomes = [check["outcome"] for check in json.loads(out)["checks"]]
    assert (code, sorted(outcomes)) == (1, ["breached", "passed"])
    passed = ("--min", "accuracy.worst_group=.1", "--max", "accuracy.difference=0.95")
    code, out, _ = command("check", "r", *passed, "--json")
    assert (code, json.loads(out)["passed"]) == (0, True)


@pytest.mark.parametrize(
    ("bound", "fix"),
    [
        (("--max", "accuracy.difference=10"), "write 0.1: 10 points are 0.1"),
        (("--min", "accuracy.worst_group=80"), "write 0.8: 80 % is 0.8"),
    ],
)
def test_a_bound_in_per_cent_is_refused(command, project, bound, fix):
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    code, out, err = command("check", "r", *bound)
    assert (code, out) == (2, "")
    assert fix in err


def test_a_group_too_small_to_compare_is_named_by_audit_and_check(command, project):
    genders = ["woman", "man"] * 60 + ["nonbinary"] * 10
    wrong = {"nonbinary": 130, "woman": 6, "man": 6}
    rows = ["id,g,y,p"]
    for place, group in enumerate(genders):
        label = place // 2 % 2
        rows.append(f"{place},{group},{label},{1 - label if place < wrong[group] else label}")
    Path("small.csv").write_text("\n".join(rows))
    Path("small.yaml").write_text(
        "audit: predictions\ndata: {table: small.csv, id: id, target: y, groups: [g]}\n"
        "models: {m: {table: small.csv, prediction: p}}\n"
        "gate:\n  - {metric: accuracy, of: worst_group, min: 0.8}\n"
        "  - {metric: accuracy, of: worst_group, min: 0.2}\n"
    )
    code, out, _ = command("audit", "small.yaml", "--out", "r")
    assert code == 0
    assert "Too small to compare by g: nonbinary (10 rows)." in out
    code, out, _ = command("check", "r")
    assert code == 2
    first, second, _ = out.splitlines()
    assert first.startswith("NOT JUDGED: accuracy worst group ≥ 0.8: m, g: not judged: nonbinary")
    assert second.startswith("PASSED: ")
    assert second.endswith("Not checked: nonbinary, 10 rows.")
    checks = json.loads(command("check", "r", "--json")[1])["checks"]
    assert [check["not_checked"] for check in checks] == [[{"group": "nonbinary", "rows": 10}]] * 2


def test_a_report_opens_in_the_browser(command, project, monkeypatch):
    opened = []
    monkeypatch.setattr("click.launch", lambda page: opened.append(page) or 0)
    assert command("audit", "c.yaml", "--out", "r")[0] == 0
    assert opened == []
    assert command("report", "r", "--open")[0] == 0
    assert opened == [str(project / "r" / "report.html")]
    monkeypatch.setattr("click.launch", lambda page: 1)
    assert "can't open a browser" in command("report", "r", "--open")[2]


def test_an_attribute_with_one_group_left_is_named_once(command, project):
    rows = ["id,g,h,y,p"]
    for place in range(60):
        label, small = place // 2 % 2, place < 9
        rows.append(f"{place},{'small' if small else 'large'},{'ab'[place % 2]},{label},{label}")
    Path("small.csv").write_text("\n".join(rows))
    Path("small.yaml").write_text(
        "audit: predictions\n"
        "data: {table: small.csv, id: id, target: y, groups: [g, h], min_group_size: 10}\n"
        "models: {m: {table: small.csv, prediction: p}}\n"
    )
    code, out, err = command("audit", "small.yaml", "--out", "r")
    assert code == 0
    assert (out + err).count("small: 9") == 1
    assert "Too small to compare" not in out
    assert (out + err).count("min_group_size") == 1
    assert "Add rows, or lower data.min_group_size, to compare by g." in out
