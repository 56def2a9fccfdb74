"""Multi-label scores: groups differ in prevalence, in how well they are recognised, or in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.planted.calibration.repeats import (
    Floats,
    Indices,
    Layout,
    Structure,
    check_strength,
)
from equipoise.stats.streams import stream

Planted = Literal["recognition", "prevalence", "switching"]

# By how many standard deviations positives score above negatives.
_RECOGNISED = 1.5
_PREVALENCE = 0.3


@dataclass(frozen=True, eq=False)
class Scored:
    """A sample of `ConceptWorld`: scores and labels (n, concepts), group and unit (n,)."""

    scores: Floats
    labels: npt.NDArray[np.bool_]
    group: Indices
    unit: Indices


@dataclass(frozen=True)
class ConceptWorld:
    """Scores of concepts for images of two groups.

    Attributes
    ----------
    strength : float
        In [0, 1]. At 0 groups are exchangeable.
    images : int
    structure : "independent", "clustered" or "sets"
    planted : "recognition", "prevalence" or "switching"
        The second group's positives score lower: a disparity whatever the measure. Or concepts
        are rarer in the second group and recognised equally well: groups stay exchangeable
        within positives and within negatives, at any strength. Or they are recognised worse
        in the second group and more common there, so that the sign of a disparity depends on
        whether prevalence is held fixed.
    concepts : int
    """

    strength: float
    images: int
    structure: Structure = "independent"
    planted: Planted = "recognition"
    concepts: int = 4

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def prevalences(self) -> tuple[float, float]:
        """The truth: the share of each group's images that show a concept."""
        moved = {"recognition": 0.0, "prevalence": 0.2, "switching": -0.3}[self.planted]
        return tuple(_PREVALENCE + moved * self.strength * sign for sign in (0.5, -0.5))  # type: ignore[return-value]  # two of them

    @property
    def recognition(self) -> tuple[float, float]:
        """The truth: how far each group's positives score above negatives."""
        lower = {"recognition": 0.8, "prevalence": 0.0, "switching": 0.4}[self.planted]
        return _RECOGNISED, _RECOGNISED - lower * self.strength

    def draw(self, seed: int, sample: int) -> Scored:
        """Draw a sample; samples of other strengths differ in what is planted alone."""
        rng = stream(seed, "concepts", self.structure, sample)
        layout = Layout.of(self.structure, self.images, 2, rng)
        uniform = np.stack([layout.uniforms(rng) for _ in range(self.concepts)], axis=1)
        labels = uniform < np.array(self.prevalences)[layout.group][:, None]
        above = np.array(self.recognition)[layout.group][:, None]
        scores = layout.noise(rng, self.concepts) + above * labels
        return Scored(scores, labels, layout.group, layout.unit)
