"""Changes in a direction that the same sample shows, without the bias of that choice.

Where a direction is chosen on a sample and a change measured on it, chance that made the sample
lean one way is missing from the other side of the change: it seems to shrink. Cross-fitting chooses
on one half of the units and measures on the other. `Changes.cross_fitted` is the mean over all
splits in halves, by its normal limit: a sum over half of the units is normal given the sample.

A `Pair` holds sums of each unit in two samples, so that units can be drawn again or exchange their
samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy import special

from equipoise.core import Booleans, Floats, Integers, Words, floats, record, unwarned
from equipoise.stats.draws import block_sizes
from equipoise.stats.streams import Seed, unit_counts, unit_uniforms

# Squares below this share of their terms are rounding.
_ROUNDING = 1e-12
_ROOT = float(np.sqrt(2.0 * np.pi))


@record
class Changes:
    """A change and the direction that it counts in, in each replicate.

    Attributes
    ----------
    value : ndarray, shape (replicates,)
        The change, without a sign.
    leaning : ndarray, shape (replicates,)
        Above 0 the change counts.
    leaning_terms, value_terms : ndarray, shape (replicates, sums)
        A unit's contribution to either, centred: weights of its sums.
    opposite : bool
        Whether a leaning of 0 or less counts the change as its opposite, or not at all.
    """

    value: Floats
    leaning: Floats
    leaning_terms: Floats
    value_terms: Floats
    opposite: bool

    @property
    def side(self) -> Floats:
        """How the change counts in the direction that the whole sample shows."""
        return np.where(self.leaning > 0, 1.0, -1.0 if self.opposite else 0.0)

    def cross_fitted(self, moments: Floats) -> Floats:
        """Return the change in the direction of half of the units, measured on the other half.

        Parameters
        ----------
        moments : ndarray, shape (replicates, sums, sums)
            Products of units' sums, added over units.
        """

        def covariance(other: Floats) -> Floats:
            return floats(np.einsum("ri,rij,rj->r", self.leaning_terms, moments, other))

        variance = covariance(self.leaning_terms)
        scale = np.einsum("ri,rii->r", self.leaning_terms**2, moments)
        varies = variance > _ROUNDING * scale
        spread = np.sqrt(np.where(varies, variance, 1.0))
        certain = np.where(self.leaning > 0, np.inf, -np.inf)
        standard = np.where(varies, self.leaning / spread, certain)
        density = np.exp(-(standard**2) / 2.0) / _ROOT
        shrunk = density * covariance(self.value_terms) / spread
        if self.opposite:
            return floats((2.0 * special.ndtr(standard) - 1.0) * self.value - 2.0 * shrunk)
        return floats(special.ndtr(standard) * self.value - shrunk)


Block = tuple[Floats, Floats | None]
"""How often units count as they are, and with their samples exchanged."""


@record
class Pair:
    """A change with the sums over units that it is made of.

    Attributes
    ----------
    rows : ndarray of int or slice
        Units that contribute.
    sums : callable
        Sums of each of these units, and of the units with their samples exchanged, both of shape
        (rows, sums); made anew, as all pairs together would take too much memory.
    measure : callable
        From sums over units, shape (replicates, sums), to `Changes`.
    """

    rows: Integers | slice
    sums: Callable[[], tuple[Floats, Floats]]
    measure: Callable[[Floats], Changes]

    def replicate(self, weights: Floats, swapped: Floats | None) -> Floats:
        """Return the change, its side and the cross-fitted change, shape (3, replicates).

        Parameters
        ----------
        weights, swapped : ndarray, shape (replicates, units)
            How often a unit counts as it is, and with its samples exchanged: never both. None
            where no unit is exchanged.
        """
        totals, moments = [], []
        for counts, sums in zip((weights, swapped), self.sums(), strict=True):
            if counts is not None:
                rows = counts[:, self.rows]
                products = np.einsum("ui,uj->uij", sums, sums)
                totals.append(rows @ sums)
                moments.append(np.tensordot(rows**2, products, 1))
        changes = self.measure(floats(sum(totals)))
        cross_fitted = changes.cross_fitted(floats(sum(moments)))
        return np.stack([changes.value, changes.side, cross_fitted])


@record
class Replicates:
    """Changes in each replicate, shapes (replicates, pairs).

    Attributes
    ----------
    change, side, cross_fitted : ndarray
        The change without a sign, how it counts in the direction of the whole sample, and the
        cross-fitted change.
    """

    change: Floats
    side: Floats
    cross_fitted: Floats


@record
class Units:
    """Units of two samples: drawn again by their names, and exchanged.

    Attributes
    ----------
    keys : ndarray of uint64, shape (units,)
    of_first : ndarray of bool, shape (units,), or None
        Which units are of the first sample; None where every unit is in both.
    seed : int or Generator
    """

    keys: Words
    of_first: Booleans | None
    seed: Seed

    def observed(self, pairs: Sequence[Pair]) -> Replicates:
        """Return the changes of the sample itself, as a single replicate."""
        return _replicate(pairs, [(np.ones((1, len(self.keys))), None)])

    def bootstrap(self, pairs: Sequence[Pair], replicates: int) -> Replicates:
        """Return the changes of units drawn again."""
        return _replicate(pairs, self._weights(replicates))

    def exchange(self, pairs: Sequence[Pair], draws: int) -> Replicates:
        """Return the changes of units that exchange their samples.

        Units in both samples exchange them at random; of others as many stay in each.
        """
        return _replicate(pairs, self.exchanged(draws))

    def _weights(self, replicates: int) -> Iterator[Block]:
        for start, size in block_sizes(replicates, len(self.keys)):
            yield floats(unit_counts(self.seed, self.keys, range(start, start + size))), None

    def exchanged(self, draws: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield units as they are and units exchanged, in blocks of draws."""
        for start, size in block_sizes(draws, len(self.keys)):
            random = unit_uniforms(self.seed, "exchange", self.keys, range(start, start + size))
            swapped = random < 0.5
            if self.of_first is not None:
                ranks = random.argsort(axis=1).argsort(axis=1)
                swapped = (ranks < self.of_first.sum()) != self.of_first
            yield floats(~swapped), floats(swapped)


def _replicate(pairs: Sequence[Pair], blocks: Iterable[Block]) -> Replicates:
    with unwarned():
        blocks_of_pairs = [
            np.stack([pair.replicate(*block) for pair in pairs], axis=-1) for block in blocks
        ]
    return Replicates(*np.concatenate(blocks_of_pairs, axis=1))
