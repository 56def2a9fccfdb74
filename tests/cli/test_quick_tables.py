"""`equipoise quick` on tables as tools write them: what it guesses, and what it lists."""

import json
import re

import numpy as np
import openpyxl
import polars as pl
import pytest
import yaml

import equipoise
from equipoise.audits.quick import guess_config
from equipoise.core import DataError, EquipoiseError

ROWS = 400


@pytest.fixture
def quick(command, tmp_path, monkeypatch):
    """Run `equipoise quick` on a table; return the result, its config and the printed text."""
    monkeypatch.chdir(tmp_path)

    def run(path, *options):
        code, _, err = command("quick", str(path), *options, "--out", "run")
        assert code == 0, err
        config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text("utf-8"))
        return equipoise.load("run"), config, err

    return run


def rates(result, metric, groups):
    """Return the rate of each group."""
    return next(
        {part.group: part.value for part in finding.by_group}
        for finding in result.findings
        if (finding.metric, finding.groups) == (metric, groups) and finding.by_group
    )


def test_counts_of_a_confusion_matrix_need_no_options(quick, command, shared_dir):
    result, config, err = quick(shared_dir / "inputs" / "counts.csv")
    rate = rates(result, "true_positive_rate", "gender")
    assert rate == {"Male": pytest.approx(1284 / 1500), "Female": pytest.approx(1120 / 1500)}
    assert {*config["data"]["table"]["count"]} == {"TP", "TN", "FP", "FN"}
    # The config that the run holds gives the same.
    assert command("audit", "run/config.yaml", "--out", "again")[0] == 0
    assert repr(equipoise.load("again").findings) == repr(result.findings)
    assert "# TP, TN, FP, FN: numbers of rows" in err


def test_counts_of_several_models_are_not_pooled(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(m, g, 400, 500, 50, 50 + 40 * (g == "f")) for m in "AB" for g in "mf"]
    names = ["model", "gender", "TP", "TN", "FP", "FN"]
    pl.DataFrame(rows, names, orient="row").write_csv("t.csv")
    code, _, err = command("quick", "t.csv")
    assert code == 2
    assert "where: {model: A}" in err
    # The config of one model, as the error says.
    pl.DataFrame(rows[:2], names, orient="row").write_csv("a.csv")
    assert command("quick", "a.csv")[0] == 0
    text = (tmp_path / "runs" / "a" / "config.yaml").read_text("utf-8").replace("a.csv", "t.csv")
    config = yaml.safe_load(text)
    for section in (config["data"], *config["models"].values()):
        section["where"] = {"model": "A"}
    (tmp_path / "runs" / "where.yaml").write_text(yaml.safe_dump(config).replace("../../", "../"))
    assert command("audit", "runs/where.yaml", "--out", "where")[0] == 0
    expected = equipoise.load("runs/a").findings
    assert [finding.value for finding in equipoise.load("where").findings] == pytest.approx(
        [finding.value for finding in expected], nan_ok=True
    )


def test_a_table_for_excel_has_decimal_commas(quick, shared_dir):
    _, config, err = quick(shared_dir / "inputs" / "excel-sep.csv")
    assert config["data"]["table"]["decimal"] == ","
    assert (config["data"]["target"], config["data"]["groups"]) == ("label", ["gender"])
    assert "decimal: comma, in 'p'" in err


def test_rows_of_two_models_make_two_models(quick, shared_dir):
    result, config, _ = quick(shared_dir / "inputs" / "long-format.csv")
    assert {*config["models"]} == {"x", "y"}
    sizes = {finding.n for finding in result.findings if finding.metric == "accuracy"}
    assert sizes == {300}


