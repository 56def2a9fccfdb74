"""dSprites: binary pictures of a square, an ellipse or a heart, each painted in a colour.

Source: github.com/google-deepmind/dsprites-dataset (Apache-2.0),
`dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`: `imgs` are n pictures of 0 and 1, and
`latents_classes` their colour, shape, scale, orientation, x and y as numbers. All are white on
black there. SkewSize (Albuquerque et al. 2024) paints them red, green and blue; here each picture
has one of the three by chance, whatever its shape.
"""

import io
import zipfile
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from equipoise.core import AnyArray, Bytes, DataError, Integers
from equipoise.core.types import FileFacts
from equipoise.data.files import hash_file
from equipoise.data.formats.reading import RowPictures, data_format
from equipoise.data.image_set import Gathered, ImageSet, image_set
from equipoise.stats.streams import stream

SHAPES = ("square", "ellipse", "heart")
COLOURS = ("red", "green", "blue")
_LATENTS = ("scale", "orientation", "x", "y")
_SIDE, _AT_ONCE = 64, 4096
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class _File:
    """The arrays of a file, each read when it is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.colours = cache(self._colours)

    @cached_property
    def classes(self) -> AnyArray:
        """Numbers of the latents, shape (n, 6)."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open("latents_classes.npy") as file:
                found: AnyArray = npy.read_array(file, allow_pickle=False)
        except _UNREADABLE as error:
            raise self.refused(f"no latents can be read: {error}") from None
        whole = found.ndim == 2 and found.shape[1] == 6 and found.dtype.kind in "iu" and len(found)
        if not whole or not np.isin(found[:, 1], range(len(SHAPES))).all():
            raise self.refused(f"latents_classes of shape {found.shape} hold other values")
        return found

    @cached_property
    def pictures(self) -> Bytes:
        """All pictures, 8 pixels in a byte, so that they take an eighth of the memory."""
        n, parts = len(self.classes), []
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open("imgs.npy") as file:
                npy.read_magic(file)
                shape, _, dtype = npy.read_array_header_1_0(file)
                if shape != (n, _SIDE, _SIDE) or dtype != np.uint8:
                    raise self.refused(f"imgs of shape {shape}, {dtype}")
                for start in range(0, n, _AT_ONCE):
                    many = min(_AT_ONCE, n - start)
                    block = np.frombuffer(file.read(many * _SIDE * _SIDE), np.uint8)
                    parts.append(np.packbits(block.reshape(many, -1), axis=1))
        except _UNREADABLE as error:
            raise self.refused(f"no pictures can be read: {error}") from None
        return np.concatenate(parts)

    def _colours(self, seed: int) -> Integers:
        """Return the number of the colour of each row."""
        return stream(seed, "colours").integers(0, len(COLOURS), len(self.classes))

    def refused(self, what: str) -> DataError:
        """Return the error of another file."""
        return DataError(
            what,
            file=str(self.path),
            expected="dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            fix="name this file, or download it again",
        )


def _rows(path: Path, *, images: int | None = None, seed: int = 0) -> RowPictures:  # noqa: ARG001 - as below
    file = _File(path)

    def read(name: str) -> bytes:
        """Return one picture, painted, as PNG."""
        from PIL import Image

        row = int(name)
        pixels = np.zeros((_SIDE, _SIDE, len(COLOURS)), np.uint8)
        shown = np.unpackbits(file.pictures[row]).reshape(_SIDE, _SIDE)
        pixels[..., file.colours(seed)[row]] = 255 * shown
        sink = io.BytesIO()
        Image.fromarray(pixels).save(sink, "PNG", compress_level=1)
        return sink.getvalue()

    return RowPictures(read=read)


@data_format("dsprites", rows=_rows)
def read_dsprites(path: Path | str, *, images: int | None = None, seed: int = 0) -> ImageSet:
    """Read what the file says of its pictures.

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
        When the file is another one.
    """
    file = _File(Path(path))
    n = len(file.classes)
    kept = np.sort(stream(seed, "sprites").permutation(n)[:images])
    latents = file.classes[kept].T
    columns: dict[str, list[str | None]] = {
        "shape": [SHAPES[one] for one in latents[1].tolist()],
        "colour": [COLOURS[one] for one in file.colours(seed)[kept].tolist()],
        **{
            name: [*map(str, own)] for name, own in zip(_LATENTS, latents[2:].tolist(), strict=True)
        },
    }
    ids = [f"{row:0{len(str(n - 1))}d}" for row in kept.tolist()]
    inputs: dict[str, FileFacts] = {str(path): {**hash_file(file.path, ".npz"), "rows": n}}
    return image_set(
        Gathered(ids, columns), name=str(path), format="dSprites", inputs=inputs,
        counts={"images": len(ids), "rows": n},
    )  # fmt: skip
