"""Statistics of ranked labels, for any number of draws and pools at once, and Recall@K."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from equipoise.core import Booleans, Floats, InputError, Integers32, floats, record, unwarned
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.pools import TopK
from equipoise.stats.compiled import compiled

# Numbers of expected counts that are held at once where scores tie.
_COUNTS = 4_000_000
# Multiplications of the convolutions: some seconds of work, and what a query among many may cost.
_MOST_WORK, _WORK_OF_ONE = 2_000_000_000, 20_000_000


@record
class RankedLabels:
    """Labels of the best items, observed or drawn.

    Attributes
    ----------
    codes : ndarray of int, shape (draws, pools, width)
        Group of each item; any group where `top_k` has no item.
    top_k : TopK
    """

    codes: Integers32
    top_k: TopK

    @classmethod
    def of(cls, top_k: TopK) -> RankedLabels:
        """Return the observed groups as one draw; places without an item have the first group."""
        codes = top_k.pools.groups.codes[top_k.items]
        return cls(np.where(top_k.items < 0, 0, codes)[None], top_k)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.top_k.pools.groups)

    @property
    def k(self) -> int:
        """How many of the best items count."""
        return self.top_k.k

    @cached_property
    def pool_shares(self) -> Floats:
        """Share of each group in each pool, shape (pools, groups)."""
        return floats(self.top_k.sizes / self.top_k.sizes.sum(axis=1, keepdims=True))

    @cached_property
    def compared(self) -> Booleans:
        """Groups in each pool that are large enough to be compared, shape (pools, groups)."""
        return (self.top_k.sizes > 0) & self.top_k.pools.groups.usable

    @cached_property
    def shares(self) -> Floats:
        """Expected share of each group in the first k, shape (draws, pools, groups)."""
        draws, pools, width = self.codes.shape
        flat = np.arange(draws * pools)[:, None] * self.groups + self.codes.reshape(-1, width)
        weights = np.broadcast_to(self.top_k.weights, self.codes.shape)
        sums = np.bincount(flat.ravel(), weights.ravel(), minlength=draws * pools * self.groups)
        return sums.reshape(draws, pools, self.groups) / self.top_k.k

    def expected(self, rows: slice, pool: int) -> Floats:
        """Return expected counts of each prefix, shape (draws, k, groups): linear over a tie."""
        codes, begin, end = self.codes[rows, pool], self.top_k.begin[pool], self.top_k.end[pool]
        member = codes[..., None] == np.arange(self.groups)
        member &= (self.top_k.items[pool] >= 0)[:, None]
        sums = np.zeros((len(codes), codes.shape[1] + 1, self.groups))
        np.cumsum(member, axis=1, dtype=np.float64, out=sums[:, 1:])
        part = ((np.arange(1, len(begin) + 1) - begin) / np.maximum(end - begin, 1))[:, None]
        return floats(sums[:, begin] + part * (sums[:, end] - sums[:, begin]))


def skews(shares: Floats, desired: Floats) -> Floats:
    """Return ln(share / desired share): -inf for a share of 0, NaN where none is desired."""
    with unwarned():
        return np.log(shares / np.where(desired > 0, desired, np.nan))


def extreme(values: Floats, compared: Booleans, *, largest: bool = True) -> Floats:
    """Return the largest or smallest number over compared groups; NaN of fewer than two."""
    end, reduce = (-np.inf, np.max) if largest else (np.inf, np.min)
    extremes = reduce(np.where(compared, values, end), axis=-1)
    return np.where(compared.sum(axis=-1) > 1, extremes, np.nan)


def extreme_skew(
    shares: Floats, desired: Floats, compared: Booleans, *, largest: bool = True
) -> Floats:
    """Return the largest or smallest skew over compared groups; NaN of fewer than two."""
    return extreme(skews(shares, desired), compared, largest=largest)


def deviation(values: Floats, compared: Booleans) -> Floats:
    """Return sum |p_j − mean p| over compared groups, along the last axis."""
    n_compared = np.maximum(compared.sum(axis=-1), 1)
    mean = np.where(compared, values, 0.0).sum(axis=-1) / n_compared
    deviations = np.where(compared, np.abs(values - mean[..., None]), 0.0)
    return floats(deviations.sum(axis=-1))


def divergence(ranked: RankedLabels, desired: Floats) -> Floats:
    """Return NDKL over the first k places, shape (draws, pools)."""
    if ranked.top_k.tied.any():
        return discounted(prefixes(ranked, desired)[0])[..., -1]
    weights = discounts(ranked.k)
    sums = np.empty(ranked.codes.shape[:2])
    codes = np.ascontiguousarray(ranked.codes[..., : ranked.k])
    growth, logs, log_desired = _logarithms(ranked.k, desired)
    divergences(codes, log_desired, growth, logs, weights, sums)
    return floats(sums / weights.sum())


def discounts(k: int) -> Floats:
    """Return what NDKL weighs each of the prefixes 1..k with."""
    return floats(1.0 / np.log2(np.arange(2.0, k + 2)))


def discounted(kl: Floats) -> Floats:
    """Return NDKL up to each place from KL of each prefix, along the last axis."""
    weights = discounts(kl.shape[-1])
    return np.cumsum(kl * weights, axis=-1) / np.cumsum(weights)


def prefixes(ranked: RankedLabels, desired: Floats, compared: Booleans | None = None) -> Floats:
    """Return statistics of every prefix 1..k, shape (statistics, draws, pools, k).

    Parameters
    ----------
    drawn : RankedLabels
    desired : ndarray, shape (pools, groups)
    compared : ndarray of bool, shape (pools, groups), optional
        Groups over which MaxSkew and MinSkew are taken; None: they are not wanted.

    Returns
    -------
    ndarray
        KL in nats; then, with `compared`, MaxSkew and MinSkew.
    """
    k = ranked.top_k.k
    statistics = np.empty((1 if compared is None else 3, *ranked.codes.shape[:2], k))
    used = np.zeros(desired.shape, dtype=bool) if compared is None else compared
    untied = np.flatnonzero(~ranked.top_k.tied)
    if len(untied):
        part = _counted(ranked.codes[:, untied, :k], desired[untied], used[untied])
        statistics[:, :, untied] = part[: len(statistics)]
    for index in np.flatnonzero(ranked.top_k.tied).tolist():
        size = max(1, _COUNTS // (ranked.codes.shape[2] * desired.shape[1]))
        for start in range(0, len(ranked.codes), size):
            rows = slice(start, start + size)
            shares = ranked.expected(rows, index) / np.arange(1, k + 1)[:, None]
            with unwarned():
                terms = np.where(shares > 0, shares * np.log(shares / desired[index]), 0.0)
            statistics[0, rows, index] = np.maximum(terms.sum(axis=2), 0.0)
            if compared is not None:
                statistics[1, rows, index] = extreme_skew(shares, desired[index], used[index])
                statistics[2, rows, index] = extreme_skew(
                    shares, desired[index], used[index], largest=False
                )
    return statistics


def _counted(codes: Integers32, desired: Floats, used: Booleans) -> Floats:
    """Return the three statistics of every prefix where no scores tie, see `prefixes`."""
    inverse = 1.0 / np.where(used, desired, np.nan)
    statistics = np.empty((3, *codes.shape))
    growth, logs, log_desired = _logarithms(codes.shape[2], desired)
    walk(np.ascontiguousarray(codes), log_desired, inverse, growth, logs, statistics)
    with unwarned():
        statistics[1:] = np.log(statistics[1:] / np.arange(1, codes.shape[2] + 1))
    statistics[1:, :, used.sum(axis=1) < 2] = np.nan
    return statistics


def _logarithms(k: int, desired: Floats) -> tuple[Floats, Floats, Floats]:
    """Return how c ln c grows, ln i, and the logarithms of the desired shares."""
    times = np.arange(k + 1, dtype=np.float64)
    with unwarned():
        return np.diff(xlogy(times, times)), np.log(times[1:]), np.log(desired)


@compiled(
    "void(int32[:, :, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
    "float64[:, ::1])"
)
def divergences(
    codes: Integers32,
    log_desired: Floats,
    growth: Floats,
    logs: Floats,
    weights: Floats,
    out: Floats,
) -> None:
    """Write the weighted sum over prefixes of KL(shares ‖ desired shares).

    An item changes one count: i KL_i = Σ c ln c − i ln i − Σ c ln d costs O(1) a place.

    Parameters
    ----------
    codes : ndarray of int32, shape (draws, pools, k)
    wanted : ndarray, shape (pools, groups)
        Logarithms of the desired shares.
    growth : ndarray, shape (k,)
        (c + 1) ln(c + 1) − c ln c.
    logs, weights : ndarray, shape (k,)
        ln i, and the weight of prefix i.
    found : ndarray, shape (draws, pools)
        Written.
    """
    draws, pools, k = codes.shape
    counts = np.zeros(log_desired.shape[1], np.int64)
    for draw in range(draws):
        for pool in range(pools):
            counts[:] = 0
            total, weighted = 0.0, 0.0
            for i in range(k):
                group = codes[draw, pool, i]
                total += growth[counts[group]]
                total -= log_desired[pool, group]
                counts[group] += 1
                # Rounding may leave a trace below 0 where shares are as desired.
                weighted += weights[i] * max(total / (i + 1) - logs[i], 0.0)
            out[draw, pool] = weighted


@compiled(
    "void(int32[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], "
    "float64[:, :, :, ::1])"
)
def walk(
    codes: Integers32,
    log_desired: Floats,
    inverse: Floats,
    growth: Floats,
    logs: Floats,
    out: Floats,
) -> None:
    """Write KL and the largest and smallest ratio of count and desired share, of each prefix.

    Parameters
    ----------
    codes, wanted, growth, logs
        See `divergences`.
    inverse : ndarray, shape (pools, groups)
        1 / desired share; NaN for groups that are not compared.
    found : ndarray, shape (3, draws, pools, k)
        Written.
    """
    draws, pools, k = codes.shape
    groups = log_desired.shape[1]
    counts = np.zeros(groups, np.int64)
    for draw in range(draws):
        for pool in range(pools):
            counts[:] = 0
            total, largest = 0.0, 0.0
            for i in range(k):
                group = codes[draw, pool, i]
                total += growth[counts[group]]
                total -= log_desired[pool, group]
                counts[group] += 1
                out[0, draw, pool, i] = max(total / (i + 1) - logs[i], 0.0)
                ratio = counts[group] * inverse[pool, group]
                # Counts only grow, and with them the largest ratio. NaN compares with nothing.
                largest = ratio if ratio > largest else largest
                out[1, draw, pool, i] = largest
                smallest = np.inf
                for other in range(groups):
                    ratio = counts[other] * inverse[pool, other]
                    smallest = ratio if ratio < smallest else smallest
                out[2, draw, pool, i] = smallest


def expected_max_skew(sizes: Sequence[int], k: int) -> float:
    """Exact mean of MaxSkew@K, with the pool's shares, when K items are drawn at random.

    Parameters
    ----------
    sizes : sequence of int
        Items of each group in the pool.
    k : int
        At least 1, below the size of the pool.

    Returns
    -------
    float
        0 or above: in small samples chance alone is far from 0.

    Raises
    ------
    InputError
        When k does not fit, or there are too many different results to go through them all.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> round(m.expected_max_skew([50, 50], 10), 3)
    0.198
    """
    counts = tuple(map(int, sizes))
    if not 1 <= k < sum(counts) or min(counts) < 0:
        raise InputError(f"k={k}: expected at least 1 and fewer than the {sum(counts)} items")
    shares = np.array(counts, dtype=np.float64) / sum(counts)
    distribution = max_skew_distribution(counts, int(k), tuple(shares.tolist()), work=_MOST_WORK)
    if distribution is None:
        raise InputError("sizes: too many different results to go through them all")
    return float((distribution[0] * distribution[1]).sum())


@lru_cache(maxsize=4096)
def max_skew_distribution(
    sizes: tuple[int, ...],
    k: int,
    desired: tuple[float, ...],
    compared: tuple[bool, ...] = (),
    *,
    work: int = _WORK_OF_ONE,
) -> tuple[Floats, Floats] | None:
    """Every value of MaxSkew@K under random order, and its probability.

    Parameters
    ----------
    sizes, k, desired
        As in `expected_max_skew`; groups whose desired share is 0 are not compared.
    compared : tuple of bool, optional
        Groups that are compared; default: all.
    work : int
        The most multiplications that are made.

    Returns
    -------
    values, probabilities : ndarray, or None where there are too many
    """
    target, largest = np.array(desired), np.minimum(sizes, k)
    used = (target > 0) & np.array(compared or (True,) * len(sizes))
    ratios = np.concatenate(
        [
            np.arange(most_of_group + 1) / share
            for most_of_group, share in zip(largest[used], target[used], strict=True)
        ]
    )
    values = _distinct(ratios / k)
    if len(values) * int((largest + 1).sum()) * (k + 1) > work:
        return None
    # Independent binomial counts, given that they sum to k, are counts drawn without replacement.
    chance, sums = k / sum(sizes), np.zeros((len(values), k + 1))
    sums[:, 0] = 1.0
    for group, size in enumerate(sizes):
        counts = np.arange(min(size, k) + 1)
        mass = np.broadcast_to(
            scipy.stats.binom.pmf(counts, size, chance), (len(values), len(counts))
        )
        if used[group]:
            inside = counts[None] / target[group] / k <= values[:, None] * (1 + 1e-12)
            mass = np.where(inside, mass, 0.0)
        grown = np.zeros_like(sums)
        for count in counts.tolist():
            grown[:, count:] += sums[:, : k + 1 - count] * mass[:, count : count + 1]
        sums = grown
    # What lies between the probabilities that all compared ratios are at most each value.
    mass = np.diff(sums[:, k] / scipy.stats.binom.pmf(k, sum(sizes), chance), prepend=0.0)
    possible = mass > 0
    with unwarned():
        return np.log(values[possible]), mass[possible] / mass[possible].sum()


def _distinct(values: Floats) -> Floats:
    """Return sorted distinct values, equal up to rounding."""
    ordered = np.sort(values)
    distinct = np.append(True, np.diff(ordered) > 1e-12 * np.abs(ordered[1:]))
    # The largest of a run, so that counts at its ends lie below it.
    return floats(ordered[np.append(np.flatnonzero(distinct)[1:] - 1, len(ordered) - 1)])


Direction = Literal["images", "texts"]


def recall_hits(scores: Scores, relevant: ArrayLike, *, k: int, to: Direction = "images") -> Floats:
    """Return whether each query finds something relevant among its k best, shape (queries,).

    Parameters
    ----------
    scores : array-like, shape (images, texts)
        Similarity; higher is better.
    relevant : array-like of bool, shape (images, texts), or of int, shape (texts,)
        Whether a text belongs to an image; or the place of the one image of each text.
    k : int
        How many of the best count; at most as many as there are to find.
    to : "images" or "texts"
        What is found: images for each text, or texts for each image.

    Returns
    -------
    ndarray of float64
        0 or 1; a tie at the k-th place counts with the probability that a random order of the tied
        ones puts something relevant among the k best.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, k is out of range, or a query has nothing
        relevant.

    References
    ----------
    Karpathy & Fei-Fei 2015, "Deep Visual-Semantic Alignments", section 4.1.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.recall_hits([[0.9, 0.1], [0.2, 0.3]], [[True, False], [False, True]], k=1)
    array([1., 1.])
    """
    table, relevance = np.asarray(scores, dtype=np.float64), np.asarray(relevant)
    if table.ndim != 2 or not table.size:
        raise InputError(f"scores: shape {table.shape}; expected (images, texts), at least one")
    if not np.isfinite(table).all():
        raise InputError("scores: expected finite numbers; look at the model's vectors")
    images, texts = table.shape
    if (
        relevance.shape == (texts,)
        and relevance.dtype.kind in "iu"
        and {*relevance.tolist()} <= {*range(images)}
    ):
        relevance = np.arange(images)[:, None] == relevance
    if relevance.shape != table.shape or relevance.dtype != bool:
        raise InputError(
            f"relevant: {relevance.dtype} of shape {relevance.shape}; expected bool of shape "
            f"{table.shape}, or {texts} places of images from 0 to {images - 1}"
        )
    if to not in ("images", "texts"):
        raise InputError(f"to is {to!r}; expected 'images' or 'texts'")
    if to == "images":
        table, relevance = table.T, relevance.T
    if not 1 <= k <= table.shape[1]:
        raise InputError(f"k={k}: expected 1 to {table.shape[1]}, the number of {to}")
    nothing = np.flatnonzero(~relevance.any(axis=1))
    if len(nothing):
        raise InputError(
            f"{len(nothing)} queries have nothing relevant, the first is number {nothing[0]}; "
            "expected something to find for each. To do: leave them out"
        )
    best = np.where(relevance, table, -np.inf).max(axis=1)
    above = (table > best[:, None]).sum(axis=1)
    tied = table == best[:, None]
    tied_relevant, tied_irrelevant = (tied & relevance).sum(axis=1), (tied & ~relevance).sum(axis=1)
    # The probability that one of `own` is among the first `slots` of own and others.
    slots = k - above
    hits = np.where(slots >= 1, 1.0, 0.0)
    partly = np.flatnonzero((slots >= 1) & (slots <= tied_irrelevant))
    s, a, b = slots[partly], tied_relevant[partly], tied_irrelevant[partly]
    missed = gammaln(b + 1) - gammaln(b - s + 1) - gammaln(a + b + 1) + gammaln(a + b - s + 1)
    hits[partly] = 1.0 - np.exp(missed)
    return hits
