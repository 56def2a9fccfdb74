"""Ten faults put into equipoise, to show that the soak notices each.

Each takes the place of a function in a process of its own, as `tools.soak.injection` and
`tools.soak.keys` start them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import RunError, files, writing
from equipoise.counterfactuals import generation
from equipoise.evidence import extraction, store
from equipoise.models import ModelInfo
from equipoise.report import store as report_store
from tools.soak import damage, injection, keys
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
    flush = os.fsync

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
    _put(lambda _: None, "sweep", writing)


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

    _put(swallowing, "write", store, extraction, generation, writing)


def part_skipped() -> None:
    """Go on as if the second part lay there, whatever lies there."""
    pieces = store.Ledger.pieces

    def skipping(ledger: Any) -> Iterator[Any]:
        for piece in pieces(ledger):
            interrupted = any(ledger.folder.glob("part-*"))
            if not (interrupted and piece.number == 1 and not piece.have):
                yield piece

    _put(skipping, "pieces", store.Ledger)


@dataclass(frozen=True)
class Seed:
    """A fault, and the check that is to notice it.

    Attributes
    ----------
    change : callable
        Puts it into this process.
    check : callable
        Takes a folder and the name of the fault; returns what is not as promised.
    """

    change: Callable[[], object]
    check: Callable[[Path, str], Sequence[str]]


def _faults_of(case: str) -> Callable[[Path, str], Sequence[str]]:
    """Return a check that disturbs a writer until something is not as promised."""
    return lambda folder, name: injection.disturbed(case, folder, 0, 1.0, name)[-1]


def _keys(folder: Path, name: str) -> Sequence[str]:
    SEEDS[name].change()
    subjects = tuple(one for one in keys.SUBJECTS if one.name == "python: factory")
    return keys.key_tests(folder, subjects)[0].failures


def _locks(folder: Path, name: str) -> Sequence[str]:
    return damage.locks("Extraction", folder, SEEDS[name].change)[1]


def _damage(folder: Path, name: str) -> Sequence[str]:
    return damage.damaged("Extraction", folder, 40, 0, SEEDS[name].change)[2]


SEEDS: dict[str, Seed] = {
    "writing in place": Seed(not_atomic, _faults_of("Extraction")),
    "missing flush of a file": Seed(file_not_flushed, _faults_of("Embeddings of texts")),
    "missing flush of a folder": Seed(folder_not_flushed, _faults_of("new")),
    "lock removed": Seed(lock_removed, _locks),
    "key without a file": Seed(key_without_file, _keys),
    "key without a setting": Seed(key_without_setting, _keys),
    "leftover not removed": Seed(leftover_kept, _faults_of("JUnit file")),
    "checksum not verified": Seed(checksum_ignored, _damage),
    "resume that skips a part": Seed(part_skipped, _faults_of("Extraction")),
    "error swallowed": Seed(error_swallowed, _faults_of("Generation")),
}


def noticed(folder: Path, name: str) -> Sequence[str]:
    """Put a fault into equipoise, and return what its check finds."""
    own = folder / name.replace(" ", "-")
    own.mkdir(parents=True)
    return SEEDS[name].check(own, name)


def self_check(folder: Path, names: Sequence[str] = ()) -> Row:
    """Return how many of the faults the checks notice; each gets processes of its own."""

    def missed(name: str) -> list[str]:
        found = in_process(noticed, folder, name)
        return [] if found else [f"the seeded fault {name!r} was not noticed"]

    chosen = names or tuple(SEEDS)
    with ThreadPoolExecutor(2) as pool:
        failures = [line for lines in pool.map(missed, chosen) for line in lines]
    return Row(
        "Self-check", "seeded faults", len(chosen), len(chosen) - len(failures), tuple(failures)
    )
