"""Texts that stand for several: a prompt's vector as the mean of those of its captions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
PLACE = "{}"


@dataclass(frozen=True)
class Rule:
    """How a neutral text is said with attributes.

    Attributes
    ----------
    neutral : str
        A whole text, or one with ``{}`` in the place of the subject: "a photo of a {}".
    attributed : tuple of str
        The same with attributes, ``{}`` in the same place: "a photo of an old {}", ….
    """

    neutral: str
    attributed: tuple[str, ...]


@dataclass(frozen=True)
class Ensemble:
    """Rules for neutral texts; a text that names an attribute is left as it is.

    Attributes
    ----------
    rules : tuple of Rule
        Of several that fit a text, the one with the longest words applies.
    values : tuple of str
        Words for attributes: a text that holds one is not neutral.
    """

    rules: tuple[Rule, ...]
    values: tuple[str, ...]

    @staticmethod
    def of(given: Mapping[str, Any]) -> Ensemble:
        """Read what `dataclasses.asdict` made of an ensemble.

        Raises
        ------
        ValueError
            If it holds anything but texts.
        """
        rules = tuple(Rule(one["neutral"], tuple(one["attributed"])) for one in given["rules"])
        made = Ensemble(rules, tuple(given["values"]))
        texts = [
            *made.values,
            *(text for rule in rules for text in (rule.neutral, *rule.attributed)),
        ]
        if not all(isinstance(text, str) for text in texts) or not all(
            rule.attributed for rule in rules
        ):
            raise ValueError("its rules are not texts with captions")
        return made

    def said(self, text: str) -> tuple[str, ...]:
        """Return the captions that a text stands for; itself where it is not neutral."""
        for pattern, rule in self._patterns:
            found = pattern.fullmatch(text)
            if found is None:
                continue
            subject = found.group(1) if pattern.groups else ""
            if self._named.search(subject if pattern.groups else text):
                continue
            return tuple(one.replace(PLACE, subject) for one in rule.attributed)
        return (text,)

    def embed(self, embed_texts: Callable[[Sequence[str]], Floats], texts: Sequence[str]) -> Floats:
        """Return one vector for each text: of several captions the mean of their unit vectors."""
        return mean_vectors(embed_texts, [self.said(text) for text in texts])

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Rule]]:
        longest = sorted(self.rules, key=lambda rule: (-len(rule.neutral), rule.neutral))
        return [
            (re.compile("(.+)".join(map(re.escape, rule.neutral.split(PLACE, 1)))), rule)
            for rule in longest
        ]

    @cached_property
    def _named(self) -> re.Pattern[str]:
        return naming(self.values)


def mean_vectors(
    embed_texts: Callable[[Sequence[str]], Floats], said: Sequence[Sequence[str]]
) -> Floats:
    """Return one vector for each group of captions: the mean of their unit vectors.

    Of a single caption it is the vector itself, as long as it is. Every caption is read once.
    """
    once = [*dict.fromkeys(one for captions in said for one in captions)]
    place = {text: row for row, text in enumerate(once)}
    vectors = embed_texts(once).astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1.0)
    found = [
        vectors[place[captions[0]]]
        if len(captions) == 1
        else unit[[place[one] for one in captions]].mean(axis=0)
        for captions in said
    ]
    stacked: Floats = np.array(found, dtype=np.float32).reshape(len(said), vectors.shape[1])
    return stacked


def naming(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of some words as a whole word, whatever its case."""
    every = "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{every})(?!\w)" if every else r"(?!)", re.IGNORECASE)
