"""Files of docs/benchmarks.md, made of the record: tables, a chart and the list of machines."""

import csv
import math
from itertools import chain
from pathlib import Path
from string import ascii_uppercase

from benchmarks.harness import exponents, goal_of
from tools.charts import Axis, DotRow, dot_chart

DOCS = Path(__file__).parent.parent / "docs"
PAGE, CHART = DOCS / "benchmarks.md", DOCS / "figures" / "benchmarks.svg"
ROWS, GROWTH = DOCS / "benchmarks" / "workloads.csv", DOCS / "benchmarks" / "growth.csv"
HEAD = (
    "workload", "what", "size", "peer", "peer_seconds", "seconds", "ratio", "ratio_of", "goal",
    "reached", "times_limit", "memory_mb", "limit", "note", "machine", "day",
)  # fmt: skip
TICKS = {
    0.1: "0.1", 1.0: "1", 10.0: "10", 1e2: "100", 1e3: "1,000", 1e4: "10⁴", 1e5: "10⁵", 1e6: "10⁶",
    1e7: "10⁷",
}  # fmt: skip


def write_pages(measurements):
    """Write the tables and the chart, and the machines into docs/benchmarks.md."""
    write_csv(ROWS, HEAD, rows(measurements))
    write_csv(GROWTH, ("workload", "what", "peer", "equipoise_power", "peer_power"),
              growth(measurements))  # fmt: skip
    CHART.write_text(chart(measurements), encoding="utf-8", newline="\n")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_block(text, "machines", machines(measurements)), encoding="utf-8")


def write_csv(path, head, lines):
    """Write a table as CSV."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(lines)


def rows(measurements):
    """Yield the rows of the table of workloads."""
    names = letters(measurements)
    for measurement in measurements:
        for row in measurement.rows:
            limit = row.seconds / row.limit_seconds if row.limit_seconds else None
            yield (
                row.workload, row.what, row.size, row.peer,
                *map(digits, (row.peer_seconds, row.seconds, row.ratio)), row.over or "peer",
                goal_of(row), row.reached if row.has_goal else "", digits(limit),
                digits(row.memory_mb), row.limit, row.note, names[measurement.facts],
                measurement.day,
            )  # fmt: skip


def growth(measurements):
    """Yield the rows of the table of fitted exponents."""
    for names, powers in exponents(rows_of(measurements)).items():
        yield *names, *(f"{power:.2f}" for power in powers)


def chart(measurements):
    """Return the chart of ratios to peers: each workload at its largest size."""
    ratios = {}
    for row in rows_of(measurements):
        if not row.over:
            ratios.setdefault(f"{row.workload}: {row.what}", {})[row.peer] = row.ratio
    lines = [DotRow(what, [*by_peer.values()]) for what, by_peer in ratios.items()]
    axis = Axis("time of the peer / time of equipoise", TICKS, 1.0, math.log10)
    return dot_chart("How many times faster than each peer", axis, lines)


def machines(measurements):
    """Return the list of machines."""
    lines = [
        "- Machine {}: {processor}; {cores} cores; {memory}; {system}; {libraries}".format(
            letter, **dict(facts)
        )
        for facts, letter in letters(measurements).items()
    ]
    return "\n".join(lines)


def letters(measurements):
    """Return a letter for each machine: A has the earliest day."""
    ordered = sorted(measurements, key=lambda measurement: measurement.day)
    return lettered(measurement.facts for measurement in ordered)


def lettered(names):
    """Return a letter for each name: A for the first one, then in order."""
    return dict(zip(dict.fromkeys(names), ascii_uppercase, strict=False))


def rows_of(measurements):
    """Return the rows of all workloads."""
    return [*chain.from_iterable(measurement.rows for measurement in measurements)]


def digits(number):
    """Return a number with three digits; an empty cell for None."""
    return "" if number is None else f"{float(f'{number:.3g}'):.10g}"


def with_block(text, name, block):
    """Return a page with the block between the markers of a name replaced."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, remainder = text.split(start)
    after = remainder.split(end)[1]
    return f"{before}{start}\n{block}\n{end}{after}"
