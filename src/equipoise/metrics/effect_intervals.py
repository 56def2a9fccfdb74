"""Intervals of a mean of effect sizes, which chance alone keeps away from 0.

The mean of the estimates sqrt(χ² / (n·d)) lies above the true mean, by an amount that does not
shrink as classes are added while their interval does. What can be estimated without bias, from
tables of any sparseness, are sums of squared effects: χ² less its bias at the observed table (see
`equipoise.stats.association`). Both ends are bounds that such sums imply, whatever the effects.

**High end.** Classes whose effect stands well clear of its noise enter with their own estimate and
variance. For the others, mean V <= sqrt(mean V²) by Jensen's inequality, with the high end of
mean V² from a noncentral chi-squared distribution matched to the sum of their χ². Both are added
by their distances from the estimates (MOVER).

**Low end.** The larger of two bounds. Σ V >= sqrt(ΣV²) with one class, and by Hölder's inequality
Σ V >= (ΣV²)^{3/2} / (ΣV⁴)^{1/2}, an equality where effects are equal or 0, with the low end of ΣV²
and the high end of ΣV⁴. And the MOVER sum of the classes alone whose effect is beyond doubt after
Bonferroni's correction, all others being 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import chdtrc, chndtr, ndtri

from equipoise.stats.association import Association, Statistic

Floats = npt.NDArray[np.float64]

# Noise of a noncentrality, relative to it, below which its root is nearly without bias.
_CLEAR = 0.25

# Probability that chance alone puts any class beyond doubt.
_DOUBT = 0.0125

# Factor by which a bracket grows until it holds its root.
_WIDER = 1.5


def summaries(tables: Sequence[Floats], design: Floats) -> Association:
    """Summarise tables of several shapes, those of like width in one pass.

    Parameters
    ----------
    tables : sequence of ndarray, shape (labels, groups)
        Counts; all of the same groups.
    design : ndarray, shape (tables,)
        Design effects that counts are divided by; NaN counts as 1.
    """
    # Powers of two: little padding, and few passes.
    widths = np.array([1 << max(len(table) - 1, 0).bit_length() for table in tables])
    places, parts = [], []
    for width in np.unique(widths):
        here = np.flatnonzero(widths == width)
        padded = np.zeros((len(here), width, tables[0].shape[1]))
        for one, index in zip(padded, here.tolist(), strict=True):
            one[: len(tables[index])] = tables[index]
        divisor = np.where(np.isnan(design[here]), 1.0, design[here])
        places.append(here)
        parts.append(Association.of(padded / divisor[:, None, None]))
    return Association.concatenate(parts).take(np.argsort(np.concatenate(places)))


@dataclass(frozen=True, eq=False)
class MeanEffect:
    """Ends of the interval of a mean of effect sizes, at any level.

    Attributes
    ----------
    tables : Association
        Summaries of the classes' tables, shape (classes,), each estimable, counts divided by the
        design effect where there is one.
    statistic : "cramers_v", "phi" or "tschuprows_t"
    inflation : float
        Variance of the mean relative to that of independent classes.

    References
    ----------
    Zou & Donner 2008, Statistics in Medicine 27, 1693-1702 (MOVER). Coverage: docs/coverage.md.
    """

    tables: Association
    statistic: Statistic = "cramers_v"
    inflation: float = 1.0

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        if len(self.tables.n) == 1:
            ends = self.tables.interval(self.statistic, level)
            return float(ends[0][0]), float(ends[1][0])
        high = self._high(level)
        # The larger of two bounds, each with half of the probability of error.
        return min(self._low((1.0 + level) / 2.0), high), high

    @cached_property
    def _weight(self) -> Floats:
        """Squared effect size per noncentrality."""
        return 1.0 / (self.tables.n * self.tables.divisor(self.statistic))

    @cached_property
    def _largest(self) -> Floats:
        """Effect sizes of perfect associations."""
        return np.sqrt(self.tables.smaller / self.tables.divisor(self.statistic))

    @cached_property
    def _signal(self) -> Floats:
        return np.maximum(self.tables.unbiased, 0.0)

    @cached_property
    def _spread(self) -> Floats:
        """Standard deviations of the noncentralities, as estimated."""
        return np.sqrt(self.inflation * self.tables.unbiased_variance(self._signal))

    def _high(self, level: float) -> float:
        z = float(ndtri(0.5 + level / 2.0))
        clear = self._spread < _CLEAR * self._signal
        effect, noise = self._roots(clear)
        # The root is concave: less by this share on average.
        estimate = float((effect + noise**2 / (2.0 * effect)).sum())
        square = float(((z * noise) ** 2).sum())
        if not clear.all():
            rest = _Sum.of(self, ~clear)
            many = int((~clear).sum())
            middle = math.sqrt(many * max(rest.value, 0.0))
            most = math.sqrt(many * rest.high(level))
            estimate, square = estimate + middle, square + (most - middle) ** 2
        return float(min(estimate + math.sqrt(square), self._largest.sum()) / len(clear))

    def _low(self, level: float) -> float:
        whole = _Sum.of(self, np.ones(len(self._weight), dtype=bool))
        squares = whole.low(level)
        bound = math.sqrt(squares)
        if squares > 0:
            bound = max(bound, math.sqrt(squares**3 / self._fourth(squares, level)))
        return max(bound, self._beyond_doubt(level)) / len(self._weight)

    def _fourth(self, squares: float, level: float) -> float:
        """Return the high end of the sum of the effect sizes to the power of four."""
        z = float(ndtri(0.5 + level / 2.0))
        noise = self._spread**2
        fourth = self._weight**2 * (self.tables.unbiased**2 - noise)
        variance = self._weight**4 * (4.0 * self._signal**2 * noise + 2.0 * noise**2)
        high = float(fourth.sum()) + z * math.sqrt(float(variance.sum()))
        return max(high, squares**2 / len(noise))

    def _beyond_doubt(self, level: float) -> float:
        p = chdtrc(self.tables.df, self.tables.chi2 / self.inflation)
        effect, noise = self._roots((p < _DOUBT / len(p)) & (self._signal > 0.0))
        z = float(ndtri(0.5 + level / 2.0))
        return float(effect.sum()) - z * math.sqrt(float((noise**2).sum()))

    def _roots(self, kept: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return effect sizes and their standard deviations (delta method) under a mask."""
        signal = self._signal[kept]
        effect = np.sqrt(self._weight[kept] * signal)
        return effect, effect * self._spread[kept] / signal / 2.0


