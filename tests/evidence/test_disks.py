"""Disks that are full, that cannot lock or rename; two runs at the same time."""

import errno
import fcntl
import os
import subprocess
import threading
from pathlib import Path

import pytest

from equipoise.core import RunError
from equipoise.evidence import (
    ExtractionSettings,
    embed_texts,
    extract_embeddings,
    pictures_in_folder,
)
from picture_models import Means, write_pictures

LACKING = [errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system can only be mounted by root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def files(store):
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file()
    }


def test_a_full_disk_keeps_finished_parts_and_the_next_run_continues(photos, small_disk, tmp_path):
    write_pictures(photos, 40)
    pictures = pictures_in_folder(photos)
    complete = extract_embeddings(
        pictures, Means(), tmp_path / "whole", settings=ExtractionSettings(part=2)
    )
    (small_disk / "other").write_bytes(bytes(32_000))
    store = small_disk / "store"
    with pytest.raises(RunError) as caught:
        extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=2))
    assert caught.value.__cause__.errno == errno.ENOSPC
    parts = {*store.rglob("part-*")}
    assert 0 < len(parts) < len(complete.parts)
    assert not [*store.rglob("*.partial")]
    (small_disk / "other").unlink()
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    again = extract_embeddings(pictures, Means(), store, settings=ExtractionSettings(part=2))
    assert again.computed == 40 - 2 * len(parts)
    assert files(store) == files(tmp_path / "whole")


def test_texts_of_two_runs_at_the_same_time_are_whole(tmp_path):
    words = [f"word {number}" for number in range(200)]
    first = embed_texts(words, Means(), tmp_path / "whole", part=5)

    def embed():
        embed_texts(words, Means(), tmp_path / "s", part=5)

    threads = [threading.Thread(target=embed) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files(tmp_path / "s") == files(tmp_path / "whole")
    assert embed_texts(words, Means(), tmp_path / "s", part=5).computed == 0
    assert first.computed == 200


@pytest.mark.parametrize("number", LACKING)
@pytest.mark.parametrize(("place", "lacks"), [(fcntl, "flock"), (Path, "replace")])
def test_a_disk_without_locks_or_renames_is_refused(
    place, lacks, number, photos, tmp_path, monkeypatch
):
    def without(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(place, lacks, without)
    with pytest.raises(RunError, match="cannot lock or cannot rename files"):
        extract_embeddings(pictures_in_folder(photos), Means(), tmp_path / "store")
    remaining = {path.name for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert remaining <= {"lock"}
