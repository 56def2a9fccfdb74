"""Bringing free-text predictions to labels, as a declared and versioned pipeline."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType

from equipoise.data.problems import counted

# Raised whenever the same fields would give another result than before.
PIPELINE = 1

LEADING_PHRASES = (
    "this is", "it is", "it's", "that is", "there is", "i see", "i think it is",
    "the answer is", "answer:", "label:", "prediction:",
    "the person is", "the person appears to be", "the person looks like",
    "the person in the image is", "the person in the photo is", "the person in the picture is",
    "the image shows", "the image depicts", "the image is of", "the photo shows",
    "the picture shows", "this image shows", "this photo shows", "this picture shows",
    "an image of", "a photo of", "a picture of", "image of", "photo of", "picture of",
)  # fmt: skip


@dataclass(frozen=True)
class Normalization:
    """The steps from a free text to a label, in this order.

    Unicode composition, case, whitespace, punctuation at both ends, leading phrases and articles
    until nothing changes; then synonyms. A step that would leave nothing is not taken.

    Attributes
    ----------
    case_fold : bool
        Compare without case ("Straße" and "STRASSE" are one).
    whitespace : bool
        Any run of whitespace becomes one space, none at the ends.
    punctuation : str
        Characters taken off both ends; "" takes none. Hyphens and signs such as + and % carry
        meaning ("70+") and are not among the default.
    articles : tuple of str
        Words taken off the start.
    leading_phrases : tuple of str
        Phrases taken off the start.
    synonyms : mapping of str to str
        Normalised text to label, applied last and once; keys are normalised first.
    """

    case_fold: bool = True
    whitespace: bool = True
    punctuation: str = ".,;:!?…\"'`“”\N{LEFT SINGLE QUOTATION MARK}’«»*_"
    articles: tuple[str, ...] = ("a", "an", "the")
    leading_phrases: tuple[str, ...] = LEADING_PHRASES
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __call__(self, text: str) -> str:
        """Return the label of a text; never empty unless the text is."""
        form = self.form(text)
        return self._synonym_forms.get(form, form)

    def form(self, text: str) -> str:
        """Return the normal form of a text, before synonyms."""
        before, now = None, text
        while before != now:
            before, now = now, self._pass(now)
        return now

    @cached_property
    def version(self) -> str:
        """Name of these very steps: the pipeline's number and a hash of every field."""
        declared = {step.name: getattr(self, step.name) for step in fields(self)}
        content = json.dumps(declared | {"synonyms": dict(self.synonyms)}, sort_keys=True)
        return f"normalisation {PIPELINE}.{hashlib.sha256(content.encode()).hexdigest()[:8]}"

    def describe(self) -> str:
        """Return the steps in words, with their version."""
        steps = [
            "Unicode composed",
            "case folded" if self.case_fold else "",
            "whitespace collapsed" if self.whitespace else "",
            f"{self.punctuation} taken off the ends" if self.punctuation else "",
            f"{counted(len(self.leading_phrases), 'leading phrase')} dropped"
            if self.leading_phrases
            else "",
            f"articles {', '.join(self.articles)} dropped" if self.articles else "",
            f"{counted(len(self.synonyms), 'synonym')} replaced" if self.synonyms else "",
        ]
        return f"{self.version}: " + "; ".join(step for step in steps if step)

    def _pass(self, text: str) -> str:
        text = self._clean(text)
        if not text.startswith(self._starts):
            return text
        for start in self._starts:
            # "the" alone, or "this is" alone, is all that was said: it stays.
            if text.startswith(start) and text[len(start) :].strip():
                return text[len(start) :]
        return text

    def _clean(self, text: str) -> str:
        text = self._composed(text)
        if self.whitespace:
            text = " ".join(text.split()) or text
        return text.strip(self.punctuation) or text

    @cached_property
    def _starts(self) -> tuple[str, ...]:
        """What may be dropped from a start, the longest first, each with the space after it."""
        phrases = {self._composed(phrase) for phrase in (*self.leading_phrases, *self.articles)}
        return tuple(f"{phrase} " for phrase in sorted(phrases, key=lambda p: (-len(p), p)))

    def _composed(self, text: str) -> str:
        if text.isascii():
            return text.lower() if self.case_fold else text
        # Folding is stable only on decomposed text (Unicode, canonical caseless matching).
        text = unicodedata.normalize("NFD", text).casefold() if self.case_fold else text
        return unicodedata.normalize("NFC", text)

    @cached_property
    def _synonym_forms(self) -> dict[str, str]:
        return {self.form(text): label for text, label in self.synonyms.items()}
