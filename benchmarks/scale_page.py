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


def write_page(measurements):
    """Write docs/scale.md and its figure from measurements."""
    entries = {
        f"machine {letter}": name
        for name, letter in lettered(measurement.processor for measurement in measurements).items()
    }
    entries |= {name: value for name, value in machine().items() if name != "processor"}
    facts = "\n".join(table_line(name, value) for name, value in entries.items())
    wide, narrow = DIMENSION, NARROW
    about = INTRODUCTION.format(facts=facts, wide=wide, narrow=narrow)
    page = [about, *table(measurements), "", *fits(measurements)]
    (DOCS / "scale.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def table(measurements):
    """Yield the lines of the table of all that was measured."""
    names = lettered(measurement.processor for measurement in measurements)
    yield table_line("audit", "rows", "machine", "peak memory", "processor time", "of it loading")
    yield "|---|--:|---|--:|--:|--:|"
    for measurement in measurements:
        wide = f" × {measurement.dimension}" if measurement.dimension else ""
        times = (measurement.processor_seconds, measurement.by_step["load"])
        memory, name = f"{measurement.peak_mb:,.0f} MB", names[measurement.processor]
        yield table_line(
            measurement.world, f"{measurement.rows:,}{wide}", name, memory, *map(seconds, times)
        )


def fits(measurements):
    """Yield the lines that tell how each series grows."""
    yield from FITTED.format(straight=STRAIGHT, noise=f"{NOISE:.0%}").splitlines()
    yield table_line("audit", "what", "p", "the line misses by", "a straight line")
    yield "|---|---|--:|--:|---|"
    for about, members in series(measurements).items():
        for quantity, growth in growths(members).items():
            answer = "yes" if growth.straight else "no"
            yield table_line(
                named(about), quantity, f"{growth.power:.2f}", f"{growth.off:.0%}", answer
            )


def series(measurements):
    """Return measurements of one kind of audit, dimension and processor together."""
    lines = {}
    for measurement in measurements:
        lines.setdefault(
            (measurement.world, measurement.dimension, measurement.processor), []
        ).append(measurement)
    # A size alone shows no growth.
    return {about: members for about, members in lines.items() if len(members) > 1}


def named(about):
    """Return what a series is called."""
    world, dimension, _ = about
    return f"{world}, {dimension} numbers" if dimension else world
