"""The section `vocabulary`: which classes a model that has none of its own chooses between."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_arrays import located
from equipoise.audits.config_fields import Delimiter, Encoding, Label, Labels, Name, Section, Table
from equipoise.audits.config_problems import nearest
from equipoise.core.errors import DataError, InputError
from equipoise.data import LEXICONS, lexicon, read_table

Classes = Mapping[str, tuple[str, ...]]

_FEWEST = 2
_SOURCES = ("classes", "lexicon", "file")
_FORMS = (
    "expected classes (a list, or class to words), a 'lexicon' with its 'list', or a 'file' with "
    "its 'column'"
)
_GOES_WITH = {"list": "lexicon", "column": "file", "words": "file", "encoding": "file"}
_GOES_WITH["delimiter"] = "file"


class VocabularyConfig(Section):
    """Classes, and the words that stand for each.

    A list of classes, or a mapping of classes to lists of words, may stand in its place.

    Attributes
    ----------
    classes : mapping of str to list of str
        Class to its words.
    lexicon : str
        A lexicon of the package, with `list`.
    list : str
        A list of words in the lexicon; points lead into its sections.
    file : path or data frame
        A table with a row per class, or per word of a class.
    column : str
        Its column of classes.
    words : str, optional
        Its column of words; the class itself unless given.
    encoding, delimiter : str
        Of a CSV.
    """

    classes: Annotated[Mapping[Label, Labels], Field(min_length=_FEWEST)] | None = None
    lexicon: Name | None = None
    list: Name | None = None
    file: Table | None = None
    column: Name | None = None
    words: Name | None = None
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _one_source(self) -> VocabularyConfig:
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"{given[0]!r} and {given[1]!r} are given" if given else "nothing is given"
            raise ValueError(f"{found}; {_FORMS}")
        for key, source in _GOES_WITH.items():
            default = VocabularyConfig.model_fields[key].get_default()
            if getattr(self, key) != default and given != [source]:
                raise ValueError(f"{key!r} goes with {source!r}, and {given[0]!r} is given")
        for name, words in (self.classes or {}).items():
            if not name or not words or "" in words:
                raise ValueError(
                    f"classes: {name!r} has the words {[*words]}; expected a class and one word or "
                    "more that stand for it, none of them empty"
                )
        if self.lexicon is not None:
            listed_words(self.lexicon, self.list)
        if self.file is not None and self.column is None:
            raise ValueError("'column' is missing: the column of the file that names the class")
        return self

    def read(self, base: Path) -> Classes:
        """Return the words of each class.

        Raises
        ------
        DataError
            When the file cannot be read, or holds fewer than two classes.
        """
        if self.classes is not None:
            return self.classes
        if self.lexicon is not None:
            return {word: (word,) for word in listed_words(self.lexicon, self.list)}
        column = str(self.column)
        table = read_table(
            located(self.file, base),
            texts=tuple(dict.fromkeys((column, self.words or column))),
            role="vocabulary",
            encoding=self.encoding,
            delimiter=self.delimiter,
        )
        names, words = (table.texts[one].to_list() for one in (column, self.words or column))
        found: dict[str, dict[str, None]] = {}
        for name, word in zip(names, words, strict=True):
            if name and word:
                found.setdefault(name, {})[word] = None
        if len(found) < _FEWEST:
            raise DataError(
                f"a vocabulary of {'1 class' if found else '0 classes'}",
                file=table.name,
                column=column,
                expected=f"{_FEWEST} or more classes to choose between",
                fix="name the column of classes, or list them under 'vocabulary'",
            )
        return {name: tuple(some) for name, some in found.items()}


def listed_words(name: str, path: str | None) -> tuple[str, ...]:
    """Return a list of words of a lexicon.

    Parameters
    ----------
    name : str
        Of the lexicon.
    path : str or None
        Of the list: "occupations", or "targets.occupations.men" within sections.

    Raises
    ------
    ValueError
        When there is no such lexicon or list; it names those that there are.
    """
    try:
        found: Any = lexicon(name).content
    except InputError as error:
        raise ValueError(f"{error}{nearest(name, LEXICONS)}") from None
    lists = sorted(_lists(found))
    if path not in lists:
        raise ValueError(
            f"the lexicon {name!r} has no list {path!r}. Allowed: {', '.join(lists)}"
            f"{nearest(path, lists)}"
        )
    for step in str(path).split("."):
        found = found[step]
    return tuple(dict.fromkeys(found))


def _lists(content: Mapping[str, Any], before: str = "") -> list[str]:
    found: list[str] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            found += _lists(value, f"{before}{name}.")
        elif isinstance(value, list) and all(isinstance(one, str) for one in value):
            found.append(f"{before}{name}")
    return found


def _short_forms(value: object) -> object:
    if isinstance(value, str):
        raise ValueError(_FORMS)
    if isinstance(value, list | tuple):
        texts = [str(one) for one in value if isinstance(one, str | int)]
        if len({*texts}) < max(_FEWEST, len(value)):
            raise ValueError(
                f"expected a list of {_FEWEST} or more classes, each a text, each once"
            )
        return {"classes": {one: (one,) for one in value}}
    if isinstance(value, Mapping) and {*map(type, value.values())} in ({list}, {tuple}):
        return {"classes": value}
    return value


Vocabulary = Annotated[VocabularyConfig, BeforeValidator(_short_forms)]
"""Classes to choose between: a list, class to words, a lexicon or a file."""
