"""The page of how audits grow: a table, what the lines are, a figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from benchmarks.harness import machine, seconds
from benchmarks.pages import letters, table_line
from benchmarks.scale_growth import DIMENSION, NARROW, NOISE, STRAIGHT, Measured, growths

# Kind of audit, numbers per vector, processor.
Line = tuple[str, int, str]

DOCS = Path(__file__).parent.parent / "docs"
# One for each kind of audit, of Okabe & Ito and Tol: those that are legible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#AA3377", "#997700")
DASHED = "5 4"
WIDTH, PANEL, LEFT, TOP, HEIGHT = 840, 290, 64, 64, 260

INTRODUCTION = """\
# How audits grow

`python -m benchmarks.scale --keep` wrote this page from what was measured so far, size by size
(`--full`: every size); `make bench` runs its smallest sizes. A row is a whole audit: evidence is
read, joined, measured with every interval, chance level and p-value, and the run is written with
its report, in a process of its own. The evidence is generated:

- **predictions**: Parquet, 40 classes, two attributes and their intersection, two models, ids of
  text in another order;
- **diversity**, **associations**: float16 vectors in a column of Parquet, matched by id; six sets;
  two sets of images beside twenty words;
- **retrieval**, **similarity**: float16 vectors as `.npy`; twenty queries that rank all images, or
  are compared with them;
- **concepts**: `.npy` of scores and of labels, twenty concepts; average precision and AUROC.

Vectors have {narrow} or {wide} numbers, as stands with the rows: ten million of {wide} would be
files of 5 GB.

One kind of audit with vectors of one length was measured on one machine, and is fitted for it.

Memory is the peak of the whole process, of which about 220 MB are Python and libraries. A `.npy` is
mapped, and what reading it took is given back; vectors in Parquet are held as they are stored.
Processor time is that of all threads together, loading of that what reading and joining took. Other
work shared the machine with these runs: that makes the time by the clock longer, which is not told,
and the processor time somewhat.

![Peak memory and processor time by rows]({figure})

| | |
|---|---|
{facts}
"""


FITTED = """\
Memory and time are fitted as a + b · rows^p over the sizes above, and as a straight line a + b ·
rows, of which the table tells by how much it misses a measurement at most. Growth is said to be a
straight line, or less, up to p = {straight}, or where the line misses by no more than {noise}: a
machine with other work on it does not tell time more closely.

"""


def write_page(found: Sequence[Measured]) -> None:
    """Write docs/scale.md and its figure from measurements."""
    figure = "figures/scale.svg"
    told = {f"machine {letter}": name for name, letter in lettered(found).items()}
    told |= {name: value for name, value in machine().items() if name != "processor"}
    facts = "\n".join(table_line(name, value) for name, value in told.items())
    wide, narrow = DIMENSION, NARROW
    about = INTRODUCTION.format(figure=figure, facts=facts, wide=wide, narrow=narrow)
    page = [about, *table(found), "", *fits(found)]
    (DOCS / "scale.md").write_text("\n".join(page) + "\n", encoding="utf-8")
    (DOCS / figure).write_text(svg(found), encoding="utf-8")


def table(found: Sequence[Measured]) -> Iterator[str]:
    """Yield the lines of the table of all that was measured."""
    names = lettered(found)
    yield table_line("audit", "rows", "machine", "peak memory", "processor time", "of it loading")
    yield "|---|--:|---|--:|--:|--:|"
    for one in found:
        wide = f" × {one.dimension}" if one.dimension else ""
        times = (one.processor_seconds, one.by_step["load"])
        memory, name = f"{one.peak_mb:,.0f} MB", names[one.processor]
        yield table_line(one.world, f"{one.rows:,}{wide}", name, memory, *map(seconds, times))


def lettered(found: Sequence[Measured]) -> dict[str, str]:
    """Return a letter for each processor, in the order in which they come."""
    return dict(zip(dict.fromkeys(one.processor for one in found), letters(), strict=False))


def fits(found: Sequence[Measured]) -> Iterator[str]:
    """Yield the lines that tell how each series grows."""
    yield from FITTED.format(straight=STRAIGHT, noise=f"{NOISE:.0%}").splitlines()
    yield table_line("audit", "what", "p", "the line misses by", "a straight line")
    yield "|---|---|--:|--:|---|"
    for about, ones in series(found).items():
        for what, one in growths(ones).items():
            told = "yes" if one.straight else "no"
            yield table_line(named(about), what, f"{one.power:.2f}", f"{one.off:.0%}", told)


def series(found: Sequence[Measured]) -> dict[Line, list[Measured]]:
    """Return measurements of one kind of audit, dimension and processor together."""
    lines: dict[Line, list[Measured]] = {}
    for one in found:
        lines.setdefault((one.world, one.dimension, one.processor), []).append(one)
    # A size alone shows no growth.
    return {about: ones for about, ones in lines.items() if len(ones) > 1}


def named(about: Line) -> str:
    """Return what a series is called."""
    world, dimension, _ = about
    return f"{world}, {dimension} numbers" if dimension else world


def _drawn(lines: Mapping[Line, Sequence[Measured]]) -> dict[Line, tuple[str, str]]:
    """Return colour, by kind of audit, and dashes of each series."""
    worlds = [*dict.fromkeys(world for world, *_ in lines)]
    return {
        (world, dimension, processor): (
            COLOURS[worlds.index(world)],
            DASHED if dimension == NARROW else "",
        )
        for world, dimension, processor in lines
    }


def svg(found: Sequence[Measured]) -> str:
    """Draw memory and processor time over rows, all on logarithmic axes."""
    panels: list[tuple[str, Callable[[Measured], float]]] = [
        ("Peak memory, MB", lambda one: float(one.peak_mb)),
        ("Processor time, s", lambda one: float(one.processor_seconds)),
    ]
    lines = series(found)
    height = TOP + HEIGHT + 60 + 22 * -(-len(lines) // 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="Peak memory and processor time by rows" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (title, value) in enumerate(panels):
        parts += _panel(LEFT + place * (PANEL + 100), title, value, lines)
    for index, (about, (colour, dashes)) in enumerate(_drawn(lines).items()):
        x, y = LEFT + (PANEL + 100) * (index % 2), TOP + HEIGHT + 64 + 22 * (index // 2)
        parts.append(_stroke([(x, y - 4), (x + 30, y - 4)], colour, dashes=dashes))
        parts.append(_text(x + 40, y, named(about)))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(
    left: float,
    title: str,
    value: Callable[[Measured], float],
    lines: Mapping[Line, Sequence[Measured]],
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
    drawn = _drawn(lines)
    for about, ones in lines.items():
        points = [at(one.rows, value(one)) for one in sorted(ones, key=lambda one: one.rows)]
        colour, dashes = drawn[about]
        parts.append(_stroke(points, colour, dashes=dashes))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    parts.append(_text(left + PANEL / 2, TOP + HEIGHT + 38, "rows", "middle"))
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _share(value: float, decades: tuple[int, int]) -> float:
    return (math.log10(value) - decades[0]) / (decades[1] - decades[0])


def _stroke(
    points: Sequence[tuple[float, float]], colour: str, width: float = 2.2, dashes: str = ""
) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    shape = f'stroke="{colour}" stroke-width="{width}"{dashed} fill="none"'
    return f'<polyline points="{path}" {shape}/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
