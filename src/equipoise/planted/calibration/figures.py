"""Curves of power as plain SVG: the same numbers, the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

# Okabe & Ito's colours that are legible on white, and black: told apart with any colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#7A5C00")
_DASHES = ("", "7 4", "2 3")

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BOTTOM = 840, 64, 300, 44, 300, 56
_INK, _FAINT = "#1a1a1a", "#d9d9d9"


@dataclass(frozen=True)
class Line:
    """A curve: share found at each number of images, and the name in the legend."""

    name: str
    images: tuple[int, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Figure:
    """Curves that share their axes.

    Attributes
    ----------
    name : str
        Of the file, without suffix.
    title, axis : str
        Above the curves, and under the horizontal axis.
    lines : tuple of Line
    """

    name: str
    title: str
    axis: str
    lines: tuple[Line, ...]

    def svg(self) -> str:
        """Draw the curves over the logarithm of the number of images."""
        sizes = sorted({size for line in self.lines for size in line.images})
        height = max(_TOP + _HEIGHT + _BOTTOM, _TOP + 24 * len(self.lines) + 20)
        drawn = [self._line(index, line, sizes) for index, line in enumerate(self.lines)]
        label = escape(self.title, {'"': "&quot;"})
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img" aria-label="{label}" '
            'font-family="sans-serif" font-size="13">',
            f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
            _text(_LEFT, 24, self.title, size=15, weight="bold"),
            *_grid(sizes),
            _text((_LEFT + _WIDTH - _RIGHT) / 2, _TOP + _HEIGHT + 44, self.axis, anchor="middle"),
            *(part for parts in drawn for part in parts),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _line(self, index: int, line: Line, sizes: Sequence[int]) -> list[str]:
        colour = _COLOURS[index % len(_COLOURS)]
        dash = _DASHES[index % len(_DASHES)]
        style = f'stroke="{colour}" stroke-width="2.2" fill="none"'
        style += f' stroke-dasharray="{dash}"' if dash else ""
        points = [
            (_across(size, sizes), _up(share))
            for size, share in zip(line.images, line.shares, strict=True)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        middle, start = _TOP + 24 * index + 12, _WIDTH - _RIGHT + 20
        return [
            f'<polyline points="{path}" {style}/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points),
            f'<line x1="{start}" y1="{middle}" x2="{start + 34}" y2="{middle}" {style}/>',
            f'<circle cx="{start + 17}" cy="{middle}" r="3" fill="{colour}"/>',
            _text(start + 42, middle + 4.5, line.name),
        ]


def _across(size: float, sizes: Sequence[int]) -> float:
    share = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
    return _LEFT + 12 + share * (_WIDTH - _RIGHT - _LEFT - 24)


def _up(share: float) -> float:
    return _TOP + (1.0 - share) * _HEIGHT


def _grid(sizes: Sequence[int]) -> list[str]:
    right = _WIDTH - _RIGHT
    found = []
    for percent in (0, 20, 40, 60, 80, 100):
        y = _up(percent / 100)
        marked = percent == 80
        style = f'stroke="{_INK}" stroke-dasharray="6 4"' if marked else f'stroke="{_FAINT}"'
        found.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" {style}/>')
        weight = "bold" if marked else "normal"
        found.append(_text(_LEFT - 8, y + 4.5, f"{percent} %", anchor="end", weight=weight))
    for size in sizes:
        x, y = _across(size, sizes), _up(0.0)
        found.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x:.1f}" y2="{y + 5:.1f}" stroke="{_INK}"/>'
        )
        found.append(_text(x, y + 20, f"{size}", anchor="middle"))
    return found


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 13,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'font-weight="{weight}" fill="{_INK}">{escape(text)}</text>'
    )
