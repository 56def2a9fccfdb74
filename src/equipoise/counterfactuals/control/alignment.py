"""Which tokens of a caption stand for which of another: their longest common subsequence."""

from collections.abc import Sequence
from functools import lru_cache

Tokens = tuple[int, ...]


@lru_cache(maxsize=4096)
def aligned(base: Tokens, other: Tokens) -> tuple[int, ...]:
    """Align a caption with the base of its set.

    Words are aligned as their longest common subsequence. Captions end in a run of one token: what
    it begins with stands for the end of the caption and is aligned with that of the base; the
    padding after it with what is at the same place, as in the source.

    Parameters
    ----------
    base, other : tuple of int
        Tokens, padded to one length.

    Returns
    -------
    tuple of int
        For each token of `other` its place in `base`; -1 where it has none, being another word.
    """
    first, second = _words(base), _words(other)
    if base[first] != other[second]:
        return common(base, other)
    padding = [place if place >= first else -1 for place in range(second + 1, len(other))]
    return (*common(base[:first], other[:second]), first, *padding)


def _words(tokens: Tokens) -> int:
    """Return how many tokens come before the run of one token at the end."""
    count = len(tokens) - 1
    while count and tokens[count - 1] == tokens[-1]:
        count -= 1
    return count


def common(base: Tokens, other: Tokens) -> tuple[int, ...]:
    """Align by the longest common subsequence.

    Of several, the one that takes tokens of `other` as early as it can. Returns places as
    `aligned` does.
    """
    return tuple(_subsequence(base, other))


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
