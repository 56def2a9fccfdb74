"""Fréchet distance between two sets of images, by their features."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import Ends, Estimate, Floats, InputError, Labels, no_ends
from equipoise.core.labels import unit_codes
from equipoise.metrics.building import SPREAD, moved_percentile
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.vectors.sets import embedding_table
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.streams import Seed, seed_of, unit_counts, unit_keys

# Multiplications that resampling may take: some twenty seconds on one core; and the fewest
# replicates.
_MOST_WORK, _FEWEST = 100_000_000_000, 20


def _numbers(table: Any, what: str) -> Floats:
    """Return a table (n, d) of finite numbers, neither of them 0."""
    rows = np.asarray(embedding_table(table, what), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise InputError(f"{what}: row {bad[0] + 1} has numbers that are not finite ({len(bad)})")
    return rows


def frechet_distance(
    features: npt.ArrayLike,
    reference: npt.ArrayLike,
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
        0 or above, lower: closer to the reference. Descriptive: no chance level. The value is
        biased upward where images are few, the more so the more dimensions. The interval is a
        spread: percentiles of resampled sets, moved to the value, for resampling adds to the
        bias.

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
    <frechet_distance 7.535 [6.517, 8.709]; n = 400 in 2 groups>
    """
    pair = _numbers(features, "features"), _numbers(reference, "reference")
    (n, d), (m, space) = (rows.shape for rows in pair)
    if min(n, m) < 2 or d != space:
        raise InputError(f"features and reference: {(n, d)}, {(m, space)}; expected 2 rows or more")
    labels = np.full(n, None) if units is None else units
    owners = unit_codes(labels, n, "units"), unit_codes(np.full(m, None), m, "units")

    def distance(times: Iterable[Floats]) -> float:
        """Return the distance where units count so many times."""
        (mean, factor), (mean_2, factor_2) = (
            _moments(rows, some[codes])
            for rows, (codes, _), some in zip(pair, owners, times, strict=True)
        )
        product = factor.T @ factor_2
        if not np.isfinite(product).all():
            return math.nan
        # The trace of (Σ1 Σ2)^½ is the sum of the singular values of F1ᵀ F2.
        shared = float(np.linalg.svd(product, compute_uv=False).sum())
        apart = float(np.square(mean - mean_2).sum())
        spread = float(np.square(factor).sum() + np.square(factor_2).sum())
        return max(0.0, apart + spread - 2.0 * shared)

    value = distance(np.ones(len(names)) for _, names in owners)
    unit = "row" if units is None else "unit"
    ends: Ends = no_ends
    method = NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    if isinstance(resampling, Bootstrap):
        work = sum(k * d * min(k, d) + 10 * min(k, d) ** 3 for k in (n, m))
        many = min(resampling.replicates, max(_FEWEST, int(_MOST_WORK / work)))
        times = [
            unit_counts(seed_of(rng) + place, unit_keys(names), range(many)).astype(np.float64)
            for place, (_, names) in enumerate(owners)
        ]
        drawn = np.array([*map(distance, zip(*times, strict=True))])
        ends = moved_percentile(value, drawn, 0.0)
        method = (
            f"{SPREAD}: percentiles of {many} resamples of the {unit}s of both sets, "
            "moved to the value; not a confidence interval: resampled sets lie further apart"
        )
    return make_estimate(
        "frechet_distance",
        value,
        {"images": n, "reference": m},
        method,
        params={"dimensions": d},
        no_chance="none: it depends on the encoder and the number of images; compare with sets of "
        "the same sizes",
        unit=unit,
        ends=ends,
    )


def _moments(rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean, and a factor F of the covariance F Fᵀ, shape (d, r)."""
    total = weights.sum()
    if total < 2:
        nothing = np.full(rows.shape[1], np.nan)
        return nothing, nothing[:, None]
    kept = weights > 0
    rows, weights = rows[kept], weights[kept]
    mean = np.einsum("n,nd->d", weights, rows) / total
    centred = np.sqrt(weights / (total - 1))[:, None] * (rows - mean)
    if len(centred) <= centred.shape[1]:
        return mean, centred.T
    values, vectors = np.linalg.eigh(centred.T @ centred)
    return mean, vectors * np.sqrt(np.maximum(values, 0.0))


register(
    MetricSpec(
        name="frechet_distance",
        title="Fréchet distance",
        symbol="FID",
        kinds=("counterfactuals", "generation"),
        range="[0, ∞)",
        definition="|μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½) of the features of two sets of images.",
        direction="Higher: the set lies further from the reference.",
        reference="Dowson & Landau 1982; Heusel et al. 2017",
        chance="none: it depends on the encoder and the number of images",
        interval="resampling spread, no confidence interval",
    )
)
