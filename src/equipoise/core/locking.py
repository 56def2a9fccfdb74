"""Locks on files and folders, which end with the process that holds them."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from equipoise.core.errors import RunError

LACKING = (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP, errno.ENOLCK)
"""Errors of calls that a file system does not have."""
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
# Seconds: to wait for a lock, for a folder that is being replaced, and between two tries.
_WAIT, _REPLACED, _PAUSE = 60.0, 1.0, 0.005


def hold(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or folder until it is closed; return False without locks.

    Raises
    ------
    OSError
        When another process holds it (without `wait`), or its file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # a system without flock
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    return True


@contextmanager
def lock(path: Path, wait: float = _WAIT) -> Iterator[None]:
    """Lock a file against other processes and threads until the block ends.

    Where another file takes the place of the lock file meanwhile, the new one is waited for.

    Parameters
    ----------
    path : Path
        Made where it is missing; its folder must exist.
    wait : float
        Seconds.

    Raises
    ------
    RunError
        When another process holds it for longer.
    OSError
        When there are no locks, or the file cannot be opened.
    """
    start = time.monotonic()
    while True:
        descriptor = _open(path, start)
        try:
            if _is_held(descriptor) and _is_at(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > start + wait:
            raise RunError(
                f"{path}: another process holds this lock for more than {wait:g} seconds. "
                "To do: wait until it ends, or end it, and try again"
            )
        time.sleep(_PAUSE)


def _open(path: Path, start: float) -> int:
    """Open a lock file; retry while its folder is being replaced."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            if time.monotonic() > start + _REPLACED:
                raise
        time.sleep(_PAUSE)


def _is_held(descriptor: int) -> bool:
    """Try to lock a file; return whether this process holds it now."""
    try:
        if hold(descriptor, wait=False):
            return True
    except OSError as error:
        if error.errno not in _HELD:
            raise
        return False
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def _is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
