"""Results of other tools are audited as they are: the same answers, the same findings."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
import yaml

import equipoise
from equipoise.exports import Run, form_of
from equipoise.exports.writing import write_files
from result_layouts import LAYOUTS, answers, write_detections

PAGE = (
    Path(__file__).resolve().parents[2].joinpath("docs", "from-other-tools.md").read_text("utf-8")
)

FEW = {"resampling": {"replicates": 200}}


def findings(folder, name, config):
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"audit": "predictions", **config, **FEW}))
    equipoise.audit(path).save(folder / name)
    return (folder / name / "findings.json").read_bytes()


def test_the_same_answers_of_six_tools_give_the_same_findings(tmp_path):
    rows = answers(200)
    results = {}
    for tool, write in LAYOUTS.items():
        table = {"file": str(write(tmp_path, rows)), "results": tool}
        results[tool] = findings(tmp_path, f"run_{tool}", {
            "data": {"table": table, "id": "id", "target": "target",
                     "groups": ["metadata.gender"]},
            "models": {"m": {"table": table, "prediction": "answer"}},
        })  # fmt: skip
    pl.DataFrame(rows).rename({"gender": "metadata.gender"}).write_csv(tmp_path / "t.csv")
    plain = findings(tmp_path, "run_csv", {
        "data": {"table": "t.csv", "id": "id", "target": "target", "groups": ["metadata.gender"]},
        "models": {"m": {"table": "t.csv", "prediction": "answer"}},
    })  # fmt: skip
    assert results == dict.fromkeys(LAYOUTS, plain)
    assert len(json.loads(plain)) > 10


def test_results_are_joined_to_groups_by_id(tmp_path):
    rows = answers(200)
    people = pl.DataFrame(rows).select("id", "gender", label="target")
    people.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "people.csv")
    table = {"file": str(LAYOUTS["inspect_ai"](tmp_path, rows)), "results": "inspect_ai"}
    data = {"table": "people.csv", "id": "id", "target": "label", "groups": ["gender"]}
    config = {"data": data, "models": {"m": {"table": table, "prediction": "answer"}}}
    joined = json.loads(findings(tmp_path, "joined", config))
    data |= {"table": table, "target": "target", "groups": ["metadata.gender"]}
    alone = json.loads(findings(tmp_path, "alone", config))
    assert [row["value"] for row in joined] == [row["value"] for row in alone]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    rows = pl.DataFrame(answers(200)).with_columns(
        album=pl.int_range(pl.len()) // 2,
        other=pl.when(pl.int_range(pl.len()) < 5).then(pl.lit("no!")).otherwise("target"),
    )
    rows.write_csv(folder / "t.csv")
    models = {
        name: {"table": "t.csv", "prediction": name, "refused": ["no!"]}
        for name in ("answer", "other")
    }
    data = {"table": "t.csv", "id": "id", "target": "target", "groups": ["gender"],
            "unit": "album"}  # fmt: skip
    before = findings(folder, "before", {"data": data, "models": models})
    run = Run(equipoise.load(folder / "before"), folder / "before")
    write_files(form_of("every-eval-ever").write(run), folder / "export")
    return folder, before


def test_a_run_that_is_exported_and_read_back_gives_equal_findings(exported):
    folder, before = exported
    tables = {
        path.parent.name: {"file": str(path), "results": "every-eval-ever"}
        for path in (folder / "export").rglob("*_samples.jsonl")
    }
    after = findings(folder, "after", {
        "data": {"table": tables["answer"], "id": "id", "target": "target",
                 "groups": ["metadata.gender"], "unit": "metadata.unit"},
        "models": {name: {"table": table, "prediction": "answer"}
                   for name, table in tables.items()},
    })  # fmt: skip
    assert after.replace(b"metadata.gender", b"gender") == before


def test_a_folder_of_several_models_has_them_in_a_column(exported):
    folder, before = exported
    table = {"file": str(folder / "export"), "results": "every-eval-ever"}
    after = findings(folder, "together", {
        "data": {"table": table, "id": "id", "target": "target", "groups": ["metadata.gender"],
                 "unit": "metadata.unit", "where": {"model": "answer"}},
        "models": {name: {"table": table, "prediction": "answer", "where": {"model": name}}
                   for name in ("answer", "other")},
    })  # fmt: skip
    assert after.replace(b"metadata.gender", b"gender") == before


def test_people_that_a_detector_misses_are_audited_as_the_page_says(tmp_path, monkeypatch):
    (tmp_path / "detections").mkdir()
    write_detections(tmp_path / "detections")
    section = PAGE.partition("## People that a detector misses")[2]
    (block,) = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    (tmp_path / "detections.yaml").write_text(block)
    monkeypatch.chdir(tmp_path)
    result = equipoise.audit(tmp_path / "detections.yaml")
    shares = {group.group: group.value for f in result.findings for group in f.by_group
              if f.groups == "metadata.gender" and f.subject == "true"}  # fmt: skip
    # Every man is found, and half of the women.
    assert shares == {"men": 1.0, "women": 0.5}
