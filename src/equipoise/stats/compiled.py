"""Kernels compiled by numba: on first use, once for a machine, and not without a word."""

import logging
import os
import threading
from collections.abc import Callable
from functools import cache, update_wrapper, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

# Seconds after which a compilation is worth a word.
_PATIENCE = 1.0


def compiled(*signatures: str) -> Callable[[Kernel], Kernel]:
    """Compile a function on its first call, for the given numba signatures only.

    Compilations are kept in the user's cache folder (`NUMBA_CACHE_DIR` where it is set), for
    the package's own may be read-only. One that takes longer than a second says so on standard
    error. Kernels release the interpreter lock, run in one thread and keep the order of their
    float sums: `equipoise.stats.threads.each` spreads calls over threads. A kernel may call other
    compiled functions of its file.

    Parameters
    ----------
    *signatures : str
        Such as "float64(float64[::1], int64)"; none for what only kernels call.

    Examples
    --------
    >>> @compiled("float64(float64[::1])")
    ... def total(values):
    ...     running = 0.0
    ...     for value in values:
    ...         running += value
    ...     return running
    """

    def decorate(function: Kernel) -> Kernel:
        lock = threading.Lock()
        ready: list[Callable[..., Any]] = []

        @wraps(function)
        def call(*arguments: Any) -> Any:
            if not ready:
                with lock:
                    if not ready:
                        ready.append(_compile(function, signatures))
            return ready[0](*arguments)

        call.kernel = function  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def _compile(function: Callable[..., Any], signatures: tuple[str, ...]) -> Callable[..., Any]:
    import numba

    patience = threading.Timer(_PATIENCE, _tell)
    patience.daemon = True
    patience.start()
    function = _linked(function)
    # The folder is set for our kernels only: numba reads it where a function is decorated.
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        built: Callable[..., Any] = numba.njit([*signatures], cache=True, nogil=True)(function)
    except (RuntimeError, OSError):  # No folder can be written: compile anew in every process.
        built = numba.njit([*signatures], nogil=True)(function)
    finally:
        config.CACHE_DIR = before
        patience.cancel()
    return built


def _linked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with compiled versions of the kernels that it calls."""
    import numba

    module_globals = function.__globals__
    called = {
        name: getattr(module_globals.get(name), "kernel", None)
        for name in function.__code__.co_names
    }
    kernels = {
        name: numba.njit(nogil=True)(_linked(kernel)) for name, kernel in called.items() if kernel
    }
    if not kernels:
        return function
    linked = FunctionType(function.__code__, {**module_globals, **kernels}, function.__name__)
    return update_wrapper(linked, function)


@cache
def _tell() -> None:
    """Say it once in a process, however many kernels there are."""
    # Where logging is not set up, a warning reaches standard error.
    logging.getLogger("equipoise").warning(
        "compiling numeric kernels, some seconds, once on this machine (kept in %s)", cache_folder()
    )


def cache_folder() -> Path:
    """Return the folder that keeps compiled kernels."""
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(folder)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home, "equipoise", "kernels")
