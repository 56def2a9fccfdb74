"""Two sets whose members are exchangeable under the null hypothesis: p-values and chance levels.

Numbers are made whole once (fixed point), so that sums are exact, ties are ties, and neither the
order of rows nor threads decide anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Chance, Harm
from equipoise.metrics.associations.kernels import add_chosen, differences, enumerate_sums
from equipoise.stats.chance import PValue, band, mirrored_band, mirrored_p_value, p_value
from equipoise.stats.draws import Exchange
from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling, null_draws
from equipoise.stats.shuffling import add_exchanged, draw_subsets, keys
from equipoise.stats.threads import each

Whole = npt.NDArray[np.int64]

# Subset sums of one side of a halved pool: 2^22 numbers.
MOST_HALVED = 44

# Subsets that a thread draws from one stream.
_BLOCK = 2048


def all_sums(values: Whole, size: int) -> Whole:
    """Return the sums of all subsets of `size` members.

    Parameters
    ----------
    values : ndarray of int64, shape (n, k)
        k numbers of each member.
    size : int

    Returns
    -------
    ndarray of int64, shape (subsets, k)
        Subsets in lexicographic order.
    """
    found = np.empty((values.shape[1], math.comb(len(values), size)), dtype=np.int64)
    for column, sums in zip(np.ascontiguousarray(values.T), found, strict=True):
        enumerate_sums(column, size, sums)
    return np.ascontiguousarray(found.T)


def count_at_least(values: Whole, size: int, threshold: int) -> int:
    """Count subsets of `size` members whose sum is at least a threshold.

    Sums of each half are grouped by size and sorted, and pairs counted between them, so that 40
    members take 2^20 sums a side instead of 1.4e11 subsets.

    Parameters
    ----------
    values : ndarray of int64, shape (n,), n <= 44
    size, threshold : int
    """
    left, right = (_sorted_sums(half) for half in (values[::2], values[1::2]))
    found = 0
    for many, sums in enumerate(left):
        if 0 <= size - many < len(right):
            others = right[size - many]
            # Reversed, what is searched for rises, which keeps the search in the cache.
            needed = threshold - sums[::-1]
            found += len(sums) * len(others) - int(np.searchsorted(others, needed).sum())
    return found


def _sorted_sums(values: Whole) -> list[Whole]:
    sums: list[Whole] = [np.zeros(1, dtype=np.int64)]
    for value in values:
        shifted = [some + value for some in sums]
        sums = [
            sums[0],
            *(np.concatenate(pair) for pair in zip(sums[1:], shifted[:-1], strict=True)),
            shifted[-1],
        ]
    return [np.sort(some) for some in sums]


def random_sums(values: Whole, size: int, draws: int, seed: int, *names: str) -> Whole:
    """Return sums of random subsets of `size` members, all equally likely.

    Parameters
    ----------
    values : ndarray of int64, shape (n, k)
    size, draws : int
    seed, names : int, str
        Key of the random stream.

    Returns
    -------
    ndarray of int64, shape (draws, k)
    """
    n, k = values.shape
    words = math.ceil(n / 64)
    columns = np.zeros((k, 64 * words), dtype=np.int64)
    columns[:, :n] = values.T
    found = np.empty((draws, k), dtype=np.int64)
    starts = range(0, draws, _BLOCK)

    def draw(index: int) -> None:
        part = found[starts[index] : starts[index] + _BLOCK]
        chosen = np.empty((len(part), words), dtype=np.uint64)
        draw_subsets(streams[index], n, size, chosen)
        add_chosen(chosen, columns, part)

    streams = keys(seed, "partition", *names, many=len(starts))
    each(draw, range(len(starts)))
    return found


Floats = npt.NDArray[np.float64]
# Differences of sums that are rounding only, relative to the sum of absolute numbers.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Exchanged:
    """Differences in means of two sets, observed and with members exchanged.

    Attributes
    ----------
    observed : ndarray, shape (k,)
        Mean of the first set minus mean of the second, of each of k numbers.
    drawn : ndarray, shape (m, k)
        With members exchanged; of partitions that are mirrored, the first half.
    enumerated : bool
        Whether every partition stands there once.
    partitions : int
        How many partitions there are.
    text : str
        How the null was drawn.
    scale : float
        Sum of absolute numbers over both sets, in units of the differences: what ties refer to.
    halves : tuple of (ndarray of int64, int, int), or None
        Whole numbers, size of the first set and its sum, where p can be counted exactly.
    resolution : float
        The finest p-value that matters; 0 where draws are not approximated.
    mirrored : bool
        Whether `drawn` lacks as many rows, minus its own from the last to the first: those of the
        mirror images that partitions into sets of equal sizes have.
    """

    observed: Floats
    drawn: Floats
    enumerated: bool
    partitions: int
    text: str
    scale: float
    halves: tuple[Whole, int, int] | None = None
    resolution: float = 0.0
    mirrored: bool = False

    @cached_property
    def null(self) -> Floats:
        """All differences with members exchanged, shape (partitions, k)."""
        return np.concatenate([self.drawn, -self.drawn[::-1]]) if self.mirrored else self.drawn

    def scaled(self, factor: float, shift: float) -> Exchanged:
        """Return the same exchange of factor * difference + shift, factor > 0."""
        mirrored = self.mirrored and shift == 0.0
        return replace(
            self,
            observed=self.observed * factor + shift,
            drawn=(self.drawn if mirrored else self.null) * factor + shift,
            scale=self.scale * factor,
            mirrored=mirrored,
        )

    def chance(self, factor: float, method: str) -> Chance:
        """Return the chance level of a multiple of the single number (k = 1)."""
        # Of partitions that are enumerated, each counts once, as one that is drawn does.
        draws = self.drawn[:, 0] * factor
        return (mirrored_band if self.mirrored else band)(draws, method=method)

    def p_value(self, harm: Harm) -> PValue:
        """Return the p-value of the single number (k = 1), exact where that is feasible."""
        if self.mirrored:
            observed = float(self.observed[0])
            return mirrored_p_value(self.drawn[:, 0], observed, harm, scale=self.scale)
        if self.halves is None:
            return self.p_value_of(self.null[:, 0], float(self.observed[0]), harm)
        values, size, first = self.halves
        tie = math.floor(_TIE * int(np.abs(values).sum()))
        total = math.comb(len(values), size)
        tails = {
            "higher": lambda: count_at_least(values, size, first - tie),
            "lower": lambda: total - count_at_least(values, size, first + tie + 1),
        }
        sides = ("higher", "lower") if harm == "either" else (harm,)
        extreme = min(tails[side]() for side in sides)
        return PValue(
            min(1.0, len(sides) * extreme / total), "exact, partitions counted in two halves"
        )

    def p_value_of(self, null: Floats, observed: float, harm: Harm) -> PValue:
        """Return the p-value of a number computed from each row of `null`."""
        weights = 1.0 if self.enumerated else None
        return p_value(
            null, observed, harm, weights=weights, resolution=self.resolution, scale=self.scale
        )


Alternative = Literal["greater", "less", "two-sided"]

HARM: dict[Alternative, Harm] = {"greater": "higher", "less": "lower", "two-sided": "either"}

# Partitions that are enumerated without being asked for.
MOST_PARTITIONS = 200_000
# Partitions are counted no further: nobody enumerates, or halves, that many.
MOST_COUNTED = 10**15
# Members that permutations beyond those asked for may move: a second or two of work.
_MAX_MOVED = 1_000_000_000
# Exchanges of units that a thread makes in one go.
_EXCHANGED_AT_ONCE = 256


def exchange(
    first: Floats,
    second: Floats,
    resampling: Resampling,
    seed: int,
    name: str,
    *,
    units: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Exchanged:
    """Exchange the members of two sets, keeping their sizes.

    Parameters
    ----------
    first, second : ndarray, shape (n, k)
        k numbers of each member.
    resampling : Bootstrap, Permutation or Exact
        Exact forbids drawing partitions at random.
    seed, name : int, str
        Key of the random stream.
    units : tuple of two sequences of str, optional
        Units of the members: those of one set move as a whole, those of both exchange within.

    Raises
    ------
    InputError
        When Exact is asked for and there are too many partitions, or members repeat within units.
    """
    pooled = np.concatenate([first, second])
    whole, bits = _whole(pooled)
    sizes = len(first), len(second)
    if units is not None:
        return _exchange_units(whole, bits, sizes, units, resampling, seed, name)
    partitions = count_partitions(*sizes)
    limit = resampling.limit if isinstance(resampling, Exact) else MOST_PARTITIONS
    ordered = whole[np.lexsort(whole.T[::-1])]
    halves = None
    enumerated = partitions <= min(limit, MOST_COUNTED - 1)
    mirrored = enumerated and sizes[0] == sizes[1]
    if mirrored:
        # In lexicographic order the complement of the first subset is the last, and so on.
        sums = all_sums(ordered[1:], sizes[0] - 1)
        sums += ordered[0]
        text = f"all {partitions} partitions enumerated"
    elif enumerated:
        sums = all_sums(ordered, sizes[0])
        text = f"all {partitions} partitions enumerated"
    else:
        halved = sum(sizes) <= MOST_HALVED and whole.shape[1] == 1
        if isinstance(resampling, Exact) and not halved:
            raise InputError(
                f"resampling=Exact: {told(partitions)} partitions of {sizes[0]} and {sizes[1]} "
                f"members, more than {limit}; use Permutation()"
            )
        if halved:
            halves = (ordered[:, 0], sizes[0], int(whole[: sizes[0], 0].sum()))
        draws = permutations(sum(sizes), resampling)
        sums = _drawn(ordered, sizes, draws, seed, name)
        text = f"{draws} random partitions" + (" for the chance level" if halved else "")
    observed, drawn, scale = _of_sums(whole, sums, sizes, bits)
    finest = resampling.resolution
    return Exchanged(observed, drawn, enumerated, partitions, text, scale, halves, finest, mirrored)


def count_partitions(first: int, second: int) -> int:
    """Return in how many ways two sets exchange members, counted up to `MOST_COUNTED`.

    The whole number for two sets of half a million has 300,000 digits and takes seconds.
    """
    found = 1
    for step in range(1, min(first, second) + 1):
        found = found * (first + second - step + 1) // step
        if found >= MOST_COUNTED:
            return MOST_COUNTED
    return found


def told(partitions: int) -> str:
    """Return a count of partitions as text, which says where counting ended."""
    return f"{partitions} or more" if partitions >= MOST_COUNTED else str(partitions)


def permutations(members: int, resampling: Resampling) -> int:
    """Return how many draws resolve the finest p-value, within what moving members costs."""
    return null_draws(resampling, _MAX_MOVED // max(members, 1))


def _whole(values: Floats) -> tuple[Whole, int]:
    """Return values in fixed point, as fine as sums allow, and its bits after the point."""
    total = float(np.abs(values).sum(axis=0).max(initial=0.0))
    bits = math.floor(61 - math.log2(total)) if total > 0 else 0
    return np.rint(np.ldexp(values, bits)).astype(np.int64), bits


def _drawn(ordered: Whole, sizes: tuple[int, int], draws: int, seed: int, name: str) -> Whole:
    """Sums of the first set, drawn through the smaller one."""
    smaller = min(sizes)
    sums = random_sums(ordered, smaller, draws, seed, name)
    return sums if sizes[0] == smaller else ordered.sum(axis=0) - sums


def _of_sums(
    whole: Whole, sums: Whole, sizes: tuple[int, int], bits: int
) -> tuple[Floats, Floats, float]:
    """Return the observed difference in means, the exchanged ones, and the scale of ties."""
    total = whole.sum(axis=0)
    observed, drawn = np.empty((1, len(total))), np.empty(sums.shape)
    for some, found in ((whole[None, : sizes[0]].sum(axis=1), observed), (sums, drawn)):
        differences(some, total, *sizes, bits, found)
    scale = float(np.ldexp(np.abs(whole).sum(axis=0).max(), -bits)) * sum(1 / n for n in sizes)
    return observed[0], drawn, scale


def _exchange_units(
    whole: Whole,
    bits: int,
    sizes: tuple[int, int],
    units: tuple[Sequence[str], Sequence[str]],
    resampling: Resampling,
    seed: int,
    name: str,
) -> Exchanged:
    if not isinstance(resampling, Bootstrap | Permutation):
        raise InputError(
            "resampling=Exact: needs members that do not repeat within units; use Permutation()"
        )
    group = np.repeat(np.arange(2), sizes)
    unit = np.unique([*units[0], *units[1]], return_inverse=True)[1]
    # Rows in another order must give the same draws.
    order = np.lexsort((*whole.T, group, unit))
    whole, group, unit = whole[order], group[order], unit[order]
    blocks = Exchange.of(group, unit, np.zeros_like(unit))
    draws = permutations(len(group), resampling)
    null = _of_carriers(whole, blocks, bits, (seed, "partition", name, "unit"), draws)
    return Exchanged(
        _difference(whole, group, bits),
        null,
        False,
        0,
        f"{draws} random exchanges of units",
        float(np.ldexp(np.abs(whole).sum(axis=0).max(), -bits)) * sum(1 / n for n in sizes),
        resolution=resampling.resolution,
    )


def _of_carriers(
    whole: Whole, blocks: Exchange, bits: int, key: tuple[int, str, str, str], draws: int
) -> Floats:
    """Differences in means with the groups of carriers exchanged, shape (draws, k)."""
    carried = np.zeros((len(blocks.pool), 1 + whole.shape[1]), dtype=np.int64)
    np.add.at(carried, blocks.carrier, np.column_stack([np.ones_like(whole[:, :1]), whole]))
    members = np.bincount(blocks.pool)
    starts = np.concatenate([[0], np.cumsum(members)])
    wanted = np.bincount(blocks.pool[blocks.group == 0], minlength=len(members))
    order = np.argsort(blocks.pool, kind="stable")
    first = np.empty((draws, carried.shape[1]), dtype=np.int64)
    streams = keys(*key, many=draws)

    def draw(start: int) -> None:
        lines = slice(start, start + _EXCHANGED_AT_ONCE)
        add_exchanged(streams[lines], order.copy(), starts, wanted, carried, first[lines])

    each(draw, range(0, draws, _EXCHANGED_AT_ONCE))
    total = carried.sum(axis=0)
    low = first[:, 1:] / first[:, :1]
    high = (total[1:] - first[:, 1:]) / (total[0] - first[:, :1])
    return np.asarray(np.ldexp(low - high, -bits))


def _difference(whole: Whole, group: Whole, bits: int) -> Floats:
    first = group == 0
    sums = whole[first].sum(axis=0), whole[~first].sum(axis=0)
    means = (
        total.astype(np.float64) / n for total, n in zip(sums, np.bincount(group), strict=True)
    )
    low, high = means
    return np.asarray(np.ldexp(low - high, -bits))
