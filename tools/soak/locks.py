"""Two writers of the same evidence at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.soak.injection import Bench, Change, tree
from tools.soak.table import Row
from tools.soak.work import in_process
from tools.soak.writers import writer_of

LOCKED: Mapping[str, bool] = {
    "Extraction": True,
    "Embeddings of texts": False,
    "Generation": True,
    "Mitigation, trained": True,
    "train": True,
}
"""Writers, and whether the second is refused; else it computes the same evidence."""
PLACES = (0.3, 0.4, 0.5)
"""Where the first writer stops for the second, as shares of its operations.

All are inside its lock: the last operations of a training write the result, which needs none."""


def clashes(case: str, folder: Path, change: Change | None = None) -> tuple[int, list[str]]:
    """Stop a writer at work and run a second one; return tries and failures."""
    bench = Bench(writer_of(case), folder, change)
    operations, failures = bench.whole.operations, []
    for share in PLACES:
        at = round(share * len(operations))
        where = f"{case}, two writers at {at} ({operations[at - 1]})"
        first, second = bench.clash(at)
        if first.state != "done":
            failures.append(f"{where}: the first: {first.state} {first.message}")
        if second.state != ("refused" if LOCKED[case] else "done"):
            failures.append(f"{where}: the second: {second.state} {second.message}")
        if tree(bench.folder) != bench.new:
            failures.append(f"{where}: the bytes are others")
        again = bench.run()
        if again.state != "done" or tree(bench.folder) != bench.new:
            failures.append(f"{where}: the next run: {again.message or 'other bytes'}")
        if change and failures:
            break
    return len(PLACES), failures


def locked(folder: Path) -> Iterator[Row]:
    """Run two writers at the same time; yield a row for each kind."""
    for case in LOCKED:
        own = folder / f"locked-{case}".replace(" ", "-")
        own.mkdir(parents=True)
        tried, failures = in_process(clashes, case, own)
        wrong = len({failure.partition("): ")[0] for failure in failures})
        yield Row("Two writers", case, tried, tried - wrong, tuple(failures))
