"""From the bytes of a picture to its pixels, by rules that are stated and part of every key."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import DataError, InputError, MissingExtraError
from equipoise.evidence.bit_depth import BitDepthError, in_8_bits
from equipoise.evidence.jpeg import JpegError, strict_levels
from equipoise.evidence.pillow_errors import first_line, of_bomb

if TYPE_CHECKING:
    from PIL.Image import Image as Pillow

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
