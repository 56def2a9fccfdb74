"""How much of the variance of answers comes from pictures, wordings and orders of options."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Estimate,
    Floats,
    InputError,
    IntervalKind,
    Labels,
    Part,
    floats,
    no_ends,
    unwarned,
)
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import ends_of, replicates_text
from equipoise.metrics.labels import name_unit
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, seed_of, unit_counts, unit_keys

PICTURE, WORDING, ORDER, REST = "picture", "wording", "order", "rest"
_INCOMPLETE = "items without a number for each wording and position"
Source = frozenset[str]
"""Factors that vary together; their interaction where they are several."""


@metric(
    MetricSpec(
        name="variance_share",
        kinds=("questions",),
        title="Share of variance",
        unit="share",
        group_metric="variance_share",
        definition=(
            "Share of the variance of answers that comes from wordings, orders and their "
            "interactions. Components of variance of a crossed design: items, wordings, and "
            "positions of the outcome among the options."
        ),
        direction="Higher: wording and order decide more of an answer, the picture less.",
        chance="none: answers at random have a share of 1",
        interval="percentile bootstrap over items or units",
        reference="Searle, Casella & McCulloch 1992, Variance Components, chapter 4",
        sentence="{direction} {value} of the variance of answers{model}.",
    )
)
def variance_share(
    answers: ArrayLike,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of the variance of answers that comes from wordings and orders, not from pictures.

    Parameters
    ----------
    answers : array-like, shape (items, wordings, positions)
        Whether, or with which probability, each answer is the outcome, by the wording of the
        question and the position of the outcome among the options. Items that lack one are left
        out and counted.
    units : array-like (items,), optional
        Unit of each item, such as its scene, resampled as a whole.
    resampling : Bootstrap, Permutation or None
        A bootstrap resamples items or units; without one there is no interval.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], higher: pictures decide less. Components are those of the analysis of variance,
        set to 0 where they are negative. `.by` has the share of each source: "picture", "wording",
        "order", their interactions such as "picture × order", and the "rest". NaN with a single
        wording and position, with fewer than two items, or where all answers are the same.

    Raises
    ------
    InputError
        When the array has another form.

    References
    ----------
    Searle, Casella & McCulloch 1992, Variance Components, chapter 4.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> by_position = [[[1, 0]]] * 20
    >>> m.variance_share(by_position).value
    1.0
    """
    values = floats(answers)
    if values.ndim != 3:
        raise InputError(
            f"answers: shape {values.shape}; expected (items, wordings, positions), three axes"
        )
    labels = np.arange(len(values)) if units is None else units
    owner, names = unit_codes(labels, len(values), "units")
    complete = ~np.isnan(values).any(axis=(1, 2))
    order = np.flatnonzero(complete)
    if units is None:
        # By their numbers, so that permuted items give the same draws.
        order = order[np.lexsort(values[order].reshape(len(order), -1).T[::-1])]
        owner, names = np.arange(len(order)), tuple(map(str, range(len(order))))
    else:
        owner = owner[order]
    cube = values[order]
    factors = [PICTURE, *(name for name, size in zip((WORDING, ORDER), cube.shape[1:], strict=True)
                          if size > 1)]  # fmt: skip
    reason = _undefined(cube, factors)
    counts, excluded = {"items": len(cube)}, {_INCOMPLETE: int((~complete).sum())}
    if reason:
        return make_estimate(
            "variance_share", math.nan, counts, NO_INTERVAL, reason=reason, excluded=excluded,
            no_chance="answers at random have a share of 1",
        )  # fmt: skip
    weights = np.ones((1, len(cube)))
    observed = _shares(cube, weights, factors)
    boot, method = None, NO_INTERVAL
    if isinstance(resampling, Bootstrap):
        times = unit_counts(seed_of(rng), unit_keys(names), range(resampling.replicates))
        boot = _shares(cube, floats(times)[:, owner], factors)
        method = replicates_text(boot, f"{name_unit(units).replace('row', 'item')}s")
    parts = [*_parts(observed, boot, factors, len(cube), level_of(resampling))]
    share = 1.0 - observed[0, 0]
    return make_estimate(
        "variance_share", share, counts, method, by=parts, excluded=excluded,
        unit="item" if units is None else "unit", no_chance="answers at random have a share of 1",
        ends=no_ends if boot is None else ends_of(1.0 - boot[:, 0]),
        interval_kind=IntervalKind.PERCENTILE,
    )  # fmt: skip


