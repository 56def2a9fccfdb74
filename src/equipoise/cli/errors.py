"""Failures of a command: the message on stderr, and its fields for `--json`."""

from __future__ import annotations

import errno
import re
import sys
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from equipoise.discovery import package_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from equipoise.core.types import Json

ERROR, INTERRUPTED, PIPE_CLOSED, TERMINATED = 2, 130, 141, 143
WIDTH = 80
_DEBUG = "To do: set EQUIPOISE_DEBUG=1 to see the traceback, and report it with the command"
_TO_DO = "To do: "
_FIX = re.compile(rf"{_TO_DO}(.*)\Z", re.DOTALL)
_SUGGESTION = re.compile(r"did you mean (['\"])(.*?)\1\?")
_NOT_ENDED = re.compile(r"(?<![.?!:])$")
_FILE = re.compile(r"([^\s:,]*[./][^\s:,]*)(?:, line (\d+))?: ")
"""A path in front of a message."""
_RUN = re.compile(r"(.*?): ")
_EXPECTED = re.compile(
    r"(?:; expected|Allowed(?: here)?:) (.*?)(?:; did you mean|\. |\Z)", re.DOTALL
)
_WHOLE = re.compile(r"\Aerror: |'equipoise [^'\n]*'|^  equipoise .*$", re.MULTILINE)
_UNBROKEN = "\0"
"""Stands for a space at which no line is broken: messages have no control characters."""
_UNEXPECTED = re.compile(r"Got unexpected extra arguments? \((.*)\)")


class Terminated(KeyboardInterrupt):
    """SIGTERM: it ends a command as Ctrl-C does."""


@dataclass(frozen=True)
class Failure:
    """Why a command failed.

    Attributes
    ----------
    message : str
        The whole text; "" where nothing is printed.
    exit_code : int
    file, line, key : optional
        Place in a config.
    column, row : optional
        Place in a table; rows count from 1.
    option : str or None
        Option or argument of the command line.
    expected, fix, suggestion : str or None
        Allowed values, what to do, and the most similar name.
    problems : tuple of Failure
        Each problem of a message that has several; the other fields are those of the first.
    """

    message: str
    exit_code: int = ERROR
    file: str | None = None
    line: int | None = None
    key: str | None = None
    column: str | None = None
    row: int | None = None
    option: str | None = None
    expected: str | None = None
    fix: str | None = None
    suggestion: str | None = None
    problems: tuple[Failure, ...] = ()


_FIELDS = [field.name for field in fields(Failure) if field.name != "problems"]
_PLACES = ("file", "line", "key", "column", "row", "expected")
"""Fields that errors of the library have, too."""


