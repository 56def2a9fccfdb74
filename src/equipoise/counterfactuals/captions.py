"""Captions in sets, neutral prompts and tables of prompts, with articles that follow the sound."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from string import Formatter
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from equipoise.core import InputError
from equipoise.data.lexicons import lexicon

ATTRIBUTES_FIRST = "{prefix} {attributes} {subject}"
"""The template for subjects that are nouns: "A photo of an old doctor"."""

_FIELDS = ("prefix", "attributes", "subject")
# Numbers with a vowel sound first: eight, eleven, eighteen, eighty, eight hundred.
_VOWEL_NUMBER = re.compile(r"(8\d*|11|18)(?!\d)")
_ARTICLE = re.compile(r"\b(an?)\Z", re.IGNORECASE)


def agreeing(before: str, after: str) -> str:
    """Return a text with its last word, where that is "a" or "an", as the next words demand.

    Parameters
    ----------
    before : str
        Such as "A photo of a".
    after : str
        Next words, such as "old doctor".
    """
    match = _ARTICLE.search(before)
    if match is None:
        return before
    text = _article(after.partition(" ")[0])
    return before[: match.start()] + (text.capitalize() if match[1][0].isupper() else text)


@cache
def _article(word: str) -> str:
    if word[:1].isdigit():
        return "an" if _VOWEL_NUMBER.match(word) else "a"
    return str(_english().a(word)).partition(" ")[0]


@cache
def _english() -> Any:
    import inflect

    engine = inflect.engine()
    # The library takes these for words with the sound of "use".
    for word in ("usher", "uber"):
        engine.defan(word)
    return engine


def word_id(texts: Sequence[str]) -> str:
    """Return texts as a path of plain words, fit for the name of a file on any system."""
    return "/".join(re.sub(r"[^\w]+", "-", text.casefold()).strip("-") for text in texts)


def _check_words(name: str, words: Sequence[str]) -> None:
    """Refuse a list that is empty, or that has an empty text or a word twice."""
    ids = [] if isinstance(words, str) else [word_id([word]) for word in words]
    repeated = [word for place, word in enumerate(words) if ids and ids[place] in ids[:place]]
    if not ids or repeated or not all(ids):
        problem = f"has {repeated[0]!r} twice" if repeated else f"is {words!r}"
        raise InputError(f"{name} {problem}; expected a list of different words")


def _text_table(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> pa.Table:
    return pa.Table.from_pylist([*rows], pa.schema([(name, pa.string()) for name in columns]))


@dataclass(frozen=True)
class CaptionSets:
    """Captions in sets; members of a set differ in their attributes alone.

    Attributes
    ----------
    table : pyarrow.Table
        One row per caption: `caption_id`, `set`, `attributes` (the types that vary, joined by
        "-"), `prefix`, `subject`, a column of text for every type of attribute (null where it
        does not vary), and `caption`. Rows of a set are together, in the order of the values.
    sets : int
        Number of sets.
    """

    table: pa.Table
    sets: int

    def __len__(self) -> int:
        """Return the number of captions."""
        return int(self.table.num_rows)


def caption_sets(
    subjects: Sequence[str],
    attributes: Mapping[str, Sequence[str]],
    *,
    prefixes: Sequence[str] = ("A photo of a",),
    combinations: Sequence[Sequence[str]] | None = None,
    template: str = ATTRIBUTES_FIRST,
    templates: Mapping[str, str] = MappingProxyType({}),
) -> CaptionSets:
    """Return every caption of some subjects, in counterfactual sets.

    A set has one prefix and one subject, and a caption for each combination of values of the
    types of attributes that vary in it. "a" and "an" at the end of a prefix follow the sound of
    the next word.

    Parameters
    ----------
    subjects : sequence of str
        Such as occupations, or traits with the template
        "{prefix} {subject} {attributes} person".
    attributes : mapping of str to sequence of str
        Type of attribute to its values, such as "gender" to "male" and "female".
    prefixes : sequence of str
        Beginnings of captions.
    combinations : sequence of sequences of str, optional
        Types that vary together, in the order in which a caption has them: any number of them.
        All types at once, in their order, unless given.
    template : str
        The three parts in braces, each once: prefix, attributes and subject.
    templates : mapping of str to str
        Templates of captions with a value that stands elsewhere, by value: "blue" before a
        subject that other backgrounds follow. Of several such values the first decides.

    Returns
    -------
    CaptionSets
        The ids depend on the words alone.

    Raises
    ------
    InputError
        When a list is empty or repeats a word, a combination names no type of attribute or gives
        sets of one caption, two sets would have one id, or a template is of no value.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.2.
    """
    columns = ["caption_id", "set", "attributes", "prefix", "subject", *attributes, "caption"]
    if len({*columns}) < len(columns):
        raise InputError(
            f"types of attributes {', '.join(attributes)}: a column already has this name"
        )
    for role, words in {"subjects": subjects, "prefixes": prefixes, **attributes}.items():
        _check_words(role, words)
    varied = [tuple(types) for types in combinations or [[*attributes]]]
    for types in varied:
        valid = {*types} <= {*attributes} and len({*types}) == len(types)
        if not valid or all(len(attributes[name]) == 1 for name in types):
            raise InputError(
                f"the combination {list(types)} gives sets of one caption, or is not of different "
                f"types of attributes; expected some of {', '.join(map(repr, attributes))}"
            )
    values_of_all = {value for values in attributes.values() for value in values}
    if unknown := [value for value in templates if value not in values_of_all]:
        raise InputError(f"templates: {unknown[0]!r} isn't a value of an attribute")
    parts_of = {value: _split_template(text) for value, text in templates.items()}
    main_parts = _split_template(template)
    rows: list[dict[str, str]] = []
    first_uses: dict[str, tuple[str, str]] = {}
    for types, prefix, subject in product(varied, prefixes, subjects):
        joined = "-".join(types)
        name = word_id((joined, prefix, subject))
        if name in first_uses:
            raise InputError(
                f"{first_uses[name]} and {(prefix, subject)} would both be the set {name!r}; "
                "expected subjects and prefixes that differ in more than case and punctuation"
            )
        first_uses[name] = (prefix, subject)
        for values in product(*(attributes[kind] for kind in types)):
            before, after = next(
                (parts_of[value] for value in values if value in parts_of), main_parts
            )
            words = after.format(attributes=" ".join(values), subject=subject).strip()
            text = " ".join(f"{before}{agreeing(prefix, words)} {words}".split())
            cells = (f"{name}/{word_id(values)}", name, joined, prefix, subject, *values, text)
            rows.append(dict(zip((*columns[:5], *types, "caption"), cells, strict=True)))
    return CaptionSets(_text_table(rows, columns), len(first_uses))


def _split_template(template: str) -> tuple[str, str]:
    """Return the text before and after the prefix of a template, checked."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    if sorted(names) != sorted(_FIELDS) or names[0] != "prefix":
        raise InputError(
            f"the template {template!r} has {', '.join(names) or 'nothing'} in braces; expected "
            f"{', '.join(_FIELDS)}, each once and the prefix first"
        )
    before, after = template.split("{prefix}")
    return before, after


