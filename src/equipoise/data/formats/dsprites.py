"""dSprites: binary pictures of a square, an ellipse or a heart, each painted in a colour.

Source: github.com/google-deepmind/dsprites-dataset (Apache-2.0),
`dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz`: `imgs` are n pictures of 0 and 1, and
`latents_classes` their colour, shape, scale, orientation, x and y as numbers. All are white on
black there. SkewSize (Albuquerque et al. 2024) paints them red, green and blue; here each picture
has one of the three by chance, whatever its shape.
"""

import io
import zipfile
from functools import cache
from pathlib import Path

import numpy as np

from equipoise.core import AnyArray, Bytes, DataError, Integers
from equipoise.data.files import hash_file
from equipoise.data.formats.reading import RowPictures, data_format
from equipoise.data.image_set import Gathered, ImageSet, image_set
from equipoise.stats.streams import stream

SHAPES = ("square", "ellipse", "heart")
COLOURS = ("red", "green", "blue")
_SIDE = 64


def _rows(path: Path, *, images: int | None = None, seed: int = 0) -> RowPictures:  # noqa: ARG001 - as below
    @cache
    def packed() -> tuple[Bytes, Integers]:
        """Return all pictures, 8 pixels in a byte so that they fit, and the colour of each."""
        whole = _array(path, "imgs").reshape(-1, _SIDE * _SIDE)
        return np.packbits(whole, axis=1), _colours(len(whole), seed)

    def read(name: str) -> bytes:
        """Return one picture, painted, as PNG."""
        from PIL import Image

        bits, colours = packed()
        pixels = np.zeros((_SIDE, _SIDE, len(COLOURS)), np.uint8)
        shown = np.unpackbits(bits[int(name)]).reshape(_SIDE, _SIDE)
        pixels[..., colours[int(name)]] = 255 * shown
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
    latents = _array(Path(path), "latents_classes")
    n = len(latents)
    if latents.shape[1:] != (6,) or not np.isin(latents[:, 1], range(len(SHAPES))).all():
        raise _refused(path, f"latents_classes of shape {latents.shape} hold other values")
    kept = np.sort(stream(seed, "sprites").permutation(n)[:images])
    _, shape, *others = latents[kept].T.tolist()
    columns: dict[str, list[str | None]] = {
        "shape": [SHAPES[one] for one in shape],
        "colour": [COLOURS[one] for one in _colours(n, seed)[kept]],
    }
    for name, own in zip(("scale", "orientation", "x", "y"), others, strict=True):
        columns[name] = [*map(str, own)]
    ids = [f"{row:0{len(str(n - 1))}d}" for row in kept]
    return image_set(
        Gathered(ids, columns),
        name=str(path),
        format="dSprites",
        inputs={str(path): {**hash_file(Path(path), ".npz"), "rows": n}},
        counts={"images": len(ids), "rows": n},
    )


def _colours(n: int, seed: int) -> Integers:
    return stream(seed, "colours").integers(0, len(COLOURS), n)


def _array(path: Path, name: str) -> AnyArray:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return np.asarray(arrays[name])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise _refused(path, f"{name} can't be read: {error}") from None


def _refused(path: Path | str, what: str) -> DataError:
    return DataError(
        what,
        file=str(path),
        expected="dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
        fix="name this file, or download it again",
    )
