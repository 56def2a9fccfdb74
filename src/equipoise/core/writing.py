"""Files and folders on disk: the one module that writes, renames and removes them.

A file appears under its name when its bytes are on the disk. Until then it has a hidden name
beside it, `.NAME.0123abcd.partial`, under which a killed process may leave it. The next writer of
that name removes it. Inside a hidden folder files are written as they are: the folder is flushed
whole before it gets its name.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from equipoise.core.errors import RunError
from equipoise.core.locking import LACKING, hold

PARTIAL = ".partial"
_HIDDEN = re.compile(r"\.(.+)\.[0-9a-f]{8}\.partial")
# Most bytes of a name that leave room for the temporary suffix; file systems allow 255.
_MOST_NAME_BYTES = 230
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk without space, or of a file that may not grow."""
# Trouble of a disk; other errors of a flushed folder say that the system can't flush one.
_DISK_ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def temporary(path: Path) -> Path:
    """Return a hidden name in the same folder, for writing a file."""
    return path.with_name(f".{_stem(path)}.{secrets.token_hex(4)}{PARTIAL}")


def _stem(path: Path) -> str:
    name = os.fsencode(path.name)
    return path.name if len(name) <= _MOST_NAME_BYTES else sha256(name).hexdigest()


def is_temporary(name: str) -> bool:
    """Return whether a name is a hidden name of an unfinished file or folder."""
    return _HIDDEN.fullmatch(name) is not None


def is_staged(path: Path) -> bool:
    """Return whether a path is inside an unfinished hidden folder."""
    return any(map(is_temporary, path.parts[:-1]))


def visible_path(path: Path) -> Path:
    """Return the path as its user knows it, without hidden names."""
    names = (_HIDDEN.fullmatch(name) for name in path.parts)
    return Path(*(match[1] if match else name for match, name in zip(names, path.parts)))  # noqa: B905


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise a RunError with advice where a path cannot be written.

    Raises
    ------
    RunError
        In place of an OSError, which is its cause.
    """
    try:
        yield
    except OSError as error:
        # Arrow words the system's errors differently.
        reason = os.strerror(error.errno) if error.errno else str(error)
        problem = (
            "this file system cannot lock or cannot rename files, and both are needed. "
            "To do: choose a local disk"
            if error.errno in LACKING
            else f"cannot be written: {reason}. To do: free space there, check the permissions and "
            "the limit of file sizes, or choose another place; run again, finished parts stay"
        )
        raise RunError(f"{visible_path(path)}: {problem}") from error


def write(path: Path, data: bytes, *, new: bool = False) -> None:
    """Write a file that appears when it is complete and on the disk; see `writer`."""
    with writer(path, new=new) as file:
        file.write(data)


@contextmanager
def writer(path: Path, *, new: bool = False) -> Iterator[BinaryIO]:
    """Yield a file that appears when the block ends and it is on the disk.

    Parameters
    ----------
    path : Path
        Missing folders are made.
    new : bool
        Fail where a file has the name; else it is replaced.

    Raises
    ------
    RunError
        When it cannot be written. Nothing is left of it.
    """
    with translated(path):
        make_folder(path.parent)
        if is_staged(path):
            with path.open("wb+") as staged:
                yield staged
            return
        sweep(path.parent, path.name)
        partial, file, descriptor = _open_hidden(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            (_link if new else replace)(partial, path)
        finally:
            os.close(descriptor)
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def _open_hidden(path: Path) -> tuple[Path, BinaryIO, int]:
    """Return a hidden file for a path, open, and the descriptor of its lock."""
    while True:
        partial = temporary(path)
        file: BinaryIO = partial.open("xb+")
        descriptor = os.dup(file.fileno())
        with suppress(OSError):  # a file system without locks
            hold(descriptor, wait=True)
        if partial.exists():
            return partial, file, descriptor
        # Another process took it for one that was left.
        os.close(descriptor)
        file.close()


def replace(source: Path, target: Path) -> None:
    """Rename a file or folder, replace any old file, and flush the name.

    Raises
    ------
    OSError
        When it cannot be renamed or flushed.
    """
    source.replace(target)
    flush_folder(target.parent)


def _link(source: Path, target: Path) -> None:
    """Rename a file, unless the name exists, and flush the name to the disk."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.rename(target)
    try:
        source.unlink(missing_ok=True)
        flush_folder(target.parent)
    except OSError:
        with suppress(OSError):
            target.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, and flush their names.

    Raises
    ------
    OSError
        When it cannot be made.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    if not is_staged(path):
        flush_folder(path.parent)


def copy(source: Path, path: Path) -> None:
    """Write the bytes of a file to another path; see `writer`."""
    with source.open("rb") as content, writer(path) as file:
        shutil.copyfileobj(content, file)


def remove(path: Path) -> None:
    """Remove a file, if it is there.

    Raises
    ------
    OSError
        When it cannot be removed.
    """
    path.unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    """Remove a folder and its contents, if it is there.

    Raises
    ------
    RunError
        When it cannot be removed.
    """
    with translated(path), suppress(FileNotFoundError):
        shutil.rmtree(path)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, where the system can.

    Raises
    ------
    OSError
        When the disk is in trouble.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in _DISK_ERRORS:
            raise


def flush_tree(folder: Path) -> None:
    """Flush a folder and its contents to the disk.

    Raises
    ------
    OSError
        When a file cannot be flushed.
    """
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            flush_folder(path)
        elif path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    flush_folder(folder)


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove hidden files of killed processes; files of running ones stay.

    Parameters
    ----------
    folder : Path
    name : str, optional
        Name of the file to write; by default all files of the folder.
    """
    stem = None if name is None else _stem(folder / name)
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            match = _HIDDEN.fullmatch(entry.name)
            if match and stem in (None, match[1]) and entry.is_file(follow_symlinks=False):
                _remove_unheld(Path(entry.path))


def _remove_unheld(path: Path) -> None:
    with suppress(OSError):  # it is gone, or held
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if hold(descriptor, wait=False):
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
