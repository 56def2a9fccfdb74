"""A run directory is whole or not there; what lies in the way is never harmed."""

import errno
import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.core import DataError, RunError
from equipoise.evidence import is_run, keep_labels, list_labels, new_run, rewrite
from equipoise.evidence.rundir import foreign_files


def fill(folder, text="{}"):
    (folder / "manifest.json").write_text(text)
    (folder / "findings.parquet").write_text("findings")
    (folder / "tables").mkdir()
    (folder / "tables" / "classes.parquet").write_text("classes")


def make(out, text="{}", *, overwrite=False):
    with new_run(out, overwrite=overwrite) as folder:
        fill(folder, text)


def refusal(out, *, overwrite=False):
    with pytest.raises(RunError) as raised, new_run(out, overwrite=overwrite):
        pytest.fail("the block must not start")
    return str(raised.value)


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_run_appears_when_the_block_ends(tmp_path):
    out = tmp_path / "runs" / "one"
    with new_run(out) as folder:
        assert folder.parent == out.parent
        fill(folder)
        assert not out.exists()
    assert is_run(out)
    assert left(out) == ["files.json", "findings.parquet", "manifest.json", "tables"]
    assert left(tmp_path / "runs") == ["one"]


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), DataError("x"), FileNotFoundError(errno.ENOENT, "", "x")]
)
def test_a_failure_leaves_nothing_and_passes_through(tmp_path, failure):
    def fails():
        with new_run(tmp_path / "one") as folder:
            fill(folder)
            raise failure

    with pytest.raises(type(failure)):
        fails()
    assert left(tmp_path) == []


def test_another_run_is_kept_unless_overwritten(tmp_path):
    out = tmp_path / "one"
    make(out, "first")
    assert "--overwrite" in refusal(out)
    assert (out / "manifest.json").read_text() == "first"
    make(out, "second", overwrite=True)
    assert (out / "manifest.json").read_text() == "second"
    assert left(tmp_path) == ["one"]


def test_a_rename_that_fails_puts_the_old_run_back(tmp_path, monkeypatch):
    out = tmp_path / "one"
    make(out, "first")
    replace = Path.replace

    def fails(self, target):
        if self.suffix == ".partial":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(RunError):
        make(out, "second", overwrite=True)
    assert (out / "manifest.json").read_text() == "first"
    assert left(tmp_path) == ["one"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_other_folders_and_files_are_never_touched(tmp_path, overwrite):
    out = tmp_path / "photos"
    out.mkdir()
    (out / "mine.jpg").write_text("mine")
    assert "no files.json" in refusal(out, overwrite=overwrite)
    assert (out / "mine.jpg").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("mine")
    assert str(file) in refusal(file, overwrite=overwrite)
    assert str(file) in refusal(file / "run")
    assert left(tmp_path) == ["file", "photos"]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("notes.md", lambda path: path.write_text("mine")),
        ("tables/more.parquet", lambda path: path.write_text("mine")),
        ("manifest.json", lambda path: path.write_text("edited")),
        ("photos", lambda path: (path / "deep").mkdir(parents=True)),
        ("link", lambda path: path.symlink_to(path.parent.parent / "elsewhere")),
        ("tables/link", lambda path: path.symlink_to("classes.parquet")),
    ],
)
def test_files_that_equipoise_did_not_write_are_never_removed(tmp_path, name, change):
    out, elsewhere = tmp_path / "one", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.jpg").write_text("mine")
    make(out)
    change(out / name)
    before = sorted(out.rglob("*"))
    assert repr(name) in refusal(out, overwrite=True)
    assert sorted(out.rglob("*")) == before
    assert (elsewhere / "mine.jpg").read_text() == "mine"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path):
    out = tmp_path / "one"
    make(out, "first")

    def overtaken():
        with new_run(out, overwrite=True) as folder:
            fill(folder, "second")
            (out / "notes.md").write_text("mine")

    with pytest.raises(RunError, match=r"notes\.md"):
        overtaken()
    assert (out / "notes.md").read_text() == "mine"
    assert (out / "manifest.json").read_text() == "first"


