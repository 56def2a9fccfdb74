"""What belongs to images: labels, captions, boxes, and the rules that were applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.data.coded import Coded

Objects = npt.NDArray[np.object_]
Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Labels by image, each pair once, in the order of images and then labels.

    Attributes
    ----------
    image : ndarray of int64, shape (pairs,)
        Position of the image.
    label : Coded, shape (pairs,)
    """

    image: Positions
    label: Coded

    def take(self, kept: Flags) -> Pairs:
        """Return the pairs of the images kept, with their new positions."""
        rows, image = _moved(self.image, kept)
        return Pairs(image, Coded(self.label.codes[rows], self.label.vocabulary))


@dataclass(frozen=True, eq=False)
class Captions:
    """Texts by image, in the order of images and then texts.

    Attributes
    ----------
    image : ndarray of int64, shape (captions,)
    texts : ndarray of str objects, shape (captions,)
    """

    image: Positions
    texts: Objects

    def take(self, kept: Flags) -> Captions:
        """Return the captions of the images kept, with their new positions."""
        rows, image = _moved(self.image, kept)
        return Captions(image, self.texts[rows])


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes by image, in the order of images, labels and then corners.

    Attributes
    ----------
    image : ndarray of int64, shape (boxes,)
    label : Coded, shape (boxes,)
        What the box holds; a box of two labels has two rows.
    corners : ndarray of float64, shape (boxes, 4)
        Left, top, width and height in pixels.
    """

    image: Positions
    label: Coded
    corners: npt.NDArray[np.float64]

    def take(self, kept: Flags) -> Boxes:
        """Return the boxes of the images kept, with their new positions."""
        rows, image = _moved(self.image, kept)
        label = Coded(self.label.codes[rows], self.label.vocabulary)
        return Boxes(image, label, self.corners[rows])


def _moved(image: Positions, kept: Flags) -> tuple[Flags, Positions]:
    rows = np.asarray(kept[image], dtype=np.bool_)
    return rows, (np.cumsum(kept) - 1)[image[rows]]


@dataclass(frozen=True)
class Step:
    """A declared rule that was applied.

    Attributes
    ----------
    name : str
    description : str
        The rule in words, the same for the same rule.
    counts : mapping
        What it did to how many images or labels.
    """

    name: str
    description: str
    counts: Mapping[str, Any]


def coded(values: Sequence[str | None]) -> Coded:
    """Encode some texts; None is missing."""
    return Coded.of(pl.Series(values, dtype=pl.String))


def pairs(labels: Sequence[tuple[int, str]]) -> Pairs:
    """Return pairs of an image and a label, each once."""
    image = np.array([position for position, _ in labels], dtype=np.int64)
    return unique_pairs(image, coded([text for _, text in labels]))


def unique_pairs(image: Positions, label: Coded) -> Pairs:
    """Return each pair of image and label once, in order."""
    width = max(len(label.vocabulary), 1)
    keys = np.unique(image * width + label.codes)
    return Pairs(keys // width, Coded((keys % width).astype(np.int32), label.vocabulary))
