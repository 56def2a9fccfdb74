"""Retrieval statistics of ranked labels, for any number of draws and pools at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.metrics.retrieval.pools import Floats
from equipoise.metrics.retrieval.tops import Tops

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Labels of the best items, observed or drawn.

    Attributes
    ----------
    codes : ndarray of int, shape (draws, pools, width)
        Group of each item; any group where `tops` has no item.
    tops : Tops
    """

    codes: npt.NDArray[np.int32] = field(repr=False)
    tops: Tops

    def counts(self, groups: int) -> Floats:
        """Expected number of each group in the first k, shape (draws, pools, groups)."""
        draws, pools, width = self.codes.shape
        owner = np.arange(draws * pools)[:, None] * groups
        flat = owner + self.codes.reshape(-1, width)
        weights = np.broadcast_to(self.tops.weights, self.codes.shape)
        found = np.bincount(flat.ravel(), weights.ravel(), minlength=draws * pools * groups)
        return np.asarray(found.reshape(draws, pools, groups), dtype=np.float64)

    @cached_property
    def _kept(self) -> dict[int, Floats]:
        return {}

    def shares(self, groups: int) -> Floats:
        """Share of each group in the first k, shape (draws, pools, groups)."""
        if groups not in self._kept:
            self._kept[groups] = self.counts(groups) / self.tops.k
        return self._kept[groups]


Statistic = Callable[[Drawn], Floats]


def skews(shares: Floats, desired: Floats) -> Floats:
    """Return ln(share / desired share): -inf for a share of 0, NaN where none is desired."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(shares / np.where(desired > 0, desired, np.nan))
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class MaxSkew:
    """Largest Skew@K over the groups that are compared.

    Attributes
    ----------
    desired : ndarray, shape (pools, groups)
    compared : ndarray of bool, shape (pools, groups)
    """

    desired: Floats
    compared: Bools

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        found = skews(drawn.shares(self.desired.shape[1]), self.desired)
        return _reduce(np.where(self.compared, found, -np.inf).max(axis=2), self.compared)


@dataclass(frozen=True, eq=False)
class MinSkew:
    """Smallest Skew@K over the groups that are compared; attributes as `MaxSkew`."""

    desired: Floats
    compared: Bools

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        found = skews(drawn.shares(self.desired.shape[1]), self.desired)
        return _reduce(np.where(self.compared, found, np.inf).min(axis=2), self.compared)


@dataclass(frozen=True, eq=False)
class GroupSkew:
    """Skew@K of one group; `desired` as in `MaxSkew`."""

    desired: Floats
    group: int

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        shares = drawn.shares(self.desired.shape[1])[..., self.group]
        return skews(shares, self.desired[:, self.group])


@dataclass(frozen=True, eq=False)
class ShareDeviation:
    """Sum of the shares' absolute deviations from their mean, over the groups compared."""

    compared: Bools

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        return _reduce(
            deviation(drawn.shares(self.compared.shape[1]), self.compared), self.compared
        )


@dataclass(frozen=True, eq=False)
class Bias:
    """(n_first − n_second) / (n_first + n_second) in the first k; 0 when both are 0."""

    first: int
    second: int
    groups: int

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        return contrast(drawn.shares(self.groups), self.first, self.second)


def deviation(values: Floats, compared: Bools) -> Floats:
    """Return sum |p_j − mean p| over compared groups, along the last axis."""
    many = np.maximum(compared.sum(axis=-1), 1)
    mean = np.where(compared, values, 0.0).sum(axis=-1) / many
    apart = np.where(compared, np.abs(values - mean[..., None]), 0.0)
    return np.asarray(apart.sum(axis=-1))


def contrast(shares: Floats, first: int, second: int) -> Floats:
    """Return (a − b) / (a + b) of two groups along the last axis; 0 when both are 0."""
    a, b = shares[..., first], shares[..., second]
    both = a + b
    return np.asarray(np.where(both > 0, (a - b) / np.where(both > 0, both, 1.0), 0.0))


def _reduce(values: Floats, compared: Bools) -> Floats:
    """Fewer than two groups compare nothing."""
    return np.asarray(np.where(compared.sum(axis=1) > 1, values, np.nan))
