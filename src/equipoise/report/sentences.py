"""Sentences in parts, each of which knows whether it is text, the name of a group or a number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from string import Formatter

from equipoise.core.wording import percent


@dataclass(frozen=True)
class Part:
    """A part of a sentence.

    Attributes
    ----------
    text : str
    group : str
        The group that the part names; "" where it names none.
    value : float
        The number that it states; NaN where it states none.
    """

    text: str
    group: str = ""
    value: float = math.nan


class Sentence(str):
    """A text with its parts.

    Parameters
    ----------
    *parts : str, Part or Sentence
        What stands behind each other; a plain text is a part of its own.
    """

    __slots__ = ("parts",)
    parts: tuple[Part, ...]

    def __new__(cls, *parts: str | Part) -> Sentence:
        """Join parts to a sentence."""
        flat = tuple(part for item in parts for part in _parts_of(item) if part.text)
        sentence = super().__new__(cls, "".join(part.text for part in flat))
        sentence.parts = flat
        return sentence

    def __getnewargs__(self) -> tuple[Part, ...]:  # type: ignore[override]
        """Return the parts, for a copy."""
        return self.parts

    def __add__(self, other: str) -> Sentence:
        """Return the sentence with more behind it."""
        return Sentence(self, other)

    def __radd__(self, other: str) -> Sentence:
        """Return the sentence with more before it."""
        return Sentence(other, self)

    def capitalised(self) -> Sentence:
        """Return the sentence with a capital first letter."""
        if not self.parts:
            return self
        first, *rest = self.parts
        text = first.text[:1].upper() + first.text[1:]
        return Sentence(replace(first, text=text), *rest)

    def without_end(self, end: str) -> Sentence:
        """Return the sentence without an end, which is in its last part."""
        if not self.parts or not self.endswith(end):
            return self
        *before, last = self.parts
        return Sentence(*before, replace(last, text=last.text.removesuffix(end)))

    def first_words(self, n: int) -> Sentence:
        """Return the first n words; "…" stands for the others."""
        room, parts = n, list[Part]()
        for part in self.parts:
            words = part.text.split(" ")
            # A word goes on where no space stands between two parts.
            if len(words) - 1 >= room:
                return Sentence(*parts, replace(part, text=" ".join(words[:room])), " …")
            room -= len(words) - 1
            parts.append(part)
        return self


def _parts_of(item: str | Part) -> tuple[Part, ...]:
    if isinstance(item, Sentence):
        return item.parts
    return (item,) if isinstance(item, Part) else (Part(item),)


def fill(template: str, **fields: str | Part | int | None) -> Sentence:
    """Return a template with parts or sentences in place of its fields."""
    parts = list[str | Part]()
    for text, name, _, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            field = fields[name]
            parts.append(field if isinstance(field, str | Part) else str(field))
    return Sentence(*parts)


def named(group: str) -> Sentence:
    """Return the name of a group; that of an intersection is quoted, as its commas are its own."""
    name = Part(group, group=group)
    return Sentence("“", name, "”") if "," in group else Sentence(name)


def share_part(share: float) -> Part:
    """Return a share as a part."""
    return Part(percent(share), value=share)


def with_names(text: str, groups: Iterable[str]) -> Sentence:
    """Return a stored text with names of groups as parts.

    Of "women" and "men" the longer name is looked for first, and each as a whole word.
    """
    names = sorted({*groups} - {""}, key=len, reverse=True)
    if not names:
        return Sentence(text)
    return Sentence(*_split(text, "|".join(map(re.escape, names))))


def _split(text: str, pattern: str) -> Iterator[str | Part]:
    for place, piece in enumerate(re.split(rf"(?<!\w)({pattern})(?!\w)", text)):
        yield Part(piece, group=piece) if place % 2 else piece
