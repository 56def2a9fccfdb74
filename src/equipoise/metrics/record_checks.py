"""Checks of the values in a metric's record."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum, EnumMeta
from functools import cache
from types import UnionType
from typing import Literal, Protocol, Union, get_args, get_origin, get_type_hints

from equipoise.core import Span, Strings
from equipoise.core.errors import PluginError
from equipoise.discovery import KINDS

REVIEW = "review"
"""Reports metrics, and is no kind of audit."""


class Record(Protocol):
    """Fields of a record with checks of their own."""

    @property
    def name(self) -> str:
        """Name of the metric."""

    @property
    def kinds(self) -> Strings:
        """Kinds of audit that report it."""

    @property
    def by_default(self) -> Strings | None:
        """Kinds that measure it where no configuration names it."""

    @property
    def range(self) -> Span:
        """Smallest and largest value."""


def check_record(spec: Record) -> None:
    """Refuse values that a field of a record doesn't have.

    Raises
    ------
    PluginError
        With the field, the value and the values that it may have.
    """
    for field, choices in _choices(type(spec)).items():
        value: object = getattr(spec, field)
        if value not in choices:
            raise _refused(spec, field, value, _one_of(value, choices))
    kinds: object = spec.kinds
    if not isinstance(kinds, tuple):
        raise _refused(spec, "kinds", kinds, "a tuple of names")
    for kind in spec.by_default or ():
        if kind not in spec.kinds:
            raise _refused(spec, "by_default", kind, _one_of(kind, spec.kinds))
    if not spec.range[0] < spec.range[1]:
        raise _refused(spec, "range", spec.range, "the smaller number first")


def check_kinds(spec: Record, module: str) -> None:
    """Refuse kinds of audit that don't exist.

    A kind may be declared below its metrics: the folder of their module is its name.

    Raises
    ------
    PluginError
        With the kind and those that exist.
    """
    kinds = (*KINDS, REVIEW)
    for kind in spec.kinds:
        if kind not in (*kinds, *module.split(".")):
            raise _refused(spec, "kinds", kind, _one_of(kind, kinds))


@cache
def _choices(record: type) -> dict[str, tuple[object, ...]]:
    """Return the values of every field that has a limited number of them."""
    choices = {name: tuple(_values_of(hint)) for name, hint in get_type_hints(record).items()}
    return {name: values for name, values in choices.items() if values}


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
    near = get_close_matches(str(value), [str(choice) for choice in choices], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"one of {', '.join(map(repr, map(_plain, choices)))}{hint}"


def _plain(choice: object) -> object:
    return choice.value if isinstance(choice, Enum) else choice


def _refused(spec: Record, field: str, value: object, expected: str) -> PluginError:
    return PluginError(
        f"{field}: given {value!r}; expected {expected}", f"correct {field} in its MetricSpec",
        noun="metric", name=spec.name, packages=("",),
    )  # fmt: skip
