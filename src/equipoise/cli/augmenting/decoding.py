"""Images of an experiment, decoded once: at one size, with the faces that a detector found.

What came of an image is kept by the content of its file, so that another run decodes and searches
only images that none has seen, whatever tables and sets they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.kinds import Progress
from equipoise.cli.augmenting.packs import Pack, add_pack, empty_pack, read_packs
from equipoise.evidence import ImageError, Pictures, decode
from equipoise.mitigate.augmentation import Regions

Image = NDArray[np.uint8]
Detector = Callable[[Sequence[Image]], Regions]

_AT_ONCE = 64


@dataclass(frozen=True)
class Failed:
    """An image that cannot be used.

    Attributes
    ----------
    place : int
        Among the images asked for.
    reason : str
    """

    place: int
    reason: str


@dataclass(frozen=True, eq=False)
class Decoded:
    """What came of n images.

    Attributes
    ----------
    digests : ndarray of uint8, shape (n, 32)
        SHA-256 of each file.
    pixels : ndarray of uint8, shape (n, size, size, 3)
    shapes : ndarray of int64, shape (n, 2)
        Height and width before scaling.
    boxes : ndarray of int64, shape (n, 4)
        Of the face found, in pixels before scaling; zeros where none was found or sought.
    """

    digests: NDArray[np.uint8]
    pixels: NDArray[np.uint8]
    shapes: NDArray[np.int64]
    boxes: NDArray[np.int64]

    @classmethod
    def empty(cls, n: int, size: int) -> Decoded:
        """Return room for n images."""
        return cls(
            np.zeros((n, 32), np.uint8), np.zeros((n, size, size, 3), np.uint8),
            np.zeros((n, 2), np.int64), np.zeros((n, 4), np.int64),
        )  # fmt: skip

    def take(self, places: NDArray[Any]) -> Decoded:
        """Return some of the images."""
        return Decoded(*(values[places] for values in vars(self).values()))


def decoded_once(
    pictures: Pictures,
    size: int,
    detector: Detector | None,
    kept: Path,
    told: Progress | None = None,
    *,
    step: str = "reading images",
) -> tuple[Decoded, tuple[Failed, ...]]:
    """Return the images that can be used, scaled, and why the others cannot.

    Parameters
    ----------
    pictures : Pictures
    size : int
        Side in pixels to which they are scaled.
    detector : callable, optional
        Finds the face of each of some images.
    kept : Path
        Folder of what earlier runs with the same size and detector decoded, for whatever table;
        what is new is added.
    told, step
        Progress, and what it says.

    Returns
    -------
    Decoded
        Of the images that can be used, in their order.
    tuple of Failed
        The others.

    Raises
    ------
    RunError
        When nothing can be written there.
    """
    packs = read_packs(kept, empty_pack(0, size).dtype)
    known = {
        bytes(digest): (pack, row)
        for pack in packs.values()
        for row, digest in enumerate(np.array(pack["digests"]))
    }
    found = Decoded.empty(len(pictures), size)
    failed: list[Failed] = []
    fresh: list[int] = []
    for start in range(0, len(pictures), _AT_ONCE):
        if told is not None:
            told(step, start, len(pictures))
        new: dict[int, Image] = {}
        for place in range(start, min(start + _AT_ONCE, len(pictures))):
            try:
                data = pictures.read(place)
                digest = sha256(data).digest()
                if digest in known:
                    pack, row = known[digest]
                    _copy(found, place, pack[row])
                    continue
                new[place] = decode(data)
                found.digests[place] = np.frombuffer(digest, np.uint8)
            except OSError as error:
                failed.append(Failed(place, error.strerror or str(error)))
            except ImageError as error:
                failed.append(Failed(place, error.reason))
        _fill(found, new, size, detector)
        fresh += new
    lost = {one.place for one in failed}
    sound = found.take(np.array([place not in lost for place in range(len(pictures))], bool))
    if fresh:
        add_pack(kept, _packed(found.take(np.array(fresh)), size), packs)
    return sound, tuple(failed)


def _copy(found: Decoded, place: int, one: np.void) -> None:
    for name, values in vars(found).items():
        values[place] = one[name]


def _packed(decoded: Decoded, size: int) -> Pack:
    """Return images as a pack: each content once, however many files have it."""
    _, places = np.unique(decoded.digests, axis=0, return_index=True)
    pack = empty_pack(len(places), size)
    for name, values in vars(decoded).items():
        pack[name] = values[places]
    return pack


def _fill(found: Decoded, new: dict[int, Image], size: int, detector: Detector | None) -> None:
    """Put images that were just decoded in their places."""
    from PIL import Image as Pillow

    if detector is not None and new:
        found.boxes[[*new]] = detector([*new.values()]).boxes
    for place, image in new.items():
        picture = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
        found.pixels[place] = np.asarray(picture)
        found.shapes[place] = image.shape[:2]
