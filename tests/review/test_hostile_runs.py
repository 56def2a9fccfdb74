"""A run that somebody else made: no command runs the code of its models by itself."""

import json
import shutil
import sys
from urllib.parse import urljoin

import pytest

from equipoise.cli.app import run as command
from equipoise.review.server import application
from review.browser import HOST, TOKEN, Links, ask
from review.test_probing import Kitchen

INTRUDER = """
from pathlib import Path
Path({marker!r}).touch()
from context_models import glancer as make
"""
CHOSEN = ("--finding", "true_positive_rate", "--subject", "cup")
# Options that open a model of the run; the last name is the key of a model in it.
OPENING = (("--mask",), ("--embeddings", "ours"), ("--medium", "ours"))
# Sections of the model, and the flag that each needs.
CODE = {
    "python": ({"model": "python:intruder:make"}, "--trust-remote-code"),
    "checkpoint": ({"model": "hf:code", "trust_remote_code": True}, "--trust-remote-code"),
    "pickle": ({"model": "hf:pickled", "allow_pickle": True}, "--allow-pickle"),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    kitchen = Kitchen(tmp_path_factory.mktemp("kitchen"))
    kitchen.audited()
    return kitchen.folder


@pytest.fixture
def intruder(tmp_path, monkeypatch):
    """Return the file that is written when the code of the model runs."""
    marker = tmp_path / "code ran"
    (tmp_path / "intruder.py").write_text(INTRUDER.format(marker=str(marker)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "intruder", raising=False)
    yield marker
    sys.modules.pop("intruder", None)


@pytest.fixture
def hostile(template, tmp_path, monkeypatch):
    """Return a function that puts another model into the record of a run."""
    monkeypatch.chdir(tmp_path)
    # Beside the pictures, which the run names from its own folder.
    run = shutil.copytree(template / "run", template / tmp_path.name)

    def make(section):
        path = run / "manifest.json"
        manifest = json.loads(path.read_text())
        for config in ("config", "resolved"):
            manifest[config]["models"] = {"ours": section}
            manifest[config]["gate"] = [{"metric": "accuracy", "of": "difference", "max": 1.0}]
        path.write_text(json.dumps(manifest))
        return run

    return make


@pytest.mark.parametrize("options", OPENING, ids=lambda options: options[0])
@pytest.mark.parametrize(("section", "flag"), CODE.values(), ids=CODE.keys())
def test_a_model_of_the_run_needs_the_flag(hostile, intruder, capsys, section, flag, options):
    run = hostile(section)
    other = ({"--trust-remote-code", "--allow-pickle"} - {flag}).pop()
    for arguments in (options, (*options, other)):
        assert command(["causes", str(run), *CHOSEN, *arguments]) == 2
        error = capsys.readouterr().err
        assert all(part in error for part in (section["model"], flag, options[0], str(run)))
        assert not intruder.exists()


@pytest.mark.parametrize("options", OPENING[:2], ids=lambda options: options[0])
def test_the_flag_lets_the_code_run(hostile, intruder, options):
    run = hostile(CODE["python"][0])
    assert command(["causes", str(run), *CHOSEN, *options, "--trust-remote-code"]) == 0
    assert intruder.exists()


def test_a_model_that_the_user_names_is_the_user_s(hostile, intruder):
    """The code that runs is that of the command line, not that of the run."""
    run = hostile(CODE["python"][0])
    named = ("--embeddings", "python:context_models:glancer")
    assert command(["causes", str(run), *CHOSEN, *named]) == 0
    assert not intruder.exists()


def test_a_model_of_the_run_can_t_take_the_name_of_another(hostile, intruder, capsys):
    run = hostile({"model": "hf:fine"})
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    name = "python:context_models:glancer"
    manifest["resolved"]["models"][name] = CODE["python"][0]
    path.write_text(json.dumps(manifest))
    assert command(["causes", str(run), *CHOSEN, "--embeddings", name]) == 2
    assert "intruder" in capsys.readouterr().err
    assert not intruder.exists()


def test_no_command_contacts_a_server_that_the_run_names(hostile, capsys, monkeypatch):
    run = hostile({"model": "hf:fine"})
    path = run / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["resolved"]["data"]["images"]["table"] = "http://127.0.0.1:9/t.csv?key=secret"
    path.write_text(json.dumps(manifest))
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a socket connects"))
    assert command(["causes", str(run), *CHOSEN, "--cause", "called"]) == 2
    error = capsys.readouterr().err
    assert "http://127.0.0.1:9/t.csv" in error
    assert "secret" not in error


READING = {
    "report": ["report", "RUN"],
    "export": ["export", "RUN"],
    "compare": ["compare", "RUN", "OTHER", "--out", "both"],
    "check": ["check", "RUN"],
    "label": ["label", "sample", "RUN", "--question", "right"],
    "causes": ["causes", "RUN", *CHOSEN, "--cause", "called"],
}


@pytest.mark.parametrize("words", READING.values(), ids=READING.keys())
def test_other_commands_load_no_model(hostile, intruder, tmp_path, words):
    run = hostile(CODE["python"][0] | {"allow_pickle": True, "trust_remote_code": True})
    other = shutil.copytree(run, tmp_path / "other")
    paths = {"RUN": str(run), "OTHER": str(other)}
    assert command([paths.get(word, word) for word in words]) in (0, 1)
    assert not intruder.exists()


def test_no_page_of_a_review_loads_a_model(hostile, intruder):
    run = hostile(CODE["python"][0] | {"allow_pickle": True, "trust_remote_code": True})
    app, visited, waiting = application(run, HOST, TOKEN), set(), ["/", "/causes"]
    while waiting and len(visited) < 40:
        path = waiting.pop(0)
        visited.add(path)
        _, headers, body = ask(app, path)
        if headers["content-type"].startswith("text/html"):
            links = Links(body)
            new = {urljoin(path, link) for link in (*links.links, *links.pictures)}
            waiting += sorted(link for link in new - visited if link.startswith("/"))
    assert len(visited) > 10
    assert not intruder.exists()
