"""Damage what has checksums: evidence, runs and tables never read as other numbers."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from tools.soak.fuzz import damage_file
from tools.soak.injection import Bench, Change, tree
from tools.soak.table import Row
from tools.soak.work import in_process
from tools.soak.writers import writer_of

_LOCKED = ("Extraction", "Generation", "Mitigation, trained", "train")
_EVIDENCE = ("Extraction", "Embeddings of texts", "Generation")
_RUNS = ("New audit",)


def locks(case: str, folder: Path, change: Change | None = None) -> tuple[int, list[str]]:
    """Run a writer while another process holds its locks; return tries and failures."""
    from filelock import FileLock

    bench = Bench(writer_of(case), folder, change)
    paths = [path.relative_to(bench.folder) for path in bench.folder.rglob("lock")]
    if not paths:
        return 1, [f"{case}: there is no lock"]
    failures = []
    shutil.rmtree(bench.folder)
    shutil.copytree(bench.start, bench.folder)
    for path in paths:
        (bench.folder / path).parent.mkdir(parents=True, exist_ok=True)
        with FileLock(bench.folder / path):
            outcome = bench.run()
        if outcome.state != "refused":
            failures.append(f"{case}: two processes wrote {path.parent}")
    if bench.run().state != "done" or tree(bench.folder) != bench.new:
        failures.append(f"{case}: after the lock the work is another")
    return len(paths), failures


def damaged(
    case: str, folder: Path, count: int, seed: int, change: Change | None = None
) -> tuple[int, int, list[str]]:
    """Damage evidence, and run its writer again.

    Returns
    -------
    tried, noticed : int
    failures : list of str
        Where the result is another than that of whole evidence.
    """
    bench = Bench(writer_of(case), folder, change)
    whole = folder / "whole"
    shutil.copytree(bench.folder, whole)
    failures = []
    for number in range(count):
        shutil.rmtree(bench.folder)
        shutil.copytree(whole, bench.folder)
        parts = sorted(bench.folder.glob("store/**/part-*.parquet"))
        chance = random.Random(f"{seed} {case} {number}")  # noqa: S311 - no secret
        file = chance.choice(parts)
        damage_file(file, chance)
        outcome = bench.run()
        if outcome.state == "refused" and file.name in outcome.message:
            continue
        if outcome.state != "done" or tree(bench.folder) != bench.new:
            failures.append(f"{case}, damage {number} of {file.name}: {outcome.message or 'kept'}")
    return count, count, failures


def _read_run(run: Path) -> str:
    """Return a digest of the findings and tables of a run."""
    from equipoise.core.finding import findings_to_table
    from equipoise.report import read

    result = read(run)
    tables = {name: table.to_pydict() for name, table in sorted(result.tables.items())}
    findings = findings_to_table(result.findings).to_pydict()
    return sha256(repr([findings, tables]).encode()).hexdigest()


def damaged_run(case: str, folder: Path, count: int, seed: int) -> tuple[int, int, list[str]]:
    """Damage the tables of a run, and read it; returns as `damaged`."""
    from equipoise.core import EquipoiseError

    bench = Bench(writer_of(case), folder)
    run, whole = bench.folder / "runs" / "r", folder / "whole"
    expected = _read_run(run)
    shutil.copytree(run, whole)
    failures, noticed = [], 0
    for number in range(count):
        shutil.rmtree(run)
        shutil.copytree(whole, run)
        tables = [run / "findings.parquet", *sorted((run / "tables").glob("*.parquet"))]
        chance = random.Random(f"{seed} {case} {number}")  # noqa: S311 - no secret
        file = chance.choice(tables)
        damage_file(file, chance)
        try:
            if _read_run(run) != expected:
                failures.append(f"{case}, damage {number}: {file.name} reads as other values")
        except EquipoiseError as error:
            noticed += 1
            if file.name not in str(error):
                failures.append(f"{case}, damage {number}: no file is named: {error}")
        except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
            failures.append(f"{case}, damage {number} of {file.name}: {error!r}")
    return count, noticed, failures


def damages(folder: Path, count: int, seed: int) -> Iterator[Row]:
    """Damage evidence and runs, which have checksums; yield a row for each kind."""
    checks: list[tuple[str, Callable[..., tuple[int, int, list[str]]]]]
    checks = [*((case, damaged) for case in _EVIDENCE), *((case, damaged_run) for case in _RUNS)]
    for case, check in checks:
        own = folder / f"damaged-{case}".replace(" ", "-")
        own.mkdir(parents=True)
        tried, _, failures = in_process(check, case, own, count, seed)
        yield Row("Damaged evidence", case, tried, tried - len(failures), tuple(failures))


def locked(folder: Path) -> Iterator[Row]:
    """Run writers while another process holds their locks; yield a row for each."""
    for case in _LOCKED:
        own = folder / f"locked-{case}".replace(" ", "-")
        own.mkdir(parents=True)
        tried, failures = in_process(locks, case, own)
        yield Row("Locks", case, tried, tried - len(failures), tuple(failures))
