"""Waiting for a generator that runs in a thread of its own, so that the wait can be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import closing, suppress
from queue import Empty, Full, Queue
from typing import Generic, TypeVar

Item = TypeVar("Item")

# Seconds after which either side looks whether the other still waits. Where Polars is loaded, a
# signal does not end the wait for a lock.
_PATIENCE = 0.1


def aside(items: Generator[Item]) -> Generator[Item]:
    """Yield what a generator yields, made in another thread, one item ahead.

    An interrupt raises here at once, whatever the generator is doing: Daft hangs where it sees
    Ctrl-C before Python does. A generator that is given up is closed in its thread, which nobody
    waits for.
    """
    handover: _Handover[Item] = _Handover()
    threading.Thread(target=handover.make, args=[items], name="extraction", daemon=True).start()
    try:
        while True:
            found, error = handover.take()
            if error is not None:
                raise error
            if not found:
                return
            yield from found
    finally:
        handover.left.set()


class _Handover(Generic[Item]):
    """What is made in one thread for another: an item, nothing at the end, or an error."""

    def __init__(self) -> None:
        self.ready: Queue[tuple[tuple[Item, ...], BaseException | None]] = Queue(maxsize=1)
        self.left = threading.Event()

    def take(self) -> tuple[tuple[Item, ...], BaseException | None]:
        """Return what is handed over next."""
        while True:
            with suppress(Empty):
                return self.ready.get(timeout=_PATIENCE)

    def make(self, items: Generator[Item]) -> None:
        """Hand over each item, until there is none or nobody waits."""
        try:
            with closing(items):
                for item in items:
                    self._hand((item,))
                    if self.left.is_set():
                        return
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._hand((), error)
        else:
            self._hand(())

    def _hand(self, found: tuple[Item, ...], error: BaseException | None = None) -> None:
        while not self.left.is_set():
            try:
                self.ready.put((found, error), timeout=_PATIENCE)
            except Full:
                continue
            return
