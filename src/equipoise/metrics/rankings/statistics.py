"""Retrieval statistics of ranked labels, for any number of draws and pools at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from equipoise.metrics.rankings.kernels import divergences, walk
from equipoise.metrics.rankings.pools import Floats
from equipoise.metrics.rankings.tops import Tops

# Numbers of expected counts that are held at once where scores tie.
_COUNTS = 4_000_000


@dataclass(frozen=True, eq=False)
class Divergence:
    """NDKL over the first k places; `desired` as in `MaxSkew`."""

    desired: Floats

    def __call__(self, drawn: Drawn) -> Floats:
        """Return one number per draw and pool."""
        k = drawn.tops.k
        if drawn.tops.tied.any():
            return np.asarray(discounted(prefixes(drawn, self.desired, k)["kl"])[..., k - 1])
        growth, logs, wanted = _logarithms(k, self.desired)
        weights = 1.0 / np.log2(np.arange(2.0, k + 2))
        found = np.empty(drawn.codes.shape[:2])
        codes = np.ascontiguousarray(drawn.codes[..., :k])
        divergences(codes, wanted, growth, logs, weights, found)
        return np.asarray(found / weights.sum())


def discounted_shares(drawn: Drawn, groups: int) -> Floats:
    """Return each group's share of the first i places, averaged as NDKL weighs i: (p, groups).

    Whom the order shows first counts most: the share of the last prefix would tell of whoever is
    ranked last.
    """
    k = drawn.tops.k
    weights = 1.0 / (np.log2(np.arange(2.0, k + 2)) * np.arange(1.0, k + 1))
    whole = (1.0 / np.log2(np.arange(2.0, k + 2))).sum()
    pools = range(drawn.codes.shape[1])
    every = [_expected(drawn, slice(0, 1), pool, groups, k)[0] for pool in pools]
    return np.array([weights @ one / whole for one in every]).reshape(len(every), groups)


def discounted(kl: Floats) -> Floats:
    """Return NDKL up to each place from KL of each prefix, along the last axis."""
    weights = 1.0 / np.log2(np.arange(2, kl.shape[-1] + 2))
    return np.asarray(np.cumsum(kl * weights, axis=-1) / np.cumsum(weights))


def prefixes(
    drawn: Drawn, desired: Floats, k: int, *, compared: Bools | None = None
) -> dict[str, Floats]:
    """Return statistics of every prefix 1..k, each of shape (draws, pools, k).

    Parameters
    ----------
    drawn : Drawn
    desired : ndarray, shape (pools, groups)
    k : int
        At most `drawn.tops.k`.
    compared : ndarray of bool, shape (pools, groups), optional
        Groups over which MaxSkew and MinSkew are taken; None: they are not wanted.

    Returns
    -------
    dict
        "kl" in nats, "max_skew" and "min_skew".
    """
    tied = drawn.tops.tied
    names = ("kl",) if compared is None else ("kl", "max_skew", "min_skew")
    found = {name: np.empty((*drawn.codes.shape[:2], k)) for name in names}
    plain = np.flatnonzero(~tied)
    if len(plain):
        part = _counted(
            drawn.codes[:, plain, :k], desired[plain], None if compared is None else compared[plain]
        )
        for name in names:
            found[name][:, plain] = part[name]
    for index in np.flatnonzero(tied).tolist():
        used = None if compared is None else compared[index]
        size = max(1, _COUNTS // (drawn.codes.shape[2] * desired.shape[1]))
        for start in range(0, len(drawn.codes), size):
            rows = slice(start, start + size)
            expected = _expected(drawn, rows, index, desired.shape[1], k)
            part = _of_expected(expected, desired[index], used)
            for name in names:
                found[name][rows, index] = part[name]
    return found


def _counted(
    codes: npt.NDArray[np.int32], desired: Floats, compared: Bools | None
) -> dict[str, Floats]:
    """Statistics of every prefix where no scores tie, see `prefixes`."""
    used = np.zeros(desired.shape, dtype=bool) if compared is None else compared
    inverse = 1.0 / np.where(used, desired, np.nan)
    found = np.empty((3, *codes.shape))
    growth, logs, wanted = _logarithms(codes.shape[2], desired)
    walk(np.ascontiguousarray(codes), wanted, inverse, growth, logs, found)
    few = (used.sum(axis=1) < 2)[None, :, None]
    with np.errstate(divide="ignore"):
        skew = np.log(found[1:] / np.arange(1, codes.shape[2] + 1))
    skew = np.where(few, np.nan, skew)
    return dict(zip(("kl", "max_skew", "min_skew"), (found[0], *skew), strict=True))


def _logarithms(k: int, desired: Floats) -> tuple[Floats, Floats, Floats]:
    """Return how c ln c grows, ln i, and the logarithms of the desired shares."""
    times = np.arange(k + 1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.diff(xlogy(times, times)), np.log(times[1:]), np.log(desired)


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


def _of_expected(expected: Floats, desired: Floats, compared: Bools | None) -> dict[str, Floats]:
    shares = expected / np.arange(1, expected.shape[1] + 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(shares > 0, shares * np.log(shares / desired), 0.0)
    found = {"kl": np.maximum(each.sum(axis=2), 0.0)}
    if compared is not None:
        known = skews(shares, desired)
        for name, end, reduce in (("max_skew", -np.inf, np.max), ("min_skew", np.inf, np.min)):
            extreme = reduce(np.where(compared, known, end), axis=2)
            found[name] = extreme if compared.sum() > 1 else np.full_like(extreme, np.nan)
    return found


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
