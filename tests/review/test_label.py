"""`equipoise label`: a blinded sample, answers read back, and estimates."""

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from equipoise.cli.app import run
from equipoise.core import ConfigError, DataError
from equipoise.report import read
from equipoise.review import (
    conclude,
    find_question,
    key_of,
    load_images,
    read_answers,
    read_draws,
    read_labels,
)
from equipoise.review.sampling import drawn_strata
from review.project import page_data

NAMES = (
    "settled", " Settled ", "\uff33ettled", "set\u200dtled", "a\nb", "a\x00b", "\u202enna",
    "a\u2066b", "a\u200bb", "a\ufffdb", "\u200d", "x" * 81,
)  # fmt: skip
"""Names of labellers that are refused."""
DRAWN = ("--images", "photos", "--size", "120")


def test_the_page_shows_no_prediction_score_group_or_id(project, command):
    output = command("sample", *DRAWN, question="good")
    assert (output["images"], output["strata"]) == (120, "group × label × prediction")
    text = Path("label.html").read_text()
    assert not any(word in text for word in ("women", "nurse", "doctor", *project.ids))
    assert text.count("data:image/jpeg;base64,") == 120
    data = page_data(Path("label.html"))
    assert {tuple(image[2:]) for image in data["images"]} == {("",)}
    # Only the question about the label shows it.
    command("sample", *DRAWN)
    assert {image[2] for image in page_data(Path("label.html"))["images"]} == {"nurse", "doctor"}


def test_the_sample_is_stratified_seeded_and_in_random_order(project, command):
    command("sample", *DRAWN, "--out", "one.html")
    command("sample", *DRAWN, "--out", "two.html")
    command("sample", *DRAWN, "--out", "other.html", "--seed", "1")
    first, second, other = (
        [image[0] for image in page_data(Path(f"{name}.html"))["images"]]
        for name in ("one", "two", "other")
    )
    assert first == second != other
    place = {key_of(name): row for row, name in enumerate(project.ids)}
    groups = Counter(project.group[place[key]] for key in first)
    # Equal precision for both groups, though one is twice as large.
    assert groups["women"] == pytest.approx(60, abs=2)
    order = [place[key] for key in first]
    assert abs(np.corrcoef(order, range(120))[0, 1]) < 0.3


