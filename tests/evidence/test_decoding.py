import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from equipoise.evidence import Decoding, ImageError, decode
from picture_models import turned, written

CORNERS = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255, 255, 0], [0, 255, 255], [9, 9, 9]]], np.uint8
)
"""2 × 3 pixels, each of another colour, so that any turn shows."""


def refusal(data, *arguments, **more):
    with pytest.raises(ImageError) as caught:
        decode(data, *arguments, **more)
    return caught.value.reason


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_a_picture_is_turned_as_its_camera_was(kind, orientation):
    more = {"lossless": True} if kind == "WEBP" else {}
    data = written(Image.fromarray(CORNERS), kind, exif=turned(orientation), **more)
    upright = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    np.testing.assert_array_equal(decode(data), upright)
    box = (0, 1, 2, 2)
    np.testing.assert_array_equal(decode(data, crop=np.array(box)), upright[1:2, :2])


def test_transparent_pixels_show_the_background():
    rgba = np.dstack([CORNERS, np.array([[255, 0, 128], [255, 255, 0]], np.uint8)])
    data = written(Image.fromarray(rgba), "PNG")
    white = decode(data)
    np.testing.assert_array_equal(white[0, 1], [255, 255, 255])
    np.testing.assert_array_equal(white[0, 0], CORNERS[0, 0])
    np.testing.assert_allclose(white[0, 2], [127, 127, 255], atol=1)
    grey = decode(data, Decoding(background=(10, 20, 30)))
    np.testing.assert_array_equal(grey[0, 1], [10, 20, 30])
    np.testing.assert_array_equal(grey[1, 2], [10, 20, 30])


def test_a_palette_and_grey_and_black_and_white_become_colours():
    palette = Image.fromarray(CORNERS).quantize(6)
    np.testing.assert_array_equal(decode(written(palette, "PNG")), CORNERS)
    grey = np.array([[0, 100, 255]], np.uint8)
    np.testing.assert_array_equal(decode(written(Image.fromarray(grey), "PNG"))[..., 1], grey)
    flags = Image.fromarray(grey > 50)
    np.testing.assert_array_equal(decode(written(flags, "PNG"))[0, :, 2], [0, 255, 255])


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_of_16_bits_the_upper_8_count(kind):
    values = np.array([[0, 255, 256, 513, 65_535]], np.uint16)
    pixels = decode(written(Image.fromarray(values), kind))
    for channel in range(3):
        np.testing.assert_array_equal(pixels[..., channel], [[0, 0, 1, 2, 255]])


def png(bits, colour, rows):
    """A PNG of big-endian numbers, which Pillow cannot write."""
    height, width = rows.shape[:2]

    def chunk(kind, body):
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def tiff(photometric, values, bits=0, **more):
    """A TIFF of one row, shape (width, samples), in kinds that Pillow cannot write."""
    width, samples = values.shape
    kind = {"u": 1, "i": 2, "f": 3}[values.dtype.kind]
    raw = values.tobytes() if bits != 12 else bytes([0xFF, 0xF0, 0x00, 0x80, 0x0F, 0xFF])
    depth = bits or 8 * values.dtype.itemsize
    tags = {256: [width], 257: [1], 258: [depth] * samples, 259: [1], 262: [photometric], 273: [0]}
    tags |= {277: [samples], 278: [1], 279: [len(raw)], 339: [kind] * samples}
    tags |= {int(tag.removeprefix("tag")): numbers for tag, numbers in more.items()}
    after = 8 + 2 + 12 * len(tags) + 4
    entries, long = b"", b""
    for tag, numbers in sorted(tags.items()):
        body = struct.pack(f"<{len(numbers)}H", *numbers)
        if len(body) > 4:
            long += body
            body = struct.pack("<I", after + len(long) - len(body))
        entries += struct.pack("<HHI", tag, 3, len(numbers)) + body.ljust(4, b"\0")
    start = struct.pack("<HHI", 273, 3, 1) + struct.pack("<I", after + len(long))
    entries = entries.replace(struct.pack("<HHII", 273, 3, 1, 0), start)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + long + raw


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0], [128], [255]], "<i4"),
        np.array([[0], [70_000], [2**31 - 1]], "<u4"),
        np.array([[-5], [128], [32_767]], "<i2"),
        np.array([[0], [0.5], [1]], "<f4"),
    ],
)
def test_numbers_without_a_known_white_are_refused(values):
    assert "no known white" in refusal(tiff(1, values))


ROW16 = np.array([[0, 51, 255]], np.uint16)


@pytest.mark.parametrize(
    "data",
    [
        png(16, 0, ROW16),
        png(16, 2, np.stack([ROW16] * 3, axis=-1)),
        png(16, 6, np.stack([ROW16] * 3 + [np.full_like(ROW16, 255)], axis=-1)),
        written(Image.fromarray(ROW16), "TIFF"),
        written(Image.fromarray(ROW16), "PPM"),
        tiff(0, ROW16.T.astype("<u2")),
    ],
)
def test_values_of_8_bits_in_16_are_refused_rather_than_shown_as_black(data):
    assert "below 256" in refusal(data)


