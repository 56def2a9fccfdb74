"""Work spread over threads, with results that do not depend on how many there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from equipoise.core.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Apply a function to every item, in threads; results come in the order of the items.

    Worth it for kernels that release the interpreter lock. Items must be cut the same way
    whatever the number of threads, and each must draw from a stream of its own.
    """
    work = [*items]
    workers = min(threads(), len(work))
    if workers < 2:
        return [function(item) for item in work]
    with ThreadPoolExecutor(workers) as pool:
        return [*pool.map(function, work)]


def threads() -> int:
    """Return how many threads to use: `EQUIPOISE_THREADS`, else the processors at hand."""
    given = os.environ.get("EQUIPOISE_THREADS", "")
    if not given:
        return _processors()
    if not given.isdecimal() or int(given) < 1:
        raise InputError(f"EQUIPOISE_THREADS is {given!r}; expected a whole number of at least 1")
    return int(given)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
