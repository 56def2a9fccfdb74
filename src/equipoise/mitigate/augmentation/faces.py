"""Faces in images: where they are, changes of a face, and data sets for training.

The data sets have `__len__` and `__getitem__` for torch's DataLoader, and need no torch. Changes
depend on the seed, the epoch and the place of an image alone, whatever worker asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from equipoise.core import (
    AnyArray,
    Booleans,
    Bytes,
    Floats,
    InputError,
    Integers,
    Objects,
    record,
)
from equipoise.explain.faces import find_faces
from equipoise.stats.streams import stream

Image = Bytes
Box = tuple[int, ...]
"""Left, top, right, bottom in pixels; right and bottom are outside."""

SIDES = ("left", "top", "right", "bottom")
GREY = 128


@record
class Regions:
    """A face for each image, or none.

    Attributes
    ----------
    boxes : ndarray of int64, shape (n, 4)
        Left, top, right, bottom in pixels; right and bottom are outside. Zeros without a face.
    has_face : ndarray of bool, shape (n,)
    """

    boxes: Integers
    has_face: Booleans

    @classmethod
    def of(cls, ends: Floats, sizes: Sequence[tuple[int, int]]) -> Regions:
        """Round boxes (n, 4) and crop them; less than 2 × 2 pixels is no face."""
        limits = np.array([(width, height) * 2 for height, width in sizes]).reshape(-1, 4)
        boxes = np.clip(np.rint(ends), 0, limits).astype(np.int64)
        has_face = (boxes[:, 2:] - boxes[:, :2]).min(axis=1) >= 2
        return cls(boxes * has_face[:, None], has_face)

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.has_face)

    def box(self, place: int) -> Box | None:
        """Return the face of an image; None without one."""
        if not self.has_face[place]:
            return None
        return tuple(self.boxes[place].tolist())

    def missing(self, groups: Sequence[object] | AnyArray) -> Mapping[str, tuple[int, int]]:
        """Count images without a face.

        Parameters
        ----------
        groups : sequence, shape (n,)

        Returns
        -------
        mapping of str to (int, int)
            By group: images without a face, and all its images. A detector that fails on one
            group more often leaves that group out of the augmentation more often.
        """
        names, codes, counts = np.unique(
            np.asarray(groups).astype(str), return_inverse=True, return_counts=True
        )
        without = np.bincount(codes, weights=~self.has_face).astype(int)
        numbers = zip(without.tolist(), counts.tolist(), strict=True)
        return dict(zip(names.tolist(), numbers, strict=True))


def regions_of_columns(
    columns: Mapping[str, Sequence[float | None] | Floats],
    sizes: Sequence[tuple[int, int]],
    *,
    rows: Sequence[int] | None = None,
) -> Regions:
    """Return the faces in the columns of a table.

    Parameters
    ----------
    columns : mapping
        `left`, `top`, `right` and `bottom`, each of length n, in pixels; None or NaN in all four
        where an image has no face.
    sizes : sequence of (int, int)
        Height and width of each image; boxes are cut there.
    rows : sequence of int, optional
        Row of each image in its table, for messages; 1 to n unless given.

    Raises
    ------
    InputError
        When a box has some ends only, or lies outside of its image; it names the row.
    """
    ends = np.array([columns[side] for side in SIDES], dtype=np.float64).T
    is_number = ~np.isnan(ends)
    regions = Regions.of(np.nan_to_num(ends), sizes)
    for row in np.flatnonzero(
        is_number.any(axis=1) & ~(is_number.all(axis=1) & regions.has_face)
    ).tolist():
        box = np.array([columns[side][row] for side in SIDES]).tolist()
        raise InputError(
            f"row {row + 1 if rows is None else rows[row]}: the box {box}; expected four ends, at "
            "least two pixels apart, left < right and top < bottom within the image"
        )
    return regions


def mix_regions(
    image: Image, box: Box, other: Image, other_box: Box, exchanged: Sequence[bool]
) -> Image:
    """Return an image with quarters of the face taken from another face.

    Parameters
    ----------
    image, other : ndarray of uint8, shape (height, width, 3)
    box, other_box : (left, top, right, bottom)
        Where the faces are; the other one is scaled to the size of the first.
    exchanged : sequence of 4 bool
        Quarters that come from the other: upper left, upper right, lower left, lower right.

    Raises
    ------
    InputError
        When a box is not within its image.

    References
    ----------
    Mandal 2024, chapter 10 (partial mixing).
    """
    mixed = image.copy()
    region, face = _crop(mixed, box), _crop(other, other_box)
    height, width = region.shape[:2]
    if face.shape != region.shape:
        from PIL import Image as Pillow

        scaled = Pillow.fromarray(face).resize((width, height), Pillow.Resampling.BILINEAR)
        face = np.asarray(scaled)
    rows = slice(0, height // 2), slice(height // 2, None)
    columns = slice(0, width // 2), slice(width // 2, None)
    for place in np.flatnonzero(exchanged).tolist():
        quarter = rows[place // 2], columns[place % 2]
        region[quarter] = face[quarter]
    return mixed


def noise_region(
    image: Image,
    box: Box,
    random: np.random.Generator,
    *,
    added: bool = False,
    strength: float = 1.0,
) -> Image:
    """Return an image with uniform noise over the face.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    box : (left, top, right, bottom)
    random : Generator
    added : bool
        Add noise from 0 to `strength` to each channel of the face, cut at white, instead of
        replacing the face.
    strength : float
        In units in which white is 1.

    References
    ----------
    Mandal 2024, equations 10.2 and 10.3, without the scale of pixels.
    """
    noisy = image.copy()
    region = _crop(noisy, box)
    if not added:
        region[:] = random.integers(0, 256, region.shape, dtype=np.uint8)
        return noisy
    noise = random.random(region.shape, dtype=np.float32) * (255 * strength)
    region[:] = np.clip(np.rint(region + noise), 0, 255)
    return noisy


def cover_region(image: Image, box: Box) -> Image:
    """Return an image with the face covered in grey."""
    covered = image.copy()
    _crop(covered, box)[:] = GREY
    return covered


def _crop(image: Image, box: Box) -> Image:
    """Return a view of the face."""
    left, top, right, bottom = box
    height, width = image.shape[:2]
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise InputError(f"the box {box} is not within its image of {width} × {height} pixels")
    return image[top:bottom, left:right]


@record
class Faces:
    """Labelled images of people.

    Attributes
    ----------
    images : sequence of ndarray of uint8, shape (height, width, 3)
    labels, groups : ndarray of str, shape (n,)
        The right answer, and the perceived group.
    regions : Regions
    sources : sequence of n str, optional
        Where each image comes from, for messages.
    ids : sequence of n str, optional
    """

    images: Sequence[Image] | Bytes
    labels: Objects
    groups: Objects
    regions: Regions
    sources: Sequence[str] | None = None
    ids: Sequence[str] | None = None

    def __post_init__(self) -> None:
        sizes = [len(part) for part in (self.images, self.labels, self.groups, self.regions)]
        if len({*sizes}) > 1 or not sizes[0]:
            raise InputError(
                "{} images, {} labels, {} groups and {} regions; expected one of each for every "
                "image, and at least one image".format(*sizes)
            )

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)

    def cover_face(self, place: int) -> Image:
        """Return an image with its face, if any, covered in grey."""
        image, box = np.asarray(self.images[place]), self.regions.box(place)
        return image if box is None else cover_region(image, box)

    @cached_property
    def partners(self) -> Callable[[str, str | None], Integers]:
        """Function that returns the images of other groups that have a face, by label if any."""

        def select(group: str, label: str | None) -> Integers:
            fits = (self.groups != group) & self.regions.has_face
            return np.flatnonzero(fits if label is None else fits & (self.labels == label))

        return cache(select)


@dataclass(eq=False)
class PlainFaces:
    """Unchanged images.

    Attributes
    ----------
    faces : Faces
    transform : callable, optional
        From an image (height, width, 3) of uint8 to the input of training.
    epoch : int
        Set before each epoch; changes the draws.
    share : float
        Share of the images whose face is changed, in an epoch; other kinds of data sets read it.
    seed : int
    keep_originals : bool
        Changed images join the originals: a share of the images has a changed copy, which is the
        same in each epoch. Otherwise changed images replace the originals, anew in each epoch.
    """

    faces: Faces
    transform: Callable[[Image], Any] | None = None
    epoch: int = 0
    share: float = 1.0
    seed: int = 0
    keep_originals: bool = False
    draws: ClassVar[str] = ""

    def __len__(self) -> int:
        """Return the number of images, changed copies included."""
        return len(self.rows)

    def __getitem__(self, place: int) -> tuple[Any, str]:
        """Return an image and its label."""
        row = int(self.rows[place])
        image, label = self.training_image(row), str(self.faces.labels[row % len(self.faces)])
        return image if self.transform is None else self.transform(image), label

    @cached_property
    def rows(self) -> Integers:
        """Row of each image; row n and later are changed copies of the n images."""
        return self.with_copies(np.arange(len(self.faces)))

    def with_copies(self, rows: Integers) -> Integers:
        """Return rows of images, and of their changed copies that join them."""
        if not self.keep_originals:
            return rows
        in_share = stream(self.seed, "copies").random(len(self.faces)) < self.share
        has_copy = in_share & np.array([self.changes(row) for row in range(len(self.faces))])
        return np.concatenate([rows, rows[has_copy[rows]] + len(self.faces)])

    def changes(self, _: int) -> bool:
        """Return whether the face of an image can be changed."""
        return False

    def training_image(self, row: int) -> Image:
        """Return the image of a row for training."""
        n = len(self.faces)
        image = np.asarray(self.faces.images[row % n])
        if row >= n:
            return self.change(row - n, image, stream(self.seed, self.draws, int(row - n)))
        if self.keep_originals or not self.changes(row):
            return image
        random = stream(self.seed, self.draws, self.epoch, int(row))
        return image if random.random() >= self.share else self.change(row, image, random)

    def change(self, row: int, image: Image, random: np.random.Generator) -> Image:  # noqa: ARG002
        """Return an image with a changed face."""
        return image


@dataclass(eq=False)
class MixedFaces(PlainFaces):
    """Faces with random quarters from a face of another group.

    An image without a face stays as it is, as does an image whose group has no other to mix with.

    Attributes
    ----------
    partners : {"all", "label"}
        Faces that are mixed in: of all images of other groups, or of those with the same label.

    References
    ----------
    Mandal 2024, equation 10.1.
    """

    partners: Literal["all", "label"] = "all"
    draws: ClassVar[str] = "mixing"

    def changes(self, row: int) -> bool:
        """Return whether there is a face, and another to mix it with."""
        return bool(self.faces.regions.has_face[row] and len(self._partners_of(row)))

    def change(self, row: int, image: Image, random: np.random.Generator) -> Image:
        """Return an image with one, two or three quarters of its face exchanged."""
        faces, partners = self.faces, self._partners_of(row)
        partner = int(partners[random.integers(len(partners))])
        box, other_box = faces.regions.box(row), faces.regions.box(partner)
        assert box is not None  # noqa: S101 - see `changes`
        assert other_box is not None  # noqa: S101 - partners have faces
        n_quarters = int(random.integers(1, 4))
        exchanged = np.isin(np.arange(4), random.permutation(4)[:n_quarters]).tolist()
        return mix_regions(image, box, np.asarray(faces.images[partner]), other_box, exchanged)

    def _partners_of(self, row: int) -> Integers:
        label = self.faces.labels[row] if self.partners == "label" else None
        return self.faces.partners(self.faces.groups[row], label)


@dataclass(eq=False)
class NoisyFaces(PlainFaces):
    """Faces replaced by uniform noise, or with noise added.

    An image without a face stays as it is.

    Attributes
    ----------
    added : bool
    strength : float
        See `noise_region`.

    References
    ----------
    Mandal 2024, equations 10.2 and 10.3.
    """

    share: float = 0.5
    added: bool = False
    strength: float = 1.0
    draws: ClassVar[str] = "noise"

    def changes(self, row: int) -> bool:
        """Return whether there is a face."""
        return bool(self.faces.regions.has_face[row])

    def change(self, row: int, image: Image, random: np.random.Generator) -> Image:
        """Return an image with noise in its face."""
        box = self.faces.regions.box(row)
        assert box is not None  # noqa: S101 - see `changes`
        return noise_region(image, box, random, added=self.added, strength=self.strength)


class CascadeDetector:
    """The frontal face cascade that OpenCV 4 ships with.

    Five overlapping hits make a face, with a side of a tenth of the image's shorter one or more.

    References
    ----------
    Viola & Jones 2001.
    """

    def __call__(self, images: Sequence[Image]) -> Regions:
        """Return the largest face of each image.

        Raises
        ------
        MissingExtraError
            If OpenCV is not installed.
        ModelError
            If it is of version 5 or later, which has no cascades.
        """
        ends: Floats = np.zeros((len(images), 4))
        for place, image in enumerate(images):
            boxes = find_faces(image).tolist()
            # Equal areas: the upper, then the left one, whatever the order of the hits.
            if boxes:
                ends[place] = max(boxes, key=lambda box: (_area(box), -box[1], -box[0]))
        return Regions.of(ends, [image.shape[:2] for image in images])


def _area(box: Sequence[int]) -> int:
    left, top, right, bottom = box
    return (right - left) * (bottom - top)
