"""Pictures inside tables: data sets of Hugging Face on disk, Parquet with a column of images."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.errors import DataError
from equipoise.core.files import open_regular, read_regular, read_table
from equipoise.data.formats.rows import row_files
from equipoise.evidence.pictures import Pictures, sorted_by_id


@dataclass(frozen=True)
class TableFile:
    """A file as it was when the pictures were looked up: another of its name is another file."""

    path: str
    stamp: tuple[int, int]

    @property
    def mapped(self) -> bool:
        """Whether it is Arrow's own form, as `save_to_disk` writes it."""
        return self.path.endswith(".arrow")


@dataclass(frozen=True)
class Rows:
    """Pictures that are rows of Parquet or Arrow files.

    Attributes
    ----------
    files : tuple of TableFile
    starts : tuple of int
        The number of the first row of each stretch of rows that is read together.
    stretches : tuple of (int, int)
        Where each stretch lies: which file, which group of rows in it.
    column : str
        That holds the images: bytes, or a struct of `bytes` and `path`.
    places : tuple of int
        The row of each picture.
    """

    files: tuple[TableFile, ...] = field(repr=False)
    starts: tuple[int, ...] = field(repr=False)
    stretches: tuple[tuple[int, int], ...] = field(repr=False)
    column: str
    places: tuple[int, ...] = field(repr=False)

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture."""
        row = self.places[place]
        at = bisect_right(self.starts, row) - 1
        number, group = self.stretches[at]
        file = self.files[number]
        try:
            value = _stretch(file, group, self.column)[row - self.starts[at]].as_py()
        except (OSError, pa.ArrowException, IndexError) as error:
            raise OSError(f"row {row} of {file.path} cannot be read: {error}") from error
        return _bytes(value, Path(file.path).parent)

    def where(self, place: int) -> str:
        """Return the file and row of one picture."""
        row = self.places[place]
        at = bisect_right(self.starts, row) - 1
        return f"row {row - self.starts[at]} of {self.files[self.stretches[at][0]].path}"

    def take(self, places: Sequence[int]) -> Rows:
        """Return some of the pictures."""
        taken = tuple(self.places[place] for place in places)
        return Rows(self.files, self.starts, self.stretches, self.column, taken)


def pictures_on_disk(
    folder_or_parquet: Path,
    *,
    image: str = "image",
    id: str | None = None,  # noqa: A002
) -> Pictures:
    """Return the pictures of a data set that lies on disk.

    Parameters
    ----------
    folder_or_parquet : Path
        A folder that `Dataset.save_to_disk` wrote, a Parquet file, or a folder of Parquet files.
    image : str
        The column of images: bytes, or a struct of `bytes` and `path` as Hugging Face's `Image`.
        A path without bytes is read inside the folder.
    id : str, optional
        The column of ids. Without it an id is the number of the row, from 0.

    Raises
    ------
    DataError
        When there is no such data set or column, or ids repeat.
    """
    name = str(folder_or_parquet)
    try:
        files = [_stamped(path) for path in row_files(folder_or_parquet)]
        starts, stretches, n = [], [], 0
        for number, file in enumerate(files):
            _check(file, image, name)
            for group, rows in enumerate(_sizes(file)):
                starts.append(n)
                stretches.append((number, group))
                n += rows
        ids = _ids(files, id, name) or [f"{row:0{len(str(n - 1))}d}" for row in range(n)]
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        told = str(error).partition("\n")[0]
        raise DataError(f"it cannot be read: {told}", file=name) from error
    source = Rows(tuple(files), tuple(starts), tuple(stretches), image, tuple(range(n)))
    return sorted_by_id(name, ids, source, None)


def _stamped(path: Path) -> TableFile:
    with open_regular(path) as file:  # Arrow would wait for a pipe
        found = os.fstat(file.fileno())
    return TableFile(str(path), (found.st_mtime_ns, found.st_size))


def _check(file: TableFile, column: str, name: str) -> None:
    schema = _schema(file)
    if column not in schema.names:
        raise DataError(
            f"there is no such column; there are {', '.join(schema.names)}",
            file=name,
            column=column,
        )
    kind = schema.field(column).type
    if not _holds_images(kind):
        raise DataError(
            f"it holds {kind}",
            file=name,
            column=column,
            expected="images: bytes, or a struct of bytes and path",
        )


def _holds_images(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(kind.field(n).name in ("bytes", "path") for n in range(kind.num_fields))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _schema(file: TableFile) -> pa.Schema:
    return _mapped(file).schema if file.mapped else pq.read_schema(file.path)


@cache
def _mapped(file: TableFile) -> pa.Table:
    # What save_to_disk writes is a stream; mapped, it costs no memory until a row is read.
    return pa.ipc.open_stream(pa.memory_map(file.path)).read_all()


def _sizes(file: TableFile) -> list[int]:
    if file.mapped:
        return [_mapped(file).num_rows]
    metadata = pq.read_metadata(file.path)
    return [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]


@lru_cache(maxsize=2)
def _stretch(file: TableFile, group: int, column: str) -> Any:
    """Return a column of rows that are read together; the last two stay in memory."""
    if file.mapped:
        return _mapped(file)[column]
    table = pq.ParquetFile(file.path, page_checksum_verification=True)
    return table.read_row_group(group, columns=[column])[column]


def _ids(files: Sequence[TableFile], column: str | None, name: str) -> list[str]:
    if column is None:
        return []
    ids = []
    for file in files:
        names = _schema(file).names
        if column not in names:
            raise DataError(
                f"there is no such column; there are {', '.join(names)}", file=name, column=column
            )
        held = _mapped(file) if file.mapped else read_table(Path(file.path), [column])
        ids += ["" if value is None else str(value) for value in held[column].to_pylist()]
    return ids


def _bytes(value: Any, folder: Path) -> bytes:
    if isinstance(value, dict):
        inside, path = value.get("bytes"), value.get("path")
        value = read_regular(folder / path) if inside is None and path else inside
    if value is None:
        raise OSError("the row has no image")
    return bytes(value)
