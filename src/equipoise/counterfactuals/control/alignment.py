"""Which tokens of a caption stand for which of another: their longest common subsequence."""

from collections.abc import Sequence
from functools import lru_cache

Tokens = tuple[int, ...]


@lru_cache(maxsize=4096)
def aligned(base: Tokens, other: Tokens) -> tuple[int, ...]:
    """Align a caption with the base of its set.

    Parameters
    ----------
    base, other : tuple of int
        Tokens, padded to one length.

    Returns
    -------
    tuple of int
        For each token of `other` its place in `base`; -1 where it has none, being another word.
        Of several longest common subsequences the one that takes tokens of `other` as early as
        it can.
    """
    before = _common(base, other)
    after = min(_common(base[::-1], other[::-1]), len(base) - before, len(other) - before)
    first, second = base[before : len(base) - after], other[before : len(other) - after]
    middle = [-1 if place < 0 else before + place for place in _subsequence(first, second)]
    ends = range(len(base) - after, len(base))
    return (*range(before), *middle, *ends)


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two captions begin with in common."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _subsequence(base: Sequence[int], other: Sequence[int]) -> list[int]:
    # longest[i][j]: of what is left from base[i] and other[j] on.
    longest = [[0] * (len(other) + 1) for _ in range(len(base) + 1)]
    for i in reversed(range(len(base))):
        for j in reversed(range(len(other))):
            longest[i][j] = (
                longest[i + 1][j + 1] + 1
                if base[i] == other[j]
                else max(longest[i + 1][j], longest[i][j + 1])
            )
    places, i, j = [-1] * len(other), 0, 0
    while i < len(base) and j < len(other):
        if base[i] == other[j]:
            places[j] = i
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return places
