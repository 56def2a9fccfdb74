import io
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.Image import Exif

from equipoise.core.errors import MissingExtraError
from equipoise.evidence import ImageError, decode

HEIGHT, WIDTH = 240, 320
CROP = np.array([8, 16, 200, 120])
ENDLESS = "it is damaged: it breaks off: the marker of its end is missing"


def photo(seed: int = 0, height: int = HEIGHT, width: int = WIDTH) -> Image.Image:
    """Smooth shapes and noise, as a photograph has them."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [x / 17 + y / 40, y / 23 - x / 60, (x + y) / 29]
    noise = 12 * rng.standard_normal((height, width, 3))
    levels = 128 + 80 * np.sin(np.stack(waves, axis=-1)) + noise
    return Image.fromarray(levels.clip(0, 255).astype(np.uint8))


def written(image: Image.Image, **more: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", **({"quality": 85} | more))
    return file.getvalue()


def turned(orientation: int) -> Exif:
    found = Exif()
    found[0x0112] = orientation
    return found


KINDS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "progressive": {"progressive": True},
    "turned": {"exif": turned(6)},
    "turned progressive": {"exif": turned(7), "progressive": True},
    "grey": {"mode": "L"},
    "grey progressive": {"mode": "L", "progressive": True},
    "cropped": {"crop": CROP},
    "turned and cropped": {"crop": CROP, "exif": turned(8)},
    "CMYK": {"mode": "CMYK"},
    "stored as RGB": {"keep_rgb": True},
    "own codes": {"optimize": True},
    "with restarts": {"restart_marker_rows": 1},
}


def made(kind: str, image: Image.Image | None = None) -> tuple[bytes, Any]:
    """A sound picture of a kind, and what is to be cut out of it."""
    how = dict(KINDS[kind])
    crop, mode = how.pop("crop", None), how.pop("mode", "RGB")
    return written((image or photo()).convert(mode), **how), crop


def by_pillow(data: bytes, crop: Any = None) -> Any:
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    return np.asarray((image if crop is None else image.crop(crop.tolist())).convert("RGB"))


def lying(data: bytes, height: int = 0, width: int = 0) -> bytes:
    """The same file, whose header tells of so many rows or columns more."""
    found = re.search(rb"\xff[\xc0-\xc2]\x00[\x0b\x11\x14]\x08", data)
    assert found
    at = found.end()
    sides = struct.unpack(">HH", data[at : at + 4])
    return data[:at] + struct.pack(">HH", sides[0] + height, sides[1] + width) + data[at + 4 :]


def scan(data: bytes) -> int:
    """Where the first scan begins."""
    return data.index(b"\xff\xda") + 14


DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "cut": lambda data, at: data[:at],
    "cut and ended": lambda data, at: data[:at] + b"\xff\xd9",
    "written over": lambda data, at: data[:at] + bytes(2000) + data[at + 2000 :],
    "zeros put in": lambda data, at: data[:at] + bytes(2000) + data[at:],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_jpeg_is_refused_wherever_it_is_damaged(kind: str, damage: str) -> None:
    rng = np.random.default_rng(0)
    for seed in range(4):
        data, crop = made(kind, photo(seed))
        places = rng.integers(scan(data), len(data) - 2100, 6)
        for at in (len(data) // 2, *places.tolist()):
            with pytest.raises(ImageError, match=r"^it is damaged: \w+ "):
                decode(DAMAGES[damage](data, at), crop=crop)


@pytest.mark.parametrize("lie", [{"height": 64}, {"height": -64}, {"width": 64}, {"width": -64}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_jpeg_whose_header_lies_about_its_size_is_refused(kind: str, lie: Any) -> None:
    data, crop = made(kind)
    with pytest.raises(ImageError, match=r"^it is damaged: \w+ "):
        decode(lying(data, **lie), crop=crop)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_jpeg_has_pillows_levels(kind: str) -> None:
    for seed in range(4):
        data, crop = made(kind, photo(seed, 201 + 13 * seed, 221 + 17 * seed))
        found = decode(data, crop=crop)
        np.testing.assert_array_equal(found, by_pillow(data, crop))
        assert found.flags.c_contiguous
        assert crop is None or found.base is None or found.base.nbytes == found.nbytes


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_each_turn_is_pillows(mode: str, orientation: int) -> None:
    data = written(photo().convert(mode), exif=turned(orientation))
    crop = np.array([3, 5, 100, 90])
    np.testing.assert_array_equal(decode(data), by_pillow(data))
    np.testing.assert_array_equal(decode(data, crop=crop), by_pillow(data, crop))


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("size", [(5, 7), (37, 61), (64, 48)])
@pytest.mark.parametrize("progressive", [False, True])
def test_either_decoder_of_jpeg_gives_the_same_levels(
    monkeypatch: pytest.MonkeyPatch, sampling: str, size: tuple[int, int], progressive: bool
) -> None:
    """So which of the two ran need not be in the key of what is made from the pixels."""
    import simplejpeg

    levels = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    picture = Image.fromarray(levels)
    data = written(picture, quality=90, subsampling=sampling, progressive=progressive)
    calls = []
    fast = simplejpeg.decode_jpeg
    monkeypatch.setattr(simplejpeg, "decode_jpeg", lambda *a: calls.append(1) or fast(*a))
    found = decode(data)
    assert calls == [1]
    np.testing.assert_array_equal(found, np.asarray(Image.open(io.BytesIO(data))))


def refusal(data: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        decode(data)
    return caught.value.reason


def test_the_reason_says_what_is_wrong() -> None:
    data, _ = made("baseline")
    half = len(data) // 2
    short = "it is damaged: it breaks off before the last pixel of the size in its header "
    assert refusal(data[:half]) == ENDLESS
    early = "(Corrupt JPEG data: premature end of data segment)"
    assert refusal(data[:half] + b"\xff\xd9") == short + early
    assert refusal(lying(data, height=64)) == short + early
    much = (
        r"it is damaged: it holds more data than the size in its header needs "
        r"\(Corrupt JPEG data: \d+ extraneous bytes before marker 0xd9\)"
    )
    assert re.fullmatch(much, refusal(lying(data, height=-64)))
    assert re.fullmatch(much, refusal(lying(data, width=-64)))
    assert re.fullmatch(much, refusal(data[:half] + bytes(2000) + data[half:]))


def test_a_hole_of_zeros_is_refused_where_every_code_in_it_is_known() -> None:
    """Written over a scan, zeros can decode to as many blocks as were there before."""
    reasons = []
    for seed in range(4):
        for kind in ("baseline", "progressive", "grey progressive"):
            data, _ = made(kind, photo(seed))
            for at in range(scan(data), len(data) - 1100, 997):
                reasons.append(refusal(data[:at] + bytes(1000) + data[at + 1000 :]))
    zeros = re.compile(r"it is damaged: its data are zeros from byte \d+ on")
    assert any(map(zeros.fullmatch, reasons))


def test_a_progressive_jpeg_without_its_last_scans_is_refused() -> None:
    """The decoder takes it for a whole one of lower quality."""
    data, _ = made("progressive")
    scans = [found.start() for found in re.finditer(rb"\xff\xda", data)]
    assert len(scans) == 10
    missing = "it is damaged: it breaks off: scans are missing that its pixels need"
    for start in scans[1:]:
        tables = [found.start() for found in re.finditer(rb"\xff\xc4", data[:start])]
        after = data[tables[-1] :].index(b"\xff\xda") + tables[-1] == start
        end = tables[-1] if after else start
        assert refusal(data[:end] + b"\xff\xd9") == missing


def in_three_scans() -> bytes:
    """8 × 8 pixels of one grey; each colour has a scan of its own, which no one has to be."""
    data = written(Image.new("RGB", (8, 8)), subsampling="4:4:4")
    head = data[: data.index(b"\xff\xda")]
    # No difference, end of block, ones to fill the byte.
    scans = [(1, 0x00, b"\x2b"), (2, 0x11, b"\x0f"), (3, 0x11, b"\x0f")]
    for component, tables, codes in scans:
        head += segment(0xDA, bytes([1, component, tables, 0, 63, 0])) + codes
    return head + b"\xff\xd9"


def test_a_jpeg_without_the_scan_of_a_colour_is_refused() -> None:
    data = in_three_scans()
    assert decode(data).min() == decode(data).max() == 128
    for start in [found.start() for found in re.finditer(rb"\xff\xda", data)][1:]:
        missing = "it is damaged: it breaks off: scans are missing that its pixels need"
        assert refusal(data[:start] + b"\xff\xd9") == missing


def flat(size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, "white")
    image.paste((200, 30, 30), (5, 5, size[0] // 3, size[1] // 3))
    return image


@pytest.mark.parametrize("more", [{}, {"optimize": True}, {"progressive": True}])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("quality", [1, 50, 100])
def test_zeros_that_mean_a_flat_area_are_taken(mode: str, more: Any, quality: int) -> None:
    zeros = 0
    for image in (Image.new("RGB", (1500, 1200), "white"), flat((1500, 1200))):
        data = written(image.convert(mode), quality=quality, **more)
        zeros += bytes(256) in data
        np.testing.assert_array_equal(decode(data), by_pillow(data))
    assert zeros or not more


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "after", [b"\0", b"trailing text" * 99, bytes(5000), b"\xff\xd8\xff\xd9", b"\xff" * 50]
)
def test_bytes_after_the_end_of_the_picture_are_taken(kind: str, after: bytes) -> None:
    data, crop = made(kind)
    np.testing.assert_array_equal(decode(data + after, crop=crop), by_pillow(data, crop))


def test_another_picture_after_the_first_is_taken() -> None:
    data, _ = made("baseline")
    np.testing.assert_array_equal(decode(data + data), by_pillow(data))
    file = io.BytesIO()
    photo().save(file, "MPO", save_all=True, append_images=[photo(1)], quality=85)
    both = file.getvalue()
    assert Image.open(io.BytesIO(both)).format == "MPO"
    np.testing.assert_array_equal(decode(both), by_pillow(both))
    with pytest.raises(ImageError, match="^it is damaged: it holds more data than the size in its"):
        decode(lying(both, height=-64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padding", [bytes(1), bytes(8), bytes(3000), b"\xff" * 9])
def test_padding_between_the_last_pixel_and_the_end_is_taken(kind: str, padding: bytes) -> None:
    data, crop = made(kind)
    padded = data[:-2] + padding + data[-2:]
    np.testing.assert_array_equal(decode(padded, crop=crop), by_pillow(data, crop))


@pytest.mark.parametrize("kind", KINDS)
def test_other_bytes_before_the_end_are_data_that_nothing_needs(kind: str) -> None:
    """Left over where bytes were added before; what lies in between is in the wrong place."""
    data, crop = made(kind)
    with pytest.raises(ImageError, match="^it is damaged: it holds more data than the size in its"):
        decode(data[:-2] + b"more" * 20 + data[-2:], crop=crop)


def test_zeros_written_over_the_end_are_no_padding() -> None:
    for seed in range(4):
        for kind in ("baseline", "grey", "progressive"):
            data, _ = made(kind, photo(seed))
            for length in (200, 2000):
                reason = refusal(data[: -2 - length] + bytes(length) + data[-2:])
                assert reason.startswith("it is damaged: it")


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def slips(data: bytes) -> dict[str, bytes]:
    """The same picture, with slips of the header that move no pixel."""
    at = data.index(b"\xff\xda")
    adobe = segment(0xEE, b"Adobe\0\x64\0\0\0\0\x07")
    return {
        "another revision of JFIF": data[:11] + b"\x09" + data[12:],
        "another transform of Adobe's": data[:2] + adobe + data[20:],
        "half a colour profile": data[:2] + segment(0xE2, b"ICC_PROFILE\0\5\2half") + data[2:],
        "bytes between two segments": data[:20] + b"\0\0\0" + data[20:],
        "the range of a sequential scan": data[: at + 11] + bytes(3) + data[at + 14 :],
    }


SLIPS = sorted(slips(written(photo())))


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_of_the_header_that_move_no_pixel_are_taken(slip: str) -> None:
    data = written(photo())
    odd = slips(data)[slip]
    np.testing.assert_array_equal(decode(odd), by_pillow(data))
    np.testing.assert_array_equal(by_pillow(odd), by_pillow(data))


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_hides_no_damage(slip: str) -> None:
    odd = slips(written(photo()))[slip]
    reason = refusal(odd[: len(odd) // 2] + b"\xff\xd9")
    assert "(Corrupt JPEG data: premature end of data segment)" in reason
    assert refusal(odd[: len(odd) // 2]) == ENDLESS


def unnamed_subsampling() -> bytes:
    """32 × 16 pixels of one grey: eight blocks of brightness for one of each colour."""
    data = written(Image.new("RGB", (32, 16)), subsampling="4:4:4")
    frame = data.index(b"\xff\xc0")
    head = data[: frame + 11] + b"\x42" + data[frame + 12 : scan(data)]
    codes = "001010" * 8 + "0000" * 2  # no difference, end of block
    return head + int(codes, 2).to_bytes(7) + b"\xff\xd9"


def test_a_subsampling_that_the_strict_decoder_cannot_name_is_read_by_pillow() -> None:
    data = unnamed_subsampling()
    levels = decode(data)
    assert levels.shape == (16, 32, 3)
    assert levels.min() == levels.max() == 128
    assert refusal(data[:-2]) == ENDLESS


def test_a_jpeg_needs_the_strict_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    told = r"^simplejpeg is not installed. To do: pip install 'equipoise\[images\]'.$"
    with pytest.raises(MissingExtraError, match=told):
        decode(written(photo()))
