"""Keep the numbers of every example, demo and comparison, and find what a change does to them.

    python -m tools.frozen record --out DIR [--only NAME ...]
    python -m tools.frozen compare DIR [--only NAME ...] [--rtol R] [--numbers]

Read are files that a user sees: every Parquet table of a run, the counts of its manifest, and what
`--json` prints. Rows are compared by key (audit, model, metric, subject, groups, version, and what
else it takes), so their order does not matter, and neither do new columns and tables. A run that
takes others makes them first. DIR/inputs has the data sets and models of the runs, so `compare`
needs nothing of the commit that was recorded.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tools.frozen_runs import ROOT, all_runs, execute
from tools.frozen_tables import Table, differences, document, encoded, table_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Record or compare; the exit code is 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.frozen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording, comparing = commands.add_parser("record"), commands.add_parser("compare")
    recording.add_argument("--out", type=Path, required=True, dest="folder")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("--rtol", type=float, default=0.0, help="relative tolerance of numbers")
    comparing.add_argument("--numbers", action="store_true", help="leave out sentences")
    for one in (recording, comparing):
        one.add_argument("--only", nargs="+", choices=all_runs(), metavar="NAME", default=[])
    chosen = parser.parse_args(arguments)
    names = chosen.only or list(all_runs())
    if chosen.command == "record":
        record(chosen.folder, names)
        return 0
    return compare(chosen.folder, names, chosen.rtol, chosen.numbers)


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def record(folder: Path, names: Sequence[str]) -> None:
    """Make the runs and write their tables."""
    inputs = folder / "inputs"
    if not inputs.exists():
        command = [sys.executable, "-m", "tools.frozen_inputs", str(inputs.resolve())]
        subprocess.run(command, cwd=ROOT, check=True)
    for name, tables in made(folder, names):
        for table, content in tables.items():
            path = folder / "runs" / name / f"{table}.jsonl.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps({"key": content.key}), *map(encoded, content.rows)]
            path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def compare(folder: Path, names: Sequence[str], rtol: float, numbers: bool) -> int:
    """Make the runs again and print each difference from the recorded tables."""
    total = 0
    for name, tables in made(folder, names):
        for table, before in recorded(folder / "runs" / name).items():
            if table not in tables:
                found = [("", "", "a table", "lost")]
            else:
                after = Table(before.key, tables[table].rows)
                found = list(differences(before, after, rtol, numbers))
            for key, column, old, new in found:
                write(f"{name} {table} [{key}] {column}: {old!r} -> {new!r}")
            total += len(found)
        for table in sorted(tables.keys() - recorded(folder / "runs" / name).keys()):
            write(f"{name} {table}: a new table, not compared")
    write(f"{total} differences")
    return int(total > 0)


def made(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Table]]]:
    """Make runs, those that they need before them, and yield their tables."""
    runs = all_runs()
    with tempfile.TemporaryDirectory(prefix="frozen-") as scratch:
        for name in dict.fromkeys(name for one in names for name in (*runs[one].needs, one)):
            begun = time.monotonic()
            place = execute(runs[name], folder / "inputs", Path(scratch))
            if name in names:
                places = {str(scratch): "RUNS", str((folder / "inputs").resolve()): "INPUTS"}
                tables = dict(read_tables(place, places))
                rows = sum(len(table.rows) for table in tables.values())
                write(
                    f"{name}: {len(tables)} tables, {rows} rows, {time.monotonic() - begun:.0f} s"
                )
                yield name, tables


def read_tables(folder: Path, places: Mapping[str, str]) -> Iterator[tuple[str, Table]]:
    """Yield the tables of all that a run wrote, with its folder before the name.

    `places` has the folders that JSON documents may name, and what stands for each.
    """

    def values(path: Path) -> Any:
        text = path.read_text(encoding="utf-8")
        for place, name in places.items():
            text = text.replace(place, name)
        return json.loads(text)

    root = folder / "run"
    for path in sorted(root.rglob("*.parquet")):
        rows = pq.read_table(path).to_pylist()
        yield path.relative_to(root).with_suffix("").as_posix().replace("/", "."), table_of(rows)
    for path in sorted(root.rglob("manifest.json")):
        name = path.with_name("counts").relative_to(root).as_posix().replace("/", ".")
        yield name, document(values(path).get("counts", {}))
    for path in sorted(folder.glob("*.json")):
        yield f"output.{path.stem}", document(values(path))
    for path in sorted(root.glob("*.md")):
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [{"line": number, "text": line} for number, line in enumerate(lines, 1)]
        yield f"output.{path.stem}", Table(("line",), tuple(rows))
    for path in sorted(root.rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            yield f"output.{path.stem}", table_of(list(csv.DictReader(file)))
    pictures = {path.name: sha256(path.read_bytes()).hexdigest() for path in root.rglob("*.png")}
    if pictures:
        yield "output.pictures", document(pictures)


def recorded(folder: Path) -> dict[str, Table]:
    """Return the tables of a run that was recorded."""
    tables = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        first, *lines = gzip.decompress(path.read_bytes()).decode().split("\n")
        name = path.name.removesuffix(".jsonl.gz")
        tables[name] = Table(tuple(json.loads(first)["key"]), tuple(map(json.loads, lines)))
    return tables


if __name__ == "__main__":
    sys.exit(main())
