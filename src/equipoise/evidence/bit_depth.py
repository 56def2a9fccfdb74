"""Pixels of any depth as 8 bits a colour; where no value is known to be white, a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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
