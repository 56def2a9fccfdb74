"""Shares with the draws that their intervals and tests come from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import no_ends
from equipoise.metrics.building import Percentile
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.shares.classified import Classified
from equipoise.stats.chance import PValue
from equipoise.stats.resampling import Bootstrap, Exact, Resampling

Floats = npt.NDArray[np.float64]

TRANSPORT = "errors on the labelled images are taken to be those on the images that are asked about"
"""What every correction by labelled images supposes."""
MOST_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Shares:
    """Ends of the MAD of shares, with the draws that other numbers of them are made from.

    Attributes
    ----------
    classified : Classified
    observed : ndarray, shape (classes,)
    boot : ndarray, shape (draws, classes), or None
    null : ndarray, shape (draws, classes), or None
        Where true shares are equal.
    resampling : Resampling or None
    seed : int
    """

    classified: Classified
    observed: Floats
    boot: Floats | None
    null: Floats | None
    resampling: Resampling | None
    seed: int

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends of the MAD."""
        return no_ends(level) if self.boot is None else Percentile(mad(self.boot))(level)


def mad(shares: Floats) -> Floats:
    """Return the sum over classes of |share - mean share|, shape (r,)."""
    return np.asarray(np.abs(shares - shares.mean(axis=1, keepdims=True)).sum(axis=1))


def drawn_shares(
    table: Classified, resampling: Resampling | None, seed: int, reason: str
) -> Shares:
    """Return shares with their draws; without any where there is a reason against them."""
    if reason:
        nothing = np.full(len(table.classes), math.nan)
        return Shares(table, nothing, None, None, resampling, seed)
    observed = table.of_classes(table.found()[None])[0]
    boot = null = None
    if isinstance(resampling, Bootstrap):
        boot = table.drawn(resampling.replicates, seed)
    if resampling is not None:
        equal = np.full(len(observed), 1.0 / len(observed))
        null = table.under(equal, null_draws(resampling), seed)
    return Shares(table, observed, boot, null, resampling, seed)


def null_draws(resampling: Resampling) -> int:
    """Return how many draws a null has: enough to resolve p, within a budget."""
    if isinstance(resampling, Exact):
        return 1000
    least = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    return max(least, min(math.ceil(1.0 / resampling.resolution), MOST_DRAWS))


def held_by(text: str, tested: PValue) -> str:
    """Say what a p-value was held against: nothing was permuted, images were drawn."""
    how = "share of draws as far out" if tested.method == "permutation" else tested.method
    return f"{text}; {how}"


def method_of(found: Shares) -> str:
    """Say how intervals were made, and what they suppose."""
    if found.resampling is None:
        return NO_INTERVAL
    if found.boot is None:
        return "none: use Bootstrap()"
    how = f"{len(found.boot)} draws from Dirichlet distributions of what was said"
    if found.classified.exact:
        return f"{how}; not corrected for the errors of the classifier"
    return f"{how} and of the labelled images; {TRANSPORT}"
