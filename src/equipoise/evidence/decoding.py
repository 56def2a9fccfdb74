"""Pixels of image files: decoded at the size that a model needs, or refused with a reason."""

from __future__ import annotations

import io
import re
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import DataError, InputError, MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow


_PHOTOMETRIC, _WHITE_IS_ZERO = 0x0106, 0


class BitDepthError(ValueError):
    """The pixels cannot be shown with 8 bits a colour; the text says why and what to do."""


def in_8_bits(pillow: Any, picture: Any) -> Any:
    """Load the pixels of a picture of Pillow, and return it with 8 bits a colour.

    Of 12 and 16 bits the upper 8 count.

    Raises
    ------
    BitDepthError
        When no value of its pixels is known to be white, or the upper 8 bits hold nothing.
    """
    if picture.mode == "F" or (picture.mode == "I" and picture.format != "PPM"):
        raise BitDepthError(
            f"its pixels ({picture.mode}) have no known white; save it with 8 or 16 bits a colour"
        )
    stored = str([tile.args for tile in picture.tile])  # gone once the pixels are loaded
    picture.load()
    if picture.mode.startswith("I"):
        return _grey(pillow, picture, 4 if "I;12" in stored else 0)
    if ";16" in stored:
        _check_upper_bits(np.asarray(picture))
        key = picture.info.get("transparency")
        if isinstance(key, tuple):
            # Pillow compares the lower 8 bits of the transparent colour with the upper of pixels.
            picture.info["transparency"] = tuple(value >> 8 for value in key)
    return picture


def _grey(pillow: Any, picture: Any, lacking: int) -> Any:
    """Return grey of 16 bits, some of which may be lacking below, as 8 bits."""
    values = np.asarray(picture).astype(np.int64) << lacking
    _check_upper_bits(values >> 8)
    shown = values != picture.info.get("transparency", -1)
    if picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
        # Pillow turns such pictures into black on white only up to 8 bits.
        values = 65_535 - values
    grey = pillow.fromarray((values >> 8).astype(np.uint8))
    if not shown.all():
        grey.putalpha(pillow.fromarray(np.where(shown, 255, 0).astype(np.uint8)))
    return grey


def _check_upper_bits(levels: NDArray[Any]) -> None:
    if not levels.any():
        raise BitDepthError(
            "all its values of 16 bits are below 256, so nothing of it would be left; save it "
            "with 8 bits a colour, or scale it to 65,535"
        )


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


_BOMB = re.compile(r"\((\d+) pixels\) exceeds limit of (\d+)")


def of_bomb(error: Exception, max_pixels: int) -> str:
    """Say how many pixels a picture has that Pillow takes for a bomb, and how many are allowed.

    Parameters
    ----------
    error : Exception
        Pillow's `DecompressionBombError`, or its warning.
    max_pixels : int
        Our own limit. Pillow's refuses a picture only where ours is higher, and is named then.
    """
    told = _BOMB.search(str(error))
    if told is None:
        return f"it has more than {max_pixels:,} pixels"
    found, limit = int(told[1]), int(told[2])
    return f"it has {found:,} pixels, more than {min(limit, max_pixels):,} in all"


def first_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its text."""
    text = str(error).partition("\n")[0].strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


Image = NDArray[np.uint8]
"""One image: (height, width, 3), sRGB."""

# Formats that hold pixels and nothing to run; Pillow also has some that call other programs.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "AVIF")

_JPEGS = ("JPEG", "MPO")

# Where EXIF's orientation says that the first row and column lie, as Pillow's transpositions.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
_ORIENTATION = 0x0112


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

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        InputError
            When a number is out of range.
        """
        colours = np.array(self.background)
        sound = colours.shape == (3,) and colours.min() >= 0 and colours.max() <= 255
        if self.max_pixels < 1 or self.max_ratio < 1 or not sound:
            raise InputError(
                f"max_pixels is {self.max_pixels}, max_ratio {self.max_ratio:g} and background "
                f"{self.background}; expected 1 or more, 1 or more, and three numbers from 0 to 255"
            )

    @property
    def facts(self) -> dict[str, Any]:
        """What stands in the key and the manifest."""
        return {
            "version": self.version,
            "max_pixels": self.max_pixels,
            "max_ratio": self.max_ratio,
            "background": list(self.background),
        }


def decode(
    data: bytes, decoding: Decoding = Decoding(), crop: NDArray[np.int64] | None = None
) -> Image:
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


