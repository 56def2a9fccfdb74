"""Files that appear when they are whole, what killed writers leave, and locks of processes."""

import errno
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
"""Ending of a name under which a file or folder lies until it is whole."""
_LEFT = re.compile(rf".+\.[0-9a-f]{{8}}{re.escape(PARTIAL)}", re.DOTALL)
LACKING = (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of calls that a file system does not have."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a file system without space, or of a file that may not grow."""
# What calls raise on file systems that can't flush a folder, or can't link files.
_UNABLE = {
    errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP, errno.EACCES, errno.EPERM,
    errno.EISDIR, errno.EROFS, errno.EMLINK,
}  # fmt: skip
_LONGEST = 200
# Seconds: to wait for a lock, for a folder that is being replaced, and between two looks.
_WAIT, _REPLACED, _POLL = 60.0, 1.0, 0.005

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_whole(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file that appears when it is whole and on the disk.

    Parameters
    ----------
    path : Path
        Missing folders are made.
    data : bytes
    new : bool
        Never replace a file.

    Raises
    ------
    OSError
        When it cannot be written; names `path`.
    """
    try:
        make_folder(path.parent)
        with _partial_file(path) as (partial, file):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if new:
                _link(partial, path)
            else:
                partial.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; their names are on the disk when it returns."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise


def is_leftover(name: str) -> bool:
    """Whether a name is one under which `write_whole` writes."""
    return _LEFT.fullmatch(name) is not None


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the files that killed writers left; those of writers at work stay.

    Parameters
    ----------
    folder : Path
    name : str, optional
        Of the file to be written; all files of the folder unless given.
    """
    stem = None if name is None else _stem(name)
    with suppress(OSError):
        for path in folder.iterdir():
            own = is_leftover(path.name) and stem in (None, path.name[: -len(PARTIAL) - 9])
            if own and not path.is_symlink() and path.is_file():
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    with suppress(OSError):  # held by a writer at work, or a file system without locks
        descriptor = os.open(path, os.O_RDWR)
        try:
            _lock(descriptor)
            path.unlink()
        finally:
            os.close(descriptor)


@contextmanager
def alone(path: Path, wait: float = _WAIT) -> Iterator[None]:
    """Hold a lock file, which no other process or thread holds until the block ends.

    The lock ends with the process. Where another file takes the place of the lock file
    meanwhile, the new one is waited for.

    Raises
    ------
    TimeoutError
        When another process holds it for too long.
    OSError
        When the file system has no locks, or the file cannot be opened.
    """
    began = time.monotonic()
    while True:
        descriptor = _opened(path, began)
        try:
            if _locks(descriptor) and _lies_at(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > began + wait:
            raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(path))
        time.sleep(_POLL)


def _opened(path: Path, began: float) -> int:
    """Open a lock file; its folder may be gone for the moment in which another takes its place."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            if time.monotonic() > began + _REPLACED:
                raise
        time.sleep(_POLL)


def _locks(descriptor: int) -> bool:
    """Lock a file; return whether no other process holds it."""
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise
        return False
    return True


def _lies_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _partial_file(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Make a file under a temporary name, hold it, and remove the name in the end."""
    while True:
        partial = path.with_name(f"{_stem(path.name)}.{secrets.token_hex(4)}{PARTIAL}")
        with partial.open("xb") as file:
            if sys.platform != "win32":  # where open files can't be renamed
                with suppress(OSError):  # a file system without locks
                    _locks(file.fileno())
            if not partial.exists():  # taken for a leftover before it was held
                continue
            try:
                yield partial, file
                return
            finally:
                with suppress(OSError):
                    partial.unlink(missing_ok=True)


def _stem(name: str) -> str:
    """Return a name that leaves space for an ending."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= _LONGEST else blake2b(encoded, digest_size=8).hexdigest()


def _link(partial: Path, path: Path) -> None:
    """Give a file its name; fails where a file has appeared there."""
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        path.touch(exist_ok=False)
        partial.replace(path)
