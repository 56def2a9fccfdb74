"""Check what equipoise guarantees, print one table, and record it in docs/guarantees.

    python -m tools.soak [--only NAME] [--minutes 15] [--seed 0] [--self-check] [--keep]

Work is killed and resumed; every operation on a disk fails or ends its process; evidence and files
are damaged; inputs of evidence are changed. The first check puts eleven faults into equipoise, and
fails unless the others notice all of them, and nothing without them. The exit code is 1 when a
result is not as promised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.soak.damage import damages
from tools.soak.fuzz import fuzz
from tools.soak.fuzz_formats import formats
from tools.soak.history import label_history
from tools.soak.injection import injections
from tools.soak.keys import SUBJECTS, key_tests
from tools.soak.kills import Task, extraction, fine_tuning, generation, kill_and_resume
from tools.soak.locks import LOCKED, locked
from tools.soak.ray_kills import ray_kills
from tools.soak.seeded import SEEDS, self_check
from tools.soak.table import TABLE, Row, keep, table
from tools.soak.writers import writers

MINUTES = 15
FUZZED = 1500


@dataclass(frozen=True)
class Soak:
    """One run of the soak.

    Attributes
    ----------
    folder : Path
    seed : int
    share : float
        Of the counts of a run of 15 minutes.
    only : tuple of str
        Parts of names of checks or cases; all unless given.
    """

    folder: Path
    seed: int
    share: float = 1.0
    only: tuple[str, ...] = ()

    def wants(self, *names: str) -> bool:
        """Whether a check or case of one of these names is to run."""
        return not self.only or any(
            word.lower() in name.lower() for word in self.only for name in names
        )

    def times(self, count: int, least: int = 1) -> int:
        """Return a count of this run."""
        return max(round(count * self.share), least)


@dataclass(frozen=True)
class Check:
    """A check of the table.

    Attributes
    ----------
    name : str
    cases : sequence of str
        Names by which `--only` finds it, too.
    run : callable
        Takes the soak; returns rows.
    """

    name: str
    cases: Iterable[str]
    run: Callable[[Soak], Iterable[Row]]


def _kills(soak: Soak, name: str, task: Task, kills: int) -> list[Row]:
    return [kill_and_resume(task, soak.folder / name, kills=soak.times(kills, 4), seed=soak.seed)]


def _injected(soak: Soak) -> Iterable[Row]:
    only = () if soak.wants("Faults of the disk") else soak.only
    return injections(soak.folder / "disk", seed=soak.seed, share=soak.share, only=only)


def _keys(soak: Soak) -> Iterable[Row]:
    subjects = tuple(one for one in SUBJECTS if soak.wants("Keys", one.name) or not soak.only)
    return key_tests(soak.folder / "keys", subjects)


def _seeded(soak: Soak) -> Iterable[Row]:
    row = self_check(soak.folder / "seeded")
    sys.stdout.write(f"{row.held} of {row.tried} seeded faults caught\n")
    return [row]


CHECKS = (
    Check("Self-check", SEEDS, _seeded),
    Check(
        "Random kills", ["Extraction"],
        lambda soak: _kills(soak, "extraction", extraction(soak.folder), 14),
    ),
    Check(
        "Random kills", ["Generation"],
        lambda soak: _kills(soak, "generation", generation(), 12),
    ),
    Check(
        "Random kills", ["Mitigation, both towers"],
        lambda soak: _kills(soak, "both", fine_tuning(), 9),
    ),
    Check(
        "Random kills", ["Ray, the run", "Ray, a worker"],
        lambda soak: ray_kills(soak.folder, seed=soak.seed),
    ),
    Check("Faults of the disk", [one.case for one in writers()], _injected),
    Check("Two writers", LOCKED, lambda soak: locked(soak.folder)),
    Check(
        "Labels of people", ["Random kills", "Full disk", "Judgements at the same time"],
        lambda soak: label_history(
            soak.folder / "labels",
            kills=soak.times(20, 4), rounds=soak.times(3), seed=soak.seed,
        ),
    ),
    Check(
        "Damaged evidence", ["Extraction", "Embeddings of texts", "Generation", "New audit"],
        lambda soak: damages(soak.folder, soak.times(60), soak.seed),
    ),
    Check(
        "Damaged files", formats(),
        lambda soak: fuzzed(soak.times(FUZZED, 100), soak.seed),
    ),
    Check("Keys", [one.name for one in SUBJECTS], _keys),
)  # fmt: skip
"""Every check, in the order of the table; a new one is added here."""


def main() -> None:
    """Run every check."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="part of the name of a check or case",
    )
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="scale the counts to about this time"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments and the damage")
    parser.add_argument("--self-check", action="store_true", help="the seeded faults alone")
    parser.add_argument("--keep", action="store_true", help=f"record the table in {TABLE.name}")
    chosen = parser.parse_args()
    only = ("Self-check",) if chosen.self_check else tuple(chosen.only)
    if chosen.keep and only:
        parser.error("--keep is for a run of all checks")
    with TemporaryDirectory(prefix="soak-") as folder:
        soak = Soak(Path(folder), chosen.seed, chosen.minutes / MINUTES, only)
        rows, seconds = run(soak)
    if not rows:
        parser.error(f"no check or case is called {', '.join(only)}")
    sys.stdout.write(f"\n{table(rows)}\n")
    wrong = [failure for row in rows for failure in row.failures]
    if wrong:
        sys.exit("\n".join(["", "Not as promised:", *wrong]))
    if chosen.keep:
        day = datetime.now(UTC).date().isoformat()
        keep(rows, f"Last run: {day}, seed {chosen.seed}, {seconds / 60:.0f} minutes.")


def run(soak: Soak, checks: Iterable[Check] = CHECKS) -> tuple[list[Row], float]:
    """Run checks; return the rows and the seconds they took."""
    began, rows = time.monotonic(), []
    for check in checks:
        if not soak.wants(check.name, *check.cases):
            continue
        for row in check.run(soak):
            rows.append(row)
            at = time.monotonic() - began
            sys.stdout.write(f"{at:4.0f} s  {row.check}, {row.case}: {row.held} of {row.tried}\n")
            sys.stdout.flush()
    return rows, time.monotonic() - began


def fuzzed(count: int, seed: int) -> list[Row]:
    """Damage files of every format; a file must be read, or refused with an error that names it."""
    rows = []
    for name, cases in groupby(fuzz(count, seed), lambda case: case[0]):
        outcomes = [*cases]
        bugs = tuple(problem for _, outcome, problem in outcomes if outcome == "bug")
        other = sum(outcome == "other" for _, outcome, _ in outcomes)
        held = len(outcomes) - len(bugs)
        rows.append(Row("Damaged files", name, len(outcomes), held, bugs, other))
    return rows


if __name__ == "__main__":
    main()
