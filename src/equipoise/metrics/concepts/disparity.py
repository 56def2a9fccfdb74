"""Disparities of multi-label classifiers by concept, with prevalence under control.

Concepts are read, checked and measured by several metrics in one pass, spread over threads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import (
    chain,
    combinations,
)
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
    UNTESTED,
    ChanceTest,
    column_of,
    compare_with_null,
    ends_of,
    excluded_of,
    explain_undefined,
    folded_ends,
    number,
    replicates_text,
    sizes,
    spread_level,
    strictest,
)
from equipoise.metrics.concepts.cells import (
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
from equipoise.metrics.labels import (
    Null,
    count,
    item_sampler,
    name_unit,
    units_of,
)
from equipoise.metrics.labels.accuracy import HitRate
from equipoise.metrics.labels.comparisons import OTHERS, all_others
from equipoise.metrics.measure import DEFAULT, NO_REPLICATES, NULLS, measure, permutations_text
from equipoise.metrics.registry import metric as metric_of_estimates
from equipoise.metrics.spec import POINTS, MetricSpec, make_estimate
from equipoise.stats.chance import folded_band
from equipoise.stats.draws import Sampler, TableSampler
from equipoise.stats.resampling import Bootstrap, Permutation, Resampling, level_of, resolution_of
from equipoise.stats.streams import Seed, stream, unit_keys, unit_times, unit_uniforms
from equipoise.stats.threads import each


def _matrix(values: Any, subject: str) -> AnyArray:
    """Return numbers of shape (n, concepts); they may be mapped into memory."""
    array = np.asarray(values)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise InputError(
            f"{subject}: {array.dtype} of shape {array.shape}; expected numbers, (n, concepts), "
            "neither of them 0"
        )
    return array


def _refuse(
    wrong: Booleans, block: AnyArray, subject: str, names: Sequence[str], rows: Any
) -> None:
    """Raise an InputError where a cell (concepts, n) is wrong."""
    if wrong.any():
        concept, row = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"{subject}: {block[concept, row]} for concept {names[concept]!r} in row {rows[row]}; "
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
        _check_choice("metric", self.metric, get_args(Metric))
        _check_choice("prevalence", self.prevalence, get_args(Prevalence))
        _check_choice("incomplete", self.incomplete, ("group", "concept"))
        valid_ratio = self.prevalence != "hall" or self.prevalence_ratio == int(
            self.prevalence_ratio
        )
        for name, valid in {
            "prevalence_ratio": 0 < self.prevalence_ratio < math.inf and valid_ratio,
            "min_positives": self.min_positives >= 1,
            "replicates": self.replicates >= 1,
            "validation": 0 < self.validation < 1,
        }.items():
            if not valid:
                raise InputError(f"{name}={getattr(self, name)!r}: out of range")

    @property
    def ranked(self) -> bool:
        """Whether the metric needs no threshold."""
        return self.metric in RANKED

    @property
    def ratio(self) -> float | None:
        """Negatives per positive after weighting; None without weights."""
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
        scores = self._columns(self.scores, start, stop)
        labels = self._columns(self.labels, start, stop)
        names = self.names[start:stop]
        _refuse(~np.isfinite(scores), scores, "scores", names, self.rows)
        if labels.dtype != np.bool_:
            _refuse((labels != 0) & (labels != 1), labels, "labels", names, self.rows)
        return scores, labels.astype(np.bool_, copy=False)

    def _columns(self, matrix: AnyArray, start: int, stop: int) -> AnyArray:
        """Return some columns of the rows that take part, (columns, m)."""
        columns = np.ascontiguousarray(matrix[:, start:stop].T)
        if len(self.rows) == columns.shape[1]:
            return columns
        return columns[:, self.rows]


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
    (n, n_concepts), row_groups = values.shape, Groups.of(groups)
    names = tuple(map(str, range(n_concepts) if concepts is None else concepts))
    if len(names) != n_concepts or len({*names}) < n_concepts:
        raise InputError(
            f"concepts: {len(names)} names, {len({*names})} of them distinct; expected "
            f"{n_concepts} distinct names, one for each column of scores"
        )
    if len(row_groups.codes) != n:
        raise InputError(f"groups: {len(row_groups.codes)} rows; expected {n}, as in scores")
    _check_choice("unlabelled", unlabelled, ("keep", "leave out"))
    without_label = np.full(n, unlabelled == "leave out")
    for start in range(0, len(names) if without_label.any() else 0, BLOCK):
        without_label &= ~truth[:, start : start + BLOCK].any(axis=1)
    used = (row_groups.codes >= 0) & ~without_label
    if not used.any():
        raise InputError("groups: no row is left; expected rows with a group and a label")
    counts = {
        "missing group": row_groups.n_missing,
        "no label": tally(without_label & (row_groups.codes >= 0)),
    }
    rows, owners = np.flatnonzero(used), units_of(units, n, used)
    keys = rows.astype(np.uint64)
    if owners is not None:
        has_unit = owners.codes >= 0
        keys[has_unit] = unit_keys(owners.vocabulary)[owners.codes[has_unit]]
    return Concepts(values, truth, rows, row_groups.take(rows), names, owners, keys, counts)


def _check_choice(name: str, value: object, allowed: Strings) -> None:
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
    null : tuple of (ndarray of shape (exchanges, permutations, groups) or None), one per concept
        The metric with groups permuted, for each way in which these may be exchangeable.
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
        """Pairs of groups that are large enough, by index, or `columns`."""
        usable = np.flatnonzero(self.groups.usable).tolist()
        return [*self.columns] or list(combinations(usable, 2))

    @property
    def against_rest(self) -> ConceptResults | None:
        """The results with pairs of a group and all others; None under [Hall]'s protocol.

        The others have a column: their mean, weighted by their positives, so that no image is
        ranked among those of another group. Only concepts of three groups or more count; None
        where there is none.
        """
        defined = ~np.isnan(self.observed)
        weights = np.where(defined & (defined.sum(axis=1, keepdims=True) > 2), self.positives, 0.0)
        if self.hall or not weights.any():
            return None

        def with_rest(values: Floats, weights: Floats) -> Floats:
            sums = all_others(np.where(weights > 0, weights * values, 0.0))
            others_mean = nans(values.shape)
            np.divide(sums, all_others(weights), out=others_mean, where=weights > 0)
            return np.concatenate([values, others_mean], axis=-1)

        compared_groups = np.flatnonzero(weights.any(axis=0)).tolist()
        return replace(
            self,
            observed=with_rest(self.observed, weights),
            boot=None if self.boot is None else with_rest(self.boot, weights),
            null=tuple(
                None if null is None else with_rest(null, null_weights)
                for null, null_weights in zip(self.null, weights, strict=True)
            ),
            columns=tuple((g, len(self.groups) + g) for g in compared_groups),
        )

    def differences(self, concept: int | None) -> Floats:
        """Return each pair's difference in a concept, or of means over concepts, (pairs,)."""
        pair_differences: Floats = self._differences(self.observed[None], concept)[0]
        return pair_differences

    def replicates(self, concept: int | None) -> Floats | None:
        """Return bootstrap replicates of `differences`, shape (replicates, pairs)."""
        return None if self.boot is None else self._differences(self.boot, concept)

    def null_differences(self, concept: int | None) -> tuple[Floats | None, str]:
        """Return differences under the null, (exchanges, m, pairs), and how they were drawn."""
        null = None if concept is None else self.null[concept]
        if self.hall:
            return None, ""
        if null is None:
            replicates = self.replicates(concept)
            if replicates is None:
                return None, CENTRED
            # What they would be about if nothing differed.
            defined = ~np.isnan(replicates)
            sums = np.where(defined, replicates, 0.0).sum(axis=0)
            centred = replicates - sums / np.maximum(defined.sum(axis=0), 1)
            return np.asarray(centred[None]), CENTRED
        first, second = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T
        text = f"{self.null_text}; {permutations_text([*null])}"
        return np.asarray(null[..., first] - null[..., second]), text

    def compared(
        self, concept: int | None
    ) -> Iterator[tuple[tuple[int, int], float, Floats | None, ChanceTest]]:
        """Yield each pair of groups: its difference, replicates of it, and its chance level."""
        boot, (null, text) = self.replicates(concept), self.null_differences(concept)
        values = self.differences(concept).tolist()
        for index, (pair, value) in enumerate(zip(self.pairs, values, strict=True)):
            chance_test = UNTESTED
            if null is not None and not math.isnan(value):
                chance_test = strictest(
                    replace(
                        _compare_size(np.abs(draws), value, text, self.resolution),
                        chance=folded_band(draws, method=text),
                    )
                    for draws in null[..., index]
                )
            yield pair, value, column_of(boot, index), chance_test

    def members(self, g: int, concept: int | None = None) -> Integers:
        """Return the groups of a column: its own, or all others that are compared."""
        groups = len(self.groups)
        if g < groups:
            return np.array([g])
        chosen = slice(None) if concept is None else [concept]
        participating = ~np.isnan(self.observed[chosen, :groups]).all(axis=0)
        return np.setdiff1d(np.flatnonzero(participating), [g - groups])

    def shared(self, concept: int | None, g: int, h: int) -> Booleans:
        """Return a mask of concepts: the one, or all that both groups share."""
        if concept is not None:
            return np.asarray(np.arange(len(self.names)) == concept)
        return np.asarray(~np.isnan(self.observed[:, [g, h]]).any(axis=1))

    def _differences(self, values: Floats, concept: int | None) -> Floats:
        pair_differences = nans((len(values), len(self.pairs)))
        for index, (g, h) in enumerate(self.pairs):
            shared = self.shared(concept, g, h)
            if shared.any():
                pair_differences[:, index] = (values[:, shared, g] - values[:, shared, h]).mean(
                    axis=1
                )
        return pair_differences


