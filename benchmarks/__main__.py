"""Run the workloads, each in a process of its own, and write the tables.

    python -m benchmarks [--only w3 ...] [--quick | --keep]

`--keep` puts what was measured in the place of these workloads' lines in the record beside this
file, and makes docs/benchmarks.md of it anew; `--page` makes the page alone. Nothing is written
otherwise.

Libraries choose their kernels for the processor, as they do for users: variables that name another
processor to them (`OPENBLAS_CORETYPE` and the like) are taken out of the environment first.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.harness import Row, line, write
from benchmarks.pages import PAGE, write_page
from benchmarks.record import keep, recorded

HERE = Path(__file__).parent
# What libraries of linear algebra read before they look at the processor.
NAMING = (
    "ATEN_CPU_CAPABILITY",
    "MKL_DEBUG_CPU_TYPE",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
)


def main():
    """Measure what was asked for, and keep it if so."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = modules()
    parser.add_argument(
        "--only", choices=names, nargs="+", action="extend", metavar="w3", help=", ".join(names)
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round each")
    parser.add_argument("--keep", action="store_true", help="record, and write the page")
    parser.add_argument("--page", action="store_true", help="write the page of the record")
    chosen = parser.parse_args()
    if chosen.page and (chosen.keep or chosen.quick or chosen.only):
        parser.error("--page measures nothing: leave out the others")
    if chosen.quick and chosen.keep:
        parser.error("--keep records whole runs: leave out --quick")
    for name in () if chosen.page else chosen.only or names:
        measure(name, quick=chosen.quick, keep_rows=chosen.keep)
    if chosen.keep or chosen.page:
        write_page(recorded())
        write(f"wrote {PAGE.name}")


def unnamed(environment):
    """Return the environment without what names a processor to libraries."""
    return {name: value for name, value in environment.items() if name not in NAMING}


def modules():
    """Return the names of the workloads that exist."""
    return sorted(path.stem for path in HERE.glob("w*.py"))


def measure(name, *, quick, keep_rows):
    """Run a workload, tell its rows as they come, and record them if they are to be kept."""
    rows = []
    for row in run(name, quick=quick):
        rows.append(row)
        write(line(row))
    if keep_rows:
        keep(name, rows)


def run(name, *, quick):
    """Run a workload in a process of its own, and yield its rows as they come."""
    command = [sys.executable, "-m", f"benchmarks.{name}", "--json", *["--quick"] * quick]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as process:  # noqa: S603
        for text in process.stdout or ():
            yield Row(**json.loads(text))
    if process.returncode:
        sys.exit(f"benchmarks.{name} failed with exit code {process.returncode}")


if __name__ == "__main__":
    if (plain := unnamed(os.environ)) != dict(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], plain)  # noqa: S606
    main()
