"""`equipoise new` asks on a terminal what there is, and writes a configuration that runs."""

import json
import os
import pty
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from audits.live_models import worlds
from equipoise import audits
from equipoise.audits.studies import STUDIES
from equipoise.cli.commands import new
from equipoise.cli.outputs import write_output
from equipoise.core import RunError

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
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    np.save("vectors.npy", RNG.normal(size=(N, 4)))
    return tmp_path


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_make_a_configuration_that_runs(case, here, command, monkeypatch):
    given = iter(ANSWERS[case])
    monkeypatch.setattr(new, "on_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(given))
    code, out, err = command("new")
    assert code == 0, err
    assert out == "wrote equipoise.yaml\n"
    assert next(given, None) is None
    config = audits.load_config("equipoise.yaml")
    assert config.audit == KINDS.get(case, "predictions")
    if case != "something else":
        assert audits.run(config).findings


def test_a_model_is_asked_for_with_its_images(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    worlds.make(tmp_path / "world")
    given = iter(("2", "world/images.csv", "frame", "subject", "", "hf:world/clip",
                  "world/pictures"))  # fmt: skip
    monkeypatch.setattr(new, "on_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: next(given))
    assert command("new")[0] == 0
    assert audits.run(audits.load_config("equipoise.yaml")).findings


def test_a_terminal_is_asked_and_a_pipe_is_not(here):
    run = [sys.executable, "-m", "equipoise", "new"]
    master, slave = pty.openpty()
    with subprocess.Popen(run, stdin=slave, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        os.write(master, b"3\npeople.csv\ngender\n\n")
        out, _ = process.communicate(timeout=60)
    os.close(master)
    assert out == b"wrote equipoise.yaml\n"
    assert audits.load_config("equipoise.yaml").audit == "dataset"
    (here / "equipoise.yaml").unlink()
    subprocess.run(run, stdin=subprocess.DEVNULL, check=True, capture_output=True)
    assert audits.load_config("equipoise.yaml").audit == "predictions"


def test_studies_are_listed(here, command):
    code, out, _ = command("new", "--study", "list")
    assert code == 0
    assert all(name in out for name in STUDIES)
    listed = json.loads(command("new", "--study", "list", "--json")[1])["studies"]
    assert {*listed} == {*STUDIES}
    needed = {"question", "source", "reproduces", "data", "licence", "size", "time"}
    assert all(needed == {*one} and all(one.values()) for one in listed.values())
    assert not (here / "equipoise.yaml").exists()


def test_a_study_without_data_takes_no_folder(here, command):
    code, _, told = command("new", "mine.yaml", "--study", "text-to-image", "--data", "faces")
    assert code == 2
    assert "text-to-image" in told
    assert not (here / "mine.yaml").exists()


def test_a_study_that_could_not_be_written_is_repeated(here, command, monkeypatch):
    arguments = ("new", "mine.yaml", "--study", "chen-dou")
    for count in range(8):
        with monkeypatch.context() as patch:
            left = iter(range(count))

            def write(path, text, left=left):
                if next(left, None) is None:
                    raise RunError(f"{path}: no space is left")
                write_output(path, text)

            patch.setattr(new, "write_output", write)
            assert command(*arguments)[0] == 2
    assert not (here / "mine.yaml").exists()
    assert command(*arguments)[0] == 0
    assert command(*arguments)[0] == 2


def test_a_study_names_the_folder_and_writes_its_words(here, command):
    arguments = ("new", "mine.yaml", "--study", "chen-dou", "--data", "faces", "--json")
    code, out, err = command(*arguments)
    assert code == 0, err
    written = json.loads(out)
    parts = ("association", "words", "objects", "neurons")
    assert written["configs"] == [f"mine-{part}.yaml" for part in parts]
    assert written["tables"] == ["terms.csv", "men-and-women.csv", "cho-words.csv"]
    assert audits.load_config("mine.yaml").data.images.root == here / "faces"
    assert len(pl.read_csv("cho-words.csv")) == 85 + 6 + 39 + 15
    assert command("new", "other.yaml", "--data", "faces")[0] == 2
