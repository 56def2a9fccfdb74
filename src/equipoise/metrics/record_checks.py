"""Checks of a metric's record: the types of its fields, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum, EnumMeta
from functools import cache
from itertools import chain, pairwise
from keyword import iskeyword
from math import isnan
from re import compile as compiled
from re import split
from string import Formatter
from types import NoneType, UnionType
from typing import Literal, Protocol, Union, get_args, get_origin, get_type_hints

from equipoise.core import Harm, Span, Strings
from equipoise.core.errors import PluginError
from equipoise.discovery import KINDS

REVIEW = "review"
"""Reports metrics, and is no kind of audit."""
MEASUREMENT_KEYS = (
    "alternative", "attributes", "centre", "common_labels", "ddof", "declared_sides",
    "each_member", "first", "further", "generated", "groups", "hypothesis", "images", "k",
    "labels", "modalities", "negative", "neutral", "of", "offset", "outside", "positive",
    "regions", "resample_texts", "size_of_mean", "statistic", "studentized", "targets",
    "whole_vocabulary",
)  # fmt: skip
"""Keys of a measurement under `measure` in a configuration."""

_NAME = compiled("[a-z][a-z0-9_]*")
_RESERVED = ("only",)
"""Keys under `metrics` of a configuration that are no metric."""
_DIRECTIONS = ("higher", "lower", "either", "neither")
_CLAUSE = "model subject about of groups group share n k expected"
_TEMPLATES = {
    "sentence": "title model subject of value size k groups direction",
    "clause": _CLAUSE,
    "observed_clause": _CLAUSE,
    "error_clause": "model subject about of",
    "part": "share group",
    "pair_clause": "worse better label of over groups",
}
"""Fields of each template."""
_TYPES: Mapping[object, str] = {
    str: "text", bool: "True or False", float: "a number", NoneType: "None",
}  # fmt: skip


class Record(Protocol):
    """A record of a metric, whose fields are read by name."""

    @property
    def name(self) -> str:
        """Name of the metric."""

    @property
    def kinds(self) -> Strings:
        """Kinds of audit that report it."""


def check_types(spec: Record) -> None:
    """Refuse values that aren't of the type of their field.

    Raises
    ------
    PluginError
        With the field, the value and the values that it may have.
    """
    for field, hint in _hints(type(spec)).items():
        value: object = getattr(spec, field)
        if not _fits(value, hint):
            choices = tuple(_values_of(hint))
            expected = _one_of(value, choices) if choices else _described(hint)
            raise _refused(spec, field, value, expected)


def check_record(spec: Record, module: str, is_metric: Callable[[str], bool]) -> None:
    """Refuse a record whose values contradict each other, or name what doesn't exist.

    Parameters
    ----------
    spec : Record
    module : str
        The module that registers it. A kind may be declared below its metrics: the folder of their
        module is its name.
    is_metric : callable
        Whether a metric of a name is registered.

    Raises
    ------
    PluginError
        With the field, the value and what it may be.
    """
    problems = chain(_contradictions(spec), _unknown_names(spec, module, is_metric))
    for field, value, expected in problems:
        raise _refused(spec, field, value, expected)


Problem = tuple[str, object, str]
"""A field, its value, and what is expected."""


def _contradictions(spec: Record) -> Iterator[Problem]:
    """Yield values that no metric has, or none with the other values."""
    for fields, holds, expected in _CHECKS:
        values = [getattr(spec, field) for field in fields]
        if not holds(*values):
            yield fields[0], values[0], expected
    for template, names in _TEMPLATES.items():
        text: str = getattr(spec, template)
        if not _fields_of(text) <= {*names.split()}:
            allowed = ", ".join(f"{{{name}}}" for name in names.split())
            yield template, text, f"text with the fields {allowed}"


def _unknown_names(
    spec: Record, module: str, is_metric: Callable[[str], bool]
) -> Iterator[Problem]:
    """Yield names of kinds, keys and metrics that don't exist."""
    kinds = (*KINDS, REVIEW)
    for field, choices, more in (
        ("kinds", kinds, module.split(".")),
        ("by_default", spec.kinds, ()),
        ("observed_in", spec.kinds, ()),
        ("needs", MEASUREMENT_KEYS, ()),
        ("takes", MEASUREMENT_KEYS, ()),
    ):
        for name in sorted({*_names_in(spec, field)} - {*choices, *more}):
            yield field, name, _one_of(name, choices)
    for field in ("fold", "mirror", "rest_metric", "group_metric", "combines"):
        for name in _names_in(spec, field):
            if name != spec.name and not is_metric(name):
                yield field, name, "the name of a metric that is registered before"


