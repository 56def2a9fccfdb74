"""`equipoise new` asks on a terminal what there is, and writes a configuration that runs."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from audits.live_models import worlds
from equipoise import audits
from equipoise.cli.commands import new
from equipoise.studies import STUDIES

N = 240
RNG = np.random.default_rng(2)
PEOPLE = pl.DataFrame({
    "file": [f"{k}.jpg" for k in range(N)], "gender": RNG.choice(["f", "m"], N),
    "skin": RNG.choice(["dark", "light"], N), "hired": RNG.choice(["yes", "no"], N),
    "score": RNG.random(N).round(3),
})  # fmt: skip
ANSWERS = {
    "predictions": ("1", "people.csv", "gender, skin", "hired", "", ""),
    "a column that isn't there": ("1", "people.csv", "sex", "gender", "hired", "yes", "score"),
    "a data set": ("3", "people.csv", "gender,skin", "hired"),
    "a data set without labels": ("3", "people.csv", "gender", ""),
    "embeddings": ("4", "people.csv", "gender", "vectors.npy"),
    "something else": ("5", "retrieval"),
}
KINDS = {"a data set": "dataset", "a data set without labels": "dataset",
         "embeddings": "diversity", "something else": "retrieval"}  # fmt: skip


@pytest.fixture
def project_dir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    np.save("vectors.npy", RNG.normal(size=(N, 4)))
    return tmp_path


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_make_a_configuration_that_runs(case, project_dir, command, monkeypatch):
    answers = iter(ANSWERS[case])
    monkeypatch.setattr(new, "on_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(answers))
    code, out, err = command("new")
    assert code == 0, err
    assert out == "wrote equipoise.yaml\n"
    assert next(answers, None) is None
    config = audits.load_config("equipoise.yaml")
    assert config.audit == KINDS.get(case, "predictions")
    if case != "something else":
        assert audits.run(config).findings


def test_a_model_is_asked_for_with_its_images(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds.make(tmp_path / "world")
    answers = iter(("2", "world/images.csv", "frame", "subject", "", "hf:world/clip",
                  "world/pictures"))  # fmt: skip
    monkeypatch.setattr(new, "on_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(answers))
    assert command("new")[0] == 0
    assert audits.run(audits.load_config("equipoise.yaml")).findings


def test_a_terminal_is_asked_and_a_pipe_is_not(project_dir):
    run = [sys.executable, "-m", "equipoise", "new"]
    master, slave = pty.openpty()
    with subprocess.Popen(run, stdin=slave, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        os.write(master, b"3\npeople.csv\ngender\n\n")
        out, _ = process.communicate(timeout=60)
    os.close(master)
    assert out == b"wrote equipoise.yaml\n"
    assert audits.load_config("equipoise.yaml").audit == "dataset"
    (project_dir / "equipoise.yaml").unlink()
    subprocess.run(run, stdin=subprocess.DEVNULL, check=True, capture_output=True)
    assert audits.load_config("equipoise.yaml").audit == "predictions"


def test_studies_are_listed(project_dir, command):
    code, out, _ = command("new", "--study", "list")
    assert code == 0
    lines = [line for line in out.splitlines() if not line.startswith("  ")]
    assert [line.partition(": ")[0] for line in lines] == [*STUDIES]
    listed = json.loads(command("new", "--study", "list", "--json")[1])["studies"]
    assert {*listed} == {*STUDIES}
    needed = {
        "question", "source", "reproduces", "data", "licence", "size", "time", "configurations",
    }  # fmt: skip
    assert all({*study} == needed for study in listed.values())
    filled = needed - {"reproduces"}
    assert all(study[key] for study in listed.values() for key in filled)
    for study in listed.values():
        # What has a comma isn't listed by commas.
        separator = "; " if any("," in part for part in study["reproduces"]) else ", "
        assert (
            f"  reproduces: {separator.join(study['reproduces']) or new.NO_PRINTED_NUMBERS}"
            in out.splitlines()
        )
    assert listed["pairs"]["configurations"] == ["occupations", "status", "crime"]
    assert "  configurations: occupations, status, crime" in out.splitlines()
    assert not (project_dir / "equipoise.yaml").exists()


@pytest.mark.parametrize(
    ("study", "steps"),
    [
        ("cnn-vit", ["augment cnn-vit.yaml --plan", "augment cnn-vit.yaml"]),
        ("chen-dou", ["plan chen-dou.yaml", "audit chen-dou.yaml"]),
    ],
)
def test_the_next_commands_are_those_of_the_study(project_dir, command, study, steps):
    _, _, err = command("new", f"{study}.yaml", "--study", study)
    assert err.endswith(" and ".join(f"'equipoise {step}'" for step in steps) + "\n")


@pytest.mark.parametrize("study", STUDIES)
def test_the_commands_that_write_what_a_study_reads_come_first(project_dir, command, study):
    _, out, err = command("new", "s.yaml", "--study", study)
    steps = err.partition("next: ")[2]
    main = Path("s.yaml").read_text()
    for file in re.findall("wrote (s-.*yaml)", out):
        output = yaml.safe_load(Path(file).read_text()).get("output")
        reads = output is not None and f"{output}/" in main
        assert reads == (f" {file}'" in steps)
        assert not reads or steps.index(file) < steps.index("s.yaml'")


def test_a_folder_of_a_study_exists(project_dir, command):
    code, _, err = command("new", "s.yaml", "--study", "pairs", "--data", "../missing")
    assert code == 2
    assert "the folder ../missing does not exist" in " ".join(err.split())
    assert not Path("s.yaml").exists()


def test_a_study_names_the_folder_and_writes_its_words(project_dir, command):
    Path("faces").mkdir()
    arguments = ("new", "mine.yaml", "--study", "chen-dou", "--data", "faces", "--json")
    code, out, err = command(*arguments)
    assert code == 0, err
    written = json.loads(out)
    parts = ("association", "words", "neurons", "mitigation", "prompt-neurons", "generated")
    assert written["configs"] == [f"mine-{part}.yaml" for part in parts]
    assert written["tables"] == ["terms.csv", "men-and-women.csv", "cho-words.csv", "asked.csv"]
    assert audits.load_config("mine.yaml").data.images.root == project_dir / "faces"
    assert len(pl.read_csv("cho-words.csv")) == 85 + 6 + 39 + 15
    assert command("new", "other.yaml", "--data", "faces")[0] == 2
