"""Objects of JSON files, with errors that say where a field is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from equipoise.core import DataError
from equipoise.data.cells import float_text
from equipoise.data.problems import is_whole, listed, show

_LARGEST = 10**300
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}


@dataclass(frozen=True)
class Record:
    """One object of a JSON file.

    Attributes
    ----------
    file : str
        The path as given.
    place : str
        Where it is, as in "annotations[17]": lists count from 0.
    fields : mapping
    """

    file: str
    place: str
    fields: Mapping[str, Any]

    def need(self, key: str, expected: str) -> Any:
        """Return a field that must be there."""
        if key not in self.fields:
            raise DataError(
                f"the key {key!r} is missing",
                file=f"{self.file}, {self.place}",
                expected=f"{key!r}: {expected}; the object has {listed(self.fields) or 'no keys'}",
                fix="check that this is the right file, and download it again if it is",
            )
        return self.fields[key]

    def id(self, key: str) -> str:
        """Return a whole number or text as the text of an id."""
        return self._id(key, self.need(key, "a whole number or text"))

    def optional_id(self, key: str) -> str | None:
        """Return the text of an id, None where it is null or not there."""
        value = self.fields.get(key)
        return None if value is None else self._id(key, value)

    def _id(self, key: str, value: object) -> str:
        if isinstance(value, float) and value.is_integer():
            return float_text(value)
        is_id = (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, str) and bool(value.strip()) and is_whole(value)
        )
        return str(value) if is_id else self.wrong(key, value, "a whole number or text")

    def text(self, key: str) -> str:
        """Return a text."""
        value = self.need(key, "text")
        if isinstance(value, str) and is_whole(value):
            return value
        return self.wrong(key, value, "text")

    def number(self, key: str) -> float:
        """Return a finite number."""
        return self._number(key, self.need(key, "a number"))

    def _number(self, key: str, value: object) -> float:
        # float() cannot take every int that JSON can spell.
        if type(value) is int and abs(value) < _LARGEST:
            return float(value)
        if type(value) is float and math.isfinite(value):
            return value
        return self.wrong(key, value, "a finite number")

    def number_text(self, key: str) -> str:
        """Return a finite number as the text that a table has."""
        return float_text(self.number(key))

    def numbers(self, key: str, length: int) -> tuple[float, ...]:
        """Return a list of so many finite numbers."""
        expected = f"a list of {length} numbers"
        value = self.need(key, expected)
        if not isinstance(value, list) or len(value) != length:
            self.wrong(key, value, expected)
        return tuple(self._number(key, one) for one in value)

    def objects(self, key: str) -> Iterator[Record]:
        """Yield the objects of a list."""
        value = self.need(key, "a list of objects")
        if not isinstance(value, list):
            self.wrong(key, value, "a list of objects")
        for index, one in enumerate(value):
            yield as_record(self.file, f"{self.place}.{key}[{index}]", one)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        value = self.need(key, "a list of texts")
        if not isinstance(value, list) or not all(
            isinstance(one, str) and is_whole(one) for one in value
        ):
            self.wrong(key, value, "a list of texts")
        return tuple(value)

    def wrong(self, key: str, value: object, expected: str) -> NoReturn:
        """Raise on a value of a wrong type."""
        raise DataError(
            f"the value is {told(value)}",
            file=f"{self.file}, {self.place}.{key}",
            expected=expected,
            fix="correct the file, or download it again",
        )


def told(value: object) -> str:
    """Return what a value is, in words."""
    kind = _KINDS.get(type(value), "")
    return f"{kind}, {show(value)}" if kind and value is not None else kind or show(value)


def as_record(file: str, place: str, value: object) -> Record:
    """Return a value that must be an object."""
    if isinstance(value, dict):
        return Record(file, place, value)
    raise DataError(
        f"the value is {told(value)}",
        file=f"{file}, {place}",
        expected="an object",
        fix="correct the file, or download it again",
    )
