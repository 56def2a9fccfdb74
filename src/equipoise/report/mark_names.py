"""Names beside the marks of a chart, none on another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

PAPER = "var(--paper)"

# The narrowest plot on a page of two charts a row, less what round ends of its axis take.
_WIDTH = 260.0
_LETTER, _LINE, _MARK = 6.2, 13.0, 10.0
# How the name is aligned, and its distance to the right of and below the middle of its mark.
_PLACES = (
    ("left", 7, -6), ("left", 7, 13), ("right", -7, -6), ("right", -7, 13), ("center", 0, -9),
    ("center", 0, 18),
)  # fmt: skip

Box = tuple[float, float, float, float]


def spread(
    rows: Sequence[Mapping[str, Any]],
    height: float,
    through: tuple[float, float] = (math.nan, math.nan),
) -> list[dict[str, Any]]:
    """Say of every mark where its name has room.

    Wider plots keep names apart that are apart here, as distances to the side only grow.

    Parameters
    ----------
    rows : sequence of mapping
        With `x`, `y`, and `name`, which may be empty; ends of intervals, where there are some, as
        `x_low`, `x_high`, and `y_low`, `y_high` or `low`, `high`.
    height : float
        Of the plot, in pixels.
    through : tuple of float
        What the axes reach to besides, across and up; NaN is nothing.

    Returns
    -------
    list of dict
        The rows with `align`, `dx` and `dy`; the name is empty where there is no room, its mark
        has it as a tooltip.
    """
    across = _pixels(rows, ("x", "x_low", "x_high"), through[0], _WIDTH)
    up = _pixels(rows, ("y", "y_low", "y_high", "low", "high"), through[1], height)
    down = [height - one for one in up]
    taken = [_around(x, y) for x, y in zip(across, down, strict=True)]
    told = []
    for place, row in enumerate(rows):
        others = taken[:place] + taken[place + 1 :]
        name, align, dx, dy = row["name"], *_PLACES[0]
        room = [
            (spot, box)
            for spot in (_PLACES if name else ())
            if _inside(box := _box(name, across[place], down[place], *spot), height)
            and not any(_meet(box, other) for other in others)
        ]
        if room:
            (align, dx, dy), box = room[0]
            taken.append(box)
        told.append({**row, "name": name if room else "", "align": align, "dx": dx, "dy": dy})
    return told


def _pixels(
    rows: Sequence[Mapping[str, Any]], keys: tuple[str, ...], through: float, size: float
) -> list[float]:
    known = [row[key] for row in rows for key in keys if key in row and math.isfinite(row[key])]
    reached = [*known, through] if math.isfinite(through) else known
    low, high = min(reached, default=0.0), max(reached, default=1.0)
    return [size * ((row[keys[0]] - low) / (high - low) if high > low else 0.5) for row in rows]


def _around(x: float, y: float) -> Box:
    return x - _MARK / 2, x + _MARK / 2, y - _MARK / 2, y + _MARK / 2


def _box(name: str, x: float, y: float, align: str, dx: float, dy: float) -> Box:
    wide = _LETTER * len(name)
    left = x + dx - {"left": 0.0, "center": wide / 2, "right": wide}[align]
    return left, left + wide, y + dy - _LINE + 2, y + dy + 2


def _inside(box: Box, height: float) -> bool:
    """Whether a name lies on no tick of an axis: to the left and below are their numbers."""
    return box[0] >= 0 and box[1] <= _WIDTH + _MARK and box[3] <= height


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
