"""How a metric of counts becomes an estimate: one set of draws for all that share it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.counts import Counts, Null
from equipoise.stats.exact import exact_tables
from equipoise.stats.resampling import Bootstrap, Exact, Resampling

Floats = npt.NDArray[np.float64]
Statistic = Callable[[Counts, Floats], Floats]

DEFAULT: Resampling = Bootstrap()

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
    """

    observed: Floats
    boot: Floats | None = None
    null: Floats | None = None
    weights: Floats | None = None
    level: float = 0.95
    null_text: str = ""


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
    observed = [one(counts, counts.table[None])[0] for one in measures]
    if resampling is None:
        return [
            one.estimate(counts, Draws(seen)) for one, seen in zip(measures, observed, strict=True)
        ]
    boots = _bootstrap(counts, measures, resampling, rng)
    nulls = _null(counts, measures, resampling, rng)
    return [
        one.estimate(
            counts, Draws(seen, boot, null, weights, resampling.level, _null_text(one, resampling))
        )
        for one, seen, boot, (null, weights) in zip(measures, observed, boots, nulls, strict=True)
    ]


def _bootstrap(
    counts: Counts, measures: Sequence[Measure], resampling: Resampling, rng: int
) -> list[Floats | None]:
    wanted = [one if one.replicated(counts) else None for one in measures]
    if not isinstance(resampling, Bootstrap) or not any(wanted):
        return [None] * len(measures)
    return _evaluate(counts, wanted, counts.sampler.bootstrap(resampling.replicates, rng))


def _null(
    counts: Counts, measures: Sequence[Measure], resampling: Resampling, rng: int
) -> list[tuple[Floats | None, Floats | None]]:
    found: list[tuple[Floats | None, Floats | None]] = [(None, None)] * len(measures)
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
    many = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    return counts.sampler.permute(strata, many, rng), None


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


def _null_text(one: Measure, resampling: Resampling) -> str:
    if one.null is None:
        return ""
    if isinstance(resampling, Exact):
        return f"{NULLS[one.null]}; every rearrangement enumerated"
    many = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    return f"{NULLS[one.null]}; {many} permutations"
