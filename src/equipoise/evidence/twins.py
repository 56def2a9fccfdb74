"""Images of a set that are the same picture: identical bytes, cut the same way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from equipoise.evidence.pictures import Pictures

_LENGTH = 16
_UNREAD = bytes(_LENGTH)


def packed(contents: Sequence[str]) -> bytes:
    """Return SHA-256 digests shortened to 16 bytes each; zeros where there is none."""
    return b"".join(bytes.fromhex(one)[:_LENGTH] if one else _UNREAD for one in contents)


def same_pictures(pictures: Pictures, contents: bytes) -> tuple[tuple[str, ...], ...]:
    """Return the ids that stand for one picture together, for every picture with several.

    Parameters
    ----------
    pictures : Pictures
        n images.
    contents : bytes
        What `packed` makes of the digests of all of them, in their order.

    Returns
    -------
    tuple of tuples of str
        In the order of ids. Images that could not be read are in none.
    """
    whole = np.frombuffer(contents, dtype=f"V{_LENGTH}")
    _, owner = np.unique(whole, return_inverse=True)
    sizes = np.bincount(owner)
    several = np.flatnonzero(sizes[owner] > 1)
    found: dict[tuple[bytes, tuple[int, ...]], list[str]] = {}
    for place in several.tolist():
        content = whole[place].tobytes()
        if content != _UNREAD:
            crop = () if pictures.crops is None else tuple(pictures.crops[place].tolist())
            found.setdefault((content, crop), []).append(pictures.ids[place])
    return tuple(tuple(ids) for ids in found.values() if len(ids) > 1)
