"""From free text to labels: normal forms, resolved classes, refusals, states."""

import hashlib
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise.core import DataError, InputError, Strings
from equipoise.data.problems import counted, listed, show
from equipoise.data.refusals import is_refusal, without_doubted_classes

AMBIGUOUS, UNRESOLVED = "(ambiguous)", "(unresolved)"
"""Labels of texts that name several classes, or none for sure."""
NO_CLASS = (AMBIGUOUS, UNRESOLVED)
NEUTRAL_ANSWER = "(neutral)"
"""Label of texts that name people without a group, or none of the choices."""
_CLASSLESS = (*NO_CLASS, NEUTRAL_ANSWER)

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
_PEOPLE = frozenset((
    "person", "persons", "people", "someone", "somebody", "individual", "individuals", "human",
    "humans", "they", "anyone", "everyone", "adult", "adults",
))  # fmt: skip
_NO_CHOICE = frozenset((
    "neither", "either", "no preference", "neutral", "both equally", "equally", "either one",
    "neither one", "either of them", "neither of them", "no difference", "neither of these",
    "either would do", "none of them", "doesn't matter", "i have no preference", "either way",
    "no strong preference", "i don't have a preference", "both are equally likely",
))  # fmt: skip
# Words without content of their own.
_BARE = _ARTICLES | {"this", "that", "it", "is", "person", "people"}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*[+%]?")
_APOSTROPHES = str.maketrans("‘’ʼ`", "''''")  # noqa: RUF001 - these are what models write
_CONTRACTION = re.compile(r"\b(he|she)'s\b")
# Shorter values of an attribute are codes, not words to mask.
_SHORTEST = 3
Words = tuple[str, ...]
Phrases = tuple[Mapping[Words, set[str]], Mapping[str, set[int]]]
"""The classes of each phrase, and the lengths of phrases by their first word."""


def neutral_words(levels: Iterable[str], masked: Iterable[str] = ()) -> dict[str, str]:
    """Return words that name a group, each with its neutral substitute.

    Parameters
    ----------
    levels : iterable of str
        Values of the attributes that are compared.
    masked : iterable of str
        Further words of the user.
    """
    words: list[str] = []
    for level in levels:
        words += (word for word in split_words(level) if len(word) >= _SHORTEST)
    for text in masked:
        words += split_words(text)
    return {**dict.fromkeys(words, ""), **NEUTRAL}


def split_words(text: str) -> Words:
    """Return the words of a text without case; a possessive "'s" is dropped."""
    return tuple(word.removesuffix("'s") for word in _WORD.findall(_fold_text(text)))


def mask_group_words(text: str, neutral: Mapping[str, str]) -> str:
    """Replace words that name a group by neutral words.

    A text of nothing else stays as it is: the group is all that it says.
    """
    plain = _fold_text(text)
    if all(word in neutral or word in _BARE for word in split_words(plain)):
        return text

    def masked(match: re.Match[str]) -> str:
        word = match.group()
        bare = word.removesuffix("'s")
        return neutral[bare] + word[len(bare) :] if bare in neutral else word

    neutralised = _WORD.sub(masked, plain)
    return text if neutralised == plain else " ".join(neutralised.split())


class _Match(NamedTuple):
    """A phrase that a text holds, from its first word to the word after it."""

    start: int
    end: int
    classes: set[str]