def _undefined(cube: Floats, factors: list[str]) -> str:
    """Say why there are no shares; "" where there are."""
    if len(factors) == 1:
        return "one wording and one order have no variance"
    if len(cube) < 2:
        return "fewer than two items have every wording and order"
    return "all answers are the same" if np.ptp(cube) == 0 else ""


def _sources(factors: list[str]) -> list[Source]:
    """Return the factors, then their interactions."""
    sizes = range(1, len(factors) + 1)
    return [frozenset(chosen) for size in sizes for chosen in combinations(factors, size)]


def _name(source: Source, factors: list[str]) -> str:
    """Return the name of a source; the last interaction includes noise."""
    if len(source) == len(factors):
        return REST
    return " × ".join(name for name in factors if name in source)


def _parts(
    observed: Floats, boot: Floats | None, factors: list[str], n: int, level: float
) -> Iterator[Part]:
    """Yield the share of each source with its interval."""
    for place, source in enumerate(_sources(factors)):
        low = high = math.nan
        if boot is not None:
            low, high = map(float, percentile(boot[:, place], level))
        value = float(observed[0, place])
        yield Part("variance_share", _name(source, factors), value, low, high, n=n)


def _mean_squares(cube: Floats, weights: Floats, factors: list[str]) -> Mapping[Source, Floats]:
    """Return the mean square of each source, shape (replicates,).

    Parameters
    ----------
    cube : ndarray, shape (n, wordings, positions)
    weights : ndarray, shape (replicates, n)
        How often each item counts.
    """
    n, sizes = weights.sum(axis=1), {WORDING: cube.shape[1], ORDER: cube.shape[2]}
    squares = dict[Source, Floats]()
    for source in [*_sources(factors[1:]), frozenset()]:
        contrasts = _contrasts(cube, source)
        # A replicate without items has no means.
        means = weights @ contrasts / np.where(n > 0, n, np.nan)[:, None]
        cells = math.prod(size for name, size in sizes.items() if name not in source)
        freedom = math.prod(sizes[name] - 1 for name in source)
        between = n * (means**2).sum(axis=1)
        within = weights @ (contrasts**2).sum(axis=1) - between
        if source:
            squares[source] = cells * between / freedom
        squares[source | {PICTURE}] = cells * within / (freedom * np.maximum(n - 1.0, 1.0))
    return squares


def _contrasts(cube: Floats, source: Source) -> Floats:
    """Return each item's contrasts for a source, shape (n, levels)."""
    contrasts = cube
    for axis, name in ((1, WORDING), (2, ORDER)):
        mean = contrasts.mean(axis=axis, keepdims=True)
        contrasts = contrasts - mean if name in source else mean
    return contrasts.reshape(len(cube), -1)


def _shares(cube: Floats, weights: Floats, factors: list[str]) -> Floats:
    """Return the share of each source in the sum of components, (replicates, sources)."""
    squares = _mean_squares(cube, weights, factors)
    n = weights.sum(axis=1)
    sizes = {PICTURE: n, WORDING: cube.shape[1] + 0.0 * n, ORDER: cube.shape[2] + 0.0 * n}
    components = []
    for source in _sources(factors):
        signed = [
            (-1.0) ** (len(other) - len(source)) * square
            for other, square in squares.items()
            if source <= other
        ]
        cells = np.prod([sizes[name] for name in factors if name not in source], axis=0)
        components.append(np.maximum(sum(signed), 0.0) / cells)
    stacked = np.stack(components, axis=1)
    with unwarned():
        return floats(stacked / stacked.sum(axis=1, keepdims=True))
