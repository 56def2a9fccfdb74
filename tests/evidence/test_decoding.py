import io
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from equipoise.core.errors import DataError, InputError
from equipoise.evidence import Decoding, ImageError, decode
from equipoise.evidence.decoding import of_bomb

CORNERS = np.array(
    [[[255, 0, 0], [0, 255, 0], [0, 0, 255]], [[255, 255, 0], [0, 255, 255], [9, 9, 9]]], np.uint8
)
"""2 × 3 pixels, each of another colour, so that any turn shows."""


def written(image: Image.Image, kind: str, **more: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def exif(orientation: int) -> Image.Exif:
    found = Image.Exif()
    found[0x0112] = orientation
    return found


UPRIGHT = {
    1: CORNERS,
    2: CORNERS[:, ::-1],
    3: CORNERS[::-1, ::-1],
    4: CORNERS[::-1],
    5: CORNERS.transpose(1, 0, 2),
    6: CORNERS.transpose(1, 0, 2)[:, ::-1],
    7: CORNERS.transpose(1, 0, 2)[::-1, ::-1],
    8: CORNERS.transpose(1, 0, 2)[::-1],
}


@pytest.mark.parametrize("orientation", UPRIGHT)
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_a_picture_is_turned_as_its_camera_was(kind: str, orientation: int) -> None:
    more = {"lossless": True} if kind == "WEBP" else {}
    data = written(Image.fromarray(CORNERS), kind, exif=exif(orientation), **more)
    np.testing.assert_array_equal(decode(data), UPRIGHT[orientation])


def test_a_jpeg_is_turned_as_well() -> None:
    wide = np.zeros((8, 16, 3), np.uint8)
    wide[:, :8] = 255
    data = written(Image.fromarray(wide), "JPEG", exif=exif(6), quality=95)
    turned = decode(data)
    assert turned.shape == (16, 8, 3)
    assert turned[:8].min() > 250
    assert turned[8:].max() < 5


def test_a_damaged_orientation_is_none() -> None:
    data = written(Image.fromarray(CORNERS), "PNG", exif=exif(6))
    at = data.index(b"eXIf") + 4
    length = struct.unpack(">I", data[at - 8 : at - 4])[0]
    body = b"eXIf" + b"II*\0" + b"\xff" * (length - 4)
    broken = data[: at - 4] + body + struct.pack(">I", zlib.crc32(body)) + data[at + length + 4 :]
    np.testing.assert_array_equal(decode(broken), CORNERS)


def test_what_is_transparent_shows_the_background() -> None:
    rgba = np.dstack([CORNERS, np.array([[255, 0, 128], [255, 255, 0]], np.uint8)])
    data = written(Image.fromarray(rgba), "PNG")
    white = decode(data)
    np.testing.assert_array_equal(white[0, 1], [255, 255, 255])
    np.testing.assert_array_equal(white[0, 0], CORNERS[0, 0])
    np.testing.assert_allclose(white[0, 2], [127, 127, 255], atol=1)
    grey = decode(data, Decoding(background=(10, 20, 30)))
    np.testing.assert_array_equal(grey[0, 1], [10, 20, 30])
    np.testing.assert_array_equal(grey[1, 2], [10, 20, 30])


@pytest.mark.parametrize(
    ("mode", "more"),
    [("LA", {}), ("P", {"transparency": 0}), ("L", {"transparency": 0}), ("RGB", {})],
)
def test_transparency_of_each_kind_lies_over_the_background(mode: str, more: Any) -> None:
    image = Image.new(mode, (3, 2), (0, 0) if mode == "LA" else 0)
    if mode == "P":
        image.putpalette([0, 0, 0, 255, 0, 0])
    if mode == "RGB":
        more = {"transparency": (0, 0, 0)}
    shown = decode(written(image, "PNG", **more), Decoding(background=(1, 2, 3)))
    np.testing.assert_array_equal(shown, np.broadcast_to(np.array([1, 2, 3], np.uint8), (2, 3, 3)))


def test_a_palette_and_grey_and_black_and_white_become_colours() -> None:
    palette = Image.fromarray(CORNERS).quantize(6)
    np.testing.assert_array_equal(decode(written(palette, "PNG")), CORNERS)
    grey = np.array([[0, 100, 255]], np.uint8)
    np.testing.assert_array_equal(decode(written(Image.fromarray(grey), "PNG"))[..., 1], grey)
    flags = Image.fromarray(grey > 50)
    np.testing.assert_array_equal(decode(written(flags, "PNG"))[0, :, 2], [0, 255, 255])


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_of_16_bits_the_upper_8_count(kind: str) -> None:
    values = np.array([[0, 255, 256, 513, 65_535]], np.uint16)
    shown = decode(written(Image.fromarray(values), kind))
    for channel in range(3):
        np.testing.assert_array_equal(shown[..., channel], [[0, 0, 1, 2, 255]])


def png(bits: int, colour: int, rows: np.ndarray[Any, Any]) -> bytes:
    """A PNG of big-endian numbers, which Pillow cannot write."""
    height, width = rows.shape[:2]

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_colours_of_16_bits_keep_the_upper_8() -> None:
    rows = np.array([[[0, 256, 65_535], [511, 512, 40_000]]], np.uint16)
    np.testing.assert_array_equal(decode(png(16, 2, rows)), rows >> 8)


def tiff(photometric: int, values: np.ndarray[Any, Any], bits: int = 0, **more: list[int]) -> bytes:
    """A TIFF of one row, shape (width, samples), in kinds that Pillow cannot write."""
    width, samples = values.shape
    kind = {"u": 1, "i": 2, "f": 3}[values.dtype.kind]
    raw = values.tobytes() if bits != 12 else bytes([0xFF, 0xF0, 0x00, 0x80, 0x0F, 0xFF])
    depth = bits or 8 * values.dtype.itemsize
    tags = {256: [width], 257: [1], 258: [depth] * samples, 259: [1], 262: [photometric], 273: [0]}
    tags |= {277: [samples], 278: [1], 279: [len(raw)], 339: [kind] * samples}
    tags |= {int(tag.removeprefix("tag")): held for tag, held in more.items()}
    after = 8 + 2 + 12 * len(tags) + 4
    entries, long = b"", b""
    for tag, held in sorted(tags.items()):
        body = struct.pack(f"<{len(held)}H", *held)
        if len(body) > 4:
            long += body
            body = struct.pack("<I", after + len(long) - len(body))
        entries += struct.pack("<HHI", tag, 3, len(held)) + body.ljust(4, b"\0")
    start = struct.pack("<HHI", 273, 3, 1) + struct.pack("<I", after + len(long))
    entries = entries.replace(struct.pack("<HHII", 273, 3, 1, 0), start)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4) + long + raw


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0], [128], [255]], "<u4"),
        np.array([[0], [128], [255]], "<i4"),
        np.array([[0], [70_000], [2**31 - 1]], "<u4"),
        np.array([[-5], [128], [32_767]], "<i2"),
        np.array([[0], [0.5], [1]], "<f4"),
    ],
)
def test_numbers_without_a_known_white_are_refused(values: Any) -> None:
    with pytest.raises(ImageError, match=r"^its pixels \([IF]\) .* white; save it with 8 or 16"):
        decode(tiff(1, values))


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
def test_values_of_8_bits_in_16_are_refused_rather_than_shown_as_black(data: bytes) -> None:
    with pytest.raises(ImageError, match="^all its values of 16 bits are below 256.* 8 bits"):
        decode(data)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_grey_of_16_bits_is_turned_as_its_camera_was(kind: str) -> None:
    values = np.array([[0, 512, 65_535]], np.uint16)
    shown = decode(written(Image.fromarray(values), kind, exif=exif(6)))
    np.testing.assert_array_equal(shown[..., 0], [[0], [2], [255]])


