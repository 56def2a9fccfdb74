"""How a command ends: each failure as one message, also where the process can't report it."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Callable

import click

from equipoise.cli.terminal import note, printable

ERROR, INTERRUPTED, PIPE_CLOSED, TERMINATED = 2, 130, 141, 143
_DEBUG = "To do: set EQUIPOISE_DEBUG=1 to see the traceback, and report it with the command"


class Terminated(KeyboardInterrupt):
    """A polite kill: it ends a command as Ctrl-C does, and leaves what Ctrl-C leaves."""


def describe(error: BaseException) -> tuple[str, int]:
    """Return what to say on stderr about a failure, and the exit code.

    Parameters
    ----------
    error : BaseException
        Anything that ended a command.
    """
    if isinstance(error, KeyboardInterrupt):
        code = TERMINATED if isinstance(error, Terminated) else INTERRUPTED
        return str(error) or "interrupted; nothing half-written is left", code
    if isinstance(error, click.Abort):
        return "stopped; nothing was written", INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", PIPE_CLOSED
    return f"error: {printable(_sentence(error))}", ERROR


def _sentence(error: BaseException) -> str:
    if isinstance(error, click.UsageError):
        see = f" See '{error.ctx.command_path} --help'" if error.ctx is not None else ""
        return f"{error.format_message()}{see}"
    if isinstance(error, SystemExit):
        return f"a library or a model ended the command by itself (SystemExit: {error}). {_DEBUG}"
    if isinstance(error, MemoryError):
        return "not enough memory. To do: fewer models per audit, or a machine with more memory"
    # Loading the error tree costs numpy and pyarrow; whoever raised one of it has paid already.
    errors = sys.modules.get("equipoise.core.errors")
    if errors is not None and isinstance(error, errors.EquipoiseError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"{place}the disk is full. To do: free space, or write elsewhere"
        return f"{place}{error.strerror}"
    first = (str(error).strip().splitlines() or ["no message"])[0]
    return f"unexpected {type(error).__name__}: {first}. {_DEBUG}"


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