def test_several_values_a_cell_are_labels_and_groups(quick, shared_dir):
    path = shared_dir / "inputs" / "multi-valued.csv"
    result, config, _ = quick(path)
    assert config["audit"] == "dataset"
    assert config["data"]["images"]["table"]["split"] == {"ancestry": "[]", "findings": "|"}
    rows = pl.read_csv(path)
    mass = rows["findings"].str.split("|").list.contains("Mass")
    expected = {gender: mass.filter(rows["gender"] == gender).mean() for gender in ("F", "M")}
    shares = pl.DataFrame(result.tables["label_shares"])
    measured = shares.filter(label="findings: Mass", groups="gender")
    assert dict(measured.select("group", "share").iter_rows()) == pytest.approx(expected)
    africa = rows["ancestry"].str.contains("'0. Africa'").sum()
    sizes = {finding.n for finding in result.findings if finding.groups == "ancestry: 0. Africa"}
    assert sizes == {ROWS}
    assert africa == next(
        part.n
        for finding in result.findings
        if finding.groups == "ancestry: 0. Africa"
        for part in finding.by_group
        if part.levels == ("true",)
    )


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("sentinel.csv", ["skin_type"]),
        ("numeric-codes.csv", ["Male", "Young", ["Male", "Young"]]),
        ("harness-samples.jsonl", ["metadata.gender"]),
    ],
)
def test_groups_are_known_by_their_names(quick, shared_dir, name, groups):
    _, config, _ = quick(shared_dir / "inputs" / name)
    assert config["data"]["groups"] == groups


def test_records_by_key_are_read(command, tmp_path, monkeypatch, shared_dir):
    monkeypatch.chdir(tmp_path)
    records = json.loads((shared_dir / "inputs" / "dict-of-records.json").read_text())
    first, second = records.values()
    many = {f"clip_{n:03d}.mp4": (first, second)[n % 2] for n in range(80)}
    (tmp_path / "t.json").write_text(json.dumps(many))
    code, _, err = command("quick", "t.json", "--groups", "label.gender,skin-type.type")
    assert code == 0, err
    config = yaml.safe_load((tmp_path / "runs" / "t" / "config.yaml").read_text("utf-8"))
    assert config["data"]["images"]["id"] == "record key"
    # The file of two records is read as well, and says that two are too few.
    code, _, err = command("quick", str(shared_dir / "inputs" / "dict-of-records.json"))
    assert code == 2
    assert "30 or more images" in err


def harness(rows=ROWS):
    """Return samples of an evaluation harness, whose answers are worse for one gender."""
    rng = np.random.default_rng(0)
    gender, truth = rng.choice(["f", "m"], rows), rng.choice(["A", "B"], rows)
    wrong = rng.random(rows) < np.where(gender == "f", 0.4, 0.02)
    answer = np.where(wrong, np.where(truth == "A", "B", "A"), truth)
    columns = zip(gender.tolist(), truth.tolist(), answer.tolist(), strict=True)
    return [
        {"doc_id": n, "doc": {"gender": group}, "target": label, "filtered_resps": [said]}
        for n, (group, label, said) in enumerate(columns)
    ]


def test_samples_of_a_harness_are_predictions(quick, tmp_path):
    samples = harness()
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, samples)))
    result, config, _ = quick("t.jsonl")
    assert config["audit"] == "predictions"
    assert config["data"]["table"]["results"] == "lm_eval"
    assert config["models"]["answer"]["prediction"] == "answer"
    right = [row["target"] == row["filtered_resps"][0] for row in samples]
    rate = rates(result, "accuracy", "metadata.gender")
    for group in ("f", "m"):
        of_group = [
            ok for ok, row in zip(right, samples, strict=True) if row["doc"]["gender"] == group
        ]
        assert rate[group] == pytest.approx(np.mean(of_group))


