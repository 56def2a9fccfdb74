"""Pictures: the place of each by id, their pixels, and duplicates."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike

from equipoise.core import (
    AnyArray,
    Booleans,
    Bytes,
    DataError,
    Floats,
    Integers,
    MissingExtraError,
    Objects,
    Strings,
    integers,
    record,
)
from equipoise.core.files import open_regular, read_regular
from equipoise.core.types import Json
from equipoise.data.formats.reading import row_files
from equipoise.data.problems import check_columns, check_ids
from equipoise.data.tables import as_text, open_parquet, read_columns
from equipoise.stats.threads import each

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
        """Return the location of a picture, for messages."""
        ...

    def take(self, places: Sequence[int]) -> Source:
        """Return the source of some pictures, in the order of `places`."""
        ...


@dataclass(frozen=True)
class Files:
    """Pictures that are files of their own."""

    paths: Strings

    def read(self, place: int) -> bytes:
        """Return the bytes of one file; a pipe or a device is refused, not waited for."""
        return read_regular(self.paths[place])

    def where(self, place: int) -> str:
        """Return the path of one file."""
        return self.paths[place]

    def address(self, place: int) -> tuple[str, int | None, str | None]:
        """Return the path of one file, which has neither rows nor columns."""
        return self.paths[place], None, None

    def take(self, places: Sequence[int]) -> Files:
        """Return some of the files."""
        return Files(tuple(self.paths[place] for place in places))

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Places without a file; each path is checked once, and no file is opened."""
        exists = {path: os.path.exists(path) for path in {*self.paths}}  # noqa: PTH110 - a million
        return tuple(place for place, path in enumerate(self.paths) if not exists[path])


@dataclass(frozen=True)
class ByName:
    """Pictures from a function that returns the bytes of a name."""

    picture: Callable[[str], bytes]
    names: Strings

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture."""
        return self.picture(self.names[place])

    def where(self, place: int) -> str:
        """Return the name of one picture."""
        return self.names[place]

    def take(self, places: Sequence[int]) -> ByName:
        """Return some of the pictures."""
        return replace(self, names=tuple(self.names[place] for place in places))


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


@record
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
    ids: Objects
    source: Source
    crops: Integers | None = None
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
        """Return the location of one picture, for messages."""
        return self.source.where(place)

    def crop(self, place: int) -> Integers | None:
        """Return the corners of one picture's crop; None without a crop."""
        return None if self.crops is None else self.crops[place]

    def decoded(self, place: int) -> Bytes:
        """Return the pixels of one picture, cropped and resized for a model.

        Raises
        ------
        OSError
            When the bytes cannot be had.
        ImageError
            When they are no picture.
        """
        return decode(self.read(place), crop=self.crop(place))

    @cached_property
    def places(self) -> dict[str, int]:
        """Place of each image by its id."""
        return {name: place for place, name in enumerate(self.ids.tolist())}

    def take(self, places: Sequence[int]) -> Pictures:
        """Return some of the images, in the order of `places`."""
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
            "the folder doesn't exist",
            file=str(folder),
            fix="give the folder that holds the images",
        )
    paths = sorted(
        Path(directory, file).relative_to(folder).as_posix()
        for directory, _, files in os.walk(folder)
        for file in files
    )
    pictures: list[str] = []
    ids: list[str] = []
    for path in paths:
        if Path(path).suffix.lower() in SUFFIXES and not re.search(r"(^|/)\.", path):
            pictures.append(path)
            # A name that is not UTF-8 is no text that a table can hold.
            name = path.encode("utf-8", "surrogateescape")
            ids.append(name.decode("utf-8", "backslashreplace"))
    if not pictures:
        raise DataError(
            f"no picture among {len(paths)} files",
            file=str(folder),
            expected=f"files that end in {', '.join(sorted(SUFFIXES))}",
            fix="give the folder that holds the images, or name them in a table of paths",
        )
    where = [os.path.join(folder, path) for path in pictures]  # noqa: PTH118 - a million strings
    return sorted_by_id(str(folder), ids, Files(tuple(where)), None, len(paths) - len(pictures))


