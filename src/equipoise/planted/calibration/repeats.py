"""How the images of a world repeat: on their own, several of a person, or in sets of copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Structure = Literal["independent", "clustered", "sets"]

STRUCTURES: tuple[Structure, ...] = ("independent", "clustered", "sets")

# Images of a person: 2 to 6, 4 on average.
_FEWEST, _MOST = 2, 6

# Correlation of two images of a person, and of two members of a counterfactual set.
_SHARED = {"independent": 0.0, "clustered": 0.7, "sets": 0.9}


@dataclass(frozen=True, eq=False)
class Layout:
    """Whom each image shows.

    Attributes
    ----------
    group, unit : ndarray of int64, shape (n,)
        Group of each image, from 0, and the person or counterfactual set that it belongs to.
    shared : float
        Correlation of the noise of two images of one unit.
    """

    group: Indices
    unit: Indices
    shared: float

    @classmethod
    def of(cls, structure: Structure, images: int, groups: int, rng: np.random.Generator) -> Layout:
        """Lay out about `images` images of groups of the same expected size.

        Parameters
        ----------
        structure : "independent", "clustered" or "sets"
            Every image on its own; persons of one group with 2 to 6 images; or counterfactual
            sets with one image of each group.
        images, groups : int
            At least one unit a group is laid out.
        rng : Generator
            Draws the number of images of each person, whatever the person's group.
        """
        if structure == "clustered":
            persons = max(2 * groups, round(images / (_FEWEST + _MOST) * 2))
            many = rng.integers(_FEWEST, _MOST + 1, persons)
            unit = np.repeat(np.arange(persons), many)
            return cls(unit % groups, unit, _SHARED[structure])
        rows = np.arange(groups * max(2, round(images / groups)))
        unit = rows // groups if structure == "sets" else rows
        return cls(rows % groups, unit, _SHARED[structure])

    def noise(self, rng: np.random.Generator, width: int) -> Floats:
        """Draw standard normal noise, shape (n, width), that units share and groups do not enter.

        Its law stays the same when units (or images within a unit) exchange places.
        """
        units = rng.standard_normal((int(self.unit[-1]) + 1, width))[self.unit]
        own = rng.standard_normal((len(self.unit), width))
        return np.asarray(np.sqrt(self.shared) * units + np.sqrt(1.0 - self.shared) * own)

    def uniforms(self, rng: np.random.Generator) -> Floats:
        """Draw uniform numbers, shape (n,): that of its unit for a share of the images."""
        units = rng.random(int(self.unit[-1]) + 1)[self.unit]
        own, takes = rng.random((2, len(self.unit)))
        return np.where(takes < self.shared, units, own)


def check_strength(strength: float) -> None:
    """Refuse a strength of bias outside [0, 1].

    Raises
    ------
    InputError
        When it lies outside, or is not a number.
    """
    if not 0.0 <= strength <= 1.0:
        raise InputError(f"strength={strength}: expected a strength of bias between 0 and 1")


def between(groups: Indices) -> Floats:
    """Return +1/2 for images of the first group, -1/2 for those of all others, shape (n,)."""
    return np.where(groups == 0, 0.5, -0.5)
