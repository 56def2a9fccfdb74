"""JSON files, record by record, with errors that say where a field is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core import DataError
from equipoise.data.cells import float_text
from equipoise.data.files import RepeatedKeyError, hash_bytes, parse_json, read_whole
from equipoise.data.formats.rows import utf8_text
from equipoise.data.problems import is_whole, listed, show

_LARGEST = 10**300


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_whole(value)


def _is_number(value: object) -> bool:
    # float() cannot take every int that JSON can spell.
    return (type(value) is int and abs(value) < _LARGEST) or (
        type(value) is float and math.isfinite(value)
    )


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return is_whole(value) and bool(value.strip())
    return type(value) is int or (isinstance(value, float) and value.is_integer())


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

    @classmethod
    def of(cls, file: str, place: str, value: object) -> Record:
        """Return a value that must be an object."""
        if isinstance(value, dict):
            return cls(file, place, value)
        raise _wrong(f"{file}, {place}", value, "an object")

    def need(self, key: str, expected: str, fits: Callable[[Any], bool] = lambda _: True) -> Any:
        """Return a field that must be there, and fit."""
        if key not in self.fields:
            raise DataError(
                f"the key {key!r} is missing",
                file=f"{self.file}, {self.place}",
                expected=f"{key!r}: {expected}; the object has {listed(self.fields) or 'no keys'}",
                fix="check that this is the right file, and download it again if it is",
            )
        if not fits(self.fields[key]):
            raise _wrong(f"{self.file}, {self.place}.{key}", self.fields[key], expected)
        return self.fields[key]

    def id(self, key: str) -> str:
        """Return a whole number or text as the text of an id."""
        value = self.need(key, "a whole number or text", _is_id)
        return float_text(value) if isinstance(value, float) else str(value)

    def text(self, key: str) -> str:
        """Return a text."""
        return str(self.need(key, "text", _is_text))

    def number(self, key: str) -> float:
        """Return a finite number."""
        return float(self.need(key, "a finite number", _is_number))

    def number_text(self, key: str) -> str:
        """Return a finite number as the text that a table has."""
        return float_text(self.number(key))

    def numbers(self, key: str, length: int) -> tuple[float, ...]:
        """Return a list of so many finite numbers."""
        values = self._list(key, f"a list of {length} numbers", _is_number, length)
        return tuple(map(float, values))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(self._list(key, "a list of texts", _is_text))

    def objects(self, key: str) -> Iterator[Record]:
        """Yield the objects of a list."""
        for index, one in enumerate(self._list(key, "a list of objects", lambda _: True)):
            yield Record.of(self.file, f"{self.place}.{key}[{index}]", one)

    def _list(
        self, key: str, expected: str, fits: Callable[[Any], bool], length: int | None = None
    ) -> list[Any]:
        values: list[Any] = self.need(key, expected, lambda value: isinstance(value, list))
        if not all(map(fits, values)) or length not in (None, len(values)):
            raise _wrong(f"{self.file}, {self.place}.{key}", values, expected)
        return values


def _wrong(place: str, value: object, expected: str) -> DataError:
    return DataError(
        f"the value is {show(value)}, of type {type(value).__name__}",
        file=place,
        expected=expected,
        fix="check that this is the right file; correct it, or download it again",
    )


class JsonFile:
    """A JSON file.

    Attributes
    ----------
    name : str
        The path as given.
    digest : mapping
        "sha256" and "bytes".

    Raises
    ------
    DataError
        When the file cannot be read, is empty, cut off, no UTF-8 or no JSON.
    """

    def __init__(self, path: Path | str) -> None:
        content = read_whole(Path(path), ".json", "a JSON file of annotations")
        self.name, self.digest = str(path), hash_bytes(content)
        try:
            self._value = parse_json(utf8_text(content, self.name))
        except RepeatedKeyError as error:
            raise error.located(self.name) from None
        except ValueError as error:
            raise DataError(
                f"this is not JSON, or the file is cut off ({error})",
                file=self.name,
                expected="a whole JSON file",
                fix="download or write it again",
            ) from None

    def lists(self, *keys: str) -> list[Iterator[Record]]:
        """Return the objects in some lists of the one object of the file.

        Raises
        ------
        DataError
            When the file is no object, lacks one of the keys, or holds no list of objects there.
        """
        fields = Record.of(self.name, "the outermost object", self._value)
        values = [fields.need(key, "a list", lambda one: isinstance(one, list)) for key in keys]
        return [self._objects(key, one) for key, one in zip(keys, values, strict=True)]

    def records(self) -> Iterator[Record]:
        """Yield the objects of the one list of the file.

        Raises
        ------
        DataError
            When the file is no list of objects.
        """
        if not isinstance(self._value, list):
            raise _wrong(self.name, self._value, "a list of objects")
        yield from self._objects("", self._value)

    def _objects(self, key: str, values: list[Any]) -> Iterator[Record]:
        for index, value in enumerate(values):
            yield Record.of(self.name, f"{key}[{index}]", value)
