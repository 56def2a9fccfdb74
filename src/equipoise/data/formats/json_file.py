"""Large JSON files, record by record: memory holds the text and one record at a time."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from equipoise.core import DataError
from equipoise.data.files import read_whole
from equipoise.data.formats.records import Record, as_record, told
from equipoise.data.formats.utf8 import utf8_text
from equipoise.data.json_text import RepeatedKeyError, parse_json_at
from equipoise.data.problems import counted, listed

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
