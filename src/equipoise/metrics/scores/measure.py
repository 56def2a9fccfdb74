"""Concepts read, checked and measured by several metrics in one pass, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np

from equipoise.core import (
    AnyArray,
    Booleans,
    Floats,
    Groups,
    InputError,
    Integers,
    Integers32,
    Words,
)
from equipoise.core.labels import Encoded
from equipoise.metrics.building import NOTHING, Against, against
from equipoise.metrics.counts import Null, item_sampler, units_of
from equipoise.metrics.counts.against_rest import all_others
from equipoise.metrics.measure import NULLS
from equipoise.metrics.scores.cells import (
    RANKED,
    Metric,
    best_f1_threshold,
    choose,
    fixed_prevalence,
    metric_of,
    metric_of_sums,
    pack,
    ranked_cells,
    weighted_sums,
)
from equipoise.stats.chance import band
from equipoise.stats.draws import Sampler, TableSampler
from equipoise.stats.resampling import Bootstrap, Permutation, level_of, resolution_of
from equipoise.stats.streams import Seed, stream, unit_keys, unit_times, unit_uniforms
from equipoise.stats.threads import each


def _matrix(values: Any, what: str) -> AnyArray:
    """Return numbers of shape (n, concepts); they may be mapped into memory."""
    array = np.asarray(values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise InputError(
            f"{what}: {array.dtype} of shape {array.shape}; expected numbers, (n, concepts), "
            "neither of them 0"
        )
    return array


def _refuse(wrong: Booleans, block: AnyArray, what: str, names: Sequence[str], rows: Any) -> None:
    """Raise an InputError where a cell (concepts, n) is wrong."""
    if wrong.any():
        concept, row = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"{what}: {block[concept, row]} for concept {names[concept]!r} in row {rows[row]}; "
            "expected finite scores, and labels of 0 or 1"
        )


Prevalence = Literal["weighted", "hall", "observed"]

# Concepts that are read together, and measured in one thread: a column alone would read all of a
# matrix that has one row per image.
BLOCK = 8


@dataclass(frozen=True)
class Choices:
    """How disparities of concepts are measured.

    Attributes
    ----------
    metric : str
    prevalence : "weighted", "hall" or "observed"
    prevalence_ratio : float
        Negatives per positive under the first two; [Hall]'s must be a whole number.
    min_positives, replicates : int
    validation : float
        Share of rows that thresholds are tuned on.
    incomplete : "group" or "concept"
        What leaves when a group has too few positives.
    """

    metric: Metric = "average_precision"
    prevalence: Prevalence = "weighted"
    prevalence_ratio: float = 5
    min_positives: int = 50
    replicates: int = 250
    validation: float = 0.2
    incomplete: Literal["group", "concept"] = "group"

    def __post_init__(self) -> None:
        _one_of("metric", self.metric, get_args(Metric))
        _one_of("prevalence", self.prevalence, get_args(Prevalence))
        _one_of("incomplete", self.incomplete, ("group", "concept"))
        whole = self.prevalence != "hall" or self.prevalence_ratio == int(self.prevalence_ratio)
        for name, known in {
            "prevalence_ratio": 0 < self.prevalence_ratio < math.inf and whole,
            "min_positives": self.min_positives >= 1,
            "replicates": self.replicates >= 1,
            "validation": 0 < self.validation < 1,
        }.items():
            if not known:
                raise InputError(f"{name}={getattr(self, name)!r}: out of range")

    @property
    def ranked(self) -> bool:
        """Whether the metric needs no threshold."""
        return self.metric in RANKED

    @property
    def ratio(self) -> float | None:
        """Weight ratio of negatives; None where rows count as they are or as drawn."""
        return self.prevalence_ratio if self.prevalence == "weighted" else None


@dataclass(frozen=True, eq=False)
class Concepts:
    """Scores and labels of the rows that have a group, read some concepts at a time.

    Attributes
    ----------
    scores, labels : ndarray, shape (n, concepts)
        Of all rows; only what is asked for is read.
    rows : ndarray of int, shape (m,)
        The rows that take part.
    groups : Groups
        Of these rows.
    names : tuple of str
        Of the concepts.
    units : Encoded or None
    keys : ndarray of uint64, shape (m,)
        Key of each row's unit in random streams; its place where there are no units, so that
        models and versions that share rows share draws.
    excluded : dict of str to int
    """

    scores: AnyArray
    labels: AnyArray
    rows: Integers
    groups: Groups
    names: tuple[str, ...]
    units: Encoded | None
    keys: Words
    excluded: dict[str, int]

    def block(self, start: int, stop: int) -> tuple[AnyArray, Booleans]:
        """Return scores and labels of some concepts, each (concepts, m), checked.

        Raises
        ------
        InputError
            When a score is not finite or a label is not 0 or 1.
        """
        scores, labels = (
            block if len(self.rows) == block.shape[1] else block[:, self.rows]
            for block in (
                np.ascontiguousarray(one[:, start:stop].T) for one in (self.scores, self.labels)
            )
        )
        names = self.names[start:stop]
        _refuse(~np.isfinite(scores), scores, "scores", names, self.rows)
        if labels.dtype != np.bool_:
            _refuse((labels != 0) & (labels != 1), labels, "labels", names, self.rows)
        return scores, labels.astype(np.bool_, copy=False)


def read_concepts(
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    concepts: Sequence[str] | None = None,
    units: Any = None,
    unlabelled: Literal["keep", "leave out"] = "keep",
) -> Concepts:
    """Check shapes and groups, and leave out the rows that have no group.

    Raises
    ------
    InputError
        When shapes differ, names repeat, or no row is left.
    """
    values, truth = _matrix(scores, "scores"), _matrix(labels, "labels")
    if values.shape != truth.shape:
        raise InputError(
            f"labels: shape {truth.shape}; expected {values.shape}, one column per concept as in "
            "scores"
        )
    (n, many), found = values.shape, Groups.of(groups)
    names = tuple(map(str, range(many) if concepts is None else concepts))
    if len(names) != many or len({*names}) < many:
        raise InputError(
            f"concepts: {len(names)} names, {len({*names})} of them distinct; expected {many} "
            "distinct ones, the columns of scores"
        )
    if len(found.codes) != n:
        raise InputError(f"groups: {len(found.codes)} rows; expected {n}, as in scores")
    _one_of("unlabelled", unlabelled, ("keep", "leave out"))
    bare = np.full(n, unlabelled == "leave out")
    for start in range(0, len(names) if bare.any() else 0, BLOCK):
        bare &= ~truth[:, start : start + BLOCK].any(axis=1)
    kept = (found.codes >= 0) & ~bare
    if not kept.any():
        raise InputError("groups: no row is left; expected rows with a group and a label")
    counts = {"missing group": found.n_missing, "no label": int((bare & (found.codes >= 0)).sum())}
    rows, owners = np.flatnonzero(kept), units_of(units, n, kept)
    keys = rows.astype(np.uint64)
    if owners is not None:
        known = owners.codes >= 0
        keys[known] = unit_keys(owners.vocabulary)[owners.codes[known]]
    return Concepts(values, truth, rows, found.take(rows), names, owners, keys, counts)


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")


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
    positives : ndarray of int, shape (concepts, groups)
        Before any split.
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
    columns : tuple of (int, int)
        Pairs of columns that are compared; those of groups that are large enough unless given.
    """

    choices: Choices
    names: tuple[str, ...]
    groups: Groups
    observed: Floats
    positives: Integers
    reasons: tuple[tuple[str, ...], ...]
    boot: Floats | None
    null: tuple[Floats | None, ...]
    thresholds: Floats
    null_text: str
    level: float
    resolution: float
    excluded: dict[str, int]
    unit: str
    columns: tuple[tuple[int, int], ...] = ()

    @property
    def hall(self) -> bool:
        """Whether [Hall]'s protocol with its own rule of significance is in force."""
        return self.choices.prevalence == "hall"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of groups that are large enough, by index; or those of `columns`."""
        usable = np.flatnonzero(self.groups.usable).tolist()
        return [*self.columns] or list(combinations(usable, 2))

    @property
    def against_rest(self) -> ConceptResults | None:
        """The results with pairs of a group and all others; None under [Hall]'s protocol.

        The others have a column: their mean, weighted by their positives, so that no image is
        ranked among those of another group. Only concepts of three groups or more count; None
        where there is none.
        """
        known = ~np.isnan(self.observed)
        weights = np.where(known & (known.sum(axis=1, keepdims=True) > 2), self.positives, 0.0)
        if self.hall or not weights.any():
            return None

        def with_rest(values: Floats, weights: Floats) -> Floats:
            sums = all_others(np.where(weights > 0, weights * values, 0.0))
            rest = np.full(values.shape, np.nan)
            np.divide(sums, all_others(weights), out=rest, where=weights > 0)
            return np.concatenate([values, rest], axis=-1)

        own = np.flatnonzero(weights.any(axis=0)).tolist()
        return replace(
            self,
            observed=with_rest(self.observed, weights),
            boot=None if self.boot is None else with_rest(self.boot, weights),
            null=tuple(
                None if one is None else with_rest(one, of)
                for one, of in zip(self.null, weights, strict=True)
            ),
            columns=tuple((g, len(self.groups) + g) for g in own),
        )

    def differences(self, concept: int | None) -> Floats:
        """Return each pair's difference in a concept, or of means over concepts, (pairs,)."""
        found: Floats = self._differences(self.observed[None], concept)[0]
        return found

    def replicates(self, concept: int | None) -> Floats | None:
        """Return bootstrap replicates of `differences`, shape (replicates, pairs)."""
        return None if self.boot is None else self._differences(self.boot, concept)

    def null_differences(self, concept: int | None) -> tuple[Floats | None, str]:
        """Return differences under the null, (m, pairs), and how they were drawn."""
        null = None if concept is None else self.null[concept]
        if self.hall:
            return None, ""
        if null is None:
            replicates = self.replicates(concept)
            if replicates is None:
                return None, CENTRED
            # What they would be about if nothing differed.
            known = ~np.isnan(replicates)
            sums = np.where(known, replicates, 0.0).sum(axis=0)
            return np.asarray(replicates - sums / np.maximum(known.sum(axis=0), 1)), CENTRED
        first, second = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T
        text = f"{self.null_text}; {len(null)} permutations"
        return np.asarray(null[:, first] - null[:, second]), text

    def against(self, null: Floats, value: float, text: str) -> Against:
        """Hold a size of a difference against draws of it."""
        return against(null, value, "higher", text, resolution=self.resolution, scale=1.0)

    def compared(
        self, concept: int | None
    ) -> Iterator[tuple[tuple[int, int], float, Floats | None, Against]]:
        """Yield each pair of groups: its difference, replicates of it, and its chance level."""
        boot, (null, text) = self.replicates(concept), self.null_differences(concept)
        values = self.differences(concept).tolist()
        for index, (pair, value) in enumerate(zip(self.pairs, values, strict=True)):
            held = NOTHING
            if null is not None and not math.isnan(value):
                draws = null[:, index]
                found = self.against(np.abs(draws), abs(value), text)
                held = Against(band(draws, method=text), found.p_value, found.null)
            yield pair, value, None if boot is None else boot[:, index], held

    def members(self, g: int, concept: int | None = None) -> Integers:
        """Return the groups of a column: its own, or all others that are compared."""
        groups = len(self.groups)
        if g < groups:
            return np.array([g])
        chosen = slice(None) if concept is None else [concept]
        known = ~np.isnan(self.observed[chosen, :groups]).all(axis=0)
        return np.setdiff1d(np.flatnonzero(known), [g - groups])

    def shared(self, concept: int | None, g: int, h: int) -> Booleans:
        """Say which concepts count: the one, or those in which both groups take part."""
        if concept is not None:
            return np.asarray(np.arange(len(self.names)) == concept)
        return np.asarray(~np.isnan(self.observed[:, [g, h]]).any(axis=1))

    def _differences(self, values: Floats, concept: int | None) -> Floats:
        found = np.full((len(values), len(self.pairs)), np.nan)
        for index, (g, h) in enumerate(self.pairs):
            both = self.shared(concept, g, h)
            if both.any():
                found[:, index] = (values[:, both, g] - values[:, both, h]).mean(axis=1)
        return found


