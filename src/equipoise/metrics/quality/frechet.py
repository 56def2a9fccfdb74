"""Fréchet distance of two sets of features, with what its bias for small sets is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.quality.labels import SPREAD, Floats, MovedPercentile, Units
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import stream

NO_CHANCE = (
    "none: how far apart sets of one kind lie depends on the encoder and on how many images there "
    "are; compare with the extrapolated value, and with sets of the same sizes"
)

# Multiplications that resampling may take: some twenty seconds on one core.
_MOST_WORK = 100_000_000_000
_FEWEST = 20
_SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_ORDERS = 4


def frechet_distance(
    features: Any,
    reference: Any,
    *,
    units: Any = None,
    reference_units: Any = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: int = 0,
) -> Estimate:
    """Fréchet distance of the normal distributions fitted to two sets of features.

    |μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½), covariances with n − 1.

    Parameters
    ----------
    features : array-like, shape (n, d)
        Of the images that are judged, such as an Inception network's for the FID.
    reference : array-like, shape (m, d)
        Of the images they are compared with, in the same space.
    units, reference_units : array-like, shape (n,) and (m,), optional
        What is resampled together, such as the counterfactual set.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone. Where dimensions are many, fewer replicates are made than
        asked for; the method says how many.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        0 or above, lower: closer to the reference. Descriptive: no chance level. The value is
        biased upward where images are few, the more so the more dimensions; `.by` has
        "frechet_distance_extrapolated", what it tends to as both sets grow (a straight line in
        one over the number of images), and `params["bias"]` the difference. The interval is a
        spread: percentiles of resampled sets, moved to the value, for resampling adds to the
        bias.

    Raises
    ------
    InputError
        When an array is not (n, d) finite numbers with n of 2 or more, or dimensions differ.

    References
    ----------
    Dowson & Landau 1982; Heusel et al. 2017, NeurIPS; Chong & Forsyth 2020, CVPR.
    """
    one, other = _array(features, "features"), _array(reference, "reference")
    if one.shape[1] != other.shape[1]:
        raise InputError(
            f"features of {one.shape[1]} numbers and reference of {other.shape[1]}; expected one "
            "space"
        )
    pair = (Weighted(one, Units.of(units, len(one))),
            Weighted(other, Units.of(reference_units, len(other))))  # fmt: skip
    value = _distance(*pair)
    ends, method = _spread(pair, value, resampling, rng)
    limit = math.nan if resampling is None else _extrapolated(pair, rng)
    few = "too few units to leave some of them out" if resampling is not None else NO_INTERVAL
    part = Part(
        "frechet_distance_extrapolated", "", limit, n=len(one) + len(other),
        reason=few if math.isnan(limit) else "",
    )  # fmt: skip
    return make_estimate(
        metric="frechet_distance",
        value=value,
        n={"images": len(one), "reference": len(other)},
        method=method,
        params={"dimensions": one.shape[1], "bias": value - limit},
        no_chance=NO_CHANCE,
        by=parts_to_table([part]),
        unit=pair[0].units.name,
        ends=ends,
    )


@dataclass(frozen=True, eq=False)
class Weighted:
    """Features whose rows count as often as their units do."""

    rows: Floats
    units: Units

    def moments(self, times: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the mean, and a factor F of the covariance F Fᵀ, shape (d, r)."""
        weights = np.ones(len(self.rows)) if times is None else times[self.units.codes]
        total = weights.sum()
        if total < 2:
            nothing = np.full(self.rows.shape[1], np.nan)
            return nothing, nothing[:, None]
        kept = weights > 0
        rows, weights = self.rows[kept], weights[kept]
        mean = np.einsum("n,nd->d", weights, rows) / total
        centred = np.sqrt(weights / (total - 1))[:, None] * (rows - mean)
        if len(centred) <= centred.shape[1]:
            return mean, centred.T
        values, vectors = np.linalg.eigh(centred.T @ centred)
        return mean, vectors * np.sqrt(np.maximum(values, 0.0))

    @property
    def work(self) -> float:
        """About how many multiplications the moments take."""
        n, d = self.rows.shape
        return float(n * d * min(n, d) + 10 * min(n, d) ** 3)


