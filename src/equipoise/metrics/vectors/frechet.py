"""Quality of sets of images: Fréchet distance by features, inception score by probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from equipoise.core import (
    Chance,
    Ends,
    Estimate,
    Floats,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    floats,
    nans,
    no_ends,
)
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import SPREAD, centred_percentile
from equipoise.metrics.labels import name_unit
from equipoise.metrics.measure import NO_INTERVAL, NO_REPLICATES
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.metrics.vectors.sets import embedding_table
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.chance import band
from equipoise.stats.streams import Seed, seed_of, stream, unit_counts, unit_keys

# Multiplications that resampling may take: some twenty seconds on one core; and the fewest
# replicates. Images of a reference that is split.
_MOST_WORK, _FEWEST = 100_000_000_000, 20
_FEWEST_SPLIT = 4
_SUM = 1e-3


def _numbers(table: Any, subject: str) -> Floats:
    """Return a table (n, d) of finite numbers, neither of them 0."""
    rows = floats(embedding_table(table, subject))
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise InputError(
            f"{subject}: row {bad[0] + 1} has numbers that are not finite ({len(bad)})"
        )
    return rows


@metric(
    MetricSpec(
        name="frechet_distance",
        title="Fréchet distance",
        symbol="FID",
        aliases=("fid",),
        kinds=("generation", "diversity"),
        by_default=("generation",),
        range=(0.0, math.inf),
        neutral=None,
        definition="|μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½) of the features of two sets of images.",
        direction="Higher: the set is further from the reference.",
        reference="Dowson & Landau 1982; Heusel et al. 2017",
        chance="random parts of the reference, as many images but at most half, against the rest",
        interval="resampling spread, no confidence interval",
    )
)
def frechet_distance(
    features: ArrayLike,
    reference: ArrayLike,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: Seed = 0,
) -> Estimate:
    """Fréchet distance of the normal distributions fitted to two sets of features.

    |μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½), covariances with n − 1.

    Parameters
    ----------
    features : array-like, shape (n, d)
        Of the images that are judged, such as an Inception network's for the FID.
    reference : array-like, shape (m, d)
        Of the images they are compared with, in the same space.
    units : array-like, shape (n,), optional
        Features that are resampled together, such as those of a counterfactual set.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. Where dimensions are many, fewer replicates are made than
        asked for; the method says how many.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        0 or above, lower: closer to the reference. Descriptive: no test. The value is biased
        upward where images are few, the more so the more dimensions. The chance level has the
        same bias: the distance of random parts of the reference, of as many images as are judged
        but at most half, from its other images. The interval is a spread: percentiles of
        resampled sets, moved to the value, for resampling adds to the bias.

    Raises
    ------
    InputError
        When an array is not (n, d) finite numbers with n of 2 or more, or dimensions differ.

    References
    ----------
    Dowson & Landau 1982; Heusel et al. 2017, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.frechet_distance(rng.normal(size=(200, 8)), rng.normal(size=(200, 8)) + 1)
    <frechet_distance 7.535 [6.517, 8.709]; chance 0.537, n = 400 in 2 groups>
    """
    pair = _numbers(features, "features"), _numbers(reference, "reference")
    (n, d), (m, space) = (rows.shape for rows in pair)
    if min(n, m) < 2 or d != space:
        raise InputError(f"features and reference: {(n, d)}, {(m, space)}; expected 2 rows or more")
    labels = np.full(n, None) if units is None else units
    owners = unit_codes(labels, n, "units"), unit_codes(np.full(m, None), m, "units")

    def distance(times: Iterable[Floats]) -> float:
        """Return the distance where units count so many times."""
        first, second = (
            _moments(rows, counts[codes])
            for rows, (codes, _), counts in zip(pair, owners, times, strict=True)
        )
        return _distance(first, second)

    value = distance(np.ones(len(names)) for _, names in owners)
    unit = name_unit(units)
    work = sum(k * d * min(k, d) + 10 * min(k, d) ** 3 for k in (n, m))

    def affordable(limit: int) -> int:
        return min(limit, max(_FEWEST, int(_MOST_WORK / work)))

    def draws(limit: int) -> list[float]:
        n_replicates = affordable(limit)
        times = [_times(owner, rng, place, n_replicates) for place, owner in enumerate(owners)]
        return [*map(distance, zip(*times, strict=True))]

    method, ends = _spread(value, 0.0, draws, f"{unit}s of both sets", resampling)
    n_parts = affordable(resampling.replicates) if isinstance(resampling, Bootstrap) else 0
    chance = (
        _parts_of_reference(pair[1], n, n_parts, rng) if n_parts and m >= _FEWEST_SPLIT else None
    )
    return make_estimate(
        "frechet_distance",
        value,
        {"images": n, "reference": m},
        method,
        interval_kind=IntervalKind.SPREAD,
        params={"dimensions": d},
        chance=chance,
        no_chance="" if chance else "none: parts of the reference were not compared",
        unit=unit,
        ends=ends,
    )


Owners = tuple[Integers, Sequence[str]]
# A mean, and a factor F of the covariance F Fᵀ.
Moments = tuple[Floats, Floats]


def _distance(first: Moments, second: Moments) -> float:
    """Return the Fréchet distance of two normal distributions; NaN where one is unknown."""
    (mean, factor), (mean_2, factor_2) = first, second
    product = factor.T @ factor_2
    if not np.isfinite(product).all():
        return math.nan
    # The trace of (Σ1 Σ2)^½ is the sum of the singular values of F1ᵀ F2.
    shared = float(np.linalg.svd(product, compute_uv=False).sum())
    mean_difference = float(np.square(mean - mean_2).sum())
    spread = float(np.square(factor).sum() + np.square(factor_2).sum())
    return max(0.0, mean_difference + spread - 2.0 * shared)


def _parts_of_reference(reference: Floats, n: int, n_parts: int, rng: Seed) -> Chance:
    """Return the distance of random parts of the reference from its other images."""
    m, seed = len(reference), seed_of(rng)
    size = min(n, m // 2)
    distances = list[float]()
    for number in range(n_parts):
        rows = reference[stream(seed, "parts of the reference", number).permutation(m)]
        parts = rows[:size], rows[size:]
        distances.append(_distance(*(_moments(part, np.ones(len(part))) for part in parts)))
    method = f"{n_parts} random parts of the reference: {size} images against the other {m - size}"
    return band(distances, "higher", method=method)


def _times(owner: Owners, rng: Seed, place: int, n_replicates: int) -> Floats:
    """Return how often each unit counts in each resample, shape (many, units)."""
    keys = unit_keys(owner[1])
    return floats(unit_counts(seed_of(rng) + place, keys, range(n_replicates)))


def _spread(
    value: float,
    least: float,
    draws: Callable[[int], list[float]],
    over: str,
    resampling: Resampling | None,
) -> tuple[str, Ends]:
    """Return the method and the ends: percentiles of resamples, moved to the value."""
    if not isinstance(resampling, Bootstrap):
        return NO_INTERVAL if resampling is None else NO_REPLICATES, no_ends
    replicates = np.array(draws(resampling.replicates))
    method = (
        f"{SPREAD}: percentiles of {len(replicates)} resamples of the {over}, moved to the value; "
        "not a confidence interval: resampling adds to the bias"
    )
    return method, centred_percentile(value, replicates, least)


@metric(
    MetricSpec(
        name="inception_score",
        title="Inception score",
        symbol="IS",
        aliases=("is",),
        kinds=("generation", "diversity"),
        by_default=("generation",),
        range=(1.0, math.inf),
        range_note="at most the number of classes",
        definition="exp of the mean of KL(p(class | image) ‖ p(class)) over images, in nats.",
        direction="Lower: images look less like one class each, or classes are missing.",
        harm="lower",
        reference="Salimans et al. 2016; Barratt & Sharma 2018",
        chance="none: no groups are exchanged",
        interval="resampling spread, no confidence interval",
    )
)
def inception_score(
    probabilities: ArrayLike,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: Seed = 0,
) -> Estimate:
    """Exponential of the mean divergence of each image's class probabilities from their mean.

    exp(mean over images of KL(p(class | image) ‖ p(class))), in nats.

    Parameters
    ----------
    probabilities : array-like, shape (n, classes)
        Of a classifier; rows sum to 1.
    units : array-like, shape (n,), optional
        Images that are resampled together, such as those of a counterfactual set.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        1 to the number of classes, higher: each image looks like one class, and all classes are
        there. Descriptive: it depends on the classifier, and is biased upward where images are
        few. The interval is a spread.

    Raises
    ------
    InputError
        When a row is no distribution.

    References
    ----------
    Salimans et al. 2016, NeurIPS; Barratt & Sharma 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> m.inception_score(np.repeat(np.eye(4), 50, axis=0)).value
    4.0
    """
    rows = _numbers(probabilities, "probabilities")
    invalid = (rows < 0).any(axis=1) | (np.abs(rows.sum(axis=1) - 1.0) > _SUM)
    if invalid.any():
        raise InputError(
            f"probabilities: row {int(invalid.argmax()) + 1} isn't a distribution; expected "
            "numbers that sum to 1, such as the softmax of logits"
        )
    n = len(rows)
    rows = rows / rows.sum(axis=1, keepdims=True)
    owner = unit_codes(np.full(n, None) if units is None else units, n, "units")

    def score(times: Floats) -> float:
        weights = times[owner[0]]
        total = weights.sum()
        if not total:
            return math.nan
        mean = np.einsum("n,nc->c", weights, rows) / total
        # Classes that no image has add nothing.
        image_entropy = float(np.einsum("n,nc->", weights, xlogy(rows, rows)) / total)
        return math.exp(max(0.0, image_entropy - float(xlogy(mean, mean).sum())))

    value = score(np.ones(len(owner[1])))
    unit = name_unit(units)
    method, ends = _spread(
        value,
        1.0,
        lambda n_replicates: [*map(score, _times(owner, rng, 0, n_replicates))],
        f"{unit}s",
        resampling,
    )
    return make_estimate(
        "inception_score",
        value,
        {"images": n},
        method,
        interval_kind=IntervalKind.SPREAD,
        params={"classes": rows.shape[1]},
        no_chance="none: no groups are exchanged; the score grows where images are few",
        unit=unit,
        ends=ends,
    )


def _moments(rows: Floats, weights: Floats) -> Moments:
    """Return the weighted mean, and a factor F of the covariance F Fᵀ, shape (d, r)."""
    total = weights.sum()
    if total < 2:
        nothing = nans(rows.shape[1])
        return nothing, nothing[:, None]
    present = weights > 0
    rows, weights = rows[present], weights[present]
    mean = np.einsum("n,nd->d", weights, rows) / total
    centred = np.sqrt(weights / (total - 1))[:, None] * (rows - mean)
    if len(centred) <= centred.shape[1]:
        return mean, centred.T
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return mean, vectors * np.sqrt(np.maximum(values, 0.0))
