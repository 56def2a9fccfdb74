"""The folder of a run's human labels, which several processes may change."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.core import RunError
from equipoise.core.files import read_regular
from equipoise.core.locking import lock
from equipoise.core.types import FileFacts
from equipoise.core.writing import copy, flush_tree, is_temporary, sweep, translated, write

LABELS = "labels"
"""Folder of a run with what people say of its images; a new run takes it over."""
LOCK = "lock"
"""File of a run that whoever changes the run holds."""


@contextmanager
def changing(run: Path) -> Iterator[None]:
    """Lock a run against changes, and remove leftovers of killed processes.

    Raises
    ------
    RunError
        When another process changes it for too long.
    OSError
        When the file system has no locks.
    """
    with lock(run / LOCK):
        sweep(run)
        sweep(run / LABELS)
        yield


def keep_labels(run: Path, change: Callable[[], Mapping[str, bytes]]) -> None:
    """Change files in the folder of labels while no other process does.

    They are on the disk when this returns.

    Parameters
    ----------
    run : Path
    change : callable
        Reads the folder as it is now, and returns the new bytes of files by their names in it.

    Raises
    ------
    RunError
        If they can't be written; its cause is the error of the system.
    """
    with translated(run / LABELS), changing(run):
        for name, content in change().items():
            write(run / LABELS / name, content)


def tidy(run: Path) -> None:
    """Remove leftovers of killed processes from a run, where it is writable."""
    with suppress(OSError, RunError):
        if any(is_temporary(path.name) for path in (*run.iterdir(), *(run / LABELS).glob("*"))):
            with changing(run):
                pass


def copy_labels(old: Path, new: Path) -> None:
    """Copy the labels of a run into its unpublished replacement."""
    files = _list_files(old)
    for path in files:
        copy(path, new / LABELS / path.name)
    if files:
        flush_tree(new)


def list_labels(run: Path) -> dict[str, FileFacts]:
    """Return the files of labels as inputs of a run: `sha256` and `bytes`."""
    files: dict[str, FileFacts] = {}
    for path in _list_files(run):
        content = read_regular(path)
        digest = hashlib.sha256(content).hexdigest()
        files[f"{LABELS}/{path.name}"] = {"sha256": digest, "bytes": len(content)}
    return files


def _list_files(run: Path) -> list[Path]:
    folder = run / LABELS
    if not folder.is_dir():
        return []
    return [
        path for path in sorted(folder.iterdir()) if path.is_file() and not is_temporary(path.name)
    ]
