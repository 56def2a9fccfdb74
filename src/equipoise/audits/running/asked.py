"""What the kinds of audit have in common when they run models: images, prompts, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from equipoise.audits.config_arrays import MADE, ArrayConfig
from equipoise.audits.running.runner import Ran
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.data import ItemSource, load_items

if TYPE_CHECKING:
    from equipoise.audits.running.config import RunConfig
    from equipoise.evidence.prompts import Prompts

Model = TypeVar("Model", bound="RunConfig")
ID = "image_id"


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


def to_run(models: Mapping[str, Model]) -> dict[str, Model]:
    """Return the models that are to be run, by name."""
    return {name: given for name, given in models.items() if given.model is not None}


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


def averaged(scored: Ran, prompts: Prompts) -> ArrayConfig:
    """Return scores of images and texts as a table with a column for each name of the prompts.

    The scores of all prompts of a name are averaged.
    """
    places = {text: place for place, text in enumerate(scored.names)}
    values = matrix(scored)[:, [places[text] for text in prompts.texts]]
    counts = np.bincount(prompts.owner, minlength=len(prompts.names))
    sums = np.zeros((len(values), len(prompts.names)))
    for column, owner in enumerate(prompts.owner.tolist()):
        sums[:, owner] += values[:, column]
    return array_of(scored.table["id"], sums / counts, prompts.names)


def matrix(ran: Ran) -> np.ndarray[Any, Any]:
    """Return the numbers of every row, shape (images, names or dimension)."""
    name = next(one for one in ran.table.column_names if one != "id")
    cells = ran.table[name].combine_chunks()
    return np.asarray(cells.flatten().to_numpy().reshape(len(cells), -1))


def array_of(ids: Any, values: np.ndarray[Any, Any], names: Sequence[str]) -> ArrayConfig:
    """Return a section that names numbers by image and name, in memory."""
    flat = pa.array(np.ascontiguousarray(values, dtype=np.float32).ravel())
    cells = pa.FixedSizeListArray.from_arrays(flat, max(1, len(names)))
    table = pa.table({"id": ids, "values": cells}, metadata=MADE)
    return ArrayConfig(file=table, id="id", column="values", names=tuple(names))
