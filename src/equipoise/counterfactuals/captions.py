"""Captions in sets: one prefix and subject, every combination of some attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from string import Formatter

import pyarrow as pa

from equipoise.core import InputError
from equipoise.counterfactuals.articles import agreeing
from equipoise.counterfactuals.ids import word_id
from equipoise.data.lexicons import lexicon

ATTRIBUTES_FIRST = "{prefix} {attributes} {subject}"
"""The template for subjects that are nouns: "A photo of an old doctor"."""

SUBJECT_FIRST = "{prefix} {subject} {attributes} person"
"""The template for subjects that are traits: "A photo of a kind old person"."""

_FIELDS = ("prefix", "attributes", "subject")


@dataclass(frozen=True)
class CaptionSets:
    """Captions, in sets whose members differ in their attributes alone.

    Attributes
    ----------
    table : pyarrow.Table
        One row per caption: `caption_id`, `set`, `attributes` (the types that vary, joined by
        "-"), `prefix`, `subject`, a column of text for every type of attribute (null where it
        does not vary), and `caption`. Rows of a set are together, in the order of the values.
    sets : int
        How many there are.
    """

    table: pa.Table = field(repr=False)
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
) -> CaptionSets:
    """Return every caption of some subjects, in counterfactual sets.

    A set has one prefix and one subject, and a caption for each combination of values of the
    types of attributes that vary in it. "a" and "an" at the end of a prefix follow the sound of
    the next word.

    Parameters
    ----------
    subjects : sequence of str
        Such as occupations, or traits with the template `SUBJECT_FIRST`.
    attributes : mapping of str to sequence of str
        Type of attribute to its values, such as "gender" to "male" and "female".
    prefixes : sequence of str
        What captions start with.
    combinations : sequence of sequences of str, optional
        Types that vary together, in the order in which a caption has them: any number of them.
        All types at once, in their order, unless given.
    template : str
        The three parts in braces, each once: prefix, attributes and subject.

    Returns
    -------
    CaptionSets
        The same ids for the same words, whatever else is asked for at the same time.

    Raises
    ------
    InputError
        When a list is empty or repeats a word, a combination names no type of attribute or gives
        sets of one caption, or two sets would have one id.

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals, section 3.2.
    """
    varied = _combinations(combinations, attributes)
    _check_words(subjects, attributes, prefixes)
    _check_several(varied, attributes)
    _check_template(template)
    rows: list[dict[str, str]] = []
    seen: dict[str, tuple[str, str]] = {}
    for types, prefix, subject in product(varied, prefixes, subjects):
        name = word_id(("-".join(types), prefix, subject))
        if name in seen:
            raise InputError(
                f"{seen[name]} and {(prefix, subject)} would both be the set {name!r}; expected "
                "subjects and prefixes that differ in more than case and punctuation"
            )
        seen[name] = (prefix, subject)
        rows += _captions(name, types, prefix, subject, attributes, template)
    names = ["caption_id", "set", "attributes", "prefix", "subject", *attributes, "caption"]
    schema = pa.schema([(one, pa.string()) for one in names])
    return CaptionSets(pa.Table.from_pylist(rows, schema=schema), len(seen))


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


def _captions(
    name: str,
    types: Sequence[str],
    prefix: str,
    subject: str,
    attributes: Mapping[str, Sequence[str]],
    template: str,
) -> Iterator[dict[str, str]]:
    for values in product(*(attributes[one] for one in types)):
        yield {
            "caption_id": f"{name}/{word_id(values)}",
            "set": name,
            "attributes": "-".join(types),
            "prefix": prefix,
            "subject": subject,
            **dict(zip(types, values, strict=True)),
            "caption": _caption(template, prefix, " ".join(values), subject),
        }


def _caption(template: str, prefix: str, attributes: str, subject: str) -> str:
    before, after = template.split("{prefix}")
    words = after.format(attributes=attributes, subject=subject).strip()
    return " ".join(f"{before}{agreeing(prefix, words)} {words}".split())


def _combinations(
    given: Sequence[Sequence[str]] | None, attributes: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    varied = [tuple(attributes)] if given is None else [tuple(types) for types in given]
    for types in varied:
        unknown = [one for one in types if one not in attributes]
        if not types or unknown or len({*types}) < len(types):
            raise InputError(
                f"the combination {list(types)} is not of different types of attributes; expected "
                f"some of {', '.join(map(repr, attributes)) or 'none, since none are given'}"
            )
    return varied


def _check_several(
    varied: Sequence[Sequence[str]], attributes: Mapping[str, Sequence[str]]
) -> None:
    for types in varied:
        if all(len(attributes[one]) == 1 for one in types):
            values = ", ".join(f"{one}: {attributes[one][0]!r}" for one in types)
            raise InputError(
                f"the combination {list(types)} has one value of each ({values}), so that every "
                "set would be one caption; expected two values or more of one of them"
            )


def _check_words(
    subjects: Sequence[str], attributes: Mapping[str, Sequence[str]], prefixes: Sequence[str]
) -> None:
    taken = {"caption_id", "set", "attributes", "prefix", "subject", "caption"} & {*attributes}
    if taken:
        raise InputError(f"a type of attribute is named {min(taken)!r}, as a column of the table")
    lists = {"subjects": subjects, "prefixes": prefixes, **attributes}
    for name, words in lists.items():
        ids = [word_id([word]) for word in words]
        twice = [word for place, word in enumerate(words) if ids[place] in ids[:place]]
        if isinstance(words, str) or not ids or not all(ids) or twice:
            found = f"has {twice[0]!r} twice" if twice else f"is {words!r}"
            raise InputError(f"{name} {found}; expected a list of different words")


def _check_template(template: str) -> None:
    found = sorted(name for _, name, _, _ in Formatter().parse(template) if name is not None)
    if found != sorted(_FIELDS):
        raise InputError(
            f"the template {template!r} has {', '.join(found) or 'nothing'} in braces; expected "
            f"{', '.join(_FIELDS)}, each once"
        )
    if template.index("{prefix}") > min(
        template.index("{attributes}"), template.index("{subject}")
    ):
        raise InputError(f"the template {template!r} has its prefix later; expected it first")
