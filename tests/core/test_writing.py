"""Files that appear whole; hidden names that are recognised; one module that writes."""

import ast
import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

import equipoise
from equipoise.core import RunError, writing

SOURCE = Path(equipoise.__file__).parent
CALLS = {
    "write_text", "write_bytes", "mkdir", "makedirs", "rename", "replace", "unlink", "rmtree",
    "copyfile", "copytree", "fsync", "touch", "write_parquet",
}  # fmt: skip
# Folders of runs, which are held while their process lives, are at home in rundir.
HOMES = {"core/writing.py", "evidence/rundir.py"}


def changes(tree):
    """Calls of a file that change a disk: a path is replaced with one argument, a text with two."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name == "open" and any(
                isinstance(argument, ast.Constant) and set(str(argument.value)) & set("wxa") and
                len(str(argument.value)) < 4 for argument in node.args
            ):  # fmt: skip
                yield name
            of_columns = any(isinstance(argument, ast.Dict) for argument in node.args)
            if of_columns or (name == "replace" and len(node.args) != 1):
                continue
            into_file = any(isinstance(argument, ast.Name) for argument in node.args)
            if name in CALLS and not (name == "write_parquet" and into_file):
                yield name


def test_no_other_file_writes():
    calls_by_file = {
        str(path.relative_to(SOURCE)): [*changes(ast.parse(path.read_text(encoding="utf-8")))]
        for path in SOURCE.rglob("*.py")
    }
    assert {
        name: calls for name, calls in calls_by_file.items() if calls and name not in HOMES
    } == {}
    assert calls_by_file["core/writing.py"]


@pytest.mark.parametrize("name", ["a", "x" * 255, "ä" * 127])
@pytest.mark.parametrize("new", [True, False])
def test_a_name_may_be_as_long_as_file_systems_allow(name, new, tmp_path):
    writing.write(tmp_path / name, b"data", new=new)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_appears_whole_and_in_new_folders(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    with writing.writer(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b", whole")
    assert path.read_bytes() == b"half, whole"
    assert [*path.parent.iterdir()] == [path]


def test_a_block_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with suppress(ValueError), writing.writer(path) as file:
        file.write(b"new")
        raise ValueError("mine")
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_trouble_of_the_disk_names_the_path(number, tmp_path, monkeypatch):
    def trouble(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", trouble)
    with pytest.raises(RunError) as caught:
        writing.write(tmp_path / "file", b"data")
    assert caught.value.__cause__.errno == number
    assert str(tmp_path / "file") in str(caught.value)
    assert [*tmp_path.iterdir()] == []


def test_a_new_file_replaces_none(tmp_path):
    path = tmp_path / "file"
    writing.write(path, b"one", new=True)
    with pytest.raises(RunError):
        writing.write(path, b"two", new=True)
    assert path.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [path]


def test_a_disk_that_links_no_files_has_new_files_too(tmp_path, monkeypatch):
    def link(*_, **__):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", link)
    path = tmp_path / "file"
    writing.write(path, b"one", new=True)
    with pytest.raises(RunError) as caught:
        writing.write(path, b"two", new=True)
    assert caught.value.__cause__.errno == errno.EEXIST
    assert path.read_bytes() == b"one"
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("name", ["file", "ü" * 120])
def test_what_a_killed_process_left_is_removed_by_the_next_writer(name, tmp_path):
    path = tmp_path / name
    writing.temporary(path).write_bytes(b"left")
    other = writing.temporary(tmp_path / "other")
    other.write_bytes(b"left")
    writing.write(path, b"whole")
    assert {*tmp_path.iterdir()} == {path, other}


def test_a_file_at_work_is_no_leftover(tmp_path):
    path = tmp_path / "file"
    with writing.writer(path) as first:
        first.write(b"first")
        writing.write(path, b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_a_folder_is_swept_of_what_nobody_holds(tmp_path):
    leftover, other = writing.temporary(tmp_path / "left"), tmp_path / "b.0123abcd.partial"
    leftover.write_bytes(b"of a dead writer")
    other.write_bytes(b"of somebody else")
    with writing.writer(tmp_path / "file"):
        writing.sweep(tmp_path)
        remaining = [path.name for path in tmp_path.iterdir() if writing.is_temporary(path.name)]
        assert [writing.visible_path(Path(name)) for name in remaining] == [Path("file")]
    assert {*tmp_path.iterdir()} == {tmp_path / "file", other}
    writing.sweep(tmp_path / "nowhere")


def test_a_hidden_folder_holds_files_as_they_are(tmp_path):
    folder = writing.temporary(tmp_path / "run")
    with writing.writer(folder / "tables" / "file"):
        assert [path.name for path in (folder / "tables").iterdir()] == ["file"]
    assert writing.visible_path(folder / "tables" / "file") == tmp_path / "run" / "tables" / "file"
    assert writing.is_staged(folder / "file")
    assert not writing.is_staged(tmp_path / "file")
