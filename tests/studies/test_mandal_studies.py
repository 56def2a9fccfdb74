"""The studies of Mandal 2024 on sets of images and words, in worlds whose truth is planted."""

import importlib.util
import sys

import numpy as np
import polars as pl
import pytest
import torch
import yaml

import data_sets
from equipoise import audits
from equipoise.cli.app import run as command
from equipoise.data import lexicon
from equipoise.models import load_model
from equipoise.studies.study import study_files

WORDS = lexicon("mandal_2024_words").content
GENDER = lexicon("mandal_2024_gender").content
LEANS = {
    word: side * size
    for side, size, words in (
        (1, 1.0, (*GENDER["men"], *GENDER["men_relations"], "chief executive officer",
                  "programmer")),
        (-1, 1.0, (*GENDER["women"], *GENDER["women_relations"], "feminine", "beautician",
                   "housekeeper")),
        (1, 0.5, (*WORDS["adjectives_men"], *WORDS["occupations_men"])),
        (-1, 0.5, (*WORDS["adjectives_women"], *WORDS["occupations_women"][:-2])),
    )
    for word in words
}  # fmt: skip
"""How far a word lies to the side of men."""
NAMES = {name for names in GENDER.values() for name in names}


def write(folder, name, count=12, sign=1.0):
    """Write a study with few words, whose model places those of `LEANS` by gender.

    Images of men and names for men lie to one side, those of women to the other. With another sign
    all other words are turned.
    """
    folder.mkdir(exist_ok=True)
    data_sets.people_by_region(folder, count)
    for path, text in study_files(name, folder / "study.yaml", folder / "people").items():
        path.write_text(text, encoding="utf-8")
    values = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8"))
    rng = np.random.default_rng(2)
    images = pl.read_csv(folder / "people" / "images.csv")
    side = np.where(images["gender"] == "Male", 1.0, -1.0)
    vectors = {"people": np.column_stack([np.full(len(side), 3.0), side])}
    for table in [table for table in values["data"] if table != "people"]:
        path = folder / values["data"][table]["table"]
        pl.read_csv(path, infer_schema=False).filter(
            pl.col("text").is_in([*LEANS]) | (pl.col("number").cast(int) <= 8)
        ).write_csv(path)
        words = pl.read_csv(path)["text"].to_list()
        leans = [(1.0 if word in NAMES else sign) * LEANS.get(word, 0.0) for word in words]
        vectors[table] = np.column_stack([np.full(len(words), 3.0), leans])
    embeddings = {}
    for table, rows in vectors.items():
        noise = 0.05 * rng.standard_normal((len(rows), 6))
        embeddings[table] = {"file": np.column_stack([rows, noise]).astype(np.float32)}
    values["models"] = {"clip": {"embeddings": embeddings}}
    values["resampling"] = {"replicates": 50, "permutations": 99}
    values["report"] = {"images": 0}
    return values


def marks(result):
    return {row["claim"]: row["mark"] for row in result.tables["claims"].to_pylist()}


def measured(values, *metrics, version=None):
    """Return the configuration with its questions of some metrics alone."""
    chosen = [
        question for question in values["measure"]
        if question["metric"] in metrics and (version is None or question.get("version") == version)
    ]  # fmt: skip
    return audits.parse_config({**values, "measure": chosen})


def fill(path, column, figures):
    """Write figures into the empty column of a table that a study writes."""
    table = pl.read_csv(path, infer_schema=False)
    table.with_columns(pl.Series(column, figures(table))).write_csv(path)


def leaning(table):
    return [10.0 + 5.0 * LEANS.get(word, 0.0) for word in table["text"]]


@pytest.mark.parametrize(("sign", "mark"), [(1.0, "holds"), (-1.0, "doesn't")])
def test_claims_on_predicted_labels_follow_the_planted_words(tmp_path, sign, mark):
    values = write(tmp_path, "predicted-labels", count=6, sign=sign)
    fill(tmp_path / "occupations.csv", "salary", leaning)
    config = measured(values, "association_score", "correlation")
    judged = marks(audits.run(config, base=tmp_path))
    assert (judged["M5.7"], judged["M5.8"]) == (mark, mark)
    # Shares of women aren't filled in, and another configuration asks questions.
    assert (judged["M5.9"], judged["M5.10"]) == ("can't tell", "can't tell")


def test_labels_of_images_give_tables_5_1_to_5_5(tmp_path):
    values = write(tmp_path, "predicted-labels", count=6)
    result = audits.run(
        measured(values, "predicted_label_weat", "label_concentration"), base=tmp_path
    )
    weat = {
        (f.version, f.subject): f for f in result.findings if f.metric == "predicted_label_weat"
    }
    assert len(weat) == 8
    for finding in weat.values():
        means = {group.group: group.value for group in finding.by_group}
        difference = finding.parameters["difference"]
        assert difference == pytest.approx(means["Male"] - means["Female"], abs=1e-9)
        assert finding.value > 0
    labels = pl.DataFrame(result.tables["labels"]).filter(version="occupations")
    of_region = labels.filter(region="NA", group="Male")
    assert of_region["count"].sum() == 6
    assert {"chief executive officer", "programmer"} >= {*of_region["label"]}


