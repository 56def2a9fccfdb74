"""How a command ends: each failure as one message, also where the process can't report it."""

from __future__ import annotations

import errno
import sys

import click

from equipoise.cli.terminal import printable

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
