"""Intervals of means over concepts that images share, above all of numbers that can't be negative.

The largest difference between groups, and the sum of absolute deviations, lie above the truth by
an amount that does not shrink with the number of concepts. So both ends are bounds.

**Low end.** A rule that chooses groups without looking at the noise of what they are measured by
can't exceed the largest difference on average. Noise like that of the bootstrap is added to what
chooses, and taken off, larger, what is measured: in large samples the two are independent. The
choice of each concept is drawn to that of all, as far as concepts differ by noise alone.

**High end.** The smaller of two. A mean of roots is at most the root of the mean square, whose end
inverts a scaled noncentral chi-squared distribution. And the largest high end of contrasts is too
low only if that of the groups that are truly farthest apart is: tried are those that look so, and
those that common noise may hide.

Concepts that are a sample add the variance between them that images don't explain.
"""

import math
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import special

from equipoise.core import Booleans, Floats, Span, floats, record

Norm = Literal["range", "deviations"]
# How intervals are made, in words.
BOUNDS = "bounds without the noise of members, bootstrap"

# Replicates that are used; of those that are measured anew, and that noise is taken from.
_USED, _ANEW, _NOISE = 400, 100, 16
# Variance of the noise that is added to what chooses, as a multiple of that of the images.
_ADDED = 0.2
_STEPS = 50
_NOTHING = 1e-20


@record
class Crossed:
    """Error of a mean over concepts from resampled images, and concepts.

    Attributes
    ----------
    values : ndarray, shape (concepts,)
    deviations : ndarray, shape (replicates, concepts)
        How far each lies from its mean when images are resampled.
    freedom : int
        Independent images of the smallest group, less one.
    weights : ndarray, shape (replicates, concepts), or None
        How often each concept is drawn; None: concepts are as given.
    """

    values: Floats
    deviations: Floats
    freedom: int
    weights: Floats | None

    @cached_property
    def of_images(self) -> float:
        """Variance of the mean over images."""
        return float(self.deviations.mean(axis=1).var())

    @cached_property
    def of_concepts(self) -> float:
        """Variance that drawing concepts adds, beyond what their images explain."""
        if self.weights is None or self._units < 2:
            return 0.0
        total = self.weights.sum(axis=1, keepdims=True)
        shares = (self.weights / np.maximum(total, 1.0))[total[:, 0] > 0]
        n_used = min(len(shares), len(self.deviations))
        resampled_variance = float((shares[:n_used] * self.deviations[:n_used]).sum(axis=1).var())
        concept_variance = float((shares * self.values).sum(axis=1).var())
        return (
            max(concept_variance - max(resampled_variance - self.of_images, 0.0), 0.0)
            * self._units
            / (self._units - 1)
        )

    @cached_property
    def _units(self) -> int:
        return 0 if self.weights is None else len({column.tobytes() for column in self.weights.T})

    def half(self, level: float) -> float:
        """Return half the width of Student's interval (degrees of freedom: Satterthwaite's)."""
        total = self.of_images + self.of_concepts
        if not total > 0.0:
            return 0.0
        squares = self.of_images**2 / self.freedom + self.of_concepts**2 / max(self._units - 1, 1)
        return student(total**2 / squares, level) * math.sqrt(total)

    def half_of_concepts(self, level: float) -> float:
        """Return half the width that drawing concepts alone would make."""
        return student(max(self._units - 1, 1), level) * math.sqrt(self.of_concepts)


def student(freedom: float, level: float) -> float:
    """Return the two-sided critical value of Student's t."""
    return float(special.stdtrit(freedom, (1.0 + level) / 2.0))


