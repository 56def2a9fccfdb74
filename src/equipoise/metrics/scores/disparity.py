"""Disparities of multi-label classifiers by concept, with prevalence under control.

Concepts are read, checked and measured by several metrics in one pass, spread over threads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Ends,
    Estimate,
    Excluded,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    Integers32,
    IntervalKind,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    Words,
    floats,
    integers,
    nans,
    no_ends,
    record,
    tally,
)
from equipoise.core.labels import Encoded
from equipoise.metrics.building import (
    NOTHING,
    Against,
    against,
    ends_of,
    excluded_of,
    folded_ends,
    number,
    replicates_text,
    sizes,
    spread_level,
)
from equipoise.metrics.counts import Null, count, item_sampler, units_of
from equipoise.metrics.counts.accuracy import HitRate
from equipoise.metrics.counts.comparisons import OTHERS, all_others
from equipoise.metrics.measure import DEFAULT, NULLS, measure
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
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.draws import Sampler, TableSampler
from equipoise.stats.resampling import Bootstrap, Permutation, Resampling, level_of, resolution_of
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

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.Choices(metric="auroc", min_positives=20).replicates
    250
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


@record
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
    names: Strings
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
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    *,
    concepts: Sequence[str] | None = None,
    units: Labels | None = None,
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
    counts = {
        "missing group": found.n_missing,
        "no label": tally(bare & (found.codes >= 0)),
    }
    rows, owners = np.flatnonzero(kept), units_of(units, n, kept)
    keys = rows.astype(np.uint64)
    if owners is not None:
        known = owners.codes >= 0
        keys[known] = unit_keys(owners.vocabulary)[owners.codes[known]]
    return Concepts(values, truth, rows, found.take(rows), names, owners, keys, counts)


def _one_of(name: str, value: object, allowed: Strings) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")


CENTRED = "bootstrap replicates centred at no difference (asymptotic)"


@record
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
    names: Strings
    groups: Groups
    observed: Floats
    positives: Integers
    reasons: tuple[Strings, ...]
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
            rest = nans(values.shape)
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

    def compared(
        self, concept: int | None
    ) -> Iterator[tuple[tuple[int, int], float, Floats | None, Against]]:
        """Yield each pair of groups: its difference, replicates of it, and its chance level."""
        boot, (null, text) = self.replicates(concept), self.null_differences(concept)
        values = self.differences(concept).tolist()
        for index, (pair, value) in enumerate(zip(self.pairs, values, strict=True)):
            held = NOTHING
            if null is not None and not math.isnan(value):
                sizes, finest = np.abs(null[:, index]), self.resolution
                held = against(sizes, abs(value), "higher", text, resolution=finest, scale=1.0)
                held = replace(held, chance=band(null[:, index], method=text))
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
        found = nans((len(values), len(self.pairs)))
        for index, (g, h) in enumerate(self.pairs):
            both = self.shared(concept, g, h)
            if both.any():
                found[:, index] = (values[:, both, g] - values[:, both, h]).mean(axis=1)
        return found


_ANOTHER = "another group has too few positives or negatives"
_ALONE = "no other group to compare with"


def reasons_of(groups: Groups, positives: Integers, choices: Choices) -> Strings:
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


@record
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
    reasons: dict[Metric, Strings]
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
        self.codes, many = data.groups.codes, len(data.groups)
        self.rows = [np.flatnonzero(self.codes == g).astype(np.int32) for g in range(many)]
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
        draw = self._draw(positives, tuned, compared)
        many = choices.replicates if times is None else times.shape[1]
        sums = nans((8, many, len(groups)))
        for g in compared if times is not None or draw[0] else ():
            rows = self.rows[g]
            packed = pack(scores, labels, measured, rows)
            if times is None:
                key = (self.seed, name, groups.names[g])
                sums[..., g] = fixed_prevalence(packed, labels[rows], draw, key, many)
            else:
                counted = times, self.totals[g]
                sums[..., g] = weighted_sums(packed, rows, measured, counted, choices.ratio)
        why, values = {}, {}
        for metric in self.metrics:
            nothing, found = "", metric_of_sums(metric, sums, choices.ratio)
            if metric not in RANKED and math.isnan(threshold):
                nothing = "no positive to tune the threshold on"
            if times is None:
                known = (column[~np.isnan(column)] for column in found.T)
                means = [float(one.mean()) if len(one) else math.nan for one in known]
                found = np.concatenate([[means], found])
            values[metric] = found
            why[metric] = tuple(
                reason or nothing or ("the metric's denominator is 0" if math.isnan(value) else "")
                for reason, value in zip(reasons, found[0].tolist(), strict=True)
            )
        null = self._null(name, scores, labels, measured > 0, threshold, compared)
        return Measured(positives, threshold, why, values, null)

    def _tuning_rows(
        self, labels: Booleans, positives: Integers, compared: list[int]
    ) -> tuple[Integers32, Integers]:
        """Return the rows that tune the threshold, and how many by group, negative and positive."""
        quota = np.zeros((len(positives), 2), dtype=np.int64)
        if {*self.metrics} <= {*RANKED} or not compared:
            return np.empty(0, dtype=np.int32), quota
        counts = np.stack([self.data.groups.counts - positives, positives], axis=1)
        share = integers(np.floor(self.choices.validation * counts + 0.5))
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
    ) -> dict[Metric, Floats]:
        """Return each metric with groups permuted, (permutations, groups)."""
        found: dict[Metric, Floats] = {}
        if not (self.permutations and compared):
            return found
        metrics = [one for one in self.metrics if one in RANKED or not math.isnan(threshold)]
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
                strata = integers(every >= positive)
            table = np.bincount(cell * width + only.codes[rows], minlength=size * width)
            sampler: Sampler = TableSampler(floats(table.reshape(size, width)))
            if units is not None:
                own = Encoded(units.codes[rows], units.vocabulary)
                sampler = item_sampler(cell[:, None], None, only.take(rows), own, (size, width))
            drawn = []
            for tables in sampler.permute(strata, self.permutations, seed):
                cases = np.ascontiguousarray(tables.transpose(0, 2, 1)).reshape(-1, size)
                drawn.append([metric_of(one, cases, self.choices.ratio) for one in same])
            for metric, some in zip(same, zip(*drawn, strict=True), strict=True):
                found[metric] = nans((self.permutations, len(groups)))
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


def _pairwise_ends(replicates: Floats | None) -> Ends:
    """Return ends of the largest |difference|: folded percentiles of each pair, simultaneous."""
    if replicates is None:
        return no_ends
    known = replicates[:, ~np.isnan(replicates).all(axis=0)]
    if not known.shape[1]:
        return no_ends

    def ends(level: float) -> Span:
        each = [folded_ends(column)(spread_level(level, known.shape[1])) for column in known.T]
        return max(low for low, _ in each), max(high for _, high in each)

    return ends


def _largest(results: ConceptResults, concept: int | None) -> tuple[float, Against]:
    """Return the largest |difference| over pairs, NaN without one, held against chance."""
    differences = results.differences(concept)
    null, text = results.null_differences(concept)
    known = ~np.isnan(differences)
    if not known.any():
        return math.nan, NOTHING
    value = float(np.abs(differences[known]).max())
    # A replicate without a value for some pair has no largest difference.
    sizes = None if null is None else np.abs(null[:, known]).max(axis=1)
    finest = results.resolution
    return value, against(sizes, value, "higher", text, resolution=finest, scale=1.0)


def _pairs(results: ConceptResults, concept: int | None) -> Iterator[Part]:
    """Yield the difference of each pair of groups in a concept, or of means over concepts."""
    name, aggregate = "concept_difference", Aggregate.VALUE
    if results.columns:
        name, aggregate = results.choices.metric, Aggregate.AGAINST_REST
    for (g, h), value, replicates, held in results.compared(concept):
        none, shared = math.isnan(value), results.shared(concept, g, h)
        if concept is None:
            note = f"mean over {tally(shared)} concepts"
            shown = tuple(_group_value(results, one, shared, note) for one in (g, h))
        else:
            shown = tuple(_in_concept(results, concept, one) for one in (g, h))
        about = [] if concept is None else [results.names[concept]]
        about += [] if results.columns else [" − ".join(one.group for one in shown)]
        yield number(
            name,
            value,
            aggregate=aggregate,
            subject=": ".join(about),
            ends=ends_of(None if none else replicates),
            level=results.level,
            held=held,
            n=sum(one.n for one in shown),
            by_group=shown,
            reason="a group takes no part" if none else "",
            shows="the metric of each group",
        )


def _concept(results: ConceptResults, concept: int) -> Part:
    value, held = _largest(results, concept)
    none = math.isnan(value)
    shown = tuple(_in_concept(results, concept, g) for g in range(len(results.groups)))
    left = Counter(one for one in results.reasons[concept] if one)
    return number(
        results.choices.metric,
        value,
        aggregate=Aggregate.DIFFERENCE,
        subject=results.names[concept],
        ends=no_ends if none else _pairwise_ends(results.replicates(concept)),
        level=results.level,
        held=held,
        n=sum(one.n for one in shown),
        by_group=shown,
        reason="fewer than two groups take part" if none else "",
        excluded=tuple(Excluded(reason, count) for reason, count in sorted(left.items())),
    )


def _in_concept(results: ConceptResults, concept: int, g: int) -> GroupValue:
    members = results.members(g, concept)
    positives, rows = int(results.positives[concept, members].sum()), _rows(results, members)
    why = results.reasons[concept][g] if g < len(results.groups) else ""
    note = why or f"{positives} of {rows} positive"
    return _group_value(results, g, results.shared(concept, g, g), note)


def _rows(results: ConceptResults, members: Integers) -> int:
    return int(results.groups.counts[members].sum())


def _group_value(results: ConceptResults, g: int, concepts: Booleans, note: str) -> GroupValue:
    """Return the mean over some concepts of a group, or all others of one, with its interval."""
    value = float(results.observed[concepts, g].mean()) if concepts.any() else math.nan
    groups, boot = results.groups, None
    if results.boot is not None and concepts.any():
        boot = results.boot[:, concepts, g].mean(axis=1)
    ends = ends_of(None if math.isnan(value) else boot)(results.level)
    name, levels = (groups.names[g], groups.levels[g]) if g < len(groups) else (OTHERS, ())
    return GroupValue(name, levels, _rows(results, results.members(g)), value, *ends, note)


HALL_RULE = "[Hall]'s protocol has its own rule: the interval against 0; see `low` and `high`"


def concept_disparity(  # noqa: PLR0913 - the choices of the assessment, all with defaults
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    *,
    metric: Metric = "average_precision",
    prevalence: Prevalence = "weighted",
    prevalence_ratio: float = 5,
    min_positives: int = 50,
    replicates: int = 250,
    validation: float = 0.2,
    incomplete: Literal["group", "concept"] = "group",
    unlabelled: Literal["keep", "leave out"] = "keep",
    concepts: Sequence[str] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in the mean over concepts of a metric.

    Parameters
    ----------
    scores : array-like, shape (n, concepts) or (n,)
        Scores of a model, larger for present.
    labels : array-like of 0 and 1, same shape
        Whether the image shows the concept.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        An image of several groups has one row for each, with its name in `units`.
    metric : str
        average_precision, auroc, true_positive_rate, false_positive_rate, precision or f1. All
        but the first two use one threshold per concept: the one of largest F1 on the validation
        rows of all groups, held fixed.
    prevalence : "weighted", "hall" or "observed"
        "weighted" weighs negatives so that all concepts and groups have `prevalence_ratio`
        negatives per positive; "hall" draws such samples, and has its own rule of significance;
        "observed" leaves prevalence as it is, so that average precision, precision and F1
        differ where prevalence does.
    prevalence_ratio : float
        Negatives per positive.
    min_positives : int
        A group with fewer positives leaves the concept, and is counted.
    replicates : int
        Bootstrap replicates: of images, or of [Hall]'s samples.
    validation : float
        Share of rows, of each group and label, that thresholds are tuned on and not measured on.
    incomplete : "group" or "concept"
        What leaves where a group has too few positives: the group, or the concept as in [Hall].
    unlabelled : "keep" or "leave out"
        Rows without any positive label.
    concepts : sequence of str, optional
        Names; the columns' numbers by default.
    units : array-like, shape (n,), optional
        Names of what repeats (images, persons): resampled as a whole.
    resampling : Bootstrap, Permutation or None
        Permutations, level and resolution; replicates are those above. None: the value alone.
    rng : int or Generator
        Seed. Models and versions measured with one seed on the same rows share their draws.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: folded percentiles, simultaneous over pairs of
        groups. Chance of the aggregate: replicates centred at no difference; of each concept:
        groups permuted, within each true class under fixed prevalence. `.by` has the aggregate
        by pair of groups ("concept_difference"), each concept by the metric's name with the
        values and prevalence of all groups, and each concept's differences by pair. With three
        groups or more, then each group minus the mean of all others, weighted by their positives,
        over concepts and in each (its aggregate is "against_rest").

    Raises
    ------
    InputError
        When shapes differ, a score is not finite, a label not 0 or 1, or a choice is unknown.

    References
    ----------
    Hall et al. 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> m.concept_disparity(scores, labels, groups, metric="auroc").metric
    'concept_disparity'
    """
    choices = Choices(
        metric, prevalence, prevalence_ratio, min_positives, replicates, validation, incomplete
    )
    results = concept_metrics(
        scores, labels, groups, [metric], choices, unlabelled=unlabelled, concepts=concepts,
        units=units, resampling=resampling, rng=rng,
    )  # fmt: skip
    return summarise(results[metric])