def _distance(
    one: Weighted, other: Weighted, times: tuple[Floats | None, Floats | None] = (None, None)
) -> float:
    (mean, factor), (mean_2, factor_2) = one.moments(times[0]), other.moments(times[1])
    product = factor.T @ factor_2
    if not np.isfinite(product).all():
        return math.nan
    # The trace of (Σ1 Σ2)^½ is the sum of the singular values of F1ᵀ F2.
    shared = float(np.linalg.svd(product, compute_uv=False).sum())
    apart = float(np.square(mean - mean_2).sum())
    spread = float(np.square(factor).sum() + np.square(factor_2).sum())
    return max(0.0, apart + spread - 2.0 * shared)


def _spread(
    pair: tuple[Weighted, Weighted], value: float, resampling: Resampling | None, seed: int
) -> tuple[Ends, str]:
    if not isinstance(resampling, Bootstrap):
        return no_ends, NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    work = sum(one.work for one in pair)
    many = min(resampling.replicates, max(_FEWEST, int(_MOST_WORK / work)))
    asked = Bootstrap(many)
    times = [
        one.units.times(asked, seed + place).astype(np.float64) for place, one in enumerate(pair)
    ]
    drawn = np.array([_distance(*pair, (a, b)) for a, b in zip(*times, strict=True)])
    if np.isfinite(drawn).sum() < 2:
        return no_ends, "none: too few units to resample"
    what = "units" if any(one.units.given for one in pair) else "images"
    method = (
        f"{SPREAD}: percentiles of {many} resamples of the {what} of both sets, moved to the "
        "value; not a confidence interval: resampled sets lie further apart"
    )
    return MovedPercentile.around(value, drawn, least=0.0), method


def _extrapolated(pair: tuple[Weighted, Weighted], seed: int) -> float:
    """Return where a straight line through distances of parts of the sets meets endless ones."""
    places, found = [], []
    for order in range(_ORDERS):
        orders = [
            stream(seed, "frechet", place, order).permutation(len(one.units.names))
            for place, one in enumerate(pair)
        ]
        for share in _SHARES:
            times = tuple(_first(one, share) for one in orders)
            found.append(_distance(*pair, (times[0], times[1])))
            places.append(1.0 / share)
    x, y = np.array(places), np.array(found)
    if not np.isfinite(y).all() or min(len(one.units.names) for one in pair) < _FEWEST:
        return math.nan
    return float(np.polyfit(x, y, 1)[1])


def _first(order: npt.NDArray[np.int64], share: float) -> Floats:
    times = np.zeros(len(order))
    times[order[: max(2, round(share * len(order)))]] = 1.0
    return times


def _array(given: Any, what: str) -> Floats:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what}: no table of numbers; expected (n, d)") from None
    if found.ndim != 2 or len(found) < 2 or not found.shape[1]:
        raise InputError(f"{what}: shape {found.shape}; expected (n, d), two rows or more")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise InputError(
            f"{what}: row {bad[0] + 1} has numbers that are not finite ({len(bad)} such rows). "
            "Leave these images out, or compute their features again"
        )
    return found


_frechet = partial(
    MetricSpec,
    kinds=("counterfactuals", "generation"),
    direction="Higher: the set lies further from the reference.",
    reference=(
        "Dowson & Landau 1982; Heusel et al. 2017 (FID); Chong & Forsyth 2020 (extrapolation)"
    ),
)
register(
    _frechet(
        name="frechet_distance",
        title="Fréchet distance",
        symbol="FID",
        range="[0, ∞)",
        definition=(
            "|μ1 − μ2|² + tr(Σ1 + Σ2 − 2 (Σ1 Σ2)^½) of the normal distributions fitted to the "
            "features of two sets of images."
        ),
        chance="none: it depends on the encoder and the number of images",
        interval="resampling spread, no confidence interval",
        parameters={"units": "images resampled together"},
    )
)
register(
    _frechet(
        name="frechet_distance_extrapolated",
        title="Fréchet distance, extrapolated",
        range="(−∞, ∞); below 0 by noise alone",
        definition=(
            "Limit of the Fréchet distance as both sets grow: the intercept of a line in 1 / "
            "(share of images kept)."
        ),
        chance="none: it depends on the encoder",
    )
)