_ANOTHER = "another group has too few positives or negatives"
_ALONE = "no other group to compare with"


def reasons_of(groups: Groups, positives: Integers, choices: Choices) -> tuple[str, ...]:
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


@dataclass(frozen=True, eq=False)
class Measured:
    """One concept's numbers by metric; the first of `values` is the observed one.

    Attributes
    ----------
    positives : ndarray of int, shape (groups,)
    threshold : float
    reasons : dict of metric to tuple of str, shape (groups,)
        "" where the group takes part.
    values : dict of metric to ndarray, shape (1 + replicates, groups)
    null : dict of metric to ndarray, shape (permutations, groups)
    """

    positives: Integers
    threshold: float
    reasons: dict[Metric, tuple[str, ...]]
    values: dict[Metric, Floats]
    null: dict[Metric, Floats]


def null_of(metric: Metric, choices: Choices) -> Null:
    """Say what is exchangeable where groups do not matter."""
    conditional = ("auroc", "true_positive_rate", "false_positive_rate")
    if choices.prevalence == "weighted" or metric in conditional:
        return "class"
    return "prediction" if metric == "precision" else "rows"


class ConceptRun:
    """Measures concepts by all metrics in one pass over the draws that all of them share."""

    def __init__(
        self,
        data: Concepts,
        choices: Choices,
        metrics: Sequence[Metric],
        resampling: Bootstrap | Permutation | None,
        seed: Seed,
    ) -> None:
        self.data, self.choices, self.seed = data, choices, seed
        self.metrics = tuple(dict.fromkeys(metrics))
        groups = data.groups
        self.codes = np.ascontiguousarray(groups.codes, dtype=np.int32)
        self.rows = [np.flatnonzero(self.codes == g).astype(np.int32) for g in range(len(groups))]
        # Rows in the random order in which they tune thresholds.
        key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
        self.by_key = np.argsort(key, kind="stable").astype(np.int32)
        # The same for every concept: means over concepts keep what those of one image have in
        # common.
        self.times, self.totals, self.permutations = None, list[Integers32](), 0
        if choices.prevalence != "hall":
            replicates = choices.replicates * isinstance(resampling, Bootstrap)
            self.times = times = unit_times(data.keys, replicates, seed)
            self.totals = [times[rows].sum(axis=0, dtype=np.int32) for rows in self.rows]
            sizes = {"rows": len(data.rows), "concepts": len(data.names)}
            self.permutations = permutations_of(resampling, **sizes)

    def results(self, resampling: Bootstrap | Permutation | None) -> dict[Metric, ConceptResults]:
        """Measure all concepts, some at a time."""
        data, choices = self.data, self.choices

        def measure(start: int) -> list[Measured]:
            block = (data.names[start : start + BLOCK], *data.block(start, start + BLOCK))
            return [
                self.measure(name, scores.astype(np.float64), np.ascontiguousarray(labels))
                for name, scores, labels in zip(*block, strict=True)
            ]

        blocks = each(measure, range(0, len(data.names), BLOCK))
        found = [one for block in blocks for one in block]
        results = {}
        for metric in self.metrics:
            values = np.stack([one.values[metric] for one in found], axis=1)
            results[metric] = ConceptResults(
                replace(choices, metric=metric),
                data.names,
                data.groups,
                values[0],
                np.stack([one.positives for one in found]),
                tuple(one.reasons[metric] for one in found),
                values[1:] if len(values) > 1 else None,
                tuple(one.null.get(metric) for one in found),
                np.array([math.nan if metric in RANKED else one.threshold for one in found]),
                NULLS[null_of(metric, choices)],
                level_of(resampling),
                resolution_of(resampling),
                data.excluded,
                "row" if data.units is None else "unit",
            )
        return results

    def measure(self, name: str, scores: Floats, labels: Booleans) -> Measured:
        """Measure one concept."""
        choices, groups, times = self.choices, self.data.groups, self.times
        positives = np.bincount(self.codes[labels], minlength=len(groups))
        reasons = reasons_of(groups, positives, choices)
        compared = [g for g, reason in enumerate(reasons) if not reason]
        tuning, tuned = self._tuning_rows(labels, positives, compared)
        threshold = best_f1_threshold(scores[tuning], labels[tuning])
        measured = np.zeros(len(scores), dtype=np.uint8)
        if not math.isnan(threshold):
            np.greater_equal(scores, threshold, out=measured.view(np.bool_))
            measured += 2
            measured[tuning] = 0
        draw, sums = self._draw(positives, tuned, compared), {}
        for g in compared if times is not None or draw[0] else ():
            rows = self.rows[g]
            packed = pack(scores, labels, measured, rows)
            if times is None:
                key = (self.seed, name, groups.names[g])
                sums[g] = fixed_prevalence(packed, labels[rows], draw, key, choices.replicates)
            else:
                counted = times, self.totals[g]
                sums[g] = weighted_sums(packed, rows, measured, counted, choices.ratio)
        why, values, usable = {}, {}, []
        many = choices.replicates if times is None else times.shape[1]
        for metric in self.metrics:
            nothing, found = "", np.full((many, len(groups)), np.nan)
            if metric not in RANKED and math.isnan(threshold):
                nothing = "no positive to tune the threshold on"
            else:
                usable.append(metric)
                for g, some in sums.items():
                    found[:, g] = metric_of_sums(metric, some, choices.ratio)
            if times is None:
                known = (column[~np.isnan(column)] for column in found.T)
                means = [float(one.mean()) if len(one) else math.nan for one in known]
                found = np.concatenate([[means], found])
            values[metric] = found
            why[metric] = tuple(
                reason or nothing or ("the metric's denominator is 0" if math.isnan(value) else "")
                for reason, value in zip(reasons, found[0].tolist(), strict=True)
            )
        null: dict[Metric, Floats] = {}
        if self.permutations and compared:
            null = self._null(name, scores, labels, measured > 0, threshold, compared, usable)
        return Measured(positives, threshold, why, values, null)

    def _tuning_rows(
        self, labels: Booleans, positives: Integers, compared: list[int]
    ) -> tuple[Integers32, Integers]:
        """Return the rows that tune the threshold, and how many by group, negative and positive."""
        quota = np.zeros((len(positives), 2), dtype=np.int64)
        if {*self.metrics} <= {*RANKED} or not compared:
            return np.empty(0, dtype=np.int32), quota
        counts = np.stack([self.data.groups.counts - positives, positives], axis=1)
        share = np.floor(self.choices.validation * counts + 0.5).astype(np.int64)
        quota[compared] = share[compared]
        rows = np.empty(quota.sum(), dtype=np.int32)
        choose(self.by_key, self.codes, labels, quota.copy(), rows)
        return rows, quota

    def _draw(
        self, positives: Integers, tuned: Integers, compared: list[int]
    ) -> tuple[int, int, int, int]:
        """Return [Hall]'s numbers of positives and negatives, the same for all groups.

        The last two are those of rows that no threshold was tuned on, 0 where none is.
        """
        if self.times is not None or not compared:
            return 0, 0, 0, 0
        ratio, negatives = int(self.choices.prevalence_ratio), self.data.groups.counts - positives
        least, tested = (
            int(np.minimum(p, n // ratio)[compared].min())
            for p, n in ((positives, negatives), (positives - tuned[:, 1], negatives - tuned[:, 0]))
        )
        tested = tested if tuned[:, 1].any() else 0
        return least, ratio * least, tested, ratio * tested

    def _null(
        self,
        name: str,
        scores: Floats,
        labels: Booleans,
        used: Booleans,
        threshold: float,
        compared: list[int],
        metrics: Sequence[Metric],
    ) -> dict[Metric, Floats]:
        """Return each metric with groups permuted, (permutations, groups)."""
        found: dict[Metric, Floats] = {}
        groups, units, width = self.data.groups, self.data.units, len(compared)
        place = np.full(len(groups), -1, dtype=np.int32)
        place[compared] = np.arange(width)
        levels = tuple(groups.levels[g] for g in compared)
        only = Groups(groups.attributes, levels, place[self.codes], groups.min_size)
        seed = int(stream(self.seed, "concept", name).integers(2**62))
        kinds = [(one in RANKED, null_of(one, self.choices)) for one in metrics]
        # Metrics of one kind share cells and what is exchangeable.
        for ranked, null in dict.fromkeys(kinds):
            same = [one for one, kind in zip(metrics, kinds, strict=True) if kind == (ranked, null)]
            rows = np.flatnonzero((place[self.codes] >= 0) & (used | ranked))
            # True and false positives and negatives at the threshold: TP, FN, FP, TN.
            cell, positive, size = np.where(labels, 0, 2)[rows] + (scores[rows] < threshold), 2, 4
            if ranked:
                cell, positive, size = ranked_cells(scores[rows], labels[rows])
            every = np.arange(size)
            # At a threshold, cells 0 and 2 are predicted positive.
            strata = every % 2 if null == "prediction" else np.zeros_like(every)
            if null == "class":
                strata = (every >= positive).astype(np.int64)
            table = np.bincount(cell * width + only.codes[rows], minlength=size * width)
            sampler: Sampler = TableSampler(table.reshape(size, width).astype(np.float64))
            if units is not None:
                own = Encoded(units.codes[rows], units.vocabulary)
                sampler = item_sampler(cell[:, None], None, only.take(rows), own, (size, width))
            drawn = []
            for tables in sampler.permute(strata, self.permutations, seed):
                cases = np.ascontiguousarray(tables.transpose(0, 2, 1)).reshape(-1, size)
                drawn.append([metric_of(one, cases, self.choices.ratio) for one in same])
            for metric, some in zip(same, zip(*drawn, strict=True), strict=True):
                found[metric] = np.full((self.permutations, len(groups)), np.nan)
                found[metric][:, compared] = np.concatenate(some).reshape(-1, width)
        return found


# Rows that permutations of all concepts may shuffle: some seconds of work. Beyond it p-values are
# asymptotic, from replicates centred at no difference.
MAX_SHUFFLED_ROWS = 300_000_000


def permutations_of(resampling: Bootstrap | Permutation | None, *, rows: int, concepts: int) -> int:
    """Return how many permutations each concept gets; 0 where they would take too long."""
    if resampling is None:
        return 0
    if isinstance(resampling, Permutation):
        return resampling.replicates
    asked = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
    return asked if asked * rows * concepts <= MAX_SHUFFLED_ROWS else 0
