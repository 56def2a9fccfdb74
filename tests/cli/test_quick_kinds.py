"""`equipoise quick` on answers, queries and modules of torch, and on a table alone."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
import yaml
from PIL import Image

import equipoise
from audits.live_models import worlds
from equipoise.core import ConfigError

ROWS = 240
MODULE = """\
import torch

def make(device, dtype):
    module = torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2)
    )
    with torch.no_grad():
        module[2].weight.copy_(torch.tensor([[-1.0] * 3, [1.0] * 3]))
        module[2].bias.copy_(torch.tensor([1.5, -1.5]))
    module.classes = ["dark", "light"]
    return module

net = make("cpu", "float32")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers():
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], ROWS)
    answer = np.where(rng.random(ROWS) < np.where(sex == "men", 0.8, 0.2), "doctor", "nurse")
    return pl.DataFrame({"sex": sex, "answer": answer})


def config_of(folder, name):
    return yaml.safe_load((folder / "runs" / name / "config.yaml").read_text("utf-8"))


def test_answers_need_no_labels(command, folder):
    answers().write_csv("t.csv")
    assert command("quick", "t.csv", "--answer", "answer")[0] == 0
    result = equipoise.load("runs/t")
    assert config_of(folder, "t")["audit"] == "answers"
    assert "disparity" in {finding.verdict for finding in result.findings}
    again = equipoise.audit(answers(), groups="sex", answer="answer")
    assert repr(again.findings) == repr(result.findings)
    assert command("audit", "runs/t/config.yaml", "--out", "again")[0] == 0


def test_texts_of_a_user_are_missing_values(command, folder):
    groups = pl.when(pl.int_range(pl.len()) % 10 == 0).then(pl.lit("?")).otherwise("sex")
    answers().with_columns(sex=groups).write_csv("t.csv")
    assert command("quick", "t.csv", "--answer", "answer", "--missing", "?")[0] == 0
    assert config_of(folder, "t")["data"]["missing"] == ["", "?"]
    parts = {part.group for f in equipoise.load("runs/t").findings for part in f.by_group}
    assert parts == {"women", "men"}


def test_a_model_ranks_images_for_queries(command, folder):
    worlds.make(folder / "world")
    words = ("world/images.csv", "--groups", "frame", "--images", "world/pictures")
    options = ("--queries", "world/queries.csv", "--model", "hf:world/clip")
    code, _, err = command("quick", *words, *options)
    assert code == 0, err
    config = config_of(folder, "images")
    assert (config["audit"], {*config["models"]}) == ("retrieval", {"hf:world/clip"})
    assert command("audit", "runs/images/config.yaml", "--out", "again")[0] == 0
    result = equipoise.load("runs/images")
    assert repr(equipoise.load("again").findings) == repr(result.findings)


def test_queries_may_be_a_list_with_one_a_line(command, folder):
    worlds.make(folder / "world")
    queries = pl.read_csv(folder / "world" / "queries.csv").to_series(0)
    (folder / "queries.txt").write_text("\n".join([*queries, ""]))
    words = ("world/images.csv", "--groups", "frame", "--images", "world/pictures")
    code, _, err = command("quick", *words, "--queries", "queries.txt", "--model", "hf:world/clip")
    assert code == 0, err
    assert config_of(folder, "images")["queries"] == {
        "table": {"file": "../../queries.txt", "header": ["query"]}, "id": "query",
    }  # fmt: skip
    assert command("audit", "runs/images/config.yaml", "--out", "again")[0] == 0
    subjects = {finding.subject for finding in equipoise.load("again").findings}
    assert {*queries} <= subjects


@pytest.mark.parametrize("name", ["make", "net"])
def test_a_module_of_torch_is_named_by_its_file(command, folder, name):
    file = folder / f"painted_{name}.py"
    file.write_text(MODULE)
    (folder / "photos").mkdir()
    rows = []
    for place in range(80):
        light = place % 2
        Image.new("RGB", (8, 8), (40 + 170 * light,) * 3).save(folder / "photos" / f"{place}.png")
        rows.append((f"{place}.png", ("dark", "light")[light], "ab"[place // 40]))
    pl.DataFrame(rows, ["file", "label", "sex"], orient="row").write_csv("t.csv")
    options = ("--target", "label", "--images", "photos", "--model", f"python:{file.name}:{name}")
    code, _, err = command("quick", "t.csv", *options)
    assert code == 0, err
    accuracy = [
        finding.value
        for finding in equipoise.load("runs/t").findings
        if (finding.metric, finding.aggregate) == ("accuracy", "worst_group")
    ]
    assert {*accuracy} == {1.0}


def test_a_table_alone_prints_its_columns_and_a_command(command, folder):
    rows = answers().with_columns(label=pl.col("answer"), pred=pl.col("answer")).drop("answer")
    rows.write_csv("a table.csv")
    code, _, err = command("quick", "a table.csv")
    assert code == 0
    line = next(line for line in err.splitlines() if line.startswith("  equipoise quick"))
    assert "  sex    text           2 values: " in err
    program, *words = shlex.split(line)
    assert program == "equipoise"
    _, out, err = command(*words, "--out", "again", "--json")
    assert "Columns" not in err
    assert json.loads(out)["config"]["data"]["groups"] == ["sex"]
    assert repr(equipoise.load("again").findings) == repr(equipoise.load("runs/a table").findings)
    printed = json.loads(command("quick", "a table.csv", "--out", "third", "--json")[1])
    assert [column["column"] for column in printed["columns"]] == ["sex", "label", "pred"]
    assert printed["command"] == line.strip()


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"answer": "answer", "pred": "answer"}, "pred"),
        ({"queries": "q.csv", "answer": "answer"}, "queries"),
        ({"queries": "q.csv", "target": "answer", "model": "hf:a"}, "target"),
        ({"queries": "q.csv"}, "queries"),
        ({"answer": "answer", "missing": ["n/k"]}, "missing"),
    ],
)
def test_choices_that_contradict_each_other_are_refused(folder, options, key):
    with pytest.raises(ConfigError) as refused:
        equipoise.audit(answers(), groups="sex", **options)
    assert refused.value.key == key
