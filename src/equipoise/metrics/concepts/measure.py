"""Every concept measured: cells of each group, replicates and permutations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import (
    Cells,
    Flags,
    Floats,
    Indices,
    best_f1_threshold,
    metric_of,
    ranked_cells,
    threshold_cells,
)
from equipoise.metrics.concepts.draws import (
    Weights,
    fixed_prevalence,
    image_weights,
    permuted,
    weighted_tables,
)
from equipoise.metrics.concepts.inputs import Choices, Concepts
from equipoise.metrics.concepts.results import ConceptResults
from equipoise.metrics.items import Units
from equipoise.metrics.measure import NULLS
from equipoise.stats.resampling import Bootstrap, Permutation
from equipoise.stats.streams import stream, unit_uniforms

# Rows that permutations of all concepts may shuffle: some seconds of work. Beyond it p-values are
# asymptotic, from replicates centred at no difference.
MAX_SHUFFLED_ROWS = 300_000_000


def measure_concepts(
    data: Concepts, choices: Choices, resampling: Bootstrap | Permutation | None, seed: int
) -> ConceptResults:
    """Measure every concept, with replicates and permutations as asked for."""
    draws = _Draws(data, choices, resampling, seed)
    many, width = len(data.names), len(data.groups)
    observed = np.full((many, width), np.nan)
    boot = np.full((choices.replicates, many, width), np.nan) if draws.boots else None
    found = [_Concept.of(data, choices, index, seed) for index in range(many)]
    null: list[Floats | None] = []
    for index, one in enumerate(found):
        values, replicates = draws.by_group(one)
        observed[index] = values
        if boot is not None and replicates is not None:
            boot[:, index] = replicates
        null.append(draws.null(one))
        # Cells of a concept are as long as the data: only what was counted stays.
        one.rows.clear()
    return ConceptResults(
        choices,
        data.names,
        data.groups,
        observed,
        np.stack([one.positives for one in found]),
        np.stack([one.sizes for one in found]),
        tuple(
            tuple(_left(one.reasons, index, observed[at]) for index in range(width))
            for at, one in enumerate(found)
        ),
        boot,
        tuple(null),
        np.array([one.threshold for one in found]),
        NULLS[_null_of(choices)],
        0.95 if resampling is None else resampling.level,
        0.0 if resampling is None else resampling.resolution,
        data.excluded,
        "row" if data.units is None else "unit",
    )


def _left(reasons: Sequence[str], group: int, observed: Floats) -> str:
    if reasons[group] or not math.isnan(observed[group]):
        return reasons[group]
    return "the metric's denominator is 0"


def _null_of(choices: Choices) -> Literal["rows", "class", "prediction"]:
    conditional = ("auroc", "true_positive_rate", "false_positive_rate")
    if choices.prevalence == "weighted" or choices.metric in conditional:
        return "class"
    return "prediction" if choices.metric == "precision" else "rows"


@dataclass(frozen=True, eq=False)
class _Concept:
    """One concept: who takes part, and the scores and labels of each group."""

    index: int
    name: str
    reasons: tuple[str, ...]
    positives: Indices
    sizes: Indices
    threshold: float
    rows: dict[int, Indices]
    scores: Floats
    labels: Flags
    test: Flags

    @classmethod
    def of(cls, data: Concepts, choices: Choices, index: int, seed: int) -> _Concept:
        scores, labels = data.column(index)
        codes, width = data.groups.codes, len(data.groups)
        sizes = data.groups.counts
        positives = np.bincount(codes[labels], minlength=width)
        reasons = _reasons(data.groups, positives, sizes, choices)
        compared = [g for g in range(width) if not reasons[g]]
        threshold, test = math.nan, np.ones(len(codes), dtype=np.bool_)
        if not choices.ranked:
            test = ~_validation(data, labels, choices.validation, seed)
            tuning = ~test & np.isin(codes, compared)
            threshold, _ = best_f1_threshold(scores[tuning], labels[tuning])
            if math.isnan(threshold):
                reasons = tuple(one or "no positive to tune the threshold on" for one in reasons)
        rows = {g: np.flatnonzero(codes == g) for g in range(width) if not reasons[g]}
        name = data.names[index]
        return cls(index, name, reasons, positives, sizes, threshold, rows, scores, labels, test)

    def cells(self, rows: Indices) -> Cells:
        """Return the cells of some rows."""
        scores, labels = self.scores[rows], self.labels[rows]
        if math.isnan(self.threshold):
            return ranked_cells(scores, labels)
        return threshold_cells(scores, labels, self.threshold, self.test[rows])


def _reasons(
    groups: Groups, positives: Indices, sizes: Indices, choices: Choices
) -> tuple[str, ...]:
    """Say why each group leaves a concept, "" where it stays."""
    found = [
        _reason(usable, p, n - p, groups.min_size, choices)
        for usable, p, n in zip(
            groups.usable.tolist(), positives.tolist(), sizes.tolist(), strict=True
        )
    ]
    rare = any(one and usable for one, usable in zip(found, groups.usable, strict=True))
    if rare and choices.incomplete == "concept":
        found = [one or "another group has too few positives or negatives" for one in found]
    elif sum(not one for one in found) < 2:
        found = [one or "no other group to compare with" for one in found]
    return tuple(found)


def _reason(usable: bool, positives: int, negatives: int, least: int, choices: Choices) -> str:
    if positives + negatives == 0:
        return "no rows"
    if not usable:
        return f"fewer than {least} rows"
    if positives < choices.min_positives:
        return f"{positives} positives, fewer than {choices.min_positives}"
    if negatives == 0:
        return "no negatives"
    if choices.prevalence == "hall" and negatives < choices.prevalence_ratio:
        return f"{negatives} negatives, fewer than {choices.prevalence_ratio:g} for one positive"
    return ""


def _validation(data: Concepts, labels: Flags, share: float, seed: int) -> Flags:
    """Return which rows tune the threshold: the share of each group and label, by random key."""
    key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
    stratum = data.groups.codes.astype(np.int64) * 2 + labels
    order = np.lexsort((key, stratum))
    counts = np.bincount(stratum)
    first = np.cumsum(counts) - counts
    chosen = np.zeros(len(labels), dtype=np.bool_)
    rank = np.arange(len(order)) - first[stratum[order]]
    chosen[order] = rank < np.floor(share * counts + 0.5)[stratum[order]]
    return chosen


class _Draws:
    """Replicates and permutations of one run, with what all concepts share."""

    def __init__(
        self,
        data: Concepts,
        choices: Choices,
        resampling: Bootstrap | Permutation | None,
        seed: int,
    ) -> None:
        self._data, self._choices, self._seed = data, choices, seed
        self._hall = choices.prevalence == "hall"
        self.boots = self._hall or isinstance(resampling, Bootstrap)
        self._weights: dict[int, Weights] = {}
        if self.boots and not self._hall:
            weights = image_weights(data.keys, choices.replicates, seed)
            codes = data.groups.codes
            self._weights = {g: weights[codes == g] for g in range(len(data.groups))}
        self._permutations = 0 if self._hall else _permutations(data, resampling)

    def by_group(self, one: _Concept) -> tuple[Floats, Floats | None]:
        """Return the metric of each group, (groups,), and its replicates, (replicates, groups)."""
        width = len(one.reasons)
        values = np.full(width, np.nan)
        boot = np.full((self._choices.replicates, width), np.nan) if self.boots else None
        draw = self._draw_of(one)
        for g, rows in one.rows.items():
            cells = one.cells(rows)
            if boot is not None:
                boot[:, g] = self._replicates(one, g, cells, draw)
                if self._hall:
                    values[g] = _mean_known(boot[:, g])
                    continue
            used = cells.cell[cells.cell >= 0]
            table = np.bincount(used, minlength=cells.size).astype(np.float64)
            values[g] = metric_of(self._choices.metric, table[None], self._choices.ratio)[0]
        return values, boot

    def _draw_of(self, one: _Concept) -> tuple[int, int]:
        """Return [Hall]'s numbers of positives and negatives, the same for all groups."""
        if not one.rows or not self._hall:
            return 0, 0
        ratio = int(self._choices.prevalence_ratio)
        pools = [
            (one.test[r] & one.labels[r], one.test[r] & ~one.labels[r]) for r in one.rows.values()
        ]
        least = min(min(int(p.sum()), int(n.sum()) // ratio) for p, n in pools)
        return least, ratio * least

    def _replicates(self, one: _Concept, g: int, cells: Cells, draw: tuple[int, int]) -> Floats:
        choices = self._choices
        if not self._hall:
            tables = weighted_tables(cells, self._weights[g])
            return metric_of(choices.metric, tables, choices.ratio)
        if draw[0] == 0:
            return np.full(choices.replicates, np.nan)
        rng = (self._seed, one.name, self._data.groups.names[g])
        blocks = fixed_prevalence(cells, one.labels[one.rows[g]], draw, rng, choices.replicates)
        return np.concatenate([metric_of(choices.metric, block, None) for block in blocks])

    def null(self, one: _Concept) -> Floats | None:
        """Return the metric of each group with groups permuted, (permutations, groups)."""
        if not self._permutations or not one.rows:
            return None
        compared = list(one.rows)
        rows = np.sort(np.concatenate(list(one.rows.values())))
        cells = one.cells(rows)
        groups = _only(self._data.groups, compared, rows)
        units = self._data.units
        found = permuted(
            self._choices.metric,
            self._choices.ratio,
            cells,
            _strata(cells, _null_of(self._choices)),
            groups,
            None if units is None else Units(units.codes[rows], units.names),
            self._permutations,
            int(stream(self._seed, "concept", one.name).integers(2**62)),
        )
        values = np.full((len(found), len(one.reasons)), np.nan)
        values[:, compared] = found
        return values


def _mean_known(replicates: Floats) -> float:
    """Return the mean of the replicates that have a value, NaN where none has."""
    known = replicates[~np.isnan(replicates)]
    return float(known.mean()) if len(known) else math.nan


def _permutations(data: Concepts, resampling: Bootstrap | Permutation | None) -> int:
    """Return how many permutations each concept gets; 0 where they would take too long."""
    if resampling is None:
        return 0
    if isinstance(resampling, Permutation):
        return resampling.replicates
    asked = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
    return asked if asked * data.labels.size <= MAX_SHUFFLED_ROWS else 0


def _strata(cells: Cells, null: str) -> Indices:
    cell = np.arange(cells.size)
    if null == "class":
        return (cell >= cells.positive).astype(np.int64)
    # At a threshold, cells 0 and 2 are predicted positive.
    return cell % 2 if null == "prediction" else np.zeros_like(cell)


def _only(groups: Groups, compared: list[int], rows: Indices) -> Groups:
    place = np.full(len(groups), -1, dtype=np.int32)
    place[compared] = np.arange(len(compared))
    levels = tuple(groups.levels[g] for g in compared)
    return Groups(groups.attributes, levels, place[groups.codes[rows]], groups.min_size)
