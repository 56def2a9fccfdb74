"""Disturb every operation of every writer, and compare what is there with undisturbed work."""

from __future__ import annotations

import importlib
import os
import pickle
import random
import re
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from tools.soak.faults import END, ERRORS, Disk, Fault, Kind
from tools.soak.table import Row
from tools.soak.work import in_process
from tools.soak.writers import Writer, here, writer_of, writers

EDGE = 8
"""Operations at each end that are always disturbed; of those between a sample as large is."""
_HIDDEN = re.compile(r"\.[^/]+\.[0-9a-f]{8}\.(partial|old)(/|$)")
_FREE = frozenset({"lock", "rate.json"})
_SECONDS = 60

Tree = Mapping[str, str]
Change = Callable[[], object]
"""A change of the product, in a process of its own."""


@dataclass(frozen=True)
class Outcome:
    """What became of work in a process of its own."""

    state: str
    message: str = ""
    named: bool = False
    operations: tuple[str, ...] = ()
    versions: Mapping[str, Sequence[str]] | None = None
    modules: tuple[str, ...] = ()


class _Clock(datetime):
    """A clock that stands still: times are in manifests."""

    @classmethod
    def now(cls, tz: Any = None) -> _Clock:
        return cls(2026, 1, 1, tzinfo=tz or UTC)


def _stop_clocks() -> None:
    clock = time.perf_counter
    still = lambda: 0.0  # noqa: E731
    time.perf_counter = still
    for name, module in [*sys.modules.items()]:
        if name.startswith("equipoise"):
            if getattr(module, "perf_counter", None) is clock:
                module.perf_counter = still  # type: ignore[attr-defined]
            if getattr(module, "datetime", None) is datetime:
                module.datetime = _Clock  # type: ignore[attr-defined]


def _child(work: Callable[[], Outcome], meanwhile: Callable[[], object] | None = None) -> Outcome:
    """Do work in a fork of this process; return its outcome, or that it was killed.

    Parameters
    ----------
    work : callable
    meanwhile : callable, optional
        What to do while the fork has stopped itself; the fork goes on after it.
    """
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(reading)
            made = work()
            with open(writing, "wb") as pipe:  # noqa: PTH123
                pickle.dump(made, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    if meanwhile is not None and os.WIFSTOPPED(os.waitpid(process, os.WUNTRACED)[1]):
        try:
            meanwhile()
        finally:
            os.kill(process, signal.SIGCONT)
    with open(reading, "rb") as pipe:  # noqa: PTH123
        content = pipe.read()
    # Who waited for a stop has met the end of a process that did not stop.
    with suppress(ChildProcessError):
        status = os.waitpid(process, 0)[1]
        if not content and os.WTERMSIG(status) != signal.SIGKILL:
            return Outcome("bug", f"the process ended with {status}")
    if not content:
        return Outcome("killed")
    outcome: Outcome = pickle.loads(content)  # noqa: S301 - of our own fork
    return outcome


def _performed(writer: Writer, folder: Path, fault: Fault | None, change: Change | None) -> Outcome:
    """Run a writer in this process, which ends after it."""
    from equipoise.core import EquipoiseError

    signal.alarm(_SECONDS)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    disk = Disk(folder, folder.with_name("spare"), fault or Fault())
    _stop_clocks()
    if fault is not None:
        disk.install()
    # After the watch, so that what a change leaves out isn't seen as done.
    if change is not None:
        change()
    try:
        here(folder, writer.run)
    except EquipoiseError as error:
        message = str(error)
        named = any(name in message for name in writer.names) and ".partial" not in message
        return Outcome("refused", message, named)
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome("bug", f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})")
    disk.finish()
    return Outcome(
        "done", "", True, tuple(disk.operations), disk.versions,
        tuple(sys.modules),
    )  # fmt: skip


def tree(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder; "" for a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        )
        for path in folder.rglob("*")
        if path.name not in _FREE
    }


def _visible(files: Tree) -> dict[str, str]:
    return {name: digest for name, digest in files.items() if not _HIDDEN.search(name)}


