"""Images of tables, read and decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core.errors import DataError
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import ImageError, Pictures, decode, pictures_of_table

if TYPE_CHECKING:
    from equipoise.mitigate.config import ImagesConfig


@dataclass(frozen=True, eq=False)
class Decoded:
    """Pictures as a sequence of arrays; each is read when it is asked for.

    Attributes
    ----------
    pictures : Pictures
    """

    pictures: Pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> Any:
        if place >= len(self.pictures):
            raise IndexError(place)
        try:
            return decode(self.content(place))
        except ImageError as error:
            raise DataError(
                f"an image cannot be decoded: {error}",
                file=self.pictures.where(place),
                fix="repair it, or take its row out of the table",
            ) from error

    def content(self, place: int) -> bytes:
        """Return the bytes of an image's file.

        Raises
        ------
        DataError
            When it cannot be read.
        """
        try:
            return self.pictures.read(place)
        except OSError as error:
            raise DataError(
                f"an image cannot be read: {error.strerror or error}",
                file=self.pictures.where(place),
                fix="put it there, or take its row out of the table",
            ) from error


@dataclass(frozen=True, eq=False)
class Listed:
    """Images of a table with its columns, rows sorted by id.

    Attributes
    ----------
    images : Decoded
    columns : mapping of str to ndarray of str objects
    items : Items
        The table as read.
    """

    images: Decoded
    columns: dict[str, Any]
    items: Items


def listed(config: ImagesConfig, columns: Sequence[str], base: Path, *, what: str) -> Listed:
    """Read a table of images.

    Parameters
    ----------
    config : ImagesConfig
    columns : sequence of str
        Needed beside the id and the path; no cell may be missing.
    base : Path
        What relative paths are relative to.
    what : str
        What the images are for, in messages.

    Raises
    ------
    DataError
        When the table cannot be used, or a cell is missing.
    """
    table = config.table if not isinstance(config.table, Path) else base / config.table
    wanted = tuple(dict.fromkeys((config.path, *columns)))
    items = load_items(ItemSource(table, config.id, wanted), what=what)
    for name in wanted:
        gone = np.flatnonzero([_missing(value) for value in items.columns[name]])
        if len(gone):
            raise DataError(
                "a cell is missing",
                file=items.name,
                column=name,
                row=int(gone[0]) + 1,
                expected="a value in every row",
                fix="fill it in, or take the row out",
            )
    order = np.argsort(items.ids.astype(str), kind="stable")
    pictures = pictures_of_table(
        items.ids[order].tolist(),
        items.columns[config.path][order].tolist(),
        root=base / config.root if config.root is not None else _beside(table, base),
        name=items.name,
        column=config.path,
    )
    return Listed(Decoded(pictures), {name: items.columns[name][order] for name in columns}, items)


def _missing(value: str | None) -> bool:
    """Whether a cell holds nothing, or what a table of numbers writes for nothing."""
    return value is None or value.strip().lower() in ("", "nan")


def _beside(table: Any, base: Path) -> Path:
    return table.parent if isinstance(table, Path) else base