def test_a_dark_crop_of_16_bits_is_decoded() -> None:
    values = np.array([[0, 255, 65_535]], np.uint16)
    shown = decode(written(Image.fromarray(values), "PNG"), crop=np.array([0, 0, 2, 1]))
    np.testing.assert_array_equal(shown[..., 0], [[0, 0]])


@pytest.mark.parametrize(
    ("data", "shown"),
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
def test_grey_of_each_depth(data: bytes, shown: list[int]) -> None:
    np.testing.assert_array_equal(decode(data), np.repeat(shown, 3).reshape(1, -1, 3))


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (tiff(5, np.array([[0, 0, 0, 255], [0, 255, 255, 0]], "u1")), [[0, 0, 0], [255, 0, 0]]),
        (tiff(5, np.array([[0, 0, 0, 65_535]], "<u2")), [[0, 0, 0]]),
        (tiff(6, np.array([[255, 128, 128], [0, 128, 128]], "u1")), [[255] * 3, [0] * 3]),
        (tiff(8, np.array([[255, 0, 0], [0, 0, 0]], "u1")), [[255] * 3, [0] * 3]),
        (tiff(2, np.array([[9, 9, 9, 255], [0, 0, 0, 0]], "u1"), tag338=[1]), [[9] * 3, [255] * 3]),
        (
            tiff(3, np.array([[1, 255], [1, 0]], "u1"), tag338=[2], tag320=[0, 65_535] * 384),
            [[255] * 3, [255] * 3],
        ),
    ],
)
def test_colours_of_each_kind(data: bytes, shown: list[list[int]]) -> None:
    # A library of colour profiles turns Lab into RGB, and is off by one.
    np.testing.assert_allclose(decode(data)[0], np.array(shown, float), atol=1)


