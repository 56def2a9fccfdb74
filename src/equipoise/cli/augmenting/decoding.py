"""Images of an experiment, decoded once: at one size, with the faces that a detector found.

What came of an image is kept by the content of its file, so that a second run decodes and
searches only what is new or changed.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.kinds import Progress
from equipoise.core.errors import RunError
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
        File of what an earlier run with the same size and detector decoded; written anew where
        something is new. A damaged one is as none.
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
    before = _read(kept, size)
    known = {bytes(digest): place for place, digest in enumerate(before.digests)}
    found = Decoded.empty(len(pictures), size)
    failed: list[Failed] = []
    fresh = 0
    for start in range(0, len(pictures), _AT_ONCE):
        if told is not None:
            told(step, start, len(pictures))
        new: dict[int, Image] = {}
        for place in range(start, min(start + _AT_ONCE, len(pictures))):
            try:
                data = pictures.read(place)
                digest = sha256(data).digest()
                if digest in known:
                    _copy(found, place, before, known[digest])
                    continue
                new[place] = decode(data)
                found.digests[place] = np.frombuffer(digest, np.uint8)
            except OSError as error:
                failed.append(Failed(place, error.strerror or str(error)))
            except ImageError as error:
                failed.append(Failed(place, error.reason))
        _fill(found, new, size, detector)
        fresh += len(new)
    lost = {one.place for one in failed}
    sound = found.take(np.array([place not in lost for place in range(len(pictures))], bool))
    if fresh:
        _write(kept, sound)
    return sound, tuple(failed)


def _copy(found: Decoded, place: int, before: Decoded, known: int) -> None:
    for name, values in vars(before).items():
        getattr(found, name)[place] = values[known]


def _fill(found: Decoded, new: dict[int, Image], size: int, detector: Detector | None) -> None:
    """Put images that were just decoded in their places."""
    from PIL import Image as Pillow

    if detector is not None and new:
        found.boxes[[*new]] = detector([*new.values()]).boxes
    for place, image in new.items():
        picture = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
        found.pixels[place] = np.asarray(picture)
        found.shapes[place] = image.shape[:2]


def _read(kept: Path, size: int) -> Decoded:
    nothing = Decoded.empty(0, size)
    try:
        with kept.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            read = Decoded(*(file[name] for name in vars(nothing)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return nothing
    alike = all(
        (one.dtype, one.shape) == (other.dtype, (len(read.digests), *other.shape[1:]))
        for one, other in zip(vars(read).values(), vars(nothing).values(), strict=True)
    )
    return read if alike else nothing


def _write(kept: Path, sound: Decoded) -> None:
    """Write what was decoded under another name first: what lies there is whole."""
    partial = kept.with_name(f"{kept.name}.{os.getpid()}.partial")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.savez(file, **vars(sound))
        partial.replace(kept)
    except OSError as error:
        raise RunError(
            f"{kept}: decoded images cannot be kept there ({error.strerror or error}). To do: free "
            "space, or name another store"
        ) from None
    finally:
        partial.unlink(missing_ok=True)
