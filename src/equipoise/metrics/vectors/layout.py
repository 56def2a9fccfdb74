"""Simple descriptors of what images of a set should share: the pose, and the background."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CELLS, ORIENTATIONS, BORDER = 4, 8, 0.15
_LUMINANCE = (0.2126, 0.7152, 0.0722)


def background_layout(
    images: Sequence[Any], *, boxes: Any = None, border: float = BORDER, cells: int = CELLS
) -> Floats:
    """Colours of the background, cell by cell of a grid over the image.

    Parameters
    ----------
    images : sequence of ndarray of uint8, shape (height, width, 3)
        Of any sizes.
    boxes : array-like, shape (n, 4), optional
        Left, top, right and bottom of the person, in pixels: all else is background. Without
        boxes the background is a band along the edges.
    border : float
        Width of that band, as a share of each side, above 0 and below 0.5.
    cells : int
        Cells along each side.

    Returns
    -------
    ndarray, shape (n, cells * cells * 3)
        Mean red, green and blue of a cell's background, from −1 to 1; 0 where it has none.

    Raises
    ------
    InputError
        When something is no image, boxes do not fit, or a number is outside its range.
    """
    return np.stack(
        [_means(image, ~inside, cells) for image, inside in _split(images, boxes, border, cells)]
    )


def pose_layout(
    images: Sequence[Any],
    *,
    boxes: Any = None,
    border: float = BORDER,
    cells: int = CELLS,
    orientations: int = ORIENTATIONS,
) -> Floats:
    """Directions of edges of what is shown, cell by cell: where its outlines are, not its colours.

    Parameters
    ----------
    images, boxes, border, cells
        As in `background_layout`; here the part inside counts, with a grid over it.
    orientations : int
        Bins of the direction of an edge, of 180 degrees.

    Returns
    -------
    ndarray, shape (n, cells * cells * orientations)
        Share of the image's edges (changes of luminance) of each cell and direction; zeros of an
        image without edges.

    Raises
    ------
    InputError
        As `background_layout`.

    References
    ----------
    Dalal & Triggs 2005, CVPR (histograms of oriented gradients), without blocks.
    """
    if orientations < 1:
        raise InputError(f"orientations={orientations}: expected 1 or more")
    return np.stack(
        [
            _edges(image, inside, cells, orientations)
            for image, inside in _split(images, boxes, border, cells)
        ]
    )


def _split(
    images: Sequence[Any], boxes: Any, border: float, cells: int
) -> Iterator[tuple[npt.NDArray[np.uint8], Bools]]:
    """Yield every image with the mask of what is not its background."""
    if not len(images):
        raise InputError("images: none; expected one or more")
    if not 0.0 < border < 0.5 or cells < 1:
        raise InputError(
            f"border={border}, cells={cells}: expected a border above 0 and below 0.5, and cells "
            "of 1 or more"
        )
    corners = None if boxes is None else np.asarray(boxes)
    if corners is not None and corners.shape != (len(images), 4):
        raise InputError(f"boxes: shape {corners.shape}; expected ({len(images)}, 4)")
    for place, given in enumerate(images):
        image = np.asarray(given)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise InputError(
                f"images: image {place + 1} is {image.dtype} of shape {image.shape}; expected "
                "uint8 (height, width, 3)"
            )
        height, width = image.shape[:2]
        if min(height, width) < cells:
            raise InputError(
                f"images: image {place + 1} has {height} × {width} pixels; expected {cells} or "
                "more each way, one for each cell"
            )
        margins = max(1, round(border * width)), max(1, round(border * height))
        box = [margins[0], margins[1], width - margins[0], height - margins[1]]
        if corners is not None:
            box = [int(one) for one in corners[place]]
        left, top, right, bottom = box
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            raise InputError(
                f"boxes: box {place + 1} is {box} of an image of {height} × {width} pixels; "
                "expected left < right and top < bottom within it"
            )
        inside = np.zeros((height, width), dtype=bool)
        inside[top:bottom, left:right] = True
        yield image, inside


def _cells(count: int, cells: int) -> npt.NDArray[np.int64]:
    """Return the cell of every row or column of pixels."""
    return np.arange(count) * cells // count


def _means(image: npt.NDArray[np.uint8], kept: Bools, cells: int) -> Floats:
    rows, columns = (_cells(count, cells) for count in image.shape[:2])
    place = (rows[:, None] * cells + columns[None, :])[kept]
    counts = np.bincount(place, minlength=cells * cells)
    values = image[kept].astype(np.float64) / 127.5 - 1.0
    sums = [np.bincount(place, weights=one, minlength=cells * cells) for one in values.T]
    return np.asarray((np.stack(sums, axis=1) / np.maximum(counts, 1)[:, None]).ravel())


def _edges(image: npt.NDArray[np.uint8], inside: Bools, cells: int, orientations: int) -> Floats:
    light = np.einsum("hwc,c->hw", image.astype(np.float64), np.array(_LUMINANCE)) / 255.0
    down, across = np.gradient(light)
    size = np.hypot(down, across)[inside]
    angle = np.mod(np.arctan2(down, across)[inside], np.pi)
    box = np.argwhere(inside)
    heights, widths = (np.ptp(box, axis=0) + 1).tolist()
    rows, columns = (box - box.min(axis=0)).T
    place = (rows * cells // heights) * cells + columns * cells // widths
    turn = np.minimum((angle / np.pi * orientations).astype(np.int64), orientations - 1)
    found = np.bincount(
        place * orientations + turn, weights=size, minlength=cells * cells * orientations
    )
    total = found.sum()
    return np.asarray(found / total if total > 1e-9 else np.zeros_like(found))