def pictures_of_table(
    ids: Sequence[str],
    paths: Sequence[str | Path],
    *,
    root: Path,
    name: str,
    crops: ArrayLike | None = None,
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
        or a crop is empty.
    """
    for row, (_, path) in enumerate(zip(ids, paths, strict=True), start=1):
        if not str(path):
            raise DataError("the path of the image is empty", file=name, row=row)
        if ".." in str(path) and Path(os.path.normpath(path)).parts[0] == os.pardir:
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


def _boxes(crops: ArrayLike | None, n: int, name: str) -> Integers | None:
    if crops is None:
        return None
    boxes = integers(crops)
    if boxes.shape != (n, 4):
        raise DataError(
            f"crops of shape {boxes.shape} for {n} images", file=name, expected=f"({n}, 4)"
        )
    wrong = np.flatnonzero((boxes[:, 2:] <= boxes[:, :2]).any(axis=1) | (boxes < 0).any(axis=1))
    if len(wrong):
        raise DataError(
            f"the crop {boxes[wrong[0]].tolist()} holds no pixel",
            file=name,
            row=int(wrong[0]) + 1,
            expected="0 ≤ left < right and 0 ≤ top < bottom",
        )
    return boxes


def sorted_by_id(
    name: str, ids: list[str], source: Source, crops: Integers | None, left_out: int = 0
) -> Pictures:
    """Return the pictures in the order of their ids, after a check that each is there once."""
    if not ids:
        raise DataError("there are no images", file=name)
    check_ids(pl.Series("", ids, dtype=pl.String), name)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    id_array = np.empty(len(ids), dtype=object)
    id_array[:] = ids
    return replace(Pictures(name, id_array, source, crops).take(order), left_out=left_out)


@dataclass(frozen=True)
class TableFile:
    """A file as it was when the pictures were looked up: another of its name is another file."""

    path: str
    stamp: tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """Pictures that are rows of Parquet files.

    Attributes
    ----------
    stretches : tuple of (int, TableFile, int)
        Rows that are read together: the number of the first, their file, the group of rows in it.
    column : str
        That holds the images: bytes, or a struct of `bytes` and `path`.
    places : tuple of int
        The row of each picture.
    """

    stretches: tuple[tuple[int, TableFile, int], ...]
    column: str
    places: tuple[int, ...]

    def read(self, place: int) -> bytes:
        """Return the bytes of one picture."""
        file, group, row = self._found(place)
        try:
            value = _stretch(file, group, self.column)[row].as_py()
        except (OSError, pa.ArrowException, IndexError) as error:
            raise OSError(f"{self.where(place)} cannot be read: {error}") from error
        return _bytes(value, Path(file.path).parent)

    def _found(self, place: int) -> tuple[TableFile, int, int]:
        """Return the file of a picture, the group of rows in it, and the row in the group."""
        row = self.places[place]
        at = bisect_right(self.stretches, row, key=itemgetter(0)) - 1
        first, file, group = self.stretches[at]
        return file, group, row - first

    def where(self, place: int) -> str:
        """Return the file and row of one picture."""
        file, _, row = self._found(place)
        return f"row {row} of {file.path}"

    @cached_property
    def _starts(self) -> dict[TableFile, int]:
        """The number of the first row of each file."""
        return {file: first for first, file, _ in reversed(self.stretches)}

    def address(self, place: int) -> tuple[str, int | None, str | None]:
        """Return the file of one picture, and its row and column there."""
        file, _, _ = self._found(place)
        return file.path, self.places[place] - self._starts[file], self.column

    def take(self, places: Sequence[int]) -> Rows:
        """Return some of the pictures."""
        return replace(self, places=tuple(self.places[place] for place in places))


def pictures_on_disk(
    folder_or_parquet: Path,
    *,
    image: str = "image",
    id: str | None = None,  # noqa: A002
) -> Pictures:
    """Return the pictures of a data set on disk.

    Parameters
    ----------
    folder_or_parquet : Path
        A Parquet file, or a folder of them.
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
    files, named = row_files(folder_or_parquet), [image, *([id] if id else [])]
    ids: list[str] = []
    for file in files:
        with open_parquet(file) as parquet:
            schema = parquet.schema_arrow
            check_columns(schema.names, named, str(file))
            kind = schema.field(image).type
            if not (pa.types.is_struct(kind) or "binary" in str(kind)):
                raise DataError(f"it holds {kind}, no images", file=str(file), column=image)
            if id:
                ids += (
                    as_text(read_columns(parquet, [id], file)[id], str(file), id)
                    .fill_null("")
                    .to_list()
                )
    source = rows_of(files, image)
    n = len(source.places)
    numbers = [f"{row:0{len(str(n - 1))}d}" for row in range(n)]
    return sorted_by_id(name, ids if id else numbers, source, None)


def rows_of(files: Sequence[Path], column: str) -> Rows:
    """Return the pictures in a column of all rows of Parquet files.

    Raises
    ------
    OSError
        When a file cannot be read; pyarrow's errors where it is none of Parquet.
    """
    stretches, n = [], 0
    for path in files:
        with open_regular(path) as opened:  # Arrow would wait for a pipe
            status = os.fstat(opened.fileno())
        file = TableFile(str(path), (status.st_mtime_ns, status.st_size))
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            stretches.append((n, file, group))
            n += metadata.row_group(group).num_rows
    return Rows(tuple(stretches), column, tuple(range(n)))


@lru_cache(maxsize=2)
def _stretch(file: TableFile, group: int, column: str) -> Any:
    """Return a column of rows that are read together; the last two stay in memory."""
    table = pq.ParquetFile(file.path, page_checksum_verification=True)
    return table.read_row_group(group, columns=[column])[column]


def _bytes(value: Any, folder: Path) -> bytes:
    if isinstance(value, dict):
        inside, path = value.get("bytes"), value.get("path")
        value = read_regular(folder / path) if inside is None and path else inside
    if not isinstance(value, bytes):
        raise OSError("the row has no image")
    return value


_LENGTH = 16
_UNREAD = bytes(_LENGTH)


def pack_digests(contents: Sequence[str]) -> bytes:
    """Return SHA-256 digests shortened to 16 bytes each; zeros where there is none."""
    return b"".join(bytes.fromhex(digest)[:_LENGTH] if digest else _UNREAD for digest in contents)


def same_pictures(pictures: Pictures, contents: bytes) -> tuple[Strings, ...]:
    """Return the ids that stand for one picture together, for every picture with several.

    Parameters
    ----------
    pictures : Pictures
        n images.
    contents : bytes
        What `packed` makes of the digests of all of them, in their order.

    Returns
    -------
    tuple of tuples of str
        In the order of ids. Images that could not be read are in none.
    """
    n = len(pictures)
    frame = pl.DataFrame(
        {
            "id": pictures.ids.tolist(),
            "content": [contents[place * _LENGTH : (place + 1) * _LENGTH] for place in range(n)],
            "crop": [""] * n if pictures.crops is None else [*map(str, pictures.crops.tolist())],
        }
    )
    groups = (
        frame.filter(pl.col("content") != _UNREAD)
        .group_by("content", "crop", maintain_order=True)
        .agg("id")
        .filter(pl.col("id").list.len() > 1)
    )
    return tuple(map(tuple, groups["id"].to_list()))


@record
class PictureFacts:
    """Sizes and contents of pictures, from their headers and bytes alone.

    Attributes
    ----------
    sizes : ndarray, shape (n, 2)
        Width and height in pixels of the picture turned upright, or of its crop; NaN where it
        can't be read.
    repeated : ndarray of bool, shape (n,)
        Whether another picture, with the same crop, has the same bytes.
    """

    sizes: Floats
    repeated: Booleans


def check_pillow() -> None:
    """Refuse to open pictures without Pillow.

    Raises
    ------
    MissingExtraError
        When it is not installed.
    """
    if find_spec("PIL") is None:
        raise MissingExtraError("pillow", "images")


def _facts_of(pictures: Pictures, places: Sequence[int]) -> list[tuple[float, float, str]]:
    """Return the width, the height and the SHA-256 of the bytes of some pictures."""
    try:
        import PIL.Image as Pillow
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error

    def read(place: int) -> tuple[float, float, str]:
        try:
            data = pictures.read(place)
            picture = _opened(Pillow, data, Decoding())
            width, height = picture.size
            if _orientation(picture) > 4:
                width, height = height, width
        except Exception:  # noqa: BLE001 - damaged headers make Pillow raise anything
            return math.nan, math.nan, ""
        if pictures.crops is not None:
            x_min, top, right, bottom = pictures.crops[place].tolist()
            width, height = right - x_min, bottom - top
        return width, height, hashlib.sha256(data).hexdigest()

    with quiet():
        return each(read, places)


def picture_sizes(pictures: Pictures, places: Sequence[int]) -> Floats:
    """Return the sizes of some pictures, as `PictureFacts` has them.

    Raises
    ------
    MissingExtraError
        When Pillow is not installed.
    """
    sizes = [size for *size, _ in _facts_of(pictures, places)]
    return np.array(sizes, np.float64).reshape(-1, 2)


def picture_facts(pictures: Pictures) -> PictureFacts:
    """Return the size of each picture, and whether another has the same bytes; none is decoded.

    Raises
    ------
    MissingExtraError
        When Pillow is not installed.
    """
    facts = _facts_of(pictures, range(len(pictures)))
    same = same_pictures(pictures, pack_digests([digest for *_, digest in facts]))
    repeated = {image_id for ids in same for image_id in ids}
    return PictureFacts(
        np.array([size for *size, _ in facts], np.float64).reshape(-1, 2),
        np.array([image_id in repeated for image_id in pictures.ids.tolist()], np.bool_),
    )


Image = Bytes
"""One image: (height, width, 3), sRGB."""

# Formats that hold pixels and nothing to run; Pillow also has some that call other programs.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF")
_ORIENTATION, _PHOTOMETRIC, _WHITE_IS_ZERO = 0x0112, 0x0106, 0


class ImageError(DataError):
    """A picture cannot be decoded; `reason` says why, without naming it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason, fix="repair the file, or leave the image out")


@dataclass(frozen=True)
class Decoding:
    """How pictures become pixels; part of the key of everything made from them.

    Attributes
    ----------
    max_pixels : int
        A picture of more is refused: a few bytes can hold a picture that fills the memory.
    max_ratio : float
        A picture (or crop) whose longer side is more than so many times the shorter is refused:
        a model's preprocessing makes the shorter side a fixed length, and a strip fills the memory.
    background : tuple of int
        What shows through where a picture is transparent: red, green and blue from 0 to 255.
    version : int
        Of the rules: EXIF's orientation is applied; transparency lies over the background; of 12
        or 16 bits the upper 8 count; grey and palettes become colours; CMYK becomes RGB without a
        profile, and is inverted where Adobe's marker says so; the first frame of several; colour
        profiles are not applied.
    """

    max_pixels: int = 89_478_485
    max_ratio: float = 100.0
    background: tuple[int, int, int] = (255, 255, 255)
    version: ClassVar[int] = 2

    @property
    def facts(self) -> dict[str, Json]:
        """Facts for the key and the manifest."""
        return {"version": self.version, **asdict(self), "background": [*self.background]}


def decode(data: bytes, decoding: Decoding = Decoding(), crop: Integers | None = None) -> Image:
    """Return the pixels of a picture.

    Parameters
    ----------
    data : bytes
        A file as it is: JPEG, PNG, GIF, WebP, BMP, TIFF, PNM, JPEG 2000 or AVIF.
    decoding : Decoding
        The rules.
    crop : ndarray of int64, shape (4,), optional
        Left, top, right and bottom of what to cut out, in pixels of the picture turned upright.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)

    Raises
    ------
    ImageError
        When it is no picture, is truncated or damaged, too large, or a strip; or when the crop
        does not lie inside it.
    MissingExtraError
        When Pillow, or for a JPEG simplejpeg, is not installed.
    """
    with quiet():
        return pixels(data, decoding, crop)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow's warnings of odd metadata away: a picture is decoded, or refused aloud.

    Filters of warnings belong to the whole process: enter this around threads, not inside them.
    """
    with warnings.catch_warnings():
        ignore_warnings()
        yield