def failure_of(error: BaseException, place: str = "") -> Failure:
    """Return the message and the fields of a failure.

    Parameters
    ----------
    error : BaseException
        Anything that ended a command, or a part of it.
    place : str
        What failed, if not the whole command.
    """
    if isinstance(error, KeyboardInterrupt):
        code = TERMINATED if isinstance(error, Terminated) else INTERRUPTED
        return Failure(str(error) or "interrupted; nothing half-written is left", code)
    if isinstance(error, click.Abort):
        return Failure("stopped; nothing was written", INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        return Failure("", PIPE_CLOSED)
    text = _usage(error) if isinstance(error, click.UsageError) else _sentence(error)
    message = f"error: {place}: {text}" if place else f"error: {text}"
    if problems := tuple(map(failure_of, getattr(error, "problems", ()))):
        return replace(problems[0], message=message, problems=problems)
    fix, suggestion = _FIX.search(text), _SUGGESTION.search(text)
    named: dict[str, Any] = {name: getattr(error, name, None) or None for name in _PLACES}
    pattern = _RUN if _is(error, "RunError") else _FILE
    if named["file"] is None and (file := pattern.match(text)):
        named["file"] = file[1]
    if named["expected"] is None and (expected := _EXPECTED.search(text)):
        named["expected"] = expected[1]
    option = _option_of(error)
    if named["file"] and named["file"].startswith("--"):
        option, named["file"] = named["file"], None
    return Failure(
        message,
        option=option,
        fix=fix[1].strip() if fix else _likely_fix(text, suggestion, named["expected"]),
        suggestion=suggestion[2] if suggestion else None,
        **named,
    )


def _likely_fix(text: str, suggestion: re.Match[str] | None, expected: str | None) -> str | None:
    """Return the fix for an error without a fix in its message."""
    if suggestion is not None:
        return f"write {suggestion[2]!r}"
    if text.endswith("required, and missing"):
        return "add the key"
    return f"write {expected}" if expected else None


def _is(error: BaseException, name: str) -> bool:
    """Whether an error is of a class of the library, which may not be loaded."""
    # Loading the error tree costs numpy and pyarrow; whoever raised one of it has paid already.
    errors = sys.modules.get("equipoise.core.errors")
    return errors is not None and isinstance(error, getattr(errors, name))


def as_fields(failure: Failure) -> dict[str, Json]:
    """Return what `--json` prints about a failure."""
    values = _values(failure)
    problems = [*map(_values, failure.problems)]
    return {"error": values | ({"problems": problems} if problems else {})}


def _values(failure: Failure) -> dict[str, Json]:
    values = {name: getattr(failure, name) for name in _FIELDS}
    return values | {"message": failure.message.removeprefix("error: ")}


def wrapped(message: str) -> str:
    """Return a message in lines of at most 80 letters, its fix on a line of its own.

    Paths and commands stay whole.
    """
    message = message.replace(f". {_TO_DO}", f".\n{_TO_DO}").replace(f"? {_TO_DO}", f"?\n{_TO_DO}")
    message = _WHOLE.sub(lambda match: match[0].replace(" ", _UNBROKEN), message)
    lines: list[str] = []
    for line in message.splitlines():
        indent = line[: len(line) - len(line.lstrip(" "))]
        lines += wrap(
            line, WIDTH, subsequent_indent=f"{indent}  ", break_long_words=False,
            break_on_hyphens=False,
        ) or [""]  # fmt: skip
    return "\n".join(lines).replace(_UNBROKEN, " ")


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" with the most similar word, or ""."""
    close = get_close_matches(word.casefold(), [*words], n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _usage(error: click.UsageError) -> str:
    """Return the problem of a command line, and the fix."""
    context, option = error.ctx, _option_of(error)
    path = context.command_path if context is not None else "equipoise"
    help_of = f"{_TO_DO}see '{path} --help'"
    if isinstance(error, click.NoSuchOption):
        near = did_you_mean(str(option), _options_of(context)) or "."
        return f"{option}: no such option{near} {help_of}"
    if isinstance(error, click.MissingParameter):
        return f"{option}: missing. {_example(context) or help_of}"
    if context is not None and error.message.startswith("Usage: "):
        names = ", ".join(getattr(context.command, "commands", ()))
        return f"{path}: expected one of its commands: {names}. {help_of}"
    text = _UNEXPECTED.sub(r"unexpected: \1", error.message)
    if isinstance(error, click.BadParameter) and option:
        text = f"{option}: {_value_problem(error)}"
    elif isinstance(error, click.BadOptionUsage) and option:
        text = f"{option}: {'needs a value' if 'requires' in text else text}"
    if _TO_DO in text:
        return text
    return f"{_NOT_ENDED.sub('.', text.strip(), count=1)} {help_of}"


def _value_problem(error: click.BadParameter) -> str:
    """Return the problem of the value of an option or argument."""
    kind = None if error.param is None else error.param.type
    quoted = re.match(r"'(.*?)' is not ", error.message)
    if isinstance(kind, click.Choice) and quoted is not None:
        words = [*map(str, kind.choices)]
        near = did_you_mean(quoted[1], words)
        return f"given {quoted[1]!r}; expected one of {', '.join(words)}{near}"
    given = re.match(r"('.*?') is not a valid (?:integer|float)", error.message)
    if given is not None:
        return f"given {given[1]}; expected {_numbers(kind)}"
    given = re.match(r"(\S+) is not in the range", error.message)
    return f"given {given[1]}; expected {_numbers(kind)}" if given else error.message


def _numbers(kind: Any) -> str:
    """Return which numbers an option takes."""
    text = "a number" if kind is not None and "float" in kind.name else "a whole number"
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f"{text} from {low} to {high}"
    return text if low is None else f"{text} of at least {low}"


def _example(context: click.Context | None) -> str:
    """Return the fix that shows the example of a command; "" without one."""
    epilog = None if context is None else context.command.epilog
    example = (epilog or "").removeprefix("Example: ")
    return f"{_TO_DO}write it as in: {example}" if example else ""


def _options_of(context: click.Context | None) -> list[str]:
    parameters: Sequence[click.Parameter] = context.command.get_params(context) if context else ()
    return [name for parameter in parameters for name in parameter.opts if name.startswith("--")]


def _option_of(error: BaseException) -> str | None:
    """Return the option or argument of an error, as a user writes it."""
    if isinstance(error, click.BadParameter):
        hint = error.param_hint
        if hint is None and error.param is not None:
            hint = error.param.get_error_hint(error.ctx) if error.ctx is not None else None
        names = [hint] if isinstance(hint, str) else [*(hint or ())]
        return names[0].split(" / ")[0].strip("'[]") if names else None
    option: str | None = getattr(error, "option_name", None)
    return option


def _sentence(error: BaseException) -> str:
    """Return the message of an error that isn't about the command line."""
    if isinstance(error, SystemExit):
        return f"a library or a model ended the command by itself (SystemExit: {error}). {_DEBUG}"
    if isinstance(error, MemoryError):
        return "not enough memory. To do: fewer models per audit, or a machine with more memory"
    if _is(error, "EquipoiseError"):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"{place}the disk is full. To do: free space, or write elsewhere"
        return f"{place}{error.strerror}"
    first = (str(error).strip().splitlines() or ["no message"])[0]
    package = package_behind(error)
    if package:
        fix = f"set EQUIPOISE_DEBUG=1 to see the traceback; update or uninstall {package}"
        return f"the package {package} failed ({type(error).__name__}: {first}). {_TO_DO}{fix}"
    return f"unexpected {type(error).__name__}: {first}. {_DEBUG}"
