"""From an answer to the option that it chooses: letters, texts of options, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from equipoise.core import Strings
from equipoise.data.refusals import is_hedge
from equipoise.data.resolver import NEGATORS, Resolver, split_words

ANSWERED, UNKNOWN, UNSURE = "answered", "unknown", "unresolved"
# Letters: alone, marked as "(B)" or "B.", called an option or answer, or chosen. "A" and "I" are
# words, too.
_ALONE = re.compile(r"[\W_]*([A-Ja-j])[\W_]*")
_MARKED = re.compile(r"\(([A-Ja-j])\)|(?:^|(?<=[\s*\"“]))([A-J])(?=[).:*\"”]|,?\s*$)")
_FIRST = re.compile(r"^[\s*\"“]*(A(?=,)|[B-HJ]\b(?!'))")
_LETTER = r"[\s:*\"'“(]*([B-J]\b|A\b(?!\s+[a-z]))"
_CALLED = re.compile(rf"\b(?:[Aa]nswer|ANSWER)\b(?:\s+(?:is|would be))?{_LETTER}")
_OPTION = re.compile(r"\b(?:[Oo]ption|[Cc]hoice|[Ll]etter)\b[\s:*\"'“(]*([A-J])\b")
_CHOSEN = re.compile(rf"\b(?:choose|pick|select|say|go with)\b{_LETTER}")
_LAST = re.compile(r"\b(?:answer|option|choice)\b\W*(?:is\b)?\W*([A-Ja-j])\W*$", re.IGNORECASE)
_PATTERNS = (_MARKED, _FIRST, _CALLED, _OPTION, _CHOSEN, _LAST)
_SEVERAL = re.compile(r"\b([A-J])\b\s*(?:,|/|\bor\b|\band\b|&|\bnor\b)\s*\(?([A-J])\b")
_REACH = 3


class OptionAnswer(NamedTuple):
    """The option that an answer chooses.

    Attributes
    ----------
    option : int
        Its place among the options as shown; -1 without one.
    state : str
        "answered", "ambiguous" (it names several), "unknown" (it says that it doesn't know, or
        that the picture doesn't tell), "refused", or "unresolved" (it names none for sure).
    """

    option: int
    state: str


def read_option(text: str, options: Sequence[str]) -> OptionAnswer:
    """Return the option that an answer chooses, by its letter or its text.

    A letter counts where it stands alone, is marked as in "(B)" or "B.", or is called an answer or
    option. A letter and a text that name different options are ambiguous, as are two options of a
    text that hedges between them.

    Parameters
    ----------
    text : str
    options : sequence of str
        As shown to the model: the first is A.

    Examples
    --------
    >>> read_option("The answer is B.", ["pilot", "nurse"])
    OptionAnswer(option=1, state='answered')
    >>> read_option("A nurse", ["pilot", "nurse"])
    OptionAnswer(option=1, state='answered')
    """
    letters = {*_letters(text)}
    if any(letter >= len(options) for letter in letters):
        return OptionAnswer(-1, UNSURE)
    resolver, named = _resolver(tuple(options)), _named(text, tuple(options))
    if isinstance(named, str) and not letters and resolver.names_several(text):
        return OptionAnswer(-1, "ambiguous")
    chosen = letters | ({named} if isinstance(named, int) else set())
    if len(chosen) > 1:
        return OptionAnswer(-1, "ambiguous")
    if chosen:
        return OptionAnswer(chosen.pop(), ANSWERED)
    if not resolver.refuses(text):
        return OptionAnswer(-1, UNSURE)
    return OptionAnswer(-1, UNKNOWN if is_hedge(text) else "refused")


def _named(text: str, options: Strings) -> int | str:
    """Return the place of the option that a text names, or why there is none."""
    plain = split_words(text)
    same = [place for place, option in enumerate(options) if split_words(option) == plain]
    if len(same) == 1:
        return same[0]
    name = _resolver(options)(text)
    return options.index(name) if name in options else name


def _letters(text: str) -> Iterator[int]:
    """Yield the letters that an answer marks as its choice, as places."""
    alone = _ALONE.fullmatch(text)
    if alone is not None:
        yield _place(alone.group(1))
        return
    for match in _SEVERAL.finditer(text):
        if not _is_negated(text, match.start()):
            yield from map(_place, match.groups())
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if not _is_negated(text, match.start()):
                yield _place(next(filter(None, match.groups())))


def _is_negated(text: str, start: int) -> bool:
    """Whether one of the words just before a place negates it."""
    words = split_words(text[:start])[-_REACH:]
    return any(word in NEGATORS or word.endswith("n't") for word in words)


def _place(letter: str) -> int:
    return ord(letter.upper()) - ord("A")


@lru_cache(maxsize=4096)
def _resolver(options: Strings) -> Resolver:
    return Resolver(options)
