"""Crops of persons or faces by box, declared before anything is embedded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.data.coded import Coded
from equipoise.data.gathered import Gathered, Marks, image_set
from equipoise.data.image_parts import Step
from equipoise.data.image_set import ImageSet
from equipoise.data.problems import listed

_CORNERS = ("left", "top", "right", "bottom")


@dataclass(frozen=True)
class CropBoxes:
    """Each box of some labels becomes an image of its own.

    Attributes
    ----------
    labels : frozenset of str
        What is cropped, such as "person", or synsets.
    margin : float
        Share of the box's width and height that is added on each side, up to the border of the
        image.
    pixels : float
        Smaller boxes, in square pixels and before the margin, are left out.
    """

    labels: frozenset[str]
    margin: float = 0.0
    pixels: float = 0.0

    def __post_init__(self) -> None:
        """Check the margin.

        Raises
        ------
        InputError
            When there is no label, or a number is below 0.
        """
        if not self.labels or self.margin < 0 or self.pixels < 0:
            raise InputError(
                f"labels are {sorted(self.labels)}, margin is {self.margin:g} and pixels "
                f"{self.pixels:g}; expected labels, and 0 or more"
            )

    @property
    def description(self) -> str:
        """The rule in words."""
        least = f" of at least {self.pixels:g} pixels" if self.pixels else ""
        added = f", with {self.margin:.0%} of it added on each side" if self.margin else ""
        return f"crops of every box{least} of {', '.join(sorted(self.labels))}{added}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the crops as images, each with the columns and labels of its image.

        The columns `left`, `top`, `right` and `bottom` say what to cut out, in whole pixels, and
        `image` from where: name it as the unit, since crops of one image are not independent. Ids
        are the image's with the number of its crop, counted by label and corners. Several boxes
        with the same corners are one crop.

        Raises
        ------
        InputError
            When the set has no boxes, no sizes of images, or no box of these labels.
        """
        boxes = images.boxes
        if boxes is None or not {"width", "height"} <= {*images.columns}:
            raise InputError(f"{images.name} has no boxes, or no widths and heights of its images")
        wanted = np.isin(
            boxes.label.codes,
            [code for code, text in enumerate(boxes.label.vocabulary) if text in self.labels],
        )
        area = boxes.corners[:, 2] * boxes.corners[:, 3]
        large = wanted & (area >= self.pixels)
        cut = _cut(images, boxes.image[large], boxes.corners[large], self.margin)
        rows = np.column_stack([boxes.image[large], cut])
        inside = (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1])
        unique = np.unique(rows[inside], axis=0)
        if not len(unique):
            raise InputError(
                f"{images.name} leaves no box for {self.description}; expected some of its "
                f"{listed(boxes.label.vocabulary)}, large enough and inside their images"
            )
        counts: Mapping[str, int] = {
            "boxes": int(wanted.sum()),
            "boxes_too_small": int(wanted.sum() - large.sum()),
            "boxes_outside": int((~inside).sum()),
            "boxes_of_the_same_corners": int(inside.sum() - len(unique)),
            "images_without_crop": int(len(images) - len(np.unique(unique[:, 0]))),
        }
        return _crops(images, unique, Step("crops", self.description, counts))


def _cut(
    images: ImageSet,
    image: npt.NDArray[np.int64],
    corners: npt.NDArray[np.float64],
    margin: float,
) -> npt.NDArray[np.int64]:
    """Return left, top, right and bottom in whole pixels, inside the image."""
    ends = np.column_stack([_numbers(images.column(one))[image] for one in ("width", "height")])
    size = corners[:, 2:]
    low = np.floor(corners[:, :2] - margin * size)
    high = np.ceil(corners[:, :2] + (1 + margin) * size)
    return np.column_stack([np.clip(low, 0, ends), np.clip(high, 0, ends)]).astype(np.int64)


def _numbers(column: Coded) -> npt.NDArray[np.float64]:
    # A missing size would cut everything away; 0 does so openly, and is counted.
    return np.array([*map(float, column.vocabulary), 0.0])[column.codes]


def _crops(images: ImageSet, rows: npt.NDArray[np.int64], step: Step) -> ImageSet:
    owner = rows[:, 0]
    first = np.searchsorted(owner, owner)
    ids = [
        f"{images.ids[i]}#{n}" for i, n in zip(owner, np.arange(len(owner)) - first, strict=True)
    ]
    columns = {name: column.values[owner].tolist() for name, column in images.columns.items()}
    columns = {n: v for n, v in columns.items() if n not in ("width", "height", "image")}
    columns |= {"image": images.ids[owner].tolist()}
    columns |= {name: [*map(str, rows[:, 1 + at])] for at, name in enumerate(_CORNERS)}
    labels = None
    if images.labels is not None:
        texts: dict[int, list[str]] = {}
        for image, text in zip(
            images.labels.image.tolist(), images.labels.label.values.tolist(), strict=True
        ):
            texts.setdefault(image, []).append(text)
        labels = Marks(
            (crop, text)
            for crop, image in enumerate(owner.tolist())
            for text in texts.get(image, ())
        )
    return image_set(
        Gathered(ids, columns, labels),
        name=images.name,
        format=f"crops of {images.format}",
        inputs=images.inputs,
        counts=images.counts,
        steps=(*images.steps, step),
    )
