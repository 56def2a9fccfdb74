"""The command `equipoise`: its subcommands, exit codes, and messages about failures."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NoReturn

import click

from equipoise import __version__
from equipoise.cli.errors import (
    INTERRUPTED,
    TERMINATED,
    Terminated,
    as_fields,
    failure_of,
    wrapped,
)
from equipoise.cli.groups import SuggestingGroup
from equipoise.cli.terminal import has_colours, printable, say_json
from equipoise.discovery import Places

COMMANDS = Places(
    "command",
    "equipoise.commands",
    Path(__file__).parent / "commands",
    "*.py",
    "equipoise.cli.commands.{name}:{name}_command",
)
"""The command of each name: of files of the folder, and of plugins."""
GROUPS: Mapping[str, Sequence[str]] = MappingProxyType({
    "Start": ("demo", "quick", "new", "metrics", "completion"),
    "Measure": ("plan", "audit", "show", "check", "compare", "faces", "counterfactuals"),
    "Explain": ("review", "label", "causes", "neurons"),
    "Fix": ("mitigate", "augment", "train"),
    "Share": ("report", "export"),
})  # fmt: skip
"""Commands by purpose, in the order in which an audit needs them."""
PLUGINS = "Plugins"
"""Group of commands of other packages."""


class _Commands(SuggestingGroup):
    """A group that imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [name for names in _groups().values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        try:
            place = COMMANDS.get(cmd_name)
            return None if place is None else place.load(click.Command)
        except ValueError as error:
            return _unusable(cmd_name, error)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group."""
        for title, names in _groups().items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            rows = [(name, part.get_short_help_str(60)) for name, part in commands if part]
            with formatter.section(click.style(title, bold=True) if has_colours() else title):
                formatter.write_dl(rows, col_max=20)


def _groups() -> dict[str, list[str]]:
    """Return the names of all commands by group; of plugins in the last one."""
    grouped = {name for names in GROUPS.values() for name in names}
    plugins = sorted(name for name in COMMANDS if name not in grouped)
    groups = {title: [*names] for title, names in GROUPS.items()}
    return groups | ({PLUGINS: plugins} if plugins else {})


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
    epilog="Exit codes: 0 done, 1 a gate rule is breached, 2 an error, 130 interrupted.",
)
@click.version_option(__version__, prog_name="equipoise")
def app() -> None:
    """Audit vision models and image data for social bias.

    Each finding has an interval and a chance level. Start with `equipoise demo`, or with
    `equipoise quick TABLE` on your own predictions.
    """


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
        # Only the main thread may set a handler. SIGTERM unwinds the stack, so that half-written
        # runs are removed.
        with suppress(ValueError):
            signal.signal(signal.SIGTERM, _terminate)
        try:
            with app.make_context("equipoise", arguments or ["--help"]) as context:
                app.invoke(context)
        except click.exceptions.Exit as end:
            code = end.exit_code
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - the last place that can report it
        return report_failure(error, as_json="--json" in arguments)
    return code


def report_failure(error: BaseException, place: str = "", *, as_json: bool = False) -> int:
    """Print a message about a failure, after its traceback where EQUIPOISE_DEBUG is set.

    Parameters
    ----------
    error : BaseException
    place : str
        What failed, if not the whole command.
    as_json : bool
        Whether stdout gets the fields of the failure as a JSON document.

    Returns
    -------
    int
        The exit code.
    """
    failure = failure_of(error, place)
    if isinstance(error, BrokenPipeError):
        # The interpreter's last flush cannot fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if os.environ.get("EQUIPOISE_DEBUG") and not isinstance(error, click.ClickException):
        import traceback

        traceback.print_exception(error)
    if failure.message:
        text = wrapped(printable(failure.message))
        if has_colours(sys.stderr) and text.startswith("error: "):
            text = click.style("error:", fg="red", bold=True) + text.removeprefix("error:")
        click.echo(text, err=True)
        if as_json:
            say_json(as_fields(failure))
    return failure.exit_code


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - a handler's signature
    # A second signal must not interrupt the clean-up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated
