"""`equipoise quick` and `equipoise.audit`: a report from one table, whatever its shape."""

import re

import numpy as np
import polars as pl
import pytest
import yaml

import equipoise
from audits.live_models import worlds
from equipoise.audits.quick import guess_config
from equipoise.cli.commands import quick
from equipoise.core import ConfigError

ROWS = 600


def table(**more):
    rng = np.random.default_rng(0)
    sex, label = rng.choice(["female", "male"], ROWS), rng.choice(["0", "1"], ROWS)
    wrong = rng.random(ROWS) < np.where(sex == "female", 0.35, 0.05)
    pred = np.where(wrong, np.where(label == "0", "1", "0"), label)
    return pl.DataFrame({"sex": sex, "label": label, "pred": pred}).with_columns(**more)


def words(column):
    return pl.col(column).replace_strict({"0": "no", "1": "yes"})


IDS = pl.Series([f"{n}.jpg" for n in range(ROWS)])
AGES = pl.Series(np.random.default_rng(1).integers(5, 90, ROWS))
SCORES = (pl.col("pred") == "1") * 0.5 + pl.int_range(pl.len()) / 1300
SHAPES = {
    "plain": table().write_csv().encode(),
    "semicolons": table().write_csv(separator=";").encode(),
    "Excel": table(city=pl.lit("Köln")).write_csv(separator=";").encode("cp1252"),
    "Excel, Unicode text": table().write_csv(separator="\t").encode("utf-16"),
    "byte order mark": table().write_csv(include_bom=True).encode(),
    "ids": table(image_id=IDS).write_csv().encode(),
    "text labels": table(label=words("label"), pred=words("pred")).write_csv().encode(),
    "missing groups": table(
        sex=pl.when(pl.int_range(pl.len()) % 20 == 0).then(None).otherwise("sex")
    ).write_csv(null_value="N/A").encode(),
    "persons": table(person=pl.int_range(pl.len()) // 3).write_csv().encode(),
    "ages": table(age=AGES).write_csv().encode(),
    "predictions in other words": table(pred=words("pred")).write_csv().encode(),
    "quoted cells": table(note=pl.lit('a, "b"\nand c')).write_csv(quote_style="always").encode(),
    "scores": table(score=SCORES).drop("pred").write_csv().encode(),
    "decimal commas": table(
        score=SCORES.cast(pl.String).str.replace(".", ",", literal=True)
    ).drop("pred").write_csv(separator=";").encode(),
}  # fmt: skip
GIVEN = {
    "ages": ("--pred", "pred"),
    "scores": ("--score", "score", "--threshold", "0.5"),
    "decimal commas": ("--score", "score", "--threshold", "0.5"),
}
"""What names the predictions; elsewhere it is guessed."""
AGAIN = ("Excel", "ages", "missing groups", "predictions in other words", "decimal commas")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_any_shape_gives_a_report_and_its_config(command, tmp_path, monkeypatch, shape):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(SHAPES[shape])
    groups = "sex,age" if shape == "ages" else "sex"
    options = GIVEN.get(shape, ())
    code, _, err = command("quick", "t.csv", "--target", "label", "--groups", groups, *options)
    assert code == 0
    result = equipoise.load("runs/t")
    rows = [
        finding for finding in result.findings if finding.groups == "sex" and finding.null == "rows"
    ]
    worst = {(row.metric, row.aggregate, row.compared_to): row for row in rows}
    assert worst["accuracy", "worst_group", ""].verdict == "disparity"
    assert worst["accuracy", "worst_group", ""].value == pytest.approx(0.65, abs=0.06)
    # Of two groups, worst-group accuracy and the gap state the difference in accuracy.
    assert worst["accuracy", "difference", ""].family == "composite"
    gap = worst["accuracy", "difference", "overall"]
    assert gap.family == worst["accuracy", "worst_group", ""].family == "fold"
    text = (tmp_path / "runs" / "t" / "config.yaml").read_text("utf-8")
    assert text in err
    if shape in AGAIN:
        # The config that the run holds gives the same.
        assert command("audit", "runs/t/config.yaml", "--out", "again")[0] == 0
        assert repr(equipoise.load("again").findings) == repr(result.findings)
    config = yaml.safe_load(text)
    images = config["data"].get("images", config["data"])
    assert images["id"] == ("image_id" if shape == "ids" else "row number")
    assert config["data"].get("unit") == ("person" if shape == "persons" else None)
    assert images.get("missing", [""]) == (["", "N/A"] if shape == "missing groups" else [""])
    assert config["data"]["positive"] == ("yes" if shape == "text labels" else "1")
    parity = [finding for finding in result.findings if finding.metric == "demographic_parity"]
    assert {finding.subject for finding in parity} == {"", config["data"]["positive"]}
    if shape == "ages":
        bands = {part.group for part in worst_of(result, "age band").by_group}
        assert bands == {"age under 18", "age 18–29", "age 30–44", "age 45–59", "age 60 and over"}


def worst_of(result, groups):
    return next(
        finding
        for finding in result.findings
        if (finding.aggregate, finding.groups) == ("worst_group", groups)
    )


SCORED = table(score=SCORES)
REFUSED = {
    "no such column": (table(), ("--target", "lable", "--pred", "pred"), "lable"),
    "per cent": (table(score=pl.format("{}%", SCORES)), ("--pred", "score"), "score"),
    "no positive class": (
        SCORED.with_columns(label=pl.col("label").replace({"0": "cat", "1": "dog"})),
        ("--score", "score"), "label",
    ),
    "no predictions": (table().drop("pred"), (), "pred or score"),
    "other labels": (table(pred=pl.lit("cat")), (), "pred"),
    "one group": (table(sex=pl.lit("female")), (), "sex"),
    "a model without images": (table(), ("--model", "hf:clip"), "--images"),
    "no rows": (table().head(0), (), "t.csv"),
}  # fmt: skip


@pytest.mark.parametrize("shape", REFUSED)
def test_what_cannot_be_audited_is_one_message(command, tmp_path, monkeypatch, shape):
    monkeypatch.chdir(tmp_path)
    data, options, named = REFUSED[shape]
    data.write_csv("t.csv")
    options = options if "--target" in options else ("--target", "label", *options)
    code, out, err = command("quick", "t.csv", "--groups", "sex", *options)
    assert (code, out) == (2, "")
    assert named in err
    assert "To do: " in err
    assert not (tmp_path / "runs").exists()


NUMBERS = {"size": np.linspace(0, 9, ROWS), "size_pred": np.linspace(0.1, 9.4, ROWS)}
OF_CLASSES = {"target": "label", "pred": "pred"}
OF_NUMBERS = {"target": "size", "pred": "size_pred"}


@pytest.mark.parametrize(
    ("names", "needless", "partner"),
    [
        (OF_CLASSES, {"threshold": 0.3}, "score"),
        (OF_CLASSES, {"images": "photos"}, "model"),
        (OF_CLASSES, {"features": ["sex"]}, "a model that predicts rows"),
        (OF_NUMBERS, {"threshold": 0.3}, "score"),
        (OF_NUMBERS, {"positive": "1"}, "a target of two classes"),
        (OF_NUMBERS, {"model": "python:a:b", "images": "."}, "a target of classes"),
    ],
)
def test_a_choice_that_does_not_apply_is_refused(names, needless, partner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "0.jpg").touch()
    with pytest.raises(ConfigError) as refused:
        equipoise.audit(table(**NUMBERS, image_id=IDS), groups="sex", **names | needless)
    assert (refused.value.key, refused.value.expected) == (next(iter(needless)), partner)


def test_a_flag_that_does_not_apply_says_what_it_goes_with(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().write_csv(tmp_path / "t.csv")
    named = ("t.csv", "--target", "label", "--pred", "pred", "--groups", "sex")
    code, _, err = command("quick", *named, "--threshold", "0.3")
    assert code == 2
    assert "--score" in err
    assert not (tmp_path / "runs").exists()


def test_a_model_runs_on_a_folder_and_its_config_runs_again(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds.make(tmp_path / "world")
    table, model = "world/images.csv", "hf:world/clip"
    options = ("--target", "subject", "--groups", "frame", "--model", model)
    code, _, err = command("quick", table, *options, "--images", "world/pictures")
    assert code == 0, err
    assert f"{model}: chooses between " in err
    assert "images: world/pictures, named by file" in err
    result = equipoise.load("runs/images")
    assert {finding.model for finding in result.findings} == {model}
    assert command("audit", "runs/images/config.yaml", "--out", "again")[0] == 0
    assert repr(equipoise.load("again").findings) == repr(result.findings)
    assert [path.name for path in tmp_path.glob("**/evidence")] == ["evidence"]
    code, _, err = command("quick", table, *options, "--images", "world/clip", "--out", "other")
    assert code == 2
    assert "no column names files in world/clip" in err


def test_two_classes_without_a_positive_one_are_both_reported():
    data = table(label=pl.col("label").replace_strict({"0": "cat", "1": "dog"}))
    data = data.with_columns(pred=pl.col("label"))
    result = equipoise.audit(data, target="label", pred="pred", groups="sex")
    assert {finding.subject for finding in result.findings} >= {"cat", "dog"}
    with pytest.raises(equipoise.core.ConfigError, match="positive"):
        equipoise.audit(data, target="label", pred="pred", groups="sex", positive="horse")


def test_python_gives_what_the_command_gives(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = table(image_id=IDS)
    data.write_csv("t.csv")
    options = ("--target", "label", "--pred", "pred", "--groups", "sex")
    assert command("quick", "t.csv", *options)[0] == 0
    result = equipoise.audit(data.to_pandas(), target="label", pred="pred", groups="sex")
    assert repr(result.findings) == repr(equipoise.load("runs/t").findings)


IMAGES = pl.format("{}.jpg", pl.int_range(pl.len()) // 3)


def test_an_image_that_repeats_is_the_unit(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(image=IMAGES).write_csv("t.csv")
    code, _, err = command("quick", "t.csv", "--target", "label", "--groups", "sex")
    assert code == 0
    assert "unit: image, which repeats" in err
    config = yaml.safe_load((tmp_path / "runs" / "t" / "config.yaml").read_text("utf-8"))
    assert (config["data"]["unit"], config["data"]["id"]) == ("image", "row number")
    assert {finding.unit for finding in equipoise.load("runs/t").findings} == {"unit"}


@pytest.mark.parametrize(
    "column",
    [
        # Few values, or many rows of each, are classes or places.
        {"class_id": pl.int_range(pl.len()) % 5},
        {"camera_id": pl.int_range(pl.len()) % 20},
    ],
    ids=["classes", "cameras"],
)
def test_an_id_of_few_values_is_no_unit(column):
    result = equipoise.audit(table(**column), target="label", groups="sex")
    assert {finding.unit for finding in result.findings} == {"row"}


SCENES = {"scene": pl.int_range(pl.len()) % 3}


def scenes(**columns):
    """Return a table of images without predictions."""
    return table(**columns).select(
        "sex", *columns, file=pl.format("{}.jpg", pl.int_range(pl.len()))
    )


def test_scenes_of_few_values_are_labels_and_persons_are_units():
    guess = guess_config(scenes(**SCENES), groups=["sex"])
    assert (guess.data["labels"], guess.data.get("unit")) == (["scene"], None)
    guess = guess_config(scenes(person=pl.int_range(pl.len()) % 15), groups=["sex"])
    assert (guess.data["labels"], guess.data["unit"]) == ([], "person")
    many = scenes(scene=pl.int_range(pl.len()) // 3)
    guess = guess_config(many, groups=["sex"])
    assert (guess.data["labels"], guess.data["unit"]) == ([], "scene")
    guess = guess_config(scenes(**SCENES), groups=["sex"], unit="scene")
    assert (guess.data["labels"], guess.data["unit"]) == ([], "scene")
    assert "unit: scene" in guess.notes


def test_labels_can_be_named(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenes(**SCENES, weather=pl.int_range(pl.len()) % 2).write_csv("t.csv")
    code, _, err = command("quick", "t.csv", "--groups", "sex", "--labels", "weather")
    assert code == 0, err
    config = yaml.safe_load((tmp_path / "runs" / "t" / "config.yaml").read_text("utf-8"))
    assert config["data"]["labels"] == ["weather"]
    code, _, err = command("quick", "t.csv", "--labels", "weather", "--target", "scene")
    assert code
    assert "leave --labels out" in " ".join(err.split())


def test_rows_are_independent_where_the_unit_is_empty():
    result = equipoise.audit(table(image=IMAGES), target="label", groups="sex", unit="")
    assert {finding.unit for finding in result.findings} == {"row"}


@pytest.mark.parametrize(("answer", "unit"), [(True, "image"), (False, None)])
def test_a_person_at_the_terminal_is_asked_for_the_unit(
    command, tmp_path, monkeypatch, answer, unit
):
    questions = []

    def confirm(text, **options):
        questions.append(text)
        return answer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quick.click, "confirm", confirm)
    table(image=IMAGES).write_csv("t.csv")
    arguments = "quick", "t.csv", "--target", "label", "--groups", "sex", "--overwrite"
    command(*arguments)
    assert questions == []
    monkeypatch.setattr(quick, "on_terminal", lambda: True)
    command(*arguments)
    assert len(questions) == 1
    config = yaml.safe_load((tmp_path / "runs" / "t" / "config.yaml").read_text("utf-8"))
    assert config["data"].get("unit") == unit
    # Where the unit is named, or nobody reads, nothing is asked.
    command(*arguments, "--unit", "image")
    command(*arguments, "--json")
    assert len(questions) == 1


def test_a_column_of_models_makes_models():
    rows = table(image=IDS)
    other = rows.with_columns(pred=pl.col("label"))
    both = pl.concat([rows.with_columns(model=pl.lit("a")), other.with_columns(model=pl.lit("b"))])
    result = equipoise.audit(both, target="label", groups="sex")
    alone = equipoise.audit(rows, target="label", groups="sex", pred="pred", id="image")
    of_model = {
        name: {(f.metric, f.aggregate, f.subject): (f.value, f.n, f.unit)
               for f in each.findings if f.model == model and f.value == f.value}
        for name, each, model in (("a", result, "a"), ("alone", alone, "pred"))
    }  # fmt: skip
    assert of_model["a"] == of_model["alone"]
    assert {finding.n for finding in result.findings if finding.model == "b"} <= {
        finding.n for finding in alone.findings
    }
    shuffled = equipoise.audit(both.sample(fraction=1.0, shuffle=True, seed=1),
                               target="label", groups="sex")  # fmt: skip
    assert repr(shuffled.findings) == repr(result.findings)


@pytest.mark.parametrize("groups", ["pred", "label", "sex,pred"])
def test_groups_are_no_column_of_labels(tmp_path, monkeypatch, groups, command):
    monkeypatch.chdir(tmp_path)
    table().write_csv("t.csv")
    code, _, err = command(
        "quick", "t.csv", "--target", "label", "--pred", "pred", "--groups", groups
    )
    assert code == 2
    assert ("is the target, too" if groups == "label" else "predictions, too") in err


def test_numbers_that_are_equal_are_one_class(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = equipoise.audit(table(), target="label", pred="pred", groups="sex")
    floats = table(label=pl.col("label") + ".0")
    result = equipoise.audit(floats, target="label", pred="pred", groups="sex")
    first, second = (
        [repr((f.metric, f.aggregate, f.value)) for f in each.findings if not f.subject]
        for each in (plain, result)
    )
    assert first == second
    assert {f.subject for f in result.findings} <= {"", "0.0", "1.0"}


def test_scores_are_proposed_with_the_positive_class(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    table(pred=pl.col("pred").replace({"1": "2"})).write_csv("t.csv")
    code, _, err = command(
        "quick", "t.csv", "--target", "label", "--pred", "pred", "--groups", "sex"
    )
    assert code == 2
    assert "--score pred --positive 1" in err


def test_the_advice_about_numbers_as_groups_works(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    table(share=pl.int_range(pl.len()) / 1000).write_csv("t.csv")
    code, _, err = command(
        "quick", "t.csv", "--target", "label", "--pred", "pred", "--groups", "share"
    )
    assert code == 2
    advice = re.search(r"`(table: .*?)`.*name “(.*?)” under", err)
    source = yaml.safe_load(advice[1].replace("18, 30", "0.2, 0.4"))
    config = {
        "audit": "predictions",
        "data": {"target": "label", "groups": [advice[2]], **source},
        "models": {"m": {"prediction": "pred", **source}},
    }
    assert equipoise.audit(config).findings
