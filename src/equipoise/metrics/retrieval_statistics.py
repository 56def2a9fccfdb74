"""Retrieval statistics of ranked labels, for any number of draws and pools at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from equipoise.metrics.retrieval_pools import Floats, Indices
from equipoise.metrics.retrieval_tops import Tops

Bools = npt.NDArray[np.bool_]

# Numbers of expected counts that are held at once where scores tie.
_COUNTS = 4_000_000


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
        return found.reshape(draws, pools, groups)

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


@dataclass(frozen=True, eq=False)
class Divergence:
    """NDKL over the first k places; `desired` as in `MaxSkew`."""

    desired: Floats

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        k = drawn.tops.k
        return np.asarray(discounted(prefixes(drawn, self.desired, k)["kl"])[..., k - 1])


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


def discounted(kl: Floats) -> Floats:
    """Return NDKL up to each place from KL of each prefix, along the last axis."""
    weights = 1.0 / np.log2(np.arange(2, kl.shape[-1] + 2))
    return np.asarray(np.cumsum(kl * weights, axis=-1) / np.cumsum(weights))


def prefixes(drawn: Drawn, desired: Floats, k: int, *, skew: bool = False) -> dict[str, Floats]:
    """Return statistics of every prefix 1..k, each of shape (draws, pools, k).

    Parameters
    ----------
    drawn : Drawn
    desired : ndarray, shape (pools, groups)
    k : int
        At most `drawn.tops.k`.
    skew : bool
        Whether MaxSkew and MinSkew are wanted too.

    Returns
    -------
    dict
        "kl" in nats, "max_skew" and "min_skew" over the groups whose desired share is above 0.
    """
    tied = drawn.tops.tied
    names = ("kl", "max_skew", "min_skew") if skew else ("kl",)
    found = {name: np.empty((*drawn.codes.shape[:2], k)) for name in names}
    plain = np.flatnonzero(~tied)
    if len(plain):
        part = _counted(drawn.codes[:, plain, :k], desired[plain], skew)
        for name in names:
            found[name][:, plain] = part[name]
    for index in np.flatnonzero(tied).tolist():
        size = max(1, _COUNTS // (drawn.codes.shape[2] * desired.shape[1]))
        for start in range(0, len(drawn.codes), size):
            rows = slice(start, start + size)
            expected = _expected(drawn, rows, index, desired.shape[1], k)
            part = _of_expected(expected, desired[index], skew)
            for name in names:
                found[name][rows, index] = part[name]
    return found


def _counted(codes: npt.NDArray[np.int32], desired: Floats, skew: bool) -> dict[str, Floats]:
    """Go down the ranking: an item changes one count, so KL costs O(1) a place.

    i KL_i = Σ c ln c − i ln i − Σ c ln d, and the largest ratio c/d can only grow.
    """
    draws, pools, k = codes.shape
    groups = desired.shape[1]
    rows = draws * pools
    steps = np.ascontiguousarray(codes.reshape(rows, k).T)
    times = np.arange(k + 1, dtype=np.float64)
    growth = np.diff(xlogy(times, times))
    with np.errstate(divide="ignore"):
        wanted, inverse = np.log(desired), 1.0 / desired
    pool = np.tile(np.arange(pools) * groups, draws)
    counts = np.zeros(rows * groups, dtype=np.int64)
    base = np.arange(rows) * groups
    total = np.zeros(rows)
    largest = np.full(rows, 0.0)
    found = {name: np.empty((k, rows)) for name in ("kl", "max_skew", "min_skew")[: 3 if skew else 1]}
    for i in range(k):
        here, cell = base + steps[i], pool + steps[i]
        before = counts[here]
        counts[here] = before + 1
        total += growth[before] - wanted.ravel()[cell]
        # Rounding may leave a trace below 0 where shares are as desired.
        found["kl"][i] = np.maximum(total / (i + 1) - np.log(i + 1.0), 0.0)
        if skew:
            ratio = np.where(desired > 0, inverse, np.nan).ravel()[cell] * (before + 1)
            largest = np.fmax(largest, ratio)
            with np.errstate(divide="ignore"):
                found["max_skew"][i] = np.log(largest / (i + 1))
                found["min_skew"][i] = np.log(_smallest(counts, desired, draws) / (i + 1))
    return {name: values.T.reshape(draws, pools, k) for name, values in found.items()}


def _smallest(counts: Indices, desired: Floats, draws: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = counts.reshape(draws, *desired.shape) / desired
    return np.asarray(np.where(desired > 0, ratio, np.inf).min(axis=2).ravel())


def _expected(drawn: Drawn, rows: slice, pool: int, groups: int, k: int) -> Floats:
    """Return expected counts of each prefix, shape (draws, k, groups): linear over a tie."""
    codes = drawn.codes[rows, pool]
    member = codes[..., None] == np.arange(groups)
    member &= (drawn.tops.items[pool] >= 0)[:, None]
    sums = np.concatenate(
        [np.zeros((len(codes), 1, groups)), np.cumsum(member, axis=1, dtype=np.float64)], axis=1
    )
    begin, end = drawn.tops.begin[pool, :k], drawn.tops.end[pool, :k]
    part = ((np.arange(1, k + 1) - begin) / np.maximum(end - begin, 1))[:, None]
    return np.asarray(sums[:, begin] + part * (sums[:, end] - sums[:, begin]))


def _of_expected(expected: Floats, desired: Floats, skew: bool) -> dict[str, Floats]:
    shares = expected / np.arange(1, expected.shape[1] + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(shares > 0, shares * np.log(shares / desired), 0.0)
    found = {"kl": np.maximum(each.sum(axis=2), 0.0)}
    if skew:
        known = skews(shares, desired)
        found["max_skew"] = np.where(desired > 0, known, -np.inf).max(axis=2)
        found["min_skew"] = np.where(desired > 0, known, np.inf).min(axis=2)
    return found


def _reduce(values: Floats, compared: Bools) -> Floats:
    """Fewer than two groups compare nothing."""
    return np.asarray(np.where(compared.sum(axis=1) > 1, values, np.nan))
