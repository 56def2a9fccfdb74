"""`equipoise quick` on what other evaluation tools wrote, as the page on them says."""

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from equipoise.data.results import READERS
from result_layouts import LAYOUTS, answers

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "from-other-tools.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\|.*\| `equipoise (quick [^`]+)` \|$", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Write the files of the page's commands."""
    monkeypatch.chdir(tmp_path)
    for write in LAYOUTS.values():
        for file in [*write(tmp_path / "written", answers(100)).parent.iterdir()]:
            shutil.move(file, tmp_path / file.name)
    Path("samples_jobs_2026-01-01T00-00-00.000000.jsonl").rename("samples_jobs.jsonl")
    log = json.loads(Path("jobs.json").read_text())
    with zipfile.ZipFile("jobs.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in log.pop("samples"):
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(log))


def test_the_page_has_a_command_for_each_reader():
    assert len(COMMANDS) == len(LAYOUTS)
    assert all(f"`{name}`" in PAGE for name in READERS)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_page_runs(command, line):
    code, _, err = command(*line.split(), "--out", "run")
    assert code == 0, err
    config = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert config["data"]["groups"] == ["metadata.gender"]
    assert config["data"]["target"] == "target"
    assert config["models"]["answer"]["prediction"] == "answer"
    assert config["data"]["table"]["results"] in READERS


@pytest.mark.usefixtures("folder")
def test_answers_in_free_text_are_compared_by_whether_they_are_right(command):
    rows = [{**row, "answer": f"{row['answer']} {row['id']}"} for row in answers(100)]
    shutil.rmtree("written")
    path = LAYOUTS["evalscope"](Path("written"), rows)
    code, _, err = command("quick", str(path), "--out", "run")
    assert code == 0, err
    config = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert (config["audit"], config["data"]["labels"]) == ("dataset", ["correct"])


@pytest.mark.usefixtures("folder")
def test_columns_of_the_file_itself_can_be_named(command):
    options = ("--groups", "doc.gender", "--target", "target", "--pred", "filtered_resps.0")
    code, _, err = command("quick", "samples_jobs.jsonl", *options, "--out", "run")
    assert code == 0, err
    config = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert config["data"]["table"] == "../samples_jobs.jsonl"
