"""The page of how audits grow: a table, what the lines are, a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.__main__ import table_line
from benchmarks.harness import machine, seconds
from benchmarks.scale_growth import STRAIGHT, Measured, powers

DOCS = Path(__file__).parent.parent / "docs"
# Okabe & Ito's colours that are legible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000")
WIDTH, PANEL, LEFT, TOP, HEIGHT = 840, 290, 64, 64, 260

INTRODUCTION = """\
# How audits grow

`python -m benchmarks.scale --full --keep` wrote this page; `make bench` runs its smallest sizes. A
row is a whole audit: evidence is read, joined, measured with every interval, chance level and
p-value, and the run is written with its report, in a process of its own. The evidence is generated:

- **predictions**: Parquet, 40 classes, two attributes and their intersection, two models, ids of
  text in another order;
- **diversity**, **associations**: float16 vectors in a column of Parquet, matched by id; six sets;
  two sets of images beside twenty words;
- **retrieval**, **similarity**: float16 vectors as `.npy`; twenty queries that rank all images, or
  are compared with them;
- **concepts**: `.npy` of scores and of labels, twenty concepts; average precision and AUROC.

Memory is the peak of the whole process: about 220 MB of it are Python and libraries, and a `.npy`
that is mapped counts where it was read, though the system may take that back. Processor time is
that of all threads, which other work on the machine changes less than the time by the clock.
Permutations of diversity share passes over the images, 64 at 500,000 images and 8 from 4 million
on: between the two, time grows faster than the rows.

![Peak memory and processor time by rows]({figure})

| | |
|---|---|
{facts}
"""


def write_page(found: Sequence[Measured]) -> None:
    """Write docs/scale.md and its figure from measurements."""
    figure = "figures/scale.svg"
    facts = "\n".join(table_line(name, value) for name, value in machine().items())
    page = [INTRODUCTION.format(figure=figure, facts=facts), *_table(found), "", *_lines(found)]
    (DOCS / "scale.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    (DOCS / figure).write_text(svg(found), encoding="utf-8")


def _table(found: Sequence[Measured]) -> Iterator[str]:
    yield table_line("audit", "rows", "peak memory", "processor time", "by the clock", "loading")
    yield "|---|--:|--:|--:|--:|--:|"
    for one in found:
        wide = f" × {one.dimension}" if one.dimension else ""
        times = (one.processor_seconds, one.seconds, one.by_step["load"])
        memory = f"{one.peak_mb:,.0f} MB"
        yield table_line(one.world, f"{one.rows:,}{wide}", memory, *map(seconds, times))


def _lines(found: Sequence[Measured]) -> Iterator[str]:
    yield "Memory and time fitted as a + b · rows^p over the sizes above; p = 1 is a straight line,"
    yield f"and up to {STRAIGHT} is taken for one: times vary by some per cent.\n"
    yield table_line("audit", "what", "p", "a straight line")
    yield "|---|---|--:|---|"
    for names, ones in series(found).items():
        for what, p in powers(ones).items():
            yield table_line(names, what, f"{p:.2f}", "yes" if p <= STRAIGHT else "no")


def series(found: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return measurements of one kind of audit and dimension together."""
    lines: dict[str, list[Measured]] = {}
    for one in found:
        name = f"{one.world}, {one.dimension} numbers" if one.dimension else one.world
        lines.setdefault(name, []).append(one)
    return lines


def svg(found: Sequence[Measured]) -> str:
    """Draw memory and processor time over rows, all on logarithmic axes."""
    panels: list[tuple[str, Callable[[Measured], float]]] = [
        ("Peak memory, MB", lambda one: float(one.peak_mb)),
        ("Processor time, s", lambda one: float(one.processor_seconds)),
    ]
    lines = series(found)
    height = TOP + HEIGHT + 60 + 22 * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="Peak memory and processor time by rows" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (title, value) in enumerate(panels):
        parts += _panel(LEFT + place * (PANEL + 100), title, value, lines)
    for index, name in enumerate(lines):
        y = TOP + HEIGHT + 64 + 22 * index
        colour = COLOURS[index % len(COLOURS)]
        parts.append(_stroke([(LEFT, y - 4), (LEFT + 30, y - 4)], colour))
        parts.append(_text(LEFT + 40, y, name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    left: float, title: str, value: Callable[[Measured], float], lines: dict[str, list[Measured]]
) -> list[str]:
    every = [one for ones in lines.values() for one in ones]
    across = _decades([one.rows for one in every])
    up = _decades([value(one) for one in every])

    def at(rows: float, number: float) -> tuple[float, float]:
        x = left + PANEL * _share(rows, across)
        return x, TOP + HEIGHT * (1 - _share(number, up))

    parts = [_text(left, TOP - 20, title)]
    for power in range(across[0], across[1] + 1):
        x, _ = at(10.0**power, 10.0 ** up[0])
        parts.append(_stroke([(x, TOP), (x, TOP + HEIGHT)], "#d9d9d9", 1))
        parts.append(_text(x, TOP + HEIGHT + 20, f"{10**power:,}", "middle"))
    for power in range(up[0], up[1] + 1):
        _, y = at(10.0 ** across[0], 10.0**power)
        parts.append(_stroke([(left, y), (left + PANEL, y)], "#d9d9d9", 1))
        parts.append(_text(left - 8, y + 4, f"{10**power:,}", "end"))
    for index, ones in enumerate(lines.values()):
        points = [at(one.rows, value(one)) for one in sorted(ones, key=lambda one: one.rows)]
        colour = COLOURS[index % len(COLOURS)]
        parts.append(_stroke(points, colour))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    parts.append(_text(left + PANEL / 2, TOP + HEIGHT + 38, "rows", "middle"))
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])


def _stroke(points: Sequence[tuple[float, float]], colour: str, width: float = 2.2) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" stroke="{colour}" stroke-width="{width}" fill="none"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
