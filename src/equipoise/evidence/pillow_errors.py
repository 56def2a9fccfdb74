"""Pillow's errors in our words."""

from __future__ import annotations

import re

_BOMB = re.compile(r"\((\d+) pixels\) exceeds limit of (\d+)")


def of_bomb(error: Exception, max_pixels: int) -> str:
    """Say how many pixels a picture has that Pillow takes for a bomb, and how many are allowed.

    Parameters
    ----------
    error : Exception
        Pillow's `DecompressionBombError`, or its warning.
    max_pixels : int
        Our own limit. Pillow's refuses a picture only where ours is higher, and is named then.
    """
    told = _BOMB.search(str(error))
    if told is None:
        return f"it has more than {max_pixels:,} pixels"
    found, limit = int(told[1]), int(told[2])
    return f"it has {found:,} pixels, more than {min(limit, max_pixels):,} in all"


def first_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its text."""
    text = str(error).partition("\n")[0].strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
