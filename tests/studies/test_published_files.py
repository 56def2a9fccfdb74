"""Files that data sets publish are planned and run, with the signs of their source."""

import numpy as np
import pytest
import yaml

import data_sets
import model_checkpoints
from equipoise import audits
from image_files import write_csv

FEW = {"replicates": 20, "permutations": 99}


@pytest.mark.parametrize("persons", ["OO", "OP"])
def test_visogender_since_august_2023(shared_dir, persons):
    folder = shared_dir / "inputs"
    values = yaml.safe_load((folder / "visogender.yaml").read_text(encoding="utf-8"))
    values["data"]["images"]["files"] = f"{persons}_Visogender_madeup.tsv"
    values["resampling"] = FEW
    config = audits.parse_config(values)
    audits.plan(config, base=folder)
    sizes = audits.run(config, base=folder).tables["group_sizes"].to_pylist()
    assert {row["group"]: row["n"] for row in sizes} == {"male": 40, "female": 40}


def test_men_of_visogender_count_as_positive(tmp_path):
    header = ["IDX", "Sector", "Specialisation", "Occupation", "Object", "URL",
              "Occupation_perceived_gender"]  # fmt: skip
    rows = [
        [f"OO_{n:02}", "s", "s", "dentist", "chair", f"https://example.org/{n}",
         "masculine" if n < 6 else "feminine"]
        for n in range(12)
    ]  # fmt: skip
    write_csv(tmp_path / "v.tsv", [header, *rows], "\t")
    write_csv(tmp_path / "q.csv", [["query"], ["dentist"]])
    images = {"format": "visogender", "files": str(tmp_path / "v.tsv")}
    scores = {"file": np.linspace(1, 0, 12)[:, None], "names": ["dentist"]}
    result = audits.run(
        audits.parse_config({
            "audit": "retrieval",
            "data": {"images": images, "groups": ["gender"], "subject": "occupation"},
            "queries": {"table": tmp_path / "q.csv", "id": "query", "subject": "query"},
            "models": {"m": {"scores": scores}},
            "metrics": ["bias_at_k"], "ranking": {"k": 4, "curves": False},
            "resampling": FEW,
        })
    )  # fmt: skip
    assert {f.value for f in result.findings if f.metric == "bias_at_k" and not f.subject} == {1.0}


def test_pata_whose_addresses_end_alike_is_planned_and_run(shared_dir):
    images = {"format": "pata", "files": "pata_fairness.files.lst"}
    config = audits.parse_config({
        "audit": "dataset", "data": {"images": images, "groups": ["race"], "labels": ["scene"],
                                     "min_group_size": 1},
        "resampling": FEW,
    })  # fmt: skip
    folder = shared_dir / "inputs" / "papers" / "pata"
    audits.plan(config, base=folder)
    sizes = audits.run(config, base=folder).tables["group_sizes"].to_pylist()
    assert {row["group"]: row["n"] for row in sizes} == {"black": 1, "caucasian": 1}


def test_bias_at_k_is_over_all_images_of_an_occupation(shared_dir, tmp_path):
    source = shared_dir / "inputs" / "papers" / "bias_at_k_as_the_source_defines.yaml"
    occupations = ("doctor", "engineer", "nurse", "pilot", "cook", "farmer")
    data_sets.social_counterfactuals_in_pairs(tmp_path / "data", 2, occupations)
    model_checkpoints.clip(tmp_path / "models" / "clip")
    config = audits.parse_config(yaml.safe_load(source.read_text(encoding="utf-8")))
    findings = audits.run(config, base=tmp_path).findings
    values = [
        finding.value
        for finding in findings
        if (finding.metric, finding.subject, finding.version) == ("bias_at_k", "", "default")
    ]
    assert values == pytest.approx([1 / 3])
