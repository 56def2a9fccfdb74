"""How a metric of counts becomes an estimate: one set of draws for all that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
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
    drawn = [Draws(seen, level=resampling.level, intervals=True) for seen in observed]
    if isinstance(resampling, Bootstrap):
        wanted = [one.replicated(counts) for one in measures]
        blocks = counts.sampler.bootstrap(resampling.replicates, rng) if any(wanted) else ()
        for index, boot in _evaluate(counts, measures, wanted, blocks):
            drawn[index] = replace(drawn[index], boot=boot)
    for null, text in NULLS.items():
        wanted = [one.null == null for one in measures]
        if any(wanted):
            tables, weights = _null_tables(counts, null, resampling, rng)
            for index, values in _evaluate(counts, measures, wanted, tables):
                exact = weights is not None
                how = "every rearrangement enumerated" if exact else f"{len(values)} permutations"
                drawn[index] = replace(
                    drawn[index],
                    null=values,
                    weights=weights,
                    null_text=f"{text}; {how}",
                    resolution=resampling.resolution,
                )
    return [one.estimate(counts, some) for one, some in zip(measures, drawn, strict=True)]


def _without_interval(estimate: Estimate) -> Estimate:
    # Not `replace`, which reads the parts and so makes them.
    found = copy(estimate)
    vars(found).update(ends=no_ends, method=NO_INTERVAL)
    return found


def _null_tables(
    counts: Counts, null: Null, resampling: Resampling, rng: int
) -> tuple[Iterable[Floats], Floats | None]:
    strata = counts.strata(null)
    if not isinstance(resampling, Exact):
        return counts.sampler.permute(strata, permutations(counts, resampling), rng), None
    if not counts.independent:
        raise InputError(
            "resampling=Exact: needs independent rows with one prediction each; "
            "use Permutation() for units, top-k or probabilities"
        )
    tables, weights = exact_tables(counts.table, strata, limit=resampling.limit)
    return [tables], weights


def permutations(counts: Counts, resampling: Bootstrap | Permutation) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(counts.sampler.effort, 1))


def _evaluate(
    counts: Counts,
    measures: Sequence[Measure],
    wanted: Sequence[bool],
    blocks: Iterable[Floats],
) -> list[tuple[int, Floats]]:
    """Return the index and the numbers of each measure that is wanted."""
    kept: dict[int, list[Floats]] = {index: [] for index in np.flatnonzero(wanted).tolist()}
    for tables in blocks:
        for index, values in kept.items():
            values.append(measures[index](counts, tables))
    return [(index, np.concatenate(values)) for index, values in kept.items()]
