"""Exports are valid by the published schemas, lose no number, and judge no one's duties."""

import json
import re
from dataclasses import replace
from pathlib import Path

import huggingface_hub
import jsonschema
import mlcroissant
import numpy as np
import polars as pl
import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from trestle.oscal.assessment_results import Model

import equipoise
from equipoise import metrics
from equipoise.core import RunError, Verdict
from equipoise.exports import FORMS, Run, form_of
from equipoise.exports.forms.every_eval_ever import findings_in
from equipoise.exports.writing import write_files

SCHEMAS = Path(__file__).parent / "schemas"


def schema(name):
    return jsonschema.Draft7Validator(json.loads((SCHEMAS / name).read_text()))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(5)
    n = 400
    gender = rng.choice(["women", "men", "“x”, é <y>"], n, p=[0.49, 0.49, 0.02])
    label = rng.choice(["nurse", "chef"], n)
    wrong = rng.random(n) < np.where(gender == "women", 0.4, 0.1)
    other = np.where(label == "nurse", "chef", "nurse")
    people = pl.DataFrame({
        "id": [f"image {row}" for row in range(n)], "gender": gender, "label": label,
        "album": [f"album {row // 2}" for row in range(n)],
        "org/model a": np.where(wrong, other, label), "b": label,
    }).with_columns(b=pl.when(pl.int_range(n) < 20).then(None).otherwise("b"))  # fmt: skip
    people.write_csv(folder / "people.csv")
    config = {
        "audit": "predictions",
        "data": {
            "table": "people.csv", "id": "id", "target": "label", "groups": ["gender"],
            "unit": "album",
        },
        "models": {
            name: {"table": "people.csv", "id": "id", "prediction": name}
            for name in ("org/model a", "b")
        },
        "resampling": {"replicates": 200},
    }  # fmt: skip
    labels = {
        "audit": "dataset", "resampling": {"replicates": 200},
        "data": {
            "images": {"table": "people.csv", "id": "id"}, "groups": ["gender"],
            "labels": ["label"],
        },
    }  # fmt: skip
    made = {}
    for name, values in (("predictions", config), ("dataset", labels)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(values))
        equipoise.audit(folder / f"{name}.yaml").save(folder / name)
        made[name] = Run(equipoise.load(folder / name), folder / name, "org/people")
    return made


def documents(run, form):
    return {
        name: json.loads(text)
        for name, text in form_of(form).write(run).items()
        if name.endswith(".json")
    }


def test_results_and_rows_of_every_eval_ever_are_valid(runs):
    files = form_of("every-eval-ever").write(runs["predictions"])
    results = [json.loads(text) for name, text in files.items() if name.endswith(".json")]
    assert {document["model_info"]["name"] for document in results} == {"org/model a", "b"}
    for document in results:
        schema("eval.schema.json").validate(document)
        rows = files[document["detailed_evaluation_results"]["file_path"]].splitlines()
        assert len(rows) == document["detailed_evaluation_results"]["total_rows"] == 400
        for row in map(json.loads, rows):
            schema("instance_level_eval.schema.json").validate(row)
            assert row["evaluation_id"] == document["evaluation_id"]


def test_every_eval_ever_keeps_every_number_of_every_finding(runs):
    result = runs["predictions"].result
    files = form_of("every-eval-ever").write(runs["predictions"])
    read = [findings_in(text) for name, text in files.items() if name.endswith(".json")]
    assert sum(map(len, read)) > 40
    for findings in read:
        model = findings[0].model
        expected = [finding for finding in result.findings if finding.model == model]
        assert repr(findings) == repr(tuple(expected))
    names = {group.group for findings in read for f in findings for group in f.by_group}
    assert "“x”, é <y>" in names


def test_rows_of_every_eval_ever_give_the_same_accuracy(runs):
    files = form_of("every-eval-ever").write(runs["predictions"])
    name = next(name for name in files if "org/model" in name and name.endswith(".jsonl"))
    rows = [json.loads(line) for line in files[name].splitlines()]
    women = [row for row in rows if row["metadata"]["gender"] == "women"]
    share = np.mean([row["evaluation"]["is_correct"] for row in women])
    estimate = metrics.accuracy_gap(
        [row["input"]["reference"][0] for row in rows],
        [row["output"]["raw"][0] for row in rows],
        [row["metadata"]["gender"] for row in rows],
    )
    group = estimate.by_group.filter(pl.col("group") == "women")
    assert group["value"].to_list() == [share]
    unanswered = [json.loads(line) for key, text in files.items() if key.endswith(".jsonl")
                  for line in text.splitlines() if '"output": {"raw": []}' in line]  # fmt: skip
    assert len(unanswered) == 20
    assert all(row["error"] for row in unanswered)


