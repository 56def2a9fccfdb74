"""Damage what has checksums: evidence, runs and tables never read as other numbers."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq

from tools.soak.fuzz import damage_file
from tools.soak.injection import Bench, Change, tree
from tools.soak.table import Row
from tools.soak.work import in_process
from tools.soak.writers import writer_of

_EVIDENCE = ("Extraction", "Embeddings of texts", "Generation")
_RUNS = ("New audit",)


def damaged(
    case: str, folder: Path, count: int, seed: int, change: Change | None = None
) -> tuple[int, list[str]]:
    """Damage evidence, and run its writer again; one that was changed, until a result is another.

    Returns
    -------
    tried : int
    failures : list of str
        Where the next run neither refuses the file by its name, nor computes it again, nor reads
        from it what it held before.
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
        before = _content(file)
        damage_file(file, chance)
        outcome = bench.run()
        if outcome.state == "refused" and file.name in outcome.message:
            continue
        name = file.relative_to(bench.folder).as_posix()
        others = {other for other, _ in tree(bench.folder).items() ^ bench.new.items()}
        if outcome.state != "done" or others - {name}:
            problem = outcome.message or f"other bytes in {min(others - {name})}"
        elif others and _content(file) != before:
            problem = "it is kept, and reads as other values"
        else:
            continue
        failures.append(f"{case}, damage {number} of {file.name}: {problem}")
        if change:
            break
    return count, failures


def _content(file: Path) -> object:
    """Return what a part holds, or that it can't be read: the checksums are not asked."""
    try:
        table = pq.read_table(file, partitioning=None)
        return table.schema.metadata, table.to_pydict()
    except Exception as error:  # noqa: BLE001 - whatever damage leads to
        return repr(error)


def _read_run(run: Path) -> str:
    """Return a digest of the findings and tables of a run."""
    from equipoise.core.finding import findings_to_table
    from equipoise.report import read

    result = read(run)
    tables = {name: table.to_pydict() for name, table in sorted(result.tables.items())}
    findings = findings_to_table(result.findings).to_pydict()
    return sha256(repr([findings, tables]).encode()).hexdigest()


def damaged_run(case: str, folder: Path, count: int, seed: int) -> tuple[int, list[str]]:
    """Damage the tables of a run, and read it; returns as `damaged`."""
    from equipoise.core import EquipoiseError

    bench = Bench(writer_of(case), folder)
    run, whole = bench.folder / "runs" / "r", folder / "whole"
    expected = _read_run(run)
    shutil.copytree(run, whole)
    failures = []
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
            if file.name not in str(error):
                failures.append(f"{case}, damage {number}: no file is named: {error}")
        except Exception as error:  # noqa: BLE001 - whatever escapes is what is looked for
            failures.append(f"{case}, damage {number} of {file.name}: {error!r}")
    return count, failures


def damages(folder: Path, count: int, seed: int) -> Iterator[Row]:
    """Damage evidence and runs, which have checksums; yield a row for each kind."""
    checks: list[tuple[str, Callable[..., tuple[int, list[str]]]]]
    checks = [*((case, damaged) for case in _EVIDENCE), *((case, damaged_run) for case in _RUNS)]
    for case, check in checks:
        own = folder / f"damaged-{case}".replace(" ", "-")
        own.mkdir(parents=True)
        tried, failures = in_process(check, case, own, count, seed)
        yield Row("Damaged evidence", case, tried, tried - len(failures), tuple(failures))