@pytest.mark.parametrize(("sign", "mark"), [(1.0, "holds"), (-1.0, "doesn't")])
def test_claims_on_regions_follow_the_planted_words_and_index(tmp_path, sign, mark):
    values = write(tmp_path, "attributes-by-region", sign=sign)
    rows = pl.read_csv(tmp_path / "people" / "images.csv")
    # Images of the regions lie farther from all words, men's more so, the higher the index.
    places = [*dict.fromkeys(rows["region"])]
    farther = np.array([places.index(region) for region in rows["region"]]) / 10
    people = values["models"]["clip"]["embeddings"]["people"]["file"]
    men = (rows["gender"] == "Male").to_numpy()
    people[men, 2] += farther[men]
    fill(
        tmp_path / "regions.csv", "index", lambda t: [-sign * places.index(r) for r in t["region"]]
    )
    gender = [q for q in values["measure"] if q.get("attributes") == ["men", "women"]]
    differences = [
        q for q in values["measure"]
        if q["metric"] == "gender_difference" and q.get("version") == "adjectives"
    ]  # fmt: skip
    config = audits.parse_config({**values, "measure": [*gender, *differences]})
    result = audits.run(config, base=tmp_path)
    judged = marks(result)
    assert (judged["M4.5"], judged["M4.9"]) == (mark, mark)
    # Words of one region weren't asked about.
    assert judged["M4.7"] == "can't tell"
    assert {row["region"] for row in result.tables["words"].to_pylist()} == {*places}


def test_tables_that_nobody_filled_in_leave_claims_open(tmp_path):
    values = write(tmp_path, "attributes-by-region", count=3)
    result = audits.run(measured(values, "gender_difference"), base=tmp_path)
    judged = marks(result)
    assert {judged[claim] for claim in ("M4.4", "M4.5", "M4.6")} == {"can't tell"}
    assert sum("no figure for" in note for note in result.manifest.notes) == 1


def test_people_judge_the_pictures_of_the_checks(tmp_path):
    write(tmp_path, "attributes-by-region", count=2)
    run, page = str(tmp_path / "run"), tmp_path / "label.html"
    assert command(["audit", str(tmp_path / "study-checks.yaml"), "--out", run]) == 0
    assert command(["label", "sample", run, "--question", "person", "--out", str(page)]) == 0
    assert "Does the picture show a person?" in page.read_text(encoding="utf-8")


def faces(folder, name):
    """Write a configuration of the study of image search, with made-up pictures."""
    data_sets.image_search(folder, count=8)
    path = folder / "study.yaml"
    for file, text in study_files("image-search", path, folder / "images").items():
        file.write_text(text, encoding="utf-8")
    values = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
    return values | {"resampling": {"replicates": 50, "permutations": 99}}


def spread(n, size, axis=0):
    """Return vectors around an axis, the farther apart the larger the size."""
    rng = np.random.default_rng([axis, n])
    return (np.eye(12)[axis] + size * rng.standard_normal((n, 12))).astype(np.float32)


def test_claims_hold_where_regions_differ(tmp_path):
    values = faces(tmp_path, "study.yaml")
    values["data"]["min_set_size"] = 8
    # Images are in the order of their names: queries, then regions EA, NA and WANA.
    rows = [spread(8, 0.1, region) for _ in range(5) for region in range(3)]
    values["models"] = {"vgg16": {"file": np.concatenate(rows)}}
    result = audits.run(audits.parse_config(values), base=tmp_path)
    judged = marks(result)
    assert (judged["M3.1"], judged["M3.4"]) == ("holds", "can't tell")
    assert any("1/n" in note for note in result.manifest.notes)


@pytest.mark.parametrize(("size", "mark"), [(1.0, "holds"), (0.001, "doesn't")])
def test_a_diverse_set_is_compared_with_data_sets(tmp_path, size, mark):
    values = faces(tmp_path, "study-sets.yaml")
    values["models"] = {"vgg16": {"file": spread(30, 0.3)}}
    for name, reference in values["references"].items():
        # Pictures of other data sets are all but the same, those of FFHQ unless they differ.
        rows = np.eye(1, 12) + 0.001 * np.eye(3, 12)
        if name == "FFHQ":
            rows = (1.0 - size) * np.eye(1, 12) + size * np.eye(3, 12)
        reference["models"] = {"vgg16": {"file": rows.astype(np.float32)}}
    result = audits.run(audits.parse_config(values), base=tmp_path)
    assert marks(result)["M3.4"] == mark


class Network(torch.nn.Module):
    """Makes maps of the size that VGG16 makes, of 3 numbers a cell."""

    def forward(self, pixels):
        return [torch.nn.functional.adaptive_avg_pool2d(pixels, (20, 15))]


def test_maps_of_faces_are_cut_into_rows(tmp_path, monkeypatch):
    files = study_files("image-search", tmp_path / "study.yaml", tmp_path)
    module = tmp_path / "vgg_maps.py"
    module.write_text(files[module], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("timm.create_model", lambda *_, **__: Network())
    model = load_model("python:vgg_maps:make")
    try:
        image = np.zeros((65, 50, 3), np.uint8)
        image[:13] = 255
        maps = model.features([image]).reshape(20, 15, 3)
    finally:
        sys.modules.pop("vgg_maps", None)
    assert importlib.util.find_spec("vgg_maps") is not None
    # The upper fifth is white: four of 20 rows.
    assert [*(maps.mean(axis=(1, 2)) > 1.0)] == [True] * 4 + [False] * 16