def _under(files: Tree, folder: str) -> dict[str, str]:
    start = f"{folder}/"
    return {name: digest for name, digest in files.items() if name.startswith(start)}


class Bench:
    """A writer in a folder, with its old state and what undisturbed work makes of it.

    Parameters
    ----------
    writer : Writer
    folder : Path
    change : callable, optional
        Changes the product in every process that works.
    """

    def __init__(self, writer: Writer, folder: Path, change: Change | None = None) -> None:
        self.writer, self.change = writer, change
        self.folder, self.start = folder / "work", folder / "start"
        self._begin()
        self.old = tree(self.start)
        self.whole = self._run(Fault())
        if self.whole.state != "done":
            raise RuntimeError(f"{writer.case}, undisturbed: {self.whole.message}")
        self.new = tree(self.folder)
        for name in self.whole.modules:
            with suppress(Exception):
                importlib.import_module(name)

    def _begin(self) -> None:
        def begin() -> Outcome:
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            _stop_clocks()
            try:
                here(self.folder, self.writer.begin)
            except BaseException:  # noqa: BLE001
                return Outcome("bug", traceback.format_exc())
            return Outcome("done")

        begun = _child(begin)
        if begun.state != "done":
            raise RuntimeError(f"{self.writer.case}, old state: {begun.message}")
        self.folder.rename(self.start)

    def run(self) -> Outcome:
        """Run the writer over what lies there, undisturbed."""
        return _child(lambda: _performed(self.writer, self.folder, None, self.change))

    def clash(self, at: int) -> tuple[Outcome, Outcome]:
        """Stop the writer at an operation, run another; return the outcomes of both."""
        second: list[Outcome] = []
        first = self._run(Fault("stop", at), lambda: second.append(self.run()))
        return first, second[0] if second else Outcome("bug", "the first writer did not stop")

    def _run(self, fault: Fault, meanwhile: Callable[[], object] | None = None) -> Outcome:
        """Disturb the writer at its old state."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.folder.with_name("spare"), ignore_errors=True)
        shutil.copytree(self.start, self.folder, symlinks=True)
        return _child(lambda: _performed(self.writer, self.folder, fault, self.change), meanwhile)

    def problems(self, fault: Fault) -> Iterator[str]:
        """Yield what is not as promised where a fault disturbs the writer."""
        outcome = self._run(fault)
        files = tree(self.folder)
        if fault.kind == "fail":
            yield from self._unclear(outcome, files)
        elif outcome.state not in ("killed", "done"):
            yield f"before the fault: {outcome.message}"
        if fault.kind == "cut" and fault.at == END:
            yield from self._lost(files)
        elif fault.kind in ("fail", "kill"):
            yield from self._torn(files)
        yield from self._after(finished=_visible(files) == self.new)

    def _unclear(self, outcome: Outcome, files: Tree) -> Iterator[str]:
        if outcome.state == "bug" or (outcome.state == "refused" and not outcome.named):
            yield f"no clear error: {outcome.message}"
        elif outcome.state == "killed":
            yield "the process died"
        elif outcome.state == "done" and self._needed(_visible(files)) != self._needed(self.new):
            yield f"said to be done, and is not: {_difference(_visible(files), self.new)}"

    def _needed(self, files: Tree) -> dict[str, str]:
        """Return the files without those that only save time."""
        optional = self.writer.optional
        return {
            name: digest
            for name, digest in files.items()
            if not optional or not f"{name}/".startswith(f"{optional}/")
        }

    def _lost(self, files: Tree) -> Iterator[str]:
        lost = {name for name, digest in self.new.items() if digest and files.get(name) != digest}
        if lost:
            yield f"a power cut after the end loses {min(lost)}"

    def _torn(self, files: Tree) -> Iterator[str]:
        """Yield files and folders that are neither as before nor as after."""
        versions = self.whole.versions or {}
        for folder in self.writer.whole:
            now = _under(files, folder)
            if now not in ({}, _under(self.old, folder), _under(self.new, folder)):
                yield f"{folder} is neither old nor new"
            if not now and _under(self.old, folder) and not self._aside(folder, files):
                yield f"{folder} is gone"
        for name, digest in _visible(files).items():
            inside = any(name.startswith(f"{folder}/") for folder in self.writer.whole)
            known = {*versions.get(name, ()), self.old.get(name), self.new.get(name)}
            if digest and not inside and digest not in known:
                yield f"{name} is neither old nor new"

    def _aside(self, folder: str, files: Tree) -> bool:
        """Whether a folder of before lies beside its place, for the next run to put back."""
        parent, _, name = folder.rpartition("/")
        start = f"{parent}/.{name}." if parent else f".{name}."
        return any(one.startswith(start) and one.endswith(".old") for one in files)

    def _after(self, *, finished: bool) -> Iterator[str]:
        """Yield what is wrong after the next run."""
        again = self.run()
        files = tree(self.folder)
        refused = again.state == "refused" and finished and self.writer.once
        if again.state != "done" and not refused:
            yield f"the next run: {again.message}"
        elif files != self.new:
            yield f"after the next run: {_difference(files, self.new)}"


def _difference(files: Tree, expected: Tree) -> str:
    for name in sorted(files.keys() | expected.keys()):
        if name not in files:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is left"
        if files[name] != expected[name]:
            return f"{name} has other bytes"
    return "nothing"


def faults(operations: int, seed: int, share: float = 1.0, *, slow: bool = False) -> list[Fault]:
    """Return the faults of a writer with so many operations.

    Parameters
    ----------
    operations : int
    seed : int
        Of the sample of operations far from both ends.
    share : float
        Of the numbers at the ends and between them.
    slow : bool
        Whether each operation has one of the faults, by turns, instead of all three.
    """
    edge = max(round(EDGE * share), 2)
    places = [*range(1, operations + 1)]
    inner = places[edge:-edge]
    sample = random.Random(seed).sample(inner, min(edge, len(inner)))  # noqa: S311
    chosen = sorted({*places[:edge], *places[-edge:], *sample})
    disturbed = [Fault("cut", END)]
    for number, at in enumerate(chosen):
        each = (
            Fault("fail", at, ERRORS[at % len(ERRORS)]),
            Fault("kill", at),
            Fault(("torn", "cut")[at % 2], at),
        )
        disturbed += [each[number % len(each)]] if slow else each
    return disturbed


def disturbed(
    case: str,
    folder: Path,
    seed: int,
    share: float = 1.0,
    change: Change | None = None,
    kinds: Sequence[Kind] = (),
) -> tuple[int, int, int, list[str]]:
    """Disturb one writer; one that was changed, until something is not as promised.

    Returns
    -------
    operations, chosen, tried : int
        Operations, those that were disturbed, and the faults.
    failures : list of str
    """
    writer = writer_of(case)
    bench = Bench(writer, folder, change)
    operations = bench.whole.operations
    failures, chosen = [], faults(len(operations), seed, share, slow=writer.slow)
    for fault in chosen:
        if kinds and fault.kind not in kinds:
            continue
        at = operations[fault.at - 1] if fault.at else "the end"
        failures += [f"{case}, {fault} ({at}): {problem}" for problem in bench.problems(fault)]
        if change and failures:
            break
    places = {fault.at for fault in chosen} - {END}
    return len(operations), len(places), len(chosen), failures


def injections(
    folder: Path, *, seed: int = 0, share: float = 1.0, only: Sequence[str] = ()
) -> Iterator[Row]:
    """Disturb every writer, two at a time; yield a row for each."""
    cases = [one.case for one in writers() if not only or any(word in one.case for word in only)]

    def tested(case: str) -> Row:
        own = folder / re.sub(r"\W+", "-", case)
        own.mkdir(parents=True)
        operations, chosen, tried, failures = in_process(disturbed, case, own, seed, share)
        shutil.rmtree(own, ignore_errors=True)
        wrong = len({failure.partition("): ")[0] for failure in failures})
        text = f"{case}: {chosen} of {operations} operations"
        return Row("Faults of the disk", text, tried, tried - wrong, tuple(failures))

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(tested, cases)