@pytest.mark.parametrize(
    ("data", "levels"),
    [
        # White is 0, of 8 and of 16 bits.
        (tiff(0, np.array([[0], [1], [255]], "u1")), [255, 254, 0]),
        (tiff(0, np.array([[0], [256], [65_535]], "<u2")), [255, 254, 0]),
        (tiff(1, np.zeros((4, 1), "u1"), bits=12), [255, 0, 128, 255]),
        # The last sample is transparency: over pixels as they are, and multiplied into them.
        (tiff(1, np.array([[50, 255], [7, 0]], "u1"), tag338=[2]), [50, 255]),
        (tiff(1, np.array([[50, 255], [0, 0]], "u1"), tag338=[1]), [50, 255]),
        (b"P5\n3 1\n1023\n" + np.array([0, 512, 1023], ">u2").tobytes(), [0, 128, 255]),
    ],
)
def test_grey_of_each_depth(data, levels):
    np.testing.assert_array_equal(decode(data), np.repeat(levels, 3).reshape(1, -1, 3))


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("side", [2, 40])
def test_a_png_with_a_flipped_bit_is_refused_or_has_its_pixels(side, frames):
    chance = np.random.default_rng(side)
    pictures = [
        Image.fromarray(chance.integers(0, 256, (side, side, 3), dtype=np.uint8))
        for _ in range(frames)
    ]
    data = written(pictures[0], "PNG", save_all=frames > 1, append_images=pictures[1:])
    pixels, refused = decode(data), 0
    for place in chance.choice(len(data) * 8, min(len(data) * 8, 600), replace=False):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        try:
            np.testing.assert_array_equal(decode(bytes(flipped)), pixels)
        except ImageError:
            refused += 1
    assert refused > 500


def without_adobe(data):
    at = data.index(b"\xff\xee")
    length = struct.unpack(">H", data[at + 2 : at + 4])[0]
    return data[:at] + data[at + 2 + length :]


def test_only_cmyk_of_adobe_is_inverted():
    ink = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # magenta and yellow: red
    data = written(ink, "JPEG", quality=95)
    assert b"Adobe" in data
    assert decode(data).reshape(-1, 3).mean(axis=0) == pytest.approx([255, 0, 0], abs=3)
    # Pillow inverts what it writes; without the marker the same numbers mean their opposites.
    plain = without_adobe(data)
    assert b"Adobe" not in plain
    assert decode(plain).reshape(-1, 3).mean(axis=0) == pytest.approx([0, 0, 0], abs=3)
    direct = without_adobe(written(Image.new("CMYK", (16, 16), (255, 0, 0, 255)), "JPEG"))
    assert decode(direct).reshape(-1, 3).mean(axis=0) == pytest.approx([255, 0, 0], abs=3)
    tiff = decode(written(ink, "TIFF"))
    np.testing.assert_array_equal(tiff[0, 0], [255, 0, 0])


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_several_frames_the_first_counts(kind):
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    more = {"lossless": True} if kind == "WEBP" else {}
    data = written(frames[0], kind, save_all=True, append_images=frames[1:], **more)
    assert Image.open(io.BytesIO(data)).n_frames == 3
    np.testing.assert_array_equal(decode(data)[1, 1], [255, 0, 0])


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded():
    small = written(Image.new("1", (300, 200)), "PNG")
    assert "300 × 200 pixels, more than 59,999" in refusal(small, Decoding(max_pixels=59_999))
    assert decode(small, Decoding(max_pixels=60_000)).shape == (200, 300, 3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_a_truncated_file_is_refused(kind):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = written(Image.fromarray(noise), kind)
    assert decode(data).shape == (64, 64, 3)
    assert refusal(data[: len(data) // 2])


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"


@pytest.mark.parametrize("data", [b"", b"just text", EPS, b"\xff\xd8\xff"])
def test_other_files_are_refused_as_no_picture(data):
    assert "it isn't a picture" in refusal(data) if data else "empty" in refusal(data)


@pytest.mark.parametrize("crop", [[0, 0, 4, 2], [0, 0, 3, 3], [2, 0, 2, 1], [-1, 0, 1, 1]])
def test_a_crop_that_leaves_the_picture_is_refused(crop):
    reason = refusal(written(Image.fromarray(CORNERS), "PNG"), crop=np.array(crop))
    assert "inside its 3 × 2 pixels" in reason


def test_a_crop_that_is_a_strip_is_refused_and_one_out_of_a_strip_is_not():
    data = written(Image.new("L", (500, 4)), "PNG")
    assert decode(data, crop=np.array([0, 0, 8, 4])).shape == (4, 8, 3)
    assert "500 × 1" in refusal(data, crop=np.array([0, 0, 500, 1]))
    assert decode(data, Decoding(max_ratio=125)).shape == (4, 500, 3)
