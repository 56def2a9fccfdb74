"""Where arrays are: the source as given, and .npy, .npz and .safetensors mapped into memory."""

from __future__ import annotations

import json
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError, InputError
from equipoise.data.files import hash_file, translated
from equipoise.data.problems import listed, nearest, show


@dataclass(frozen=True, eq=False)
class ArraySource:
    """A matrix with one row per item: embeddings, scores, or labels 0 and 1.

    Attributes
    ----------
    file : path, array or data frame
        .npy, .npz, .safetensors, .parquet (.pq) or .csv (.tsv); or a two-dimensional array; or
        any data frame.
    array : str or None
        Name of the array in an .npz or .safetensors; None: the only two-dimensional one.
    ids : str, path, sequence of ids, or None
        Ids of the rows: the name of an array in the same .npz or .safetensors; or a file of ids
        (.txt with one a line; .csv or .parquet with a column `id`; .npy); or the ids.
        None with `id` None: rows follow the table of items.
    id : str or None
        Column of the ids in a Parquet, CSV or data frame.
    column : str or None
        Column whose cells are vectors (lists of floats), for embeddings.
    columns : mapping of str to str, tuple of str, or None
        Columns to use; a mapping gives them names. For arrays: a name out of `names`, or the
        number of the column from 0, as text. None: every column of numbers.
    names : tuple of str
        Names of all columns of an array without names.
    missing : tuple of str
        Texts that mean "missing" in a CSV, beside the empty cell. They do not apply to ids.
    encoding, delimiter : str
        Of a CSV, and of the file of ids.

    Raises
    ------
    InputError
        When two options contradict each other, or a name repeats.
    """

    file: Path | Any
    array: str | None = None
    ids: str | Path | Sequence[Any] | Any | None = None
    id: str | None = None
    column: str | None = None
    columns: Mapping[str, str] | tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.id is not None and self.ids is not None:
            raise InputError("id and ids both say where the ids are; give one of them")
        if self.column is not None and self.columns is not None:
            raise InputError("column names one column of vectors, columns many; give one of them")
        for option in ("names", "columns"):
            given = [*(getattr(self, option) or ())]
            twice = sorted({name for name in given if given.count(name) > 1})
            if twice:
                raise InputError(f"{option} has {listed(twice)} more than once")

    @property
    def chosen(self) -> Mapping[str, str] | None:
        """Name to column, or None where every column is used."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return self.columns
        return {name: name for name in self.columns}


FORMATS = ".npy, .npz, .safetensors, .parquet, .pq, .csv or .tsv"
EXTENSIONS = (".npy", ".npz", ".safetensors")
# Bytes that a compressed array may have in memory; other arrays are mapped and may have any size.
MOST_UNPACKED = 1 << 32
# What a damaged zip raises; RuntimeError is also what it raises where it is encrypted.
_DAMAGED: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OSError,
)
_TENSORS = {"BOOL": "?", "U8": "u1", "I8": "i1"} | {
    f"{kind}{bits}": f"<{kind.lower()}{bits // 8}" for kind in "IUF" for bits in (16, 32, 64)
}
"""Type of numpy by the name of safetensors."""


@dataclass(frozen=True)
class Header:
    """What a file says of one of its arrays.

    Attributes
    ----------
    kind : str
        Type of the values, in the words of the file.
    shape : tuple of int
    dtype : numpy.dtype or None
        None where numpy has no such type.
    fortran : bool
        Whether columns are contiguous.
    start : int
        Byte of the file where the values start; -1 where they are compressed.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None
    fortran: bool = False
    start: int = -1

    @property
    def size(self) -> int:
        """Bytes of the values."""
        return math.prod(self.shape) * (self.dtype.itemsize if self.dtype else 0)


@dataclass(frozen=True)
class ArrayFile:
    """A file of arrays: its headers are read, its values are not.

    Attributes
    ----------
    path : Path
    headers : mapping of str to Header
        By name; the one array of an .npy is called "".
    digest : mapping
        "sha256" and "bytes".
    """

    path: Path
    headers: Mapping[str, Header]
    digest: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        """Read the headers.

        Raises
        ------
        DataError
            When the file is missing, empty, damaged or not what its extension says.
        """
        digest = hash_file(path, FORMATS, "an array with a row per item")
        readers = {".npy": _npy_headers, ".npz": _npz_headers, ".safetensors": _tensor_headers}
        with translated(path, FORMATS):
            headers = readers[path.suffix.lower()](path)
        return cls(path, headers, digest)

    def place(self, name: str) -> str:
        """Return how errors name one of the arrays."""
        return f"{self.path}, array {name!r}" if name else str(self.path)

    def named(self, name: str | None) -> str:
        """Return the name of the array asked for: the only two-dimensional one, if none is.

        Raises
        ------
        DataError
            When there is no such array, or several might be meant.
        """
        if not self.several:
            return ""
        if name is not None:
            if name not in self.headers:
                raise self.no_array(name)
            return name
        flat = [name for name, header in self.headers.items() if len(header.shape) == 2]
        if len(flat) == 1:
            return flat[0]
        held = ", ".join(f"{show(name)} {header.shape}" for name, header in self.headers.items())
        raise DataError(
            f"{len(flat) or 'none'} of the arrays {'are' if flat else 'is'} two-dimensional: "
            f"{held or 'there are no arrays'}",
            file=str(self.path),
            expected="one array with a row per item",
            fix="give `array:` with the name of the one that is meant"
            if flat
            else "save an array with a row per item",
        )

    @property
    def several(self) -> bool:
        """Whether the file can hold more than one array, each with a name."""
        return [*self.headers] != [""]

    def no_array(self, name: str) -> DataError:
        """Return the error of a name that no array has."""
        similar = nearest(name, self.headers)
        return DataError(
            f"there is no array {show(name)}",
            file=str(self.path),
            expected=f"one of {listed(self.headers)}",
            fix=f"write {show(similar)} if that was meant" if similar else "name one of these",
        )

    def read(self, name: str) -> npt.NDArray[Any]:
        """Return an array, mapped into memory where it is not compressed.

        Raises
        ------
        DataError
            When the values are pickled objects, of a type that numpy lacks, or cut off.
        """
        header, place = self.headers[name], self.place(name)
        dtype = _known(header, place)
        if header.start < 0:
            return self._unpacked(name, header)
        if header.start + header.size > self.digest["bytes"]:
            raise _cut(place, header, self.digest["bytes"])
        if header.size == 0:
            return np.empty(header.shape, dtype)
        order: Any = "F" if header.fortran else "C"
        with translated(self.path, FORMATS):
            return np.memmap(self.path, dtype, "r", header.start, header.shape, order)

    def _unpacked(self, name: str, header: Header) -> npt.NDArray[Any]:
        """Read a compressed array, after its size in memory has been checked."""
        place = self.place(name)
        if header.size > MOST_UNPACKED:
            raise DataError(
                f"the array is compressed, and unpacked it has {header.size} bytes",
                file=place,
                expected=f"at most {MOST_UNPACKED} bytes",
                fix="save it with np.save as .npy, which may have any size",
            )
        held = 0
        with _whole(place, ".npz"), zipfile.ZipFile(self.path) as archive:
            held = archive.getinfo(f"{name}.npy").file_size
            if header.size <= held:
                with archive.open(f"{name}.npy") as file:
                    values: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
                    return values
        raise _cut(place, header, held)


