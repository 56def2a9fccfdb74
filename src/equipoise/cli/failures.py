"""Every failure as one message and an exit code."""

from __future__ import annotations

import errno
import os
import re
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
        return _usage(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, SystemExit):
        return f"a library or a model ended the command by itself (SystemExit: {error}). {_DEBUG}"
    if isinstance(error, MemoryError):
        return "not enough memory. To do: fewer models per audit, or a machine with more memory"
    if _on_purpose(error):
        return str(error)
    if isinstance(error, OSError):
        return _system(error)
    return f"unexpected {type(error).__name__}: {_first_line(error)}. {_DEBUG}"


def _usage(error: click.UsageError) -> str:
    context = error.ctx
    see = f" See '{context.command_path} --help'" if context is not None else ""
    said = re.sub(r"\.? \((Did you mean.*)\)$", r". \1", error.format_message())
    end = "" if said.endswith(("?", ".")) else "."
    return f"{said[0].lower()}{said[1:]}{end}{see}"


def _on_purpose(error: BaseException) -> bool:
    # Loading the error tree costs numpy and pyarrow; whoever raised one of it has paid already.
    errors = sys.modules.get("equipoise.core.errors")
    return errors is not None and isinstance(error, errors.EquipoiseError)


def _system(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{place}the disk is full. To do: free space, or write elsewhere"
    if error.errno == errno.EFBIG:
        return (
            f"{place}the file became larger than this disk or process may write. To do: raise "
            "the limit of file sizes (ulimit -f), or write elsewhere"
        )
    if isinstance(error, PermissionError):
        return f"{place}no permission. To do: change the permissions, or choose another place"
    if error.strerror:
        return f"{place}{error.strerror}"
    return f"{place}{_first_line(error)}. {_DEBUG}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
