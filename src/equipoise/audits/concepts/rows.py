"""The table of images: rows with attributes, and which image each belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.data import Coded, Items, ItemSource, load_items, read_table

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.config_inputs import ImagesConfig

Positions = npt.NDArray[np.int64]
_ROW = "\x1frow"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the table of images.

    Attributes
    ----------
    items : Items
        One per row, with the columns that any choice uses.
    images : Items
        Each image once; the same as `items` where an image has one row.
    image : ndarray of int64, shape (rows,)
        Which image a row belongs to.
    units : Coded or None
        What is resampled and exchanged as a whole, where that is not the row.
    """

    items: Items = field(repr=False)
    images: Items = field(repr=False)
    image: Positions = field(repr=False)
    units: Coded | None = field(repr=False)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.image)


def read_rows(config: Config, base: Path) -> Rows:
    """Read the table of images with every column that a version uses."""
    given = config.data.images
    columns = needed_columns(config)
    if not given.several_rows:
        items = load_items(given.source(base, columns), what="images")
        units = items.coded[given.unit] if given.unit else None
        return Rows(items, items, np.arange(len(items)), units)
    return _several(given, base, columns)


def needed_columns(config: Config) -> tuple[str, ...]:
    """Return the columns of the images that any version uses, each once."""
    found: list[str] = []
    for version in config.every_version:
        moved = version.choices.columns
        found += [moved.get(name, name) for group in config.data.groups for name in group]
        found += version.choices.where
    unit = config.data.images.unit
    return tuple(dict.fromkeys([*found, *([unit] if unit else [])]))


def _several(given: ImagesConfig, base: Path, columns: tuple[str, ...]) -> Rows:
    """Read a table in which an image may have several rows."""
    import polars as pl

    source = given.source(base, columns)
    table = read_table(
        source.table,
        texts=(source.id, *columns),
        role="images",
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    image = Coded.of(table.texts[source.id])
    if (image.codes < 0).any():
        raise DataError(
            "the id is empty",
            file=table.name,
            column=source.id,
            row=int(np.argmax(image.codes < 0)) + 1,
            expected="the id of an image in every row",
            fix="fill it in, or remove the row",
        )
    numbers = pl.Series(_ROW, np.arange(1, table.rows + 1)).cast(pl.String)
    frame = pl.DataFrame([numbers, *(table.texts[name].alias(name) for name in columns)])
    read = load_items(ItemSource(frame, _ROW, columns, given.missing), what=table.name)
    items = replace(read, name=table.name, inputs={table.name: table.digest})
    ids = np.array(image.vocabulary, dtype=object)
    images = Items(table.name, source.id, ids, {}, items.inputs, {"rows": len(ids)})
    unit = items.coded[given.unit] if given.unit else image
    return Rows(items, images, image.codes.astype(np.int64), unit)