@pytest.mark.parametrize(
    "listing",
    [
        None,
        "[]",
        '{"files": {}}',
        '{"written_by": "equipoise"}',
        "{",
        "\udcff",
        pytest.param("[" * 100_000, id="nested too deep"),
    ],
)
def test_a_folder_that_only_looks_like_a_run_is_never_removed(tmp_path, listing):
    out = tmp_path / "mine"
    out.mkdir()
    fill(out)
    if listing is not None:
        (out / "files.json").write_text(listing, errors="surrogateescape")
    assert "no files.json" in refusal(out, overwrite=True)
    assert (out / "manifest.json").exists()


def test_the_list_of_files_leads_nowhere_else(tmp_path):
    out, mine = tmp_path / "one", tmp_path / "mine.txt"
    mine.write_text("mine")
    make(out)
    content = json.loads((out / "files.json").read_text())
    digest = hashlib.sha256(b"mine").hexdigest()
    content["files"] |= {"../mine.txt": digest, str(mine): digest, "..": digest}
    (out / "files.json").write_text(json.dumps(content))
    make(out, "second", overwrite=True)
    assert mine.read_text() == "mine"


def test_the_working_directory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    assert "the folder you work in" in refusal(".")
    assert "the folder you work in" in refusal("..")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("writer", ["text", "parquet"])
