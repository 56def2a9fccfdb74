"""What a killed run left beside its place: told from a run at work by a lock, and removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from equipoise.evidence.ownership import foreign_files, read_list


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and hold it as one that a process is at work in; the hold ends with it."""
    descriptor = _made(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _made(folder: Path) -> int | None:
    """Return a descriptor that holds a new folder; None where none can be had."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = _held(folder, wait=True)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        # Between the making and the hold another run may have taken it for a leftover.
        if descriptor is None or folder.is_dir():
            return descriptor
        os.close(descriptor)


def _held(folder: Path, *, wait: bool) -> int | None:
    """Return a descriptor that holds a folder, None where the system has no locks.

    Raises
    ------
    OSError
        When it is held by another process (without `wait`), or cannot be held.
    """
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def sweep(target: Path) -> None:
    """Remove the hidden folders that killed runs left beside where they were to lie.

    A run that was moved aside for another to take its place, which then was killed, is put back.

    Parameters
    ----------
    target : Path
        Where a run is to lie.
    """
    name = f".{_plain(target.name)}.????????"
    for partial in target.parent.glob(f"{name}.partial"):
        with suppress(OSError):  # held by a run at work
            descriptor = _held(partial, wait=False)
            if descriptor is None:
                return
            shutil.rmtree(partial, ignore_errors=True)
            os.close(descriptor)
    for old in target.parent.glob(f"{name}.old"):
        if read_list(old) is None:
            continue
        if target.exists():
            if not foreign_files(old):
                shutil.rmtree(old, ignore_errors=True)
        elif not old.with_suffix(".partial").exists():
            old.rename(target)


def _plain(name: str) -> str:
    """Return a name without meaning for `glob`."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)
