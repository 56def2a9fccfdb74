"""How many requests to a server may be under way."""

from __future__ import annotations

import threading
import time


class Pace:
    """Allows half as many requests after trouble, and slowly more after answers.

    Use it as a context around a request and its repetitions.

    Parameters
    ----------
    most : int
        Most requests under way.
    """

    def __init__(self, most: int) -> None:
        self._most, self._allowed, self._under_way = most, float(most), 0
        self._quiet_until = 0.0
        self._free = threading.Condition()

    def __enter__(self) -> None:
        with self._free:
            self._free.wait_for(lambda: self._under_way < max(1, int(self._allowed)))
            self._under_way += 1

    def __exit__(self, *_: object) -> None:
        with self._free:
            self._under_way -= 1
            self._free.notify_all()

    @property
    def allowed(self) -> int:
        """How many requests may be under way now."""
        return int(self._allowed)

    def wait(self) -> float:
        """Return the seconds until the server may be asked."""
        return max(0.0, self._quiet_until - time.monotonic())

    def speed_up(self) -> None:
        """Allow one request more for as many answers as there are requests under way."""
        with self._free:
            self._allowed = min(self._most, self._allowed + 1.0 / self._allowed)
            self._free.notify_all()

    def slow_down(self, allowed: int, seconds: float = 0.0) -> None:
        """Allow half as many requests from now on, and none for some seconds.

        Parameters
        ----------
        allowed : int
            How many were allowed when the request was sent that met the trouble: requests that
            were under way together slow down once.
        seconds : float
            As the server asks.
        """
        with self._free:
            if self._allowed >= allowed:
                self._allowed = max(1.0, self._allowed / 2.0)
            self._quiet_until = max(self._quiet_until, time.monotonic() + seconds)
