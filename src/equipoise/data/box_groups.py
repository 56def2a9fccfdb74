"""Groups by the boxes of objects and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core import InputError
from equipoise.data.coded import Coded
from equipoise.data.groups import (
    FrozenTerms,
    Terms,
    assigned,
    column_name,
    frozen_terms,
    in_words,
)
from equipoise.data.image_parts import Flags, Step
from equipoise.data.image_set import ImageSet
from equipoise.data.lexicons import lexicon

ONLY_SMALL = "only boxes that are too small"
SMALL_OTHER = "a box of another group that is not small enough to be ignored"


@dataclass(frozen=True)
class BoxSize:
    """How large a box has to be.

    Attributes
    ----------
    name : str
    pixels : float
        Smaller boxes, in square pixels, are ignored.
    ignored : float in [0, 1]
        Boxes of a smaller share of the image are ignored.
    needed : float in [0, 1]
        A group needs a box of at least this share; a box between `ignored` and `needed` of another
        group leaves the image without a group.
    """

    name: str
    pixels: float = 0.0
    ignored: float = 0.0
    needed: float = 0.0

    def __post_init__(self) -> None:
        """Check the sizes.

        Raises
        ------
        InputError
            When a share is outside 0 to 1, or more is ignored than needed.
        """
        if self.pixels < 0 or not 0 <= self.ignored <= self.needed <= 1:
            raise InputError(
                f"the sizes of {self.name!r} are {self.pixels:g} pixels and the shares "
                f"{self.ignored:g} and {self.needed:g}; expected 0 or more pixels, and shares "
                "from 0 to 1 with ignored at most needed"
            )

    @property
    def description(self) -> str:
        """The rule in words."""
        if self.needed:
            return (
                f"at least one box of {self.needed:.0%} of the image; boxes under "
                f"{self.ignored:.0%} are ignored; one between of another group: no group"
            )
        return f"boxes of at least {self.pixels:g} pixels" if self.pixels else "all boxes"


ALL_BOXES = BoxSize("all boxes")
AT_LEAST_600_PIXELS = BoxSize("at least 600 pixels", pixels=600)
LARGE_BOXES = BoxSize("large boxes", ignored=0.02, needed=0.05)


@dataclass(frozen=True)
class BoxGroups:
    """Groups by what the boxes of an image hold, under a rule of size.

    An image with boxes of several groups has no group.

    Attributes
    ----------
    attribute : str
    groups : mapping of str to sequence of str
        Group to the labels of boxes, such as synsets.
    size : BoxSize
    source, version : str
    """

    attribute: str
    groups: Terms | FrozenTerms
    size: BoxSize = ALL_BOXES
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        """Freeze the labels."""
        object.__setattr__(self, "groups", frozen_terms(self.groups, "labels"))

    @property
    def terms(self) -> FrozenTerms:
        """Groups and their labels, sorted."""
        return frozen_terms(self.groups, "labels")

    @property
    def name(self) -> str:
        """The column that the rule adds."""
        return column_name(self.attribute, self.version)

    @property
    def description(self) -> str:
        """The rule in words."""
        text = (
            f"{self.attribute} by boxes ({in_words(self.terms)}): {self.size.description}; "
            "boxes of several groups: no group"
        )
        return f"{text} ({self.source})" if self.source else text

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; images without a group are counted by reason.

        Raises
        ------
        InputError
            When the set has no boxes, or the rule needs sizes of images that it does not have.
        """
        boxes = images.boxes
        if boxes is None:
            raise InputError(f"{images.name} has no boxes; read a file of objects or instances")
        names = [group for group, _ in self.terms]
        group = self._group_of(boxes.label)
        area = boxes.corners[:, 2] * boxes.corners[:, 3]
        share = area / _areas(images, self.size)[boxes.image]
        counted = (group >= 0) & (area >= self.size.pixels) & (share >= self.size.ignored)
        member = _members(len(images), len(names), boxes.image, group, counted)
        large = _members(
            len(images), len(names), boxes.image, group, counted & (share >= self.size.needed)
        )
        between = np.asarray((member & ~large).any(axis=1) & (large.sum(axis=1) == 1))
        some = _members(len(images), len(names), boxes.image, group, group >= 0)
        small = np.asarray(some.any(axis=1) & ~large.any(axis=1))
        groups, counts = assigned(names, large, {ONLY_SMALL: small, SMALL_OTHER: between})
        counts["boxes"] = int((group >= 0).sum())
        counts["boxes_ignored"] = int((group >= 0).sum() - counted.sum())
        return images.with_column(self.name, groups, Step(self.name, self.description, counts))

    def _group_of(self, label: Coded) -> npt.NDArray[np.int64]:
        owner = {one: place for place, (_, terms) in enumerate(self.terms) for one in terms}
        places = [owner.get(text.casefold(), -1) for text in label.vocabulary]
        return np.array([*places, -1], dtype=np.int64)[label.codes]


def _members(
    images: int,
    groups: int,
    image: npt.NDArray[np.int64],
    group: npt.NDArray[np.int64],
    used: Flags,
) -> Flags:
    member = np.zeros((images, groups), dtype=np.bool_)
    member[image[used], group[used]] = True
    return member


def _areas(images: ImageSet, size: BoxSize) -> npt.NDArray[np.float64]:
    """Return the area of each image in pixels; infinite where no share is asked for."""
    if not size.needed and not size.ignored:
        return np.full(len(images), np.inf)
    if not {"width", "height"} <= {*images.columns}:
        raise InputError(
            f"{images.name} has no widths and heights of images, which the rule {size.name!r} "
            "needs; for Visual Genome read image_data.json too"
        )
    area = np.prod([_numbers(images.column(side)) for side in ("width", "height")], axis=0)
    if not (area > 0).all():
        image = images.ids[int(np.argmax(~(area > 0)))]
        raise InputError(f"{images.name}: the image {image!r} has no width or height above 0")
    return np.asarray(area, dtype=np.float64)


def _numbers(column: Coded) -> npt.NDArray[np.float64]:
    return np.array([*map(float, column.vocabulary), np.nan])[column.codes]


def hall_boxes(
    size: BoxSize = ALL_BOXES, *, parents_and_children: bool = True, version: str = ""
) -> BoxGroups:
    """Return the rule of [Hall] for perceived gender by boxes of Visual Genome.

    Parameters
    ----------
    size : BoxSize
        `ALL_BOXES` (the baseline), `AT_LEAST_600_PIXELS` (V1) or `LARGE_BOXES` (V2).
    parents_and_children : bool
        False drops synsets such as "father.n.01", as in V3.
    version : str

    References
    ----------
    Hall et al. 2023, Table 2.
    """
    words = lexicon("hall_2023")
    dropped = () if parents_and_children else words.section("dropped_in_v3")["synsets"]
    groups = {
        group: tuple(term for term in terms if term not in dropped)
        for group, terms in words.section("synsets").items()
    }
    return BoxGroups("gender", groups, size, "Hall et al. 2023", version)
