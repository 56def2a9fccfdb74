"""Where the pictures of a set lie: in files, or in rows of a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.core.files import read_regular

Objects = npt.NDArray[np.object_]
Boxes = npt.NDArray[np.int64]

SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".gif", ".webp", ".avif", ".bmp"),
        *(".dib", ".tif", ".tiff", ".pbm", ".pgm", ".ppm", ".pnm", ".jp2", ".j2k"),
    }
)


class Source(Protocol):
    """Where the bytes of pictures come from."""

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture; raises OSError where they cannot be had."""
        ...

    def where(self, place: int) -> str:
        """Return where a picture lies, for messages."""
        ...

    def take(self, places: Sequence[int]) -> Source:
        """Return the source of some of the pictures, in the order given."""
        ...


@dataclass(frozen=True)
class Files:
    """Pictures that are files of their own."""

    paths: tuple[str, ...] = field(repr=False)

    def read(self, place: int) -> bytes:
        """Return the bytes of one file; a pipe or a device is refused, not waited for."""
        return read_regular(self.paths[place])

    def where(self, place: int) -> str:
        """Return the path of one file."""
        return self.paths[place]

    def take(self, places: Sequence[int]) -> Files:
        """Return some of the files."""
        return Files(tuple(self.paths[place] for place in places))

    @cached_property
    def gone(self) -> tuple[int, ...]:
        """Places whose file is not there; each file is looked for once, and none is opened."""
        there = {path: os.path.exists(path) for path in {*self.paths}}  # noqa: PTH110 - a million
        return tuple(place for place, path in enumerate(self.paths) if not there[path])


@dataclass(frozen=True)
class NotMade:
    """Pictures that a plan only counts."""

    def read(self, place: int) -> bytes:
        """Raise OSError: there are no bytes yet."""
        raise OSError(f"picture {place} is not made yet")

    def where(self, place: int) -> str:
        """Return which picture it is."""
        return f"picture {place}, not made yet"

    def take(self, places: Sequence[int]) -> NotMade:  # noqa: ARG002 - none of them is there
        """Return the same: none of them is there."""
        return self


