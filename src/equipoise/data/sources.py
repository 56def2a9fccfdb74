"""Where labels and predictions are, and how their texts become labels."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError, InputError
from equipoise.data.problems import counted, listed, show
from equipoise.data.resolver import Resolver, neutral_words, without_group

# Raised whenever the same fields would give another result than before.
PIPELINE = 2

LEADING_PHRASES = (
    "this is", "it is", "it's", "that is", "there is", "i see", "i think it is",
    "the answer is", "answer:", "label:", "prediction:",
    "person is", "person appears to be", "person looks like",
    "the person is", "the person appears to be", "the person looks like",
    "the person in the image is", "the person in the photo is", "the person in the picture is",
    "the image shows", "the image depicts", "the image is of", "the photo shows",
    "the picture shows", "this image shows", "this photo shows", "this picture shows",
    "an image of", "a photo of", "a picture of", "image of", "photo of", "picture of",
)  # fmt: skip


@dataclass(frozen=True)
class Normalization:
    """The steps from a free text to a label.

    Where classes are known, a `Resolver` finds the class that the text names. Else the label is
    the text's normal form without words that name a group: Unicode composition, case, whitespace,
    punctuation at both ends, leading phrases and articles until nothing changes; then synonyms. A
    step that would leave nothing is not taken.

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
        Text to label: of a resolver, a phrase anywhere; else a normalised text, replaced last and
        once.
    classes : tuple of str
        Classes beside those of the target.
    masked : tuple of str
        Words that name a subject's group, beside the words and values that are masked anyway.
    refusals : tuple of str
        Regular expressions of refusals, beside those of `equipoise.data.resolver`.
    """

    case_fold: bool = True
    whitespace: bool = True
    punctuation: str = ".,;:!?…\"'`“”\N{LEFT SINGLE QUOTATION MARK}’«»*_"
    articles: tuple[str, ...] = ("a", "an", "the")
    leading_phrases: tuple[str, ...] = LEADING_PHRASES
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    classes: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

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
        steps = {
            "Unicode composed": True,
            "case folded": self.case_fold,
            "whitespace collapsed": self.whitespace,
            f"{self.punctuation} taken off the ends": self.punctuation,
            f"{counted(len(self.leading_phrases), 'leading phrase')} dropped": self.leading_phrases,
            f"articles {', '.join(self.articles)} dropped": self.articles,
            f"{counted(len(self.synonyms), 'synonym')} replaced": self.synonyms,
            f"{counted(len(self.classes), 'class')} declared": self.classes,
            f"{counted(len(self.masked), 'word')} masked": self.masked,
            f"{counted(len(self.refusals), 'pattern')} of refusals added": self.refusals,
        }
        return f"{self.version}: " + "; ".join(step for step, taken in steps.items() if taken)

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


@dataclass(frozen=True, kw_only=True)
class CsvOptions:
    """How the cells of a table are written.

    Attributes
    ----------
    missing : tuple of str
        Texts that mean "missing", beside the empty cell. They do not apply to ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.
    """

    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    delimiter: str = ","


@dataclass(frozen=True)
class ItemSource(CsvOptions):
    """A table with one row per item; see `CsvOptions` for its cells.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    columns : tuple of str
        The columns needed: attributes, unit, set, query, ...
    """

    table: Path | Any
    id: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSource(CsvOptions):
    """A table of images with their true classes and group attributes; see also `CsvOptions`.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    target : str or None
        Column of the true class; None where images have none that is known.
    attributes : tuple of str
        Columns of group attributes; the target may be one of them.
    unit : str or None
        Column of the unit that repeats (person, prompt, ...), for clustered resampling.
    map : mapping of str to str, or None
        Label in the table to class; labels that it does not name stay as they are.
    """

    table: Path | Any
    id: str
    target: str | None
    attributes: tuple[str, ...]
    unit: str | None = None
    map: Mapping[str, str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns needed, each once."""
        named = (self.target, *self.attributes, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How the texts that a model produced become labels.

    Attributes
    ----------
    maps : mapping of str to mapping
        Alternative class mappings (predicted label to class) by name, each of which makes one
        version of the predictions. Labels that a mapping does not name stay as they are.
    missing, unknown, refused : tuple of str
        Texts that mean "no answer", "the model does not know" and "the model declined".
        The empty cell is always missing.
    open_vocabulary : bool
        Whether labels that are no class of the target are allowed.
    normalize : Normalization or None
        How free text is brought to labels; makes the versions "raw" and "normalised".
    may_decline : bool
        Whether it is a result, and no error, that every row is unknown or refused.
    place : str
        Section of the config that holds these keys, such as "models.clip", for errors.

    Raises
    ------
    InputError
        When a text is listed under two states.
    """

    maps: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    missing: tuple[str, ...] = ("",)
    unknown: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    open_vocabulary: bool = False
    normalize: Normalization | None = None
    may_decline: bool = False
    place: str = ""

    def __post_init__(self) -> None:
        """Refuse a text that is listed under two states."""
        seen: dict[str, str] = {}
        for state in ("missing", "unknown", "refused"):
            for text in getattr(self, state):
                if seen.setdefault(text, state) != state:
                    raise InputError(
                        f"{text!r} is listed as {seen[text]} and as {state}; list it once"
                    )

    def key(self, name: str) -> str:
        """Return a key as errors name it: within its section of the config."""
        return f"{self.place}.{name}" if self.place else name


@dataclass(frozen=True)
class PredictionSource(Reading, CsvOptions):
    """A table of one model's predictions, and how to read it; see also `CsvOptions`.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    prediction : str or None
        Column of the predicted label; None when `top` or `probabilities` say it.
    top : tuple of str
        Columns of the labels of rank 1, 2, ..., k.
    probabilities : mapping of str to str, or None
        Class to the column of its probability. Every class of the target needs one.
    id : str or None
        Column of the id; None: named as in the labels.

    Raises
    ------
    InputError
        When nothing says what was predicted, or two options contradict each other.
    """

    table: Path | Any
    prediction: str | None = None
    top: tuple[str, ...] = ()
    probabilities: Mapping[str, str] | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        twice = bool(self.top) and self.prediction not in (None, self.top[0])
        if twice or not (self.top or self.probabilities or self.prediction):
            raise InputError(
                f"prediction is {self.prediction!r}, top {self.top}; expected prediction, top with "
                "the same first column, or probabilities"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of predicted labels: ranks 1 to k, or the prediction alone."""
        if self.top:
            return self.top
        return () if self.prediction is None else (self.prediction,)


STATES = ("answered", "missing", "unknown", "refused", "unmatched")
ANSWERED, MISSING, UNKNOWN, REFUSED, UNMATCHED = range(len(STATES))
MAX_PAIRS = 5


@dataclass(frozen=True)
class Recipe:
    """How raw texts become labels in one version.

    Attributes
    ----------
    name : str
    mapping : mapping of str to str
    normalize : Normalization or None
    target : tuple of str
        Classes of the target.
    levels : tuple of str
        Values of the attributes that are compared, whose words are masked.
    """

    name: str
    mapping: Mapping[str, str]
    normalize: Normalization | None
    target: tuple[str, ...]
    levels: tuple[str, ...] = ()

    def __call__(self, text: str) -> str:
        """Return the label of a text."""
        if self.normalize is None:
            return self.mapping.get(text, text)
        known = self._known.get(self.normalize.form(text))
        if known is None and (self._synonyms or not self.classes):
            form = self.form(text)
            known = self._known.get(form, None if self.classes else form)
        return self.resolver(text) if known is None else known

    def form(self, text: str) -> str:
        """Return the normal form of a text without words that name a group."""
        return self._steps.form(without_group(text, self.resolver.neutral))

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Classes that texts are resolved to; none where no class is known."""
        if self.normalize is None or not (self.target or self.normalize.classes):
            return ()
        return tuple(dict.fromkeys((*self._names.values(), *self._synonyms.values())))

    @cached_property
    def resolver(self) -> Resolver:
        """What finds the class that a text names, and refusals."""
        neutral = neutral_words(self.levels, self._steps.masked)
        synonyms = self._synonyms if self.classes else {}
        return Resolver(self.classes, synonyms, neutral, self._steps.refusals)

    @property
    def _steps(self) -> Normalization:
        return self.normalize or Normalization()

    @cached_property
    def _synonyms(self) -> dict[str, str]:
        """Phrases of the user, each to a class as the target spells it."""
        every = {**self._steps.synonyms, **self.mapping}
        return {text: self._names.get(self._steps.form(to), to) for text, to in every.items()}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Normal form to class, of those declared."""
        steps = self._steps
        return {steps.form(name): name for name in (*steps.classes, *self.target)}

    @cached_property
    def _known(self) -> dict[str, str]:
        """Normal form to label, of synonyms and classes."""
        synonyms = self._synonyms.items()
        masked = {self.form(text): name for text, name in synonyms}
        return masked | {self._steps.form(text): name for text, name in synonyms} | self._names

    @property
    def scale(self) -> str:
        """What this version does, in words."""
        steps = [self.normalize.describe()] if self.normalize else []
        if self.mapping:
            content = json.dumps(dict(self.mapping), sort_keys=True).encode()
            pairs = [f"{text} → {label}" for text, label in sorted(self.mapping.items())]
            version = hashlib.sha256(content).hexdigest()[:8]
            steps.append(f"mapping {self.name} ({version}): {listed(pairs, MAX_PAIRS)}")
        return "; then ".join(steps) or "labels as given"


def recipes(
    reading: Reading, classes: tuple[str, ...], file: str, levels: tuple[str, ...] = ()
) -> list[Recipe]:
    """Return the versions that a reading makes; see `Reading` and `Recipe`.

    Raises
    ------
    DataError
        When normalisation makes two classes of the target one.
    """
    maps = dict(reading.maps) or {"default": {}}
    if reading.normalize is None:
        return [Recipe(name, mapping, None, classes) for name, mapping in maps.items()]
    seen: dict[str, str] = {}
    for name in classes:
        other = seen.setdefault(reading.normalize.form(name), name)
        if other != name:
            raise DataError(
                f"normalisation makes the classes {show(other)} and {show(name)} one",
                file=reading.key("normalize") if reading.place else file,
                expected="classes that stay different",
                fix="map them to one class in `data: map:`, or turn a step of "
                f"`{reading.key('normalize')}:` off",
            )
    return [
        Recipe(f"{name}, {kind}" if len(maps) > 1 else kind, mapping, normalize, classes, levels)
        for name, mapping in maps.items()
        for kind, normalize in (("raw", None), ("normalised", reading.normalize))
    ]


def text_states(
    reading: Reading,
    vocabulary: Sequence[str],
    classes: tuple[str, ...],
    file: str,
    levels: tuple[str, ...] = (),
) -> npt.NDArray[np.int8]:
    """Return the state of each text of a vocabulary.

    With `normalize`, refusals are recognised by patterns, too.

    Raises
    ------
    DataError
        When a class of the target is listed as missing, unknown or refused.
    """
    form = reading.normalize.form if reading.normalize else str
    states = {
        form(text): state
        for state, name in ((REFUSED, "refused"), (UNKNOWN, "unknown"), (MISSING, "missing"))
        for text in getattr(reading, name)
    } | {"": MISSING}
    for name in classes:
        if form(name) in states:
            state = STATES[states[form(name)]]
            key = reading.key(state)
            raise DataError(
                f"{show(name)} is a class of the target and is listed under `{state}:`",
                file=key if reading.place else file,
                fix=f"take it out of `{key}:`, or map the class to another name",
            )
    if reading.normalize is None:
        codes = [states.get(text, ANSWERED) for text in vocabulary]
    else:
        mapping = dict(next(iter(reading.maps.values()), {}))
        refuses = Recipe("", mapping, reading.normalize, classes, levels).resolver.refuses
        codes = [
            states.get(form(text), REFUSED if refuses(text) else ANSWERED) for text in vocabulary
        ]
    return np.array(codes, dtype=np.int8)


MISSPELT = 0.85
"""How alike two words are of which one is taken for the other, misspelt."""


def unused_entries(mapping: Mapping[str, str], labels: Iterable[str]) -> dict[str, list[str]]:
    """Return the entries of a mapping that no label uses."""
    return {"map_unused": sorted({*mapping} - {*labels})}
