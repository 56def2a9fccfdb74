"""Gaps of all concepts with what was drawn for them: permutations, replicates, weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.core.estimate import Ends, no_ends
from equipoise.metrics.building import Percentile
from equipoise.metrics.measure import Draws
from equipoise.metrics.retrieval.estimates import query_weights, weighted_mean
from equipoise.metrics.retrieval.pools import Floats
from equipoise.metrics.similarity.effects import Effects, gaps
from equipoise.metrics.similarity.intervals import simultaneous
from equipoise.stats.resampling import Bootstrap, Resampling

_SETS = "groups are exchangeable within each counterfactual set"
_UNITS = "groups are exchangeable between units of a pool, within units of several groups"
_IMAGES = "groups are exchangeable over the images of each pool"


@dataclass(frozen=True, eq=False)
class DrawnGaps:
    """The gap of every concept; everything is drawn once, when it is asked for.

    Attributes
    ----------
    effects : Effects
    scale : float or None
        Of logits.
    resampling : Bootstrap, Permutation or None
    rng : int
    """

    effects: Effects
    scale: float | None
    resampling: Resampling | None
    rng: int

    @property
    def metric(self) -> str:
        """Name by the unit of the gap."""
        return "similarity_gap" if self.scale is None else "logit_gap"

    @property
    def level(self) -> float:
        """Confidence level of parts."""
        return 0.95 if self.resampling is None else self.resampling.level

    @property
    def of_parts(self) -> str:
        """What the intervals of single concepts resample."""
        if self.effects.clusters is not None:
            return "unit"
        return "set" if self.effects.paired else "image"

    @cached_property
    def each(self) -> Floats:
        """Gap of every pool."""
        return gaps(self.effects.effects)

    @cached_property
    def boot(self) -> Floats | None:
        """Resampled effects, (replicates, pools, groups)."""
        if not isinstance(self.resampling, Bootstrap) or not len(self.effects.known):
            return None
        return self.effects.resampled(self.resampling.replicates, self.rng)

    @cached_property
    def bands(self) -> Floats | None:
        """Effects with exchanged groups, (draws, pools, groups)."""
        return None if self.resampling is None else self.effects.bands(self.rng)

    @cached_property
    def weights(self) -> Floats | None:
        """How often each concept with a value is in each replicate of the mean."""
        if not len(self.effects.known):
            return None
        return query_weights(self.effects.pools, self.effects.known, self.resampling, self.rng)

    @cached_property
    def draws(self) -> Draws:
        """The mean over concepts first, and each concept after it."""
        null = None
        if self.resampling is not None:
            null = self.effects.exchanged(self.resampling, self.rng)
        unpaired = _IMAGES if self.effects.clusters is None else _UNITS
        return self._held(self.each, null, _SETS if self.effects.paired else unpaired)

    @cached_property
    def pooled(self) -> Draws:
        """Gaps of plain means, and what the secondary null gives them."""
        null = None
        if self.resampling is not None:
            null = self.effects.pooled(self.resampling, self.rng)
        return self._held(self.effects.plain, null, _IMAGES)

    def _held(self, each: Floats, null: Floats | None, text: str) -> Draws:
        known = self.effects.known
        mean = each[known].mean() if len(known) else np.nan
        return Draws(
            observed=np.append(mean, each),
            null=None if null is None else np.insert(null, 0, null[:, known].mean(axis=1), axis=1),
            level=self.level,
            null_text="" if null is None else f"{text}; {len(null)} permutations",
            resolution=getattr(self.resampling, "resolution", 0.0),
            intervals=self.resampling is not None,
        )

    def ends(self, index: int) -> Ends:
        """Return the ends of the gap of one concept."""
        drawn = None if self.boot is None else self.boot[:, index]
        return simultaneous(self.effects.effects[index], drawn, int(self.effects.freedom[index]))

    def mean_ends(self, each: Floats) -> Ends:
        """Return the ends of a mean over concepts, none for one."""
        if self.weights is None:
            return no_ends
        return Percentile(weighted_mean(self.weights, each[self.effects.known]))