def with_key(data: bytes, *key: int) -> bytes:
    body = b"tRNS" + struct.pack(f">{len(key)}H", *key)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return data[:33] + chunk + data[33:]


def test_a_transparent_colour_of_16_bits_shows_the_background() -> None:
    levels = np.array([[0, 256, 65_535]], np.uint16)
    grey = with_key(png(16, 0, levels), 256)
    colours = with_key(png(16, 2, np.stack([levels] * 3, axis=-1)), 256, 256, 256)
    for data in (grey, colours):
        shown = decode(data, Decoding(background=(9, 9, 9)))
        np.testing.assert_array_equal(shown[..., 0], [[0, 9, 255]])


@pytest.mark.parametrize("frames", [1, 2])
@pytest.mark.parametrize("side", [2, 40])
def test_a_png_with_a_flipped_bit_is_refused_or_has_its_pixels(side: int, frames: int) -> None:
    chance = np.random.default_rng(side)
    pictures = [
        Image.fromarray(chance.integers(0, 256, (side, side, 3), dtype=np.uint8))
        for _ in range(frames)
    ]
    data = written(pictures[0], "PNG", save_all=frames > 1, append_images=pictures[1:])
    whole, refused = decode(data), 0
    for place in chance.choice(len(data) * 8, min(len(data) * 8, 600), replace=False):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        try:
            np.testing.assert_array_equal(decode(bytes(flipped)), whole)
        except ImageError:
            refused += 1
    assert refused > 500


def without_adobe(data: bytes) -> bytes:
    at = data.index(b"\xff\xee")
    length = struct.unpack(">H", data[at + 2 : at + 4])[0]
    return data[:at] + data[at + 2 + length :]


def test_cmyk_is_inverted_where_adobe_says_so_and_only_there() -> None:
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
def test_of_several_frames_the_first_counts(kind: str) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    more = {"lossless": True} if kind == "WEBP" else {}
    data = written(frames[0], kind, save_all=True, append_images=frames[1:], **more)
    assert Image.open(io.BytesIO(data)).n_frames == 3
    np.testing.assert_array_equal(decode(data)[1, 1], [255, 0, 0])


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    small = written(Image.new("1", (300, 200)), "PNG")
    reason = "it has 300 × 200 pixels, more than 59,999 in all"
    with pytest.raises(ImageError, match=f"^{reason}. To do: repair the file, or leave the im"):
        decode(small, Decoding(max_pixels=59_999))
    assert decode(small, Decoding(max_pixels=60_000)).shape == (200, 300, 3)


@pytest.mark.parametrize(
    ("side", "allowed", "reason"),
    [
        (12_000, 89_478_485, "it has 12000 × 12000 pixels, more than 89,478,485 in all"),
        (60_000, 89_478_485, "it has 3,600,000,000 pixels, more than 89,478,485 in all"),
        # Pillow's own limit, where ours is higher.
        (60_000, 1 << 40, "it has 3,600,000,000 pixels, more than 178,956,970 in all"),
    ],
)
def test_a_bomb_is_refused_whatever_pillow_thinks_of_it(
    side: int, allowed: int, reason: str
) -> None:
    data = bytearray(written(Image.new("1", (8, 8)), "PNG"))
    data[16:24] = struct.pack(">II", side, side)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    with pytest.raises(ImageError) as caught:
        decode(bytes(data), Decoding(max_pixels=allowed))
    assert caught.value.reason == reason