def ignore_warnings() -> None:
    """Keep Pillow's warnings away from now on, in a process that does nothing else."""
    warnings.filterwarnings("ignore", module=r"PIL\.")


def pixels(data: bytes, decoding: Decoding, crop: Integers | None = None) -> Image:
    """Return the pixels of a picture as `decode` does, for threads inside `quiet`."""
    try:
        import PIL.Image as Pillow
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    if not data:
        raise ImageError("the file is empty")
    try:
        picture = _opened(Pillow, data, decoding)
        levels = _jpeg(data, picture.mode) if picture.format in ("JPEG", "MPO") else None
        if levels is None:
            levels = np.array(_rgb(Pillow, _in_8_bits(Pillow, picture), decoding), dtype=np.uint8)
        return _cut(levels, _orientation(picture), crop, decoding)
    except (ImageError, MissingExtraError):
        raise
    except Pillow.DecompressionBombError:
        raise ImageError(
            f"it has more than {decoding.max_pixels:,} pixels, or more than Pillow allows"
        ) from None
    except MemoryError:
        raise ImageError("the memory does not hold its pixels") from None
    except Exception as error:  # noqa: BLE001 - damaged files make decoders raise anything
        first = str(error).partition("\n")[0]
        raise ImageError(f"it is damaged: {type(error).__name__}: {first}") from None