def test_two_labellers_give_agreement_tables_and_thresholds(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    project.answer("bo", errors=0.05, suffix="csv")
    output = command("read", "answers-ann.json", "answers-bo.csv")
    alpha = output["agreement"][0]
    assert alpha["low"] < alpha["value"] < 1
    assert alpha["items"] == 120
    labels = read_labels(Path("run"))
    assert labels.height == 240
    assert labels.columns == ["image_id", "question", "answer", "labeller", "at"]
    by_labeller = labels.pivot("labeller", index="image_id", values="answer")
    differ = by_labeller.filter(pl.col("ann") != pl.col("bo"))["image_id"].to_list()
    assert [row["image_id"] for row in output["disagreements"]] == sorted(differ)
    for row in output["errors"][:2]:
        assert row["measure"] == "share of 'no'"
        assert row["low"] <= project.wrong(row["group"]) <= row["high"]
    assert [row["score"] for row in output["thresholds"]] == ["probability of m"]
    assert {*output["thresholds"][0]["kept"]} == {"men", "women"}
    measures = {row["measure"] for row in output["estimates"]}
    assert measures == {
        "accuracy of m", "base rate of 'nurse'", "true positive rate of 'nurse'",
        "false positive rate of 'nurse'",
    }  # fmt: skip
    # Each table alone, with one command.
    for name in ("agreement", "disagreements", "errors", "estimates", "thresholds"):
        assert command("show", name) == {name: output[name]}


def test_a_settled_answer_decides(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    project.answer("bo", errors=0.2)
    before = command("read", "answers-ann.json", "answers-bo.json")
    open_ = len(before["disagreements"])
    assert command("settle", "--images", "photos", "--out", "s.html")["images"] == open_ > 0
    assert 'value="settled"' in Path("s.html").read_text()
    project.answer("settled", page="s.html")
    error = command("read", "answers-settled.json", code=2)
    assert "answers-settled.json, column 'labeller', row 1" in error
    assert "--settled" in error
    after = command("read", "answers-settled.json", "--settled")
    assert "disagreements" not in after
    assert after["agreement"] == before["agreement"]
    assert sum(row["labelled"] for row in after["errors"][:2]) == 120


def test_the_next_sample_goes_to_the_group_and_draws_no_image_again(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    before = command("read", "answers-ann.json")["errors"]
    output = command(
        "sample", "--images", "photos", "--size", "60", "--sharpen", "women", "--out", "n.html"
    )
    assert output["images"] == 60
    first_keys = {image[0] for image in page_data(Path("label.html"))["images"]}
    new = [image[0] for image in page_data(Path("n.html"))["images"]]
    assert not first_keys & {*new}
    place = {key_of(name): row for row, name in enumerate(project.ids)}
    assert Counter(project.group[place[key]] for key in new)["women"] > 40
    project.answer("ann", page="n.html")
    after = command("read", "answers-ann.json")["errors"]

    def width(rows):
        row = next(row for row in rows if row["group"] == "women")
        return row["difference high"] - row["difference low"]

    assert width(after) < 0.8 * width(before)


def test_labels_survive_a_new_run_and_are_in_its_provenance(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    output = command("read", "answers-ann.json")
    labels = Path("run/labels/labels.parquet").read_bytes()
    Path("c.yaml").write_text(
        Path("c.yaml").read_text().replace("replicates: 20", "replicates: 30")
    )
    assert run(["audit", "c.yaml", "--out", "run", "--overwrite"]) == 0
    assert Path("run/labels/labels.parquet").read_bytes() == labels
    entry = read(Path("run")).manifest.inputs["labels/labels.parquet"]
    assert entry == {"sha256": sha256(labels).hexdigest(), "bytes": len(labels)}
    assert command("show", "errors") == {"errors": output["errors"]}
    assert run(["report", "run"]) == 0
    assert "labels/labels.parquet" in Path("run/report.html").read_text()


def test_estimates_by_other_groups_keep_the_strata_of_the_sample(project, command):
    rng = np.random.default_rng(5)
    old = rng.random(len(project.ids)) < np.where(project.group == "women", 0.8, 0.2)
    age = np.where(old, "old", "young")
    table = pl.read_csv("labels.csv").with_columns(pl.Series("age", age))
    table.write_csv("labels.csv")
    Path("c.yaml").write_text(Path("c.yaml").read_text().replace("groups: [g]", "groups: [g, age]"))
    assert run(["audit", "c.yaml", "--out", "run", "--overwrite"]) == 0
    command("sample", *DRAWN)
    # One sample, one stratification.
    assert "age" in command("sample", *DRAWN, "--groups", "age", code=2)
    project.answer("ann")
    output = command("read", "answers-ann.json", "--groups", "age")
    wrong = project.truth != project.label
    for row in output["errors"][:2]:
        assert row["low"] <= wrong[age == row["group"]].mean() <= row["high"]
    images = load_images(Path("run"), groups="age")
    strata = drawn_strata(Path("run"), images, read_draws(Path("run"), "right"))
    assert len({*strata}) == len({*zip(strata, project.group, strict=True)})


def test_labels_are_exported_and_merged(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    command("read", "answers-ann.json")
    assert command("export", "export.csv") == {"labels": 120, "export": "export.csv"}
    assert run(["audit", "c.yaml", "--out", "other"]) == 0
    ids = np.array(project.ids, dtype=object)
    assert read_answers([Path("export.csv")], ids, {}).equals(read_labels(Path("run")))
    # The latest answer of a labeller stays.
    rows = json.loads(Path("answers-ann.json").read_text())[:1]
    rows[0] |= {"answer": "can't tell", "at": "2026-11-29T09:00:00Z"}
    Path("later.json").write_text(json.dumps(rows))
    command("read", "later.json", "answers-ann.json")
    counts = Counter(read_labels(Path("run"))["answer"])
    assert (counts.total(), counts["can't tell"]) == (120, 1)


def test_runs_without_images_fail_with_one_sentence(project, command):
    error = command("sample", code=2)
    assert error == (
        "run: the run doesn't name the folder of its images. To do: name it with --images"
    )
    assert not Path("label.html").exists()
    assert not Path("run/labels").exists()
    Path("photos/im_0000.png").write_bytes(b"no image")
    assert "photos/im_0000.png" in command("sample", "--images", "photos", "--size", "600", code=2)


@pytest.mark.parametrize(
    ("change", "column"),
    [
        ({"key": "0123456789abcdef"}, "key"),
        ({"answer": "perhaps"}, "answer"),
        ({"labeller": " "}, "labeller"),
        *(({"labeller": name}, "labeller") for name in NAMES),
        ({"at": "yesterday"}, "at"),
    ],
)
def test_odd_answers_name_their_place(project, command, change, column):
    row = {"key": key_of("im_0003"), "question": "right", "answer": "no", "labeller": "ann",
           "at": "2026-11-28T09:00:00Z"}  # fmt: skip
    Path("a.json").write_text(json.dumps([row, row | change]))
    ids = np.array(project.ids, dtype=object)
    with pytest.raises(DataError) as error:
        read_answers([Path("a.json")], ids, {"right": ("yes", "no")})
    assert (error.value.file, error.value.column, error.value.row) == ("a.json", column, 2)


@pytest.mark.parametrize("name", ["\\ud800", "a\\udfffb"])
def test_half_a_surrogate_pair_is_no_name(project, name):
    row = {"key": key_of("im_0003"), "question": "right", "answer": "no", "labeller": "NAME",
           "at": "2026-11-28T09:00:00Z"}  # fmt: skip
    Path("a.json").write_text(json.dumps([row]).replace("NAME", name))
    with pytest.raises(DataError) as error:
        read_answers([Path("a.json")], np.array(project.ids, dtype=object), {})
    assert error.value.file == "a.json"


def test_names_of_any_script_are_accepted(project):
    names = [
        "ann",
        "Zoë",
        "李明",
        "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627",
        "o'neil & co",
        "x" * 80,
    ]
    rows = [{"key": key_of("im_0003"), "question": "right", "answer": "no", "labeller": name,
             "at": "2026-11-28T09:00:00Z"} for name in names]  # fmt: skip
    Path("a.json").write_text(json.dumps(rows))
    labels = read_answers([Path("a.json")], np.array(project.ids, dtype=object), {})
    assert sorted(labels["labeller"]) == sorted(names)


def test_questions_of_ones_own_have_answers():
    assert find_question("Sharp?", answers=["yes", "no"]).counted == "yes"
    assert find_question("visible", attribute="gender").text == "Can you see the gender?"
    for arguments in (
        {"name": "Sharp?"},
        {"name": "good", "answers": ["a", "b"]},
        {"name": "class", "classes": [*"abcdefghij"]},
        {"name": "good", "counted": "perhaps"},
    ):
        with pytest.raises(ConfigError, match="question"):
            find_question(**arguments)


def test_answers_to_a_custom_question_are_recognised_later(project, command):
    options = ("--answer", "sharp", "--answer", "blurred")
    command("sample", *DRAWN, *options, question="How is it?")
    rows = [
        {"key": image[0], "question": "How is it?", "answer": "sharp", "labeller": "ann",
         "at": "2026-11-28T09:00:00Z"}
        for image in page_data(Path("label.html"))["images"]
    ]  # fmt: skip
    Path("a.json").write_text(json.dumps(rows))
    output = command("read", "a.json", question="How is it?")
    assert [row["share"] for row in output["errors"][:2]] == [1.0, 1.0]
    assert all(row["low"] < 1.0 == row["high"] for row in output["errors"][:2])


@pytest.mark.parametrize(("sign", "keep"), [(1, "at least"), (-1, "at most")])
def test_thresholds_find_a_planted_cut(project, command, sign, keep):
    command("sample", *DRAWN, question="good")
    rng = np.random.default_rng(4)
    sharpness = rng.random(len(project.ids))
    place = {key_of(name): row for row, name in enumerate(project.ids)}
    rows = [
        {"key": key, "question": "good", "answer": "yes" if sharpness[place[key]] > 0.4 else "no",
         "labeller": "ann", "at": "2026-11-28T09:00:00Z"}
        for key, *_ in page_data(Path("label.html"))["images"]
    ]  # fmt: skip
    Path("a.json").write_text(json.dumps(rows))
    pl.DataFrame({"image_id": project.ids, "score": sign * sharpness}).write_csv("s.csv")
    (row,) = command("read", "a.json", "--scores", "s.csv", question="good")["thresholds"]
    assert (row["score"], row["keep"], row["labels"]) == ("score", keep, 120)
    assert row["threshold"] == pytest.approx(sign * 0.4, abs=0.03)
    assert row["accuracy"] > 0.95
    assert row["kept"]["women"] == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.json", "{ none", (None, None)),
        ("a.json", '{"a": 1}', (None, None)),
        ("a.csv", "key,question,answer,labeller,at\n{key},right,,ann,{at}\n{key},right,no,ann,x\n",
         ("at", 2)),
    ],
)  # fmt: skip
def test_unreadable_answers_name_their_place(project, name, text, place):
    at = "2026-11-28T09:00:00Z"
    file = Path(name)
    file.write_text(text.replace("{key}", key_of(project.ids[0])).replace("{at}", at))
    with pytest.raises(DataError) as raised:
        read_answers([file], np.array(project.ids, dtype=object), {})
    assert (raised.value.file, raised.value.column, raised.value.row) == (name, *place)
    assert raised.value.expected


def test_answers_that_were_read_are_counted_by_question(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    output = command("read", "answers-ann.json")
    assert (output["answers read"], output["answers to other questions"]) == (120, 0)


def test_scores_of_one_image_are_given_once(project, command):
    command("sample", *DRAWN)
    project.answer("ann")
    command("read", "answers-ann.json")
    images = load_images(Path("run"))
    Path("s.csv").write_text(f"image_id,blur\n{project.ids[0]},1\n{project.ids[0]},2\n")
    with pytest.raises(DataError) as raised:
        conclude(Path("run"), images, find_question("right"), scores=Path("s.csv"))
    assert (raised.value.file, raised.value.column) == ("s.csv", "image_id")