@dataclass(frozen=True)
class Resolver:
    """Finds the class that a text names.

    Class names and synonyms count as whole words anywhere, the longest first. A text that names
    several classes is ambiguous. One that negates a class within the three words before it is
    unresolved. One that names none is neutral where it names people but no group, or none of the
    choices; else it is unresolved. A refusal is unresolved unless it names a single class.

    Attributes
    ----------
    classes : tuple of str
    synonyms : mapping of str to str
        Phrase to class.
    neutral : mapping of str to str
        Words that name a subject's group, with neutral ones. Synonyms are compared without them,
        class names never.
    refusals : tuple of str
        Regular expressions of refusals beside those of `equipoise.data.refusals`.
    """

    classes: Strings
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    neutral: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refusals: Strings = ()

    def __call__(self, text: str) -> str:
        """Return the class that a text names, `NEUTRAL_ANSWER`, `AMBIGUOUS` or `UNRESOLVED`."""
        declines = self._declines(text)
        label = self._named(without_doubted_classes(text) if declines else text)
        return UNRESOLVED if declines and label in _CLASSLESS else label

    def refuses(self, text: str) -> bool:
        """Whether a text is a refusal and names no class."""
        return self._declines(text) and self._named(without_doubted_classes(text)) in _CLASSLESS

    def names_several(self, text: str) -> bool:
        """Whether a text names several classes, also one that hedges between them."""
        declines = self._declines(text)
        return self._named(without_doubted_classes(text) if declines else text) == AMBIGUOUS

    def _declines(self, text: str) -> bool:
        declared = self._refusal
        if declared is not None and declared.search(_fold_text(text)):
            return True
        return is_refusal(text) and " ".join(split_words(text)) not in _NO_CHOICE

    def _named(self, text: str) -> str:
        words = split_words(text)
        masked = self._masked(words)
        matches = sorted(
            self._matches(words, masked), key=lambda match: (match.start - match.end, match.start)
        )
        covered: set[int] = set()
        classes: set[str] = set()
        negated = False
        for match in matches:
            positions = {*range(match.start, match.end)}
            if covered & positions:
                continue
            covered |= positions
            before = words[max(match.start - _REACH, 0) : match.start]
            negated |= any(word in NEGATORS or word.endswith("n't") for word in before)
            classes |= match.classes
        if not classes:
            return NEUTRAL_ANSWER if self._is_neutral(words) else UNRESOLVED
        if negated:
            return NEUTRAL_ANSWER if "neither" in words and len(classes) > 1 else UNRESOLVED
        if len(classes) > 1:
            classes -= {NEUTRAL_ANSWER}
        return classes.pop() if len(classes) == 1 else AMBIGUOUS

    def _is_neutral(self, words: Words) -> bool:
        """Whether words that name no class name people, or none of the choices."""
        if " ".join(words) in _NO_CHOICE:
            return True
        return self._about_groups and not _PEOPLE.isdisjoint(words)

    @cached_property
    def _about_groups(self) -> bool:
        """Whether a class is a group of people, so that "a person" leaves it open."""
        return any(
            words and all(word in self.neutral or word in _ARTICLES for word in words)
            for words in map(split_words, self.classes)
        )

    def _matches(self, words: Words, masked: Words) -> Iterator[_Match]:
        vocabularies = [*zip(self._known, (words, masked), strict=True)]
        for start in range(len(words)):
            for (classes, lengths), text in vocabularies:
                for length in lengths.get(text[start], ()):
                    if names := classes.get(text[start : start + length]):
                        yield _Match(start, start + length, names)

    def _masked(self, words: Words) -> Words:
        return tuple("person" if word in self.neutral else word for word in words)

    @cached_property
    def _refusal(self) -> re.Pattern[str] | None:
        """Refusals that the user declares."""
        patterns = "|".join(f"(?:{pattern})" for pattern in self.refusals)
        return re.compile(patterns, re.IGNORECASE) if patterns else None

    @cached_property
    def _known(self) -> tuple[Phrases, Phrases]:
        """Class names with synonyms that say nothing but a group; other synonyms, masked."""
        names = [(split_words(name), name) for name in self.classes]
        masked: list[tuple[Words, str]] = []
        for text, name in self.synonyms.items():
            words = split_words(text)
            if all(word in self.neutral or word in _ARTICLES for word in words):
                names.append((words, name))
            else:
                masked.append((self._masked(words), name))
        exact_phrases = ((words, name) for words, name in names if {*words} - _ARTICLES)
        return _phrases(exact_phrases), _phrases(masked)


def _phrases(phrases: Iterable[tuple[Words, str]]) -> Phrases:
    classes: dict[Words, set[str]] = defaultdict(set)
    lengths: dict[str, set[int]] = defaultdict(set)
    for words, name in phrases:
        classes[words].add(name)
        lengths[words[0]].add(len(words))
    return classes, lengths


def _fold_text(text: str) -> str:
    if text.isascii() and "'s" not in text.lower():
        return text.lower().replace("`", "'")
    return _CONTRACTION.sub(r"\1 is", text.casefold().translate(_APOSTROPHES))


