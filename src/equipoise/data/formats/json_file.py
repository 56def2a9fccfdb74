"""Large JSON files, record by record, with errors that say where a field is wrong."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from equipoise.core import DataError
from equipoise.data.cells import float_text
from equipoise.data.files import RepeatedKeyError, parse_json_at, read_whole
from equipoise.data.formats.rows import utf8_text
from equipoise.data.problems import counted, is_whole, listed, show

_LARGEST = 10**300
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
_SPACE = re.compile(r"[ \t\n\r]*")
_OUTERMOST = "the outermost object"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_whole(value)


def _is_number(value: object) -> bool:
    # float() cannot take every int that JSON can spell.
    return (type(value) is int and abs(value) < _LARGEST) or (
        type(value) is float and math.isfinite(value)
    )


def _is_id(value: object) -> bool:
    whole = isinstance(value, float) and value.is_integer()
    return whole or type(value) is int or (_is_text(value) and bool(str(value).strip()))


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

    def optional_id(self, key: str) -> str | None:
        """Return the text of an id, None where it is null or not there."""
        return None if self.fields.get(key) is None else self.id(key)

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


def _kind(value: object) -> str:
    kind = _KINDS.get(type(value), "")
    return f"{kind}, {show(value)}" if kind and value is not None else kind or show(value)


def _wrong(place: str, value: object, expected: str) -> DataError:
    return DataError(
        f"the value is {_kind(value)}",
        file=place,
        expected=expected,
        fix="check that this is the right file; correct it, or download it again",
    )


class JsonFile:
    """A JSON file, read once from its start: memory holds its text and one record at a time.

    Attributes
    ----------
    name : str
        The path as given.
    digest : mapping
        "sha256" and "bytes".

    Raises
    ------
    DataError
        When the file cannot be read, is empty or is not UTF-8.
    """

    def __init__(self, path: Path | str) -> None:
        content = read_whole(Path(path), ".json", "a JSON file of annotations")
        self.name = str(path)
        self.digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        self._text, self._at = utf8_text(content, self.name), 0
        self._skip()

    def lists(self, *keys: str) -> Iterator[tuple[str, Record]]:
        """Yield the objects in some lists of the one object of the file, each with its key.

        Raises
        ------
        DataError
            When the file is cut off, is no object, lacks one of the keys or has one twice.
        """
        if self._next != "{":
            self._not_that(f"an object with the keys {listed(keys)}")
        seen: dict[str, None] = {}
        for key in self._members():
            if key in seen:
                raise RepeatedKeyError(key).located(self.name)
            seen[key] = None
            if key not in keys:
                self._value(key)
            elif self._next != "[":
                self._not_that("a list of objects", key)
            else:
                yield from ((key, one) for one in self._elements(key))
        self._check_end()
        for key in keys:
            Record(self.name, _OUTERMOST, seen).need(key, "a list of objects")

    def records(self) -> Iterator[Record]:
        """Yield the objects of the one list of the file.

        Raises
        ------
        DataError
            When the file is cut off or is no list of objects.
        """
        if self._next != "[":
            self._not_that("a list of objects")
        yield from self._elements("")
        self._check_end()

    @property
    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, step: int = 0) -> None:
        found = _SPACE.match(self._text, self._at + step)
        self._at = found.end() if found else self._at

    def _value(self, place: str) -> Any:
        try:
            value, self._at = parse_json_at(self._text, self._at)
        except RepeatedKeyError as error:
            raise error.located(f"{self.name}, {place}") from None
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated")
            self._broken(len(self._text) if cut else error.pos, place, error.msg)
        except ValueError:
            self._broken(self._at, place, "a number or a nesting is too long")
        self._skip()
        return value

    def _members(self) -> Iterator[str]:
        """Take each key of an object; whoever asks for the next has taken the value."""
        self._skip(1)
        while self._next != "}":
            key = self._value(_OUTERMOST)
            if not isinstance(key, str) or self._next != ":":
                self._broken(self._at, _OUTERMOST, "expected a key and ':'")
            self._skip(1)
            yield key
            self._separator("}", key)
        self._skip(1)

    def _elements(self, key: str) -> Iterator[Record]:
        self._skip(1)
        index = 0
        while self._next != "]":
            place = f"{key}[{index}]"
            value = self._value(place)
            self._separator("]", place)
            yield Record.of(self.name, place, value)
            index += 1
        self._skip(1)

    def _separator(self, end: str, place: str) -> None:
        if self._next == ",":
            self._skip(1)
        elif self._next != end:
            self._broken(self._at, place, f"expected ',' or {end!r}")

    def _check_end(self) -> None:
        if self._next:
            self._broken(self._at, "after the last bracket", "the file goes on")

    def _not_that(self, expected: str, place: str = "") -> NoReturn:
        where = f"{self.name}, {place}" if place else self.name
        raise _wrong(where, self._value(place or "the start"), expected)

    def _broken(self, at: int, place: str, problem: str) -> NoReturn:
        length = counted(len(self._text), "character")
        raise DataError(
            f"this is not JSON ({problem}) at character {at + 1} of {length}"
            if self._text[at:].strip()
            else f"the file is cut off after {length}",
            file=f"{self.name}, {place}",
            expected="a whole JSON file",
            fix="download or write it again",
        )
