"""Dot charts of the documentation, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

LEFT, WIDTH, RIGHT, ROW, TOP, BOTTOM = 330, 420, 20, 24, 44, 40


class Axis(NamedTuple):
    """A horizontal axis.

    Attributes
    ----------
    title : str
    ticks : mapping of float to str
        Labels by value; the first and the last one are the ends.
    line : float
        Where a reference line is drawn.
    scale : callable, optional
        Applied to values, such as `math.log10`.
    """

    title: str
    ticks: Mapping[float, str]
    line: float
    scale: Callable[[float], float] = float

    def place(self, value: float) -> float:
        """Return the horizontal place of a value in pixels."""
        low, *_, high = (self.scale(tick) for tick in self.ticks)
        share = (self.scale(value) - low) / (high - low)
        return round(LEFT + WIDTH * min(max(share, 0.0), 1.0), 1)


class DotRow(NamedTuple):
    """A row of dots: filled ones and hollow ones."""

    label: str
    filled: Sequence[float]
    hollow: Sequence[float] = ()


def dot_chart(title: str, axis: Axis, rows: Iterable[DotRow]) -> str:
    """Return a chart as SVG, a row of dots for each label."""
    lines = [*rows]
    bottom = TOP + ROW * len(lines)
    width, height = LEFT + WIDTH + RIGHT, bottom + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="sans-serif" font-size="13" fill="#222">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for value, label in axis.ticks.items():
        parts.append(_vertical(axis.place(value), bottom, "#ddd"))
        parts.append(_text(axis.place(value), bottom + 16, label, "middle"))
    parts.append(_vertical(axis.place(axis.line), bottom, "#c33"))
    parts.append(_text(LEFT + WIDTH / 2, bottom + 34, axis.title, "middle"))
    for number, row in enumerate(lines):
        parts += _dots(axis, row, TOP + ROW * (number + 0.5))
    return "\n".join([*parts, "</svg>", ""])


def _dots(axis: Axis, row: DotRow, y: float) -> Iterable[str]:
    yield _text(LEFT - 12, y + 4, row.label, "end")
    for value in row.hollow:
        yield (
            f'<circle cx="{axis.place(value)}" cy="{y}" r="4.5" fill="#fff" stroke="#26a"'
            ' stroke-width="1.5"/>'
        )
    for value in row.filled:
        yield (
            f'<circle cx="{axis.place(value)}" cy="{y}" r="4.5" fill="#26a" fill-opacity="0.55"/>'
        )


def _vertical(x: float, bottom: float, colour: str) -> str:
    return f'<path d="M{x} {TOP}V{bottom}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