def _opened(pillow: Any, data: bytes, decoding: Decoding) -> Any:
    pillow.init()
    formats = [name for name in FORMATS if name in pillow.OPEN]
    try:
        picture = pillow.open(io.BytesIO(data), formats=formats)
    except pillow.UnidentifiedImageError:
        raise ImageError(f"it isn't a picture of a known format ({', '.join(FORMATS)})") from None
    width, height = picture.size
    if width * height > decoding.max_pixels:
        raise ImageError(f"it has {width} × {height} pixels, more than {decoding.max_pixels:,}")
    if picture.format == "PNG":
        # Pillow compares the checksums of pixels only when it is told to, and then reads no pixel.
        picture.verify()
        picture = pillow.open(io.BytesIO(data), formats=["PNG"])
    return picture


def _jpeg(data: bytes, mode: str) -> Image | None:
    """Return the stored pixels of a JPEG, or None if Pillow has to read it.

    A decoder fills up what is missing. simplejpeg raises instead, in half of Pillow's time, also
    for data that are left over: bytes were lost or added before, and pixels lie in the wrong place.
    Pillow reads CMYK, and files whose header simplejpeg does not accept: an unknown subsampling or
    revision, half a colour profile, bytes between segments.
    """
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError("simplejpeg", "images") from error
    colours = "CMYK" if mode == "CMYK" else "RGB"
    try:
        try:
            levels: Image = simplejpeg.decode_jpeg(data, colours)
        except ValueError as error:
            if "extraneous" not in str(error):
                raise
            # Zeros between the last pixel and the end; those after FF belong to a pixel.
            end = data.rfind(b"\xff\xd9")
            content = data[:end].rstrip(b"\0")
            stuffed = b"\0" if content.endswith(b"\xff") else b""
            levels = simplejpeg.decode_jpeg(content + stuffed + data[end:], colours)
    except ValueError as error:
        try:
            simplejpeg.decode_jpeg_header(data)
        except ValueError:
            return None
        if "Invalid SOS" in str(error):  # a range that a sequential scan does not use
            return None
        raise
    return None if mode == "CMYK" else levels


