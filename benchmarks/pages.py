"""The page of the benchmarks, made of the record: docs/benchmarks.md."""

from itertools import chain
from pathlib import Path
from string import ascii_uppercase

from benchmarks.harness import exponents, goal_of, ratio_of, seconds

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"

INTRODUCTION = """\
# Benchmarks

`make bench` measures every workload and writes this page. `python -m benchmarks --only w3 --keep`
measures one anew and leaves the others as they stand: each says on which machine it was measured,
and when. With `--quick` instead, a workload runs at its smallest size and nothing is written.

Each row times equipoise and a peer, alternated in one process after a warm-up, and checks first
that both give the same numbers. Both sides have one BLAS thread; equipoise spreads its kernels over
the cores, and the results have the same bytes on any number of them. No peer does as much as a
whole audit: its rows (W8, W9) time the command and something smaller, as whole processes.

{machines}

What the columns say:

- **peer, its time, our time**: the usual or the strongest other way to compute the number, and the
  medians of wall time. Calls that take less than 0.2 seconds are repeated for as long in each
  round, as Python's timeit does: a first call after other work takes up to twice as long. Compiling
  kernels, once on a machine, is not in them.
- **ratio, goal**: the peer's time over ours, and the ratio that was set before anything was built;
  rows without a goal show growth, or a whole task. Of whole audits the ratio is our time over that
  of the smaller thing, and the goal is the most that the ratio or our time may be.
- **× limit**: our time over the least that the machine needs for the work, estimated as told in
  the notes: bytes to read, numbers to draw or products to sum.
- **memory**: peak resident memory that the call adds, in a process of its own.
"""


ABOUT = {
    "W2": """\
With 8 targets a side all 12,870 partitions are counted, where the peer draws 10,000; that is less
than half of the call, and the rest is the check of the input and the estimate.
""",
    "W4": """\
The goals of 20× and 40× refer to what the field runs, debias-vision-lang's loop, here on a
processor. Beside the quicker script of ours they cannot be reached by reading each vector once and
summing each product once: at the machine's limit the ratio would be what the note gives, for numpy
sorts with vector units where the processor has them. Beside torch's ranking alone, which returns no
measure, the goal of 1.5× depends on the processor and on the kernels that numpy takes for it. The
products are most of the time: on an EPYC of family 26 with kernels for AVX2 (`OPENBLAS_CORETYPE`
set to Haswell) they took 116 ms of 164, and the ratio was 1.2×; with those that numpy chooses
itself, 70 ms. On both cores of an EPYC of family 25, which has no others, the products alone would
give 1.7×, and with the lengths of the vectors, which torch's peer does not need, 1.55×: it was
1.25×. On an Intel Xeon, where torch multiplies faster than numpy, it is less than the goal.
""",
}
"""What must be known of a workload to read its ratios."""


def write_page(measurements):
    """Write docs/benchmarks.md."""
    PAGE.write_text(page(measurements), encoding="utf-8")


def page(measurements):
    """Return docs/benchmarks.md."""
    # A is the machine with the earliest day.
    names = lettered(
        measurement.facts
        for measurement in sorted(measurements, key=lambda measurement: measurement.day)
    )
    parts = [INTRODUCTION.format(machines="\n".join(machines(measurements, names)))]
    for measurement in measurements:
        workload = measurement.rows[0].workload
        about = [ABOUT[workload]] if workload in ABOUT else []
        measured = f"Measured on {measurement.day} on machine {names[measurement.facts]}.\n"
        parts += [
            f"## {workload}\n",
            measured,
            *about,
            *full(measurement.rows),
            "",
            *notes(measurement.rows),
        ]
    return "\n".join([*parts, *growth(rows_of(measurements))]) + "\n"


def rows_of(measurements):
    """Return the rows of all workloads."""
    return [*chain.from_iterable(measurement.rows for measurement in measurements)]


def lettered(names):
    """Return a letter for each name: A for the first one, then in order."""
    return dict(zip(dict.fromkeys(names), ascii_uppercase, strict=False))


def machines(measurements, letters):
    """Yield the lines of the table of machines."""
    names = ("processor", "cores", "memory", "system", "libraries")
    yield table_line("machine", *names, "days")
    yield "|---|---|---|---|---|---|---|"
    for facts, letter in letters.items():
        days = sorted(
            {measurement.day for measurement in measurements if measurement.facts == facts}
        )
        yield table_line(letter, *(dict(facts)[name] for name in names), ", ".join(days))


def full(rows):
    """Yield the lines of a table with all columns but the notes."""
    yield "| what | size | peer | its time | our time | ratio | goal | × limit | memory |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        limit = f"{row.seconds / row.limit_seconds:.1f}" if row.limit_seconds else ""
        memory = "" if row.memory_mb is None else f"{row.memory_mb:,.0f} MB"
        cells = (row.what, row.size, row.peer, seconds(row.peer_seconds), seconds(row.seconds))
        yield table_line(*cells, ratio_of(row), goal(row), limit, memory)


def notes(rows):
    """Return what must be known about rows: of each limit and peer, at the largest size."""
    lines = {}
    for row in rows:
        if row.limit:
            lines[row.what, ""] = f"- {row.what}, limit: {row.limit}."
        if row.note:
            lines[row.what, row.peer] = f"- {row.what}, {row.peer}: {row.note}."
    return [*lines.values(), ""] if lines else []


def growth(rows):
    """Yield the table of fitted exponents."""
    fitted = exponents(rows)
    if not fitted:
        return
    yield "## Growth\n"
    yield "Time grows as size to this power, fitted over the sizes above; 1 is linear.\n"
    yield table_line("workload", "what", "peer", "equipoise", "the peer")
    yield "|---|---|---|--:|--:|"
    for names, powers in fitted.items():
        yield table_line(*names, *(f"{power:.2f}" for power in powers))


def goal(row):
    """Return a goal, and whether it was missed."""
    return goal_of(row) if row.reached else f"{goal_of(row)}, missed"


def table_line(*cells):
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"
