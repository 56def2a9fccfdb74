"""What reaches the terminal: text without control sequences, aligned tables, JSON, progress."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Progress, Task, TaskID

_ESCAPES = re.compile(
    "(?:\x1b[\\[]|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor moves
    "|(?:\x1b\\]|\x9d).*?(?:\x07|\x1b\\\\|\x9c|$)"  # titles, links
    "|\x1b[PX^_].*?(?:\x1b\\\\|\x9c|$)"  # strings for the terminal itself
    "|\x1b.?",
    re.DOTALL,
)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"  # scripts such as Persian and emoji need these two
_WAIT = 2.0
# Steps of fewer items show no rate; rates above are whole numbers.
_MANY = 100

_Function = TypeVar("_Function", bound=Callable[..., Any])


def keep_stdout() -> None:
    """Keep stdout for results: what a library writes past Python goes to stderr.

    Daft does, where it sees Ctrl-C, and would break the JSON that a program reads.
    """
    stream = sys.stdout
    try:
        if stream.fileno() != 1:
            return
        stream.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):
        return
    lines = 1 if os.isatty(own) else -1
    sys.stdout = os.fdopen(own, "w", lines, encoding=stream.encoding, errors=stream.errors)


def printable(text: object) -> str:
    """Return text without escape sequences, control and invisible characters; line ends stay."""
    return "".join(map(_shown, _ESCAPES.sub("", str(text))))


def _shown(character: str) -> str:
    if character in "\n" or character in _JOINERS:
        return character
    if character == "\t":
        return " "
    return "" if unicodedata.category(character) in _HIDDEN else character


def say(text: str = "") -> None:
    """Write a line of the result to stdout."""
    click.echo(printable(text))


def note(text: str) -> None:
    """Write a line about the work to stderr."""
    click.echo(printable(text), err=True)


def say_json(value: Any) -> None:
    """Write a value to stdout as JSON; NaN and infinities are strings.

    Everything outside ASCII is escaped, so that no label can act on a terminal.
    """
    click.echo(json.dumps(_plain(value), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, str | int | float) else str(value)


def say_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows in aligned columns; columns of numbers are aligned to the right."""
    cells = [[" ".join(printable(cell).split()) for cell in row] for row in rows]
    columns = [*zip(header, *cells, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    right = [bool(cells) and all(map(_is_number, column[1:])) for column in columns]
    for row in (header, ["-" * width for width in widths], *cells):
        padded = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        click.echo("  ".join(padded).rstrip())


def _is_number(cell: str) -> bool:
    return not cell.strip("0123456789.,−-+–∞% \u00a0\u202fe")


def json_option(function: _Function) -> _Function:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        function
    )


class Steps:
    """Progress on stderr for work that outlasts two seconds; silent off a terminal.

    Call it with the name of a step and, where they are known, what is done and what there is to
    do.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._timer: threading.Timer | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Steps:
        if sys.stderr.isatty():
            self._bar = _new_bar()
            self._timer = threading.Timer(_WAIT, self._bar.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None and self._bar is not None:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Show which step is under way, and how far it is."""
        if self._bar is None:
            return
        if step not in self._tasks:
            self._tasks[step] = self._bar.add_task(printable(step), total=total)
        self._bar.update(self._tasks[step], completed=done, total=total)


def _new_bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many a second, of steps with enough to do that it tells something."""

        def render(self, task: Task) -> Text:
            return Text(rate(task.total, task.speed))

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        Rate(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def rate(total: float | None, speed: float | None) -> str:
    """Return how many items a second are done, in words; "" of few items or before it is known."""
    if not speed or total is None or total < _MANY:
        return ""
    return f"{speed:.3g} a second" if speed < _MANY else f"{speed:,.0f} a second"