def pixels(data: bytes, decoding: Decoding, crop: NDArray[np.int64] | None = None) -> Image:
    """Return the pixels of a picture as `decode` does, for threads inside `quiet`."""
    pillow = _pillow()
    if not data:
        raise ImageError("the file is empty")
    try:
        picture = _opened(pillow, data, decoding)
        levels = _jpeg(data, picture, decoding, crop) if picture.format in _JPEGS else None
        if levels is not None:
            return levels
        picture = _cut(_loaded(pillow, picture), crop, decoding)
        return np.array(_rgb(pillow, picture, decoding), dtype=np.uint8)
    except (ImageError, MissingExtraError):
        raise
    except BitDepthError as error:
        raise ImageError(str(error)) from None
    except JpegError as error:
        raise ImageError(f"it is damaged: {error}") from None
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise ImageError(of_bomb(error, decoding.max_pixels)) from None
    except MemoryError:
        raise ImageError("the memory does not hold its pixels") from None
    except Exception as error:  # noqa: BLE001 - damaged files make decoders raise anything
        raise ImageError(f"it is damaged: {first_line(error)}") from None


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    return PIL.Image


def _opened(pillow: Any, data: bytes, decoding: Decoding) -> Pillow:
    pillow.init()
    known = [name for name in FORMATS if name in pillow.OPEN]
    try:
        picture: Pillow = pillow.open(io.BytesIO(data), formats=known)
    except pillow.UnidentifiedImageError:
        raise ImageError(f"it is no picture of a known format ({', '.join(FORMATS)})") from None
    width, height = picture.size
    if width * height > decoding.max_pixels:
        raise ImageError(
            f"it has {width} × {height} pixels, more than {decoding.max_pixels:,} in all"
        )
    if picture.format == "PNG":
        # Pillow compares the checksums of pixels only when it is told to, and then reads no pixel.
        picture.verify()
        picture = pillow.open(io.BytesIO(data), formats=["PNG"])
    return picture


def _jpeg(
    data: bytes, picture: Pillow, decoding: Decoding, crop: NDArray[np.int64] | None
) -> Image | None:
    """Return the pixels of a sound JPEG as `pixels` does; None where Pillow has to read them."""
    levels = strict_levels(data, picture.mode)
    if levels is None:
        return None
    if levels.shape != (picture.height, picture.width, 3):
        raise ImageError(
            f"it is damaged: it holds {levels.shape[1]} × {levels.shape[0]} pixels, and its header "
            f"tells of {picture.width} × {picture.height}"
        )
    turn = _orientation(picture)
    whole = levels.view("V3")[..., 0]  # a pixel as one thing is moved twice as fast as three
    if turn >= 5:
        whole = whole.T
    if turn in (3, 4, 7, 8):
        whole = whole[::-1]
    if turn in (2, 3, 6, 7):
        whole = whole[:, ::-1]
    left, top, right, bottom = _box(whole.shape[1], whole.shape[0], crop, decoding)
    if crop is None and turn == 1:
        return levels
    cut = whole[top:bottom, left:right].copy()
    return cut.view(np.uint8).reshape(*cut.shape, 3)


def _orientation(picture: Pillow) -> int:
    """Return where EXIF says that the first row and column lie, from 1 (upright) to 8."""
    try:
        orientation = picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - damaged metadata beside sound pixels
        orientation = 1
    return orientation if isinstance(orientation, int) and orientation in _TURNS else 1


def _loaded(pillow: Any, picture: Pillow) -> Pillow:
    """Return a picture with its pixels: upright, and of 8 bits a colour."""
    shown: Pillow = in_8_bits(pillow, picture)
    turn = _TURNS.get(_orientation(picture))
    if turn is not None:
        shown = shown.transpose(pillow.Transpose(turn))
    shown.format = picture.format
    return shown


def _cut(picture: Pillow, crop: NDArray[np.int64] | None, decoding: Decoding) -> Pillow:
    box = _box(picture.width, picture.height, crop, decoding)
    if crop is None:
        return picture
    cut = picture.crop(box)
    cut.format = picture.format
    return cut


def _box(
    width: int, height: int, crop: NDArray[np.int64] | None, decoding: Decoding
) -> tuple[int, int, int, int]:
    """Return what is cut out of a picture: left, top, right and bottom.

    Raises
    ------
    ImageError
        When it does not lie inside, or is a strip.
    """
    left, top, right, bottom = (0, 0, width, height) if crop is None else crop.tolist()
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise ImageError(
            f"the crop from ({left}, {top}) to ({right}, {bottom}) does not lie inside its "
            f"{width} × {height} pixels"
        )
    sides = (right - left, bottom - top)
    if max(sides) > decoding.max_ratio * min(sides):
        raise ImageError(
            f"{sides[0]} × {sides[1]} pixels are a strip: one side is more than "
            f"{decoding.max_ratio:g} times the other"
        )
    return left, top, right, bottom


def _rgb(pillow: Any, picture: Pillow, decoding: Decoding) -> Any:
    if picture.mode == "CMYK" and picture.format == "JPEG" and "adobe" not in picture.info:
        # Pillow takes every CMYK JPEG for one of Adobe's, which are inverted.
        from PIL import ImageChops

        picture = ImageChops.invert(picture)
    if picture.mode == "La":  # Pillow turns it into no other mode
        picture = picture.convert("LA")
    if picture.has_transparency_data:
        colour = (*decoding.background, 255)
        below = pillow.new("RGBA", picture.size, colour)
        return pillow.alpha_composite(below, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")
