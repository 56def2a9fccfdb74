"""Intervals of effect sizes of contingency tables that hold at any strength and skewness.

Inverting the noncentral chi-squared distribution presumes that an association is weak: then
Pearson's statistic X has mean λ + df and variance 4λ + 2 df, where λ = n φ² is its noncentrality.
For a stronger association, or skewed margins, the mean is λ + b and the variance 4cλ + v, and
with c well above 1 the plain interval covers less than half of the time. Here b and c come from
the delta method, v from the exact variance of X at fixed margins, and the distribution that is
inverted is a noncentral chi-squared one, scaled and with the degrees of freedom that match both.

Write the population as p_ij = r_i c_j (1 + s e_ij), where e are the observed relative residuals
and s moves the table from independence (0) to the observed one (1) and beyond. Then, with
α_i = Σ_j c_j e_ij², β_j = Σ_i r_i e_ij² and w_ij = r_i c_j,

    b(s) = df + s Σ e - s² (Σ α + Σ β - 3 φ²) + s³ Σ w e³
    c(s) = 1 + s Σ w e³ / φ² + s² (2 φ⁴ - 3 (Σ r α² + Σ c β²)) / (4 φ²) + s³ Σ w e α β / (2 φ²)

Both ends are found with b and c at the candidate end, as in a score interval. In large tables
noise inflates φ², which hides the skewness of a weak association. c is therefore computed a
second time with what noise contributes on average subtracted, and the larger of the two counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chndtr

from equipoise.core import AnyArray, Floats, InputError, floats, record, unwarned
from equipoise.core.arguments import check_level
from equipoise.stats.intervals import divide, where

Plain = Literal["cramers_v", "phi", "tschuprows_t"]
"""Effect sizes without a correction for bias."""

# Halvings of the bracket [0, sqrt(λ of a perfect association)].
_STEPS = 48
_LEAST_C, _LEAST_B, _LEAST_V, _MOST_SIGNAL = 0.01, 0.05, 0.2, 3.0
_NOTHING = 1e-9


@record
class Association:
    """Summaries of contingency tables for intervals; arrays of one shape (...).

    Attributes
    ----------
    n, chi2, df, smaller : ndarray
        Total, Pearson's statistic, (r - 1)(c - 1), and min(r, c) - 1 over non-empty rows and
        columns.
    null_variance : ndarray
        Variance of `chi2` over all tables with the same margins.
    signal : ndarray
        Noncentrality that is left when chance is subtracted from `chi2`.
    unbiased : ndarray
        Estimate of the noncentrality without bias up to terms of order 1/n; can be negative.
    bias, spread, spread_signal : ndarray, shape (..., 4)
        Coefficients of b(s), of c(s) and of c(s) without noise, lowest power first.
    """

    n: Floats
    chi2: Floats
    df: Floats
    smaller: Floats
    null_variance: Floats
    signal: Floats
    unbiased: Floats
    bias: Floats
    spread: Floats
    spread_signal: Floats

    @property
    def cramers_v(self) -> Floats:
        """Return Cramér's V; NaN where fewer than two rows or columns are not empty."""
        v: Floats = np.sqrt(divide(self.chi2, self.n * self.smaller))
        return v

    @classmethod
    def of(cls, tables: ArrayLike) -> Association:
        """Summarise tables of counts.

        Parameters
        ----------
        tables : array-like, shape (..., rows, columns)
            Counts, possibly fractional; empty rows and columns are ignored.
            Where units are clustered, divided by the design effect (first-order correction of Rao
            and Scott).

        Raises
        ------
        InputError
            When a count is negative or not finite.
        """
        counts = floats(tables)
        if counts.ndim < 2 or not np.isfinite(counts).all() or (counts < 0).any():
            raise InputError("tables: expected finite counts of at least 0, shape (..., r, c)")
        n = counts.sum(axis=(-2, -1))
        total = np.where(n > 0, n, 1.0)
        r, c = counts.sum(axis=-1) / total[..., None], counts.sum(axis=-2) / total[..., None]
        rows, columns = (r > 0).sum(axis=-1), (c > 0).sum(axis=-1)
        weight = r[..., :, None] * c[..., None, :]
        e = counts / total[..., None, None] / np.where(weight > 0, weight, 1.0) - (weight > 0)
        phi2 = (weight * e**2).sum(axis=(-2, -1))
        chi2, df = total * phi2, np.maximum(rows - 1.0, 0.0) * np.maximum(columns - 1.0, 0.0)
        smaller = np.maximum(np.minimum(rows, columns) - 1.0, 0.0)
        alpha, beta = (c[..., None, :] * e**2).sum(axis=-1), (r[..., :, None] * e**2).sum(axis=-2)
        third = (weight * e**3).sum(axis=(-2, -1))
        bias = np.stack(
            [df, e.sum(axis=(-2, -1)), 3.0 * phi2 - alpha.sum(axis=-1) - beta.sum(axis=-1), third],
            axis=-1,
        )
        # Terms of b(1), less what chance adds to them on average at these margins.
        less, i, j = np.maximum(total - 1.0, 1.0), rows - 1.0, columns - 1.0
        noise, linear = i * j / less, e.sum(axis=(-2, -1))
        alphas = alpha.sum(axis=-1) - (_inverse(r) * (1.0 - r)).sum(axis=-1) * j / less
        betas = beta.sum(axis=-1) - (_inverse(c) * (1.0 - c)).sum(axis=-1) * i / less
        thirds = third - _odd_moment(r) * _odd_moment(c) / (less * np.maximum(less - 1.0, 1.0))
        signal = np.maximum(chi2 - df, np.sqrt(2.0 * np.maximum(df, 1.0)))
        chance = _odd_moment(r) * _odd_moment(c) / total**2
        quiet_alpha = alpha - _inverse(r) * (columns - 1.0)[..., None] / total[..., None]
        quiet_beta = beta - _inverse(c) * (rows - 1.0)[..., None] / total[..., None]
        return cls(
            n=n,
            chi2=chi2,
            df=df,
            smaller=smaller,
            null_variance=np.maximum(_null_variance(total, r, c), _LEAST_V * df),
            signal=signal,
            unbiased=chi2
            - np.asarray(total * noise + linear - alphas - betas + 3.0 * (phi2 - noise) + thirds),
            bias=np.where((chi2 > _NOTHING)[..., None], bias, bias * [1.0, 0.0, 0.0, 0.0]),
            spread=_spread(weight * e, r, c, alpha, beta, third, phi2),
            spread_signal=_spread(
                weight * e, r, c, quiet_alpha, quiet_beta, third - chance, signal / total
            ),
        )

    @classmethod
    def concatenate(cls, parts: Sequence[Association]) -> Association:
        """Join summaries along their first axis."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, indices: AnyArray) -> Association:
        """Return the summaries at indices, or under a mask, of the first axis."""
        return Association(*(getattr(self, field.name)[indices] for field in fields(self)))

    def divisor(self, statistic: Plain) -> Floats:
        """Return the divisor of noncentrality / n under the root."""
        return divisor(statistic, self.smaller, self.df)

    def interval(
        self, statistic: Plain = "cramers_v", level: float = 0.95
    ) -> tuple[Floats, Floats]:
        """Return both ends of the interval of the population's effect size, each of shape (...).

        Parameters
        ----------
        statistic : "cramers_v", "phi" or "tschuprows_t"
            Whether the estimate was bias-corrected does not matter.
        level : float
            Confidence level in (0, 1).

        Returns
        -------
        low, high : ndarray, shape (...)
            At least 0, and can be 0; at most what a perfect association gives (1 for Cramér's V).
            NaN where fewer than two rows or columns are not empty.

        Raises
        ------
        InputError
            When `level` is outside (0, 1).

        References
        ----------
        Smithson 2003, Confidence Intervals, chapter 4 (inversion); Bishop, Fienberg & Holland 1975,
        Discrete Multivariate Analysis, section 11.3 (delta method); Haldane 1940, Biometrika 31,
        346-355 (variance at fixed margins). Coverage: docs/calibration.
        """
        check_level(level)
        defined = self.df > 0
        # A table more even than chance makes does not say that the population is.
        ends = (
            self._noncentrality(self.chi2, (1.0 + level) / 2.0),
            self._noncentrality(np.maximum(self.chi2, self.df), (1.0 - level) / 2.0),
        )
        size = np.where(defined, self.n * self.divisor(statistic), 1.0)
        return where(defined, np.sqrt(ends[0] / size), np.sqrt(ends[1] / size))

    def _noncentrality(self, x: Floats, probability: float) -> Floats:
        """Return the noncentrality at which P(X <= x) is `probability`, 0 where there is none."""
        low, high = np.zeros_like(x), np.sqrt(self.n * self.smaller)
        with unwarned():
            unreached = ~(self._below(x, np.zeros_like(x)) > probability)
            for _ in range(_STEPS):
                middle = (low + high) / 2.0
                above = self._below(x, middle * middle) > probability
                low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.where(unreached, 0.0, high * high)

    def _below(self, x: Floats, noncentrality: Floats) -> Floats:
        """Return P(X <= x) at a noncentrality."""
        s = np.sqrt(noncentrality / np.maximum(self.chi2, _NOTHING))
        b = np.maximum(_polynomial(self.bias, s), _LEAST_B * self.df)
        scale = self.variance(noncentrality) / (2.0 * b + 4.0 * noncentrality)
        return floats(chndtr(x / scale, b / scale, noncentrality / scale))

    def variance(self, noncentrality: Floats) -> Floats:
        """Return the variance of `chi2` at a noncentrality, shape (...)."""
        s = np.sqrt(noncentrality / np.maximum(self.chi2, _NOTHING))
        signal = np.minimum(np.sqrt(noncentrality / self.signal), _MOST_SIGNAL)
        c = np.maximum(_polynomial(self.spread, s), _polynomial(self.spread_signal, signal))
        return floats(self.null_variance + 4.0 * np.maximum(c, _LEAST_C) * noncentrality)

    def unbiased_variance(self, noncentrality: Floats) -> Floats:
        """Return the variance of `unbiased` at a noncentrality, shape (...)."""
        # Taking off the bias stretches the deviations of small tables.
        lines = self.smaller + self.df / np.maximum(self.smaller, 1.0) - 1.0
        return self.variance(noncentrality) * (1.0 + lines / np.maximum(self.n, 1.0)) ** 2


def divisor(statistic: Plain, smaller: Floats, df: Floats) -> Floats:
    """Return what χ² over n is divided by under the root of an effect size.

    Parameters
    ----------
    statistic : "cramers_v", "phi" or "tschuprows_t"
    smaller, df : ndarray
        min(r, c) - 1 and (r - 1)(c - 1) of tables with r rows and c columns.
    """
    if statistic == "phi":
        return np.ones_like(smaller)
    return smaller if statistic == "cramers_v" else np.sqrt(df)


def _spread(
    weighted: Floats, r: Floats, c: Floats, alpha: Floats, beta: Floats, third: Floats, phi2: Floats
) -> Floats:
    """Return the coefficients of c(s)."""
    squares = (r * alpha**2).sum(axis=-1) + (c * beta**2).sum(axis=-1)
    products = (weighted * alpha[..., :, None] * beta[..., None, :]).sum(axis=(-2, -1))
    defined = phi2 > _NOTHING
    size = np.where(defined, phi2, 1.0)
    terms = third / size, (2.0 * size**2 - 3.0 * squares) / (4.0 * size), products / (2.0 * size)
    return np.stack(
        [np.ones_like(size), *(np.where(defined, term, 0.0) for term in terms)], axis=-1
    )


def _null_variance(n: Floats, r: Floats, c: Floats) -> Floats:
    """Return the variance of Pearson's statistic over all tables with given margins."""
    above = np.maximum(n, 4.0)
    sides = []
    for share in (r, c):
        n_levels = (share > 0).sum(axis=-1)
        even = (n_levels - 1.0) * (above - n_levels) / (above - 1.0)
        uneven = (_inverse(share).sum(axis=-1) - n_levels**2) / (above - 2.0)
        sides.append((even, uneven))
    (even, uneven), (other_even, other_uneven) = sides
    product_term = 2.0 * above / (above - 3.0) * (even - uneven) * (other_even - other_uneven)
    return floats(product_term + above**2 / (above - 1.0) * uneven * other_uneven)


def _inverse(share: Floats) -> Floats:
    return np.where(share > 0, 1.0 / np.where(share > 0, share, 1.0), 0.0)


def _odd_moment(share: Floats) -> Floats:
    """Sum what noise adds on average to the third moment of the residuals along one margin."""
    return floats((_inverse(share) * (1.0 - share) * (1.0 - 2.0 * share)).sum(axis=-1))


def _polynomial(coefficients: Floats, s: Floats) -> Floats:
    constant, first, second, third = (coefficients[..., power] for power in range(4))
    return floats(constant + s * (first + s * (second + s * third)))
