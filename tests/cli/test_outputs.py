"""A file of the user is kept; a file of equipoise is replaced with --overwrite only."""

import errno
import os
import subprocess
import sys

import pytest

from equipoise import audits
from equipoise.cli.outputs import JUNIT, write_output
from equipoise.core import RunError

NEW = {
    "new": ("new", "FILE"),
    "new of another kind": ("new", "FILE", "--audit", "retrieval"),
    "new of a study": ("new", "FILE", "--study", "predicted-labels"),
    "counterfactuals new": ("counterfactuals", "new", "FILE"),
}
CHECK = ("check", "r", "--junit", "FILE")
FOLDERS = {
    "audit": ("audit", "c.yaml", "--out", "FILE"),
    "compare": ("compare", "r", "--out", "FILE"),
    "demo": ("demo", "--out", "FILE"),
    "demo of scenes": ("demo", "--world", "scenes", "--out", "FILE"),
    "augment": ("augment", "--out", "FILE"),
}


def named(arguments, name):
    return [name if argument == "FILE" else argument for argument in arguments]


@pytest.fixture
def run(command, project):
    """A run `r`."""
    assert command("audit", "c.yaml", "--out", "r")[0] == 0


@pytest.fixture
def unmeasured(monkeypatch):
    for name in ("run", "demo", "demo_scenes", "compare"):
        monkeypatch.setattr(audits, name, lambda *_, **__: pytest.fail("measured"))
    monkeypatch.setattr("equipoise.report.render", lambda *_: pytest.fail("rendered"))
    run_synthetic = "equipoise.cli.augmentation.run_synthetic"
    monkeypatch.setattr(run_synthetic, lambda *_, **__: pytest.fail("trained"))


EVERY = NEW | {"check": CHECK}


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("arguments", EVERY.values(), ids=EVERY)
def test_a_file_of_the_user_is_kept(request, command, project, arguments):
    request.getfixturevalue("unmeasured")
    thesis = project / "thesis"
    thesis.write_text("mine")
    (project / "link").symlink_to("thesis")
    (project / "dangling").symlink_to("nowhere")
    for name in ("thesis", "link", "dangling", "r"):
        code, out, err = command(*named(arguments, name))
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {name}: exists already")
    assert thesis.read_text() == "mine"
    assert (project / "dangling").is_symlink()
    assert not [path for path in project.iterdir() if path.name.endswith(".partial")]


@pytest.mark.usefixtures("run")
def test_a_junit_file_of_an_earlier_check_is_replaced(command, project):
    path = project / "deep" / "file"
    for _ in range(2):
        assert command(*named(CHECK, "deep/file"))[0] == 1
        assert JUNIT in path.read_bytes()
        first = path.read_bytes()
        path.write_bytes(first + b"\n")


@pytest.mark.usefixtures("run", "unmeasured")
@pytest.mark.parametrize("arguments", [*EVERY.values(), *FOLDERS.values()], ids=[*EVERY, *FOLDERS])
def test_a_name_that_is_no_text_is_refused_before_anything_is_measured(command, project, arguments):
    before = sorted(project.rglob("*"))
    code, out, err = command(*named(arguments, os.fsdecode(b"caf\xe9")))
    assert (code, out) == (2, "")
    assert "To do: choose another" in err
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_a_file_that_cannot_be_written_is_named(number, command, project, monkeypatch):
    """The second of a study's files: the first one goes, so that the command can be repeated."""
    fsync, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(number, os.strerror(number))
        return fsync(descriptor)

    before = sorted(project.rglob("*"))
    monkeypatch.setattr(os, "fsync", full)
    code, out, err = command("new", "c2.yaml", "--study", "predicted-labels")
    assert (code, out) == (2, "")
    assert ".partial" not in err
    assert os.strerror(number) in err
    assert "To do:" in err
    assert sorted(project.rglob("*")) == before


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    program = """
import os, signal, sys
from pathlib import Path
from equipoise.cli.outputs import write_output
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_output(Path(sys.argv[1]), "text")
"""
    path, other = tmp_path / "a.csv", tmp_path / ".b.csv.0123abcd.partial"
    other.write_text("mine")
    call = [sys.executable, "-c", program, str(path)]
    assert subprocess.run(call, check=False).returncode == -9
    assert [one.name for one in tmp_path.glob(".a.csv*")] != []
    assert not path.exists()
    write_output(path, "text")
    assert sorted(one.name for one in tmp_path.iterdir()) == [other.name, "a.csv"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, monkeypatch):
    path, fsync = tmp_path / "a.csv", os.fsync

    def overtaken(descriptor):
        path.write_text("mine")
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", overtaken)
    with pytest.raises(RunError):
        write_output(path, "text")
    assert path.read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
