"""Files of arrays (npy, npz, safetensors), checked in size before reading."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from equipoise.core import AnyArray, DataError, EquipoiseError, Strings
from equipoise.core.files import open_regular
from equipoise.core.types import FileFacts
from equipoise.data.files import hash_file, most_unpacked, too_large, translated
from equipoise.data.problems import listed, show

FORMATS = ".npy, .npz, .safetensors, .parquet, .pq, .csv, .tsv, .jsonl or .ndjson"
EXTENSIONS = (".npy", ".npz", ".safetensors")
_READ_AT_ONCE = 1 << 24
_SUFFIX = ".npy"


@dataclass(frozen=True)
class ArrayFile:
    """A file of arrays: its values are read on demand.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Of the arrays; none in an .npy, which holds a single one.
    digest : mapping
        "sha256" and "bytes".
    """

    path: Path
    names: Strings
    digest: FileFacts

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        """Read the names of the arrays.

        Raises
        ------
        DataError
            When the file is missing, empty, damaged or not what its extension says.
        """
        digest = hash_file(path, FORMATS, "an array with a row per item")
        with opened_arrays(path) as arrays:
            return cls(path, tuple(arrays.names), digest)

    def array(self, name: str | None) -> tuple[str, AnyArray]:
        """Return an array's name in errors, and its values; by default the only matrix.

        That of an .npy, which has no name, is mapped into memory.

        Raises
        ------
        DataError
            When there is no such array, several might be meant, the values are pickled objects,
            of a type that numpy lacks or cut off, or a compressed array unpacks to too much.
        """
        with opened_arrays(self.path) as arrays:
            if self.names and name not in self.names:
                name = self._find_only_table(name, arrays)
        place = f"{self.path}, array {name!r}" if name else str(self.path)
        with opened_arrays(self.path, place) as arrays:
            values = np.asanyarray(arrays.read(name or ""))
        if values.dtype.kind == "V" or not values.dtype.itemsize:
            raise DataError(
                f"the values are of type {values.dtype}, which numpy lacks",
                file=place,
                expected="float16, float32 or float64",
                fix="save them as float32: tensor.float()",
            )
        return place, values

    def _find_only_table(self, name: str | None, arrays: Arrays) -> str:
        """Return the name of the only two-dimensional array."""
        tables = [] if name else [table for table in self.names if len(arrays.shape(table)) == 2]
        if len(tables) != 1:
            raise DataError(
                f"the file holds {listed(self.names) or 'no arrays'}",
                file=str(self.path),
                expected=f"an array {show(name)}" if name else "one array with a row per item",
                fix="give `array:` with the name of a two-dimensional array",
            )
        return tables[0]


@dataclass(frozen=True)
class Arrays:
    """The arrays of an open file.

    Attributes
    ----------
    names : iterable of str
    shape, read : callable
        From a name to the shape of the array, which takes no memory, or to its values.
    """

    names: Iterable[str]
    shape: Callable[[str], tuple[int, ...]]
    read: Callable[[str], AnyArray]


@contextmanager
def opened_arrays(path: Path, place: str | None = None) -> Iterator[Arrays]:
    """Open a file of arrays; any error inside the block becomes a DataError.

    Parameters
    ----------
    path : Path
        .npy, .npz, or else safetensors.
    place : str, optional
        Name of the file in errors.

    Raises
    ------
    DataError
        When the file is damaged or holds no plain array.
    """
    extension = path.suffix.lower()
    with _translate_errors(path, place), ExitStack() as stack:
        if extension == ".npy":
            # A map of more than the file has is refused.
            stack.enter_context(open_regular(path))
            mapped = np.lib.format.open_memmap(path, mode="r")
            yield Arrays((), lambda _: mapped.shape, lambda _: mapped)
        elif extension == ".npz":
            members = Members(stack.enter_context(zipfile.ZipFile(path)))
            yield Arrays(members.names, lambda name: members.header(name).shape, members.read)
        else:
            from safetensors import safe_open

            # The file holds the values uncompressed: reading them takes no more than its size.
            tensors = stack.enter_context(safe_open(path, framework="numpy"))
            yield Arrays(
                tensors.keys(),
                lambda name: tuple(tensors.get_slice(name).get_shape()),
                tensors.get_tensor,
            )


def read_arrays(path: Path) -> dict[str, AnyArray]:
    """Return every array of an .npz or a safetensors file by name.

    Raises
    ------
    DataError
        When the file cannot be read, is damaged, or a compressed array unpacks to too much.
    """
    with opened_arrays(path) as arrays:
        return {name: arrays.read(name) for name in arrays.names}


@contextmanager
def opened_members(path: Path) -> Iterator[Members]:
    """Open an .npz to read large arrays of it piece by piece.

    Raises
    ------
    DataError
        As `opened_arrays`.
    """
    with (
        _translate_errors(path, None),
        translated(path, ".npz"),
        open_regular(path) as file,
        zipfile.ZipFile(file) as archive,
    ):
        yield Members(archive)


@contextmanager
def _translate_errors(path: Path, place: str | None) -> Iterator[None]:
    try:
        yield
    except EquipoiseError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged files raise errors of any kind
        raise DataError(
            f"the file is truncated, damaged or holds no plain array ({error})",
            file=place or str(path),
            expected="a whole file of numbers; pickled objects are never read",
            fix="write or copy it again: np.asarray(values, np.float32), or dtype=str for ids",
        ) from None


@dataclass(frozen=True)
class Header:
    """The declared shape and type of an array in an .npz.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    columns_first : bool
        Whether the values are stored column by column.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns_first: bool

    @property
    def size(self) -> int:
        """Bytes of the values."""
        return prod(self.shape) * self.dtype.itemsize