def test_a_column_of_counts_stands_for_rows(quick, tmp_path):
    rows = pl.DataFrame(harness()).select(
        "target", gender=pl.col("doc").struct.field("gender"), pred=pl.col("filtered_resps").list[0]
    )
    rows.write_csv(tmp_path / "rows.csv")
    rows.group_by(rows.columns).len("n").sort(rows.columns).write_csv(tmp_path / "counts.csv")
    result, config, _ = quick("counts.csv")
    assert config["data"]["table"]["count"] == "n"
    expected = equipoise.audit(rows, target="target", groups="gender", pred="pred")
    assert rates(result, "accuracy", "gender") == rates(expected, "accuracy", "gender")
    assert [finding.n for finding in result.findings] == [
        finding.n for finding in expected.findings
    ]


def test_a_number_that_repeats_rows_is_no_count(quick, tmp_path):
    rows = pl.DataFrame(harness()).select(
        "target", gender=pl.col("doc").struct.field("gender"), pred=pl.col("filtered_resps").list[0]
    )
    rows.with_columns(n=pl.int_range(pl.len()) % 7).write_csv(tmp_path / "t.csv")
    result, config, _ = quick("t.csv")
    assert config["data"]["table"] == "../t.csv"
    assert {finding.n for finding in result.findings if finding.metric == "accuracy"} == {ROWS}


def test_a_prediction_is_of_the_column_that_it_is_named_after(quick, shared_dir):
    result, config, _ = quick(shared_dir / "inputs" / "age-regression.csv")
    assert (config["audit"], config["data"]["target"]) == ("regression", "age")
    error = rates(result, "mean_absolute_error", "race")
    assert error == {"Black": pytest.approx(7.34, abs=0.01), "White": pytest.approx(3.27, abs=0.01)}


@pytest.mark.parametrize(
    ("columns", "command_line"),
    [
        ({"x": ["a", "b"], "pred": ["c", "d"]}, "--groups GROUPS"),
        ({"gender": ["a", "b"], "pred": ["c", "d"]}, "--groups gender --pred pred"),
    ],
    ids=["groups", "labels"],
)
def test_a_table_that_says_too_little_is_listed(
    command, tmp_path, monkeypatch, columns, command_line
):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(columns).write_csv("a table.csv")
    code, out, err = command("quick", "a table.csv")
    assert (code, out) == (2, "")
    assert all(re.search(rf"{name} +text +2 values: ", err) for name in columns)
    assert "equipoise quick 'a table.csv' --target LABELS " in err
    assert command_line in err


def test_what_is_named_is_not_guessed(tmp_path):
    rows = pl.DataFrame({"gender": ["f", "m"] * 50, "label": ["a", "b"] * 50})
    with pytest.raises(DataError, match="the column doesn't exist"):
        equipoise.audit(rows, target="lable", groups="gender")


def counts_with(cell, row=0):
    """Return counts of labels and predictions by gender, of which a cell is another text."""
    names = ["a", "b", "c"]
    rows = [(g, y, p, str(40 + 9 * (y == p))) for g in "fm" for y in names for p in names]
    table = pl.DataFrame(rows, ["gender", "label", "pred", "n"], orient="row")
    return table.with_columns(n=pl.Series([*table["n"][:row], cell, *table["n"][row + 1 :]]))


def error_of(table, path, **named):
    """Return the error of a guessed configuration of a table as a file of some separator."""
    table.write_csv(path, separator=";" if path.stem.endswith("semicolon") else ",")
    with pytest.raises(EquipoiseError) as caught:
        guess_config(path, **named)
    return caught.value


@pytest.mark.parametrize("cell", ["-40", "40.5", "", "1,090", "1.090", "forty"])
def test_a_bad_cell_of_counts_is_named(tmp_path, cell):
    error = error_of(counts_with(cell, 4), tmp_path / "t.csv")
    assert (error.column, error.row) == ("n", 5)
    assert cell in str(error)


def test_a_repeated_row_of_counts_is_named(tmp_path):
    table = counts_with("40")
    error = error_of(pl.concat([table, table[2:3]]), tmp_path / "t.csv")
    assert (error.column, error.row) == ("n", len(table) + 1)


