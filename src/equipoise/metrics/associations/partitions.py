"""Two sets whose members are exchangeable under the null hypothesis: p-values and chance levels.

Numbers are made whole once (fixed point), so that sums are exact, ties are ties, and neither the
order of rows nor threads decide anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.metrics.associations.exchanged import Exchanged
from equipoise.metrics.associations.kernels import differences
from equipoise.metrics.associations.subsets import MOST_HALVED, all_sums, random_sums
from equipoise.stats.exchange import Exchange
from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling
from equipoise.stats.shuffling import add_exchanged, keys
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
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
    finest = 0.0 if isinstance(resampling, Exact) else resampling.resolution
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
    """Return how many partitions are drawn: enough to resolve p, within the budget."""
    if isinstance(resampling, Exact):
        return 1000
    least = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    affordable = max(least, _MAX_MOVED // max(members, 1))
    return min(max(least, math.ceil(1.0 / resampling.resolution)), affordable)


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
