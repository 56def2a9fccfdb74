"""JPEG by a decoder that fills nothing up: where it would have to guess, the file is refused."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import MissingExtraError

Levels = NDArray[np.uint8]

# A marker that ends the data of a scan: no stuffed FF, no restart.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_START, _END, _SCAN, _TABLES, _ALONE = 0xD8, 0xD9, 0xDA, 0xC4, 0x01
_APP0, _PROFILE, _ADOBE = 0xE0, 0xE2, 0xEE
_FRAMES = frozenset(range(0xC0, 0xD0)) - {_TABLES, 0xC8, 0xCC}
_SEQUENTIAL = frozenset({0xC0, 0xC1})
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_ARITHMETIC = 0xC9  # from here on

# So many zeros are ten blocks or more. Drawn to provoke it, a sound picture had 117 of them where
# zeros are no flat area; photographs have 8.
_HOLE = bytes(256)
# What the code of zeros stands for where they can be meant: no coefficient is left in the block,
# and its mean is that of the block before, or off by one.
_END_OF_BLOCK, _SLOPE = 0, 1

# What the library says of a file, and what it means to whoever has it.
_MEANING = (
    ("remature end", "it breaks off before the last pixel of the size in its header"),
    ("extraneous", "it holds more data than the size in its header needs"),
)


class JpegError(ValueError):
    """A JPEG does not hold the picture that its header tells of; the text says how."""


def strict_levels(data: bytes, mode: str) -> Levels | None:
    """Return the levels of a JPEG that is whole, as they are stored.

    A decoder fills up what is missing. Here that is an error, and so are data that are left over
    when the last pixel is there: bytes were lost or added before, and pixels lie in the wrong
    place. What cannot move a pixel is let pass: whatever follows the end of the picture, zeros and
    FF between its last pixel and its end, and slips of the header (the revision of JFIF, Adobe's
    transform, the colour profile, bytes between its segments, the range of a sequential scan).

    Parameters
    ----------
    data : bytes
    mode : str
        Pillow's: ``L``, ``RGB`` or ``CMYK``.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3), or None
        Pillow's levels, in half its time. None where Pillow has to read it: CMYK, which was
        checked, and a subsampling that the library has no name for, of which only the ends and the
        scans were checked.

    Raises
    ------
    JpegError
        When it is damaged.
    MissingExtraError
        When simplejpeg is not installed.
    """
    try:
        levels = _decoded(data, mode)
    except _UnknownError:
        levels = None
        deque(_segments(data), maxlen=0)  # Pillow minds no missing end in every case
    except JpegError:
        data = _tidied(data, mode)
        levels = _decoded(data, mode)
    if not _is_plain(data):
        _check_scans(data)
    return None if mode == "CMYK" else levels


class _UnknownError(Exception):
    """The library does not know this kind of JPEG."""


def _decoded(data: bytes, mode: str) -> Levels:
    try:
        import simplejpeg
    except ImportError as error:
        raise MissingExtraError("simplejpeg", "images") from error
    try:
        levels: Levels = simplejpeg.decode_jpeg(data, "CMYK" if mode == "CMYK" else "RGB")
    except (RuntimeError, ValueError) as error:
        told = str(error)
        if told.startswith("tj"):  # by its own name it says what it cannot, not what is wrong
            raise _UnknownError from None
        meant = (meaning for text, meaning in _MEANING if text in told)
        raise JpegError(f"{next(meant, 'its data make no picture')} ({told})") from None
    return levels


@dataclass(frozen=True)
class _Segment:
    """A segment: its marker, its body, and where what follows it begins and ends."""

    code: int
    body: bytes
    follows: int


def _segments(data: bytes) -> Iterator[_Segment]:
    """Yield the segments up to the end of the picture, which is the last of them.

    Raises
    ------
    JpegError
        When there is no end.
    """
    at = 2
    while found := _MARKER.search(data, at):
        code, at = data[found.start() + 1], found.end()
        if code == _END:
            yield _Segment(code, b"", found.start())
            return
        if code not in (_START, _ALONE):
            length = int.from_bytes(data[at : at + 2])
            yield _Segment(code, data[at + 2 : at + length], at + length)
            at += length
    raise JpegError("it breaks off: the marker of its end is missing")


@dataclass
class _Seen:
    """What the segments so far have told.

    Attributes
    ----------
    frame : int
        The marker that names the process.
    missing : dict of int to set of int
        By component: the coefficients that are not known to their last bit.
    zeros : dict of int to int
        By table of codes: what the code of nothing but zeros stands for.
    """

    frame: int = 0
    missing: dict[int, set[int]] = field(default_factory=dict)
    zeros: dict[int, int] = field(default_factory=dict)

    def take_tables(self, body: bytes) -> None:
        """Take the codes of a segment: of each table the first is all zeros."""
        at = 0
        while at + 17 < len(body):
            self.zeros[body[at]] = body[at + 17]
            at += 17 + sum(body[at + 1 : at + 17])

    def take_frame(self, code: int, body: bytes) -> None:
        """Take the components of a picture."""
        self.frame = code
        self.missing = {body[6 + 3 * k]: set(range(64)) for k in range(body[5])}

    def take_scan(self, body: bytes) -> bool:
        """Take a scan, and return whether a hole of zeros in it can be meant."""
        count = body[0]
        first, last, bits = body[1 + 2 * count : 4 + 2 * count]
        if self.frame not in _PROGRESSIVE:
            first, last, bits = 0, 63, 0
        if bits & 15 == 0:
            for component in body[1 : 1 + 2 * count : 2]:
                self.missing[component] -= set(range(first, last + 1))
        if self.frame >= _ARITHMETIC:
            return True
        tables = body[2 : 2 + 2 * count : 2]
        means = first > 0 or bits > 15 or self._meant(_SLOPE, [table >> 4 for table in tables])
        return means and (
            last == 0 or self._meant(_END_OF_BLOCK, [16 + (table & 15) for table in tables])
        )

    def _meant(self, most: int, tables: Sequence[int]) -> bool:
        return all(self.zeros.get(table, 0) <= most for table in tables)


def _is_plain(data: bytes) -> bool:
    """Whether one sequential scan holds all that there is, and no hole: what most JPEGs are."""
    at, components = 2, 0
    while at + 9 < len(data) and data[at] == 0xFF:
        code = data[at + 1]
        if code == _SCAN:
            return data[at + 4] == components and data.find(_HOLE, at) < 0
        if code in _SEQUENTIAL:
            components = data[at + 9]
        at += 2 + (data[at + 2] << 8 | data[at + 3])
    return False


def _check_scans(data: bytes) -> None:
    """Refuse what the decoder takes for a picture, and no encoder has written.

    Zeros written over a scan are codes like others. In a flat area they can be meant, where the
    code of zeros says that nothing more comes. Where it stands for a coefficient, or a step of the
    mean, no picture has hundreds in a row.

    Raises
    ------
    JpegError
    """
    seen = _Seen()
    for segment in _segments(data):
        if segment.code == _TABLES:
            seen.take_tables(segment.body)
        elif segment.code in _FRAMES:
            seen.take_frame(segment.code, segment.body)
        elif segment.code == _SCAN:
            flat = seen.take_scan(segment.body)
            hole = -1 if flat else data.find(_HOLE, segment.follows)
            if hole < 0 and not any(seen.missing.values()):
                return
            if 0 <= hole < _end_of_scan(data, segment.follows):
                raise JpegError(f"its data are zeros from byte {hole} on")
    if any(seen.missing.values()):
        raise JpegError("it breaks off: scans are missing that its pixels need")


def _end_of_scan(data: bytes, start: int) -> int:
    found = _MARKER.search(data, start)
    return found.start() if found else len(data)


def _tidied(data: bytes, mode: str) -> bytes:
    """Return the same picture without the slips that move no pixel.

    Zeros go that lie between the last pixel and the end. Where the decoder needs them after all,
    they were pixels once, and it says so.
    """
    parts = [data[:2]]
    frame = 0
    for segment in _segments(data):
        body = bytearray(segment.body)
        if segment.code == _END:
            whole = b"".join(parts).rstrip(b"\0")
            stuffed = b"\0" if whole.endswith(b"\xff") else b""
            return whole + stuffed + data[segment.follows :]
        if segment.code == _PROFILE:
            continue
        if segment.code in _FRAMES:
            frame = segment.code
        elif segment.code == _APP0 and body[:5] == b"JFIF\0":
            body[5:6] = b"\1"
        elif segment.code == _ADOBE and body[:5] == b"Adobe" and body[11:12] > b"\2":
            body[11] = 2 if mode == "CMYK" else 1
        elif segment.code == _SCAN and frame not in _PROGRESSIVE:
            body[-3:] = b"\0\x3f\0"
        parts += [bytes([0xFF, segment.code]), (len(body) + 2).to_bytes(2), bytes(body)]
        if segment.code == _SCAN:
            parts.append(data[segment.follows : _end_of_scan(data, segment.follows)])
    return b"".join(parts)
