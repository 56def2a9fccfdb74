import io
import re
import struct
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

from equipoise.core import MissingExtraError
from equipoise.evidence import ImageError, decode
from picture_models import turned, written

CROP = np.array([8, 16, 200, 120])


def photo(seed=0, height=240, width=320):
    """Smooth shapes and noise, as a photograph has them."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [x / 17 + y / 40, y / 23 - x / 60, (x + y) / 29]
    noise = 12 * rng.standard_normal((height, width, 3))
    levels = 128 + 80 * np.sin(np.stack(waves, axis=-1)) + noise
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


def jpeg(image, **more):
    return written(image, "JPEG", **({"quality": 85} | more))


KINDS = {
    "baseline": {},
    "turned progressive": {"exif": turned(7), "progressive": True},
    "grey": {"mode": "L"},
    "turned and cropped": {"crop": CROP, "exif": turned(8)},
    "CMYK": {"mode": "CMYK"},
    "stored as RGB": {"keep_rgb": True},
    "halved in width": {"subsampling": "4:2:2"},
    "not subsampled": {"subsampling": "4:4:4", "progressive": True},
    "own codes": {"optimize": True},
    "with restarts": {"restart_marker_rows": 1},
}


def picture_of_kind(kind, image=None):
    """Return a sound picture of a kind and its crop."""
    options = dict(KINDS[kind])
    crop, mode = options.pop("crop", None), options.pop("mode", "RGB")
    return jpeg((image or photo()).convert(mode), **options), crop


def by_pillow(data, crop=None):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return np.asarray((image if crop is None else image.crop(crop.tolist())).convert("RGB"))


def with_false_size(data, height=0, width=0):
    """Return the same file with more rows or columns in its header."""
    match = re.search(rb"\xff[\xc0-\xc2]\x00[\x0b\x11\x14]\x08", data)
    assert match
    at = match.end()
    sides = struct.unpack(">HH", data[at : at + 4])
    return data[:at] + struct.pack(">HH", sides[0] + height, sides[1] + width) + data[at + 4 :]


DAMAGES = {
    "cut": lambda data, at: data[:at],
    "cut and ended": lambda data, at: data[:at] + b"\xff\xd9",
    "data put in": lambda data, at: data[:at] + b"more" * 99 + data[at:],
    "lower": lambda data, _: with_false_size(data, height=64),
    "higher": lambda data, _: with_false_size(data, height=-64),
    "wider": lambda data, _: with_false_size(data, width=-64),
    "data before the end": lambda data, _: data[:-2] + b"more" * 20 + data[-2:],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_jpeg_with_data_of_another_size_is_refused(kind, damage):
    data, crop = picture_of_kind(kind)
    start = data.index(b"\xff\xda") + 14
    for at in (start + (len(data) - start) // part for part in (2, 3, 7)):
        with pytest.raises(ImageError) as caught:
            decode(DAMAGES[damage](data, at), crop=crop)
        assert caught.value.reason.startswith("it is damaged")


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_jpeg_has_pillows_levels(kind):
    for seed in range(4):
        data, crop = picture_of_kind(kind, photo(seed, 201 + 13 * seed, 221 + 17 * seed))
        pixels = decode(data, crop=crop)
        np.testing.assert_array_equal(pixels, by_pillow(data, crop))
        assert pixels.flags.c_contiguous
        assert crop is None or pixels.base is None or pixels.base.nbytes == pixels.nbytes


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_after_the_pixels_are_accepted(kind):
    data, crop = picture_of_kind(kind)
    sound = by_pillow(data, crop)
    for after in (b"\0", b"trailing text" * 99, b"\xff\xd8\xff\xd9", data):
        np.testing.assert_array_equal(decode(data + after, crop=crop), sound)
    for padding in (bytes(1), bytes(3000), b"\xff" * 9):
        np.testing.assert_array_equal(decode(data[:-2] + padding + data[-2:], crop=crop), sound)


def test_the_first_of_several_pictures_is_taken():
    two_pictures = written(photo(), "MPO", save_all=True, append_images=[photo(1)], quality=85)
    np.testing.assert_array_equal(decode(two_pictures), by_pillow(two_pictures))
    with pytest.raises(ImageError):
        decode(with_false_size(two_pictures, height=-64))


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


SLIPS = {
    "another revision of JFIF": lambda data: data[:11] + b"\x09" + data[12:],
    "another transform of Adobe's": lambda data: (
        data[:2] + segment(0xEE, b"Adobe\0\x64\0\0\0\0\x07") + data[20:]
    ),
    "half a colour profile": lambda data: (
        data[:2] + segment(0xE2, b"ICC_PROFILE\0\5\2half") + data[2:]
    ),
    "bytes between two segments": lambda data: data[:20] + b"\0\0\0" + data[20:],
    "the range of a sequential scan": lambda data: (
        data[: data.index(b"\xff\xda") + 11] + bytes(3) + data[data.index(b"\xff\xda") + 14 :]
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_of_the_header_that_move_no_pixel_are_taken(slip):
    data = jpeg(photo())
    np.testing.assert_array_equal(decode(SLIPS[slip](data)), by_pillow(data))


def test_a_jpeg_needs_the_strict_decoder(monkeypatch):
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    with pytest.raises(MissingExtraError, match="simplejpeg"):
        decode(jpeg(photo()))
