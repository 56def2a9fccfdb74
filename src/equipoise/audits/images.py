"""The images of a config: their table, labels, and where the pictures are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.audits.config_fields import located
from equipoise.core.errors import ConfigError, DataError
from equipoise.data import ItemSource, read_table

if TYPE_CHECKING:
    from equipoise.audits.config_images import PicturesConfig
    from equipoise.data.tables import NamedFrame
    from equipoise.evidence import Pictures

Corners = npt.NDArray[np.int64]
Find = Callable[[Sequence[str], Sequence[str], Corners | None], "Pictures"]
"""Finds pictures by their ids, by what names their files, and what is cut out of them."""

ID = "image_id"
"""Column of the ids of a set; its labels have it, too."""

_ROW = "\x1frow"


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the images of an audit.

    Attributes
    ----------
    section : PicturesConfig
    table : NamedFrame or None
        One row per image under the rules; None where the section's own table is read as it is.
    id : str
        Column of the table that names the image.
    labels : polars.DataFrame or None
        One row per image and label, with the columns `image_id` and `label`.
    inputs : mapping
        Per file of annotations: "sha256", "bytes", "rows"; none for a table without rules, which
        the kind reads itself.
    counts : mapping
        "format", "images", "read", and "steps": what each rule did to how many.
    steps : tuple of str
        The rules and what they left out, in words.
    locate : callable or None
        Returns the pictures; None where the config doesn't say where they are.
    """

    section: PicturesConfig
    table: NamedFrame | None = field(default=None, repr=False)
    id: str = ""
    labels: pl.DataFrame | None = field(default=None, repr=False)
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = ()
    locate: Callable[[], Pictures] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """How errors call the images: their files, and the section that names them."""
        return "" if self.table is None else self.table.name

    @cached_property
    def pictures(self) -> Pictures | None:
        """Where the pixels are; None where the config doesn't say it.

        Raises
        ------
        DataError
            When there is no such folder, or a column has no path.
        """
        return None if self.locate is None else self.locate()

    def source(self, base: Path, columns: Sequence[str] = ()) -> ItemSource:
        """Return the table of the images, with paths relative to `base`."""
        if self.table is None:
            return self.section.source(base, tuple(columns))
        return ItemSource(self.table, self.id, tuple(columns), missing=())

    def need_pictures(
        self, model: str, *, place: str = "data.images", why: str | None = None
    ) -> Pictures:
        """Return where the pixels are that a model runs on.

        Parameters
        ----------
        model : str
        place : str
            The section's place in the config.
        why : str, optional
            The key that needs pictures; that of the model unless given.

        Raises
        ------
        ConfigError
            When the config does not say where the files are.
        """
        if self.pictures is None:
            raise ConfigError(
                f"{place}: {why or f'models.{model}.model'} runs on the pictures, and nothing says "
                "where they are. To do: name the folder of the files under 'root', or for a table "
                "the column of files under 'path'"
            )
        return self.pictures


def known(
    section: PicturesConfig, base: Path, *, columns: Sequence[str] = (), place: str = "data.images"
) -> Known:
    """Read what is known of some images, and apply the rules.

    Parameters
    ----------
    section : PicturesConfig
    base : Path
        What relative paths are relative to.
    columns : sequence of str
        Columns that the audit needs; those that neither the data nor a rule has are an error.
    place : str
        The section's place in the configuration, for errors.

    Raises
    ------
    ConfigError
        When a rule does not fit the data, or there is no such column; it names the place.
    DataError
        When a file cannot be read; it names the file, column and row.
    """
    if section.is_plain:
        return Known(section, locate=_locate_table(section, base))
    from equipoise.audits.image_sets import read_set

    return read_set(section, base, tuple(columns), place)


def labels_of(images: Known, *, place: str = "data.labels") -> pl.DataFrame:
    """Return the labels of a data set, one row per image and label.

    Raises
    ------
    ConfigError
        When the data set has none.
    """
    if images.labels is None:
        raise ConfigError(
            f"{place}: required, and missing: {images.counts.get('format', 'a table')} has no "
            "labels"
        )
    return images.labels


def _locate_table(section: PicturesConfig, base: Path) -> Callable[[], Pictures] | None:
    """Return where the files of a table are; None where no column has paths.

    Rows of one image, in a table that has several, have one path.

    Raises
    ------
    DataError
        When the table cannot be read, or rows of one image differ.
    """
    if section.path is None or section.id is None:
        return None
    names = section.crop.columns if section.crop else ()
    table = read_table(
        located(section.table, base), texts=(section.id, section.path, *names), role="images",
        encoding=section.encoding, delimiter=section.delimiter,
    )  # fmt: skip
    wanted = dict.fromkeys((section.id, section.path, *names))
    frame = pl.DataFrame([table.texts[name] for name in wanted])
    first = frame.unique(subset=section.id, keep="first", maintain_order=True)
    if frame.n_unique() > len(first):
        raise _several_files(frame, section.id, section.path, table.name)
    missing = {"", *section.missing}
    keys = [None if key in missing else key for key in first[section.path].to_list()]
    cells = [first[name].to_list() for name in names]
    corners = corners_of(cells, names, table.name) if names else None
    ids, root = first[section.id].to_list(), base / (section.root or "")
    return lambda: find_all(find_in_folder(root, table.name), ids, keys, corners, table.name)


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


def corners_of(cells: Sequence[Sequence[str | None]], names: Sequence[str], file: str) -> Corners:
    """Return corners in whole pixels, shape (images, 4).

    Raises
    ------
    DataError
        When a cell is no whole number.
    """
    corners = np.empty((len(cells[0]), len(names)), dtype=np.int64)
    for place, (name, column) in enumerate(zip(names, cells, strict=True)):
        for row, cell in enumerate(column):
            try:
                corners[row, place] = int(cell or "")
            except ValueError:
                raise DataError(
                    f"the cell is {cell!r}" if cell else "the cell is empty",
                    file=file,
                    column=name,
                    row=row + 1,
                    expected="a whole number of pixels",
                    fix="round it, or leave the image out",
                ) from None
    return corners


def find_all(
    find: Find,
    ids: Sequence[str],
    keys: Sequence[str | None],
    corners: Corners | None,
    name: str,
) -> Pictures:
    """Return the pictures of some ids.

    Raises
    ------
    DataError
        When an image has no path, or the folder is not there.
    """
    paths = [key for key in keys if key is not None]
    if len(paths) < len(keys):
        raise DataError(
            f"the image {ids[[*keys].index(None)]!r} has no path",
            file=name,
            expected="the path of a file for each image",
            fix="fill it in, or leave the image out",
        )
    return find(ids, paths, corners)


def find_in_folder(root: Path, name: str) -> Find:
    """Return the function that finds files by their paths in a folder."""

    def find(ids: Sequence[str], paths: Sequence[str], corners: Corners | None) -> Pictures:
        from equipoise.evidence import pictures_of_table

        check_folder(root)
        return pictures_of_table(ids, paths, root=root, name=name, crops=corners)

    return find


def check_folder(root: Path) -> None:
    """Refuse a folder of images that isn't there.

    Raises
    ------
    DataError
    """
    if not root.is_dir():
        raise DataError(
            "there is no such folder",
            file=str(root),
            expected="the folder of the images (`root`)",
            fix="correct the path; it is relative to the configuration",
        )
