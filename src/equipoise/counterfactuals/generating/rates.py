"""How fast images were made in a folder, for the plan of the next run."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from equipoise.evidence.store import write

_NAME = "rate.json"


@dataclass(frozen=True)
class Rate:
    """Images made in a folder, by all runs.

    Attributes
    ----------
    images : int
    seconds : float
        Of wall time; loading the model aside.
    """

    images: int = 0
    seconds: float = 0.0

    @property
    def per_image(self) -> float | None:
        """Seconds for an image; None before any was made."""
        return self.seconds / self.images if self.images else None


def read_rate(folder: Path) -> Rate:
    """Return how fast images were made in a folder."""
    try:
        return Rate(**json.loads((folder / _NAME).read_bytes()))
    except (OSError, ValueError, TypeError):
        return Rate()


@dataclass
class Clock:
    """Keeps the rate of a run beside those before it."""

    folder: Path
    before: Rate = field(init=False)
    _began: float = field(default_factory=time.perf_counter, init=False)

    def __post_init__(self) -> None:
        """Take up what was measured before."""
        self.before = read_rate(self.folder)

    def keep(self, images: int) -> None:
        """Write how many images this run has made so far."""
        seconds = self.before.seconds + time.perf_counter() - self._began
        rate = Rate(self.before.images + images, round(seconds, 3))
        write(self.folder / _NAME, json.dumps(asdict(rate)).encode())
