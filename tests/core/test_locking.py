"""A lock is held by one process or thread, and waited for, also where its folder is replaced."""

import errno
import os
import threading

import pytest

from equipoise.core import RunError
from equipoise.core.locking import lock


def test_a_lock_is_held_by_one_and_waited_for(tmp_path):
    path, inside = tmp_path / "lock", []

    def work():
        for _ in range(50):
            with lock(path):
                inside.append(1)
                assert sum(inside) == 1
                inside.append(-1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 400
    with lock(path), pytest.raises(RunError) as raised, lock(path, wait=0.02):
        pytest.fail("two hold the lock")
    assert str(path) in str(raised.value)


def test_a_lock_of_a_folder_that_is_replaced_is_taken_anew(tmp_path):
    run, old, path = tmp_path / "run", tmp_path / "old", tmp_path / "run" / "lock"
    run.mkdir()
    order = []

    def wait():
        with lock(path):
            order.append("second")

    with lock(path):
        thread = threading.Thread(target=wait)
        thread.start()
        run.rename(old)
        run.mkdir()
        with lock(path):
            order.append("first")
        held = path.stat()
    thread.join()
    assert order == ["first", "second"]
    assert os.path.samestat(held, path.stat())
    with pytest.raises(FileNotFoundError), lock(tmp_path / "gone" / "lock"):
        pytest.fail("held what is not there")


def test_without_locks_nothing_is_held(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(OSError, match="no locks") as raised, lock(tmp_path / "lock"):
        pytest.fail("held without locks")
    assert raised.value.errno == errno.ENOLCK
