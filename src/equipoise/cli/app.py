"""The command `equipoise`: its subcommands, exit codes, and what is said when something fails."""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from equipoise import __version__
from equipoise.cli.terminal import printable
from equipoise.discovery import Places

ERROR, INTERRUPTED, PIPE_CLOSED, TERMINATED = 2, 130, 141, 143
_DEBUG = "To do: set EQUIPOISE_DEBUG=1 to see the traceback, and report it with the command"

COMMANDS = Places(
    "command",
    "equipoise.commands",
    Path(__file__).parent / "commands",
    "*.py",
    "equipoise.cli.commands.{name}:{name}_command",
)
"""The command of each name: of files of the folder, and of plugins."""
FIRST = (
    "demo", "quick", "new", "plan", "audit", "show", "report", "export", "compare", "check"
)  # fmt: skip
"""Commands in the order in which an audit needs them; all others follow by name."""


class _Commands(click.Group):
    """A group that imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*dict.fromkeys([*FIRST, *sorted(COMMANDS)])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        try:
            place = COMMANDS.get(cmd_name)
            return None if place is None else place.load(click.Command)
        except ValueError as error:
            return _unusable(cmd_name, error)


def _unusable(name: str, error: ValueError) -> click.Command:
    """Return a command in the place of a plugin's: it raises why that can't be used."""

    def fail(**_: object) -> NoReturn:
        raise error

    return click.Command(
        name, callback=fail, params=[click.Argument(["arguments"], nargs=-1)],
        context_settings={"ignore_unknown_options": True}, add_help_option=False,
        short_help="(can't be used: run it to see why)",
    )  # fmt: skip


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the gate is breached, 2 an error, 130 interrupted.",
)
@click.version_option(__version__, prog_name="equipoise")
def app() -> None:
    """Audit vision models for social bias, and say how far each finding can be trusted."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : sequence of str, optional
        `sys.argv[1:]` by default.
    """
    if "_EQUIPOISE_COMPLETE" in os.environ:
        app.main(prog_name="equipoise")
    if arguments is None:
        code = run(sys.argv[1:])
        if code in (INTERRUPTED, TERMINATED):
            # A thread of a model that hangs would abort at the interpreter's end.
            os._exit(code)
        sys.exit(code)
    sys.exit(run([*arguments]))


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; no exception leaves."""
    code = 0
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        # Only the main thread may say what a polite kill does: it unwinds the stack, so that
        # half-written runs are removed.
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, _terminate)
        try:
            with app.make_context("equipoise", arguments or ["--help"]) as context:
                app.invoke(context)
        except click.exceptions.Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last place that can say what happened
        return report_failure(error)
    return code


def report_failure(error: BaseException, place: str = "") -> int:
    """Print one line about a failure, after its traceback where EQUIPOISE_DEBUG is set.

    Parameters
    ----------
    error : BaseException
    place : str
        What failed, where that is less than the command.

    Returns
    -------
    int
        The exit code.
    """
    message, code = describe(error, place)
    if isinstance(error, BrokenPipeError):
        # The interpreter's last flush cannot fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if os.environ.get("EQUIPOISE_DEBUG") and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error)
    if message:
        click.echo(message, err=True)
    return code


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a handler's signature
    # Whoever ends a group of processes may signal this one twice: cleaning up goes on.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


class Terminated(KeyboardInterrupt):
    """A polite kill: it ends a command as Ctrl-C does, and leaves what Ctrl-C leaves."""


def describe(error: BaseException, place: str = "") -> tuple[str, int]:
    """Return what to say on stderr about a failure, and the exit code.

    Parameters
    ----------
    error : BaseException
        Anything that ended a command, or a part of it.
    place : str
        What failed, where that is less than the command.
    """
    if isinstance(error, KeyboardInterrupt):
        code = TERMINATED if isinstance(error, Terminated) else INTERRUPTED
        return str(error) or "interrupted; nothing half-written is left", code
    if isinstance(error, click.Abort):
        return "stopped; nothing was written", INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return "", PIPE_CLOSED
    sentence = f"{place}: {_sentence(error)}" if place else _sentence(error)
    return f"error: {printable(sentence)}", ERROR


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
