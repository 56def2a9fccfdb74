"""Prompts of the texts of a table: each text in its templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.data import ItemSource, load_items

if TYPE_CHECKING:
    from equipoise.evidence.prompts import Prompts


class TextTable(Protocol):
    """A section that names a table of texts: `TextsConfig`, or one with the same keys."""

    @property
    def id(self) -> str | None:
        """Column that names the text."""

    @property
    def text(self) -> str | None:
        """Column of the text."""

    @property
    def templates(self) -> str | tuple[str, ...]:
        """What the texts are put into."""

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return what to read."""


def prompts_of(about: TextTable, base: Path, *, what: str) -> Prompts:
    """Return the prompts of every text of a table, by its id.

    Raises
    ------
    ConfigError
        When there is no such list of templates.
    DataError
        When the table cannot be read, or a text is missing.
    """
    columns = () if about.text is None else (about.text,)
    items = load_items(about.source(base, columns), what=what)
    texts = items.ids if about.text is None else items.columns[about.text]
    for row, text in enumerate(texts, start=1):
        if text is None or not str(text).strip():
            raise DataError(
                "the text is empty",
                file=items.name,
                column=about.text or about.id,
                row=row,
                expected="a text for a model to embed",
                fix="fill it in, or remove the row",
            )
    words = {one: (str(text),) for one, text in zip(items.ids.tolist(), texts, strict=True)}
    return filled_in(words, about.templates, place=f"{what}.templates")


def filled_in(
    words: Mapping[str, Sequence[str]], templates: str | Sequence[str], *, place: str
) -> Prompts:
    """Return the prompts of named words.

    Raises
    ------
    ConfigError
        When there is no such list of templates, or one is there twice; it names the place.
    """
    from equipoise.evidence.prompts import prompts

    try:
        return prompts(words, templates)
    except InputError as error:
        raise ConfigError(f"{place}: {error}") from None
