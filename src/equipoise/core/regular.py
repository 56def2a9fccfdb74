"""Files that are opened only where they are files: a named pipe would be waited for, for ever."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class IrregularFileError(OSError):
    """A path names a pipe, a socket or a device; `strerror` says which."""


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file to read its bytes; links to files are followed.

    Raises
    ------
    IrregularFileError
        When it is a named pipe, a socket or a device. Nothing is waited for.
    OSError
        As `open`.
    """
    return open(path, "rb", opener=_opened)


def read_regular(path: str | Path) -> bytes:
    """Return the bytes of a file, with the errors of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def _opened(path: str, flags: int) -> int:
    try:
        found = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV):  # sockets, and the like
            _check(Path(path).stat().st_mode, path)
        raise
    try:
        _check(os.fstat(found).st_mode, path)
    except OSError:
        os.close(found)
        raise
    return found


def _check(mode: int, path: str) -> None:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise IrregularFileError(errno.EINVAL, f"it is no regular file: {name}", path)
