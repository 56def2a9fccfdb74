"""Tables of prompts from a template and lists of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from string import Formatter

import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.counterfactuals.articles import agreeing
from equipoise.counterfactuals.ids import word_id

CLASS_AND_BACKGROUND = "A photo of a {class} {background}"
"""The template of SkewSize for classes in front of backgrounds such as "on grass"."""

GENDER_AND_OCCUPATION = "A {gender} {occupation}"
"""The template for occupations with a perceived gender."""

_NONE = "none"


def prompt_table(template: str, values: Mapping[str, Sequence[str]]) -> pa.Table:
    """Return a prompt for every combination of values, for `generate_prompts`.

    "a" and "an" before a value follow the sound of the word.

    Parameters
    ----------
    template : str
        With the names of the values in braces, each once.
    values : mapping of str to sequence of str
        An empty text is a value, too: nothing is said then.

    Returns
    -------
    pyarrow.Table
        `prompt_id`, `prompt`, and a column for every name. Ids are made of the values alone.

    Raises
    ------
    InputError
        When names of template and values differ, a list is empty, or two values have one id.

    References
    ----------
    Albuquerque et al. 2024, SkewSize, section 4.3.
    """
    pieces = _pieces(template, values)
    _check(values)
    rows = []
    for combined in product(*values.values()):
        chosen = dict(zip(values, combined, strict=True))
        row = {"prompt_id": _id(combined), "prompt": _prompt(pieces, chosen)}
        rows.append(row | chosen)
    names = ["prompt_id", "prompt", *values]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names]))


def _pieces(template: str, values: Mapping[str, Sequence[str]]) -> list[tuple[str, str | None]]:
    try:
        pieces = [(text, name) for text, name, _, _ in Formatter().parse(template)]
    except ValueError as error:
        raise InputError(f"the template {template!r} cannot be read: {error}") from None
    found = [name for _, name in pieces if name is not None]
    if sorted(found) != sorted(values) or not found:
        raise InputError(
            f"the template {template!r} has {', '.join(found) or 'nothing'} in braces; expected "
            f"{', '.join(values) or 'names of values'}, each once"
        )
    return pieces


def _check(values: Mapping[str, Sequence[str]]) -> None:
    for name, words in values.items():
        if name in ("prompt", "prompt_id"):
            raise InputError(f"a list of values is named {name!r}, as a column of the table")
        ids = [_id([word]) for word in words] if not isinstance(words, str) else []
        twice = [word for place, word in enumerate(words) if ids and ids[place] in ids[:place]]
        if not ids or twice:
            found = f"has {twice[0]!r} twice" if twice else f"is {words!r}"
            raise InputError(f"{name} {found}; expected a list of different texts")


def _id(texts: Sequence[str]) -> str:
    return word_id([text if word_id([text]) else _NONE for text in texts])


def _prompt(pieces: Sequence[tuple[str, str | None]], values: Mapping[str, str]) -> str:
    """Return the prompt, from its end on: articles follow what comes after them."""
    after = ""
    for text, name in reversed(pieces):
        after = f"{values.get(name or '', '')}{after}"
        before = text.rstrip()
        space = text[len(before) :]
        words = after.lstrip()
        if name is not None and words:
            before = agreeing(before, words)
        after = f"{before}{space}{after}"
    return " ".join(after.split())