def test_bills_of_materials_are_valid_cyclonedx(runs):
    (text,) = form_of("cyclonedx").write(runs["predictions"]).values()
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    card = json.loads(text)["components"][0]["modelCard"]
    rows = card["quantitativeAnalysis"]["performanceMetrics"]
    finding = runs["predictions"].result.findings[0]
    bounds = {"lowerBound": repr(finding.ci_low), "upperBound": repr(finding.ci_high)}
    assert rows[0]["value"] == repr(finding.value)
    assert rows[0]["confidenceInterval"] == bounds
    assert any("gender = women" in row.get("slice", "") for row in rows)


@pytest.mark.parametrize("kind", ["predictions", "dataset"])
def test_assessment_results_are_valid_oscal(runs, kind):
    (document,) = documents(runs[kind], "oscal").values()
    Model.model_validate(document)
    (result,) = document["assessment-results"]["results"]
    assert len(result["observations"]) == len(runs[kind].result.conclusions)
    assert "findings" not in result  # it judges no control
    for seen, conclusion in zip(result["observations"], runs[kind].result.conclusions, strict=True):
        numbers = {prop["name"]: prop["value"] for prop in seen["props"]}
        assert float(numbers["value"]) == conclusion.size
        assert numbers["verdict"] == conclusion.verdict
        assert seen["title"].startswith(conclusion.model)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A run whose conclusions have other numbers than their findings: ranked models, and a mix."""
    rng, n = np.random.default_rng(3), 3000
    age = rng.choice(["old", "young"], n)
    hard = rng.random(n) < np.where(age == "old", 0.8, 0.2)
    label = np.where(hard, "boat", "cat")
    wrong = rng.random(n) < np.where(hard, 0.35, 0.05)
    biased = rng.random(n) < np.where(age == "old", 0.4, 0.05)
    other = np.where(label == "boat", "cat", "boat")
    people = pl.DataFrame({
        "id": [f"image {row}" for row in range(n)], "age": age, "label": label,
        "fair": np.where(wrong, other, label), "biased": np.where(biased, other, label),
    })  # fmt: skip
    result = equipoise.audit(
        people, kind="predictions", id="id", target="label", groups=["age"],
        models={name: {"table": people, "prediction": name} for name in ("fair", "biased")},
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("mixed") / "run"
    result.save(folder)
    return Run(equipoise.load(folder), folder, "org/people")


def test_exports_have_the_numbers_and_verdicts_of_the_conclusions(mixed):
    result = mixed.result
    (document,) = documents(mixed, "oscal").values()
    seen = document["assessment-results"]["results"][0]["observations"]
    titles = [item["title"] for item in seen]
    assert any("at equal mix of classes" in title for title in titles)
    assert any("difference between models (fair, biased)" in title for title in titles)
    for item, conclusion in zip(seen, result.conclusions, strict=True):
        numbers = {prop["name"]: prop["value"] for prop in item["props"]}
        assert float(numbers["value"]) == conclusion.size
        assert numbers["verdict"] == conclusion.verdict
    (mix,) = (item for item in result.conclusions if item.at_equal_mix and item.model == "fair")
    assert result.findings[mix.finding].verdict == Verdict.DISPARITY
    assert not mix.real
    cards = next(iter(documents(mixed, "cyclonedx").values()))["components"]
    (fair,) = (card["modelCard"] for card in cards if card["name"] == "fair")
    (entries,) = (
        yaml.safe_load(text)
        for name, text in form_of("eval-results").write(mixed).items()
        if name.startswith("fair")
    )
    assert fair["quantitativeAnalysis"]["performanceMetrics"]
    assert "disparity" not in json.dumps(fair)
    assert "disparity" not in json.dumps(entries)
    assert any(entry["value"] == mix.size for entry in entries)


def test_numbers_of_an_export_have_names_that_tell_them_apart(mixed):
    for text in form_of("eval-results").write(mixed).values():
        names = [entry["dataset"]["task_id"] for entry in yaml.safe_load(text)]
        assert len({*names}) == len(names)
    for document in documents(mixed, "every-eval-ever").values():
        names = [score["evaluation_name"] for score in document["evaluation_results"]]
        assert len({*names}) == len(names) > 10
    for card in next(iter(documents(mixed, "cyclonedx").values()))["components"]:
        rows = card["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
        names = [(row["type"], row.get("slice")) for row in rows]
        assert len({*names}) == len(names) > 10


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
def test_metadata_of_a_data_set_is_valid_croissant(runs, tmp_path):
    write_files(form_of("croissant").write(runs["dataset"]), tmp_path / "out")
    dataset = mlcroissant.Dataset(jsonld=tmp_path / "out/croissant.json")
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.is_live_dataset in (None, False)
    read = dataset.metadata.to_json()
    assert read["conformsTo"][0].endswith("croissant/1.1")
    assert len(read["rai:dataBiases"]) >= 1
    inputs = runs["dataset"].result.manifest.inputs
    assert read["distribution"][0]["sha256"] == next(iter(inputs.values()))["sha256"]


@pytest.mark.parametrize("form", ["every-eval-ever", "eval-results"])
@pytest.mark.parametrize("name", ["../evil", "..", ".", "a/..", "b/", "/"])
def test_no_model_leaves_the_folder_of_an_export(runs, form, name):
    run = runs["predictions"]
    findings, conclusions = (
        tuple(replace(item, model=name) if item.model == "b" else item for item in items)
        for items in (run.result.findings, run.result.conclusions)
    )
    named = {"org/model a": {}, name: {}}
    manifest = replace(
        run.result.manifest, resolved={**run.result.manifest.resolved, "models": named}
    )
    result = replace(run.result, findings=findings, conclusions=conclusions, manifest=manifest)
    paths = form_of(form).write(replace(run, result=result))
    assert sum(not path.endswith(".jsonl") for path in paths) == 2
    assert not {"", ".", ".."} & {part for path in paths for part in path.split("/")}


def test_results_of_the_hub_are_read_by_its_library(runs):
    files = form_of("eval-results").write(runs["predictions"])
    assert all(".eval_results/" in name for name in files)
    entries = [
        entry
        for text in files.values()
        for entry in huggingface_hub.parse_eval_result_entries(yaml.safe_load(text))
    ]
    result = runs["predictions"].result
    values = {finding.value for finding in result.findings}
    values |= {conclusion.size for conclusion in result.conclusions}
    assert entries
    assert {entry.dataset_id for entry in entries} == {"org/people"}
    assert {entry.value for entry in entries} <= values
    assert all("verdict" in entry.notes for entry in entries)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_form_is_the_same_twice_and_claims_no_compliance(runs, form):
    run = runs["dataset" if form == "croissant" else "predictions"]
    files = form_of(form).write(run)
    assert files == form_of(form).write(run)
    for text in files.values():
        assert not re.search(r"\b(complian(ce|t)|certif|conforms to|fulfils)", text.lower())


def test_a_pack_has_every_form_that_suits_the_run_and_names_the_others(runs):
    for kind, without in (("predictions", {"croissant"}), ("dataset", {"every_eval_ever",
                          "cyclonedx", "eval_results"})):  # fmt: skip
        files = form_of("pack").write(runs[kind])
        folders = {name.split("/")[0] for name in files} - {"README.md"}
        assert folders == set(FORMS) - {"pack"} - without
        assert all(f"`{name}`: left out" in files["README.md"] for name in without)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("dataset", "every-eval-ever"),
        ("dataset", "cyclonedx"),
        ("predictions", "croissant"),
        ("predictions", "eval-results"),
    ],
)
def test_a_form_that_does_not_suit_a_run_says_so(runs, kind, form):
    run = Run(runs[kind].result, runs[kind].folder)
    with pytest.raises(RunError, match="To do"):
        form_of(form).write(run)


def test_an_export_never_takes_a_folder_that_is_there(runs, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(RunError):
        write_files({"a.txt": "b"}, tmp_path / "out")
    assert [path.name for path in tmp_path.rglob("*.txt")] == ["mine.txt"]
