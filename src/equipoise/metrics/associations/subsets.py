"""Sums of subsets of whole numbers: all of them, counted in two halves, or drawn at random."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from equipoise.stats.streams import stream

Whole = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint16]

# Subset sums of one side of a halved pool: 2^22 numbers.
MOST_HALVED = 44

_BLOCK = 16_384
_BLOCK_WORDS = 4_000_000
# A table of 65,536 sums per 16 members pays where there are many draws and it fits the cache.
_WIDE_DRAWS, _WIDE_POOL = 200_000, 2_048
# Steps of 1/256 for the probability of a bit: what is left is mended member by member.
_BITS = 8


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
    """
    n, k = values.shape
    sums: list[Whole] = [np.zeros((1, k), dtype=np.int64)]
    for position, row in enumerate(values):
        left = n - position - 1
        grown = [*sums, np.zeros((0, k), dtype=np.int64)][: size + 1]
        for many in range(len(grown) - 1, 0, -1):
            grown[many] = np.concatenate([grown[many], sums[many - 1] + row])
        # Subsets too small to be completed are not carried on.
        sums = [some if many + left >= size else some[:0] for many, some in enumerate(grown)]
    return sums[size]


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

    Each member is first taken with a probability near size / n, bit by bit of random words whose
    sums stand in tables; then members drawn at random are taken or put back until `size` are. Given
    their number, the members of the first step are a uniform subset, and each step keeps it so:
    the law is that of a partial Fisher-Yates shuffle, at about a fifth of the steps.

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
    n = len(values)
    tables = [_tables(column, draws) for column in values.T]
    block = max(1, min(_BLOCK, _BLOCK_WORDS // math.ceil(n / 16)))
    found = np.empty((draws, values.shape[1]), dtype=np.int64)
    for start in range(0, draws, block):
        many = min(block, draws - start)
        rng = stream(seed, "partition", *names, start)
        words = _random_words(n, size, many, rng)
        sums = np.stack([_looked_up(table, words) for table in tables], axis=1)
        _mend(words, sums, values, size, rng)
        found[start : start + many] = sums
    return found


def _tables(values: Whole, draws: int) -> Whole:
    """Sums of all subsets of each 8 or 16 members, shape (groups, 256 or 65536)."""
    wide = draws >= _WIDE_DRAWS and len(values) <= _WIDE_POOL
    bits = 16 if wide else 8
    padded = np.zeros((math.ceil(len(values) / 16) * 16 // bits, bits), dtype=np.int64)
    padded.ravel()[: len(values)] = values
    table = np.zeros((len(padded), 1 << bits), dtype=np.int64)
    for bit in range(bits):
        table[:, 1 << bit : 2 << bit] = table[:, : 1 << bit] + padded[:, bit : bit + 1]
    return table


def _random_words(n: int, size: int, draws: int, rng: np.random.Generator) -> Words:
    """One bit per member, shape (words, draws), set with a probability near size / n."""
    many = math.ceil(n / 16)
    words = np.zeros((many, draws), dtype=np.uint16)
    for one in _binary_digits(round((1 << _BITS) * size / n)):
        drawn = np.frombuffer(rng.bytes(2 * many * draws), dtype="<u2").reshape(many, draws)
        words = (words | drawn) if one else (words & drawn)
    words[-1] &= np.uint16((1 << (n - 16 * (many - 1))) - 1)
    return words


def _binary_digits(share: int) -> Iterator[bool]:
    """Digits of share / 256 from the last that is 1 to the first."""
    if share == 0:
        return
    last = (share & -share).bit_length() - 1
    for place in range(last, _BITS):
        yield bool(share >> place & 1)


def _looked_up(table: Whole, words: Words) -> Whole:
    sums = np.zeros(words.shape[1], dtype=np.int64)
    for index, word in enumerate(words):
        if table.shape[1] == 1 << 16:
            sums += table[index].take(word)
        else:
            sums += table[2 * index].take(word & np.uint16(255))
            sums += table[2 * index + 1].take(word >> np.uint16(8))
    return sums


def _mend(words: Words, sums: Whole, values: Whole, size: int, rng: np.random.Generator) -> None:
    """Take or put back random members, in place, until every draw has `size` of them."""
    draws = words.shape[1]
    flat = words.reshape(-1)
    over = np.bitwise_count(words).sum(axis=0, dtype=np.int64) - size
    active = np.flatnonzero(over)
    left, surplus = np.abs(over[active]), over[active] > 0
    while len(active):
        member = rng.integers(len(values), size=len(active), dtype=np.uint32)
        place = (member >> np.uint32(4)).astype(np.int64) * draws + active
        bit = np.uint16(1) << (member & np.uint32(15)).astype(np.uint16)
        hit = np.flatnonzero(((flat[place] & bit) != 0) == surplus)
        flat[place[hit]] ^= bit[hit]
        sign = np.where(surplus[hit], -1, 1)[:, None]
        sums[active[hit]] += sign * values[member[hit]]
        left[hit] -= 1
        going = left > 0
        active, left, surplus = active[going], left[going], surplus[going]
