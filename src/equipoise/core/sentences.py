"""Sentences in parts, each of which knows whether it is text, the name of a group or a number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from string import Formatter

from equipoise.core.wording import percent


@dataclass(frozen=True)
class Phrase:
    """A part of a sentence.

    Attributes
    ----------
    text : str
    group : str
        The group that the part names; "" where it names none.
    value : float or None
        The number that it states; None where it states none.
    """

    text: str
    group: str = ""
    value: float | None = None


class Sentence(str):
    """A text with its parts.

    Parameters
    ----------
    *parts : str, Phrase or Sentence
        What stands behind each other; a plain text is a part of its own.
    """

    __slots__ = ("parts",)
    parts: tuple[Phrase, ...]

    def __new__(cls, *parts: str | Phrase) -> Sentence:
        """Join parts to a sentence."""
        flat = list[Phrase]()
        for item in parts:
            if isinstance(item, Sentence):
                flat.extend(item.parts)
            elif isinstance(item, Phrase):
                flat.append(item)
            else:
                flat.append(Phrase(item))
        phrases = tuple([part for part in flat if part.text])
        sentence = super().__new__(cls, "".join([part.text for part in phrases]))
        sentence.parts = phrases
        return sentence

    def __getnewargs__(self) -> tuple[Phrase, ...]:  # type: ignore[override]
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
        room, parts = n, list[Phrase]()
        for part in self.parts:
            words = part.text.split(" ")
            # A word goes on where no space stands between two parts.
            if len(words) - 1 >= room:
                return Sentence(*parts, replace(part, text=" ".join(words[:room])), " …")
            room -= len(words) - 1
            parts.append(part)
        return self


EMPTY = Sentence()
"""A sentence that says nothing."""


def fill(template: str, **fields: str | Phrase | int | None) -> Sentence:
    """Return a template with parts or sentences in place of its fields."""
    parts = list[str | Phrase]()
    for text, name, _, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            field = fields[name]
            parts.append(field if isinstance(field, str | Phrase) else str(field))
    return Sentence(*parts)


def named(group: str) -> Sentence:
    """Return the name of a group; that of an intersection is quoted, as its commas are its own."""
    return quoted(group) if "," in group else Sentence(Phrase(group, group=group))


def quoted(group: str) -> Sentence:
    """Return the name of a group in quotation marks."""
    return Sentence("“", Phrase(group, group=group), "”")


def share_part(share: float) -> Phrase:
    """Return a share as a part."""
    return Phrase(percent(share), value=share)
