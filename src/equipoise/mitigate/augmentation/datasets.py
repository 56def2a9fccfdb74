"""Images with faces as data sets that torch's DataLoader takes: as they are, mixed, or noisy.

They have `__len__` and `__getitem__`, and need no torch themselves. What is done to an image is
decided by the seed, the epoch and its place alone, whatever worker asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError
from equipoise.mitigate.augmentation.mixing import mix_regions, noise_region
from equipoise.mitigate.augmentation.regions import Regions
from equipoise.stats.streams import stream

Image = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Faces:
    """Labelled images of people.

    Attributes
    ----------
    images : sequence of ndarray of uint8, shape (height, width, 3)
    labels, groups : ndarray of str, shape (n,)
        The right answer, and the perceived group.
    regions : Regions
    """

    images: Sequence[Image] | NDArray[np.uint8]
    labels: NDArray[np.object_]
    groups: NDArray[np.object_]
    regions: Regions

    def __post_init__(self) -> None:
        sizes = {len(self.images), len(self.labels), len(self.groups), len(self.regions)}
        if len(sizes) > 1:
            raise InputError(
                f"{len(self.images)} images, {len(self.labels)} labels, {len(self.groups)} groups "
                f"and {len(self.regions)} regions; expected one of each for every image"
            )
        if not len(self.images):
            raise InputError("there are no images")

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)

    @cached_property
    def partners(self) -> dict[str, NDArray[np.int64]]:
        """For each group, the images of other groups that have a face."""
        return {
            name: np.flatnonzero((self.groups != name) & self.regions.found)
            for name in sorted({*self.groups})
        }


@dataclass(eq=False)
class PlainFaces:
    """The images as they are.

    Attributes
    ----------
    faces : Faces
    transform : callable, optional
        From an image (height, width, 3) of uint8 to what training takes.
    epoch : int
        Set before each epoch; changes what is drawn.
    """

    faces: Faces
    transform: Callable[[Image], Any] | None = None
    epoch: int = 0

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.faces)

    def __getitem__(self, place: int) -> tuple[Any, str]:
        """Return an image and its label."""
        image = self.changed(place)
        return (
            image if self.transform is None else self.transform(image),
            str(self.faces.labels[place]),
        )

    def changed(self, place: int) -> Image:
        """Return an image as it is trained on."""
        return np.asarray(self.faces.images[place])


@dataclass(eq=False)
class MixedFaces(PlainFaces):
    """Faces of which random quarters come from a face of another group.

    An image without a face stays as it is, as one does whose group has no other to mix with.

    Attributes
    ----------
    share : float
        Of the images whose face is mixed, in an epoch.
    seed : int

    References
    ----------
    Mandal 2024, chapter 10.
    """

    share: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check_share(self.share)

    def changed(self, place: int) -> Image:
        """Return an image with one, two or three quarters of its face exchanged."""
        faces = self.faces
        image, box = super().changed(place), faces.regions.box(place)
        partners = faces.partners[faces.groups[place]]
        random = stream(self.seed, "mixing", self.epoch, int(place))
        if box is None or not len(partners) or random.random() >= self.share:
            return image
        partner = int(partners[random.integers(len(partners))])
        other = faces.regions.box(partner)
        assert other is not None  # noqa: S101 - partners have faces
        many = int(random.integers(1, 4))
        exchanged = np.zeros(4, dtype=bool)
        exchanged[random.permutation(4)[:many]] = True
        return mix_regions(image, box, np.asarray(faces.images[partner]), other, exchanged.tolist())


@dataclass(eq=False)
class NoisyFaces(PlainFaces):
    """Faces that are uniform noise; an image without a face stays as it is.

    Attributes
    ----------
    share : float
        Of the images whose face is covered with noise, in an epoch.
    seed : int

    References
    ----------
    Mandal 2024, chapter 10.
    """

    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        _check_share(self.share)

    def changed(self, place: int) -> Image:
        """Return an image with noise for a face."""
        image, box = super().changed(place), self.faces.regions.box(place)
        random = stream(self.seed, "noise", self.epoch, int(place))
        if box is None or random.random() >= self.share:
            return image
        return noise_region(image, box, random)


def _check_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}; expected a number from 0 to 1")
