"""Words that messages, notes and reports share: counts of images, long texts cut short."""

from __future__ import annotations

_MOST = 60


def shortened(text: str, most: int = _MOST) -> str:
    """Return a text, cut to `most` characters with "…" as the last where it is longer."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def images(n: int, many: str, one: str) -> str:
    """Return a number of images and what is said of them.

    Parameters
    ----------
    n : int
    many, one : str
        What is said of several, or none; and of one: "have no age", "has no age".
    """
    return f"1 image {one}" if n == 1 else f"{n} images {many}"
