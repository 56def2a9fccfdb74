"""Measured concepts: values by group, their replicates and their null, before any judgement."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from equipoise.core.groups import Groups
from equipoise.metrics.scores.cells import Flags, Floats
from equipoise.metrics.scores.inputs import Choices

CENTRED = "bootstrap replicates centred at no difference (asymptotic)"


@dataclass(frozen=True, eq=False)
class ConceptResults:
    """What `concept_disparity` and `design_choices` judge.

    Attributes
    ----------
    choices : Choices
    names : tuple of str
        Of the concepts.
    groups : Groups
    observed : ndarray, shape (concepts, groups)
        The metric; NaN where the group leaves the concept, and `reasons` says why. Under
        [Hall]'s protocol the mean over replicates.
    positives, sizes : ndarray of int, shape (concepts, groups)
        Positives and rows, before any split.
    reasons : tuple of tuple of str, shape (concepts, groups)
        "" where the group takes part.
    boot : ndarray, shape (replicates, concepts, groups), or None
    null : tuple of (ndarray of shape (permutations, groups) or None), one per concept
        The metric with groups permuted.
    thresholds : ndarray, shape (concepts,)
        NaN for ranked metrics.
    null_text : str
        What is exchangeable.
    level, resolution : float
    excluded : dict of str to int
        Rows that did not enter.
    unit : str
    """

    choices: Choices
    names: tuple[str, ...]
    groups: Groups = field(repr=False)
    observed: Floats
    positives: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    reasons: tuple[tuple[str, ...], ...]
    boot: Floats | None
    null: tuple[Floats | None, ...]
    thresholds: Floats
    null_text: str
    level: float
    resolution: float
    excluded: dict[str, int]
    unit: str

    @property
    def hall(self) -> bool:
        """Whether [Hall]'s protocol with its own rule of significance is in force."""
        return self.choices.prevalence == "hall"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of groups that are large enough, by index."""
        return list(combinations(np.flatnonzero(self.groups.usable).tolist(), 2))

    def differences(self, concept: int) -> Floats:
        """Return the differences of all pairs, shape (pairs,)."""
        return self._pairwise(self.observed[concept])

    def replicates(self, concept: int) -> Floats | None:
        """Return bootstrap replicates of the differences, shape (replicates, pairs)."""
        return None if self.boot is None else self._pairwise(self.boot[:, concept])

    def null_differences(self, concept: int) -> tuple[Floats | None, str]:
        """Return differences under the null, (m, pairs), and how they were drawn."""
        null = self.null[concept]
        if self.hall:
            return None, ""
        if null is not None:
            return self._pairwise(null), f"{self.null_text}; {len(null)} permutations"
        return centred(self.replicates(concept)), CENTRED

    def mean_differences(self) -> Floats:
        """Return each pair's difference of means over the concepts that both have, (pairs,)."""
        return np.array([self._mean(self.observed[None], g, h)[0] for g, h in self.pairs])

    def mean_replicates(self) -> Floats | None:
        """Return replicates of `mean_differences`, shape (replicates, pairs)."""
        if self.boot is None:
            return None
        found = [self._mean(self.boot, g, h) for g, h in self.pairs]
        return np.stack(found, axis=1) if found else np.empty((len(self.boot), 0))

    def shared(self, g: int, h: int) -> Flags:
        """Whether both groups of a pair take part in each concept."""
        return np.asarray(~np.isnan(self.observed[:, [g, h]]).any(axis=1))

    def _mean(self, values: Floats, g: int, h: int) -> Floats:
        both = self.shared(g, h)
        if not both.any():
            return np.full(len(values), np.nan)
        return np.asarray((values[:, both, g] - values[:, both, h]).mean(axis=1))

    def _pairwise(self, values: Floats) -> Floats:
        pairs = self.pairs
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        return np.asarray(values[..., first] - values[..., second])


def centred(replicates: Floats | None) -> Floats | None:
    """Return replicates minus their mean: what they would be about if nothing differed."""
    if replicates is None:
        return None
    known = ~np.isnan(replicates)
    mean = np.where(known, replicates, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray(replicates - mean)