@dataclass(frozen=True, eq=False)
class _Sum:
    """The sum of squared effect sizes over some classes, and its sampling distribution.

    Attributes
    ----------
    value : float
        Its estimate without bias; can be negative.
    df : float
        Mean of the sum of weighted χ² beyond the true sum of squares.
    parts : MeanEffect
        Restricted to these classes.
    """

    value: float
    df: float
    parts: MeanEffect

    @classmethod
    def of(cls, effects: MeanEffect, kept: npt.NDArray[np.bool_]) -> _Sum:
        """Add up the classes under a mask."""
        parts = MeanEffect(effects.tables.take(kept), effects.statistic, effects.inflation)
        weight = parts._weight
        value, df = (
            float((weight * one).sum()) for one in (parts.tables.unbiased, parts.tables.df)
        )
        return cls(value, df, parts)

    def low(self, level: float) -> float:
        """Return the lower end of the true sum."""
        return self._solve(max(self.value + self.df, 0.0), (1.0 + level) / 2.0)

    def high(self, level: float) -> float:
        """Return the upper end of the true sum."""
        # Tables more even than chance makes them do not say that the population is.
        return self._solve(max(self.value, 0.0) + self.df, (1.0 - level) / 2.0)

    def _solve(self, x: float, probability: float) -> float:
        """Return the true sum at which P(X <= x) is `probability`, 0 where there is none."""

        # Square roots are as smooth as effect sizes.
        def excess(root: float) -> float:
            return self._below(x, root * root) - probability

        low, high = 0.0, self._bracket(x, probability)
        if excess(low) <= 0.0:
            return 0.0
        if excess(high) < 0.0:
            high = float(brentq(excess, low, high, xtol=1e-10))
        return high * high

    def _bracket(self, x: float, probability: float) -> float:
        """Return a square root of the sum that is too large; the largest there is if none is."""
        most = math.sqrt(float((self.parts._largest**2).sum()))
        high = math.sqrt(max(x - self.df, 0.0) + math.sqrt(self._variance(0.0)))
        while high < most and self._below(x, high * high) > probability:
            high *= _WIDER
        return min(high, most)

    def _below(self, x: float, total: float) -> float:
        """Return P(X <= x) at a true sum."""
        scale = self._variance(total) / (2.0 * self.df + 4.0 * total)
        return float(chndtr(x / scale, self.df / scale, total / scale))

    def _variance(self, total: float) -> float:
        """Return the larger variance of equal effects and of those that the estimates show."""
        tables, weight = self.parts.tables, self.parts._weight
        shares = [np.full_like(weight, 1.0 / len(weight))]
        shown = weight * self.parts._signal
        if shown.any():
            shares.append(shown / shown.sum())
        squares = np.minimum(total * np.stack(shares), self.parts._largest**2)
        variances = (tables.unbiased_variance(squares / weight) * weight**2).sum(axis=1)
        return self.parts.inflation * float(variances.max())
