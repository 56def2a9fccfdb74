"""Which file is whose: by format, also where rules renamed images, left some out or cut some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl

from equipoise.audits.config_arrays import located
from equipoise.audits.pictures.config import CORNERS
from equipoise.audits.pictures.where import ByStem, Corners, InFolder, InRows, Where
from equipoise.core.errors import DataError
from equipoise.data import FORMATS, DataFormat, ImageSet, RowPictures, find_format, read_table

if TYPE_CHECKING:
    from equipoise.audits.pictures.config import PicturesConfig
    from equipoise.evidence import Pictures

_ROW = "\x1frow"


@dataclass(frozen=True, eq=False)
class Located:
    """Images, and where their files are.

    Attributes
    ----------
    ids, keys : sequence of str or None
        What each image is called, and what names its file.
    corners : ndarray of int64, shape (images, 4), or None
        What is cut out of each.
    where : Where
    name : str
        The images as given, for errors.
    """

    ids: Sequence[str] = field(repr=False)
    keys: Sequence[str | None] = field(repr=False)
    corners: Corners | None = field(repr=False)
    where: Where
    name: str

    def pictures(self) -> Pictures:
        """Return where the pixels are.

        Raises
        ------
        DataError
            When an image has no path, or the folder is not there.
        """
        keys = [key for key in self.keys if key is not None]
        if len(keys) < len(self.keys):
            row = [*self.keys].index(None)
            raise DataError(
                f"the image {self.ids[row]!r} has no path",
                file=self.name,
                expected="the path of a file for each image",
                fix="fill it in, or leave the image out",
            )
        return self.where.pictures(self.ids, keys, self.corners)


def keys_of(given: PicturesConfig, images: ImageSet) -> dict[str, str | None]:
    """Return what names the file of each image that was read, by its id.

    Raises
    ------
    InputError
        When there is no column of that path.
    DataError
        When two addresses would be one file.
    """
    chosen = FORMATS.get(given.format or "")
    column = given.path or (chosen.file_column if chosen else "")
    keys: list[str | None] = images.ids.tolist()
    if given.path or column in images.columns:
        keys = images.column(str(column)).values.tolist()
    if chosen and chosen.file_names == "addresses" and not given.path:
        keys = _last_parts(keys, images.name)
    return dict(zip(images.ids.tolist(), keys, strict=True))


def _read_as(given: PicturesConfig, images: ImageSet) -> list[str]:
    """Return the id that each image was read with, before rules renamed it or cut it out."""
    cut = given.crop is not None and given.crop.labels
    renamed = any(rule.rule == "ids_from" for rule in given.rules)
    column = "original_id" if renamed else "image" if cut else None
    ids = images.ids if column is None else images.column(column).values
    return [str(one) for one in ids]


def _last_parts(addresses: Sequence[str | None], name: str) -> list[str | None]:
    """Return the names that addresses give to files."""
    owner: dict[str, str] = {}
    found = [unquote(urlsplit(one or "").path.rsplit("/", 1)[-1]) for one in addresses]
    for address, last in zip(addresses, found, strict=True):
        if owner.setdefault(last, address or "") != address:
            raise DataError(
                f"{owner[last]!r} and {address!r} both end in {last!r}",
                file=name,
                expected="addresses whose last parts name the files",
                fix="make a table with a column of files, and name it under 'path'",
            )
    return [*found]


def located_of_set(
    given: PicturesConfig, images: ImageSet, keys: Mapping[str, str | None], base: Path
) -> Located | None:
    """Return where the files of a set are; None where the configuration does not say it.

    Parameters
    ----------
    keys : mapping of str to str
        What names the file of each image that was read, by the id that it was read with.
    """
    where = _where(given, images, base)
    if where is None:
        return None
    corners = None
    if given.crop is not None:
        names = given.crop.columns or CORNERS
        texts = [images.column(name).values.tolist() for name in names]
        corners = _corners(texts, names, images.name)
    named = [keys[one] for one in _read_as(given, images)]
    return Located(images.ids.tolist(), named, corners, where, images.name)


def located_of_table(given: PicturesConfig, base: Path) -> Located | None:
    """Return where the files of a table are; None where no column has paths.

    Rows of one image, in a table that has several, have one path.

    Raises
    ------
    DataError
        When the table cannot be read, or rows of one image differ.
    """
    if given.path is None or given.id is None:
        return None
    names = given.crop.columns if given.crop else ()
    table = read_table(
        located(given.table, base), texts=(given.id, given.path, *names), role="images",
        encoding=given.encoding, delimiter=given.delimiter,
    )  # fmt: skip
    frame = pl.DataFrame(
        [table.texts[one] for one in dict.fromkeys((given.id, given.path, *names))]
    )
    first = frame.unique(subset=given.id, keep="first", maintain_order=True)
    if frame.n_unique() > len(first):
        raise _several_files(frame, given.id, given.path, table.name)
    keys = first[given.path].to_list()
    cells = [first[name].to_list() for name in names]
    corners = _corners(cells, names, table.name) if names else None
    missing = {"", *given.missing}
    return Located(
        first[given.id].to_list(),
        [None if key in missing else key for key in keys],
        corners,
        InFolder(base / (given.root or ""), table.name),
        table.name,
    )


def _several_files(frame: pl.DataFrame, name: str, path: str, file: str) -> DataError:
    """Return the error of the first two rows of one image that differ in its file or crop."""
    rows = frame.with_row_index(_ROW).unique(
        subset=frame.columns, keep="first", maintain_order=True
    )
    second = rows.filter(~rows[name].is_first_distinct()).row(0, named=True)
    first = rows.filter(rows[name].eq_missing(second[name])).row(0, named=True)
    return DataError(
        f"rows {first[_ROW] + 1} and {second[_ROW] + 1} are of one image and differ in its file",
        file=file,
        column=path,
        expected="one path for each image",
        fix="correct one of them, or give the rows different ids",
    )


def _corners(texts: Sequence[Sequence[str | None]], names: Sequence[str], file: str) -> Corners:
    found = np.empty((len(texts[0]), len(names)), dtype=np.int64)
    for place, (name, cells) in enumerate(zip(names, texts, strict=True)):
        for row, cell in enumerate(cells):
            try:
                found[row, place] = int(cell or "")
            except ValueError:
                raise DataError(
                    f"the cell is {cell!r}" if cell else "the cell is empty",
                    file=file,
                    column=name,
                    row=row + 1,
                    expected="a whole number of pixels",
                    fix="round it, or leave the image out",
                ) from None
    return found


def _where(given: PicturesConfig, images: ImageSet, base: Path) -> Where | None:
    root = None if given.root is None else base / given.root
    if given.folder is not None:
        return InFolder(base / given.folder, images.name)
    if given.table is not None:
        return InFolder(root or base, images.name) if given.path else None
    chosen, options = format_of(given)
    if chosen.rows is not None:
        path = base / given.files
        rows = chosen.rows(path, **options)
        if rows is not None:
            return InRows(partial(_row_pictures, path, rows))
    if root is None:
        return None
    by_stem = chosen.file_names == "stems" and not given.path
    return ByStem(root, images.name) if by_stem else InFolder(root, images.name)


def format_of(given: PicturesConfig) -> tuple[DataFormat, dict[str, Any]]:
    """Return the format of a section, and the options to read it with."""
    chosen = find_format(given.format or "")
    named = {} if given.id is None else {"id": given.id}
    return chosen, chosen.checked(given.options or {}) | named


def _row_pictures(path: Path, rows: RowPictures) -> tuple[Pictures, Sequence[str]]:
    """Return pictures that lie in rows, and the ids of their images."""
    from equipoise.evidence import pictures_on_disk

    pictures = pictures_on_disk(path, image=rows.image, id=rows.id)
    ids = pictures.ids.tolist()
    # Without a column of ids the pictures are called by the numbers of their rows.
    if rows.names is None:
        return pictures, ids
    names = rows.names()
    return pictures, [names[int(row)] for row in ids]
