"""Compiled kernels and threads: caches, order, nesting, failures, forks."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from equipoise.core import InputError
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import _libraries, each, threads


@compiled("float64(float64[::1])")
def largest(values):
    largest = -np.inf
    for value in values:
        largest = max(largest, value)
    return largest


@compiled()
def _half(value):
    return value / 2.0


@compiled("float64(float64[::1])")
def halves(values):
    total = 0.0
    for value in values:
        total += _half(value)
    return total


def test_a_kernel_calls_others_of_its_file():
    assert halves(np.array([1.0, 2.5])) == 1.75


def test_kernels_are_kept_in_the_folder_that_the_user_names(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert largest(np.array([1.0, 3.0, 2.0])) == 3.0
    assert [path.suffix for path in sorted(tmp_path.rglob("*largest*"))] == [".nbc", ".nbi"]


def test_a_folder_that_cannot_be_written_compiles_anew(tmp_path, monkeypatch):
    blocked = tmp_path / "a file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(blocked / "below"))

    @compiled("int64(int64)")
    def twice(value):
        return 2 * value

    assert twice(21) == 42


@pytest.mark.parametrize("count", ["1", "3"])
def test_results_come_in_the_order_of_the_items(count, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_THREADS", count)

    def slow_for_small(item):
        time.sleep((5 - item) / 200)
        return item * item

    assert each(slow_for_small, range(5)) == [0, 1, 4, 9, 16]
    assert threads() == int(count)


@pytest.mark.parametrize("setting", ["0", "two", "-1", "1.5"])
def test_a_count_of_threads_that_is_none(setting, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_THREADS", setting)
    with pytest.raises(InputError, match=f"^EQUIPOISE_THREADS is {setting!r}; "):
        threads()


@pytest.fixture(autouse=True)
def two(monkeypatch):
    monkeypatch.setenv("EQUIPOISE_THREADS", "2")


def test_work_that_spreads_work_does_not_wait_for_itself():
    def inner(item):
        return each(lambda more: item * more, range(3))

    assert each(inner, range(8)) == [[0, item, 2 * item] for item in range(8)]


def test_the_first_failure_is_raised_when_nothing_runs_any_more():
    ended = []

    def work(item):
        if item == 0:
            raise ZeroDivisionError("item 0")
        time.sleep(0.05)
        ended.append(item)

    with pytest.raises(ZeroDivisionError, match="item 0"):
        each(work, range(2))
    before = [*ended]
    time.sleep(0.1)
    assert ended == before


def blas_threads():
    # Libraries that other tests load later are not known to it.
    return {library["num_threads"] for library in _libraries().info()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_products_have_one_thread_each_while_work_is_spread(workers, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_THREADS", workers)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert each(lambda _: blas_threads(), range(2)) == [{1}, {1}]
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError):
            each(lambda item: 1 // item, range(2))
        assert blas_threads() == before


def test_who_leaves_last_gives_the_threads_of_products_back():
    first, second = threading.Event(), threading.Event()

    def wait_for(event):
        each(lambda _: event.wait(10), range(2))

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        outer = [threading.Thread(target=wait_for, args=(event,)) for event in (first, second)]
        for thread in outer:
            thread.start()
        first.set()
        outer[0].join(10)
        second.set()
        outer[1].join(10)
        assert blas_threads() == before


FORKED = """
import os
from equipoise.stats.threads import each

assert each(abs, range(4)) == [0, 1, 2, 3]
child = os.fork()
assert each(abs, range(4)) == [0, 1, 2, 3]
assert not child or os.waitpid(child, 0) == (child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_process_begins_threads_of_its_own():
    # Of a process of its own: another test's libraries have threads that no fork may copy.
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)
