"""Measure how many small mistakes in the statistics and the metrics the tests catch.

    python -m tools.mutants --seed 18 --count 80 --store FILE

Seeded mutations of the source are tried one by one in a copy of a commit. Each runs tests of its
room, `tests/stats` or `tests/metrics`, within a limit of CPU time, up to the first failure. The
chosen tests take at most half of that limit without a mutation. They are chosen in this order:

1. test files that are named after the module, or that mention the function or class of the change;
2. test files that mention a function or class that mentions it, and so on through the room;
3. all others.

Tests of over 5 seconds come last in each step; shorter files come first. FILE is written after each
mutant, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tools.mutations import Mutation, draw, find_sites

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("stats", "metrics")
LONG = 5.0
# Mutants that run out of time are caught if the same tests, unmutated and compiled anew, take less.
WELL_WITHIN = 2 / 3
PLAN = "EQUIPOISE_MUTANT_PLAN"
Record = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Try each mutant and print its outcome."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--store", type=Path, required=True, help="JSON file of the results")
    parser.add_argument("--commit", default="HEAD", help="commit whose copy is mutated")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds for each mutant")
    parser.add_argument("--work", type=Path, help="folder of the copy, kept to resume")
    chosen = parser.parse_args(arguments)
    commit = git("rev-parse", chosen.commit).decode().strip()
    work = chosen.work or Path(tempfile.gettempdir()) / f"equipoise-mutants-{commit[:12]}"
    tree = Tree(work, commit)
    sites = find_sites(tree.folder, [f"src/equipoise/{room}" for room in ROOMS])
    record = {"seed": chosen.seed, "commit": commit, "count": chosen.count, "limit": chosen.limit}
    record = resumed(chosen.store, {**record, "sites": len(sites)})
    for mutation in draw(sites, chosen.seed, chosen.count)[len(record["mutants"]) :]:
        outcome = try_mutant(tree, mutation, chosen.limit)
        record["mutants"].append({**outcome, **asdict(mutation)})
        write(f"{outcome['outcome']:9} {mutation.file}:{mutation.line}  {change(mutation)}")
        save(chosen.store, record)
    write(f"caught {record['caught']} of {len(record['mutants'])}: {record['share_caught']:.1%}")


def write(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def change(mutation: Mutation) -> str:
    """Return the change on one line."""
    return " ".join(f"{mutation.before} -> {mutation.after}".split())


def git(*arguments: str) -> bytes:
    """Return what git prints."""
    return subprocess.check_output(["git", "-C", str(ROOT), *arguments])  # noqa: S607


def resumed(store: Path, record: Record) -> Record:
    """Return the stored record of the same run, or a new one."""
    if not store.exists():
        return {**record, "mutants": []}
    stored: Record = json.loads(store.read_text(encoding="utf-8"))
    if {key: stored.get(key) for key in record} != record:
        raise SystemExit(f"{store} has the results of other options: choose another file")
    return stored


def save(store: Path, record: Record) -> None:
    """Write the record with the share of mutants that were caught."""
    mutants = record["mutants"]
    record["caught"] = sum(is_caught(one, record["limit"]) for one in mutants)
    record["share_caught"] = record["caught"] / len(mutants)
    partial = store.with_name(f"{store.name}.partial")
    partial.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(store)


def is_caught(mutant: Record, limit: float) -> bool:
    """Return whether a test failed, or ran out of time that is ample without the mutation."""
    if mutant["outcome"] == "timed out":
        return bool(mutant["unmutated_seconds"] <= WELL_WITHIN * limit)
    return bool(mutant["outcome"] == "caught")


def try_mutant(tree: Tree, mutation: Mutation, limit: float) -> Record:
    """Run the chosen tests on one mutated file."""
    tests = choose(tree, mutation, limit / 2)
    path = tree.folder / mutation.file
    original, stamp = path.read_bytes(), path.stat()
    try:
        path.write_bytes(mutation.apply(original))
        code, seconds, failed = tree.run_tests(tests, limit)
        outcome = {0: "survived", -signal.SIGXCPU: "timed out", -signal.SIGKILL: "timed out"}
        found: Record = {"outcome": outcome.get(code, "caught"), "test": failed}
        found |= {"tests": len(tests), "seconds": round(seconds, 1)}
        if found["outcome"] == "timed out":
            path.write_bytes(original)
            found["unmutated_seconds"] = round(tree.run_tests(tests, 10 * limit)[1], 1)
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    return found


class Tree:
    """A copy of a commit in which tests run, with caches that outlive a run."""

    def __init__(self, work: Path, commit: str) -> None:
        self.work, self.folder, self.kernels = work, work / "tree", work / "kernels"
        self._seconds: dict[str, dict[str, float]] = {}
        # Times of files are those of the commit, so caches of compiled code stay valid.
        with tarfile.open(fileobj=BytesIO(git("archive", commit))) as archive:
            archive.extractall(self.folder, filter="data")
        shared = work / "shared"
        if (ROOT.parent / "shared").is_dir() and not shared.is_symlink():
            shared.symlink_to((ROOT.parent / "shared").resolve())

    def seconds(self, room: str) -> dict[str, float]:
        """Return the CPU seconds of each unmutated test of a room."""
        path = self.work / f"seconds-{room}.json"
        if not path.exists():
            self._measure(room, path)
        if room not in self._seconds:
            self._seconds[room] = json.loads(path.read_text(encoding="utf-8"))
        return self._seconds[room]

    def _measure(self, room: str, path: Path) -> None:
        write(f"measuring the unmutated tests of {room}, twice: the first run fills the caches")
        for _ in range(2):
            plan = {"folder": f"tests/{room}", "seconds": str(path.with_suffix(".partial"))}
            code, _, failed = self._pytest(plan, self.kernels, 36_000)
            if code:
                raise SystemExit(f"the unmutated tests of {room} fail: {failed or code}")
        path.with_suffix(".partial").replace(path)

    def run_tests(self, tests: Sequence[str], limit: float) -> tuple[int, float, str]:
        """Run tests in order; return the exit status, CPU seconds and the test that failed."""
        kernels = self.work / "kernels-of-mutant"
        shutil.rmtree(kernels, ignore_errors=True)
        # Kernels of other files are reused; numba replaces files whole, so links protect ours.
        shutil.copytree(self.kernels, kernels, copy_function=os.link)
        return self._pytest({"tests": list(tests)}, kernels, limit)

    def _pytest(self, plan: Record, kernels: Path, limit: float) -> tuple[int, float, str]:
        failed, base = self.work / "failed", self.work / "temporary"
        failed.write_text("")
        (self.work / "plan.json").write_text(json.dumps({**plan, "failed": str(failed)}))
        kernels.mkdir(exist_ok=True)
        paths = os.pathsep.join([str(self.folder / "src"), str(ROOT)])
        names = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(kernels), "OMP_NUM_THREADS": "1"}
        names[PLAN] = str(self.work / "plan.json")
        files = dict.fromkeys(test.partition("::")[0] for test in plan.get("tests", ()))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tools.mutants", f"--basetemp={base}", *(files or [plan["folder"]])]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            code = subprocess.run(
                ["/bin/sh", "-c", f'ulimit -c 0 -t {int(limit)}; exec "$@"', "sh", *command],
                cwd=self.folder,
                env={**os.environ, **names},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=20 * limit,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"no tests ran: exit status {code} of {' '.join(command)}")
        return code, spent, failed.read_text()


def choose(tree: Tree, mutation: Mutation, budget: float) -> list[str]:
    """Return the tests of the mutated room in order, as many as fit the CPU seconds."""
    room = mutation.file.split("/")[2]
    seconds = tree.seconds(room)
    ranks = file_ranks(tree.folder, mutation, {test.partition("::")[0] for test in seconds})
    whole: dict[str, float] = {}
    for test, one in seconds.items():
        file = test.partition("::")[0]
        whole[file] = whole.get(file, 0.0) + one

    def key(test: str) -> tuple[int, bool, float, str]:
        file = test.partition("::")[0]
        return ranks[file], seconds[test] > LONG, whole[file], file

    chosen, left = [], budget
    for test in sorted(seconds, key=key):
        if seconds[test] <= left:
            left -= seconds[test]
            chosen.append(test)
    return chosen


def file_ranks(root: Path, mutation: Mutation, files: set[str]) -> dict[str, int]:
    """Return how far each test file is from a mutation, by the names that it mentions."""
    room, module = Path(mutation.file).parts[2], Path(mutation.file).with_suffix("")
    parts = [part.strip("_") for part in module.parts[3:] if part != "__init__"]
    texts = {file: (root / file).read_text(encoding="utf-8") for file in files}
    ranks = {file: 0 for file in files if {"_".join(parts), parts[-1]} & stems(file)}
    definitions = dict(definitions_of(root / "src" / "equipoise" / room))
    names, rank = {mutation.name} - {""}, 0
    known = set(names)
    while names:
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        for file in files - ranks.keys():
            if words.search(texts[file]):
                ranks[file] = rank
        names = {name for name, text in definitions.items() if words.search(text)} - known
        known |= names
        rank += 1
    return {file: ranks.get(file, rank) for file in files}


def stems(file: str) -> set[str]:
    """Return the module names that the name of a test file may stand for."""
    words = Path(file).stem.removeprefix("test_").split("_")
    return {"_".join(words[:end]) for end in range(1, len(words) + 1)}


def definitions_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each function and class at the top of the modules of a room."""
    for path in sorted(folder.rglob("*.py")):
        parts = re.split(r"^(?=def |class |@)", path.read_text(encoding="utf-8"), flags=re.M)
        for part in parts:
            if found := re.search(r"^(?:def|class) (\w+)", part, flags=re.M):
                yield found[1], part


# In the process of the tests this module is a plugin of pytest.
_seconds: dict[str, float] = {}


def plan() -> Record:
    """Return the plan of this process of tests."""
    found: Record = json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8"))
    return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of the plan, in its order."""
    if "tests" in plan():
        order = {test: index for index, test in enumerate(plan()["tests"])}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Measure the CPU time of a test with its fixtures."""
    begun = time.process_time()
    result = yield
    _seconds[item.nodeid] = time.process_time() - begun
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the name of the test that failed."""
    if report.failed:
        Path(plan()["failed"]).write_text(report.nodeid, encoding="utf-8")


def pytest_sessionfinish() -> None:
    """Write the CPU time of each test."""
    if "seconds" in plan():
        Path(plan()["seconds"]).write_text(json.dumps(_seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
