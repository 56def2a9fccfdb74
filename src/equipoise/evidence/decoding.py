"""Pixels of image files: decoded at the size that a model needs, or refused with a reason."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from equipoise.core import AnyArray, Bytes, DataError, Integers, MissingExtraError

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
    def facts(self) -> dict[str, Any]:
        """What stands in the key and the manifest."""
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
    known = [name for name in FORMATS if name in pillow.OPEN]
    try:
        picture = pillow.open(io.BytesIO(data), formats=known)
    except pillow.UnidentifiedImageError:
        raise ImageError(f"it is no picture of a known format ({', '.join(FORMATS)})") from None
    width, height = picture.size
    if width * height > decoding.max_pixels:
        raise ImageError(f"it has {width} × {height} pixels, more than {decoding.max_pixels:,}")
    if picture.format == "PNG":
        # Pillow compares the checksums of pixels only when it is told to, and then reads no pixel.
        picture.verify()
        picture = pillow.open(io.BytesIO(data), formats=["PNG"])
    return picture


def _jpeg(data: bytes, mode: str) -> Image | None:
    """Return the pixels of a JPEG as they are stored; None where Pillow has to read it.

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
            whole = data[:end].rstrip(b"\0")
            stuffed = b"\0" if whole.endswith(b"\xff") else b""
            levels = simplejpeg.decode_jpeg(whole + stuffed + data[end:], colours)
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
        values = np.asarray(picture).astype(np.int64) << (4 if "I;12" in stored else 0)
        _check_upper_bits(values >> 8)
        shown = values != (-1 if key is None else key)
        if picture.format == "TIFF" and picture.tag_v2.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
            # Pillow turns such pictures into black on white only up to 8 bits.
            values = 65_535 - values
        grey = pillow.fromarray((values >> 8).astype(np.uint8))
        grey.putalpha(pillow.fromarray(np.where(shown, 255, 0).astype(np.uint8)))
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
    """Return where EXIF says that the first row and column lie, from 1 (upright) to 8."""
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
    whole = levels.view("V3")[..., 0]  # a pixel as one thing is moved twice as fast as three
    if turn in (5, 6, 7, 8):
        whole = whole.T
    if turn in (3, 4, 7, 8):
        whole = whole[::-1]
    if turn in (2, 3, 6, 7):
        whole = whole[:, ::-1]
    height, width = whole.shape
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
    if crop is None and turn == 1:
        return levels
    cut = whole[top:bottom, left:right].copy()
    return cut.view(np.uint8).reshape(*cut.shape, 3)