# Raised whenever the same fields would give another result than before.
PIPELINE = 3

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
        Regular expressions of refusals, beside those of `equipoise.data.refusals`.
    """

    case_fold: bool = True
    whitespace: bool = True
    punctuation: str = ".,;:!?…\"'`“”\N{LEFT SINGLE QUOTATION MARK}’«»*_"
    articles: Strings = ("a", "an", "the")
    leading_phrases: Strings = LEADING_PHRASES
    synonyms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    classes: Strings = ()
    masked: Strings = ()
    refusals: Strings = ()

    def __call__(self, text: str) -> str:
        """Return the label of a text; never empty unless the text is."""
        form = self.form(text)
        return self._synonym_forms.get(form, form)

    def form(self, text: str) -> str:
        """Return the normal form of a text, before synonyms."""
        previous, current = None, text
        while previous != current:
            previous, current = current, self._pass(current)
        return current

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
        return f"{self.version}: " + "; ".join(step for step, enabled in steps.items() if enabled)

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
    def _starts(self) -> Strings:
        """Prefixes to drop, longest first, each with the space after it."""
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
class Reading:
    """How the texts that a model produced become labels.

    Attributes
    ----------
    maps : mapping of str to mapping
        Alternative class mappings (predicted label to classes) by name, each of which makes one
        version of the predictions. Labels that a mapping does not name stay as they are. Of
        several classes the true one counts, else the first.
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

    maps: Mapping[str, Mapping[str, str | Sequence[str]]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    missing: Strings = ("",)
    unknown: Strings = ()
    refused: Strings = ()
    open_vocabulary: bool = False
    normalize: Normalization | None = None
    may_decline: bool = False
    place: str = ""

    def __post_init__(self) -> None:
        """Refuse a text that is listed under two states."""
        states: dict[str, str] = {}
        for state in ("missing", "unknown", "refused"):
            for text in getattr(self, state):
                if states.setdefault(text, state) != state:
                    raise InputError(
                        f"{text!r} is listed as {states[text]} and as {state}; list it once"
                    )

    @property
    def class_maps(self) -> Mapping[str, Mapping[str, Strings]]:
        """Text to classes, by name of the mapping; an empty mapping if there is none."""
        return {name: _class_tuples(mapping) for name, mapping in self.maps.items()} or {
            "default": {}
        }

    def key(self, name: str) -> str:
        """Return a key as errors name it: within its section of the config."""
        return f"{self.place}.{name}" if self.place else name


def _class_tuples(mapping: Mapping[str, str | Sequence[str]]) -> dict[str, Strings]:
    return {
        text: (classes,) if isinstance(classes, str) else (*classes,)
        for text, classes in mapping.items()
    }


STATES = ("answered", "missing", "unknown", "refused", "unmatched")
ANSWERED, MISSING, UNKNOWN, REFUSED, UNMATCHED = range(len(STATES))
MAX_PAIRS = 5


@dataclass(frozen=True)
class Recipe:
    """Rules that turn raw texts into the labels of a version.

    Attributes
    ----------
    name : str
    mapping : mapping of str to str
    normalize : Normalization or None
    target : tuple of str
        Classes of the target.
    levels : tuple of str
        Values of the attributes that are compared, whose words are masked.
    alternatives : mapping of str to tuple of str
        Every class of a text that may stand for several; `mapping` has the first.
    """

    name: str
    mapping: Mapping[str, str]
    normalize: Normalization | None
    target: Strings
    levels: Strings = ()
    alternatives: Mapping[str, Strings] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return the label of a text."""
        if self.normalize is None:
            return self.mapping.get(text, text)
        label = self._known.get(self.normalize.form(text))
        if label is None and (self._synonyms or not self.classes):
            form = self.form(text)
            label = self._known.get(form, None if self.classes else form)
        return self.resolver(text) if label is None else label

    def form(self, text: str) -> str:
        """Return the normal form of a text without words that name a group."""
        return self._steps.form(mask_group_words(text, self.resolver.neutral))

    @cached_property
    def classes(self) -> Strings:
        """Classes that texts resolve to; () if no class is declared."""
        if self.normalize is None or not (self.target or self.normalize.classes):
            return ()
        return tuple(dict.fromkeys((*self._names.values(), *self._synonyms.values())))

    @cached_property
    def resolver(self) -> Resolver:
        """Resolver that finds the class of a text, and refusals."""
        neutral = neutral_words(self.levels, self._steps.masked)
        synonyms = self._synonyms if self.classes else {}
        return Resolver(self.classes, synonyms, neutral, self._steps.refusals)

    @property
    def _steps(self) -> Normalization:
        return self.normalize or Normalization()

    @cached_property
    def _synonyms(self) -> dict[str, str]:
        """Phrases of the user, each to a class as the target spells it."""
        phrases = {**self._steps.synonyms, **self.mapping}
        return {text: self._names.get(self._steps.form(to), to) for text, to in phrases.items()}

    @cached_property
    def _names(self) -> dict[str, str]:
        """Normal form to class, for declared classes."""
        steps = self._steps
        return {steps.form(name): name for name in (*steps.classes, *self.target)}

    @cached_property
    def _known(self) -> dict[str, str]:
        """Normal form to label, of synonyms and classes."""
        masked, spelled = {}, {}
        for text, name in self._synonyms.items():
            masked[self.form(text)] = name
            spelled[self._steps.form(text)] = name
        return masked | spelled | self._names

    @property
    def scale(self) -> str:
        """Description of this version's steps."""
        steps = [self.normalize.describe()] if self.normalize else []
        if self.mapping:
            content = json.dumps({**self.mapping, **self.alternatives}, sort_keys=True).encode()
            pairs = []
            for text, label in sorted(self.mapping.items()):
                labels = self.alternatives.get(text, (label,))
                pairs.append(f"{text} → {' or '.join(labels)}")
            version = hashlib.sha256(content).hexdigest()[:8]
            steps.append(f"mapping {self.name} ({version}): {listed(pairs, MAX_PAIRS)}")
        return "; then ".join(steps) or "labels as given"


Classes = Mapping[str, Strings]


def _first_classes(classes: Classes) -> dict[str, str]:
    """Return the first class of each text."""
    return {text: names[0] for text, names in classes.items()}


def _ambiguous_classes(classes: Classes) -> dict[str, Strings]:
    """Return the classes of texts that may stand for several."""
    return {text: names for text, names in classes.items() if len(names) > 1}


def _mapping_recipe(name: str, mapping: Classes, target: Strings) -> Recipe:
    alternatives = _ambiguous_classes(mapping)
    return Recipe(name, _first_classes(mapping), None, target, alternatives=alternatives)


def build_recipes(
    reading: Reading, classes: Strings, file: str, levels: Strings = ()
) -> list[Recipe]:
    """Return the versions that a reading makes; see `Reading` and `Recipe`.

    Raises
    ------
    DataError
        When normalisation makes two classes of the target one.
    """
    maps = reading.class_maps
    if reading.normalize is None:
        return [_mapping_recipe(name, mapping, classes) for name, mapping in maps.items()]
    class_by_form: dict[str, str] = {}
    for name in classes:
        other = class_by_form.setdefault(reading.normalize.form(name), name)
        if other != name:
            raise DataError(
                f"normalisation makes the classes {show(other)} and {show(name)} one",
                file=reading.key("normalize") if reading.place else file,
                expected="classes that stay different",
                fix="map them to one class in `data: map:`, or turn a step of "
                f"`{reading.key('normalize')}:` off",
            )
    recipes = []
    for name, mapping in maps.items():
        prefix = f"{name}, " if len(maps) > 1 else ""
        first = _first_classes(mapping)
        recipes.append(Recipe(f"{prefix}raw", first, None, classes, levels))
        recipes.append(Recipe(f"{prefix}normalised", first, reading.normalize, classes, levels))
    return recipes


def text_states(
    reading: Reading,
    vocabulary: Sequence[str],
    classes: Strings,
    file: str,
    levels: Strings = (),
) -> NDArray[np.int8]:
    """Return the state of each text of a vocabulary.

    With `normalize`, refusals are recognised by patterns, too.

    Raises
    ------
    DataError
        When a class of the target is listed as missing, unknown or refused.
    """
    form = reading.normalize.form if reading.normalize else str
    states: dict[str, int] = {}
    for state_code in (REFUSED, UNKNOWN, MISSING):
        states |= dict.fromkeys(map(form, getattr(reading, STATES[state_code])), state_code)
    states[""] = MISSING
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
        mapping = _first_classes(next(iter(reading.class_maps.values())))
        refuses = Recipe("", mapping, reading.normalize, classes, levels).resolver.refuses
        codes = []
        for text in vocabulary:
            unlisted = REFUSED if refuses(text) else ANSWERED
            codes.append(states.get(form(text), unlisted))
    return np.array(codes, dtype=np.int8)


MISSPELT = 0.85
"""How alike two words are of which one is taken for the other, misspelt."""
