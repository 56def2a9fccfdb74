"""Every concept measured by several metrics in one pass, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from equipoise.metrics.concepts.cells import RANKED, Metric
from equipoise.metrics.concepts.concept import Measured, Shared, measure_concept, null_of
from equipoise.metrics.concepts.draws import Rows
from equipoise.metrics.concepts.inputs import BLOCK, Choices, Concepts
from equipoise.metrics.concepts.results import ConceptResults
from equipoise.metrics.measure import NULLS
from equipoise.stats.poisson import unit_times
from equipoise.stats.resampling import Bootstrap, Permutation
from equipoise.stats.streams import unit_uniforms
from equipoise.stats.threads import each

# Rows that permutations of all concepts may shuffle: some seconds of work. Beyond it p-values are
# asymptotic, from replicates centred at no difference.
MAX_SHUFFLED_ROWS = 300_000_000


def measure_concepts(
    data: Concepts,
    choices: Choices,
    metrics: Sequence[Metric],
    resampling: Bootstrap | Permutation | None,
    seed: int,
) -> dict[Metric, ConceptResults]:
    """Measure every concept, with replicates and permutations as asked for."""
    shared = _shared(data, choices, tuple(dict.fromkeys(metrics)), resampling, seed)

    def measure(start: int) -> list[Measured]:
        scores, labels = data.block(start, start + BLOCK)
        return [
            measure_concept(shared, name, column.astype(np.float64), np.ascontiguousarray(truth))
            for name, column, truth in zip(
                data.names[start : start + BLOCK], scores, labels, strict=True
            )
        ]

    blocks = each(measure, range(0, len(data.names), BLOCK))
    found = [one for block in blocks for one in block]
    return {metric: _results(data, shared, metric, found, resampling) for metric in shared.metrics}


def _shared(
    data: Concepts,
    choices: Choices,
    metrics: tuple[Metric, ...],
    resampling: Bootstrap | Permutation | None,
    seed: int,
) -> Shared:
    hall = choices.prevalence == "hall"
    codes = np.ascontiguousarray(data.groups.codes, dtype=np.int32)
    rows = tuple(np.flatnonzero(codes == g).astype(np.int32) for g in range(len(data.groups)))
    times = None
    if not hall:
        replicates = choices.replicates if isinstance(resampling, Bootstrap) else 0
        # The same for every concept: means over concepts keep what those of one image have in
        # common.
        times = unit_times(data.keys, replicates, seed)
    return Shared(
        metrics,
        choices,
        data.groups,
        codes,
        rows,
        None if {*metrics} <= {*RANKED} else _by_key(data, seed),
        times,
        None if times is None else np.stack([times[r].sum(axis=0, dtype=np.int32) for r in rows]),
        data.units,
        0 if hall else permutations_of(resampling, rows=len(data.rows), concepts=len(data.names)),
        seed,
    )


def _by_key(data: Concepts, seed: int) -> Rows:
    key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
    return np.argsort(key, kind="stable").astype(np.int32)


def _results(
    data: Concepts,
    shared: Shared,
    metric: Metric,
    found: Sequence[Measured],
    resampling: Bootstrap | Permutation | None,
) -> ConceptResults:
    choices = replace(shared.choices, metric=metric)
    hall = choices.prevalence == "hall"
    boots = hall or isinstance(resampling, Bootstrap)
    shape = (choices.replicates, len(found), len(data.groups))
    boot = np.full(shape, np.nan) if boots else None
    for index, one in enumerate(found):
        # Where no group takes part there are no replicates.
        if boot is not None and len(one.values[metric]) > 1:
            boot[:, index] = one.values[metric][1:]
    return ConceptResults(
        choices,
        data.names,
        data.groups,
        np.stack([one.values[metric][0] for one in found]),
        np.stack([one.positives for one in found]),
        np.stack([one.sizes for one in found]),
        tuple(one.reasons[metric] for one in found),
        boot,
        tuple(one.null[metric] for one in found),
        np.array([math.nan if choices.ranked else one.threshold for one in found]),
        NULLS[null_of(metric, choices)],
        0.95 if resampling is None else resampling.level,
        0.0 if resampling is None else resampling.resolution,
        data.excluded,
        "row" if data.units is None else "unit",
    )


def permutations_of(resampling: Bootstrap | Permutation | None, *, rows: int, concepts: int) -> int:
    """Return how many permutations each concept gets; 0 where they would take too long."""
    if resampling is None:
        return 0
    if isinstance(resampling, Permutation):
        return resampling.replicates
    asked = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
    return asked if asked * rows * concepts <= MAX_SHUFFLED_ROWS else 0