def test_a_bomb_that_pillow_says_no_size_of_is_refused_with_the_limit() -> None:
    assert of_bomb(ValueError("a bomb"), 5_000) == "it has more than 5,000 pixels"


@pytest.mark.parametrize("size", [(1, 20_000), (20_000, 1), (3, 303)])
def test_a_strip_is_refused(size: tuple[int, int]) -> None:
    reason = f"{size[0]} × {size[1]} pixels are a strip: one side is more than 100 times the other"
    with pytest.raises(ImageError, match=f"^{reason}"):
        decode(written(Image.new("L", size), "PNG"))


def test_a_long_picture_that_is_no_strip_is_decoded() -> None:
    data = written(Image.new("L", (1, 100)), "PNG")
    assert decode(data).shape == (100, 1, 3)
    with pytest.raises(ImageError, match=r"more than 50 times the other"):
        decode(data, Decoding(max_ratio=50))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM"])
def test_a_truncated_file_is_refused(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = written(Image.fromarray(noise), kind)
    assert decode(data).shape == (64, 64, 3)
    with pytest.raises(ImageError, match=r"^it is (damaged|no picture of a known format)"):
        decode(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"just text", "it is no picture of a known format (JPEG, MPO, PNG, GIF, WEBP, BMP, DIB,"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "it is no picture of a known"),
        (b"\xff\xd8\xff", "it is no picture of a known format"),
    ],
)
def test_what_is_no_picture_is_said_to_be_none(data: bytes, reason: str) -> None:
    with pytest.raises(ImageError, match=f"^{re.escape(reason)}") as caught:
        decode(data)
    assert isinstance(caught.value, DataError)
    assert str(caught.value).startswith(caught.value.reason)


def test_a_crop_is_cut_from_the_picture_turned_upright() -> None:
    data = written(Image.fromarray(CORNERS), "PNG", exif=exif(6))
    cut = decode(data, crop=np.array([0, 1, 2, 3]))
    np.testing.assert_array_equal(cut, UPRIGHT[6][1:3, 0:2])


@pytest.mark.parametrize("crop", [[0, 0, 4, 2], [0, 0, 3, 3], [2, 0, 2, 1], [-1, 0, 1, 1]])
def test_a_crop_that_leaves_the_picture_is_refused(crop: list[int]) -> None:
    left, top, right, bottom = crop
    reason = (
        f"the crop from ({left}, {top}) to ({right}, {bottom}) does not lie inside its 3 × 2 pixels"
    )
    with pytest.raises(ImageError, match=f"^{re.escape(reason)}"):
        decode(written(Image.fromarray(CORNERS), "PNG"), crop=np.array(crop))


def test_a_crop_that_is_a_strip_is_refused_and_one_out_of_a_strip_is_not() -> None:
    data = written(Image.new("L", (500, 4)), "PNG")
    assert decode(data, crop=np.array([0, 0, 8, 4])).shape == (4, 8, 3)
    with pytest.raises(ImageError, match=r"^500 × 1 pixels are a strip"):
        decode(data, crop=np.array([0, 0, 500, 1]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_pixels": 0},
        {"max_ratio": 0.5},
        {"background": (0, 0, 256)},
        {"background": (0, 0)},
    ],
)
def test_settings_out_of_range_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"expected 1 or more, 1 or more, and three numbers from"):
        Decoding(**wrong)


def test_the_facts_hold_every_setting() -> None:
    assert Decoding(5, 7.0, (1, 2, 3)).facts == {
        "version": 2,
        "max_pixels": 5,
        "max_ratio": 7.0,
        "background": [1, 2, 3],
    }


def test_a_jpeg_that_breaks_off_in_its_header_is_told_by_pillow() -> None:
    data = written(Image.new("RGB", (64, 64), (9, 200, 30)), "JPEG")
    with pytest.raises(ImageError, match="it is damaged: OSError: Truncated File Read"):
        decode(data[: len(data) // 2])
