"""Check what equipoise guarantees, print one table, and keep it in docs/guarantees.md.

    python -m tools.soak [--seed 0] [--keep]

Work is killed at random moments and resumed; files are damaged; inputs of evidence are changed.
It takes about 15 minutes on two cores. The exit code is 1 when a result is not as promised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.soak.fuzz import fuzz
from tools.soak.keys import key_tests
from tools.soak.kills import extraction, fine_tuning, generation, kill_and_resume
from tools.soak.ray_kills import ray_kills
from tools.soak.table import PAGE, Row, keep, table

FUZZED = 2000


def main() -> None:
    """Run every check."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the moments and the damage")
    parser.add_argument("--keep", action="store_true", help=f"write the table into {PAGE.name}")
    chosen = parser.parse_args()
    with TemporaryDirectory(prefix="soak-") as folder:
        rows, seconds = run(Path(folder), chosen.seed)
    sys.stdout.write(f"\n{table(rows)}\n")
    wrong = [failure for row in rows for failure in row.failures]
    if wrong:
        sys.exit("\n".join(["", "Not as promised:", *wrong]))
    if chosen.keep:
        day = datetime.now(UTC).date().isoformat()
        keep(rows, f"Last run: {day}, seed {chosen.seed}, {seconds / 60:.0f} minutes.")


def run(folder: Path, seed: int) -> tuple[list[Row], float]:
    """Run every check in a folder; return the rows and the seconds it took."""
    checks: list[Callable[[], list[Row]]] = [
        lambda: [kill_and_resume(extraction(folder), folder / "extraction", kills=14, seed=seed)],
        lambda: [kill_and_resume(generation(), folder / "generation", kills=12, seed=seed)],
        lambda: [kill_and_resume(fine_tuning(), folder / "both", kills=9, seed=seed)],
        lambda: ray_kills(folder, seed=seed),
        lambda: fuzzed(FUZZED, seed),
        lambda: key_tests(folder / "keys"),
    ]
    began, rows = time.monotonic(), []
    for check in checks:
        for row in check():
            rows.append(row)
            at = time.monotonic() - began
            sys.stdout.write(f"{at:4.0f} s  {row.check}, {row.case}: {row.held} of {row.tried}\n")
            sys.stdout.flush()
    return rows, time.monotonic() - began


def fuzzed(count: int, seed: int) -> list[Row]:
    """Damage files of every format; a file must be read, or refused with an error that names it."""
    rows = []
    for name, files in groupby(fuzz(count, seed), lambda one: one[0]):
        found = [*files]
        bugs = tuple(problem for _, outcome, problem in found if outcome == "bug")
        rows.append(Row("Damaged files", name, len(found), len(found) - len(bugs), bugs))
    return rows


if __name__ == "__main__":
    main()
