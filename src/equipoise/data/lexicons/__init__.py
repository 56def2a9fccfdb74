"""Word lists with provenance: each file of this folder names the source of its words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
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
        if not isinstance(found, Mapping) or not all(isinstance(v, list) for v in found.values()):
            sections = [key for key, value in self.content.items() if isinstance(value, Mapping)]
            raise InputError(
                f"the lexicon {self.name!r} has no section {name!r} of lists; expected one of "
                f"{', '.join(map(repr, sections)) or 'none'}"
            )
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
