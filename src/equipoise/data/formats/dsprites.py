"""dSprites: binary pictures of a shape, each painted in a random colour.

Source: github.com/google-deepmind/dsprites-dataset (Apache-2.0),
`dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`: `imgs` are n pictures of 0 and 1, and
`latents_classes` their colour, shape, scale, orientation, x and y as numbers. All are white on
black there. SkewSize (Albuquerque et al. 2024) paints them red, green and blue; here each picture
has one of the three by chance, whatever its shape.
"""

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from equipoise.core import Bytes, DataError, InputError, Integers
from equipoise.data.arrays import Members, opened_members
from equipoise.data.files import hash_file
from equipoise.data.formats.reading import RowPictures, data_format
from equipoise.data.image_set import ImageRecords, ImageSet, image_set
from equipoise.stats.streams import stream

SHAPES = ("square", "ellipse", "heart")
COLOURS = ("red", "green", "blue")
MOST = 737_280
"""Pictures of the file: 3 GB of pixels, of which a few MB at a time are in memory."""
_SIDE = 64
_AT_ONCE = 1024
_BITS = (np.dtype(np.uint8), np.dtype(np.int8), np.dtype(bool))
_IMAGES, _LATENTS = "imgs", "latents_classes"


@dataclass(frozen=True)
class _Sprites:
    """Pictures in memory, 8 pixels in a byte.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Their rows in the file, ascending.
    bits : ndarray of uint8, shape (n, 512)
    colours : ndarray of int64, shape (n,)
    """

    rows: Integers
    bits: Bytes
    colours: Integers

    def png(self, row: int) -> bytes:
        """Return a painted picture as PNG."""
        from PIL import Image

        place = int(np.searchsorted(self.rows, row))
        pixels = np.zeros((_SIDE, _SIDE, len(COLOURS)), np.uint8)
        sprite = np.unpackbits(self.bits[place]).reshape(_SIDE, _SIDE)
        pixels[..., self.colours[place]] = 255 * sprite
        sink = io.BytesIO()
        Image.fromarray(pixels).save(sink, "PNG", compress_level=1)
        return sink.getvalue()


def _rows(path: Path, *, images: int | None = None, seed: int = 0) -> RowPictures:
    @cache
    def sprites() -> _Sprites:
        with opened_members(path) as members:
            n = _pictures(members, path)
            rows = _sample_rows(n, images, seed)
            parts, start = [], 0
            for block in members.rows(_IMAGES, _AT_ONCE):
                first, last = np.searchsorted(rows, (start, start + len(block)))
                flat = block[rows[first:last] - start].reshape(-1, _SIDE * _SIDE)
                parts.append(np.packbits(flat.astype(bool), axis=1))
                start += len(block)
        return _Sprites(rows, np.concatenate(parts), _colours(n, seed)[rows])

    return RowPictures(read=lambda name: sprites().png(int(name)))


@data_format("dsprites", rows=_rows)
def read_dsprites(path: Path | str, *, images: int | None = None, seed: int = 0) -> ImageSet:
    """Read the shape, colour and latent values of the pictures.

    Parameters
    ----------
    path : path
    images : int, optional
        How many pictures take part, drawn by the seed; all unless given.
    seed : int
        Of the colours and this draw.

    Returns
    -------
    ImageSet
        With the columns `shape`, `colour`, `scale`, `orientation`, `x` and `y`, the last four as
        numbers of their values. Ids are the numbers of the rows. Counts: "images", and "rows" of
        the file.

    Raises
    ------
    DataError
        When the file is damaged or another one.
    InputError
        When no picture is to take part.
    """
    if images is not None and images < 1:
        raise InputError(f"images is {images}; expected at least 1, or none for all")
    latents = _latents(Path(path))
    n = len(latents)
    rows = _sample_rows(n, images, seed)
    _, shape, *latent_columns = latents[rows].T.tolist()
    columns: dict[str, list[str | None]] = {
        "shape": [SHAPES[code] for code in shape],
        "colour": [COLOURS[code] for code in _colours(n, seed)[rows]],
    }
    for name, values in zip(("scale", "orientation", "x", "y"), latent_columns, strict=True):
        columns[name] = [*map(str, values)]
    ids = [f"{row:0{len(str(n - 1))}d}" for row in rows]
    return image_set(
        ImageRecords(ids, columns),
        name=str(path),
        format="dSprites",
        inputs={str(path): {**hash_file(Path(path), ".npz"), "rows": n}},
        counts={"images": len(ids), "rows": n},
    )


def _colours(n: int, seed: int) -> Integers:
    return stream(seed, "colours").integers(0, len(COLOURS), n)


def _sample_rows(n: int, images: int | None, seed: int) -> Integers:
    return np.sort(stream(seed, "sprites").permutation(n)[:images])


def _latents(path: Path) -> Integers:
    """Return colour, shape, scale, orientation, x and y of each picture, shape (n, 6)."""
    with opened_members(path) as members:
        n = _pictures(members, path)
        header = members.header(_LATENTS)
        if header.shape != (n, 6) or header.dtype.kind not in "iu":
            raise _file_error(path, f"{_LATENTS} have shape {header.shape} and type {header.dtype}")
        latents: Integers = members.read(_LATENTS).astype(np.int64)
    shapes = latents[:, 1]
    if not ((shapes >= 0) & (shapes < len(SHAPES))).all():
        raise _file_error(path, f"{_LATENTS} hold other shapes than {', '.join(SHAPES)}")
    return latents


def _pictures(members: Members, path: Path) -> int:
    """Return how many pictures there are; refuse other arrays before they are read."""
    if lacking := {_IMAGES, _LATENTS} - {*members.names}:
        raise _file_error(path, f"it lacks {' and '.join(sorted(lacking))}")
    header = members.header(_IMAGES)
    n, *size = header.shape or (0,)
    if size != [_SIDE, _SIDE] or header.dtype not in _BITS or not 0 < n <= MOST:
        raise _file_error(path, f"{_IMAGES} have shape {header.shape} and type {header.dtype}")
    return n


def _file_error(path: Path | str, problem: str) -> DataError:
    return DataError(
        problem,
        file=str(path),
        expected="dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz: at most "
        f"{MOST:,} pictures of {_SIDE} × {_SIDE}, with six numbers each",
        fix="name this file, or download it again",
    )
