"""Normalised similarity of groups to a concept, and how far the groups lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import Percentile, against_chance, part, replicates_of
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, Draws
from equipoise.metrics.retrieval.estimates import query_weights, weighted_mean
from equipoise.metrics.retrieval.parts import POOL_ORDER, SET_ORDER
from equipoise.metrics.retrieval.pools import Floats, pools_of
from equipoise.metrics.retrieval.similarity_means import Similarity
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Exact, Resampling

UNIT_ORDER = "the order of units within each pool is random"


def normalized_similarity_mad(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    clusters: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Sum over groups of |p_j − mean p|, with p_j = (mean of group j − mean) / sd of all scores.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n)
        Similarity of each image to each concept.
    groups, queries, within, sets, units
        See `equipoise.metrics.retrieval.max_skew`. Images of one counterfactual set are
        resampled together, and exchange their groups within the set.
    clusters : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and,
        without sets, exchange their groups as one where they have one group.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts, 0 or above, higher is worse; for two groups the difference of their
        means in standard deviations. Interval: percentile bootstrap over concepts, over images
        (or sets) for one concept and for the parts. `.by` has one part per concept, with p_j of
        the groups. Groups that are not in the pool take no part in the mean of p.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, or `resampling` is Exact.

    References
    ----------
    Chen & Dou 2022, Table 1 (ddof 0; a sum, as its tables have it).
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for similarities; use Permutation()")
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    similarity = Similarity.of(pools, sets, clusters)
    boot = None
    if isinstance(resampling, Bootstrap) and len(similarity.known):
        boot = similarity.resampled(resampling.replicates, rng)
    draws = _draws(similarity, boot, resampling, rng)
    against = against_chance(draws, 0, "higher")
    value = float(draws.observed[0])
    return make_estimate(
        metric="normalized_similarity_mad",
        value=value,
        n=pools.counts,
        method=_method(similarity, draws, resampling),
        params=similarity.params,
        chance=against.chance,
        no_chance="" if against.chance else _why_none(value, resampling),
        p_value=against.p_value,
        null=against.null,
        by=parts_to_table(_parts(similarity, draws, boot)),
        excluded={**pools.excluded, **similarity.left_out},
        unit=similarity.unit,
        reason=similarity.why(0) if math.isnan(value) else "",
        ends=replicates_of(draws, 0) or no_ends,
    )


def _draws(
    similarity: Similarity, boot: Floats | None, resampling: Resampling | None, rng: int
) -> Draws:
    """Put the mean over concepts first, and each concept after it."""
    each, known = similarity.spread(similarity.means), similarity.known
    observed = np.append(each[known].mean() if len(known) else np.nan, each)
    if resampling is None or not len(known):
        return Draws(observed)
    null = similarity.exchanged(resampling, rng)
    plain = POOL_ORDER if similarity.clusters is None else UNIT_ORDER
    text = SET_ORDER if similarity.sets else plain
    return Draws(
        observed=observed,
        boot=None if boot is None else _whole(similarity, each, boot, resampling, rng),
        null=None if null is None else np.insert(null, 0, null[:, known].mean(axis=1), axis=1),
        level=resampling.level,
        null_text="" if null is None else f"{text}; {len(null)} permutations",
        resolution=getattr(resampling, "resolution", 0.0),
        intervals=True,
    )


def _whole(
    similarity: Similarity, each: Floats, boot: Floats, resampling: Resampling, rng: int
) -> Floats | None:
    """Return replicates of the mean, (replicates, 1): over images for one concept."""
    if len(similarity.pools.pools) == 1:
        return similarity.spread(boot)
    weights = query_weights(similarity.pools, similarity.known, resampling, rng)
    return None if weights is None else weighted_mean(weights, each[similarity.known])[:, None]


def _parts(similarity: Similarity, draws: Draws, boot: Floats | None) -> Iterator[Part]:
    """Yield a part per concept with the normalised similarity of each group."""
    spread = None if boot is None else similarity.spread(boot)
    for index, pool in enumerate(similarity.pools.pools):
        has = boot is not None and index in similarity.known
        ends: Ends = Percentile(spread[:, index]) if has and spread is not None else no_ends
        drawn = boot[:, index] if has and boot is not None else None
        made = part(
            "normalized_similarity_mad",
            pool.name,
            draws,
            index + 1,
            ends=ends,
            against=against_chance(draws, index + 1, "higher"),
            n=len(pool.items),
            by_group=_by_group(similarity, index, drawn, draws.level),
            reason="" if index in similarity.known else similarity.why(index),
        )
        yield replace(made, shows="normalised similarity")


def _by_group(
    similarity: Similarity, index: int, boot: Floats | None, level: float
) -> tuple[GroupValue, ...]:
    groups, sizes = similarity.pools.groups, similarity.pools.sizes[index]
    low = high = np.full(len(sizes), np.nan)
    if boot is not None:
        low, high, _ = percentile(boot, level)
    rows = zip(groups.names, groups.levels, sizes, similarity.means[index], low, high, strict=True)
    return tuple(
        GroupValue(
            name, level_names, int(many), float(p), float(start), float(stop),
            "" if many else "not in the pool",
        )
        for name, level_names, many, p, start, stop in rows
    )  # fmt: skip


def _method(similarity: Similarity, draws: Draws, resampling: Resampling | None) -> str:
    if resampling is None:
        return NO_INTERVAL
    if draws.boot is None:
        return "none: use Bootstrap()" if len(similarity.known) else NO_INTERVAL
    what = "queries" if similarity.unit == "query" else f"{similarity.unit}s"
    return f"percentile bootstrap over {what}, {len(draws.boot)} replicates"


def _why_none(value: float, resampling: Resampling | None) -> str:
    if math.isnan(value):
        return "not estimable"
    return "no resampling was asked for" if resampling is None else "no set holds several groups"


register(
    MetricSpec(
        name="normalized_similarity_mad",
        title="Spread of normalised similarity",
        symbol="MAD",
        kinds=("retrieval", "similarity", "counterfactuals"),
        range="[0, ∞)",
        definition=(
            "Sum over groups of |p_j − mean of p|, with p_j = (mean similarity of group j − mean "
            "of all images) / standard deviation of all images; mean over concepts."
        ),
        threshold=0.2,
        threshold_reason="0.2 standard deviations, where Cohen's band small begins",
        direction="Higher: groups differ more in similarity to the concept.",
        chance="above 0, more so for small and many groups",
        interval=(
            "percentile bootstrap over concepts; of one concept, over images or counterfactual sets"
        ),
        null="images are exchangeable within each counterfactual set, else within the pool",
        reference="Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models'",
        errata=(
            "The text says that 'doctor' is more similar to women, Table 1 says men. Table 2 "
            "prints two of seven races, so its MAD cannot be recomputed."
        ),
    )
)
