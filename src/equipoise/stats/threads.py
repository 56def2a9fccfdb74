"""Work spread over threads, with results that do not depend on how many there are."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from equipoise.core import AnyArray, InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that are held before they are added.
_HELD = 32
# Rows from which on another thread is worth its while.
_FEW = 1 << 15

# What is spread by work that is spread already stays in its thread: waiting there for a thread
# would be waiting for oneself.
_thread_state = threading.local()


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to every item, in threads; results come in the order of the items.

    Worth it for kernels that release the interpreter lock, and products of matrices, which get one
    thread each meanwhile: more of them would be in each other's way. Items must be cut the same way
    whatever the number of threads, and each must draw from a stream of its own.
    """
    work = [*items]
    if len(work) < 2 or getattr(_thread_state, "spread", False):
        return [function(item) for item in work]
    workers = threads()
    with _products:
        # One thread may do it all: the same products then, too.
        if workers < 2:
            return [function(item) for item in work]
        futures = [_pool(workers).submit(function, item) for item in work]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)


def stretches(rows: int) -> list[range]:
    """Cut rows into as many stretches as there are threads, few rows into one.

    For what does not depend on how rows are cut, such as sums of whole numbers.
    """
    n_stretches = threads() if rows >= _FEW else 1
    ends = [rows * part // n_stretches for part in range(n_stretches + 1)]
    return [range(start, end) for start, end in pairwise(ends)]


class _OneThread:
    """Holds products of matrices to one thread while any work is spread.

    A process has one number of threads for them. Who comes first sets it, who leaves last gives
    it back.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, whoever was inside."""
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _libraries().limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


_products = _OneThread()


@cache
def _libraries() -> ThreadpoolController:
    """Return what multiplies matrices in this process."""
    return ThreadpoolController().select(user_api="blas")


def sum_results(
    function: Callable[[Item], Sequence[AnyArray]], items: Sequence[Item]
) -> list[AnyArray]:
    """Apply a function to every item, in threads, and add up each of its results in their order.

    Results of some items at a time are held: there may be many, and large ones.
    """
    total: list[AnyArray] = []
    for start in range(0, len(items), _HELD):
        for results in each(function, items[start : start + _HELD]):
            total = [a + b for a, b in zip(total, results, strict=True)] if total else [*results]
    return total


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Return threads that stay: beginning new ones takes longer than many kernels do."""
    return ThreadPoolExecutor(workers, "equipoise", lambda: setattr(_thread_state, "spread", True))


if hasattr(os, "register_at_fork"):  # The threads do not live on in a forked process.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_products.forget)


def threads() -> int:
    """Return how many threads to use: `EQUIPOISE_THREADS`, else the processors at hand."""
    setting = os.environ.get("EQUIPOISE_THREADS", "")
    if not setting:
        affinity = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if affinity else os.cpu_count() or 1
    if not setting.isdecimal() or int(setting) < 1:
        raise InputError(f"EQUIPOISE_THREADS is {setting!r}; expected a whole number of at least 1")
    return int(setting)