def _in_8_bits(pillow: Any, picture: Any) -> Any:
    """Load the pixels of a picture, and return it with 8 bits a colour: of more, the upper 8."""
    if picture.mode == "F" or (picture.mode == "I" and picture.format != "PPM"):
        raise ImageError(
            f"its pixels ({picture.mode}) have no known white; save it with 8 or 16 bits a colour"
        )
    stored = str([tile.args for tile in picture.tile])  # gone once the pixels are loaded
    picture.load()
    key = picture.info.get("transparency")
    if picture.mode.startswith("I"):
        values = integers(picture) << (4 if "I;12" in stored else 0)
        _check_upper_bits(values >> 8)
        opaque = values != (-1 if key is None else key)
        if picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
            # Pillow turns such pictures into black on white only up to 8 bits.
            values = 65_535 - values
        grey = pillow.fromarray((values >> 8).astype(np.uint8))
        grey.putalpha(pillow.fromarray(np.where(opaque, 255, 0).astype(np.uint8)))
        return grey
    if ";16" in stored:
        _check_upper_bits(np.asarray(picture))
        if isinstance(key, tuple):
            # Pillow compares the lower 8 bits of the transparent colour with the upper of pixels.
            picture.info["transparency"] = tuple(value >> 8 for value in key)
    return picture


