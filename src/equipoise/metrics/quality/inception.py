"""Inception score: whether images look like one class each, and like all classes together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import xlogy

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.quality.labels import SPREAD, Floats, MovedPercentile, Units
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.resampling import Bootstrap, Resampling

NO_CHANCE = (
    "none: no groups are exchanged; the score of a classifier that says the same of every image "
    "is 1, and it grows where images are few"
)
_SUM = 1e-3


def inception_score(
    probabilities: Any,
    *,
    splits: int = 1,
    units: Any = None,
    resampling: Resampling | None = Bootstrap(200),  # noqa: B008 - frozen
    rng: int = 0,
) -> Estimate:
    """Exponential of the mean divergence of each image's class probabilities from their mean.

    exp(mean over images of KL(p(class | image) ‖ p(class))), in nats.

    Parameters
    ----------
    probabilities : array-like, shape (n, classes)
        Of a classifier, or of a dual encoder's zero-shot classes; rows sum to 1.
    splits : int
        The source cuts images into 10 parts in their order and averages the parts' scores.
    units : array-like, shape (n,), optional
        What is resampled together.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        1 to the number of classes, higher: each image looks like one class, and all classes are
        there. Descriptive: it says nothing of images within a class, and depends on the
        classifier; biased upward where images are few. The interval is a spread.

    Raises
    ------
    InputError
        When rows are no probabilities, or splits leave no image in a part.

    References
    ----------
    Salimans et al. 2016, NeurIPS; Barratt & Sharma 2018.
    """
    rows = _probabilities(probabilities)
    if not 1 <= splits <= len(rows):
        raise InputError(f"splits={splits}: expected 1 to {len(rows)}, the number of images")
    found = Units.of(units, len(rows))
    value = _score(rows, np.ones(len(rows)), splits)
    ends: Ends = no_ends
    method = NO_INTERVAL if resampling is None else "none: use Bootstrap()"
    if isinstance(resampling, Bootstrap):
        times = found.times(resampling, rng).astype(np.float64)
        drawn = np.array([_score(rows, one[found.codes], splits) for one in times])
        ends = MovedPercentile.around(value, drawn, least=1.0)
        method = (
            f"{SPREAD}: percentiles of {resampling.replicates} resamples, moved to the value; not "
            "a confidence interval: the score is biased where images are few"
        )
    return make_estimate(
        metric="inception_score",
        value=value,
        n={"images": len(rows)},
        method=method,
        params={"classes": rows.shape[1], "splits": splits},
        no_chance=NO_CHANCE,
        unit=found.name,
        ends=ends,
    )


def _score(rows: Floats, weights: Floats, splits: int) -> float:
    scores = []
    for part in np.array_split(np.arange(len(rows)), splits):
        total = weights[part].sum()
        if not total:
            return math.nan
        mean = np.einsum("n,nc->c", weights[part], rows[part]) / total
        # KL(p ‖ mean) summed: classes that no image has contribute nothing.
        own = float(np.einsum("n,nc->", weights[part], xlogy(rows[part], rows[part])) / total)
        scores.append(math.exp(max(0.0, own - float(xlogy(mean, mean).sum()))))
    return float(np.mean(scores))


def _probabilities(given: Any) -> Floats:
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("probabilities: no table of numbers; expected (n, classes)") from None
    if rows.ndim != 2 or not rows.size:
        raise InputError(f"probabilities: shape {rows.shape}; expected (n, classes), not empty")
    wrong = ~np.isfinite(rows).all(axis=1) | (rows < 0).any(axis=1)
    wrong |= ~(np.abs(rows.sum(axis=1) - 1.0) <= _SUM)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"probabilities: row {place + 1} is no distribution (it sums to {rows[place].sum():.4g}"
            f", and the smallest is {rows[place].min():.4g}). Pass probabilities, such as the "
            "softmax of logits"
        )
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


register(
    MetricSpec(
        name="inception_score",
        title="Inception score",
        symbol="IS",
        kinds=("counterfactuals", "generation"),
        range="[1, number of classes]",
        harm="lower",
        definition=(
            "exp of the mean over images of KL(p(class | image) ‖ p(class)), of a classifier's "
            "probabilities."
        ),
        direction="Lower: images resemble no class, or all the same class.",
        chance="none: 1 for constant predictions, biased upward for few images",
        interval="resampling spread, no confidence interval",
        parameters={
            "splits": "parts whose scores are averaged: 1",
            "units": "images resampled together",
        },
        reference=(
            "Salimans et al. 2016 (Inception score); Barratt & Sharma 2018 (what it leaves out)"
        ),
    )
)
