"""Large JSON files, record by record, with errors that say where a field is wrong."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
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


FORMATS = ".json"
_SPACE = re.compile(r"[ \t\n\r]*")
_OUTERMOST = "the outermost object"


@dataclass(frozen=True)
class JsonText:
    """The text of a JSON file.

    Attributes
    ----------
    name : str
        The path as given.
    text : str
    digest : mapping
        "sha256" and "bytes".
    """

    name: str
    text: str
    digest: Mapping[str, Any]


def open_json(path: Path | str) -> JsonText:
    """Read the text of a JSON file.

    Raises
    ------
    DataError
        When the file cannot be read, is empty or is not UTF-8.
    """
    content = read_whole(Path(path), FORMATS, "a JSON file of annotations")
    name = str(path)
    digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    return JsonText(name, utf8_text(content, name), digest)


def records_of_lists(source: JsonText, keys: tuple[str, ...]) -> Iterator[tuple[str, Record]]:
    """Yield the objects in the lists of a file that is one object, each with the key of its list.

    Raises
    ------
    DataError
        When the file is cut off, is no object, lacks one of the keys or has one twice.
    """
    cursor = _Cursor(source)
    if cursor.next != "{":
        cursor.not_that(f"an object with the keys {listed(keys)}")
    seen: dict[str, None] = {}
    for key in cursor.members():
        if key in seen:
            raise RepeatedKeyError(key).located(source.name)
        seen[key] = None
        if key in keys and cursor.next == "[":
            yield from ((key, one) for one in cursor.elements(key))
        elif key in keys:
            cursor.not_that("a list of objects", key)
        else:
            cursor.value(key)
    cursor.check_end()
    whole = Record(source.name, _OUTERMOST, seen)
    for key in keys:
        whole.need(key, "a list of objects")


def records_of_list(source: JsonText) -> Iterator[Record]:
    """Yield the objects of a file that is one list.

    Raises
    ------
    DataError
        When the file is cut off or is no list of objects.
    """
    cursor = _Cursor(source)
    if cursor.next != "[":
        cursor.not_that("a list of objects")
    yield from cursor.elements("")
    cursor.check_end()


class _Cursor:
    """A place in a JSON text that moves on as values are taken."""

    def __init__(self, source: JsonText) -> None:
        self._source, self._text, self._at = source, source.text, 0
        self._skip()

    @property
    def next(self) -> str:
        """The next character, empty at the end."""
        return self._text[self._at : self._at + 1]

    def _skip(self, step: int = 0) -> None:
        found = _SPACE.match(self._text, self._at + step)
        self._at = found.end() if found else self._at

    def value(self, place: str) -> Any:
        """Take one value."""
        try:
            value, self._at = parse_json_at(self._text, self._at)
        except RepeatedKeyError as error:
            raise error.located(f"{self._source.name}, {place}") from None
        except json.JSONDecodeError as error:
            cut = error.msg.startswith("Unterminated")
            self._broken(len(self._text) if cut else error.pos, place, error.msg)
        except ValueError:
            self._broken(self._at, place, "a number or a nesting is too long")
        self._skip()
        return value

    def members(self) -> Iterator[str]:
        """Take each key of an object; who asks for the next has taken the value."""
        self._skip(1)
        while self.next != "}":
            key = self.value(_OUTERMOST)
            if not isinstance(key, str) or self.next != ":":
                self._broken(self._at, _OUTERMOST, "expected a key and ':'")
            self._skip(1)
            yield key
            self._separator("}", key)
        self._skip(1)

    def elements(self, key: str) -> Iterator[Record]:
        """Take each object of a list."""
        self._skip(1)
        index = 0
        while self.next != "]":
            place = f"{key}[{index}]"
            value = self.value(place)
            self._separator("]", place)
            yield as_record(self._source.name, place, value)
            index += 1
        self._skip(1)

    def _separator(self, end: str, place: str) -> None:
        if self.next == ",":
            self._skip(1)
        elif self.next != end:
            self._broken(self._at, place, f"expected ',' or {end!r}")

    def check_end(self) -> None:
        """Raise where the file goes on."""
        if self.next:
            self._broken(self._at, "after the last bracket", "the file goes on")

    def not_that(self, expected: str, place: str = "") -> NoReturn:
        """Raise on a value that is of another type."""
        value = self.value(place or "the start")
        raise DataError(
            f"the value is {told(value)}" if place else f"the file holds {told(value)}",
            file=", ".join(filter(None, (self._source.name, place))),
            expected=expected,
            fix="check that this is the right file",
        )

    def _broken(self, at: int, place: str, problem: str) -> NoReturn:
        length = counted(len(self._text), "character")
        cut = not self._text[at:].strip()
        raise DataError(
            f"the file is cut off after {length}"
            if cut
            else f"this is not JSON ({problem}) at character {at + 1} of {length}",
            file=f"{self._source.name}, {place}",
            expected="a whole JSON file",
            fix="download or write it again",
        )
