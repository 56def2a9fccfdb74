"""What an audit took, and the power of the rows that it grows with."""

from dataclasses import dataclass

import numpy as np

# Numbers per vector; of ten million vectors, whose files would be large.
DIMENSION, NARROW = 256, 32
# Powers of the rows up to here are told to be a straight line: times vary by some per cent.
STRAIGHT = 1.15
# What a line may miss by: beside other work on the machine, time is not told more closely.
NOISE = 0.1


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
    processor : str
        What they are seconds of.
    """

    world: str
    rows: int
    dimension: int
    seconds: float
    processor_seconds: float
    peak_mb: float
    by_step: dict[str, float]
    processor: str


@dataclass(frozen=True)
class Growth:
    """How a number grows with the rows.

    Attributes
    ----------
    power : float
        p of a + b · rows^p; 1 is a straight line.
    off : float
        By what share the straight line a + b · rows that fits best misses a measurement most.
    """

    power: float
    off: float

    @property
    def straight(self):
        """Whether it is no more than a straight line, as far as the measurements can tell."""
        return self.power <= STRAIGHT or self.off <= NOISE

    @property
    def told(self):
        """Whether it is a straight line, in words."""
        line = "a straight line" if self.straight else "MORE than a straight line"
        return f"{line}, which misses by {self.off:.0%} at most"


def growths(measurements):
    """Return how memory and processor time grow, from three sizes on."""
    if len(measurements) < 3:
        return {}
    rows = [measurement.rows for measurement in measurements]
    values = {
        "memory": [measurement.peak_mb for measurement in measurements],
        "processor time": [measurement.processor_seconds for measurement in measurements],
    }
    return {quantity: Growth(power(rows, y), misses(rows, y)) for quantity, y in values.items()}


def power(rows, values):
    """Fit values = a + b rows^p, a and b not below 0, by relative errors."""
    best, least = float("nan"), float("inf")
    for p in np.arange(0.3, 3.0, 0.01):
        residuals = _residuals(rows, values, p)
        error = float((residuals**2).sum())
        if error < least:
            best, least = float(p), error
    return best


def misses(rows, values):
    """Return by what share the best a + b rows, a and b not below 0, misses a value most."""
    return float(np.abs(_residuals(rows, values, 1.0)).max())


def _residuals(rows, values, p):
    """Return the relative errors of the best a + b rows^p, a and b not below 0."""
    from scipy.optimize import nnls  # No part of what is measured.

    n, y = np.asarray(rows, dtype=float), np.asarray(values, dtype=float)
    terms = np.stack([np.ones_like(n), (n / n.max()) ** p], axis=1) / y[:, None]
    fitted, _ = nnls(terms, np.ones_like(y))
    return np.asarray(terms @ fitted - 1.0)
