"""Names of WordNet synsets as words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from equipoise.core import InputError

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