@dataclass(frozen=True, eq=False)
class Pictures:
    """Where the pixels of n images are.

    Attributes
    ----------
    name : str
        The set as given, for messages.
    ids : ndarray of str objects, shape (n,)
        Each once, sorted as text.
    source : Source
        Where the bytes come from, in the order of `ids`.
    crops : ndarray of int64, shape (n, 4), or None
        Left, top, right and bottom of what is cut out of each, in pixels of the picture turned
        upright.
    left_out : int
        Files of the folder that are not named like pictures.
    """

    name: str
    ids: Objects = field(repr=False)
    source: Source = field(repr=False)
    crops: Boxes | None = field(default=None, repr=False)
    left_out: int = 0

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.ids)

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture.

        Raises
        ------
        OSError
            When they cannot be had.
        """
        return self.source.read(place)

    def where(self, place: int) -> str:
        """Return where one picture lies, for messages."""
        return self.source.where(place)

    def take(self, places: Sequence[int]) -> Pictures:
        """Return some of the images, in the order given."""
        return Pictures(
            self.name,
            self.ids[list(places)],
            self.source.take(places),
            None if self.crops is None else self.crops[list(places)],
        )


def pictures_in_folder(folder: Path) -> Pictures:
    """Return the pictures of a folder and the folders inside it.

    An id is the path inside the folder, with slashes. Files that are not named like a picture,
    and hidden ones, are left out and counted.

    Raises
    ------
    DataError
        When there is no such folder, or no picture in it.
    """
    if not folder.is_dir():
        raise DataError(
            "there is no such folder", file=str(folder), fix="give the folder that holds the images"
        )
    paths = sorted(_files_below(folder))
    kept = [path for path in paths if _is_picture(path)]
    if not kept:
        raise DataError(
            f"no picture among {len(paths)} files",
            file=str(folder),
            expected=f"files that end in {', '.join(sorted(SUFFIXES))}",
            fix="give the folder that holds the images, or name them in a table of paths",
        )
    ids = [_text(path) for path in kept]
    where = [os.path.join(folder, path) for path in kept]  # noqa: PTH118 - a million strings
    return sorted_by_id(str(folder), ids, Files(tuple(where)), None, len(paths) - len(kept))


def _files_below(folder: Path) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders.sort()
        inside = os.path.relpath(here, folder)
        yield from (
            file if inside == "." else f"{Path(inside).as_posix()}/{file}" for file in files
        )


def _is_picture(path: str) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    return not hidden and Path(path).suffix.lower() in SUFFIXES


def _text(path: str) -> str:
    # A name that is not UTF-8 is no text that a table can hold.
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def pictures_of_table(
    ids: Sequence[str],
    paths: Sequence[str | Path],
    *,
    root: Path,
    name: str,
    crops: npt.ArrayLike | None = None,
    column: str | None = None,
) -> Pictures:
    """Return the pictures that a table names.

    Parameters
    ----------
    ids : sequence of n str
        One for each image.
    paths : sequence of n str or Path
        Where it lies, inside `root` or absolute. Two images may share a file.
    root : Path
        The folder that the paths start from.
    name : str
        The table as given, for messages.
    crops : array-like of int, shape (n, 4), optional
        Left, top, right and bottom in pixels.
    column : str, optional
        Of the paths, for messages.

    Raises
    ------
    DataError
        When ids repeat or are empty, a path is empty or leaves `root`,
        the lengths differ, or a crop is empty.
    """
    if len(ids) != len(paths):
        raise DataError(f"{len(ids)} ids and {len(paths)} paths", file=name, expected="as many")
    for row, path in enumerate(paths, start=1):
        if not str(path):
            raise DataError("the path of the image is empty", file=name, row=row)
        if ".." in str(path) and _leaves(str(path)):
            raise DataError(
                f"the path {str(path)!r} leaves the folder {str(root)!r}",
                file=name,
                column=column,
                row=row,
                expected="a path inside the folder, or an absolute one",
                fix="give the folder that holds all of the images as 'root', or absolute paths",
            )
    where = tuple(os.path.join(root, path) for path in paths)  # noqa: PTH118 - a million strings
    return sorted_by_id(name, list(ids), Files(where), _boxes(crops, len(ids), name))


def _leaves(path: str) -> bool:
    inside = os.path.normpath(path)
    return Path(inside).parts[:1] == (os.pardir,)


def _boxes(crops: npt.ArrayLike | None, n: int, name: str) -> Boxes | None:
    if crops is None:
        return None
    boxes = np.asarray(crops, dtype=np.int64)
    if boxes.shape != (n, 4):
        raise DataError(
            f"crops of shape {boxes.shape} for {n} images", file=name, expected=f"({n}, 4)"
        )
    wrong = np.flatnonzero(
        (boxes[:, 2] <= boxes[:, 0]) | (boxes[:, 3] <= boxes[:, 1]) | (boxes[:, :2].min(axis=1) < 0)
    )
    if len(wrong):
        raise DataError(
            f"the crop {boxes[wrong[0]].tolist()} holds no pixel",
            file=name,
            row=int(wrong[0]) + 1,
            expected="0 ≤ left < right and 0 ≤ top < bottom",
        )
    return boxes


def sorted_by_id(
    name: str, ids: list[str], source: Source, crops: Boxes | None, left_out: int = 0
) -> Pictures:
    """Return the pictures in the order of their ids, after a check that each is there once."""
    if not ids:
        raise DataError("there are no images", file=name)
    for row, text in enumerate(ids, start=1):
        if not text:
            raise DataError("the id is empty", file=name, row=row)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for before, after in pairwise(order):
        if ids[before] == ids[after]:
            rows = sorted((before + 1, after + 1))
            raise DataError(
                f"the id {ids[after]!r} stands in rows {rows[0]} and {rows[1]}",
                file=name,
                expected="each image once",
                fix="give each image an id of its own",
            )
    whole = np.empty(len(ids), dtype=object)
    whole[:] = ids
    pictures = Pictures(name, whole, source, crops, left_out)
    if order == list(range(len(ids))):
        return pictures
    return Pictures(name, *_taken(pictures, order), left_out=left_out)


def _taken(pictures: Pictures, order: list[int]) -> tuple[Any, Any, Any]:
    taken = pictures.take(order)
    return taken.ids, taken.source, taken.crops
