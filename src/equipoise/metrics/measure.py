"""How a metric of counts becomes an estimate: one set of draws for all that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.metrics.counts import Counts, Null
from equipoise.stats.draws import exact_tables
from equipoise.stats.resampling import (
    Bootstrap,
    Exact,
    Permutation,
    Resampling,
    null_draws,
)

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Counts, Floats], Floats]

NullDraws = tuple[Floats | None, Floats | None]

DEFAULT: Resampling = Bootstrap()

# Cells that permutations beyond those asked for may draw: a second or two of work for each null.
MAX_DRAWN_CELLS = 8_000_000

NO_INTERVAL = "none: resampling=None gives the value alone"

NULLS: dict[Null, str] = {
    "rows": "groups are exchangeable over all rows",
    "class": "groups are exchangeable within each true class",
    "prediction": "groups are exchangeable within each predicted label",
}


@dataclass(frozen=True, eq=False)
class Draws:
    """What a statistic gave on the observed table and on drawn ones.

    Attributes
    ----------
    observed : ndarray, shape (s,)
        The statistic's s numbers on the observed table.
    boot : ndarray, shape (replicates, s), or None
        On bootstrap replicates.
    null : ndarray, shape (permutations, s), or None
        On tables with permuted groups.
    weights : ndarray, shape (permutations,), or None
        Probabilities of the null tables where they were enumerated.
    level : float
        Confidence level of parts.
    null_text : str
        The null hypothesis and how it was drawn.
    resolution : float
        The finest p-value that matters; 0 where draws are not approximated.
    intervals : bool
        Whether intervals are wanted: not with resampling=None, which gives values alone.
    """

    observed: Floats
    boot: Floats | None = None
    null: Floats | None = None
    weights: Floats | None = None
    level: float = 0.95
    null_text: str = ""
    resolution: float = 0.0
    intervals: bool = False


class Measure(Protocol):
    """A metric of counts.

    `null` names the exchangeability its chance level rests on (None: it has none), `replicated`
    says whether its interval needs bootstrap replicates.
    """

    @property
    def null(self) -> Null | None:
        """Null hypothesis of the chance level."""
        ...

    def replicated(self, counts: Counts) -> bool:
        """Whether the interval needs bootstrap replicates for these counts."""
        ...

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the s numbers of each table: (r, outcomes, groups) to (r, s)."""
        ...

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        ...


def measure(
    counts: Counts,
    measures: Sequence[Measure],
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> list[Estimate]:
    """Measure counts, drawing replicates and permutations once for all measures.

    Parameters
    ----------
    counts : Counts
    measures : sequence of Measure
    resampling : Bootstrap, Permutation, Exact or None
        None gives values alone.
    rng : int
        Seed of the random streams.
    """
    observed = [one(counts, counts.observed)[0] for one in measures]
    if resampling is None:
        bare = (one.estimate(counts, Draws(v)) for one, v in zip(measures, observed, strict=True))
        return [_without_interval(one) for one in bare]
    boots = _bootstrap(counts, measures, resampling, rng)
    nulls = _null(counts, measures, resampling, rng)
    return [
        one.estimate(counts, _draws(one, seen, boot, null, resampling))
        for one, seen, boot, null in zip(measures, observed, boots, nulls, strict=True)
    ]


def _without_interval(estimate: Estimate) -> Estimate:
    # Not `replace`, which reads the parts and so makes them.
    found = copy(estimate)
    vars(found).update(ends=no_ends, method=NO_INTERVAL)
    return found


def _draws(
    one: Measure, seen: Floats, boot: Floats | None, null: NullDraws, resampling: Resampling
) -> Draws:
    drawn, weights = null
    if one.null is None or drawn is None:
        return Draws(seen, boot, level=resampling.level, intervals=True)
    exact = weights is not None
    how = "every rearrangement enumerated" if exact else f"{len(drawn)} permutations"
    text = f"{NULLS[one.null]}; {how}"
    finest = resampling.resolution
    return Draws(seen, boot, drawn, weights, resampling.level, text, finest, intervals=True)


def _bootstrap(
    counts: Counts, measures: Sequence[Measure], resampling: Resampling, rng: int
) -> list[Floats | None]:
    wanted = [one if one.replicated(counts) else None for one in measures]
    if not isinstance(resampling, Bootstrap) or not any(wanted):
        return [None] * len(measures)
    return _evaluate(counts, wanted, counts.sampler.bootstrap(resampling.replicates, rng))


def _null(
    counts: Counts, measures: Sequence[Measure], resampling: Resampling, rng: int
) -> list[NullDraws]:
    found: list[NullDraws] = [(None, None)] * len(measures)
    for null in NULLS:
        wanted = [one if one.null == null else None for one in measures]
        if not any(wanted):
            continue
        tables, weights = _null_tables(counts, null, resampling, rng)
        for index, drawn in enumerate(_evaluate(counts, wanted, tables)):
            if drawn is not None:
                found[index] = (drawn, weights)
    return found


def _null_tables(
    counts: Counts, null: Null, resampling: Resampling, rng: int
) -> tuple[Iterable[Floats], Floats | None]:
    strata = counts.strata(null)
    if isinstance(resampling, Exact):
        tables, weights = exact_tables(_whole(counts), strata, limit=resampling.limit)
        return [tables], weights
    return counts.sampler.permute(strata, permutations(counts, resampling), rng), None


def permutations(counts: Counts, resampling: Bootstrap | Permutation) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(counts.sampler.effort, 1))


def _whole(counts: Counts) -> Floats:
    if not counts.independent:
        raise InputError(
            "resampling=Exact: needs independent rows with one prediction each; "
            "use Permutation() for units, top-k or probabilities"
        )
    return counts.table


def _evaluate(
    counts: Counts, measures: Sequence[Measure | None], blocks: Iterable[Floats]
) -> list[Floats | None]:
    found: list[list[Floats]] = [[] for _ in measures]
    for tables in blocks:
        for one, values in zip(measures, found, strict=True):
            if one is not None:
                values.append(one(counts, tables))
    return [np.concatenate(values) if values else None for values in found]
