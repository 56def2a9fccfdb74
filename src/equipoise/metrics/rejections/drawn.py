"""Shares of rejected images on resampled sets, and with groups exchanged within sets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.metrics.gaps import gaps, spread_level
from equipoise.metrics.measure import Draws
from equipoise.metrics.rejections.rows import Checked, Floats, Indices
from equipoise.stats.draws import block_sizes
from equipoise.stats.exchange import Exchange
from equipoise.stats.intervals import percentile, simultaneous_gap, wilson
from equipoise.stats.poisson import unit_counts
from equipoise.stats.resampling import Bootstrap, Permutation
from equipoise.stats.shuffling import add_relabelled, keys
from equipoise.stats.streams import unit_keys

# Members that are moved in all permutations beyond those asked for: a second or two.
_MOVES = 200_000_000


@dataclass(frozen=True, eq=False)
class Rejections:
    """Shares of images that checks rejected, drawn as asked.

    Attributes
    ----------
    rows : Checked
    resampling : Bootstrap, Permutation or None
    rng : int
    """

    rows: Checked
    resampling: Bootstrap | Permutation | None
    rng: int

    @cached_property
    def totals(self) -> Indices:
        """Rejections and checks by stratum and group, (strata, groups, 2)."""
        return self.rows.count(self.rows.cell, self.rows.values)

    @cached_property
    def images(self) -> Indices:
        """Images by stratum and group, shape (strata, groups)."""
        ones = np.ones((len(self.rows.unit), 1), dtype=np.int64)
        return self.rows.count(self.rows.cell, ones)[..., 0]

    @cached_property
    def boot(self) -> Floats | None:
        """Counts on resampled clusters, shape (replicates, strata, groups, 2)."""
        if not isinstance(self.resampling, Bootstrap):
            return None
        rows, cells = self.rows, int(np.prod(self.rows.shape))
        used, cluster = np.unique(rows.cluster, return_inverse=True)
        names = unit_keys([rows.names[one] for one in used.tolist()])
        flat = cluster * cells + rows.cell
        counts = np.stack(
            [
                np.bincount(flat, weights=column, minlength=len(used) * cells)
                for column in rows.values.T
            ],
            axis=1,
        ).reshape(len(used), cells * 2)
        found = []
        for start, size in block_sizes(self.resampling.replicates, max(len(used), cells)):
            times = unit_counts(self.rng, names, range(start, start + size))
            # Products and sums of whole numbers below 2^53 are exact in any order.
            found.append(times.astype(np.float64) @ counts)
        return np.concatenate(found).reshape(-1, *rows.shape, 2)

    @cached_property
    def null(self) -> Floats | None:
        """Counts with groups exchanged, (permutations, strata, groups, 2); None without draws."""
        if self.resampling is None or self._carriers is None:
            return None
        fixed, starts, cells, values = self._carriers
        many = self._permutations(len(cells))
        found = np.zeros((many, int(np.prod(self.rows.shape)), 2), dtype=np.int64)
        found += fixed.reshape(1, -1, 2)
        if len(cells):
            # Labels are shuffled further from line to line: every order is as likely again.
            add_relabelled(keys(self.rng, "rejections", many=many), starts, cells, values, found)
        return found.reshape(many, *self.rows.shape, 2).astype(np.float64)

    def _permutations(self, moved: int) -> int:
        one = self.resampling
        if one is None:
            return 0
        least = one.permutations if isinstance(one, Bootstrap) else one.replicates
        wanted = max(least, math.ceil(1.0 / one.resolution))
        return min(wanted, max(least, _MOVES // max(moved, 1)))

    @cached_property
    def _carriers(self) -> tuple[Indices, Indices, Indices, Indices] | None:
        """Return what stays as it is, and pools of what exchanges: starts, cells and values.

        None where nothing could exchange: no set has images of two groups, nor are there sets
        of one group each that could.
        """
        rows = self.rows
        exchange = Exchange.of(rows.groups.codes.astype(np.int64), rows.unit, rows.stratum)
        many, pools = len(exchange.pool), int(exchange.pool.max()) + 1
        values = np.stack(
            [np.bincount(exchange.carrier, column, minlength=many) for column in rows.values.T], 1
        ).astype(np.int64)
        cells = np.empty(many, dtype=np.int64)
        cells[exchange.carrier] = rows.cell
        if not _varies(exchange.pool, exchange.group, pools).any():
            return None
        # Where all members of a pool have the same counts, an exchange changes nothing.
        moves = np.zeros(pools, dtype=bool)
        for column in values.T:
            moves |= _varies(exchange.pool, column, pools)
        chosen = moves[exchange.pool]
        fixed = rows.count(cells[~chosen], values[~chosen])
        places = np.flatnonzero(chosen)
        order = np.lexsort(
            (values[places, 1], values[places, 0], cells[places], exchange.pool[places])
        )
        places = places[order]
        starts = np.flatnonzero(np.diff(exchange.pool[places], prepend=-1))
        return fixed, np.append(starts, len(places)), cells[places], values[places]

    def draws(self, stratum: int | None) -> Draws:
        """Return the gap and every group's share, in one stratum or over all (None)."""
        null = self.null
        how = "" if null is None else f"{NULL}; {len(null)} permutations"
        level = 0.95 if self.resampling is None else self.resampling.level
        return Draws(
            self._numbers(self.totals[None].astype(np.float64), stratum)[0],
            None if self.boot is None else self._numbers(self.boot, stratum),
            None if null is None else self._numbers(null, stratum),
            level=level,
            null_text=how,
            resolution=0.0 if self.resampling is None else self.resampling.resolution,
            intervals=self.resampling is not None,
        )

    def compared(self, stratum: int | None) -> npt.NDArray[np.bool_]:
        """Whether each group has images enough, shape (groups,)."""
        return self.sizes(stratum) >= max(self.rows.groups.min_size, 1)

    def sizes(self, stratum: int | None) -> Indices:
        """Images of each group, shape (groups,)."""
        return np.asarray(self.images.sum(axis=0) if stratum is None else self.images[stratum])

    def _numbers(self, counts: Floats, stratum: int | None) -> Floats:
        some = counts.sum(axis=1) if stratum is None else counts[:, stratum]
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = some[..., 0] / some[..., 1]
        gap = gaps(shares, self.compared(stratum))
        return np.concatenate([gap[:, None], shares], axis=1)


