"""Values of group attributes that stand for a missing value: -1, 999, "unknown", "n/a"."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from equipoise.core import Fields, Strings
from equipoise.data.problems import looks_missing

_WORDS = frozenset((
    "unknown", "not known", "unsure", "not sure", "uncertain", "unclear", "not clear", "undefined",
    "not defined", "undetermined", "not determined", "undeterminable", "indeterminate",
    "indeterminable", "unidentified", "not identified", "unidentifiable", "unspecified",
    "not specified", "unrecognizable", "unrecognisable", "can't tell", "cannot tell",
    "can not tell",
    "cant tell", "can't say", "cannot say", "can't be determined", "cannot be determined",
    "don't know", "do not know", "dont know", "missing", "not available", "not applicable", "n.a.",
    "?", "??", "???",
))  # fmt: skip
_APOSTROPHES = str.maketrans({"’": "'", "_": " "})
_FEWEST_OTHERS = 2
DEFAULT_MISSING: Strings = ("",)
"""Texts that mean "missing" where the user lists none; attributes then have sentinels, too."""


def sentinels_of(values: Collection[str]) -> Strings:
    """Return the values of an attribute that stand for a missing value.

    They are words for "unknown"; -1, -9, -99 and so on, where no other number is negative; and 99,
    999 and so on, where every other number has fewer digits. Two or more other values have to be
    left: -1 and 1, or "none" and "hat", are two groups.

    Parameters
    ----------
    values : collection of str
        Every value that occurs.
    """
    numbers = {text: number for text in values if (number := _number(text)) is not None}
    positive = [number for number in numbers.values() if not _is_negative_code(number)]
    largest = max(positive, default=0.0)
    texts = [*filter(is_word_for_missing, values)]
    if min(positive, default=0.0) >= 0:
        texts += [text for text, number in numbers.items() if _is_negative_code(number)]
    if _is_nines(largest) and all(10 * n < largest + 1 for n in positive if n != largest):
        texts += [text for text, number in numbers.items() if number == largest]
    return tuple(texts) if len(values) - len(texts) >= _FEWEST_OTHERS else ()


def is_word_for_missing(text: str) -> bool:
    """Whether a text means that a value is unknown: "unknown", "can't tell", "N/A", "?"."""
    words = " ".join(text.translate(_APOSTROPHES).casefold().split()).strip("()[]<>")
    return looks_missing(text) or looks_missing(words) or words in _WORDS


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_negative_code(number: float) -> bool:
    return number == -1 or (number < 0 and {*f"{-number:g}"} == {"9"})


def _is_nines(number: float) -> bool:
    return number > 9 and {*f"{number:g}"} == {"9"}


@dataclass
class Sentinels:
    """Values of group attributes that look like missing ones, as a table is read.

    Attributes
    ----------
    levels : tuple of str
        Values that the user names as groups, which stay.
    missing : tuple of str
        Texts that the user lists as missing. Any other list than the default replaces sentinels.
    counted : dict of str to dict of str to int
        By attribute, rows of each value that counts as missing.
    suspects : dict of str to list of str
        By attribute, words for missing values that stay groups, as too few others are left.
    """

    levels: Strings = ()
    missing: Strings = DEFAULT_MISSING
    counted: dict[str, dict[str, int]] = field(default_factory=dict)
    suspects: dict[str, list[str]] = field(default_factory=dict)

    def of(self, attribute: str, sizes: Mapping[str, int]) -> Strings:
        """Return the values of an attribute that count as missing, and record them.

        Parameters
        ----------
        attribute : str
        sizes : mapping of str to int
            Rows of each value that occurs.
        """
        if self.missing != DEFAULT_MISSING:
            return ()
        values = [value for value in sizes if value not in self.levels]
        texts = tuple(text for text in sentinels_of(sizes) if text in values)
        if texts:
            self.counted[attribute] = {text: sizes[text] for text in texts}
        elif words := [*filter(is_word_for_missing, values)]:
            self.suspects[attribute] = words
        return texts

    @property
    def counts(self) -> Fields:
        """Counts of a table: empty where no value looks missing."""
        facts = {"sentinels": self.counted, "sentinels_kept": self.suspects}
        return {name: values for name, values in facts.items() if values}
