"""Run the workloads, each in a process of its own, and write the tables.

    python -m benchmarks [--only w3] [--quick]

docs/benchmarks.md and the block in README.md are written when everything ran.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness import Row, exponents, line, machine, seconds, times_of, write

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
README = HERE.parent / "README.md"
START, END = "<!-- benchmarks -->", "<!-- /benchmarks -->"

INTRODUCTION = """\
# Benchmarks

`make bench` wrote this page on {day}; `python -m benchmarks --only w3 --quick` runs one workload at
its smallest size. Each row times equipoise and a peer, alternated in one process after a warm-up,
and checks first that both give the same numbers. Both sides have one BLAS thread; equipoise spreads
its kernels over the cores, and the results have the same bytes on any number of them.

| | |
|---|---|
{facts}

What the columns say:

- **peer, its time, our time**: the usual or the strongest other way to compute the number, and the
  medians of wall time. Compiling kernels, once on a machine, is not in them.
- **ratio, goal**: the peer's time over ours, and the ratio that was set before anything was built;
  rows without a goal show growth, or a whole task.
- **× limit**: our time over the least that this machine needs for the work, estimated as told in
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
measure, the goal of 1.5× depends on the machine: where torch multiplies matrices faster than numpy
does, the limit itself is below it.
""",
}
"""What must be known of a workload to read its ratios."""


def main() -> None:
    """Run what was asked for; write the pages when it was everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", choices=modules(), action="append", help="a workload")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round each")
    chosen = parser.parse_args()
    found = []
    for name in chosen.only or modules():
        for row in run(name, quick=chosen.quick):
            found.append(row)
            write(line(row))
    if chosen.only or chosen.quick:
        return
    PAGE.write_text(page(found), encoding="utf-8")
    README.write_text(with_block(README.read_text(encoding="utf-8"), short(found)), "utf-8")
    write(f"wrote {PAGE.name} and the block in {README.name}")


def modules() -> list[str]:
    """Return the names of the workloads that exist."""
    return sorted(path.stem for path in HERE.glob("w*.py"))


def run(name: str, *, quick: bool) -> Iterator[Row]:
    """Run a workload in a process of its own, and yield its rows as they come."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *["--quick"] * quick]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as process:  # noqa: S603
        for told in process.stdout or ():
            yield Row(**json.loads(told))
    if process.returncode:
        sys.exit(f"benchmarks.{name} failed with exit code {process.returncode}")


def page(rows: Sequence[Row]) -> str:
    """Return docs/benchmarks.md."""
    facts = "\n".join(f"| {name} | {value} |" for name, value in machine().items())
    day = datetime.now(UTC).date().isoformat()
    parts = [INTRODUCTION.format(day=day, facts=facts)]
    for workload in dict.fromkeys(row.workload for row in rows):
        ones = [row for row in rows if row.workload == workload]
        about = [ABOUT[workload]] if workload in ABOUT else []
        parts += [f"## {workload}\n", *about, *full(ones), "", *notes(ones)]
    return "\n".join([*parts, *growth(rows)]) + "\n"


def full(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table with all columns but the notes."""
    yield "| what | size | peer | its time | our time | ratio | goal | × limit | memory |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        limit = f"{row.seconds / row.limit_seconds:.1f}" if row.limit_seconds else ""
        memory = "" if row.memory_mb is None else f"{row.memory_mb:,.0f} MB"
        cells = (row.what, row.size, row.peer, seconds(row.peer_seconds), seconds(row.seconds))
        yield table_line(*cells, times_of(row.ratio), goal(row), limit, memory)


def notes(rows: Iterable[Row]) -> list[str]:
    """Return what must be known about rows: of each limit and peer, at the largest size."""
    told: dict[tuple[str, str], str] = {}
    for row in rows:
        if row.limit:
            told[row.what, ""] = f"- {row.what}, limit: {row.limit}."
        if row.note:
            told[row.what, row.peer] = f"- {row.what}, {row.peer}: {row.note}."
    return [*told.values(), ""] if told else []


def growth(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of fitted exponents."""
    found = exponents(rows)
    if not found:
        return
    yield "## Growth\n"
    yield "Time grows as size to this power, fitted over the sizes above; 1 is linear.\n"
    yield table_line("workload", "what", "peer", "equipoise", "the peer")
    yield "|---|---|---|--:|--:|"
    for names, powers in found.items():
        yield table_line(*names, *(f"{power:.2f}" for power in powers))


def short(rows: Iterable[Row]) -> str:
    """Return the table of the README: rows that have a goal, each at its largest size."""
    held = {(row.what, row.peer, row.goal): row for row in rows if row.goal is not None}
    lines = [
        "| | what | peer | its time | our time | ratio | goal |",
        "|---|---|---|--:|--:|--:|--:|",
    ]
    for row in held.values():
        what, times = f"{row.what}, {row.size}", (row.peer_seconds, row.seconds)
        cells = (row.workload, what, row.peer, *map(seconds, times))
        lines.append(table_line(*cells, times_of(row.ratio), goal(row)))
    return "\n".join(lines)


def goal(row: Row) -> str:
    """Return a goal, and whether it was missed."""
    if row.goal is None:
        return ""
    return f"{row.goal:,g}×" if row.reached else f"{row.goal:,g}×, missed"


def table_line(*cells: str) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def with_block(text: str, block: str) -> str:
    """Return a page with the block between its markers replaced."""
    before, rest = text.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{block}\n{END}{after}"


if __name__ == "__main__":
    main()