NULL = "groups are exchangeable within each set; between sets where each has one group"


def _varies(pool: Indices, values: Indices, pools: int) -> npt.NDArray[np.bool_]:
    lowest = np.full(pools, np.iinfo(np.int64).max)
    highest = np.full(pools, np.iinfo(np.int64).min)
    np.minimum.at(lowest, pool, values)
    np.maximum.at(highest, pool, values)
    return np.asarray(lowest < highest)


@dataclass(frozen=True, eq=False)
class Ends:
    """Ends of the interval of a largest gap.

    The outer of two: intervals of all pairs of groups over resampled clusters, whose lower ends
    are corrected for the number of pairs, and the closed form for independent images, which does
    not shrink to nothing where no image, or every image, is rejected.

    Attributes
    ----------
    shares : ndarray, shape (replicates, groups)
        Of the groups that are compared.
    successes, images : ndarray, shape (groups,)
    """

    shares: Floats
    successes: Floats
    images: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        a, b = np.triu_indices(self.shares.shape[1], 1)
        if not len(a):
            return math.nan, math.nan
        apart = self.shares[:, a] - self.shares[:, b]
        wide = percentile(apart, spread_level(level, len(a)))
        narrow = percentile(apart, level)
        low = max(0.0, float(np.max(wide[0])), float(np.max(-wide[1])))
        high = max(float(np.max(narrow[1])), float(np.max(-narrow[0])))
        closed = simultaneous_gap(self.successes, self.images, level)
        return min(low, float(closed[0])), min(1.0, max(high, float(closed[1])))


def group_ends(
    shares: Floats, successes: Floats, images: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return ends of every group's share: the outer of resampled clusters and Wilson's."""
    low, high = wilson(successes, images, level)
    drawn_low, drawn_high, _ = percentile(shares, level)
    return np.fmin(low, drawn_low), np.fmax(high, drawn_high)
