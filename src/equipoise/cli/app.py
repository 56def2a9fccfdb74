"""The command `equipoise`: its subcommands, exit codes, and what is said when something fails."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

import click

from equipoise import __version__
from equipoise.cli.failures import Terminated, describe, silence_stdout
from equipoise.cli.guard import guarded
from equipoise.cli.terminal import keep_stdout

_COMMANDS = (
    "demo",
    "new",
    "plan",
    "audit",
    "report",
    "compare",
    "check",
    "counterfactuals",
    "augment",
    "mitigate",
    "metrics",
)


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name not in _COMMANDS:
            near = get_close_matches(cmd_name, _COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"no command {cmd_name!r}. There are: {', '.join(_COMMANDS)}.{hint}")
        command: click.Command = import_module(f"equipoise.cli.commands.{cmd_name}").command
        return command


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
        `sys.argv[1:]` by default, in a process of its own: see `guarded`.
    """
    if arguments is None:
        sys.exit(guarded(lambda: _run(sys.argv[1:])))
    sys.exit(_run([*arguments]))


def _run(arguments: list[str]) -> int:
    keep_stdout()
    return run(arguments)


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; no exception leaves."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        previous = _stop_on_termination()
        try:
            with app.make_context("equipoise", arguments or ["--help"]) as context:
                app.invoke(context)
            sys.stdout.flush()
        finally:
            _restore(previous)
    except click.exceptions.Exit as end:
        return _finish(end.exit_code)
    except BaseException as error:  # noqa: BLE001 - the last place that can say what happened
        return _failed(error)
    return 0


def _finish(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as error:
        return _failed(error)
    return code


def _failed(error: BaseException) -> int:
    message, code = describe(error)
    if isinstance(error, BrokenPipeError):
        silence_stdout()
    if os.environ.get("EQUIPOISE_DEBUG") and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error)
    if message:
        click.echo(message, err=True)
    return code


def _stop_on_termination() -> object:
    """Let a polite kill unwind the stack, so that half-written runs are removed."""
    try:
        return signal.signal(signal.SIGTERM, _terminate)
    except ValueError:
        return None  # not the main thread: signals are somebody else's


def _restore(previous: object) -> None:
    if previous is not None:
        signal.signal(signal.SIGTERM, previous)  # type: ignore[arg-type]  # what signal() returned


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a handler's signature
    # Whoever ends a group of processes may signal this one twice: cleaning up goes on.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated
