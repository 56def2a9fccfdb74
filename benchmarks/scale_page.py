"""The page of how audits grow: a table and fits."""

from pathlib import Path

from benchmarks.harness import machine, seconds
from benchmarks.pages import lettered, table_line
from benchmarks.scale_growth import DIMENSION, NARROW, NOISE, STRAIGHT, growths

DOCS = Path(__file__).parent.parent / "docs"

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
