"""Word lists with provenance: each file in this folder names its source."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from equipoise.core import Facts, Fields, InputError, Strings

LEXICONS = (
    "cho_2022",
    "continents",
    "hall_2023",
    "howard_2024",
    "howard_2024_released",
    "income",
    "mandal_2024_gender",
    "mandal_2024_prompts",
    "mandal_2024_regions",
    "mandal_2024_words",
    "tiny_imagenet",
    "vendrow_2023",
)


@dataclass(frozen=True)
class Lexicon:
    """Word lists from a single source.

    Attributes
    ----------
    name : str
    source : str
        Where the words come from.
    note : str
        What to know before using them.
    content : mapping
        Lists of words by name, possibly in sections.
    licence : str
        Under which the words are passed on; empty where facts alone are listed.
    """

    name: str
    source: str
    note: str
    content: Facts
    licence: str = ""

    def section(self, name: str) -> dict[str, Strings]:
        """Return the word lists of a section by name.

        Raises
        ------
        InputError
            When there is no such section of lists.
        """
        section = self.content.get(name)
        if not isinstance(section, Mapping):
            raise InputError(f"the lexicon {self.name!r} has no section {name!r} of lists")
        return {group: tuple(words) for group, words in section.items()}


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
    content = _content(name, LEXICONS)
    source, note = content.pop("source"), content.pop("note")
    licence = content.pop("licence", "")
    return Lexicon(name, source, note, MappingProxyType(content), licence)


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
    match = _SYNSET.fullmatch(name.strip())
    words = match["lemma"].replace("_", " ").strip() if match else ""
    if not words:
        raise InputError(f"{name!r} isn't a synset; expected a name such as 'dress.n.01'")
    return words


TEMPLATES = ("openai_7", "openai_80", "plain")

PLACE = "{}"
"""Where the name of a class goes."""


@dataclass(frozen=True)
class Templates:
    """Prompt templates from a single source.

    Attributes
    ----------
    name : str
    source : str
        Where the templates come from.
    licence : str
        Under which they are passed on, with its copyright notice.
    note : str
        What to know before using them.
    texts : tuple of str
        Each with one `{}`, where the name of a class goes.
    """

    name: str
    source: str
    licence: str
    note: str
    texts: Strings


@cache
def templates(name: str) -> Templates:
    """Return a list of templates of the package.

    Parameters
    ----------
    name : str
        One of `TEMPLATES`.

    Raises
    ------
    InputError
        When there is no such list.
    """
    content = _content(name, TEMPLATES)
    return Templates(name, texts=tuple(content.pop("templates")), **content)


def _content(name: str, names: Strings) -> Fields:
    if name not in names:
        raise InputError(f"there is no list {name!r}; expected one of {', '.join(names)}")
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def filled(template: str, name: str) -> str:
    """Insert a name into a template: "a photo of a {}." gives "a photo of a dog.".

    Raises
    ------
    InputError
        When the template has no place for a name, or several.
    """
    if template.count(PLACE) != 1:
        raise InputError(
            f"the template {template!r} has {PLACE} {template.count(PLACE)} times; expected once, "
            "where the name of the class goes"
        )
    before, _, after = template.partition(PLACE)
    return f"{before}{name}{after}"
