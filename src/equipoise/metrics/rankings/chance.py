"""Exact chance level of MaxSkew@K: all ways to draw K items from a pool, by convolution."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]

# Multiplications of the convolutions: some seconds of work, and what a query among many may cost.
_MOST_WORK, _WORK_OF_ONE = 2_000_000_000, 20_000_000


def expected_max_skew(
    sizes: Sequence[int], k: int, *, desired: Literal["pool", "uniform"] | Sequence[float] = "pool"
) -> float:
    """Exact mean of MaxSkew@K when K items of a pool are drawn at random.

    Parameters
    ----------
    sizes : sequence of int
        Items of each group in the pool.
    k : int
        At least 1, below the size of the pool.
    desired : "pool", "uniform" or sequence of float
        Desired share of each group.

    Returns
    -------
    float
        0 or above: in small samples chance alone is far from 0.

    Raises
    ------
    InputError
        When k does not fit, or there are too many different results to go through them all.
    """
    many = [int(size) for size in sizes]
    if not 1 <= k < sum(many) or min(many) < 0:
        raise InputError(f"k={k}: expected at least 1 and fewer than the {sum(many)} items")
    shares = np.array(many, dtype=np.float64) / sum(many)
    if not isinstance(desired, str):
        shares = np.asarray(desired, dtype=np.float64)
    elif desired == "uniform":
        shares = (shares > 0) / (shares > 0).sum()
    found = max_skew_distribution(tuple(many), int(k), tuple(shares.tolist()), work=_MOST_WORK)
    if found is None:
        raise InputError("sizes: too many different results to go through them all")
    return float((found[0] * found[1]).sum())


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
    used = np.array(desired) > 0
    if compared:
        used &= np.array(compared)
    held = np.minimum(np.array(sizes), k)
    ratios = np.concatenate(
        [
            np.arange(many + 1) / share
            for many, share in zip(held[used], np.array(desired)[used], strict=True)
        ]
    )
    values = _distinct(ratios / k)
    if len(values) * int((held + 1).sum()) * (k + 1) > work:
        return None
    below = _at_most(values, sizes, k, np.array(desired), used)
    mass = np.diff(below, prepend=0.0)
    kept = mass > 0
    with np.errstate(divide="ignore"):
        return np.log(values[kept]), mass[kept] / mass[kept].sum()


def _distinct(values: Floats) -> Floats:
    """Return sorted values, those that differ by rounding only once."""
    ordered = np.sort(values)
    apart = np.append(True, np.diff(ordered) > 1e-12 * np.abs(ordered[1:]))
    # The largest of a run, so that counts at its ends lie below it.
    return np.asarray(ordered[np.append(np.flatnonzero(apart)[1:] - 1, len(ordered) - 1)])


def _at_most(
    values: Floats, sizes: tuple[int, ...], k: int, desired: Floats, used: npt.NDArray[np.bool_]
) -> Floats:
    """Return P(all compared ratios <= value), shape (values,).

    Independent binomial counts, given that they sum to k, are counts drawn without replacement.
    """
    chance = k / sum(sizes)
    sums = np.zeros((len(values), k + 1))
    sums[:, 0] = 1.0
    for group, size in enumerate(sizes):
        counts = np.arange(min(size, k) + 1)
        mass = np.broadcast_to(binom.pmf(counts, size, chance), (len(values), len(counts)))
        if used[group]:
            inside = counts[None] / desired[group] / k <= values[:, None] * (1 + 1e-12)
            mass = np.where(inside, mass, 0.0)
        grown = np.zeros_like(sums)
        for count in counts.tolist():
            grown[:, count:] += sums[:, : k + 1 - count] * mass[:, count : count + 1]
        sums = grown
    return np.asarray(sums[:, k] / binom.pmf(k, sum(sizes), chance))
