"""Named sets in one space: bootstrap replicates, exchanges of members, and estimates of them.

Members count whole numbers of times, and vectors are rounded so that weighted sums are exact in
float64 whatever their order; what is lost is below 1e-9 of a replicate. So numbers are the same
for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

from equipoise.core.arrays import AnyArray, Bytes, Floats, Integers
from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, Harm
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import (
    PERCENTILE,
    STUDENT,
    Against,
    ends_of,
    number,
    replicates_text,
)
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.spec import make_estimate
from equipoise.metrics.vectors.partitions import Exchanged, exchange
from equipoise.metrics.vectors.sets import Members, Similarity, embed, plain_members, shared_members
from equipoise.stats.compiled import compiled
from equipoise.stats.intervals import jackknife_t
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, stream, unit_counts, unit_keys
from equipoise.stats.threads import each

Weights = Mapping[str, Bytes]
Near = dict[str, Floats]
Statistic = Callable[[Weights], Floats]

# Replicates that are drawn together: part of the key of their stream, so never to be changed.
_BLOCK, _BLOCK_CELLS = 256, 4_000_000
# Replicates that at least share a pass over the vectors, and members drawn at once.
_TOGETHER, _DRAWN = 32, 1 << 18
_EXACT_BITS = 52


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Numbers, and what they are without each member of each independent sample.

    Attributes
    ----------
    values : ndarray, shape (k,)
    left_out : sequence of ndarray, shape (members, k)
    scale : float, optional
        The first number is the inverse hyperbolic tangent of what is wanted divided by it.
    """

    values: Floats
    left_out: Sequence[Floats]
    scale: float | None = None

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return both ends of every number, see `jackknife_t`."""
        both = jackknife_t(self.values, self.left_out, level)
        if self.scale is not None:
            for end in both:
                end[0] = self.scale * np.tanh(end[0])
        return both

    def column(self, index: int) -> Ends:
        """Return the ends of one number."""

        def ends(level: float) -> tuple[float, float]:
            low, high = self.ends(level)
            return float(low[index]), float(high[index])

        return ends


Resampled = Floats | Jackknife | None


def ends_at(resampled: Resampled, column: int) -> Ends:
    """Return the interval of a column."""
    if isinstance(resampled, Jackknife):
        return resampled.column(column)
    return ends_of(resampled, column)


@dataclass(frozen=True, eq=False)
class Space:
    """Named sets in one space, and how statistics of them are resampled.

    Attributes
    ----------
    sets : mapping of str to Members
    similarity : callable or None
        None: the cosine.
    fixed : collection of str
        Sets that intervals take as given.
    resampling : Bootstrap, Permutation or None
    seed : int
    """

    sets: Mapping[str, Members]
    similarity: Similarity | None
    fixed: Collection[str]
    resampling: Resampling | None
    seed: Seed

    @classmethod
    def of(
        cls,
        targets: Mapping[str, Any],
        attributes: Mapping[str, Any],
        similarity: Similarity | None,
        units: Mapping[str, Any] | None,
        fixed: Collection[str],
        resampling: Resampling | None,
        seed: Seed,
    ) -> Space:
        """Embed the sets.

        Raises
        ------
        InputError
            See `equipoise.metrics.vectors.sets.embed`; or a fixed set does not exist.
        """
        sets = embed(targets, attributes, similarity=similarity, units=units)
        if unknown := sorted({*fixed} - {*sets}):
            raise InputError(f"fixed: no set is called {unknown[0]!r}; expected some of {[*sets]}")
        return cls(sets, similarity, fixed, resampling, seed)

    def __getitem__(self, name: str) -> Members:
        return self.sets[name]

    @property
    def level(self) -> float:
        """Confidence level of parts."""
        return level_of(self.resampling)

    def means(self, weights: Weights | None = None) -> dict[str, Floats]:
        """Return the mean vectors of every set, observed (1, d) or resampled (replicates, d)."""
        if weights is None:
            return {name: one.mean[None] for name, one in self.sets.items()}
        return {name: mean_vectors(weights[name], one) for name, one in self.sets.items()}

    def near(self, targets: Sequence[str], attributes: Sequence[str]) -> Callable[[Weights], Near]:
        """Return what gives mean similarities (replicates, targets) of resampled attributes.

        These are fewer numbers than mean vectors where targets are fewer than dimensions. Nothing
        is computed before the first replicates.
        """

        @cache
        def similar() -> dict[str, Members]:
            every = np.concatenate([self[name].vectors for name in targets])
            return {name: plain_members(self[name].similarities(every)) for name in attributes}

        return lambda weights: {
            name: mean_vectors(weights[name], rows) for name, rows in similar().items()
        }

    def replicates(self, statistic: Statistic) -> Floats | None:
        """Return a statistic (replicates, s) of resampled sets, None where nothing is resampled.

        `statistic` is a function of weights (replicates, members) by set.
        """
        drawing = self.resampling
        if not isinstance(drawing, Bootstrap) or not self.moved:
            return None
        blocks = replicate_blocks(self.sets, self.fixed, drawing.replicates, self.seed)
        return np.concatenate([statistic(weights) for weights in blocks])

    def sums_without_each(self, rows: Mapping[str, Floats]) -> list[dict[str, Floats]]:
        """Return sums of rows without each member, or unit, of each sample of the jackknife.

        A set whose members vary is a sample; sets that share units are one.

        Parameters
        ----------
        rows : mapping of str to ndarray, shape (n, c)
            Numbers of the members, by set.

        Returns
        -------
        list of dict of str to ndarray, shape (members or units, c)
            One for each sample, with the sums of all sets.
        """
        totals = {name: own.sum(axis=0) for name, own in rows.items()}
        samples: list[set[str]] = []
        for name in (one for one in self.moved if one in rows):
            units = {*(self[name].units or ())}
            joined = [one for one in samples if any(units & {*(self[o].units or ())} for o in one)]
            samples = [one for one in samples if one not in joined] + [{name}.union(*joined)]
        return [self._without_each(rows, totals, sample) for sample in samples]

    def _without_each(
        self, rows: Mapping[str, Floats], totals: Mapping[str, Floats], sample: Collection[str]
    ) -> dict[str, Floats]:
        lost = {name: rows[name] for name in sample}
        if all(self[name].units is not None for name in sample):
            names = {unit for name in sample for unit in self[name].units or ()}
            place = dict(zip(sorted(names), range(len(names)), strict=True))
            for name, own in lost.items():
                lost[name] = np.zeros((len(place), own.shape[1]))
                np.add.at(lost[name], [place[unit] for unit in self[name].units or ()], own)
        many = len(next(iter(lost.values())))
        return {
            name: total - lost[name] if name in lost else np.broadcast_to(total, (many, len(total)))
            for name, total in totals.items()
        }

    def exchange(
        self,
        first: str,
        second: str,
        directions: Sequence[Floats],
        key: str,
        *,
        studentized: bool = True,
    ) -> Exchanged | None:
        """Exchange the members of two sets, each counted by its products with k directions.

        Raises
        ------
        InputError
            When only one of them has units; see `equipoise.metrics.vectors.partitions.exchange`.
        """
        if self.resampling is None:
            return None
        both = self[first], self[second]
        known = [one.name for one in both if one.units is not None]
        if len(known) == 1:
            raise InputError(
                f"units: only {known[0]!r} has some; {first} and {second} exchange members, so "
                "name the units of both"
            )
        low, high = (np.stack([one.dots(to) for to in directions], axis=1) for one in both)
        units = (both[0].units or (), both[1].units or ()) if known else None
        return exchange(
            low, high, self.resampling, self.seed, key, units=units, studentized=studentized
        )

    def part(self, metric: str, value: float, boot: Resampled, column: int, **columns: Any) -> Part:
        """Return a number whose replicates are a column; other columns are those of `number`."""
        return number(metric, value, ends=ends_at(boot, column), level=self.level, **columns)

    def group_values(
        self,
        names: Sequence[str],
        values: Sequence[float],
        boot: Resampled = None,
        first: int = 0,
    ) -> tuple[GroupValue, ...]:
        """Return a number of each set with the interval of its column, from `first` on."""
        return tuple(
            GroupValue(name, (name,), len(self[name]), value, *ends_at(boot, column)(self.level))
            for column, (name, value) in enumerate(zip(names, values, strict=True), start=first)
        )

    def estimate(  # noqa: PLR0913 - one keyword for each field
        self,
        metric: str,
        value: float,
        parts: Sequence[Part],
        held: Against,
        *,
        boot: Resampled,
        ends: Ends | None = None,
        corrected: float = math.nan,
        kind: str = "",
        params: Mapping[str, Any] | None = None,
        pairs: Sequence[tuple[str, str]] = (),
        reason: str = "",
        harm: Harm | None = None,
        no_chance: str = "no resampling was asked for, or there is no value",
    ) -> Estimate:
        """Return the estimate of a number of the sets.

        Parameters
        ----------
        metric, value, corrected, reason, harm, no_chance
            Fields of the estimate.
        parts : sequence of Part
        held : Against
        boot : ndarray, shape (replicates, s), Jackknife or None
            Its first column is about the value, unless there are `ends`.
        kind : str
            How intervals are made, in words.
        params : mapping, optional
            Further parameters.
        pairs : sequence of pairs of str
            Sets whose common members are counted.
        """
        shared = {
            f"{a} and {b}": count for a, b in pairs if (count := shared_members(self[a], self[b]))
        }
        return make_estimate(
            metric=metric,
            value=value,
            n={name: len(one) for name, one in self.sets.items()},
            method=self.method_of(boot, kind),
            params={
                **(params or {}),
                "similarity": "cosine" if self.similarity is None else "scores of pairs",
                **({"in_both": shared} if shared else {}),
            },
            **held.fields(no_chance),
            harm=harm,
            by=lambda: parts_to_table(parts),
            excluded={
                f"{name}: {why}": count
                for name, one in self.sets.items()
                for why, count in one.dropped.items()
            },
            unit="row" if all(one.units is None for one in self.sets.values()) else "unit",
            reason=reason,
            ends=ends or ends_at(boot, 0),
            corrected=corrected,
        )

    @property
    def moved(self) -> list[str]:
        """Sets whose members vary between samples."""
        return [name for name, one in self.sets.items() if name not in self.fixed and one.varies]

    def method_of(self, resampled: Resampled, kind: str) -> str:
        """Return how intervals are made."""
        if self.resampling is None:
            return NO_INTERVAL
        if resampled is None:
            return "none: use Bootstrap(), and a set of two members or more that is not fixed"
        over = ", ".join(self.moved)
        if not isinstance(resampled, Jackknife):
            text = replicates_text(resampled, over, kind or PERCENTILE)
        elif not over:
            return "none: no set of two members or more varies"
        else:
            text = f"{kind or STUDENT} over {over}"
        still = [name for name in self.sets if name not in self.moved]
        return f"{text}; {', '.join(still)} fixed" if still else text


def replicate_blocks(
    sets: Mapping[str, Members],
    fixed: Collection[str],
    replicates: int,
    seed: Seed,
) -> Iterator[Weights]:
    """Yield blocks of weights (replicates, members) of every set.

    Members that repeat within units count a Poisson(1) number of times, a function of the unit's
    name alone; others are drawn with replacement. Sets that are fixed, or have one member, count
    each member once.

    Parameters
    ----------
    sets, fixed, replicates, seed
        What is drawn, and the key of the random streams.
    """
    size = max(1, min(_BLOCK, _BLOCK_CELLS // max(len(one) for one in sets.values())))
    # The digits that are kept of a block depend on its heaviest replicate, where these differ.
    alike = all(one.units is None for one in sets.values())
    step = size * math.ceil(_TOGETHER / size) if alike else size
    draw = {name: _drawing(one, name in fixed, size, seed) for name, one in sets.items()}
    for start in range(0, replicates, step):
        some = range(start, min(start + step, replicates))
        yield {name: weights(some) for name, weights in draw.items()}


def mean_vectors(weights: AnyArray, vectors: Members) -> Floats:
    """Weighted means of vectors, shape (replicates, d); NaN where all weights are 0."""
    totals = weights.sum(axis=1, dtype=np.float64)
    heaviest = max(float(totals.max(initial=1.0)), 1.0)
    bits = math.floor(_EXACT_BITS - math.log2(heaviest) - math.log2(vectors.size or 1.0))
    # Sums of whole numbers are exact, in blocks or not.
    parts = (
        weights[:, here].astype(np.float64) @ np.rint(np.ldexp(rows, bits))
        for here, rows in vectors.blocks()
    )
    sums = reduce(np.add, parts)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ldexp(sums / totals[:, None], -bits))


def row_dots(first: AnyArray, second: Floats) -> Floats:
    """Inner product of each row with the same row of the other, shape (replicates,)."""
    return np.asarray(np.einsum("rd,rd->r", first, second))


def _drawing(one: Members, fixed: bool, size: int, seed: Seed) -> Callable[[range], Bytes]:
    """Return what gives the weights of a range of replicates, `size` of which share a stream."""
    n = len(one)
    if fixed or not one.varies:
        return lambda some: np.ones((len(some), n), dtype=np.uint8)
    if one.units is not None:
        names, index = np.unique(one.units, return_inverse=True)
        keys = unit_keys(names.tolist())
        return lambda some: unit_counts(seed, keys, some)[:, index].astype(np.uint8)

    def drawn(some: range) -> Bytes:
        starts = range(some.start, some.stop, size)
        streams = [stream(seed, "bootstrap", one.name, start) for start in starts]
        weights = np.zeros((len(some), n), dtype=np.uint8)
        lines = [weights[start - some.start :][:size] for start in starts]
        each(lambda place: _count(streams[place], lines[place]), range(len(starts)))
        return weights

    return drawn


def _count(drawing: np.random.Generator, weights: Bytes) -> None:
    """Draw members with replacement for each line of weights (replicates, n), which are 0."""
    flat, n = weights.reshape(-1), weights.shape[1]
    # A line of many members stays in the cache; of few members, some lines are drawn at once.
    step = n * max(1, _DRAWN // n)
    for first in range(0, len(flat), step):
        lines = flat[first : first + step]
        for start in range(0, len(lines), _DRAWN):
            drawn = drawing.integers(n, size=min(_DRAWN, len(lines) - start))
            count_drawn(drawn, n, start, lines)


@compiled("void(int64[::1], int64, int64, uint8[::1])")
def count_drawn(drawn: Integers, n: int, first: int, times: Bytes) -> None:
    """Add 1 to the times that each of the members drawn has counted.

    Parameters
    ----------
    drawn : ndarray of int64, shape (draws,)
        Members, n for each line.
    n, first : int
        Members of a line, and the place of the first draw in the first line.
    times : ndarray of uint8, shape (lines * n,)
        No replicate comes near to filling a byte.
    """
    line, left = np.uint64(n * (first // n)), n - first % n
    for i in range(drawn.shape[0]):
        times[line + np.uint64(drawn[i])] += 1
        left -= 1
        if left == 0:
            line, left = line + np.uint64(n), n