class Members:
    """The arrays of an open .npz, with checks of their declared sizes.

    Parameters
    ----------
    archive : zipfile.ZipFile
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        names = (member.filename for member in archive.infolist())
        self.names = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]

    def header(self, name: str) -> Header:
        """Return the shape and type of an array."""
        with self._open_member(name) as (header, _):
            return header

    def read(self, name: str) -> AnyArray:
        """Return an array, within a bound on the memory for unpacking.

        Raises
        ------
        DataError
            When a compressed array is larger than the bound.
        """
        member = self._find_member(name)
        with self._open_member(name) as (header, stream):
            packed = member.compress_size
            if member.compress_type != zipfile.ZIP_STORED and header.size > most_unpacked(packed):
                fix = "save it without compression if the file is yours: np.save or np.savez"
                file = str(self._archive.filename)
                raise too_large(header.size, packed, f"{file}, array {name!r}", None, fix)
            values = np.empty(prod(header.shape), header.dtype)
            _fill(stream, values)
            _read_to_end(stream)
        if header.columns_first:
            return values.reshape(header.shape[::-1]).T
        return values.reshape(header.shape)

    def rows(self, name: str, rows: int) -> Iterator[AnyArray]:
        """Yield an array a few rows at a time; its checksum is compared at the end.

        Parameters
        ----------
        name : str
        rows : int
            How many at once.
        """
        with self._open_member(name) as (header, stream):
            if header.columns_first or not header.shape:
                raise ValueError(f"{show(name)} isn't stored row by row")
            for start in range(0, header.shape[0], rows):
                shape = (min(rows, header.shape[0] - start), *header.shape[1:])
                values = np.empty(shape, header.dtype)
                _fill(stream, values)
                yield values
            _read_to_end(stream)

    def _find_member(self, name: str) -> zipfile.ZipInfo:
        member = self._archive.getinfo(f"{name}{_SUFFIX}")
        # Others, which numpy does not write, may ask for much memory to unpack the first byte.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError(f"it is compressed by the method {member.compress_type}")
        return member

    @contextmanager
    def _open_member(self, name: str) -> Iterator[tuple[Header, IO[bytes]]]:
        member = self._find_member(name)
        with self._archive.open(member) as stream:
            header = _read_header(stream)
            # The stream ends where the zip says that the member does.
            if header.size != member.file_size - stream.tell():
                raise ValueError(
                    f"{show(name)} declares {header.size:,} bytes and has "
                    f"{member.file_size - stream.tell():,}"
                )
            yield header, stream


def _read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    # Of later versions only the names of fields differ, which plain numbers and texts lack.
    read = np.lib.format.read_array_header_1_0
    shape, columns_first, dtype = (
        read(stream) if version == (1, 0) else np.lib.format.read_array_header_2_0(stream)
    )
    if dtype.hasobject:
        raise ValueError("it holds pickled objects")
    if not all(0 <= size <= np.iinfo(np.int64).max for size in shape):
        raise ValueError(f"its shape is {shape}")
    return Header(shape, dtype, columns_first)


def _fill(stream: IO[bytes], values: AnyArray) -> None:
    """Read as many bytes as an array takes, a few MiB at a time."""
    if not values.nbytes:
        return
    space, n_read = values.reshape(-1).view(np.uint8), 0
    while n_read < len(space):
        read = stream.read(min(len(space) - n_read, _READ_AT_ONCE))
        if not read:
            raise EOFError(f"{len(space) - n_read:,} bytes are missing")
        space[n_read : n_read + len(read)] = np.frombuffer(read, np.uint8)
        n_read += len(read)


def _read_to_end(stream: IO[bytes]) -> None:
    """Read to the end, where a zip compares the checksum."""
    if stream.read(1):
        raise ValueError("more bytes follow the array")
