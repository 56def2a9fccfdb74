"""Word lists with provenance: each file of this folder names the source of its words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from equipoise.core import InputError

LEXICONS = (
    "continents",
    "hall_2023",
    "howard_2024",
    "income",
    "mandal_2024_gender",
    "mandal_2024_prompts",
    "mandal_2024_regions",
    "mandal_2024_words",
)


@dataclass(frozen=True)
class Lexicon:
    """Words of one source.

    Attributes
    ----------
    name : str
    source : str
        Where the words come from.
    note : str
        What to know before using them.
    content : mapping
        Lists of words by name, possibly in sections.
    """

    name: str
    source: str
    note: str
    content: Mapping[str, Any]

    def section(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return the lists of a section by name, such as the terms of each group.

        Raises
        ------
        InputError
            When there is no such section of lists.
        """
        found = self.content.get(name)
        if not isinstance(found, Mapping):
            raise InputError(f"the lexicon {self.name!r} has no section {name!r} of lists")
        return {group: tuple(words) for group, words in found.items()}


@cache
def lexicon(name: str) -> Lexicon:
    """Return a lexicon of the package.

    Parameters
    ----------
    name : str
        One of `LEXICONS`.

    Raises
    ------
    InputError
        When there is no such lexicon.
    """
    if name not in LEXICONS:
        raise InputError(f"there is no lexicon {name!r}; expected one of {', '.join(LEXICONS)}")
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    source, note = content.pop("source"), content.pop("note")
    return Lexicon(name, source, note, MappingProxyType(content))


_SYNSET = re.compile(r"(?P<lemma>\S+)\.[nvasr]\.\d{2,}")


def synset_text(name: str) -> str:
    """Return the words of a synset: "hot_dog.n.01" is "hot dog".

    Parameters
    ----------
    name : str
        Lemma, part of speech and number, apart by points.

    Raises
    ------
    InputError
        When the name is not of this form.
    """
    found = _SYNSET.fullmatch(name.strip())
    words = found["lemma"].replace("_", " ").strip() if found else ""
    if not words:
        raise InputError(f"{name!r} is no synset; expected a name such as 'dress.n.01'")
    return words


def synset_texts(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the synsets of each text, so that a text of several shows.

    Parameters
    ----------
    names : iterable of str

    Returns
    -------
    dict of str to tuple of str
        Text to its synsets, both sorted: {"dame": ("dame.n.01", "dame.n.02")}.

    Raises
    ------
    InputError
        As `synset_text`.
    """
    pairs = sorted({(synset_text(name), name) for name in names})
    found: dict[str, tuple[str, ...]] = {}
    for text, name in pairs:
        found[text] = (*found.get(text, ()), name)
    return found