def _known(header: Header, place: str) -> np.dtype[Any]:
    """Return the type of the values, or say why they cannot be read."""
    dtype, expected = header.dtype, "float16, float32 or float64"
    if dtype is not None and not dtype.hasobject and dtype.kind != "V":
        return dtype
    problem, fix = f"the values are of type {header.kind}", "save it as float32"
    if header.kind in ("BF16", "bfloat16") or dtype == np.dtype("V2"):
        problem, fix = "the values are bfloat16, which numpy lacks", f"{fix}: tensor.float()"
    elif dtype is not None and dtype.hasobject:
        problem = "the values are pickled Python objects, which can run code when they are read"
        fix = "save a plain array: np.asarray(values, dtype=np.float32), or dtype=str for ids"
        expected = "numbers"
    raise DataError(problem, file=place, expected=expected, fix=fix)


@contextmanager
def _whole(
    place: str, extension: str, errors: tuple[type[Exception], ...] = _DAMAGED
) -> Iterator[None]:
    """Turn what a damaged file raises into one error."""
    try:
        yield
    except DataError:
        raise
    except errors:
        raise _damaged(place, extension) from None


def _damaged(place: str, extension: str) -> DataError:
    return DataError(
        f"the file is truncated, damaged or no {extension}",
        file=place,
        expected=f"a whole {extension} file",
        fix="write or copy it again",
    )


def _cut(place: str, header: Header, size: int) -> DataError:
    return DataError(
        f"the file is truncated: it has {size} bytes, and its header says {header.shape} of "
        f"{header.kind}",
        file=place,
        expected=f"{max(header.start, 0) + header.size} bytes",
        fix="write or copy it again",
    )


def _npy_headers(path: Path) -> dict[str, Header]:
    with path.open("rb") as file:
        return {"": _npy_header(file, str(path))}


def _npy_header(file: IO[bytes], place: str) -> Header:
    read = np.lib.format
    readers = {(1, 0): read.read_array_header_1_0, (2, 0): read.read_array_header_2_0}
    errors = (*_DAMAGED, KeyError, TypeError, SyntaxError, tokenize.TokenError)
    with _whole(place, ".npy", errors), warnings.catch_warnings():
        # numpy warns of headers that Python 2 wrote, and reads them.
        warnings.simplefilter("ignore")
        shape, fortran, dtype = readers[read.read_magic(file)](file)
        # numpy makes room for a character of each text of length 0, however many it declares.
        if any(length < 0 for length in shape) or not dtype.itemsize:
            raise ValueError
    return Header(str(dtype), shape, dtype, fortran, file.tell())


def _npz_headers(path: Path) -> dict[str, Header]:
    headers: dict[str, Header] = {}
    with _whole(str(path), ".npz"), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                headers[info.filename[:-4]] = _member(archive, info, path)
    return headers


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Header:
    with archive.open(info) as file:
        header = _npy_header(file, f"{path}, array {info.filename[:-4]!r}")
    if info.compress_type != zipfile.ZIP_STORED:
        return replace(header, start=-1)
    with path.open("rb") as file:
        # Name and extra field of the local header, whose lengths stand at its bytes 26 and 28.
        file.seek(info.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")
    return replace(header, start=info.header_offset + 30 + int(lengths.sum()) + header.start)


def _tensor_headers(path: Path) -> dict[str, Header]:
    """Read the header after the library has checked it against the length of the file."""
    from safetensors import SafetensorError, safe_open

    with _whole(str(path), ".safetensors", (SafetensorError,)), safe_open(path, framework="numpy"):
        pass
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        described = json.loads(file.read(length))
    described.pop("__metadata__", None)
    return {
        name: Header(
            one["dtype"],
            tuple(one["shape"]),
            np.dtype(_TENSORS[one["dtype"]]) if one["dtype"] in _TENSORS else None,
            start=8 + length + one["data_offsets"][0],
        )
        for name, one in sorted(described.items())
    }