def howard_2024(subjects: Sequence[str] | None = None) -> CaptionSets:
    """Return the captions of SocialCounterfactuals: pairs of race, gender and physical traits.

    Parameters
    ----------
    subjects : sequence of str, optional
        The 156 occupations that the source lists unless given. It used 260.

    Returns
    -------
    CaptionSets
        52 captions for each subject and prefix in 3 sets: with 260 subjects 54,080 in 3,120.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, sections 3.2 and 8.4, Tables 18 and 19.
    """
    words = lexicon("howard_2024").content
    return caption_sets(
        words["occupations"] if subjects is None else subjects,
        {name: words[name] for name in ("physical", "race", "gender")},
        prefixes=words["prefixes"],
        combinations=(("physical", "race"), ("physical", "gender"), ("race", "gender")),
    )


def neutral_prompts(subjects: Sequence[str], prefixes: Sequence[str]) -> pa.Table:
    """Return the prompts that name a subject and no attribute, one for each prefix.

    Parameters
    ----------
    subjects : sequence of str
        Such as occupations.
    prefixes : sequence of str
        Beginnings of prompts, such as "A photo of a"; "a" and "an" follow the sound of the next
        word. With "{}" in it, the subject goes there: "A photo of a {} person".

    Returns
    -------
    pyarrow.Table
        `prompt` and `subject`, prefix after prefix for each subject.

    Raises
    ------
    InputError
        When a list is empty or repeats a text, a text is empty, or two prompts are the same.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 4.
    """
    for role, words in (("subjects", subjects), ("prefixes", prefixes)):
        _check_words(role, words)
    rows = []
    for subject, prefix in product(subjects, prefixes):
        before, _, after = prefix.partition("{}")
        text = f"{agreeing(before.rstrip(), subject)} {subject}{after}"
        rows.append({"prompt": " ".join(text.split()), "subject": subject})
    if len({row["prompt"] for row in rows}) < len(rows):
        raise InputError(f"subjects {subjects!r}, prefixes {prefixes!r} make a prompt twice")
    return _text_table(rows, ("prompt", "subject"))
