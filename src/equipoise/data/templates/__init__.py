"""Prompt templates with provenance: each file of this folder names the source of its texts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from equipoise.core import InputError

TEMPLATES = ("openai_7", "openai_80", "plain")

PLACE = "{}"
"""Where the name of a class goes."""


@dataclass(frozen=True)
class Templates:
    """Templates of one source.

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
    texts: tuple[str, ...]


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
    if name not in TEMPLATES:
        raise InputError(
            f"there is no list of templates {name!r}; expected one of {', '.join(TEMPLATES)}, or "
            'texts such as "a photo of a {}."'
        )
    text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return Templates(
        name, content["source"], content["licence"], content["note"], (*content["templates"],)
    )


def filled(template: str, name: str) -> str:
    """Return a template with a name in its place: "a photo of a dog." of "a photo of a {}.".

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
