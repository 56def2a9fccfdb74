"""The data of an audit of activations: images with the maps of every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from equipoise.audits.columns import ImageData
from equipoise.core import AnyArray, Floats, Integers, Strings, record
from equipoise.metrics.numbers.activation import Regions


@record
class Mapped:
    """One model's maps.

    Attributes
    ----------
    used : ndarray of int64, shape (n,)
        Images with a map.
    maps : ndarray, shape (n, rows, columns)
    boxes : mapping of str to ndarray, shape (n, 4)
        By region, as shares of the map.
    frames : ndarray, shape (n, 4), or None
        What the map lies over, in pixels.
    without : int
        Images without a map.
    pictures : mapping of int to bytes
        Overlays by place among the images with a map.
    falls : ndarray, shape (n, 2), or None
        How far the score falls when the first and the second person are hidden.
    share_differences, fallen : ndarray
        Of two people in every image: the share on the first less that on the second, and how much
        more the score falls without the first; NaN where that isn't known.
    """

    used: Integers
    maps: AnyArray
    boxes: Mapping[str, Floats]
    frames: Floats | None
    without: int
    pictures: Mapping[int, bytes] = field(default_factory=dict)
    falls: Floats | None = None
    share_differences: Floats = field(default_factory=lambda: np.empty(0))
    fallen: Floats = field(default_factory=lambda: np.empty(0))

    def of_people(self, persons: Strings, n: int) -> Mapped:
        """Return the shares on two people in n images, without the maps."""
        shares = np.full((2, n), np.nan)
        for region, person_shares in zip(persons, shares, strict=True):
            regions = Regions.of(self.maps, self.boxes[region])
            person_shares[self.used[regions.rows]] = regions.shares
        fallen = np.full(n, np.nan)
        if self.falls is not None:
            fallen[self.used] = self.falls[:, 0] - self.falls[:, 1]
        shape = np.broadcast_to(np.float32(0.0), self.maps.shape)
        return replace(self, maps=shape, share_differences=shares[0] - shares[1], fallen=fallen)


@record
class ActivationData(ImageData):
    """The data of an audit of activations.

    Attributes
    ----------
    models : mapping of str to Mapped
        Where questions are asked, of the first one.
    by_prompt : mapping of str to mapping of str to Mapped
        By model and prompt, where questions are asked.
    """

    models: Mapping[str, Mapped]
    by_prompt: Mapping[str, Mapping[str, Mapped]]