def test_a_column_that_is_not_read_as_counts_is_noted(tmp_path):
    rows = pl.concat([counts_with("40")] * 5)
    path = tmp_path / "t.csv"
    rows.write_csv(path)
    for named in ({}, {"target": "label", "groups": ["gender"], "pred": "pred"}):
        guess = guess_config(path, **named)
        assert "count" not in guess.steps
        assert any("n" in note and "counts" in note for note in guess.notes)


def incomes(form):
    """Return incomes and their predictions, as text in a form of numbers."""
    numbers = np.random.default_rng(0).integers(1, 9, (80, 2)) * 1111.5
    income, predicted = ([form(value) for value in column] for column in numbers.T)
    return pl.DataFrame({"gender": ["f", "m"] * 40, "income": income, "pred_income": predicted})


@pytest.mark.parametrize(
    ("form", "file", "values"),
    [
        (lambda x: f"{int(x):,}", "t.csv", ["3334", "3.334"]),
        (lambda x: f"{int(x):,}", "semicolon.csv", ["3334", "3.334"]),
        (lambda x: f"{x:,.2f}", "t.csv", ["3334.50"]),
        (lambda x: f"{x:,.2f}".translate({44: ".", 46: ","}), "semicolon.csv", ["3334.50"]),
        (lambda x: f"{x:.1f}".replace(".", ","), "t.csv", ["3334.5", "decimal: "]),
    ],
)
def test_marks_that_are_no_decimal_marks_are_refused(tmp_path, form, file, values):
    table = incomes(form)
    table = table.with_columns(income=pl.Series([form(3334.5), *table["income"][1:]]))
    error = error_of(table, tmp_path / file)
    assert (error.column, error.row) == ("income", 1)
    assert all(value in error.fix for value in values)


def test_three_digits_after_a_comma_may_be_decimals(tmp_path):
    path = tmp_path / "t.csv"
    incomes(lambda x: f"{x / 10000:.3f}".replace(".", ",")).write_csv(path, separator=";")
    assert guess_config(path).steps["decimal"] == ","


def test_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("gender,label,label\n" + "f,a,b\nm,b,b\n" * 40)
    with pytest.raises(DataError) as caught:
        guess_config(path)
    assert caught.value.column == "label"
    # Programs leave columns without a name at the end of rows.
    path.write_text("gender,label,pred,,\n" + "f,a,b,,\nm,b,b,,\n" * 40)
    assert guess_config(path).data["target"] == "label"


@pytest.mark.parametrize("name", ["pred", "score"])
def test_a_target_is_not_compared_with_itself(tmp_path, name):
    table = pl.DataFrame({"gender": ["f", "m"] * 40, "label": ["a", "b", "b", "a"] * 20})
    named = {"target": "label", "groups": ["gender"], name: ["label"]}
    assert "'label'" in str(error_of(table, tmp_path / "t.csv", **named))


def test_a_constant_target_is_noted(tmp_path):
    path = tmp_path / "t.csv"
    columns = {"gender": ["f", "m"], "label": ["cat", "cat"], "answer": ["cat", "dog"]}
    pl.DataFrame({name: cells * 40 for name, cells in columns.items()}).write_csv(path)
    guess = guess_config(path)
    assert guess.audit == "dataset"
    assert any("label" in note and "'cat'" in note for note in guess.notes)


@pytest.mark.parametrize(
    ("predicted", "fix"),
    [(["0.1", "0.9"], "--score score --positive "), (["hird", "rejected"], "may be 'hired'")],
)
def test_labels_that_are_no_classes_name_options(tmp_path, predicted, fix):
    columns = {"gender": ["f", "m"], "label": ["hired", "rejected"], "score": predicted}
    table = pl.DataFrame({name: cells * 40 for name, cells in columns.items()})
    error = error_of(table, tmp_path / "t.csv")
    assert error.column == "score"
    assert fix in error.fix
    assert "models." not in error.fix
    if predicted[0] == "0.1":
        assert guess_config(tmp_path / "t.csv", score="score", positive="hired").models


