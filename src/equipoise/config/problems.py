"""Problems of a config, each with its key and line, from what pydantic reports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from equipoise.config.files import as_yaml, line_of, nearest
from equipoise.core import ConfigError
from equipoise.data.problems import expected_value

_MAX_PROBLEMS = 20
_KEY = re.compile(r"(\w+(?:\.\w+|\[\d+\])*): ")
Path = tuple[str | int, ...]
"""Keys and places from the outermost mapping to a value."""


class _Form(NamedTuple):
    """One of several forms of a value."""

    path: Path
    """Where the value stands."""
    name: str


class _Problem(NamedTuple):
    """A problem, and the forms that it belongs to, the outermost first."""

    path: Path
    details: ErrorDetails
    forms: tuple[_Form, ...] = ()


def explain(error: ValidationError, values: Any, source: str, node: Any = None) -> ConfigError:
    """Return the error with every problem of a configuration in one message.

    Its key and line are those of the first problem.

    Parameters
    ----------
    error : ValidationError
    values : mapping
        The configuration.
    source : str
        Name of the file.
    node : yaml.Node or None
        The document, for line numbers.
    """
    errors = error.errors(include_url=False)
    # A list is too short, too, because an entry is wrong.
    errors = [details for details in errors if details["type"] != "too_short"] or errors
    problems = []
    details_by_place = [_placed(values, details) for details in errors]
    for path, text in dict.fromkeys(_merged(details_by_place)):
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        key = "".join(steps).removeprefix(".")
        if key:
            problems.append((line_of(node, path), key, f"{key}: {text}"))
        else:
            place, key = _named_place(text, values)
            problems.append((line_of(node, place), key, text))
    problems.sort(key=lambda problem: problem[0] or 0)
    refusals = [
        ConfigError(
            f"{source}{f', line {line}' if line else ''}: {text}", key=key, file=source, line=line
        )
        for line, key, text in problems
    ]
    if len(refusals) == 1:
        return refusals[0]
    lines = [f"  {f'line {line}: ' if line else ''}{text}" for line, _, text in problems]
    if len(problems) > _MAX_PROBLEMS:
        lines[_MAX_PROBLEMS:] = [f"  and {len(problems) - _MAX_PROBLEMS} more"]
    message = "\n".join([f"{source}: {len(problems)} problems", *lines])
    line, key, _ = problems[0]
    return ConfigError(message, key=key, file=source, line=line, problems=refusals)


def _named_place(text: str, values: Any) -> tuple[Path, str]:
    """Return the place and the key that a text of the whole config begins with; "" without one."""
    named = _KEY.match(text)
    parts = [] if named is None else re.findall(r"[^.\[\]]+", named[1])
    if named is None or parts[0] not in values:
        return (), ""
    return tuple(int(part) if part.isdecimal() else part for part in parts), named[1]


def _placed(values: Any, details: ErrorDetails) -> _Problem:
    """Return a problem with the keys to it, without the tags that pydantic adds for unions."""
    path: list[str | int] = []
    forms: list[_Form] = []
    steps = [step for step in details["loc"] if step != "[key]"]
    for place, step in enumerate(steps):
        missing = details["type"] == "missing" and place == len(steps) - 1
        if path and _is_tag(step, values, missing=missing):
            if not _is_discriminator(step, values):
                forms.append(_Form(tuple(path), str(step)))
            continue
        path.append(step)
        values = _entry(values, step)
    context = details.get("ctx", {})
    if details["type"].startswith("union_tag"):
        path.append(context["discriminator"].strip("'"))
    if details["type"] == "unknown_key":
        path.append(context["key"])
    return _Problem(tuple(path), details, tuple(forms))


def _is_tag(step: str | int, values: Any, *, missing: bool) -> bool:
    """Whether a step names a form of the value rather than a part of it."""
    if isinstance(values, Mapping):
        return not missing and str(step) not in map(str, values)
    return isinstance(step, str)


def _is_discriminator(step: str | int, values: Any) -> bool:
    """Whether the value itself names the form."""
    return isinstance(values, Mapping) and step in [
        value for value in values.values() if isinstance(value, str)
    ]


def _entry(values: Any, step: str | int) -> Any:
    if isinstance(values, Mapping):
        return {str(key): value for key, value in values.items()}.get(str(step))
    if isinstance(values, list | tuple) and isinstance(step, int) and step < len(values):
        return values[step]
    return None


def _merged(problems: Sequence[_Problem], depth: int = 0) -> Iterator[tuple[Path, str]]:
    """Yield keys and text of problems: of a value with several forms, of the form meant."""
    for place, group in groupby(problems, key=lambda problem: _place_of_forms(problem, depth)):
        parts = [*group]
        if place is None:
            yield from ((problem.path, _sentence(problem.details)) for problem in parts)
            continue
        by_form: dict[str, list[_Problem]] = {}
        for problem in parts:
            by_form.setdefault(problem.forms[depth].name, []).append(problem)
        likely_forms = [form for form in by_form.values() if not _is_other_form(form, place)]
        if likely_forms or len(by_form) == 1:
            yield from _merged(min(likely_forms or by_form.values(), key=len), depth + 1)
        else:
            details = [form[0].details for form in by_form.values()]
            expected = ", or ".join(dict.fromkeys(map(_expected, details)))
            yield place, _given(details[0]["input"], expected)


def _place_of_forms(problem: _Problem, depth: int) -> Path | None:
    """Return where the value with several forms stands; None of a value with one."""
    return problem.forms[depth].path if depth < len(problem.forms) else None


def _is_other_form(problems: Sequence[_Problem], place: Path) -> bool:
    """Whether a value is of another type than a form, so that the user can't mean that form."""
    return any(
        problem.path == place
        and (
            re.search("_(type|parsing)$|^literal_error$", problem.details["type"]) is not None
            or (
                _is_expectation(problem.details)
                and not isinstance(problem.details["input"], Mapping)
            )
        )
        for problem in problems
    )


def _is_expectation(details: ErrorDetails) -> bool:
    """Whether a check of this package names its expectation."""
    return details["type"] == "value_error" and _own_text(details).startswith("expected ")


def _own_text(details: ErrorDetails) -> str:
    return details["msg"].removeprefix("Value error, ")


def _sentence(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("missing", "union_tag_not_found"):
        return "required, and missing"
    if kind == "unknown_key":
        return details["msg"]
    if kind == "value_error" and not _is_expectation(details):
        return _own_text(details)
    if kind == "union_tag_invalid":
        return _given(context["tag"], context["expected_tags"])
    return _given(details["input"], _expected(details))


def _expected(details: ErrorDetails) -> str:
    """Return the values that a key expects, in the words of a configuration."""
    if _is_expectation(details):
        return _own_text(details).removeprefix("expected ")
    return expected_value(details["type"], details["msg"])


def _given(value: Any, expected: str) -> str:
    words = re.findall("'([^']*)'", expected)
    hint = "" if "did you mean" in expected else nearest(value, words)
    return f"given {as_yaml(value)}; expected {expected}{hint}"
