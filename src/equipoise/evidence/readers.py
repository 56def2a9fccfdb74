"""Threads that read and decode, none of which is waited for once the run is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

Found = TypeVar("Found")

# Seconds after which a wait looks whether the run is stopped, and that threads have to end then.
_PATIENCE, _GRACE = 0.1, 1.0


class StoppedError(Exception):
    """The run was stopped before something was read."""


class Readers:
    """So many threads at work; a file that never answers holds up no exit.

    Those of `concurrent.futures` are waited for when the interpreter ends, whatever blocks them:
    a mount that is gone, or a disk that does not answer.

    Parameters
    ----------
    threads : int
    stopped : callable
        Whether nobody waits any more.
    """

    def __init__(self, threads: int, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name="reader", daemon=True) for _ in range(threads)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the threads; where the run is stopped, for a moment only."""
        for _ in self._threads:
            self._work.put(None)
        left = _GRACE
        for thread in self._threads:
            while thread.is_alive() and left > 0:
                begun = time.monotonic()
                thread.join(_PATIENCE)
                if self._stopped():
                    left -= time.monotonic() - begun

    def submit(self, call: Callable[..., Found], *given: Any) -> Future[Found]:
        """Have a thread call something."""
        future: Future[Found] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*given))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)

        self._work.put(work)
        return future

    def result(self, future: Future[Found]) -> Found:
        """Return what a call gave.

        Raises
        ------
        StoppedError
            When the run is stopped before there is any.
        """
        while True:
            try:
                return future.result(_PATIENCE)
            except TimeoutError:
                if future.done():  # an error of the call itself
                    return future.result()
                if self._stopped():
                    raise StoppedError from None

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
