"""Labels that a model predicts for images of two groups, and similarities of images to words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.planted.calibration.embeddings import DIMENSIONS, SPREAD
from equipoise.planted.calibration.repeats import (
    Floats,
    Indices,
    Layout,
    Structure,
    check_strength,
)
from equipoise.stats.streams import stream

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
class LabelWorld:
    """Predicted labels of images of two groups.

    Attributes
    ----------
    strength : float
        In [0, 1]; at 0 both groups' labels have one distribution.
    images : int
    structure : "independent", "clustered" or "sets"
        Images of one unit often have one label.
    planted : "lean" or "concentrate"
        The first group's labels lean to one end of an axis, the second's to the other; or the
        first group's labels pile up on the most common ones.
    """

    strength: float
    images: int
    structure: Structure = "independent"
    planted: Literal["lean", "concentrate"] = "lean"

    def __post_init__(self) -> None:
        check_strength(self.strength)

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
        rng = stream(seed, "labels", self.structure, sample)
        layout = Layout.of(self.structure, self.images, 2, rng)
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
class WordWorld:
    """Similarities to words, by region and group: the second group is closer to negative ones.

    Attributes
    ----------
    strength : float
        In [0, 1]: by how many standard deviations the groups' sums over words differ. At 0
        groups are exchangeable within regions; regions differ at any strength.
    images : int
    structure : "independent", "clustered" or "sets"
    """

    strength: float
    images: int
    structure: Structure = "independent"

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def difference(self) -> float:
        """The truth: the difference of both groups' sums over all words, in every region."""
        return float(SPREAD * np.sqrt(6.0) * self.strength)

    def draw(self, seed: int, sample: int) -> Worded:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "words", self.structure, sample)
        layout = Layout.of(self.structure, self.images, 2, rng)
        pairs = layout.unit if self.structure == "sets" else layout.unit // 2
        region = pairs % 3
        scores = 0.2 + SPREAD * (layout.noise(rng, 6) + region[:, None])
        scores[:, 3:] += self.difference / 3.0 * (layout.group == 1)[:, None]
        positive, negative = ("kind", "clever", "honest"), ("cruel", "dull", "false")
        return Worded(scores, positive, negative, layout.group, region, layout.unit)