@record
class MeanNorm:
    """Ends of the mean over concepts of the largest difference, or of absolute deviations.

    Attributes
    ----------
    effects : ndarray, shape (concepts, groups)
        NaN where a group is not compared.
    replicates : ndarray, shape (replicates, concepts, groups)
        The same of resampled images; NaN where groups no longer meet.
    freedom : int
        Independent images of the smallest group, less one; there are no ends below 1.
    norm : "range" or "deviations"
        Largest less smallest, or Σ |effect − mean effect|.
    weights : ndarray, shape (replicates, concepts), or None
        See `Crossed`.
    """

    effects: Floats
    replicates: Floats
    freedom: int
    norm: Norm
    weights: Floats | None = None

    def __call__(self, level: float) -> Span:
        """Return the lower and upper end."""
        if not self._bounded:
            return math.nan, math.nan
        value = float(self._contrast(self._centred, self._centred).mean())
        if not (self._deviations**2).sum() > _NOTHING * (self._centred**2).sum():
            return value, value
        ends = (
            abs(float(crossed.values.mean())) + crossed.half(level) for crossed in self._contrasts
        )
        high = min(self._root(level), max(ends))
        low = float(self._chosen.values.mean()) - self._chosen.half(level)
        return min(max(low, 0.0), high), high

    @cached_property
    def estimate(self) -> float:
        """The mean less what noise alone would make of it: squares add."""
        if not self._bounded:
            return math.nan
        value = self._contrast(self._centred, self._centred).mean()
        noise = self._contrast(self._deviations, self._deviations).mean(axis=1)
        return math.sqrt(max(float(value**2 - (noise**2).mean()), 0.0))

    @cached_property
    def _met(self) -> Booleans:
        """Whether all groups of a concept are in a replicate, shape (replicates, concepts)."""
        missing = np.isnan(self.replicates[:_USED]) & ~np.isnan(self.effects)
        return np.asarray(~missing.any(axis=2))

    @property
    def _bounded(self) -> bool:
        """Whether the noise of every concept is known."""
        return min(self.freedom, len(self.effects)) > 0 and bool((self._met.sum(axis=0) > 1).all())

    @cached_property
    def _centred(self) -> Floats:
        return _without_mean(self.effects)

    @cached_property
    def _deviations(self) -> Floats:
        """Deviations of resampled effects from their mean; 0 for excluded groups."""
        replicates = self.replicates[:_USED].copy()
        for concept in np.flatnonzero(~self._met.all(axis=0)).tolist():
            met = np.flatnonzero(self._met[:, concept])
            replicates[:, concept] = replicates[np.resize(met, len(replicates)), concept]
        centred = _without_mean(np.where(np.isnan(self.effects), np.nan, replicates))
        return floats((centred - centred.mean(axis=0)) * math.sqrt(1.0 + 1.0 / self.freedom))

    def _contrast(self, choosing: Floats, values: Floats) -> Floats:
        """Return the norm of effects, by the groups or signs that others choose."""
        if self.norm == "deviations":
            return floats((np.sign(choosing) * values).sum(axis=-1))
        ends = (choosing.argmax(axis=-1), choosing.argmin(axis=-1))
        first, last = (np.take_along_axis(values, end[..., None], axis=-1)[..., 0] for end in ends)
        return floats(first - last)

    @cached_property
    def _chosen(self) -> Crossed:
        """What groups that noisy effects choose differ by, on average."""
        noisy = max(1, min(_NOISE, len(self._deviations) // 4))
        fresh = self._deviations[: len(self._deviations) - noisy][:_ANEW]
        values = self._thinned(self._centred[None], noisy)[0]
        redrawn = self._thinned(self._centred + fresh, noisy)
        return Crossed(values, redrawn - values, self.freedom, self.weights)

    def _thinned(self, effects: Floats, noisy: int) -> Floats:
        total, residuals = np.zeros(effects.shape[:2]), _from_all(self._deviations)
        noise = (1.0 + _ADDED) * float((residuals**2).sum(axis=(1, 2)).mean())
        for noise_draw in self._deviations[-noisy:]:
            for signed in (noise_draw, -noise_draw):
                choosing = effects + math.sqrt(_ADDED) * signed
                distinct = _from_all(choosing)
                size = np.maximum((distinct**2).sum(axis=(1, 2)), 1e-300)
                choosing -= np.minimum(noise / size, 1.0)[:, None, None] * distinct
                total += self._contrast(choosing, effects - signed / math.sqrt(_ADDED))
        return total / (2 * noisy)

    @cached_property
    def _main(self) -> Floats:
        """Direction of the noise that is largest along the effects."""
        along = (self._deviations * self._centred).sum(axis=(1, 2))
        return floats((self._deviations * along[:, None, None]).sum(axis=0))

    @cached_property
    def _contrasts(self) -> list[Crossed]:
        """The mean by the groups that are farthest apart, in effects or in their noise."""
        return [
            Crossed(
                self._contrast(direction, self._centred),
                self._contrast(
                    np.broadcast_to(direction, self._deviations.shape), self._deviations
                ),
                self.freedom,
                self.weights,
            )
            for direction in (self._centred, self._main)
        ]

    def _root(self, level: float) -> float:
        """Return the root of the end of the mean square."""
        deviations, centred = self._deviations, self._centred
        noise = (deviations**2).sum(axis=2)
        of_each, size = noise.mean(axis=0), float((centred**2).sum())
        trace, main = float(of_each.sum()), max(float((self._main**2).sum()), 1e-300)
        along = float((deviations * self._main).sum(axis=(1, 2)).var()) / main
        scale = max(float(noise.sum(axis=1).var()) / 2.0 / trace, along)
        # Effects more alike than noise makes them are no proof that there are none.
        high = scale * _noncentrality(
            max(size, trace) / scale, trace / scale, student(self.freedom, level)
        )
        squares = (centred**2).sum(axis=1) - of_each
        square_deviations = 2.0 * (deviations * centred).sum(axis=2) + noise - of_each
        crossed = Crossed(squares, square_deviations, self.freedom, self.weights)
        middle = (size - trace) / len(squares)
        square = middle + math.hypot(high / len(squares) - middle, crossed.half_of_concepts(level))
        groups = (~np.isnan(self.effects)).sum(axis=1).max() if self.norm == "deviations" else 2.0
        return math.sqrt(max(float(groups) * square, 0.0))


def _without_mean(effects: Floats) -> Floats:
    """Return effects less their mean over groups; 0, which no norm sees, for NaN."""
    defined = ~np.isnan(effects)
    mean = np.where(defined, effects, 0.0).sum(axis=-1, keepdims=True)
    mean = mean / np.maximum(defined.sum(axis=-1, keepdims=True), 1)
    return np.where(defined, effects - mean, 0.0)


def _from_all(effects: Floats) -> Floats:
    """Return effects less their mean over concepts, unless there is one only."""
    if effects.shape[1] == 1:
        return np.zeros_like(effects)
    return floats(effects - effects.mean(axis=1, keepdims=True))


def _noncentrality(x: float, df: float, z: float) -> float:
    """Return the noncentrality at which a chi-squared number is at most x as rarely as -z."""
    low, high, rarely = 0.0, math.sqrt(x) + z, float(special.ndtr(-z))
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        common = float(special.chndtr(x, df, middle**2)) > rarely
        if common:
            low = middle
        else:
            high = middle
    return high**2
