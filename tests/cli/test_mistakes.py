"""Mistakes on the command line and in its files: each message has the place and the fix."""

import json
import os
import re
from pathlib import Path

import pytest

from cli.conftest import CONFIG, write_project
from equipoise.cli.app import run

INTERNAL = re.compile(
    r"pydantic|Traceback|<class|NoneType|ValidationError|(?:String|Input|Value|List) should|"
    r"Value error|equipoise\.\w+\.\w+|\b[A-Z][a-z]+[A-Z]\w*(?:Config|Error|Section)\b|\w+_type\b|"
    r"unexpected \w+Error|\bregex\b|pattern '\^"
)
"""Names inside the program, and texts of the libraries that it uses."""


def config(old, new):
    """The configuration with a text replaced."""
    assert old in CONFIG
    return CONFIG.replace(old, new)


IMAGES = "data: {images: {format: IMAGES}, groups: [g], target: y}"
FILES = {
    "tab.yaml": "audit: predictions\ndata:\n\ttable: labels.csv\n",
    "colon.yaml": "audit: predictions\ndata:\n  table: labels: csv\n",
    "open.yaml": "audit: predictions\ndata: {table: labels.csv\nmodels: 1\n",
    "twice.yaml": f"{CONFIG}audit: predictions\n",
    "key.yaml": config("gate:", "gates:"),
    "kind.yaml": config("predictions", "predictons"),
    "nested.yaml": config("predictions", "{kind: predictions}"),
    "lacks.yaml": config("target: y, ", ""),
    "number.yaml": config("replicates: 200", "replicates: many"),
    "range.yaml": config("replicates: 200", "replicates: 2"),
    "column.yaml": config("groups: [g]", "groups: [gg]"),
    "table.yaml": config("bad.csv", "baad.csv"),
    "prefix.yaml": config("{table: bad.csv, prediction: p}", "{model: clip}"),
    "metric.yaml": config("accuracy", "acuracy"),
    "metrics.yaml": f"{CONFIG}metrics: [acuracy]\n",
    "switch.yaml": f"{CONFIG}metrics: {{effect_sizes: {{min_expected: few}}}}\n",
    "device.yaml": config(
        "{table: bad.csv, prediction: p}", "{model: 'hf:a/b', device: gpu, vocabulary: [a, b]}"
    ),
    "dtype.yaml": config(
        "{table: bad.csv, prediction: p}", "{model: 'hf:a/b', dtype: float8, vocabulary: [a, b]}"
    ),
    "format.yaml": "audit: dataset\ndata: {images: {format: celebaa, files: x}, groups: [g]}\n",
    "option.yaml": (
        "audit: dataset\n"
        "data:\n"
        "  images: {format: pata, files: labels.csv, options: {namess: digests}}\n"
        "  groups: [g]\n"
    ),
    "gate.yaml": config("min: 0.8", "min: 0.8, max: 0.1"),
    "empty.yaml": "",
    "list.yaml": "- audit\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files, and a run with a gate and one without."""
    root, before = tmp_path_factory.mktemp("mistakes"), Path.cwd()
    os.chdir(root)
    write_project()
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("p.csv").write_text("sex,label,pred\n" + "f,1,0\nm,1,1\nf,0,0\nm,0,0\n" * 60)
    Path("part.csv").write_text("perceived_gender,person.age,label\n" + "f,1,0\nm,1,1\n" * 9)
    Path("mine.csv").write_text("sex,label,mine,other\n" + "f,1,0,x\nm,0,1,y\n" * 9)
    Path("headless.csv").write_text("a.jpg,f,1\n" + "b.jpg,m,0\n" * 9)
    Path("odd.csv").write_text("u,v,w\n" + "a,1,0\nb,1,1\n" * 9)
    Path("bare.yaml").write_text(CONFIG.partition("gate:")[0])
    assert run(["audit", "c.yaml"]) == 0
    assert run(["audit", "bare.yaml"]) == 0
    yield root
    os.chdir(before)


MISTAKES = [
    # command line, then fields of the error: the place, and the suggestion or part of the fix
    ("audti c.yaml", {"suggestion": "audit"}),
    ("audit", {"option": "CONFIG", "fix": "equipoise audit"}),
    ("audit c.yaml --owt x", {"option": "--owt", "suggestion": "--out"}),
    ("audit c.yaml labels.csv", {"message": "labels.csv", "fix": "equipoise audit --help"}),
    ("audit c.yaml", {"file": "runs/c", "fix": "--overwrite"}),
    ("audit no.yaml", {"file": "no.yaml", "fix": "equipoise new no.yaml"}),
    ("audit labels.csv", {"file": "labels.csv", "fix": "equipoise quick labels.csv"}),
    ("audit runs", {"file": "runs"}),
    ("audit tab.yaml", {"file": "tab.yaml", "line": 3, "fix": "spaces"}),
    ("audit colon.yaml", {"file": "colon.yaml", "line": 3, "fix": "quotes"}),
    ("audit open.yaml", {"file": "open.yaml", "line": 3, "fix": "}"}),
    ("audit twice.yaml", {"file": "twice.yaml", "line": 9, "fix": "remove one"}),
    ("audit empty.yaml", {"file": "empty.yaml", "expected": "audit"}),
    ("audit list.yaml", {"file": "list.yaml", "expected": "audit"}),
    ("audit key.yaml", {"line": 7, "key": "gates", "suggestion": "gate"}),
    ("audit kind.yaml", {"line": 1, "key": "audit", "suggestion": "predictions"}),
    ("audit nested.yaml", {"line": 1, "key": "audit", "expected": "predictions"}),
    ("audit lacks.yaml", {"line": 2, "key": "data.target"}),
    ("audit number.yaml", {"line": 6, "key": "resampling.replicates"}),
    ("audit range.yaml", {"line": 6, "key": "resampling.replicates"}),
    ("audit column.yaml", {"file": "labels.csv", "column": "gg", "suggestion": "g"}),
    ("audit table.yaml", {"file": "baad.csv", "suggestion": "bad.csv"}),
    ("audit prefix.yaml", {"line": 5, "key": "models.bad.model"}),
    ("audit device.yaml", {"line": 5, "key": "models.bad.device"}),
    ("audit dtype.yaml", {"line": 5, "key": "models.bad.dtype", "suggestion": "float32"}),
    ("audit format.yaml", {"line": 2, "key": "data.images.format", "suggestion": "celeba"}),
    ("audit option.yaml", {"line": 3, "key": "data.images", "suggestion": "names"}),
    ("audit metric.yaml", {"line": 8, "key": "gate[0].metric", "suggestion": "accuracy"}),
    ("audit metrics.yaml", {"line": 9, "key": "metrics[0]", "suggestion": "accuracy"}),
    ("audit switch.yaml", {"line": 9, "key": "metrics.effect_sizes.min_expected"}),
    ("audit gate.yaml", {"line": 8, "key": "gate[0]"}),
    ("plan c.yaml --error-rate 2", {"option": "--error-rate"}),
    ("plan p.csv", {"file": "p.csv", "fix": "equipoise quick p.csv"}),
    ("new --audit predictons", {"option": "--audit", "suggestion": "predictions"}),
    ("new --study hall-cocco", {"option": "--study", "suggestion": "hall-coco"}),
    ("new x.yaml --audit answers --study hall-coco", {"option": "--study"}),
    ("new x.yaml --data photos", {"option": "--data", "fix": "--study"}),
    ("new c.yaml", {"file": "c.yaml", "fix": "another name"}),
    ("quick p.csv --target lable", {"file": "p.csv", "column": "lable", "suggestion": "label"}),
    ("quick p.csv --groups sexx", {"file": "p.csv", "column": "sexx", "suggestion": "sex"}),
    ("quick odd.csv", {"file": "odd.csv", "fix": "equipoise quick odd.csv --target LABELS"}),
    (
        "quick mine.csv --target label --groups sex",
        {
            "file": "mine.csv",
            "fix": "equipoise quick mine.csv --target label --groups sex --pred mine",
        },
    ),
    ("quick headless.csv", {"file": "headless.csv", "fix": "header"}),
    ("quick pp.csv", {"file": "pp.csv", "suggestion": "p.csv"}),
    ("quick c.yaml", {"option": "TABLE", "fix": "equipoise audit c.yaml"}),
    ("quick p.csv --model clip", {"message": "'clip'", "fix": "hf:clip"}),
    ("quick p.csv --target label --model hf:clip", {"fix": "--images"}),
    ("quick p.csv --missing none", {"file": "p.csv", "fix": "--missing"}),
    ("quick p.csv --threshold 0.3", {"key": "threshold", "expected": "score"}),
    (
        "quick p.csv --target label --score pred --positive 1 --threshold half",
        {"key": "threshold", "expected": "fpr=0.001"},
    ),
    (
        "quick p.csv --target label --pred pred --positive 2 --groups sex",
        {"key": "positive", "expected": "'0' or '1'"},
    ),
    ("quick p.csv --queries p.csv --groups sex", {"key": "queries", "expected": "model"}),
    ("quick p.csv --answer pred --pred pred", {"key": "pred"}),
    ("show c.yaml", {"file": "c.yaml"}),
    ("show runs", {"file": "runs"}),
    ("report nowhere", {"file": "nowhere"}),
    ("check runs/bare", {"file": "runs/bare", "fix": "--min"}),
    ("check runs/c --min acuracy.worst_group=0.8", {"option": "--min", "suggestion": "accuracy"}),
    ("check runs/c --max accuracy.worst=1", {"option": "--max", "suggestion": "worst_group"}),
    ("check runs/c --min accuracy", {"option": "--min", "fix": "accuracy.worst_group=0.8"}),
    ("check runs/c --junit c.yaml", {"file": "c.yaml", "fix": "another name"}),
    ("compare runs/c nowhere", {"file": "nowhere"}),
    ("compare", {"option": "RUN...", "fix": "equipoise compare runs/first"}),
    ("label sampel runs/c", {"suggestion": "sample"}),
    ("label sample runs/c", {"message": "--question", "fix": "--question right"}),
    ("label sample runs/c --question right --settled", {"option": "--settled"}),
    ("label read runs/c --question right", {"option": "FILE..."}),
    ("label show runs/c agrement --question right", {"suggestion": "agreement"}),
    ("label show runs/c --question right", {"file": "runs/c", "fix": "equipoise label sample"}),
    ("label export runs/c p.csv", {"file": "p.csv", "fix": "another name"}),
    ("metrics acuracy", {"message": "'acuracy'", "suggestion": "accuracy"}),
    ("metrics accuracy --search recall", {"option": "--search"}),
    ("export runs/c --as cyclondx", {"option": "--as", "suggestion": "cyclonedx"}),
    ("export runs/c --as eval-results", {"fix": "--dataset"}),
    ("demo --seed 1", {"option": "--seed", "fix": "--world mitigation"}),
    ("demo --world scene", {"option": "--world", "suggestion": "scenes"}),
    ("augment --images 42", {"option": "--images"}),
    ("augment --plan", {"option": "--plan"}),
    ("augment c.yaml --images 40", {"option": "--images", "fix": "leave --images out"}),
    ("augment c.yaml", {"file": "c.yaml", "fix": "equipoise audit c.yaml"}),
    ("augment --networks cnnn --images 40", {"message": "networks", "suggestion": "cnn"}),
    ("causes runs/c --finding acuracy --cause g", {"file": "runs/c", "suggestion": "accuracy"}),
    ("causes runs/c --clusters 1", {"option": "--clusters"}),
    ("faces nowhere", {"file": "nowhere"}),
    ("review runs", {"file": "runs"}),
    ("mitigate c.yaml", {"file": "c.yaml", "fix": "equipoise audit c.yaml"}),
    ("counterfactuals plan nowhere.yaml", {"file": "nowhere.yaml"}),
    (
        "quick p.csv --target label --pred pred score sex",
        {"option": "--pred", "fix": "commas: --pred pred,score,sex"},
    ),
    ("quick --groups sex age p.csv --pred pred", {"option": "--groups", "fix": "--groups sex,age"}),
    ("quick p.csv --groups sex, age", {"option": "--groups", "fix": "commas: --groups sex,age"}),
    (
        "quick p.csv --groups sex labels.csv",
        {"message": "labels.csv", "fix": "equipoise quick --help"},
    ),
    ("quick part.csv --groups gender", {"suggestion": "perceived_gender", "column": "gender"}),
    ("quick part.csv --groups Age", {"suggestion": "person.age"}),
    ("completion tcsh", {"option": "SHELL"}),
]


@pytest.mark.parametrize(("line", "expected"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_explained(raw_command, folder, monkeypatch, line, expected):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    code, out, err = raw_command(*line.split(), "--json")
    failure = json.loads(out)["error"]
    assert (code, failure["exit_code"]) == (2, 2)
    assert err.startswith("error: ")
    assert max(map(len, err.splitlines())) <= 80, err
    assert not INTERNAL.search(err), err
    assert failure["fix"], err
    for name, value in expected.items():
        if isinstance(value, int) or name in ("suggestion", "option", "column", "key"):
            assert failure[name] == value, err
        else:
            assert value in (failure[name] or ""), err
    assert sorted(folder.rglob("*")) == before


def test_each_problem_of_a_configuration_has_its_fields(raw_command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = Path("c.yaml").read_text().partition("gate:")[0]
    Path("several.yaml").write_text(f"{text}gates: []\ntesting: {{alpha: many, correction: x}}\n")
    failure = json.loads(raw_command("audit", "several.yaml", "--json")[1])["error"]
    Path("several.yaml").unlink()
    last = text.count("\n")
    problems = failure["problems"]
    assert [(problem["line"], problem["key"]) for problem in problems] == [
        (last + 1, "gates"), (last + 2, "testing.alpha"), (last + 2, "testing.correction"),
    ]  # fmt: skip
    assert [problem["suggestion"] for problem in problems] == ["gate", None, None]
    assert problems[1]["expected"] == "a number"
    assert all("\n" not in problem["fix"] for problem in (*problems, failure))
    shared = failure.keys() - {"message", "problems"}
    assert {name: failure[name] for name in shared} == {n: problems[0][n] for n in shared}


def test_an_open_quote_is_named_by_the_line_where_it_opens(raw_command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    Path("quote.yaml").write_text('audit: predictions\ndata: "x\nmodels: {}\ngate: []\n')
    failure = json.loads(raw_command("audit", "quote.yaml", "--json")[1])["error"]
    Path("quote.yaml").unlink()
    assert (failure["line"], failure["fix"]) == (2, "close the quotes")


def test_a_caret_points_to_the_column(raw_command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    lines = raw_command("audit", "colon.yaml")[2].splitlines()
    assert lines[1].index(": csv") == lines[2].index("^")


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("label", "sample, settle, read"),
        ("audit c.yaml --out", "--out: needs a value"),
        ("export runs/c --as pack", "--to exports"),
    ],
)
def test_a_mistake_without_json_is_explained(raw_command, folder, monkeypatch, line, part):
    monkeypatch.chdir(folder)
    code, out, err = raw_command(*line.split())
    assert (code, out) == (2, "")
    assert part in err
    assert "To do: " in err


def test_an_error_without_json_leaves_stdout_empty(raw_command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert raw_command("audit", "no.yaml")[1] == ""