def concept_metrics(  # noqa: PLR0913 - as in concept_disparity
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    metrics: Sequence[Metric],
    choices: Choices | None = None,
    *,
    unlabelled: Literal["keep", "leave out"] = "keep",
    concepts: Sequence[str] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> dict[Metric, ConceptResults]:
    """Measure concepts by several metrics in one pass, at hardly more than the cost of one.

    Parameters
    ----------
    metrics : sequence of str
        As `metric` of `concept_disparity`; that of `choices` does not count.
    choices : Choices, optional
        Everything but the metric.

    The others, and errors, are those of `concept_disparity`.

    Returns
    -------
    dict of metric to ConceptResults
        In the order of `metrics`, for `design_choices`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> sorted(m.concept_metrics(scores, labels, groups, ["auroc"]))
    ['auroc']
    """
    choices = choices or Choices()
    for metric in metrics:
        replace(choices, metric=metric)
    if not metrics:
        raise InputError("metrics: none; expected at least one")
    data = read_concepts(
        scores, labels, groups, concepts=concepts, units=units, unlabelled=unlabelled
    )
    return ConceptRun(data, choices, metrics, resampling, rng).results(resampling)


def summarise(results: ConceptResults) -> Estimate:
    """Return the estimate that `concept_disparity` gives, from measured concepts."""
    value, held = _largest(results, None)
    choices, boot = results.choices, results.boot
    parts = [*_pairs(results, None)]
    for index in range(len(results.names)):
        parts += [_concept(results, index), *_pairs(results, index)]
    if (rest := results.against_rest) is not None:
        for concept in (None, *range(len(results.names))):
            parts += _pairs(rest, concept)
    missing = np.isnan(results.observed[:, results.groups.usable])
    empty = missing.all(axis=1)
    left_out = {
        "concepts without two groups": tally(empty),
        "groups left out of a concept": int(missing[~empty].sum()),
    }
    tuned = {} if choices.ranked else {
        "validation": choices.validation,
        "thresholds": dict(zip(results.names, results.thresholds.tolist(), strict=True)),
    }  # fmt: skip
    observed = choices.prevalence == "observed"
    unit = "samples of fixed prevalence" if results.hall else f"{results.unit}s"
    simultaneous = ", simultaneous over pairs of groups" if len(results.pairs) > 1 else ""
    return make_estimate(
        "concept_disparity",
        value,
        sizes(results.groups),
        "none: use Bootstrap()"
        if boot is None
        else f"{replicates_text(boot, unit)}; folded{simultaneous}"
        + ("; thresholds held fixed" if tuned else ""),
        interval_kind=(IntervalKind.SIMULTANEOUS if simultaneous else IntervalKind.PERCENTILE),
        params={
            "metric": choices.metric,
            "prevalence": choices.prevalence,
            "min_positives": choices.min_positives,
            "replicates": choices.replicates,
            "incomplete": choices.incomplete,
            "concepts": len(results.names),
            **({} if observed else {"prevalence_ratio": choices.prevalence_ratio}),
            **tuned,
        },
        **held.fields(HALL_RULE if results.hall else "its chance level rests on replicates"),
        by=parts,
        excluded=excluded_of(results.groups, results.excluded) | left_out,
        unit=results.unit,
        reason="no concept with two groups" if math.isnan(value) else "",
        ends=no_ends if math.isnan(value) else _pairwise_ends(results.replicates(None)),
    )


def concept_hit_rate(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: GroupLabels,
    *,
    k: int = 5,
    others: Iterable[ArrayLike] = (),
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of images of which any true concept is among the k largest scores.

    Parameters
    ----------
    scores, labels, groups, units, resampling, rng
        As in `concept_disparity`. Images without a label are left out and counted.
    k : int
        Less than the number of classes. Equal scores go to the first columns.
    others : iterable of array-like, each of shape (n,)
        Scores of the model's classes beside the concepts, which take places among the k as well.

    Returns
    -------
    Estimate
        As `equipoise.metrics.counts.accuracy.hit_rate`.

    Raises
    ------
    InputError
        As `concept_disparity`, or when k does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((400, 2)) < 0.4
    >>> groups = np.repeat(["women", "men"], 200)
    >>> scores = (
    ...     labels
    ...     + rng.normal(size=(400, 2)) * np.where(groups == "women", 1.5, 0.5)[:, None]
    ... )
    >>> m.concept_hit_rate(scores, labels, groups, k=1)
    <hit_rate 0.840 [0.789, 0.880]; n = 250 in 2 groups>
    """
    data = read_concepts(scores, labels, groups)
    many = len(data.names)
    rest = [*others]
    if not 1 <= k < many + len(rest):
        raise InputError(
            f"k={k}: expected 1 to {many + len(rest) - 1}, less than the number of classes: among "
            "as many, every image is a hit"
        )
    data.block(0, many)  # checked
    values, shown = data.scores, data.labels.astype(np.bool_)
    # A hit has fewer than k classes above its best true one; equal scores go to first columns.
    best = np.where(shown, values, -np.inf).max(axis=1, initial=-np.inf)
    first = np.argmax(shown & (values == best[:, None]), axis=1)
    above = (values > best[:, None]).sum(axis=1)
    above += ((values == best[:, None]) & (np.arange(many) < first[:, None])).sum(axis=1)
    for column in rest:
        other = np.asarray(column)
        if other.shape != best.shape or not np.isfinite(other[data.rows]).all():
            raise InputError(f"others: expected {len(best)} finite scores for each class")
        above += other > best
    counts = count(
        np.where(shown.any(axis=1), "hit", ""),
        np.where(above < k, "hit", "miss"),
        groups,
        units=units,
    )
    return measure(counts, [HitRate(k)], resampling, rng)[0]


_disparity = partial(
    MetricSpec,
    null_kind=NullHypothesis.REPLICATES,
    kinds=("concepts",),
    rate=True,
    harm="lower",
    sentence="The results{model}{subject} are {direction}.",
    threshold=0.05,
    threshold_reason=POINTS,
    chance="above 0 for the gap between groups",
    interval=(
        "percentile bootstrap over images or units, folded at 0, simultaneous over pairs of groups"
    ),
    null=(
        "groups are exchangeable within each true class; over all rows where prevalence is not "
        "fixed"
    ),
    reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
)
register(
    _disparity(
        name="concept_disparity",
        aggregate=Aggregate.DIFFERENCE,
        title="Disparity over concepts",
        rate=False,
        harm="higher",
        definition=(
            "Largest difference over pairs of groups in the mean over concepts of a one-vs-all "
            "metric, over the concepts that both groups have."
        ),
        direction="Higher: the classifier works better for one group than for another.",
        null="no difference between groups: centred replicates (asymptotic)",
    ),
    _disparity(
        name="concept_difference",
        title="Difference of two groups",
        range=(-1.0, 1.0),
        rate=False,
        harm="either",
        definition=(
            "Metric of the first group minus that of the second, for a concept or the mean over "
            "concepts."
        ),
        direction="Either: positive means the first group has the larger value.",
        chance="about 0",
        interval=(
            "percentile bootstrap over images or units; by [Hall]'s protocol, significant if it "
            "excludes 0"
        ),
        null="that of the disparity, two-sided",
    ),
    _disparity(
        name="average_precision",
        rest="average_precision",
        symbol="AP",
        definition=(
            "Sum over thresholds of precision times the gain in recall, tied scores grouped."
        ),
        direction="Lower: the group's images are ranked worse.",
    ),
    _disparity(
        name="auroc",
        rest="auroc",
        title="AUROC",
        definition=(
            "Probability that a positive scores above a negative, ties one half; independent of "
            "prevalence."
        ),
        direction="Lower: the group's images are ranked worse.",
        null="groups are exchangeable within each true class",
    ),
    _disparity(
        name="f1",
        rest="f1",
        definition="2 TP / (2 TP + FP + FN) at the threshold of largest F1 on validation rows.",
        direction="Lower: more wrong decisions for each right one.",
    ),
)
