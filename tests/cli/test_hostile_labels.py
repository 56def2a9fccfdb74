"""Labels and names that attack: no markup, control character or path of theirs acts anywhere."""

import json
import re
import shutil
import unicodedata
from pathlib import Path

import polars as pl
import pytest
import yaml

from equipoise.audits.kinds import KINDS

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ATTACK = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>"
    "{{7*7}} =cmd|' /C calc'!A0 ../../up/ C:\\up \x1b[31m\x1b]8;;http://x\x07\u202e\u2066\u2028\r\n\t\0"
)
LONG = "x" * 3000
MODEL = "../m</script><img src=x onerror=alert(2)>\x1b[31m\u202e\n\0"

# Of each kind: labels of groups, of what is asked about, names of sets, concepts and models.
LABELS = {
    "predictions": ("a", "x"),
    "activations": ("woman",),
    "regression": ("woman",),
    "questions": ("women", "pilot"),
    "answers": ("Female", "Office"),
    "associations": ("Male", "doctor", "men"),
    "concepts": ("nurse",),
    "counterfactuals": ("red", "solid square"),
    "diversity": ("India", "street"),
    "dataset": ("female", "nurse"),
    "generation": ("baker",),
    "retrieval": ("woman", "baker"),
    "similarity": ("woman", "baker"),
    "text_to_image": ("man", "women"),
}
OF_TWO_MODELS = {"predictions", "associations", "concepts", "counterfactuals"}


def renamed(value, names):
    if isinstance(value, dict):
        return {names.get(key, key): renamed(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def predictions(folder):
    rows = [(f"{i}", "ab"[i % 2], "xy"[i // 2 % 2], "ab"[i % 3 % 2]) for i in range(240)]
    frame = pl.DataFrame(rows, schema=["id", "y", "g", "p"], orient="row")
    frame.select("id", "y", "g").write_csv(folder / "labels.csv")
    frame.select("id", "p").write_csv(folder / "m.csv")
    frame.select("id", p="y").write_csv(folder / "n.csv")
    models = {name: {"table": f"{name}.csv", "prediction": "p"} for name in "mn"}
    data = {"table": "labels.csv", "id": "id", "target": "y", "groups": ["g"]}
    config = {"audit": "predictions", "data": data, "models": models}
    (folder / "audit.yaml").write_text(json.dumps(config))


def attacked(kind, folder):
    """Write a kind's example with labels and names that attack."""
    if kind == "predictions":
        predictions(folder)
    else:
        shutil.copytree(EXAMPLES / kind, folder, dirs_exist_ok=True)
    # Concepts are columns of a table, too, and a header with a null byte is refused.
    attack = ATTACK.replace("\0", "") if kind == "concepts" else ATTACK
    names = {name: f"{name}{attack}{LONG}" for name in LABELS[kind]}
    for table in folder.glob("*.csv"):
        frame = pl.read_csv(table, infer_schema=False)
        frame = frame.rename({name: names.get(name, name) for name in frame.columns})
        frame.with_columns(pl.all().replace(names)).write_csv(table)
    config = yaml.safe_load((folder / "audit.yaml").read_text())
    names |= dict.fromkeys([*config.get("models", {})][:1], MODEL)
    config = renamed(config, names)
    config["resampling"] = {"replicates": 20, "permutations": 50, "seed": 7}
    config["report"] = {"title": ATTACK}
    (folder / "audit.yaml").write_text(yaml.safe_dump(config))


def hidden(text):
    kinds = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return {character for character in text if unicodedata.category(character) in kinds} - {
        "\n",
        "\u200c",
        "\u200d",
    }


def check(result, run):
    code, out, err = result
    assert code == 0, err
    assert not hidden(out + err)
    page = (run / "report.html").read_text(encoding="utf-8")
    markup = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not hidden(markup) - {"\t"}
    assert markup.count("<script") == 1
    assert not any(tag in markup for tag in ("<img", "<svg", "<iframe"))
    assert "alert(1)" in markup
    assert {*json.loads((run / "files.json").read_text())["files"]} == {
        path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()
    } - {"files.json"}


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_names_that_attack(kind, command, tmp_path, monkeypatch):
    folder = tmp_path / "deep" / "project"
    folder.mkdir(parents=True)
    attacked(kind, folder)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.chdir(folder)
    plan = command("plan", "audit.yaml")
    assert plan[0] == 0, plan[2]
    assert not hidden(plan[1] + plan[2])
    check(command("audit", "audit.yaml", "--out", "run"), folder / "run")
    if kind in OF_TWO_MODELS:
        check(command("compare", "run", "--out", "compared"), folder / "compared")
    new_files = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    runs = (folder / "run", folder / "compared")
    assert all(any(path.is_relative_to(run) for run in runs) for path in new_files)
