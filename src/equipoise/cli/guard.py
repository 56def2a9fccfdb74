"""A process that waits for the command, and reports an end that the command can't report."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

from equipoise.cli.failures import ERROR, INTERRUPTED, TERMINATED
from equipoise.cli.terminal import note

_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
_PATIENCE = 10.0
"""Seconds for the command to end after it is interrupted."""
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_TO_DO = (
    "To do: look for os._exit in a python: model, a crash of a library, a cluster that is gone, or "
    "too little memory. Finished parts are kept: the same command goes on from there"
)


def guarded(command: Callable[[], int]) -> int:
    """Run a command in a child process and return its exit code.

    Native code, or a model's own, may end a process past Python. The child leaves its exit code in
    a pipe; where it ends without, the parent prints an error. Only Linux ends the child with its
    parent, so the command runs in this process elsewhere.

    Parameters
    ----------
    command : callable
        Returns the exit code. No thread runs yet.
    """
    if not sys.platform.startswith("linux"):
        return command()
    read, write = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    parent, child = os.getpid(), os.fork()
    if not child:
        os.close(read)
        _end_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        code = command()
        os.write(write, bytes([code]))
        if code in (INTERRUPTED, TERMINATED):
            # A thread of a model that hangs would abort at the interpreter's end.
            os._exit(code)
        return code
    os.close(write)
    status, interrupted = _waited(child)
    if left := os.read(read, 1):
        return left[0]
    if interrupted:
        note("interrupted; the work did not stop and was killed. Finished parts are kept")
        return INTERRUPTED if interrupted == signal.SIGINT else TERMINATED
    note(f"error: the command was ended {_how(status)}. {_TO_DO}")
    return ERROR


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _waited(child: int) -> tuple[int, int]:
    """Return how the child ended, and the signal that interrupted it before, or 0."""
    interrupted, deadline = 0, float("inf")
    while True:
        left = min(max(deadline - time.monotonic(), 0.0), 3600.0)
        found = signal.sigtimedwait(_SIGNALS, left)
        if found is None and deadline < time.monotonic():
            os.kill(child, signal.SIGKILL)
            deadline = float("inf")
        elif found is not None and found.si_signo != signal.SIGCHLD:
            if found.si_code <= 0:  # by kill: a terminal signals the child as well
                os.kill(child, found.si_signo)
            if not interrupted:
                interrupted, deadline = found.si_signo, time.monotonic() + _PATIENCE
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status, interrupted


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"by {signal.Signals(-code).name}" if code < 0 else f"from within (exit code {code})"
