"""Files are whole or not there; writers at work keep what is theirs; locks are waited for."""

import errno
import os
import threading

import pytest

from equipoise.core.writing import alone, is_leftover, remove_leftovers, write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["a", "x" * 255, "ä" * 127])
@pytest.mark.parametrize("new", [True, False])
def test_a_file_is_written_with_its_folders(name, new, tmp_path):
    path = tmp_path / "deep" / "er" / name
    write_whole(path, b"data", new=new)
    assert path.read_bytes() == b"data"
    assert names(path.parent) == [name]


def test_a_new_file_replaces_nothing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError) as raised:
        write_whole(path, b"data", new=True)
    assert raised.value.filename == str(path)
    assert path.read_bytes() == b"mine"
    write_whole(path, b"data")
    assert path.read_bytes() == b"data"
    assert names(tmp_path) == ["a"]


def test_a_disk_that_links_no_files_has_new_files_too(tmp_path, monkeypatch):
    def link(*_, **__):
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", link)
    write_whole(tmp_path / "a", b"data", new=True)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a", b"data", new=True)
    assert names(tmp_path) == ["a"]


def test_the_file_of_a_writer_at_work_stays(tmp_path, monkeypatch):
    fsync, seen = os.fsync, []

    def swept(descriptor):
        remove_leftovers(tmp_path)
        seen.append([name for name in names(tmp_path) if is_leftover(name)])
        return fsync(descriptor)

    (tmp_path / "b.0123abcd.partial").write_bytes(b"of a dead writer")
    (tmp_path / "c.partial").write_bytes(b"of somebody else")
    monkeypatch.setattr(os, "fsync", swept)
    write_whole(tmp_path / "a", b"data")
    assert len(seen[0]) == 1
    assert seen[0][0].startswith("a.")
    assert names(tmp_path) == ["a", "c.partial"]


def test_leftovers_of_one_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.0123abcd.partial").write_bytes(b"")
    remove_leftovers(tmp_path, "a")
    assert names(tmp_path) == ["b.0123abcd.partial"]
    remove_leftovers(tmp_path / "nowhere")


def test_a_lock_is_held_by_one_and_waited_for(tmp_path):
    path, inside = tmp_path / "lock", []

    def work():
        for _ in range(50):
            with alone(path):
                inside.append(1)
                assert sum(inside) == 1
                inside.append(-1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 400
    with alone(path), pytest.raises(TimeoutError) as raised, alone(path, wait=0.02):
        pytest.fail("two hold the lock")
    assert raised.value.filename == str(path)


def test_a_lock_of_a_folder_that_is_replaced_is_taken_anew(tmp_path):
    run, old, lock = tmp_path / "run", tmp_path / "old", tmp_path / "run" / "lock"
    run.mkdir()
    order = []

    def wait():
        with alone(lock):
            order.append("second")

    with alone(lock):
        thread = threading.Thread(target=wait)
        thread.start()
        run.rename(old)
        run.mkdir()
        with alone(lock):
            order.append("first")
        held = lock.stat()
    thread.join()
    assert order == ["first", "second"]
    assert os.path.samestat(held, lock.stat())
    with pytest.raises(FileNotFoundError), alone(tmp_path / "gone" / "lock"):
        pytest.fail("held what is not there")
