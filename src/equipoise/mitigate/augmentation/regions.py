"""Where the faces of images are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""

_SIDES = ("left", "top", "right", "bottom")


@dataclass(frozen=True, eq=False)
class Regions:
    """A face for each image, or none.

    Attributes
    ----------
    boxes : ndarray of int64, shape (n, 4)
        Left, top, right, bottom in pixels; right and bottom are outside. Zeros where no face was
        found.
    found : ndarray of bool, shape (n,)
    """

    boxes: NDArray[np.int64]
    found: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.found)

    def box(self, place: int) -> Box | None:
        """Return the face of an image; None where none was found."""
        if not self.found[place]:
            return None
        left, top, right, bottom = self.boxes[place].tolist()
        return left, top, right, bottom

    def missing(self, groups: Sequence[object] | NDArray[Any]) -> Mapping[str, tuple[int, int]]:
        """Count images without a face.

        Parameters
        ----------
        groups : sequence, shape (n,)

        Returns
        -------
        mapping of str to (int, int)
            By group: images without a face, and all its images. A detector that fails on one
            group more often leaves that group out of the augmentation more often.

        Raises
        ------
        InputError
            When there is not one group for each image.
        """
        names = np.asarray([str(group) for group in groups], dtype=object)
        if len(names) != len(self):
            raise InputError(f"{len(names)} groups for {len(self)} images; expected one for each")
        return {
            name: (int((~self.found[names == name]).sum()), int((names == name).sum()))
            for name in sorted({*names})
        }


def regions_of_columns(
    columns: Mapping[str, Sequence[float | None]],
    sizes: Sequence[tuple[int, int]],
    *,
    rows: Sequence[int] | None = None,
) -> Regions:
    """Take faces from the columns of a table.

    Parameters
    ----------
    columns : mapping
        `left`, `top`, `right` and `bottom`, each of length n, in pixels; None or NaN in all four
        where an image has no face.
    sizes : sequence of (int, int)
        Height and width of each image; what reaches beyond is cut.
    rows : sequence of int, optional
        Row of each image in its table, for messages; 1 to n unless given.

    Raises
    ------
    InputError
        When a column is missing, lengths differ, a box has some ends only, or lies outside of
        its image; it names the row.
    """
    missing = [side for side in _SIDES if side not in columns]
    if missing:
        raise InputError(f"boxes need the columns {', '.join(_SIDES)}; {missing[0]} is missing")
    ends = np.array(
        [[np.nan if end is None else float(end) for end in columns[side]] for side in _SIDES]
    ).T
    if len(ends) != len(sizes):
        raise InputError(f"{len(ends)} boxes for {len(sizes)} images; expected one for each")
    numbers = range(1, len(ends) + 1) if rows is None else rows
    known = ~np.isnan(ends)
    found = known.all(axis=1)
    partly = np.flatnonzero(known.any(axis=1) & ~found)
    if len(partly):
        raise InputError(
            f"row {numbers[partly[0]]}: a box with some of its ends only; expected four"
        )
    boxes = np.zeros((len(ends), 4), dtype=np.int64)
    boxes[found] = np.rint(ends[found]).astype(np.int64)
    limits = np.array([(width, height, width, height) for height, width in sizes], dtype=np.int64)
    boxes = np.clip(boxes, 0, limits.reshape(-1, 4))
    empty = np.flatnonzero(found & ((boxes[:, 2:] - boxes[:, :2]).min(axis=1) < 2))
    if len(empty):
        box = [columns[side][int(empty[0])] for side in _SIDES]
        raise InputError(
            f"row {numbers[empty[0]]}: the box {box} holds fewer than 2 × 2 pixels of its image; "
            "expected left < right and top < bottom within the image"
        )
    return Regions(boxes, found)
