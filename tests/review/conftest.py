"""A project with a run, and the command that labels it."""

import json
import shutil
from copy import copy

import pytest

from equipoise.cli.app import run
from review.project import Project


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A project whose run is made once."""
    folder = tmp_path_factory.mktemp("review")
    project = Project(folder)
    assert run(["audit", str(folder / "c.yaml"), "--out", str(folder / "run")]) == 0
    return project


@pytest.fixture
def project(template, tmp_path, monkeypatch):
    """A copy of the project in the working directory."""
    shutil.copytree(template.folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    mine = copy(template)
    mine.folder = tmp_path
    return mine


@pytest.fixture
def command(capsys):
    """Run a command of `equipoise label` on the run; return its JSON."""

    def ran(name, *arguments, code=0, question="right"):
        capsys.readouterr()
        about = [] if name == "export" else ["--question", question]
        assert run(["label", name, "run", *arguments, *about, "--json"]) == code, (
            capsys.readouterr().err
        )
        out = capsys.readouterr().out
        return json.loads(out) if code == 0 else json.loads(out)["error"]["message"]

    return ran
