"""The folder of a run with what people say of its images, which several processes may change."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.core import RunError
from equipoise.core.files import read_regular
from equipoise.core.types import FileFacts
from equipoise.core.writing import alone, is_leftover, make_folder, remove_leftovers, write_whole

LABELS = "labels"
"""Folder of a run with what people say of its images; a new run takes it over."""
LOCK = "lock"
"""File of a run that whoever changes the run holds."""


@contextmanager
def changing(run: Path) -> Iterator[None]:
    """Keep other processes from changing a run, and remove what killed ones left in it.

    Raises
    ------
    OSError
        When another process changes it for too long, or the file system has no locks.
    """
    with alone(run / LOCK):
        remove_leftovers(run)
        remove_leftovers(run / LABELS)
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
    try:
        with changing(run):
            make_folder(run / LABELS)
            for name, content in change().items():
                write_whole(run / LABELS / name, content)
    except OSError as error:
        raise RunError(
            f"{run / LABELS}: cannot be written: {error.strerror or error}. Nothing was kept. "
            "To do: free space there, or copy the run to a disk with space and locks, and try again"
        ) from error


def tidy(run: Path) -> None:
    """Remove what killed processes left in a run, where that can be written."""
    with suppress(OSError):
        if any(is_leftover(path.name) for path in (*run.iterdir(), *(run / LABELS).glob("*"))):
            with changing(run):
                pass


def copy_labels(old: Path, new: Path) -> None:
    """Copy the labels of a run into the one that replaces it, which nobody else knows yet."""
    for path in _files(old):
        write_whole(new / LABELS / path.name, path.read_bytes())


def list_labels(run: Path) -> dict[str, FileFacts]:
    """Return the files of labels as inputs of a run: `sha256` and `bytes`."""
    files: dict[str, FileFacts] = {}
    for path in _files(run):
        content = read_regular(path)
        digest = hashlib.sha256(content).hexdigest()
        files[f"{LABELS}/{path.name}"] = {"sha256": digest, "bytes": len(content)}
    return files


def _files(run: Path) -> list[Path]:
    folder = run / LABELS
    if not folder.is_dir():
        return []
    return [one for one in sorted(folder.iterdir()) if one.is_file() and not is_leftover(one.name)]
