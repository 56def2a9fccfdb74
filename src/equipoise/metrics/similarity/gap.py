"""How much more similar a concept is to images of one group than to those of another."""

from __future__ import annotations

import math
from typing import Any

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.pools import pools_of
from equipoise.metrics.similarity.effects import Effects
from equipoise.metrics.similarity.estimating import DrawnGaps, estimate_of
from equipoise.stats.resampling import Exact, Resampling


def similarity_gap(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    scale: float | None = None,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    clusters: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in mean similarity to a concept.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        Similarity of each image to each concept.
    groups, queries, within, sets, units
        See `equipoise.metrics.rankings.max_skew`. With `sets`, images are compared within their
        set: similarity = set + group, by least squares.
    scale : float, optional
        What makes a logit of a similarity, such as CLIP's learned temperature: the gap is then in
        logits, what a softmax sees, and called "logit_gap".
    clusters : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and
        exchange their groups as one where they have one group. Sets lie within units.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts of the gap (largest less smallest effect of a group), 0 or above,
        higher is worse. Interval: percentile bootstrap over concepts; of one concept, and of the
        parts, simultaneous intervals of all pairs of groups over resampled units. `.by` has one
        part per concept with the effects of its groups, which are 0 on average; "group_effect"
        of every group and concept, with its own chance band; over several concepts also that of
        each group on average (subject ""); with sets the gap of plain means against the null of
        pool order ("…_pool_order").

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, `scale` is not above 0, a set has images of
        several units, or `resampling` is Exact.

    References
    ----------
    Chen & Dou 2022 (similarity by group); Hothorn, Bretz & Westfall 2008, Biometrical Journal 50,
    346-363 (simultaneous intervals).
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for similarities; use Permutation()")
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise InputError(f"scale={scale}: expected a number above 0, or None for no logits")
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    effects = Effects.of(pools, sets, clusters, 1.0 if scale is None else scale)
    return estimate_of(DrawnGaps(effects, scale, resampling, rng))
