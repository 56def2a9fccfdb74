"""Scores of images for queries, one group ahead of the others, and preferences of subjects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.planted.calibration.embeddings import SPREAD
from equipoise.planted.calibration.repeats import Floats, Indices, Layout, check_strength
from equipoise.stats.streams import stream

Pools = Literal["one query", "shared pool", "own pools", "sets"]

POOLS: tuple[Pools, ...] = ("one query", "shared pool", "own pools", "sets")

_QUERIES = 6


@dataclass(frozen=True, eq=False)
class Ranked:
    """A sample of `RankingWorld`.

    Attributes
    ----------
    scores : ndarray, shape (n,) or (queries, n)
    group : ndarray of int64, shape (n,)
    queries : ndarray of int64, shape (n,), or None
        Query to whose pool an image belongs.
    sets : ndarray of int64, shape (n,), or None
        Counterfactual set of each image.
    """

    scores: Floats
    group: Indices
    queries: Indices | None
    sets: Indices | None


@dataclass(frozen=True)
class RankingWorld:
    """Rankings in which the first group lies `strength` standard deviations ahead.

    Attributes
    ----------
    strength : float
        In [0, 1]; at 0 every order is as likely as any other (within sets, where there are).
    images : int
        In one pool.
    pools : "one query", "shared pool", "own pools" or "sets"
        One query; six that rank the same images, much alike and with ties; six with images of
        their own; or six that rank the same counterfactual sets.
    groups : int
        In shares of 1 : 1 : 2 : 2 ...; equal in sets.
    """

    strength: float
    images: int
    pools: Pools = "one query"
    groups: int = 4

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def draw(self, seed: int, sample: int) -> Ranked:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "rankings", self.pools, sample)
        if self.pools == "sets":
            layout = Layout.of("sets", self.images, self.groups, rng)
            scores = layout.noise(rng, _QUERIES).T
            return Ranked(self._plant(scores, layout.group), layout.group, None, layout.unit)
        many = _QUERIES if self.pools == "own pools" else 1
        group = np.tile(self._groups(), many)
        if self.pools == "shared pool":
            alike, own = rng.standard_normal(len(group)), rng.standard_normal((6, len(group)))
            scores = np.sqrt(0.5) * alike + np.sqrt(0.5) * own
            return Ranked(self._plant(scores, group).round(1), group, None, None)
        scores = self._plant(rng.standard_normal(len(group)), group)
        queries = np.repeat(np.arange(many), self.images) if many > 1 else None
        return Ranked(scores, group, queries, None)

    def _groups(self) -> Indices:
        shares = 1.0 + (np.arange(self.groups) >= 2)
        ends = np.round(self.images * shares.cumsum() / shares.sum())
        return np.searchsorted(ends, np.arange(self.images), side="right")

    def _plant(self, scores: Floats, group: Indices) -> Floats:
        return np.asarray(scores + self.strength * (group == 0))


@dataclass(frozen=True, eq=False)
class Preferences:
    """A sample of `PreferenceWorld`, each of shape (subjects,)."""

    preference: Floats
    hypothesis: Floats


@dataclass(frozen=True)
class PreferenceWorld:
    """Preferences of subjects that follow a hypothesis with a set strength.

    Attributes
    ----------
    strength : float
        In [0, 1]: the correlation of preferences with the hypothesis. At 0 they do not depend
        on it, though one group is preferred on the whole.
    subjects : int
    """

    strength: float
    subjects: int

    def __post_init__(self) -> None:
        check_strength(self.strength)

    def draw(self, seed: int, sample: int) -> Preferences:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        hypothesis, noise = stream(seed, "preferences", sample).standard_normal((2, self.subjects))
        rest = np.sqrt(1.0 - self.strength**2)
        mixed = self.strength * hypothesis + rest * noise
        return Preferences(SPREAD * (0.5 + mixed), hypothesis)
