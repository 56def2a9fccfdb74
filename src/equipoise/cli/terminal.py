"""Output on the terminal: text without control sequences, tables, JSON, progress."""

from __future__ import annotations

import json
import os
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from equipoise.core.types import Json

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # scripts such as Persian and emoji need these two
_WAIT = 2.0
_Function = TypeVar("_Function", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
config_argument = click.argument("config", type=PATH)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
overwrite_run = click.option("--overwrite", is_flag=True, help="Replace an existing run.")


_OPEN = "equipoise.open"


def _note_open(context: click.Context, option: click.Parameter, value: bool) -> None:  # noqa: ARG001
    context.meta[_OPEN] = value


open_option = click.option(
    "--open", is_flag=True, expose_value=False, callback=_note_open, help="Open the report."
)


def refuse_open(option: str) -> None:
    """Refuse --open beside an option that writes no report."""
    if click.get_current_context().meta.get(_OPEN):
        raise click.BadParameter(
            f"can't go with {option}, which writes no report. To do: leave one of them out",
            param_hint="'--open'",
        )


def open_report(run: Path) -> None:
    """Open the report of a run in the browser if the user adds --open."""
    if click.get_current_context().meta.get(_OPEN):
        page = (run / "report.html").absolute()
        if click.launch(str(page)):
            note(f"can't open a browser; the report is {page}")


def out_option(default: str) -> Callable[[_Function], _Function]:
    """Return the option `--out` of a command that writes a run."""
    about = f"Where to write the run [default: {default}]."
    return click.option("--out", type=PATH, metavar="DIR", help=about)


def printable(text: object) -> str:
    """Return text without control and invisible characters; line ends stay."""
    return "".join(
        character
        for character in str(text).replace("\t", " ")
        if character in f"\n{_JOINERS}" or unicodedata.category(character) not in _HIDDEN
    )


def has_colours(stream: TextIO | None = None) -> bool:
    """Whether a stream, stdout by default, is a terminal and NO_COLOR isn't set."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR")


def say(text: str = "", verdict: str = "", colour: str | None = None) -> None:
    """Write a line of the result to stdout; on a terminal, a verdict at its end is bold."""
    text = printable(text)
    if verdict and text.endswith(verdict) and has_colours():
        text = text.removesuffix(verdict) + click.style(verdict, fg=colour, bold=True)
    click.echo(text)


def note(text: str) -> None:
    """Write a line about the work to stderr."""
    click.echo(printable(text), err=True)


def say_json(value: Any) -> None:
    """Write a value to stdout as JSON; NaN is null, and infinities are strings.

    Everything outside ASCII is escaped, so that no label can act on a terminal.
    """
    from equipoise.core.plain_json import plain

    click.echo(json.dumps(plain(value), indent=1, allow_nan=False))


def say_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows in aligned columns; columns of numbers are aligned to the right."""
    cells = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    padded = []
    for title, *texts in zip(header, *cells, strict=True):
        width = max(map(len, (title, *texts)))
        right = bool(texts) and all(map(_is_number, texts))
        column = (title, "-" * width, *texts)
        padded.append([text.rjust(width) if right else text.ljust(width) for text in column])
    for row in zip(*padded, strict=True):
        click.echo("  ".join(row).rstrip())


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789.,−-+–∞% \u00a0\u202fe")


def say_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Write rows as a table of some columns; of all columns unless given."""
    # Rows of models of different kinds may have different columns.
    columns = columns or [*dict.fromkeys(column for row in rows for column in row)]
    say_table(columns, [[cell_text(row.get(column)) for column in columns] for row in rows])


# Rows of a table that are printed; the JSON has all.
_MOST_ROWS = 60


def say_values(values: Mapping[str, Json]) -> None:
    """Write named values: plain ones on a line each, lists of records as tables."""
    for name, value in values.items():
        title = name.replace("_", " ")
        if isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
            say(f"\n{title}:")
            say_rows(value[:_MOST_ROWS])
            if len(value) > _MOST_ROWS:
                say(f"… and {len(value) - _MOST_ROWS} more; all with --json")
        elif name in ("limits", "notes", "warnings") and isinstance(value, Sequence):
            for text in value:
                say(f"{name.removesuffix('s')}: {text}")
        else:
            say(f"{title}: {cell_text(value)}")


def cell_text(value: Json | bool) -> str:
    """Return a value of JSON as text for a line."""
    from equipoise.report.text import number

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {cell_text(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        cells = [*map(cell_text, value)]
        # A comma within an item is none between items.
        return ("; " if any("," in cell for cell in cells) else ", ").join(cells) or "none"
    return "–" if value is None else str(value)


class Steps:
    """Progress on stderr for work that outlasts two seconds; silent off a terminal.

    Call it with the name of a step and, where they are known, the work done and the total.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._timer: threading.Timer | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Steps:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._timer = threading.Timer(_WAIT, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None and self._bar is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Show which step is under way, and how far it is.

        What follows "; " in a step may differ from call to call.
        """
        if self._bar is None:
            return
        from rich.markup import escape

        text, (name, *_) = escape(printable(step)), step.split("; ")
        if name not in self._tasks:
            self._tasks[name] = self._bar.add_task(text, total=total)
        self._bar.update(self._tasks[name], completed=done, total=total, description=text)
