"""Embeddings whose groups differ by a set strength along one axis of meaning.

As in encoders of images and texts, most of every vector is common to all, and cosines vary little:
one standard deviation of an image's similarity to a concept is `SPREAD`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.planted.calibration.repeats import (
    Floats,
    Indices,
    Layout,
    Structure,
    between,
    check_strength,
)
from equipoise.stats.streams import stream

DIMENSIONS = 16
SPREAD = 0.03

# Directions: what all vectors share, the planted axis, and an axis without meaning for groups.
_COMMON, _PLANTED, _NEUTRAL = 0, 1, 2


def near(axis: int, count: int, rng: np.random.Generator, lean: float = 1.0) -> Floats:
    """Draw texts that mean one thing in different words, shape (count, DIMENSIONS)."""
    texts = SPREAD * rng.standard_normal((count, DIMENSIONS))
    texts[:, axis] += lean
    return texts


@dataclass(frozen=True, eq=False)
class Embedded:
    """A sample of `EmbeddingWorld`.

    Attributes
    ----------
    images : ndarray, shape (n, DIMENSIONS)
    group, unit : ndarray of int64, shape (n,)
    concept, other : ndarray, shape (6, DIMENSIONS)
        Texts on the planted axis, and texts on an axis on which groups do not differ.
    towards, away : ndarray, shape (8, DIMENSIONS)
        Texts towards one end of the planted axis, and towards the other.
    """

    images: Floats
    group: Indices
    unit: Indices
    concept: Floats
    other: Floats
    towards: Floats
    away: Floats

    def of(self, group: int) -> Floats:
        """Return the images of a group."""
        return np.asarray(self.images[self.group == group])

    def units(self, first: str, second: str) -> dict[str, Indices]:
        """Return the units of the images of groups 0 and 1 under the names of two sets."""
        return {first: self.unit[self.group == 0], second: self.unit[self.group == 1]}


@dataclass(frozen=True)
class EmbeddingWorld:
    """Images of two groups; the first lies `strength` standard deviations along an axis.

    Attributes
    ----------
    strength : float
        In [0, 1]. At 0 the images of both groups are exchangeable: between persons where
        persons have several images, within sets where sets share an image.
    images : int
        Of both groups together (about, where persons have several).
    structure : "independent", "clustered" or "sets"
    """

    strength: float
    images: int
    structure: Structure = "independent"

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def difference(self) -> float:
        """The truth: by how much the groups' means differ along the axis."""
        return SPREAD * self.strength

    def draw(self, seed: int, sample: int) -> Embedded:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "embeddings", self.structure, sample)
        layout = Layout.of(self.structure, self.images, 2, rng)
        images = SPREAD * layout.noise(rng, DIMENSIONS)
        images[:, _COMMON] += 1.0
        images[:, _PLANTED] += self.difference * between(layout.group)
        return Embedded(
            images,
            layout.group,
            layout.unit,
            concept=near(_PLANTED, 6, rng),
            other=near(_NEUTRAL, 6, rng),
            towards=near(_PLANTED, 8, rng),
            away=near(_PLANTED, 8, rng, lean=-1.0),
        )


@dataclass(frozen=True, eq=False)
class Sets:
    """A sample of `SetWorld`: image sets, each of shape (n, DIMENSIONS)."""

    sets: tuple[Floats, ...]


@dataclass(frozen=True)
class SetWorld:
    """Image sets that lie apart: each is moved `strength` standard deviations, its own way.

    Attributes
    ----------
    strength : float
        In [0, 1]; at 0 images are exchangeable between sets.
    images : int
        Of all sets together.
    sets : int
        Fewer than `DIMENSIONS`.
    """

    strength: float
    images: int
    sets: int = 3

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def draw(self, seed: int, sample: int) -> Sets:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "sets", sample)
        layout = Layout.of("independent", self.images, self.sets, rng)
        images = layout.noise(rng, DIMENSIONS) / np.sqrt(DIMENSIONS)
        images[:, _COMMON] += 1.0
        moved = self.strength / np.sqrt(DIMENSIONS)
        images[np.arange(len(images)), 1 + layout.group] += moved
        return Sets(tuple(images[layout.group == one] for one in range(self.sets)))
