"""Every concept measured by several metrics in one pass, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.groups import Groups
from equipoise.metrics.counts import Units
from equipoise.metrics.measure import NULLS
from equipoise.metrics.scores.cells import (
    RANKED,
    Cells,
    Flags,
    Floats,
    Indices,
    Metric,
    Rows,
    Times,
    best_f1_threshold,
    choose,
    count_by_group,
    fixed_prevalence,
    metric_of_sums,
    packed_rows,
    permuted,
    ranked_cells,
    threshold_cells,
    weighted_sums,
)
from equipoise.metrics.scores.inputs import BLOCK, Choices, Concepts
from equipoise.stats.resampling import Bootstrap, Permutation, level_of, resolution_of
from equipoise.stats.streams import stream, unit_times, unit_uniforms
from equipoise.stats.threads import each

CENTRED = "bootstrap replicates centred at no difference (asymptotic)"


@dataclass(frozen=True, eq=False)
class ConceptResults:
    """What `concept_disparity` and `design_choices` judge.

    Attributes
    ----------
    choices : Choices
    names : tuple of str
        Of the concepts.
    groups : Groups
    observed : ndarray, shape (concepts, groups)
        The metric; NaN where the group leaves the concept, and `reasons` says why. Under
        [Hall]'s protocol the mean over replicates.
    positives, sizes : ndarray of int, shape (concepts, groups)
        Positives and rows, before any split.
    reasons : tuple of tuple of str, shape (concepts, groups)
        "" where the group takes part.
    boot : ndarray, shape (replicates, concepts, groups), or None
    null : tuple of (ndarray of shape (permutations, groups) or None), one per concept
        The metric with groups permuted.
    thresholds : ndarray, shape (concepts,)
        NaN for ranked metrics.
    null_text : str
        What is exchangeable.
    level, resolution : float
    excluded : dict of str to int
        Rows that did not enter.
    unit : str
    """

    choices: Choices
    names: tuple[str, ...]
    groups: Groups = field(repr=False)
    observed: Floats
    positives: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    reasons: tuple[tuple[str, ...], ...]
    boot: Floats | None
    null: tuple[Floats | None, ...]
    thresholds: Floats
    null_text: str
    level: float
    resolution: float
    excluded: dict[str, int]
    unit: str

    @property
    def hall(self) -> bool:
        """Whether [Hall]'s protocol with its own rule of significance is in force."""
        return self.choices.prevalence == "hall"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of groups that are large enough, by index."""
        return list(combinations(np.flatnonzero(self.groups.usable).tolist(), 2))

    def differences(self, concept: int | None) -> Floats:
        """Return each pair's difference in a concept, or of means over concepts, (pairs,)."""
        return self._differences(self.observed[None], concept)[0]

    def replicates(self, concept: int | None) -> Floats | None:
        """Return bootstrap replicates of `differences`, shape (replicates, pairs)."""
        return None if self.boot is None else self._differences(self.boot, concept)

    def null_differences(self, concept: int | None) -> tuple[Floats | None, str]:
        """Return differences under the null, (m, pairs), and how they were drawn."""
        null = None if concept is None else self.null[concept]
        if self.hall:
            return None, ""
        if null is None:
            return centred(self.replicates(concept)), CENTRED
        first, second = np.array(self.pairs).reshape(-1, 2).T
        text = f"{self.null_text}; {len(null)} permutations"
        return null[:, first] - null[:, second], text

    def shared(self, concept: int | None, g: int, h: int) -> Flags:
        """Say which concepts count: the one, or those in which both groups take part."""
        if concept is not None:
            return np.arange(len(self.names)) == concept
        return np.asarray(~np.isnan(self.observed[:, [g, h]]).any(axis=1))

    def _differences(self, values: Floats, concept: int | None) -> Floats:
        found = np.full((len(values), len(self.pairs)), np.nan)
        for index, (g, h) in enumerate(self.pairs):
            both = self.shared(concept, g, h)
            if both.any():
                found[:, index] = (values[:, both, g] - values[:, both, h]).mean(axis=1)
        return found


