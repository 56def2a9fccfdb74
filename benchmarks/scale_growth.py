"""What an audit took, and the power of the rows that it grows with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Powers of the rows up to here are told to be a straight line: times vary by some per cent.
STRAIGHT = 1.15


@dataclass(frozen=True)
class Measured:
    """One audit.

    Attributes
    ----------
    world : str
        The kind of audit.
    rows, dimension : int
        Of the evidence; dimension 0 where it has no vectors.
    seconds, processor_seconds : float
        By the clock, and of all threads together.
    peak_mb : float
        Peak resident memory of the process, in 10^6 bytes, libraries and mapped files included.
    by_step : mapping of str to float
        Processor seconds.
    """

    world: str
    rows: int
    dimension: int
    seconds: float
    processor_seconds: float
    peak_mb: float
    by_step: dict[str, float]


def powers(found: Sequence[Measured]) -> dict[str, float]:
    """Return p of a + b rows^p, of memory and of processor time, from three sizes on."""
    if len(found) < 3:
        return {}
    rows = [one.rows for one in found]
    return {
        "memory": power(rows, [one.peak_mb for one in found]),
        "processor time": power(rows, [one.processor_seconds for one in found]),
    }


def power(rows: Sequence[int], values: Sequence[float]) -> float:
    """Fit values = a + b rows^p, a and b not below 0, by relative errors."""
    n, y = np.asarray(rows, dtype=float), np.asarray(values, dtype=float)
    best, least = float("nan"), float("inf")
    for p in np.arange(0.3, 3.0, 0.01):
        terms = np.stack([np.ones_like(n), (n / n.max()) ** p], axis=1) / y[:, None]
        (a, b), *_ = np.linalg.lstsq(terms, np.ones_like(y), rcond=None)
        error = float(((terms @ [a, b] - 1.0) ** 2).sum())
        if a >= 0 and b >= 0 and error < least:
            best, least = float(p), error
    return best