def test_a_full_disk_is_reported(tmp_path, writer):
    def write():
        with new_run(tmp_path / "one") as folder:
            full = folder / "full"
            full.symlink_to("/dev/full")
            if writer == "text":
                full.write_text("x")
            else:
                pq.write_table(pa.table({"x": range(100_000)}), full)

    with pytest.raises(RunError, match="No space left") as raised:
        write()
    assert str(tmp_path / "one") in str(raised.value)
    assert left(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from equipoise.evidence import new_run
with new_run(Path(sys.argv[1])) as folder:
    if sys.argv[2:]:
        (folder / "half.txt").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_run_removes_files_of_a_killed_run(tmp_path):
    out, other = tmp_path / "slow", tmp_path / ".slower.0123abcd.partial"
    other.mkdir()
    (other / "half.txt").write_text("of another run")
    for more in ([], ["half"], []):
        call = [sys.executable, "-c", KILLED, out, *more]
        assert subprocess.run(call, check=False).returncode == -9
    assert len([*tmp_path.glob(".slow.*.partial")]) == 1
    make(out)
    assert left(tmp_path) == [".slower.0123abcd.partial", "slow"]


def make_beside(out):
    with new_run(out) as first:
        make(out, "second")
        assert first.is_dir()
        fill(first, "first")


def test_a_run_at_work_is_left_alone(tmp_path):
    out = tmp_path / "one"
    with pytest.raises(RunError, match="holds a run already"):
        make_beside(out)
    assert (out / "manifest.json").read_text() == "second"
    assert left(tmp_path) == ["one"]


def test_a_run_that_was_moved_aside_is_put_back(tmp_path):
    out = tmp_path / "one"
    make(out, "first")
    out.rename(tmp_path / ".one.0123abcd.old")
    (tmp_path / ".one.0123abcd.partial").mkdir()
    fill(tmp_path / ".one.0123abcd.partial", "half")
    with pytest.raises(RunError, match="holds a run already"):
        make(out)
    assert (out / "manifest.json").read_text() == "first"
    assert left(tmp_path) == ["one"]


def test_a_run_that_was_replaced_is_removed(tmp_path):
    out = tmp_path / "one"
    make(out, "new")
    make(tmp_path / "two", "old")
    (tmp_path / "two").rename(tmp_path / ".one.0123abcd.old")
    make(out, "newer", overwrite=True)
    assert left(tmp_path) == ["one"]


def test_labels_are_kept_whoever_wrote_them_and_links_are_refused(tmp_path):
    run = tmp_path / "run"
    make(run, '{"inputs": {}}')
    keep_labels(run, lambda: {"labels.parquet": b"first"})
    (run / "labels" / "labels.parquet").write_bytes(b"changed")
    make(run, "second", overwrite=True)
    assert (run / "labels" / "labels.parquet").read_bytes() == b"changed"
    digest = hashlib.sha256(b"changed").hexdigest()
    assert list_labels(run) == {"labels/labels.parquet": {"sha256": digest, "bytes": 7}}
    assert foreign_files(run) == []
    (run / "labels" / "link").symlink_to(tmp_path)
    with pytest.raises(RunError, match="labels/link"), new_run(run, overwrite=True):
        pass


CHANGED = """
import os, signal, sys
from pathlib import Path
from equipoise.core import writing
from equipoise.evidence import keep_labels, rewrite
run, call, moment = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
calls = []
def killed(one):
    def call(*given):
        calls.append(one)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return one(*given)
    return call
os.fsync, Path.replace = killed(os.fsync), killed(Path.replace)
keep_labels(run, lambda: {"a": b"new"}) if call == "labels" else rewrite(run, "r.html", b"new")
"""


@pytest.mark.parametrize(("call", "file"), [("labels", "labels/a"), ("rewrite", "r.html")])
def test_a_run_whose_changes_were_killed_can_be_changed_and_replaced(call, file, tmp_path):
    """At every moment of a change: before and after each flush and rename."""
    run, seen = tmp_path / "run", set()
    for moment in range(1, 20):
        shutil.rmtree(run, ignore_errors=True)
        with new_run(run) as folder:
            fill(folder)
            (folder / "r.html").write_bytes(b"old")
        keep_labels(run, lambda: {"a": b"old"})
        code = subprocess.run([sys.executable, "-c", CHANGED, run, call, str(moment)], check=False)
        seen.add((run / file).read_bytes())
        assert foreign_files(run) == []
        if code.returncode == 0:
            break
        assert code.returncode == -9
        copy = tmp_path / "copy"
        shutil.copytree(run, copy)
        make(copy, "other", overwrite=True)
        assert not [*copy.rglob("*.partial")]
        shutil.rmtree(copy)
        rewrite(run, "r.html", b"newer")
        assert not [*run.rglob("*.partial")]
        assert foreign_files(run) == []
    else:
        pytest.fail("the change never ended")
    assert moment > 3
    assert seen == {b"old", b"new"}


def test_a_label_that_comes_while_a_run_is_replaced_is_kept(tmp_path, monkeypatch):
    run, began = tmp_path / "run", threading.Event()
    make(run)
    keep_labels(run, lambda: {"a": b"1"})

    def add():
        began.wait()
        keep_labels(run, lambda: {"b": (run / "labels" / "a").read_bytes() + b"2"})

    adding = threading.Thread(target=add)
    adding.start()
    replace = Path.replace

    def slow(path, target):
        began.set()
        time.sleep(0.05)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", slow)
    make(run, "second", overwrite=True)
    adding.join()
    assert (run / "manifest.json").read_text() == "second"
    assert [(run / "labels" / name).read_bytes() for name in "ab"] == [b"1", b"12"]


def test_files_that_only_look_unfinished_are_never_removed(tmp_path):
    run = tmp_path / "run"
    make(run)
    (run / ".thesis.md.0123abcd.partial").write_text("mine")
    assert "thesis.md" in refusal(run, overwrite=True)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_without_locks_no_label_is_accepted_and_runs_are_replaced(number, tmp_path, monkeypatch):
    run = tmp_path / "run"
    make(run)

    def flock(*_):
        raise OSError(number, "no locks")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(RunError) as raised:
        keep_labels(run, lambda: {"a": b"1"})
    assert raised.value.__cause__.errno == number
    make(run, "second", overwrite=True)
    assert (run / "manifest.json").read_text() == "second"
