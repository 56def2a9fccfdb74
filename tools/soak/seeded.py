"""Eleven faults put into equipoise, to show that the soak notices each.

Each takes the place of a function in a process of its own, and has the cheapest check that can
notice it: most are faults of `core.writing`, and the writer of a single file meets them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import RunError, files, writing
from equipoise.counterfactuals import generation
from equipoise.evidence import extraction, run_labels, store
from equipoise.models import ModelInfo
from equipoise.report import store as report_store
from tools.soak import damage, history, injection, keys, locks
from tools.soak.injection import Change
from tools.soak.table import Row
from tools.soak.work import in_process


def _put(value: Any, name: str, *places: Any) -> None:
    for place in places:
        setattr(place, name, value)


def not_atomic() -> None:
    """Write files in their place."""

    @contextmanager
    def writer(path: Path, *, new: bool = False) -> Iterator[BinaryIO]:  # noqa: ARG001
        with writing.translated(path):
            writing.make_folder(path.parent)
            with path.open("wb+") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            writing.flush_folder(path.parent)

    _put(writer, "writer", writing)


def file_not_flushed() -> None:
    """Rename files whose bytes are not on the disk."""
    flush = os.fsync  # of the disk that is watched

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            flush(descriptor)

    _put(fsync, "fsync", os)


def folder_not_flushed() -> None:
    """Leave names that are not on the disk."""
    _put(lambda _: None, "flush_folder", writing)


def lock_removed() -> None:
    """Let two processes write the same evidence."""

    @contextmanager
    def hold_folder(folder: Path) -> Iterator[bool]:
        folder.mkdir(parents=True, exist_ok=True)
        yield True

    _put(hold_folder, "hold_folder", store, extraction, generation)


def label_lock_removed() -> None:
    """Let two processes change the labels of a run."""
    _put(lambda _: nullcontext(), "lock", run_labels)


def key_without_file() -> None:
    """Forget the files of a model in its key."""
    key = vars(ModelInfo)["key"].fget
    forgetful = property(lambda info: key(replace(info, files={}, weights_sha256="")))
    _put(forgetful, "key", ModelInfo)


def key_without_setting() -> None:
    """Forget the question in the key of evidence."""
    facts = extraction._facts

    def forgetful(*arguments: Any) -> Any:
        return {**facts(*arguments), "question": ""}

    _put(forgetful, "_facts", extraction)


def leftover_kept() -> None:
    """Remove no hidden file that a killed process left."""
    _put(lambda *_: None, "sweep", writing)


def checksum_ignored() -> None:
    """Read tables without their checksums."""

    def read_table(path: Path, columns: Any = None, schema: Any = None) -> pa.Table:
        names = None if columns is None else [*columns]
        return pq.read_table(path, columns=names, schema=schema, partitioning=None)

    _put(read_table, "read_table", files, store, report_store)


def error_swallowed() -> None:
    """Let a writer that fails pass for one that wrote."""
    write = writing.write

    def swallowing(path: Path, data: bytes, *, new: bool = False) -> None:
        with suppress(RunError):
            write(path, data, new=new)

    _put(swallowing, "write", writing)


def part_skipped() -> None:
    """Go on as if the second part lay there, whatever lies there."""
    pieces = store.Ledger.pieces

    def skipping(ledger: Any) -> Iterator[Any]:
        for piece in pieces(ledger):
            interrupted = any(ledger.folder.glob("part-*"))
            if not (interrupted and piece.number == 1 and not piece.have):
                yield piece

    _put(skipping, "pieces", store.Ledger)


Failures = Sequence[str]
Check = Callable[[Path, Change | None], Failures]
Run = Callable[[str, bool], Failures]


def _file(folder: Path, change: Change | None) -> Failures:
    return injection.disturbed("A file", folder, 0, change=change)[-1]


def _parts(folder: Path, change: Change | None) -> Failures:
    return injection.disturbed("Extraction", folder, 0, 0.5, change, kinds=["kill"])[-1]


def _keys(folder: Path, change: Change | None) -> Failures:
    if change is not None:
        change()
    subjects = tuple(one for one in keys.SUBJECTS if one.name == "python: factory")
    return keys.key_tests(folder, subjects)[0].failures


def _locks(folder: Path, change: Change | None) -> Failures:
    return locks.clashes("Extraction", folder, change)[-1]


def _label_lock(folder: Path, change: Change | None) -> Failures:
    if change is not None:
        change()
    return history.locked(folder / "locked").failures


def _damage(folder: Path, change: Change | None) -> Failures:
    return damage.damaged("Embeddings of texts", folder, 20, 0, change)[-1]


@dataclass(frozen=True)
class Seed:
    """A fault, and the cheapest check that is to notice it.

    Attributes
    ----------
    change : callable
        Puts it into this process.
    check : callable
        Takes a folder and the change, or None; returns what is not as promised.
    """

    change: Change
    check: Check


SEEDS: dict[str, Seed] = {
    "writing in place": Seed(not_atomic, _file),
    "missing flush of a file": Seed(file_not_flushed, _file),
    "missing flush of a folder": Seed(folder_not_flushed, _file),
    "leftover not removed": Seed(leftover_kept, _file),
    "error swallowed": Seed(error_swallowed, _file),
    "lock removed": Seed(lock_removed, _locks),
    "lock of labels removed": Seed(label_lock_removed, _label_lock),
    "key without a file": Seed(key_without_file, _keys),
    "key without a setting": Seed(key_without_setting, _keys),
    "checksum not verified": Seed(checksum_ignored, _damage),
    "resume that skips a part": Seed(part_skipped, _parts),
}


def findings(folder: Path, name: str, seeded: bool) -> Failures:
    """Return what the check of a fault finds, in equipoise with the fault or as it is."""
    seed = SEEDS[name]
    return seed.check(folder, seed.change if seeded else None)


def self_check(folder: Path, names: Sequence[str] = (), run: Run | None = None) -> Row:
    """Return how many of the faults are caught.

    A fault is caught when its check notices it, and finds nothing in equipoise as it is.

    Parameters
    ----------
    folder : Path
    names : sequence of str
        All faults unless given.
    run : callable, optional
        Takes the name of a fault and whether it is put in; returns what its check finds. Each runs
        in processes of its own unless given.
    """
    chosen = names or tuple(SEEDS)
    clean = {SEEDS[name].check: name for name in reversed(chosen)}

    def in_own(name: str, seeded: bool) -> Failures:
        own = folder / f"{name}-{seeded}".replace(" ", "-")
        own.mkdir(parents=True)
        found: Failures = in_process(findings, own, name, seeded)
        return found

    work = run or in_own
    with ThreadPoolExecutor(2) as pool:
        whole = {check: pool.submit(work, name, False) for check, name in clean.items()}
        seeded = {name: pool.submit(work, name, True) for name in chosen}
        wrong = {
            name: [*whole[SEEDS[name].check].result()]
            or [f"the seeded fault {name!r} was not noticed"] * (not seeded[name].result())
            for name in chosen
        }
    caught = sum(not lines for lines in wrong.values())
    failures = dict.fromkeys(line for lines in wrong.values() for line in lines)
    return Row("Self-check", "seeded faults", len(chosen), caught, tuple(failures))
