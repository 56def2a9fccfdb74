"""Files of an ONNX model: the graph, and the files in which it keeps tensors.

The format is protobuf. Only the fields that lead to tensors are read here, because the package
that knows them all is not a dependency.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from equipoise.core import ModelError
from equipoise.core.files import read_regular
from equipoise.models.info import sha256_of

NESTED: Mapping[str, Mapping[int, str]] = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {},
}
"""Fields of messages that lead to tensors, by number, and the message of each."""

NAME, RAW_DATA, EXTERNAL_DATA, DATA_LOCATION = 8, 9, 13, 14
"""Fields of a TensorProto."""

EXTERNAL = 1
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


class Field(NamedTuple):
    """Positions of a field in its message: its key, value and end."""

    number: int
    wire: int
    start: int
    begin: int
    end: int


class External(NamedTuple):
    """A tensor stored in another file."""

    name: str
    location: str
    offset: int
    length: int | None

    def cut(self, path: Path, content: bytes) -> memoryview:
        """Return the bytes of the tensor in its file."""
        end = len(content) if self.length is None else self.offset + self.length
        if not 0 <= self.offset <= end <= len(content):
            raise ModelError(
                f"{path}: the tensor {self.name!r} is in bytes {self.offset} to {end} of "
                f"{self.location}, which has {len(content)}. To do: copy or export both again."
            )
        return memoryview(content)[self.offset : end]


Inline = Callable[[External], memoryview]
"""From a tensor to its bytes."""


@dataclass(frozen=True)
class GraphFiles:
    """The bytes of a model, to be loaded, and the digests of these bytes.

    Attributes
    ----------
    graph : bytes
        The graph. Tensors of subgraphs, functions and sparse tensors are inlined.
    data : mapping of str to bytes
        Files of the graph's initialisers, by the name that the graph has for them.
    digests : mapping of str to str
        SHA-256 of each file by its path in the folder.
    """

    graph: bytes
    data: Mapping[str, bytes]
    digests: Mapping[str, str]


def read_files(path: Path) -> GraphFiles:
    """Read a graph and every file that it keeps tensors in.

    Raises
    ------
    ModelError
        If one is missing or is outside the folder, or the graph is damaged.
    """
    content = _read_graph(path)
    tensors = _find_external_tensors(path, content)
    places = _find_files(path, tensors)
    files = {location: _read_graph(place) for location, place in places.items()}
    digests = {path.name: sha256(content).hexdigest()}
    for location, data in files.items():
        digests[PurePosixPath(location).as_posix()] = sha256(data).hexdigest()

    def inline(tensor: External) -> memoryview:
        return tensor.cut(path, files[tensor.location])

    for tensor in tensors:
        inline(tensor)
    graph = _inline_tensors(memoryview(content), "ModelProto", inline) if tensors else content
    return GraphFiles(bytes(graph), files, digests)


def digests_of(path: Path) -> dict[str, str]:
    """Return the digests of `read_files`, without holding the tensors."""
    places = _find_files(path, _find_external_tensors(path, _read_graph(path)))
    names = {PurePosixPath(name).as_posix(): place for name, place in places.items()}
    return {name: sha256_of(place) for name, place in {path.name: path, **names}.items()}


def _read_graph(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from error


def _find_files(path: Path, tensors: list[External]) -> dict[str, Path]:
    """Return the files of tensors by their names in the graph.

    A hub's cache links to files that lie side by side elsewhere: beside the file that the graph
    itself is a link to is inside, too.
    """
    inside = {path.parent.resolve(), path.resolve().parent}
    places = {}
    for location in sorted({tensor.location for tensor in tensors}):
        place = (path.parent / location).resolve() if _is_inside(location) else None
        if place is None or not any(place.is_relative_to(folder) for folder in inside):
            raise ModelError(
                f"{path} keeps tensors in {location!r}, outside its folder. "
                "To do: move the file to the graph's folder, and name it so in the graph."
            )
        if not place.is_file():
            raise ModelError(
                f"{path} keeps tensors in {path.parent / location}, which doesn't exist. "
                "To do: copy it from the folder of the exported graph."
            )
        places[location] = place
    return places


def _is_inside(location: str) -> bool:
    rooted = PurePosixPath(location).is_absolute() or PureWindowsPath(location).anchor
    return not (rooted or "\0" in location or ".." in PurePosixPath(location).parts)


def _find_external_tensors(path: Path, graph: bytes) -> list[External]:
    try:
        tensors = map(_parse_external, _find_tensors(memoryview(graph), "ModelProto"))
        return [tensor for tensor in tensors if tensor is not None]
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{path} is not a model that onnxruntime can load: it is no ONNX graph ({error})."
        ) from error


def _find_tensors(message: memoryview, kind: str) -> Iterator[memoryview]:
    """Yield every tensor at any depth of a message."""
    if kind == "TensorProto":
        yield message
        return
    for field, inner in _find_nested(message, kind):
        yield from _find_tensors(message[field.begin : field.end], inner)


def _find_nested(message: memoryview, kind: str) -> Iterator[tuple[Field, str]]:
    for field in _parse_fields(message):
        inner = NESTED[kind].get(field.number)
        if inner is not None and field.wire == _BYTES:
            yield field, inner


def _parse_external(tensor: memoryview) -> External | None:
    """Return the location of a tensor, or None inside the graph."""
    name, location, entries = "", 0, {}
    for field in _parse_fields(tensor):
        value = tensor[field.begin : field.end]
        if field.number == NAME:
            name = str(value, "utf-8", "replace")
        elif field.number == DATA_LOCATION and field.wire == _VARINT:
            location = _parse_varint(value, 0)[0]
        elif field.number == EXTERNAL_DATA:
            texts = {inner.number: value[inner.begin : inner.end] for inner in _parse_fields(value)}
            key, text = (str(texts.get(number, b""), "utf-8") for number in (1, 2))
            entries[key] = text
    if location != EXTERNAL:
        return None
    if not entries.get("location"):
        raise ValueError(f"the tensor {name!r} doesn't name its file")
    length = entries.get("length")
    offset = int(entries.get("offset") or 0)
    return External(name, entries["location"], offset, int(length) if length else None)


def _inline_tensors(
    message: memoryview, kind: str, inline: Inline, *, main: bool = False
) -> memoryview:
    """Return a message with external tensors inlined, except main initialisers.

    onnxruntime takes the files of these from memory, and of no others.
    """
    if kind == "TensorProto":
        return _add_data(message, inline)
    parts: list[memoryview | bytes] = []
    copied = 0
    for field, inner in _find_nested(message, kind):
        if main and inner == "TensorProto":
            continue
        before = message[field.begin : field.end]
        after = _inline_tensors(
            before, inner, inline, main=(kind, inner) == ("ModelProto", "GraphProto")
        )
        if after is not before:
            parts += [message[copied : field.start], _encode_key(field.number, len(after)), after]
            copied = field.end
    return memoryview(b"".join([*parts, message[copied:]])) if parts else message


def _add_data(tensor: memoryview, inline: Inline) -> memoryview:
    external = _parse_external(tensor)
    if external is None:
        return tensor
    data = inline(external)
    other_fields = [
        tensor[field.start : field.end]
        for field in _parse_fields(tensor)
        if field.number not in {RAW_DATA, EXTERNAL_DATA, DATA_LOCATION}
    ]
    return memoryview(b"".join([*other_fields, _encode_key(RAW_DATA, len(data)), data]))


def _parse_fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message in protobuf's wire format.

    Raises
    ------
    ValueError
        If the bytes are no message.
    """
    place = 0
    while place < len(message):
        start = place
        key, place = _parse_varint(message, place)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            end = _parse_varint(message, place)[1]
        elif wire == _BYTES:
            size, place = _parse_varint(message, place)
            end = place + size
        elif wire in _FIXED:
            end = place + _FIXED[wire]
        else:
            raise ValueError(f"field {number} has the unknown wire type {wire}")
        if end > len(message) or number == 0:
            raise ValueError(f"field {number} at byte {start} is damaged")
        yield Field(number, wire, start, place, end)
        place = end


def _parse_varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return a number of variable length, and the position of its end."""
    number = 0
    for shift, byte in enumerate(message[place : place + 10]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, place + shift + 1
    raise ValueError(f"the number at byte {place} does not end")


def _encode_key(number: int, size: int) -> bytes:
    """Return the bytes before a value of a size."""
    encoded = bytearray()
    for value in (number << 3 | _BYTES, size):
        remaining = value
        while remaining >= 0x80:
            encoded.append(remaining & 0x7F | 0x80)
            remaining >>= 7
        encoded.append(remaining)
    return bytes(encoded)