_ANOTHER = "another group has too few positives or negatives"
_ALONE = "no other group to compare with"


def reasons_of(groups: Groups, positives: Integers, choices: Choices) -> Strings:
    """Say why each group leaves a concept, "" where it stays."""
    reasons = []
    columns = groups.usable.tolist(), positives.tolist(), groups.counts.tolist()
    for usable, p, n in zip(*columns, strict=True):
        reasons.append(_reason(usable, p, n - p, groups.min_size, choices))
    stays = np.array(reasons) == ""
    note = ""
    if choices.incomplete == "concept" and (groups.usable & ~stays).any():
        note = _ANOTHER
    elif tally(stays) < 2:
        note = _ALONE
    return tuple(reason or note for reason in reasons)


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
class ConceptNumbers:
    """One concept's numbers by metric; the first of `values` is the observed one.

    Attributes
    ----------
    positives : ndarray of int, shape (groups,)
    threshold : float
    reasons : dict of metric to tuple of str, shape (groups,)
        "" where the group takes part.
    values : dict of metric to ndarray, shape (1 + replicates, groups)
    null : dict of metric to ndarray, shape (exchanges, permutations, groups)
    """

    positives: Integers
    threshold: float
    reasons: dict[Metric, Strings]
    values: dict[Metric, Floats]
    null: dict[Metric, Floats]


