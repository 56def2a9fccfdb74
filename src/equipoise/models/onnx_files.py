"""Files of an ONNX model: the graph, and the tensors that it keeps in files beside it."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from equipoise.core.errors import ModelError

# Fields of ONNX's messages that lead to tensors, by their numbers in onnx.proto.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_KEY, _VALUE = 1, 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the graph's file and every file that it names for its tensors.

    Parameters
    ----------
    path : Path
        A model in ONNX's own format.

    Raises
    ------
    ModelError
        If the file has another format, or a tensor's file is missing or outside the model's folder.
    """
    try:
        names = sorted({*_locations(path)})
    except (IndexError, ValueError) as error:
        raise ModelError(f"{path} is not a model that onnxruntime can load: {error}") from error
    return (path, *(_beside(path, name) for name in names))


def _beside(path: Path, name: str) -> Path:
    parts = {*PurePosixPath(name).parts, *PureWindowsPath(name).parts}
    rooted = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
    if not name or rooted or ".." in parts:
        raise ModelError(
            f"{path} keeps tensors in {name!r}, which is outside its folder. To do: export the "
            "model with its data beside it."
        )
    found = path.parent / name
    if not found.is_file():
        raise ModelError(
            f"{path} keeps tensors in {found}, and there is no such file. To do: put the data of "
            "the model beside it."
        )
    return found


def _locations(path: Path) -> Iterator[str]:
    """Yield the location of every tensor whose numbers are in another file."""
    with path.open("rb") as file:
        if not path.stat().st_size:
            raise ValueError("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            waiting = [("model", 0, len(data))]
            while waiting:
                kind, start, end = waiting.pop()
                for number, first, last in _fields(data, start, end):
                    inner = _FIELDS[kind].get(number)
                    if inner == "entry":
                        yield from _location(data, first, last)
                    elif inner is not None:
                        waiting.append((inner, first, last))


def _location(data: mmap.mmap, start: int, end: int) -> Iterator[str]:
    entry = {number: data[first:last] for number, first, last in _fields(data, start, end)}
    if entry.get(_KEY) == b"location":
        yield entry.get(_VALUE, b"").decode()


def _fields(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number and place of each field with bytes; numbers are passed over."""
    while start < end:
        tag, start = _varint(data, start)
        wire, length = tag & 7, 0
        if wire == _VARINT:
            _, start = _varint(data, start)
        elif wire == _BYTES:
            length, start = _varint(data, start)
        elif wire in (_FIXED64, _FIXED32):
            start += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"it has a field of type {wire}")
        if start + length > end:
            raise ValueError("it is cut off")
        if wire == _BYTES:
            yield tag >> 3, start, start + length
        start += length


def _varint(data: mmap.mmap, start: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[start]
        value |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < 0x80:
            return value, start
        if shift > 63:
            raise ValueError("a number is too long")
