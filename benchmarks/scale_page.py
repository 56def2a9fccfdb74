"""The page of how audits grow: a table and fits."""

from pathlib import Path

from benchmarks.harness import machine, seconds
from benchmarks.pages import lettered, table_line
from benchmarks.scale_growth import DIMENSION, NARROW, NOISE, STRAIGHT, growths

DOCS = Path(__file__).parent.parent / "docs"

INTRODUCTION = """\
# How audits grow

Use this page to estimate the time and memory of a whole audit. `equipoise plan` estimates the
seconds of yours.

A row is one audit in its own process: it reads and joins generated evidence, measures every
interval, chance level and p-value, and writes the run with its report.

- **predictions**: Parquet, 40 classes, two attributes and their intersection, two models, text ids
  in another order
- **diversity**, **associations**: float16 vectors in Parquet, matched by id; six sets; two sets of
  images beside twenty words
- **retrieval**, **similarity**: float16 vectors as `.npy`; twenty queries that rank all images, or
  are compared with them
- **concepts**: `.npy` of scores and of labels, twenty concepts; average precision and AUROC

How to read the tables:

- **Vectors** have {narrow} or {wide} numbers. Ten million of {wide} would be files of 5 GB.
- **Memory** is the peak of the process; Python and libraries take about 220 MB. A `.npy` is
  mapped, and its memory is given back. Vectors in Parquet stay as they are stored.
- **Processor time** is of all threads. Loading is reading and joining. Other work on the machine
  lengthens it somewhat.
- Each kind and vector length was measured on one machine.

| | |
|---|---|
{facts}

`python -m benchmarks.scale --keep` measures and writes this page (`--full`: every size).
"""


FITTED = """\
Memory and time are fitted as a + b · rows^p, and as a straight line a + b · rows. The table has the
largest miss of the line. Growth counts as straight up to p = {straight}, or where the line misses
by at most {noise}: a busy machine allows no finer call.

"""


def write_page(found):
    """Write docs/scale.md and its figure from measurements."""
    told = {
        f"machine {letter}": name
        for name, letter in lettered(one.processor for one in found).items()
    }
    told |= {name: value for name, value in machine().items() if name != "processor"}
    facts = "\n".join(table_line(name, value) for name, value in told.items())
    wide, narrow = DIMENSION, NARROW
    about = INTRODUCTION.format(facts=facts, wide=wide, narrow=narrow)
    page = [about, *table(found), "", *fits(found)]
    (DOCS / "scale.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def table(found):
    """Yield the lines of the table of all that was measured."""
    names = lettered(one.processor for one in found)
    yield table_line("audit", "rows", "machine", "peak memory", "processor time", "of it loading")
    yield "|---|--:|---|--:|--:|--:|"
    for one in found:
        wide = f" × {one.dimension}" if one.dimension else ""
        times = (one.processor_seconds, one.by_step["load"])
        memory, name = f"{one.peak_mb:,.0f} MB", names[one.processor]
        yield table_line(one.world, f"{one.rows:,}{wide}", name, memory, *map(seconds, times))


def fits(found):
    """Yield the lines that tell how each series grows."""
    yield from FITTED.format(straight=STRAIGHT, noise=f"{NOISE:.0%}").splitlines()
    yield table_line("audit", "what", "p", "the line misses by", "a straight line")
    yield "|---|---|--:|--:|---|"
    for about, ones in series(found).items():
        for what, one in growths(ones).items():
            told = "yes" if one.straight else "no"
            yield table_line(named(about), what, f"{one.power:.2f}", f"{one.off:.0%}", told)


def series(found):
    """Return measurements of one kind of audit, dimension and processor together."""
    lines = {}
    for one in found:
        lines.setdefault((one.world, one.dimension, one.processor), []).append(one)
    # A size alone shows no growth.
    return {about: ones for about, ones in lines.items() if len(ones) > 1}


def named(about):
    """Return what a series is called."""
    world, dimension, _ = about
    return f"{world}, {dimension} numbers" if dimension else world
