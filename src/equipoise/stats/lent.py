"""Memory that is kept from call to call: being given it anew may take longer than to fill it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

# Bytes of a piece that are kept, and pieces.
_LARGEST, _MOST = 1 << 25, 4

# By identity: entering and popping one needs no lock, which a forked process could find taken.
_kept: dict[int, npt.NDArray[np.uint8]] = {}


@contextmanager
def lent(lengths: Sequence[int], kind: np.dtype[Any]) -> Iterator[list[npt.NDArray[Any]]]:
    """Lend arrays that hold anything, and take them back for the next who asks.

    Up to four of at most 32 MB are kept, of the sizes that were asked for last. What is lent to
    one is lent to nobody else meanwhile.

    Parameters
    ----------
    lengths : sequence of int
        Of the arrays.
    kind : dtype
        Of plain numbers.
    """
    held = [_taken(length * kind.itemsize) for length in lengths]
    try:
        yield [one[: length * kind.itemsize].view(kind)
               for one, length in zip(held, lengths, strict=True)]  # fmt: skip
    finally:
        _kept.update({id(one): one for one in held if len(one) <= _LARGEST})
        for oldest in [*_kept][:-_MOST]:
            _kept.pop(oldest, None)


def _taken(size: int) -> npt.NDArray[np.uint8]:
    """Return the smallest array that is kept and large enough, else a new one."""
    for key, one in sorted(_kept.items(), key=lambda item: len(item[1])):
        if len(one) >= size and _kept.pop(key, None) is not None:
            return one
    return np.empty(size, dtype=np.uint8)
