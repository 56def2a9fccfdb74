"""A or an, by the sound of the next word."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# Numbers that are said with a vowel first: eight, eleven, eighteen, eighty, eight hundred.
_VOWEL_NUMBER = re.compile(r"(8\d*|11|18)(?!\d)")
# Words that the library says like "use".
_VOWEL_WORDS = ("usher", "uber")
_ARTICLE = re.compile(r"\b(an?)\Z", re.IGNORECASE)


def agreeing(before: str, after: str) -> str:
    """Return a text with its last word, where that is "a" or "an", as the next words demand.

    Parameters
    ----------
    before : str
        Such as "A photo of a".
    after : str
        What follows, such as "old doctor".
    """
    return _ARTICLE.sub(lambda found: _as_written(found[1], _article(after)), before)


def _as_written(given: str, article: str) -> str:
    return article.capitalize() if given[0].isupper() else article


def _article(words: str) -> str:
    if words[:1].isdigit():
        return "an" if _VOWEL_NUMBER.match(words) else "a"
    return _of_word(words.partition(" ")[0])


@cache
def _of_word(word: str) -> str:
    article: str = _english().a(word).partition(" ")[0]
    return article


@cache
def _english() -> Any:
    import inflect

    engine = inflect.engine()
    for word in _VOWEL_WORDS:
        engine.defan(word)
    return engine
