"""Threads that stay: order, nesting, failures, forks."""

import os
import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_limits

from equipoise.stats.threads import _libraries, each


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQUIPOISE_THREADS", "2")


def test_threads_are_kept_for_the_next_call() -> None:
    meeting = threading.Barrier(2)

    def name(_: int) -> str:
        meeting.wait(10)
        return threading.current_thread().name

    first, second = set(each(name, range(2))), set(each(name, range(2)))
    assert len(first) == 2
    assert second == first


def test_work_that_spreads_work_does_not_wait_for_itself() -> None:
    def inner(item: int) -> list[int]:
        return each(lambda more: item * more, range(3))

    assert each(inner, range(8)) == [[0, item, 2 * item] for item in range(8)]


def test_the_first_failure_is_raised_when_nothing_runs_any_more() -> None:
    ended = []

    def work(item: int) -> None:
        if item == 0:
            raise ZeroDivisionError("item 0")
        time.sleep(0.05)
        ended.append(item)

    with pytest.raises(ZeroDivisionError, match="item 0"):
        each(work, range(2))
    before = [*ended]
    time.sleep(0.1)
    assert ended == before


def blas_threads() -> set[int]:
    # Libraries that other tests load later are not known to it.
    return {one["num_threads"] for one in _libraries().info()}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_products_have_one_thread_each_while_work_is_spread(
    workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_THREADS", workers)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert each(lambda _: blas_threads(), range(2)) == [{1}, {1}]
        assert blas_threads() == before
        with pytest.raises(ZeroDivisionError):
            each(lambda item: 1 // item, range(2))
        assert blas_threads() == before


def test_who_leaves_last_gives_the_threads_of_products_back() -> None:
    first, second = threading.Event(), threading.Event()

    def wait_for(one: threading.Event) -> None:
        each(lambda _: one.wait(10), range(2))

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        outer = [threading.Thread(target=wait_for, args=(one,)) for one in (first, second)]
        for one in outer:
            one.start()
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
def test_a_forked_process_begins_threads_of_its_own() -> None:
    # Of a process of its own: another test's libraries have threads that no fork may copy.
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)
