"""Synthetic worlds whose bias is known: embeddings, labels, words, rankings and concept scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.stats.streams import stream

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
            sizes = rng.integers(_FEWEST, _MOST + 1, persons)
            unit = np.repeat(np.arange(persons), sizes)
            return cls(unit % groups, unit, _SHARED[structure])
        rows = np.arange(groups * max(2, round(images / groups)))
        unit = rows // groups if structure == "sets" else rows
        return cls(rows % groups, unit, _SHARED[structure])

    def noise(self, rng: np.random.Generator, width: int) -> Floats:
        """Draw standard normal noise, shape (n, width), that units share and groups do not enter.

        Its law stays the same when units (or images within a unit) exchange places.
        """
        units = rng.standard_normal((int(self.unit[-1]) + 1, width))[self.unit]
        image_noise = rng.standard_normal((len(self.unit), width))
        return np.asarray(np.sqrt(self.shared) * units + np.sqrt(1.0 - self.shared) * image_noise)

    def uniforms(self, rng: np.random.Generator) -> Floats:
        """Draw uniform numbers, shape (n,): that of its unit for a share of the images."""
        units = rng.random(int(self.unit[-1]) + 1)[self.unit]
        image_uniforms, takes = rng.random((2, len(self.unit)))
        return np.where(takes < self.shared, units, image_uniforms)


@dataclass(frozen=True)
class World:
    """A world of images of two groups, whose bias has a strength.

    Attributes
    ----------
    strength : float
        From 0 to 1. At 0 groups are exchangeable: between persons where persons have several
        images, within sets where sets share an image.
    images : int
        Of both groups together (about, where persons have several).
    structure : "independent", "clustered" or "sets"
    """

    strength: float
    images: int
    structure: Structure = "independent"

    def begin(self, name: str, seed: int, sample: int) -> tuple[np.random.Generator, Layout]:
        """Return the random numbers of a sample, and whom its images show."""
        rng = stream(seed, name, self.structure, sample)
        return rng, Layout.of(self.structure, self.images, 2, rng)


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
class EmbeddingWorld(World):
    """The first group lies `strength` standard deviations from the second along an axis."""

    def draw(self, seed: int, sample: int) -> Embedded:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng, layout = self.begin("embeddings", seed, sample)
        images = SPREAD * layout.noise(rng, DIMENSIONS)
        images[:, _COMMON] += 1.0
        images[:, _PLANTED] += SPREAD * self.strength * np.where(layout.group == 0, 0.5, -0.5)
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

    def draw(self, seed: int, sample: int) -> Sets:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "sets", sample)
        layout = Layout.of("independent", self.images, self.sets, rng)
        images = layout.noise(rng, DIMENSIONS) / np.sqrt(DIMENSIONS)
        images[:, _COMMON] += 1.0
        shift = self.strength / np.sqrt(DIMENSIONS)
        images[np.arange(len(images)), 1 + layout.group] += shift
        return Sets(tuple(images[layout.group == index] for index in range(self.sets)))


Leaning = Literal["lean", "concentrate"]

_LABELS = 24
_VOCABULARY = tuple(f"label {index:02d}" for index in range(_LABELS))


@dataclass(frozen=True, eq=False)
class Labelled:
    """A sample of `LabelWorld`.

    Attributes
    ----------
    label : ndarray of str, shape (n,)
    group, unit : ndarray of int64, shape (n,)
    vocabulary : tuple of str
    embeddings : ndarray, shape (labels, DIMENSIONS)
        Of the vocabulary: labels lean to one end of an axis or the other.
    towards, away : ndarray, shape (8, DIMENSIONS)
        Words at both ends of that axis.
    """

    label: np.typing.NDArray[np.str_]
    group: Indices
    unit: Indices
    vocabulary: tuple[str, ...]
    embeddings: Floats
    towards: Floats
    away: Floats


@dataclass(frozen=True)
class LabelWorld(World):
    """Predicted labels; images of one unit often have one label.

    Attributes
    ----------
    planted : "lean" or "concentrate"
        The first group's labels lean to one end of an axis, the second's to the other; or the
        first group's labels pile up on the most common ones.
    """

    planted: Leaning = "lean"

    def shares(self, lean: Floats) -> Floats:
        """The truth: how often each label is predicted for each group, shape (2, labels).

        Parameters
        ----------
        lean : ndarray, shape (labels,)
            Where each label lies on the axis, in [-1, 1].
        """
        common = -0.7 * np.log(np.arange(1.0, _LABELS + 1.0))
        if self.planted == "lean":
            weights = np.exp([common + sign * self.strength * lean for sign in (1.0, -1.0)])
        else:
            weights = np.exp([(1.0 + self.strength) * common, common])
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def draw(self, seed: int, sample: int) -> Labelled:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng, layout = self.begin("labels", seed, sample)
        lean = rng.permutation(np.linspace(-1.0, 1.0, _LABELS))
        noise = SPREAD * rng.standard_normal((_LABELS + 16, DIMENSIONS))
        noise[:, 0] += 1.0
        noise[:, 1] += SPREAD * np.concatenate([lean, np.repeat([3.0, -3.0], 8)])
        upto = self.shares(lean).cumsum(axis=1)[layout.group]
        label = (layout.uniforms(rng)[:, None] >= upto[:, :-1]).sum(axis=1)
        return Labelled(
            np.array(_VOCABULARY)[label],
            layout.group,
            layout.unit,
            _VOCABULARY,
            noise[:_LABELS],
            towards=noise[_LABELS : _LABELS + 8],
            away=noise[_LABELS + 8 :],
        )


@dataclass(frozen=True, eq=False)
class Worded:
    """A sample of `WordWorld`: similarities of images to words, shape (n, words), and whose."""

    scores: Floats
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    group: Indices
    region: Indices
    unit: Indices


@dataclass(frozen=True)
class WordWorld(World):
    """Similarities to words, by region and group: the second group is closer to negative ones.

    The groups' sums over words differ by `strength` standard deviations in every region; regions
    differ at any strength.
    """

    def draw(self, seed: int, sample: int) -> Worded:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng, layout = self.begin("words", seed, sample)
        pairs = layout.unit if self.structure == "sets" else layout.unit // 2
        region = pairs % 3
        scores = 0.2 + SPREAD * (layout.noise(rng, 6) + region[:, None])
        difference = float(SPREAD * np.sqrt(6.0) * self.strength)
        scores[:, 3:] += difference / 3.0 * (layout.group == 1)[:, None]
        positive, negative = ("kind", "clever", "honest"), ("cruel", "dull", "false")
        return Worded(scores, positive, negative, layout.group, region, layout.unit)


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

    def draw(self, seed: int, sample: int) -> Ranked:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "rankings", self.pools, sample)
        if self.pools == "sets":
            layout = Layout.of("sets", self.images, self.groups, rng)
            scores = layout.noise(rng, _QUERIES).T
            return Ranked(self._plant(scores, layout.group), layout.group, None, layout.unit)
        n_pools = _QUERIES if self.pools == "own pools" else 1
        group = np.tile(self._groups(), n_pools)
        if self.pools == "shared pool":
            common, separate = rng.standard_normal(len(group)), rng.standard_normal((6, len(group)))
            scores = np.sqrt(0.5) * common + np.sqrt(0.5) * separate
            return Ranked(self._plant(scores, group).round(1), group, None, None)
        scores = self._plant(rng.standard_normal(len(group)), group)
        queries = np.repeat(np.arange(n_pools), self.images) if n_pools > 1 else None
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

    def draw(self, seed: int, sample: int) -> Preferences:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        hypothesis, noise = stream(seed, "preferences", sample).standard_normal((2, self.subjects))
        noise_weight = np.sqrt(1.0 - self.strength**2)
        mixed = self.strength * hypothesis + noise_weight * noise
        return Preferences(SPREAD * (0.5 + mixed), hypothesis)


Planted = Literal["recognition", "prevalence", "switching"]

# By how many standard deviations positives score above negatives.
_RECOGNISED = 1.5
_PREVALENCE = 0.3
# At full strength: how much rarer concepts are in the second group, and how much lower its
# positives score.
_APART = {"recognition": (0.0, 0.8), "prevalence": (0.2, 0.0), "switching": (-0.3, 0.4)}


@dataclass(frozen=True, eq=False)
class Scored:
    """A sample of `ConceptWorld`: scores and labels (n, concepts), group and unit (n,)."""

    scores: Floats
    labels: npt.NDArray[np.bool_]
    group: Indices
    unit: Indices


@dataclass(frozen=True)
class ConceptWorld(World):
    """Scores of concepts for images of two groups.

    Attributes
    ----------
    planted : "recognition", "prevalence" or "switching"
        The second group's positives score lower: a disparity whatever the measure. Or concepts
        are rarer in the second group and recognised equally well: groups stay exchangeable
        within positives and within negatives, at any strength. Or they are recognised worse
        in the second group and more common there, so that the sign of a disparity depends on
        whether prevalence is held fixed.
    concepts : int
    """

    planted: Planted = "recognition"
    concepts: int = 4

    def draw(self, seed: int, sample: int) -> Scored:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng, layout = self.begin("concepts", seed, sample)
        rarer, worse = _APART[self.planted]
        prevalence = _PREVALENCE + rarer * self.strength * np.array([0.5, -0.5])
        recognition = _RECOGNISED - worse * self.strength * np.arange(2)
        uniform = np.stack([layout.uniforms(rng) for _ in range(self.concepts)], axis=1)
        labels = uniform < prevalence[layout.group][:, None]
        above = recognition[layout.group][:, None]
        scores = layout.noise(rng, self.concepts) + above * labels
        return Scored(scores, labels, layout.group, layout.unit)
