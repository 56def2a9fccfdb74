"""Images of tables: all checked once, then read and decoded when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import Decoding, ImageError, Pictures, decode, pictures_of_table
from equipoise.evidence.decoding import pixels, quiet

if TYPE_CHECKING:
    from equipoise.mitigate.config import ImagesConfig
    from equipoise.mitigate.recipe import Progress

_LISTED, _AT_ONCE = 5, 256


@dataclass(frozen=True, eq=False)
class Decoded:
    """Pictures as a sequence of arrays; each is read when it is asked for.

    Attributes
    ----------
    pictures : Pictures
    rows : ndarray of int64, shape (n,)
        Row of each in its table, from 1.
    column : str
        Of the paths.
    """

    pictures: Pictures
    rows: npt.NDArray[np.int64]
    column: str

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, place: int) -> Any:
        if place >= len(self.pictures):
            raise IndexError(place)
        try:
            return decode(self.content(place))
        except ImageError as error:
            raise self.refused(place, f"cannot be decoded: {error.reason}") from error

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
            raise self.refused(place, f"cannot be read: {_trouble(error)}") from error

    def refused(self, place: int, why: str) -> DataError:
        """Return the error that names an image and its row."""
        return DataError(
            f"the image {self.pictures.where(place)} {why}",
            file=self.pictures.name,
            column=self.column,
            row=int(self.rows[place]),
            fix="repair it, or take its row out of the table",
        )


def check_images(tables: Sequence[Decoded], progress: Progress | None = None) -> None:
    """Read and decode every image once, a file of several tables once for all of them.

    Parameters
    ----------
    tables : sequence of Decoded
    progress : callable, optional

    Raises
    ------
    DataError
        When one cannot be read or decoded. It names the first row of the first such table, and
        says how many more there are.
    """
    files = {
        table.pictures.where(place): (table.pictures, place)
        for table in tables
        for place in range(len(table))
    }
    names, why = [*files], dict[str, str]()
    # Filters of warnings belong to the whole process; Pillow decodes without Python's lock.
    with quiet(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(names), _AT_ONCE):
            if progress is not None:
                progress("checking images", start, len(names))
            some = names[start : start + _AT_ONCE]
            for name, reason in zip(
                some, pool.map(_wrong, map(files.__getitem__, some)), strict=True
            ):
                if reason is not None:
                    why[name] = reason
    for table in tables:
        _refuse(table, why)


def _wrong(picture: tuple[Pictures, int]) -> str | None:
    pictures, place = picture
    try:
        pixels(pictures.read(place), Decoding())
    except OSError as error:
        return f"cannot be read: {_trouble(error)}"
    except ImageError as error:
        return f"cannot be decoded: {error.reason}"
    return None


def _trouble(error: OSError) -> str:
    return error.strerror or str(error)


def _refuse(table: Decoded, why: Mapping[str, str]) -> None:
    lost = [place for place in range(len(table)) if table.pictures.where(place) in why]
    if not lost:
        return
    lost.sort(key=lambda place: int(table.rows[place]))
    told = why[table.pictures.where(lost[0])]
    if len(lost) > 1:
        rows = ", ".join(str(table.rows[place]) for place in lost[1 : 1 + _LISTED])
        rest = f"{rows}, …" if len(lost) > 1 + _LISTED else rows
        told = f"{told}; so it is with {len(lost) - 1} more of {len(table)} images (rows {rest})"
    raise table.refused(lost[0], told)


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
    images = Decoded(pictures, order.astype(np.int64) + 1, config.path)
    return Listed(images, {name: items.columns[name][order] for name in columns}, items)


def _missing(value: str | None) -> bool:
    """Whether a cell holds nothing, or what a table of numbers writes for nothing."""
    return value is None or value.strip().lower() in ("", "nan")


def _beside(table: Any, base: Path) -> Path:
    return table.parent if isinstance(table, Path) else base