def null_of(metric: Metric, choices: Choices) -> Null:
    """Return the stratum within which groups are exchangeable under the null."""
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
        self.codes, n_groups = data.groups.codes, len(data.groups)
        self.rows = [np.flatnonzero(self.codes == g).astype(np.int32) for g in range(n_groups)]
        # Rows in the random order in which they tune thresholds.
        key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
        self.by_key = np.argsort(key, kind="stable").astype(np.int32)
        # The same for every concept: means over concepts keep what those of one image have in
        # common.
        self.times, self.totals, self.permutations = None, list[Integers32](), 0
        if choices.prevalence != "hall":
            replicates = choices.replicates if isinstance(resampling, Bootstrap) else 0
            self.times = times = unit_times(data.keys, replicates, seed)
            self.totals = [times[rows].sum(axis=0, dtype=np.int32) for rows in self.rows]
            sizes = {"rows": len(data.rows), "concepts": len(data.names)}
            self.permutations = permutations_of(resampling, **sizes)

    def results(self, resampling: Bootstrap | Permutation | None) -> dict[Metric, ConceptResults]:
        """Measure all concepts, some at a time."""
        data, choices = self.data, self.choices

        def measure(start: int) -> list[ConceptNumbers]:
            block = (data.names[start : start + BLOCK], *data.block(start, start + BLOCK))
            return [
                self.measure(name, scores.astype(np.float64), np.ascontiguousarray(labels))
                for name, scores, labels in zip(*block, strict=True)
            ]

        blocks = each(measure, range(0, len(data.names), BLOCK))
        measured = [*chain.from_iterable(blocks)]
        results = {}
        for metric in self.metrics:
            values = np.stack([concept.values[metric] for concept in measured], axis=1)
            results[metric] = ConceptResults(
                replace(choices, metric=metric),
                data.names,
                data.groups,
                values[0],
                np.stack([concept.positives for concept in measured]),
                tuple(concept.reasons[metric] for concept in measured),
                values[1:] if len(values) > 1 else None,
                tuple(concept.null.get(metric) for concept in measured),
                np.array(
                    [math.nan if metric in RANKED else concept.threshold for concept in measured]
                ),
                NULLS[null_of(metric, choices)],
                level_of(resampling),
                resolution_of(resampling),
                data.excluded,
                name_unit(data.units),
            )
        return results

    def measure(self, name: str, scores: Floats, labels: Booleans) -> ConceptNumbers:
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
        n_replicates = choices.replicates if times is None else times.shape[1]
        sums = nans((8, n_replicates, len(groups)))
        for g in compared if times is not None or draw[0] else ():
            rows = self.rows[g]
            packed = pack(scores, labels, measured, rows)
            if times is None:
                key = (self.seed, name, groups.names[g])
                sums[..., g] = fixed_prevalence(packed, labels[rows], draw, key, n_replicates)
            else:
                counted = times, self.totals[g]
                sums[..., g] = weighted_sums(packed, rows, measured, counted, choices.ratio)
        metric_reasons, values = {}, {}
        for metric in self.metrics:
            problem, metric_values = "", metric_of_sums(metric, sums, choices.ratio)
            if metric not in RANKED and math.isnan(threshold):
                problem = "no positive to tune the threshold on"
            if times is None:
                defined_columns = (column[~np.isnan(column)] for column in metric_values.T)
                means = [
                    float(defined.mean()) if len(defined) else math.nan
                    for defined in defined_columns
                ]
                metric_values = np.concatenate([[means], metric_values])
            values[metric] = metric_values
            metric_reasons[metric] = tuple(
                reason or problem or explain_undefined(value, "the metric's denominator is 0")
                for reason, value in zip(reasons, metric_values[0].tolist(), strict=True)
            )
        null = self._null(name, scores, labels, measured > 0, threshold, compared)
        return ConceptNumbers(positives, threshold, metric_reasons, values, null)

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
        least = int(np.minimum(positives, negatives // ratio)[compared].min())
        tested = 0
        if tuned[:, 1].any():
            others = np.minimum(positives - tuned[:, 1], (negatives - tuned[:, 0]) // ratio)
            tested = int(others[compared].min())
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
        """Return each metric with groups permuted, (exchanges, permutations, groups)."""
        null_values: dict[Metric, Floats] = {}
        if not (self.permutations and compared):
            return null_values
        sharing_metrics: dict[tuple[bool, Null], list[Metric]] = {}
        for metric in self.metrics:
            if metric in RANKED or not math.isnan(threshold):
                kind = metric in RANKED, null_of(metric, self.choices)
                sharing_metrics.setdefault(kind, []).append(metric)
        groups, units, width = self.data.groups, self.data.units, len(compared)
        place = np.full(len(groups), -1, dtype=np.int32)
        place[compared] = np.arange(width)
        levels = tuple(groups.levels[g] for g in compared)
        compared_groups = Groups(
            groups.attributes, levels, place[self.codes], groups.min_size, groups.named
        )
        seed = int(stream(self.seed, "concept", name).integers(2**62))
        # Metrics of one kind share cells and what is exchangeable.
        for (ranked, null), sharing in sharing_metrics.items():
            rows = np.flatnonzero((place[self.codes] >= 0) & (used | ranked))
            # True and false positives and negatives at the threshold: TP, FN, FP, TN.
            cell, positive, size = np.where(labels, 0, 2)[rows] + (scores[rows] < threshold), 2, 4
            if ranked:
                cell, positive, size = ranked_cells(scores[rows], labels[rows])
            cells = np.arange(size)
            # At a threshold, cells 0 and 2 are predicted positive.
            strata = cells % 2 if null == "prediction" else np.zeros_like(cells)
            if null == "class":
                strata = integers(cells >= positive)
            table = np.bincount(cell * width + compared_groups.codes[rows], minlength=size * width)
            sampler: Sampler = TableSampler(floats(table.reshape(size, width)))
            if units is not None:
                row_units = Encoded(units.codes[rows], units.vocabulary)
                sampler = item_sampler(
                    cell[:, None], None, compared_groups.take(rows), row_units, (size, width)
                )
            blocks, exchanges = [], sampler.exchanges(strata, self.permutations, seed)
            for tables in chain.from_iterable(exchanges):
                cases = np.ascontiguousarray(tables.transpose(0, 2, 1)).reshape(-1, size)
                blocks.append([metric_of(metric, cases, self.choices.ratio) for metric in sharing])
            shape = len(exchanges), self.permutations
            for metric, metric_blocks in zip(sharing, zip(*blocks, strict=True), strict=True):
                null_values[metric] = nans((*shape, len(groups)))
                values = np.concatenate(metric_blocks).reshape(*shape, width)
                null_values[metric][..., compared] = values
        return null_values


# Rows that permutations of all concepts may shuffle: some seconds of work. Beyond it p-values are
# asymptotic, from replicates centred at no difference.
MAX_SHUFFLED_ROWS = 300_000_000


def permutations_of(resampling: Bootstrap | Permutation | None, *, rows: int, concepts: int) -> int:
    """Return how many permutations each concept gets; 0 where they would take too long."""
    if resampling is None:
        return 0
    if isinstance(resampling, Permutation):
        return resampling.replicates
    required = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
    return required if required * rows * concepts <= MAX_SHUFFLED_ROWS else 0


def _pairwise_ends(replicates: Floats | None) -> Ends:
    """Return ends of the largest |difference|: folded percentiles of each pair, simultaneous."""
    if replicates is None:
        return no_ends
    estimable = replicates[:, ~np.isnan(replicates).all(axis=0)]
    if not estimable.shape[1]:
        return no_ends

    def ends(level: float) -> Span:
        pair_ends = [
            folded_ends(column)(spread_level(level, estimable.shape[1])) for column in estimable.T
        ]
        return max(low for low, _ in pair_ends), max(high for _, high in pair_ends)

    return ends


def _largest(results: ConceptResults, concept: int | None) -> tuple[float, ChanceTest]:
    """Return the largest |difference| over pairs, and its test."""
    differences = results.differences(concept)
    null, text = results.null_differences(concept)
    estimable = ~np.isnan(differences)
    if not estimable.any():
        return math.nan, UNTESTED
    value = float(np.abs(differences[estimable]).max())
    # A replicate without a value for some pair has no largest difference.
    null_sizes = () if null is None else np.abs(null[..., estimable]).max(axis=-1)
    return value, strictest(
        _compare_size(draws, value, text, results.resolution) for draws in null_sizes
    )


def _compare_size(null_sizes: Floats, value: float, text: str, resolution: float) -> ChanceTest:
    """Hold the size of a difference against those of its null distribution."""
    size = abs(value)
    return compare_with_null(null_sizes, size, "higher", text, resolution=resolution, scale=1.0)


def _pairs(results: ConceptResults, concept: int | None) -> Iterator[Part]:
    """Yield the difference of each pair of groups in a concept, or of means over concepts."""
    name, aggregate = "concept_difference", Aggregate.VALUE
    if results.columns:
        name, aggregate = results.choices.metric, Aggregate.AGAINST_REST
    for (g, h), value, replicates, chance_test in results.compared(concept):
        undefined, shared = math.isnan(value), results.shared(concept, g, h)
        if concept is None:
            note = f"mean over {tally(shared)} concepts"
            by_group = tuple(_group_value(results, group, shared, note) for group in (g, h))
        else:
            by_group = tuple(_in_concept(results, concept, group) for group in (g, h))
        subject_parts = [] if concept is None else [results.names[concept]]
        subject_parts += [] if results.columns else [" − ".join(group.group for group in by_group)]
        yield number(
            name,
            value,
            aggregate=aggregate,
            subject=": ".join(subject_parts),
            ends=ends_of(None if undefined else replicates),
            level=results.level,
            chance_test=chance_test,
            n=sum(group.n for group in by_group),
            by_group=by_group,
            reason=explain_undefined(value, "a group takes no part"),
            shows="the metric of each group",
        )


def _concept(results: ConceptResults, concept: int) -> Part:
    value, chance_test = _largest(results, concept)
    undefined = math.isnan(value)
    by_group = tuple(_in_concept(results, concept, g) for g in range(len(results.groups)))
    left_out = Counter(reason for reason in results.reasons[concept] if reason)
    return number(
        results.choices.metric,
        value,
        aggregate=Aggregate.DIFFERENCE,
        subject=results.names[concept],
        ends=no_ends if undefined else _pairwise_ends(results.replicates(concept)),
        level=results.level,
        chance_test=chance_test,
        n=sum(group.n for group in by_group),
        by_group=by_group,
        reason=explain_undefined(value, "fewer than two groups take part"),
        excluded=tuple(Excluded(reason, count) for reason, count in sorted(left_out.items())),
    )


def _in_concept(results: ConceptResults, concept: int, g: int) -> GroupValue:
    members = results.members(g, concept)
    positives, rows = int(results.positives[concept, members].sum()), _rows(results, members)
    reason = results.reasons[concept][g] if g < len(results.groups) else ""
    note = reason or f"{positives} of {rows} positive"
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


concept_record = partial(
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
"""A record of an assessment of concepts, from the fields that others don't share."""


@metric_of_estimates(
    concept_record(
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
    )
)
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
    value, chance_test = _largest(results, None)
    choices, boot = results.choices, results.boot
    parts = [*_pairs(results, None)]
    for index in range(len(results.names)):
        parts += [_concept(results, index), *_pairs(results, index)]
    if (against_rest := results.against_rest) is not None:
        for concept in (None, *range(len(results.names))):
            parts += _pairs(against_rest, concept)
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
        NO_REPLICATES
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
            "concepts_compared": tally(~empty),
            "rows": int(results.groups.counts.sum()),
            **({} if observed else {"prevalence_ratio": choices.prevalence_ratio}),
            **tuned,
        },
        **chance_test.fields(HALL_RULE if results.hall else "its chance level rests on replicates"),
        by=parts,
        excluded=excluded_of(results.groups, results.excluded) | left_out,
        unit=results.unit,
        reason=explain_undefined(value, "no concept with two groups"),
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
    """Share of images with a true concept among the k largest scores.

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
        As `equipoise.metrics.labels.accuracy.hit_rate`.

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
    n_concepts = len(data.names)
    other_columns = [*others]
    if not 1 <= k < n_concepts + len(other_columns):
        raise InputError(
            f"k={k}: expected 1 to {n_concepts + len(other_columns) - 1}, less than the number of "
            "classes: among as many, every image is a hit"
        )
    data.block(0, n_concepts)  # checked
    values, true_labels = data.scores, data.labels.astype(np.bool_)
    # A hit has fewer than k classes above its best true one; equal scores go to first columns.
    best = np.where(true_labels, values, -np.inf).max(axis=1, initial=-np.inf)
    first = np.argmax(true_labels & (values == best[:, None]), axis=1)
    above = (values > best[:, None]).sum(axis=1)
    above += ((values == best[:, None]) & (np.arange(n_concepts) < first[:, None])).sum(axis=1)
    for column in other_columns:
        other = np.asarray(column)
        if other.shape != best.shape or not np.isfinite(other[data.rows]).all():
            raise InputError(f"others: expected {len(best)} finite scores for each class")
        above += other > best
    counts = count(
        np.where(true_labels.any(axis=1), "hit", ""),
        np.where(above < k, "hit", "miss"),
        groups,
        units=units,
    )
    return measure(counts, [HitRate(k)], resampling, rng)[0]