def _names_in(spec: Record, field: str) -> tuple[str, ...]:
    """Return the names in a field that has one, several, or none."""
    value = getattr(spec, field) or ()
    return (value,) if isinstance(value, str) else value


def _is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and not iskeyword(name) and name not in _RESERVED


def _starts_with_harm(direction: str, harm: Harm | None) -> bool:
    """Whether the direction doesn't start with another side than that of harm."""
    side = split(r"\W", direction.strip(), maxsplit=1)[0].lower()
    return side not in _DIRECTIONS or side == (harm or "neither")


def _is_between(number: float | None, limits: Span) -> bool:
    return number is None or limits[0] <= number <= limits[1]


def _is_width(threshold: float | None, limits: Span) -> bool:
    return _is_between(threshold, (0.0, limits[1] - limits[0]))


def _rises(numbers: Iterable[float]) -> bool:
    return all(low < high for low, high in pairwise(numbers))


def _fields_of(template: str) -> set[str]:
    """Return the fields of a template; "{" of one that isn't closed, which no template has."""
    try:
        return {name for _, name, *_ in Formatter().parse(template) if name is not None}
    except ValueError:
        return {"{"}


_CHECKS: tuple[tuple[Strings, Callable[..., object], str], ...] = (
    (
        ("name",),
        _is_name,
        "lower-case letters, digits and _, a letter first, no keyword of Python, and not 'only'",
    ),
    (("definition",), str.strip, "text: what is computed"),
    (("direction",), str.strip, "text: which side is worse"),
    (("reference",), str.strip, "text: where the definition comes from"),
    (
        ("direction", "harm"),
        _starts_with_harm,
        "the side of `harm` first: Higher, Lower or Either, and Neither for None",
    ),
    (("range",), _rises, "the smaller number first"),
    (
        ("neutral", "limits"),
        _is_between,
        "a number in `range`, or None for the mean of the chance level",
    ),
    (
        ("threshold", "limits"),
        _is_width,
        "a number from 0 to the width of `range`, or None for no verdict",
    ),
    (("bands",), lambda bands: _rises(bands.values()), "lower limits that rise"),
)
"""A field with others that it must fit, whether it does, and what is expected."""


@cache
def _hints(record: type) -> dict[str, object]:
    return get_type_hints(record)


def _fits(value: object, hint: object) -> bool:
    """Whether a value is of the type of a field."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, parts)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            map(_items_fit, value.items(), [parts] * len(value))
        )
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and not isnan(value)
    return isinstance(hint, type) and isinstance(value, hint)


def _items_fit(items: tuple[object, ...], hints: tuple[object, ...]) -> bool:
    if hints[-1] is Ellipsis:
        hints = hints[:1] * len(items)
    return len(items) == len(hints) and all(map(_fits, items, hints))


def _described(hint: object) -> str:
    """Return the type of a field in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if values := tuple(_values_of(hint)):
        return _one_of(None, values)
    if origin in (Union, UnionType):
        return " or ".join(map(_described, parts))
    if origin is tuple:
        texts = parts[-1] is Ellipsis
        return "a tuple of names" if texts else "a tuple of two numbers, the smaller one first"
    if origin is Mapping:
        return f"a mapping: {_described(parts[0])}, each with {_described(parts[1])}"
    return _TYPES[hint]


def _values_of(annotation: object) -> Iterator[object]:
    """Yield the values of a type that has a limited number of them."""
    if isinstance(annotation, EnumMeta):
        yield from annotation
    elif get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) in (Union, UnionType):
        values = [value for part in get_args(annotation) for value in _values_of(part)]
        yield from (*values, None) if values else ()


def _one_of(value: object, choices: tuple[object, ...]) -> str:
    names = {str(choice): _plain(choice) for choice in choices}
    near = get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {names[near[0]]}?" if near else ""
    return f"one of {', '.join(names.values())}{hint}"


def _plain(choice: object) -> str:
    return f"{type(choice).__name__}.{choice.name}" if isinstance(choice, Enum) else repr(choice)


def _refused(spec: Record, field: str, value: object, expected: str) -> PluginError:
    return PluginError(
        f"{field}: given {value!r}; expected {expected}", f"correct {field} in its MetricSpec",
        noun="metric", name=spec.name, packages=("",),
    )  # fmt: skip
