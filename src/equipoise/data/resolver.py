"""From free text to the class that it names: content apart from wording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

AMBIGUOUS, UNRESOLVED = "(ambiguous)", "(unresolved)"
"""What a text counts as that names several classes, or none for sure."""
NO_CLASS = (AMBIGUOUS, UNRESOLVED)

_TELL = "(?:answer|assist|comment|determine|discern|guess|help|identify|infer|provide|say|tell)"
REFUSALS = (
    r"\b(?:i'm|i am|we're|we are) (?:\w+ )?(?:sorry|unable|not able|not allowed|not permitted)\b",
    r"\bi (?:must |have to )?(?:decline|refuse)\b",
    r"\bi (?:can't|cannot|can not|won't|will not|could not|couldn't) (?:\w+ )?" + _TELL + r"\b",
    r"\bi (?:do not|don't) (?:feel comfortable|make assumptions)\b",
    r"\bas an? (?:ai|artificial intelligence|language model|assistant)\b",
    r"\b(?:unable|not able|impossible|not possible|not appropriate|inappropriate) (?:for me )?to "
    + _TELL + r"\b",
    r"\b(?:can't|cannot|can not) be (?:answered|determined|guessed|identified|inferred|told)\b",
    r"\bagainst my (?:guidelines|policy|policies)\b",
)  # fmt: skip
"""Patterns of refusals, of texts without case and with straight apostrophes."""

NEGATORS = frozenset(
    ("no", "non", "not", "never", "neither", "nor", "without", "cannot", "except", "rather")
)
_REACH = 3
_ARTICLES = frozenset(("a", "an", "the"))

# Words that name people's gender, and what stands in their place.
NEUTRAL: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("man", "woman", "boy", "girl", "he", "she", "guy", "lady", "gentleman"),
                  "person")
    | dict.fromkeys(("men", "women", "boys", "girls", "guys", "ladies", "gentlemen"), "people")
    | dict.fromkeys(("him", "his", "her", "hers"), "their")
    | dict.fromkeys(("himself", "herself"), "themselves")
    | dict.fromkeys(("male", "female"), "")
)  # fmt: skip
# Words without content of their own.
_BARE = _ARTICLES | {"this", "that", "it", "is", "person", "people"}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*[+%]?")
_APOSTROPHES = str.maketrans("‘’ʼ`", "''''")  # noqa: RUF001 - these are what models write
_CONTRACTION = re.compile(r"\b(he|she)'s\b")
# Shorter values of an attribute are codes, not words to mask.
_SHORTEST = 3
Words = tuple[str, ...]


def neutral_words(levels: Iterable[str], masked: Iterable[str] = ()) -> dict[str, str]:
    """Return the words that name a subject's group, with what stands in their place.

    Parameters
    ----------
    levels : iterable of str
        Values of the attributes that are compared.
    masked : iterable of str
        Further words of the user.
    """
    named = [word for text in levels for word in words_of(text) if len(word) >= _SHORTEST]
    more = [word for text in masked for word in words_of(text)]
    return {**dict.fromkeys((*named, *more), ""), **NEUTRAL}


def words_of(text: str) -> Words:
    """Return the words of a text without case; a possessive "'s" is dropped."""
    return tuple(word.removesuffix("'s") for word in _WORD.findall(_plain(text)))


def without_group(text: str, neutral: Mapping[str, str]) -> str:
    """Return a text with neutral words for those that name a group.

    A text of nothing else stays as it is: the group is all that it says.
    """
    plain = _plain(text)
    if all(word in neutral or word in _BARE for word in words_of(plain)):
        return text

    def masked(match: re.Match[str]) -> str:
        word = match.group()
        bare = word.removesuffix("'s")
        return neutral[bare] + word[len(bare) :] if bare in neutral else word

    found = _WORD.sub(masked, plain)
    return text if found == plain else " ".join(found.split())


@dataclass(frozen=True)
class Resolver:
    """Finds the class that a text names.

    Class names and synonyms count as whole words anywhere, the longest first. A text that names
    several classes is ambiguous. One that names none, or negates one within the three words
    before it, is unresolved; so is a refusal that names a class all the same.

    Attributes
    ----------
    classes : tuple of str
    synonyms : mapping of str to str
        Phrase to class.
    neutral : mapping of str to str
        Words that name a subject's group, with neutral ones. Synonyms are compared without them,
        class names never.
    refusals : tuple of str
        Regular expressions of refusals beside `REFUSALS`.
    """

    classes: tuple[str, ...]
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    neutral: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refusals: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        """Return the class that a text names, `AMBIGUOUS` or `UNRESOLVED`."""
        found = self._named(text)
        return UNRESOLVED if self._refusal.search(_plain(text)) else found

    def refuses(self, text: str) -> bool:
        """Whether a text is a refusal and names no class."""
        return bool(self._refusal.search(_plain(text))) and self._named(text) in NO_CLASS

    def _named(self, text: str) -> str:
        words = words_of(text)
        masked = self._masked(words)
        matches = sorted(self._matches(words, masked), key=lambda one: (one[0] - one[1], one[0]))
        taken: set[int] = set()
        found: set[str] = set()
        for start, end, names in matches:
            place = {*range(start, end)}
            if taken & place:
                continue
            taken |= place
            if any(_negates(word) for word in words[max(start - _REACH, 0) : start]):
                return UNRESOLVED
            found |= names
        if len(found) > 1:
            return AMBIGUOUS
        return found.pop() if found else UNRESOLVED

    def _matches(self, words: Words, masked: Words) -> Iterator[tuple[int, int, frozenset[str]]]:
        for start in range(len(words)):
            for phrases, text in ((self._names, words), (self._phrases, masked)):
                for length in phrases.lengths.get(text[start], ()):
                    names = phrases.classes.get(text[start : start + length])
                    if names:
                        yield start, start + length, names

    def _masked(self, words: Words) -> Words:
        return tuple("person" if word in self.neutral else word for word in words)

    @cached_property
    def _refusal(self) -> re.Pattern[str]:
        patterns = (f"(?:{one})" for one in (*REFUSALS, *self.refusals))
        return re.compile("|".join(patterns), re.IGNORECASE)

    @cached_property
    def _names(self) -> _Phrases:
        """Class names, and synonyms that say nothing but a group."""
        known = [(words_of(name), name) for name in self.classes]
        groups = [(words_of(text), name) for text, name in self.synonyms.items()]
        known += [(words, name) for words, name in groups if self._only_group(words)]
        return _Phrases.of((words, name) for words, name in known if {*words} - _ARTICLES)

    @cached_property
    def _phrases(self) -> _Phrases:
        every = [(words_of(text), name) for text, name in self.synonyms.items()]
        return _Phrases.of(
            (self._masked(words), name) for words, name in every if not self._only_group(words)
        )

    def _only_group(self, words: Words) -> bool:
        return all(word in self.neutral or word in _ARTICLES for word in words)


@dataclass(frozen=True)
class _Phrases:
    """Phrases of words: the classes of each, and their lengths by first word."""

    classes: Mapping[Words, frozenset[str]]
    lengths: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, known: Iterable[tuple[Words, str]]) -> _Phrases:
        classes: dict[Words, frozenset[str]] = {}
        lengths: dict[str, frozenset[int]] = {}
        for words, name in known:
            if words:
                classes[words] = classes.get(words, frozenset()) | {name}
                lengths[words[0]] = lengths.get(words[0], frozenset()) | {len(words)}
        return cls(classes, lengths)


def _plain(text: str) -> str:
    if text.isascii() and "'s" not in text.lower():
        return text.lower().replace("`", "'")
    return _CONTRACTION.sub(r"\1 is", text.casefold().translate(_APOSTROPHES))


def _negates(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")