def test_a_list_deep_in_json_is_named(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"version": 1, "results": {"items": harness(4)}}))
    with pytest.raises(DataError) as caught:
        guess_config(path)
    assert "records: results.items" in caught.value.fix


def test_quick_audits_a_sheet(quick, tmp_path):
    rows = [(n, "mf"[n % 2], n // 2 % 2, n // 2 % 2 if n % 8 else 1 - n // 2 % 2)
            for n in range(400)]  # fmt: skip
    book = openpyxl.Workbook()
    for row in [("id", "gender", "label", "pred"), *rows]:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    result, config, _ = quick(tmp_path / "t.xlsx")
    assert result.groups == {"gender": {"f": 200, "m": 200}}
    assert config["audit"] == "predictions"


def occupations(rows=ROWS):
    """Return labels, and columns of predictions with the names of their models."""
    rng = np.random.default_rng(3)
    jobs = np.array(["doctor", "driver", "nurse"])
    job = jobs[rng.integers(3, size=rows)]
    columns = {
        name: np.where(rng.random(rows) < 0.8, job, jobs[rng.integers(3, size=rows)])
        for name in ("resnet50", "vit_b16")
    }
    sex = np.array(["man", "woman"])[rng.integers(2, size=rows)]
    # The label isn't the first column.
    return pl.DataFrame({"vit_b16": columns["vit_b16"], "occupation": job, **columns, "sex": sex})


NAMED = "--target occupation --pred vit_b16,resnet50 --groups sex"


def test_a_table_of_predictions_with_other_names_gets_the_command(quick, raw_command, tmp_path):
    occupations().write_csv(tmp_path / "t.csv")
    code, _, err = raw_command("quick", "t.csv")
    assert (code, (tmp_path / "runs").exists()) == (2, False)
    assert f"\n  equipoise quick t.csv {NAMED}\n" in err
    assert "name --groups sex alone" in err
    _, config, _ = quick("t.csv", *NAMED.split())
    assert (config["audit"], {*config["models"]}) == ("predictions", {"vit_b16", "resnet50"})


def test_labels_that_agree_are_audited_where_the_groups_are_named(quick, tmp_path):
    occupations().write_csv(tmp_path / "t.csv")
    _, config, err = quick("t.csv", "--groups", "sex")
    assert config["audit"] == "dataset"
    first_note = next(line for line in err.splitlines() if line.startswith("# "))
    assert NAMED in first_note


def test_a_named_label_is_the_target_of_columns_that_agree(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    occupations().rename({"occupation": "label"}).drop("vit_b16").write_csv("t.csv")
    assert "--target label --pred resnet50 --groups sex" in command("quick", "t.csv")[2]


def test_attributes_with_the_same_two_values_are_labels(tmp_path):
    rng = np.random.default_rng(4)
    attributes = rng.integers(2, size=(ROWS, 3))
    # Two attributes often appear together.
    attributes[:, 1] = np.where(rng.random(ROWS) < 0.9, attributes[:, 0], attributes[:, 1])
    table = pl.DataFrame(attributes, ["lipstick", "makeup", "hat"], orient="row")
    guess = guess_config(table.with_columns(sex=pl.Series(["man", "woman"] * (ROWS // 2))))
    assert (guess.audit, guess.notes[0].startswith("groups")) == ("dataset", True)


def test_columns_that_agree_by_chance_are_labels(tmp_path):
    rng = np.random.default_rng(5)
    table = pl.DataFrame(rng.integers(3, size=(ROWS, 2)), ["roof", "floor"], orient="row")
    table = table.with_columns(sex=pl.Series(["man", "woman"] * (ROWS // 2)))
    assert guess_config(table).audit == "dataset"
