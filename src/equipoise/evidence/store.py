"""The folder of one extraction: one process at a time, files that are whole or not there."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from equipoise.core.errors import MissingExtraError, RunError
from equipoise.evidence.pictures import Pictures

_TROUBLE = {
    errno.ENOSPC: "the disk is full. To do: free space and run again; finished parts stay",
    errno.EDQUOT: "the disk quota is used up. To do: free space and run again; finished parts stay",
    errno.EFBIG: (
        "a file became larger than this disk or process may write. To do: raise the limit of "
        "file sizes (ulimit -f) or choose another store, and run again; finished parts stay"
    ),
    errno.EIO: "the disk reports an error. To do: choose another store",
    errno.EACCES: "no permission to write there. To do: choose another store",
    errno.EPERM: "no permission to write there. To do: choose another store",
    errno.ENOENT: "no such folder can be made there. To do: choose another store",
    errno.EROFS: "the disk is read-only. To do: choose another store",
    errno.EEXIST: "a part of the path is a file. To do: choose another store",
    errno.ENOTDIR: "a part of the path is a file. To do: choose another store",
}
# What calls raise that a file system does not have.
_LACKING = (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.ENOLCK)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_TEMPORARY = ".partial"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder if need be, and keep other processes out of it.

    Raises
    ------
    RunError
        When another process works in it, or it cannot be written.
    MissingExtraError
        When filelock is not installed.
    """
    with translated(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = _acquired(folder)
    with held:
        for left in folder.glob(f"*{_TEMPORARY}"):
            left.unlink(missing_ok=True)
        yield


def _acquired(folder: Path) -> AbstractContextManager[object]:
    """Return the lock of a folder, which ends with its block."""
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingExtraError("filelock", "images") from error

    path = folder / "lock"
    try:
        with warnings.catch_warnings():
            # Without locks filelock warns and makes a file instead, which a killed run leaves.
            warnings.simplefilter("error")
            return FileLock(path).acquire(blocking=False)
    except Timeout:
        raise RunError(
            f"{folder}: another process is writing it. To do: wait until it is done, "
            "or choose another store"
        ) from None
    except (NotImplementedError, UserWarning) as error:
        raise _lacking(folder) from error
    except OSError as error:
        if error.errno in _LACKING and path.exists():
            raise _lacking(folder) from error
        raise


def _lacking(folder: Path) -> RunError:
    return RunError(
        f"{folder}: this file system cannot lock or cannot rename files; a store needs both. "
        "To do: choose a store on a local disk"
    )


def rename(partial: Path, path: Path) -> None:
    """Give a file that is whole its name.

    Raises
    ------
    RunError
        When the file system cannot rename files.
    OSError
        When it cannot be done for another reason.
    """
    try:
        partial.replace(path)
    except OSError as error:
        if error.errno in _LACKING:
            raise _lacking(path.parent) from error
        raise


@contextmanager
def held(folder: Path) -> Iterator[bool]:
    """Lock a folder as `locked` does, or take it as it is: whole, where nothing can be written.

    Yields whether it may be written.

    Raises
    ------
    RunError
        When another process works in it; or it cannot be written and is not whole.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder))
        except RunError as error:
            read_only = getattr(error.__cause__, "errno", None) in _READ_ONLY
            if not read_only or read_manifest(folder).get("whole") is not True:
                raise
            writable = False
        else:
            writable = True
        yield writable


@contextmanager
def translated(folder: Path) -> Iterator[None]:
    """Say what to do where a file cannot be written.

    Raises
    ------
    RunError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        trouble = _TROUBLE.get(
            error.errno or 0,
            f"cannot be written: {error.strerror or error}. To do: choose another store",
        )
        raise RunError(f"{folder}: {trouble}") from error


def write(path: Path, data: bytes) -> None:
    """Write a file that appears when it is whole and on the disk.

    Raises
    ------
    RunError
        When it cannot be written.
    """
    partial = path.with_name(f"{path.name}{_TEMPORARY}")
    with translated(path.parent):
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            rename(partial, path)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        _flush(path.parent)


def _flush(folder: Path) -> None:
    """Bring the name of a new file to the disk as well."""
    with suppress(OSError):  # some file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write `manifest.json`."""
    text = json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True)
    write(folder / "manifest.json", text.encode("utf-8", "backslashreplace"))


def read_manifest(folder: Path) -> Mapping[str, Any]:
    """Return `manifest.json`; nothing where there is none or it is damaged."""
    try:
        facts = json.loads((folder / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def ids_digest(pictures: Pictures) -> str:
    """Return the SHA-256 of the ids of a set."""
    return hashlib.sha256(json.dumps(pictures.ids.tolist()).encode()).hexdigest()


def crops_digest(pictures: Pictures) -> str | None:
    """Return the SHA-256 of what is cut out of a set; None where nothing is."""
    return None if pictures.crops is None else hashlib.sha256(pictures.crops.tobytes()).hexdigest()