def centred(replicates: Floats | None) -> Floats | None:
    """Return replicates minus their mean: what they would be about if nothing differed."""
    if replicates is None:
        return None
    known = ~np.isnan(replicates)
    mean = np.where(known, replicates, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray(replicates - mean)


_ANOTHER = "another group has too few positives or negatives"
_ALONE = "no other group to compare with"
FOLLOWS = (_ANOTHER, _ALONE)
"""Reasons that follow from those of other groups."""


def reasons_of(groups: Groups, positives: Indices, choices: Choices) -> tuple[str, ...]:
    """Say why each group leaves a concept, "" where it stays."""
    found = [
        _reason(usable, p, n - p, groups.min_size, choices)
        for usable, p, n in zip(
            groups.usable.tolist(), positives.tolist(), groups.counts.tolist(), strict=True
        )
    ]
    rare = any(one and usable for one, usable in zip(found, groups.usable, strict=True))
    if rare and choices.incomplete == "concept":
        found = [one or _ANOTHER for one in found]
    elif sum(not one for one in found) < 2:
        found = [one or _ALONE for one in found]
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


Null = Literal["rows", "class", "prediction"]


@dataclass(frozen=True, eq=False)
class Shared:
    """What all concepts of a run share.

    Attributes
    ----------
    metrics : tuple of str
    choices : Choices
        Whose metric says nothing here.
    groups : Groups
    codes : ndarray of int32, shape (n,)
    rows : tuple of ndarray of int32
        The rows of each group.
    by_key : ndarray of int32, or None
        Rows in the random order in which they tune thresholds; None where no metric needs one.
    times : ndarray, shape (n, 1 + replicates), or None
        See `equipoise.stats.streams.unit_times`; None under [Hall]'s protocol.
    totals : ndarray, shape (groups, 1 + replicates), or None
        What the rows of each group come to.
    units : Units or None
    permutations, seed : int
    """

    metrics: tuple[Metric, ...]
    choices: Choices
    groups: Groups
    codes: Rows = field(repr=False)
    rows: tuple[Rows, ...] = field(repr=False)
    by_key: Rows | None = field(repr=False)
    times: Times | None = field(repr=False)
    totals: npt.NDArray[np.int32] | None = field(repr=False)
    units: Units | None
    permutations: int
    seed: int


@dataclass(frozen=True, eq=False)
class Measured:
    """One concept's numbers by metric; the first of `values` is the observed one.

    Attributes
    ----------
    positives, sizes : ndarray of int, shape (groups,)
    threshold : float
    reasons : dict of metric to tuple of str, shape (groups,)
        "" where the group takes part.
    values : dict of metric to ndarray, shape (1 + replicates, groups)
    null : dict of metric to (ndarray, shape (permutations, groups), or None)
    """

    positives: Indices
    sizes: Indices
    threshold: float
    reasons: dict[Metric, tuple[str, ...]]
    values: dict[Metric, Floats]
    null: dict[Metric, Floats | None]


def measure_concept(shared: Shared, name: str, scores: Floats, labels: Flags) -> Measured:
    """Measure one concept by all metrics in one pass over its draws."""
    positives = np.zeros(len(shared.groups), dtype=np.int64)
    count_by_group(labels, shared.codes, positives)
    reasons = reasons_of(shared.groups, positives, shared.choices)
    compared = [g for g, reason in enumerate(reasons) if not reason]
    tuning, tuned = _tuning_rows(shared, labels, positives, compared)
    threshold, _ = best_f1_threshold(scores[tuning], labels[tuning])
    measured = np.zeros(len(scores), dtype=np.uint8)
    if not math.isnan(threshold):
        np.greater_equal(scores, threshold, out=measured.view(np.bool_))
        measured += 2
        measured[tuning] = 0
    one = _Concept(shared, name, scores, labels, measured, compared)
    sums = one.sums(_draw(shared, positives, tuned, compared))
    untuned = tuple(reason or "no positive to tune the threshold on" for reason in reasons)
    why = {
        metric: untuned if metric not in RANKED and math.isnan(threshold) else reasons
        for metric in shared.metrics
    }
    values = {metric: _values(metric, why[metric], sums, shared) for metric in shared.metrics}
    null = one.null(threshold, [metric for metric in shared.metrics if not all(why[metric])])
    final = {metric: _with_denominator(why[metric], values[metric][0]) for metric in shared.metrics}
    return Measured(positives, shared.groups.counts, threshold, final, values, null)


def _values(
    metric: Metric, reasons: Sequence[str], sums: dict[int, Floats], shared: Shared
) -> Floats:
    hall = shared.choices.prevalence == "hall"
    many = next(iter(sums.values())).shape[1] if sums else 1
    values = np.full((many, len(reasons)), np.nan)
    for g, found in sums.items():
        if not reasons[g]:
            values[:, g] = metric_of_sums(metric, found, shared.choices.ratio)
    if not hall:
        return values
    return np.concatenate([[[_mean_known(column) for column in values.T]], values])


def _with_denominator(reasons: Sequence[str], observed: Floats) -> tuple[str, ...]:
    return tuple(
        reason or ("the metric's denominator is 0" if math.isnan(value) else "")
        for reason, value in zip(reasons, observed.tolist(), strict=True)
    )


def _tuning_rows(
    shared: Shared, labels: Flags, positives: Indices, compared: list[int]
) -> tuple[Rows, Indices]:
    """Return the rows that tune the threshold, and how many by group, negative and positive."""
    quota = np.zeros((len(positives), 2), dtype=np.int64)
    if shared.by_key is None or not compared:
        return np.empty(0, dtype=np.int32), quota
    counts = np.stack([shared.groups.counts - positives, positives], axis=1)
    share = np.floor(shared.choices.validation * counts + 0.5).astype(np.int64)
    quota[compared] = share[compared]
    rows = np.empty(quota.sum(), dtype=np.int32)
    choose(shared.by_key, shared.codes, labels, quota.copy(), rows)
    return rows, quota


def _draw(
    shared: Shared, positives: Indices, tuned: Indices, compared: list[int]
) -> tuple[int, int, int, int]:
    """Return [Hall]'s numbers of positives and negatives, the same for all groups.

    The last two are those of rows that no threshold was tuned on, 0 where none is.
    """
    if shared.times is not None or not compared:
        return 0, 0, 0, 0
    ratio, negatives = int(shared.choices.prevalence_ratio), shared.groups.counts - positives
    least, tested = (
        int(np.minimum(p, n // ratio)[compared].min())
        for p, n in ((positives, negatives), (positives - tuned[:, 1], negatives - tuned[:, 0]))
    )
    tested = tested if tuned[:, 1].any() else 0
    return least, ratio * least, tested, ratio * tested


def _mean_known(replicates: Floats) -> float:
    """Return the mean of the replicates that have a value, NaN where none has."""
    known = replicates[~np.isnan(replicates)]
    return float(known.mean()) if len(known) else math.nan


@dataclass(frozen=True, eq=False)
class _Concept:
    """Scores and labels of one concept; `measured` as in `kernels.pack`."""

    shared: Shared
    name: str
    scores: Floats
    labels: Flags
    measured: npt.NDArray[np.uint8]
    compared: list[int]

    def sums(self, draw: tuple[int, int, int, int]) -> dict[int, Floats]:
        """Return the sums of each group's replicates, (8, replicates), for `metric_of_sums`."""
        if self.shared.times is None and draw[0] == 0:
            return {}
        return {g: self._sums(g, draw) for g in self.compared}

    def _sums(self, g: int, draw: tuple[int, int, int, int]) -> Floats:
        shared, rows = self.shared, self.shared.rows[g]
        packed = packed_rows(self.scores, self.labels, self.measured, rows)
        if shared.times is None or shared.totals is None:
            names = (shared.seed, self.name, shared.groups.names[g])
            replicates = shared.choices.replicates
            return fixed_prevalence(packed, self.labels[rows], draw, names, replicates)
        times = (shared.times, shared.totals[g])
        ratio = shared.choices.ratio
        return weighted_sums(packed, rows, self.measured, times, ratio)

    def null(self, threshold: float, metrics: Sequence[Metric]) -> dict[Metric, Floats | None]:
        """Return each metric with groups permuted, (permutations, groups)."""
        shared = self.shared
        found: dict[Metric, Floats | None] = dict.fromkeys(shared.metrics)
        if not shared.permutations or not self.compared:
            return found
        rows = np.sort(np.concatenate([shared.rows[g] for g in self.compared]))
        units = shared.units
        alike = sorted(metrics, key=lambda one: _kind(one, shared.choices))
        for (ranked, null), some in groupby(alike, lambda one: _kind(one, shared.choices)):
            same = list(some)
            cells = self._cells(rows, None if ranked else threshold)
            values = permuted(
                same,
                shared.choices.ratio,
                cells,
                _strata(cells, null),
                _only(shared.groups, self.compared, rows),
                None if units is None else Units(units.codes[rows], units.names),
                shared.permutations,
                int(stream(shared.seed, "concept", self.name).integers(2**62)),
            )
            for metric, some_values in zip(same, values, strict=True):
                spread = np.full((len(some_values), len(shared.groups)), np.nan)
                spread[:, self.compared] = some_values
                found[metric] = spread
        return found

    def _cells(self, rows: Indices, threshold: float | None) -> Cells:
        scores, labels = self.scores[rows], self.labels[rows]
        if threshold is None:
            return ranked_cells(scores, labels)
        return threshold_cells(scores, labels, threshold, self.measured[rows] > 0)


def null_of(metric: Metric, choices: Choices) -> Null:
    """Say what is exchangeable where groups do not matter."""
    conditional = ("auroc", "true_positive_rate", "false_positive_rate")
    if choices.prevalence == "weighted" or metric in conditional:
        return "class"
    return "prediction" if metric == "precision" else "rows"


def _kind(metric: Metric, choices: Choices) -> tuple[bool, Null]:
    """Metrics of one kind share cells and what is exchangeable."""
    return metric in RANKED, null_of(metric, choices)


def _strata(cells: Cells, null: Null) -> Indices:
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
    by_key = None
    if not {*metrics} <= {*RANKED}:
        key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
        by_key = np.argsort(key, kind="stable").astype(np.int32)
    return Shared(
        metrics,
        choices,
        data.groups,
        codes,
        rows,
        by_key,
        times,
        None if times is None else np.stack([times[r].sum(axis=0, dtype=np.int32) for r in rows]),
        data.units,
        0 if hall else permutations_of(resampling, rows=len(data.rows), concepts=len(data.names)),
        seed,
    )


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
        level_of(resampling),
        resolution_of(resampling),
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
