"""All measures of a ranking from one ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.estimates import Asked, estimates
from equipoise.metrics.rankings.pools import pools_of
from equipoise.metrics.rankings.requests import (
    asked_bias,
    asked_mad,
    asked_max_skew,
    asked_min_skew,
    asked_ndkl,
    asked_skews,
)
from equipoise.metrics.rankings.tops import Desired, Ranking
from equipoise.stats.resampling import Resampling

RankingMeasure = Literal["max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "bias_at_k"]


def retrieval_measures(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    measures: Sequence[RankingMeasure] = (
        "max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad",
    ),
    prefixes: int | None = None,
    desired: Desired = "pool",
    group: str | None = None,
    first: str | None = None,
    second: str | None = None,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> dict[str, Estimate]:  # fmt: skip
    """Several measures of one ranking: items are ranked once, and labels drawn once for each K.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        See `max_skew`; `cosine_scores` ranks vectors without a table of scores.
    k : int
        How many of the best items count, in all measures but NDKL.
    measures : sequence of str
        Names of the functions: "max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad",
        "bias_at_k" (which needs two groups, or `first` and `second`).
    prefixes : int, optional
        The k of `ndkl`, such as the square of k; default: k.
    group : str, optional
        See `skew_at_k`.
    first, second : str, optional
        See `bias_at_k`.
    groups, desired, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    dict of str to Estimate
        By the name of the measure, in the order asked for: what its function alone returns.

    Raises
    ------
    InputError
        As these functions; and where a measure is unknown or `resampling` is Exact, which only
        `max_skew` alone can be.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    ranking = Ranking.of(pools, k, k if prefixes is None else prefixes)
    requests: dict[str, Callable[[], Asked]] = {
        "max_skew": lambda: asked_max_skew(ranking, k, desired),
        "min_skew": lambda: asked_min_skew(ranking, k, desired),
        "skew_at_k": lambda: asked_skews(ranking, k, desired, group),
        "ndkl": lambda: asked_ndkl(ranking, k if prefixes is None else prefixes, desired),
        "retrieval_mad": lambda: asked_mad(ranking, k),
        "bias_at_k": lambda: asked_bias(ranking, k, desired, first, second),
    }
    names = tuple(dict.fromkeys(measures))
    unknown = [name for name in names if name not in requests]
    if unknown or not names:
        raise InputError(
            f"measures: {unknown[0] if unknown else 'none'!r}; "
            f"expected some of {', '.join(get_args(RankingMeasure))}"
        )
    asked = [requests[name]() for name in names]
    return dict(zip(names, estimates(asked, resampling, rng), strict=True))
