"""A form: people say which value of an attribute they see, and the report shows how often."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

from equipoise.cli.app import run
from equipoise.core import ConfigError
from equipoise.report import read
from equipoise.report.blocks import Table
from equipoise.review import key_of, read_form
from equipoise.studies.page import source_tables
from equipoise.studies.study import study_files
from review.project import page_data

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "generation"
GOOD, UNKNOWN, NO_WOMAN, NO_MAN, OUTSIDE = (
    "Good", "Cannot discern gender", "Failure to generate female subject",
    "Failure to generate male subject", "Subject completely out of frame/focus",
)  # fmt: skip
SEEN = {NO_WOMAN: "male", NO_MAN: "female"}


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """The folder of a run whose images are all labelled, and a table of the images and answers."""
    folder = tmp_path_factory.mktemp("form") / "example"
    shutil.copytree(EXAMPLE, folder)
    images = pl.read_csv(folder / "images.csv").with_columns(path=pl.col("image_id") + ".png")
    (folder / "photos").mkdir()
    for name in images["path"]:
        Image.new("RGB", (8, 6), (90, 40, 20)).save(folder / "photos" / name)
    images.write_csv(folder / "images.csv")
    config = yaml.safe_load((folder / "audit.yaml").read_text(encoding="utf-8"))
    config["images"] |= {"path": "path", "root": "photos"}
    config |= {"study": "social-counterfactuals", "groups": [["race", "gender"]], "gallery": 0}
    config["resampling"] = {"replicates": 20, "permutations": 20}
    (folder / "c.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert run(["audit", str(folder / "c.yaml"), "--out", str(folder / "run")]) == 0
    for path, text in study_files("social-counterfactuals", folder / "s.yaml", None).items():
        if path.name == "errors.form.yaml":
            path.write_text(text, encoding="utf-8")
    about = ["--form", str(folder / "errors.form.yaml"), "--groups", "race × gender"]
    page, audited = folder / "label.html", str(folder / "run")
    call = ["label", "sample", audited, *about, "--size", "10000", "--out", str(page)]
    assert run(call) == 0
    images = images.filter(pl.col("race").is_not_null() & pl.col("gender").is_not_null())
    rng, rows = np.random.default_rng(2), []
    of_key = {key_of(row["image_id"]): row for row in images.to_dicts()}
    for key, *_ in page_data(page)["images"]:
        image, draw = of_key[key], rng.random()
        failure = NO_WOMAN if image["gender"] == "female" else NO_MAN
        limit = 0.2 if image["race"] == "Black" else 0.05
        answer = failure if draw < limit else (UNKNOWN, OUTSIDE, GOOD)[
            0 if draw < limit + 0.1 else 1 if draw < limit + 0.13 else 2
        ]  # fmt: skip
        rows.append({"key": key, "question": "What does the image show?", "answer": answer,
                     "labeller": "ann", "at": "2026-11-28T09:00:00Z",
                     "race": image["race"], "gender": image["gender"],
                     "image_id": image["image_id"]})  # fmt: skip
    (folder / "answers.json").write_text(json.dumps(
        [{name: row[name] for name in ("key", "question", "answer", "labeller", "at")}
         for row in rows]
    ), encoding="utf-8")  # fmt: skip
    assert run(["label", "read", audited, str(folder / "answers.json"), *about]) == 0
    assert run(["report", str(folder / "run")]) == 0
    return folder, pl.DataFrame(rows)


def cells(folder, caption):
    """Return the numbers of a table of the source by row and column."""
    blocks = source_tables(read(folder / "run")).blocks
    (table,) = [
        block for block in blocks if isinstance(block, Table) and block.caption.startswith(caption)
    ]
    names = [column.title.rstrip(" ↑↓") for column in table.columns[1:]]
    return {(row, name): cell for row, *line in table.rows
            for name, cell in zip(names, line, strict=True)}  # fmt: skip


def test_shares_of_answers_stand_beside_those_of_the_source(answered):
    folder, answers = answered
    shares = cells(folder, "Table 6")
    for answer in (GOOD, UNKNOWN, NO_WOMAN, NO_MAN, OUTSIDE):
        expected = 100 * (answers["answer"] == answer).mean()
        assert shares[answer, "In the sample"].value == pytest.approx(expected)
    assert "printed 90.8" in str(shares[GOOD, "In the sample"])
    by_race = cells(folder, "Table 8")
    for answer, gender in ((NO_WOMAN, "female"), (NO_MAN, "male")):
        for race in ("Black", "White"):
            of_group = answers.filter((pl.col("race") == race) & (pl.col("gender") == gender))
            expected = 100 * (of_group["answer"] == answer).mean()
            assert by_race[answer, race].value == pytest.approx(expected)
    assert "printed\N{NO-BREAK SPACE}90.8" in (folder / "run" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("table", ["Table 9", "Gender in the caption"])
def test_precision_recall_and_f1_are_those_of_a_count_by_hand(answered, table):
    folder, answers = answered
    shown = pl.DataFrame(read(folder / "run").tables["filter_images"])
    passed = dict(shown.filter(pl.col("check") == "gender shown")["image_id", "passed"].rows())
    counts = dict.fromkeys(
        [(says, sees) for says in ("male", "female") for sees in ("male", "female")], 0
    )
    for row in answers.to_dicts():
        if row["answer"] in (UNKNOWN, OUTSIDE):
            continue
        sees, says = SEEN.get(row["answer"], row["gender"]), row["gender"]
        if table == "Table 9":
            if row["image_id"] not in passed:
                continue
            if not passed[row["image_id"]]:
                says = "female" if says == "male" else "male"
        counts[says, sees] += 1
    measured = cells(folder, table)
    for value, other in (("male", "female"), ("female", "male")):
        both, only, missed = counts[value, value], counts[value, other], counts[other, value]
        row = value.capitalize()
        assert measured[row, "Precision"].value == pytest.approx(both / (both + only))
        assert measured[row, "Recall"].value == pytest.approx(both / (both + missed))
        assert measured[row, "F1"].value == pytest.approx(2 * both / (2 * both + only + missed))
        assert measured[row, "Support"].value == both + missed


def test_a_sample_has_intervals_that_hold_what_all_labels_show(answered, capsys, monkeypatch):
    folder, _ = answered
    whole = cells(folder, "Gender in the caption")
    rows = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    shutil.copytree(folder, folder.parent / "part")
    part = folder.parent / "part"
    shutil.rmtree(part / "run" / "labels")
    keys = np.random.default_rng(3).permutation(len(rows))[:150]
    (part / "answers.json").write_text(json.dumps([rows[place] for place in keys]))
    capsys.readouterr()
    call = ["label", "read", str(part / "run"), str(part / "answers.json"), "--form",
            str(part / "errors.form.yaml"), "--groups", "race × gender", "--json"]  # fmt: skip
    assert run(call) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    for row in values:
        if row["by"] == "groups of the run":
            for name, column in (("precision", "Precision"), ("recall", "Recall"), ("f1", "F1")):
                truth = whole[row["value"].capitalize(), column].value
                assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
                assert row[f"{name}_low"] <= truth <= row[f"{name}_high"]


def test_a_form_about_other_groups_is_refused(answered, capsys):
    folder, _ = answered
    (folder / "age.yaml").write_text(
        "question: Who?\nanswers: [young, old]\nsees: {age: {young: young}}\n", encoding="utf-8"
    )
    rows = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    changed = [row | {"question": "Who?", "answer": "old"} for row in rows[:4]]
    (folder / "age.json").write_text(json.dumps(changed), encoding="utf-8")
    audited, form = str(folder / "run"), ["--form", str(folder / "age.yaml")]
    assert run(["label", "read", audited, str(folder / "age.json"), *form]) == 2
    assert "--groups" in capsys.readouterr().err
    assert run(["label", "sample", audited, *form, "--question", "good"]) == 2
    assert run(["label", "sample", audited]) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("question: Who?\nanswers: [a]\n", "answers"),
        ("question: Who?\nanswers: [a, b]\ncounted: c\n", "counted"),
        ("question: Who?\nanswers: [a, b]\nsees: {gender: {c: male}}\n", "sees.gender"),
        ("answers: [a, b]\n", "question"),
        ("[1", "cannot be read"),
    ],
)
def test_a_file_that_is_no_form_is_refused(text, place, tmp_path):
    path = tmp_path / "form.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_form(path)
    assert str(path) in str(error.value)
    assert place in str(error.value)