def _check_upper_bits(levels: AnyArray) -> None:
    if not levels.any():
        raise ImageError(
            "all its values of 16 bits are below 256, so nothing of it would be left; save it "
            "with 8 bits a colour, or scale it to 65,535"
        )


def _rgb(pillow: Any, picture: Any, decoding: Decoding) -> Any:
    if picture.mode == "CMYK" and picture.format == "JPEG" and "adobe" not in picture.info:
        # Pillow takes every CMYK JPEG for one of Adobe's, which are inverted.
        from PIL import ImageChops

        picture = ImageChops.invert(picture)
    if picture.mode == "La":  # Pillow turns it into no other mode
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        below = pillow.new("RGBA", picture.size, (*decoding.background, 255))
        picture = pillow.alpha_composite(below, picture.convert("RGBA"))
    return picture.convert("RGB")


def _orientation(picture: Any) -> int:
    """Return the EXIF orientation, from 1 (upright) to 8."""
    try:
        orientation = int(picture.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 - damaged metadata beside sound pixels
        orientation = 1
    return orientation


def _cut(levels: Image, turn: int, crop: Integers | None, decoding: Decoding) -> Image:
    """Turn pixels upright and cut a crop out of them.

    Raises
    ------
    ImageError
        When the crop does not lie inside, or what is left is a strip.
    """
    packed_pixels = levels.view("V3")[
        ..., 0
    ]  # a pixel as one thing is moved twice as fast as three
    if turn in (5, 6, 7, 8):
        packed_pixels = packed_pixels.T
    if turn in (3, 4, 7, 8):
        packed_pixels = packed_pixels[::-1]
    if turn in (2, 3, 6, 7):
        packed_pixels = packed_pixels[:, ::-1]
    height, width = packed_pixels.shape
    x_min, top, right, bottom = (0, 0, width, height) if crop is None else crop.tolist()
    if not (0 <= x_min < right <= width and 0 <= top < bottom <= height):
        raise ImageError(
            f"the crop from ({x_min}, {top}) to ({right}, {bottom}) isn't inside its "
            f"{width} × {height} pixels"
        )
    sides = (right - x_min, bottom - top)
    if max(sides) > decoding.max_ratio * min(sides):
        raise ImageError(
            f"{sides[0]} × {sides[1]} pixels are a strip: one side is more than "
            f"{decoding.max_ratio:g} times the other"
        )
    if crop is None and turn == 1:
        return levels
    cut = packed_pixels[top:bottom, x_min:right].copy()
    return cut.view(np.uint8).reshape(*cut.shape, 3)
