"""Concepts read, checked and measured by several metrics in one pass, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from equipoise.core.arrays import AnyArray, Booleans, Bytes, Floats, Integers, Integers32, Words
from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.counts import Null, Units, units_of
from equipoise.metrics.measure import NULLS
from equipoise.metrics.scores.cells import (
    RANKED,
    Metric,
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
from equipoise.stats.resampling import Bootstrap, Permutation, level_of, resolution_of
from equipoise.stats.streams import stream, unit_keys, unit_times, unit_uniforms
from equipoise.stats.threads import each


@runtime_checkable
class NamedColumns(Protocol):
    """Columns that are read one at a time, such as `equipoise.data.Matrix`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    def column(self, name: str) -> AnyArray:
        """Return one column, shape (n,); it may be asked for from several threads at once."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """Scores or labels, one column per concept.

    Attributes
    ----------
    what : str
        "scores" or "labels".
    values : ndarray, shape (n, concepts), or NamedColumns
        An array may be memory-mapped: only what is asked for is read.
    shape : tuple of int
    names : tuple of str, or None where columns have none
    """

    what: str
    values: AnyArray | NamedColumns = field(repr=False)
    shape: tuple[int, int]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, values: Any, what: str) -> Source:
        """Check the shape and type of a matrix.

        Raises
        ------
        InputError
            When it is none, is empty, or does not hold numbers.
        """
        if isinstance(values, NamedColumns):
            names = tuple(values.names)
            first = values.column(names[0]) if names else ()
            return cls(what, values, (len(first), len(names)), names)
        try:
            array = np.asarray(values)
        except ValueError:
            raise InputError(f"{what}: rows of different lengths; expected (n, concepts)") from None
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
            raise InputError(
                f"{what}: {array.dtype} of shape {array.shape}; expected numbers, (n, concepts), "
                "neither of them 0"
            )
        return cls(what, array, (len(array), array.shape[1]), None)

    def block(self, start: int, stop: int) -> AnyArray:
        """Return some columns, one after the other, shape (stop - start, n)."""
        if isinstance(self.values, np.ndarray):
            return np.ascontiguousarray(self.values[:, start:stop].T)
        names = (self.names or ())[start:stop]
        columns = [np.asarray(self.values.column(name)) for name in names]
        for name, column in zip(names, columns, strict=True):
            if column.shape != self.shape[:1] or column.dtype.kind not in "fiub":
                raise InputError(
                    f"{self.what}, column {name!r}: {column.dtype} of shape {column.shape}; "
                    f"expected {self.shape[0]} numbers"
                )
        return np.stack(columns)


def flags(block: AnyArray, names: Sequence[str], rows: Integers) -> Booleans:
    """Return labels, shape (concepts, n), as booleans; raise an InputError where one is none."""
    if block.dtype.kind == "b":
        return block
    for values, name in zip(block, names, strict=True):
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"labels: {values[row]} for concept {name!r} in row {rows[row]}; expected 0 or 1"
            )
    return np.asarray(block == 1)


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
        whole = self.prevalence == "hall"
        allowed = {"metric": get_args(Metric), "prevalence": get_args(Prevalence)}
        for name, some in {**allowed, "incomplete": ("group", "concept")}.items():
            _one_of(name, getattr(self, name), some)
        for name, least, most in (
            ("prevalence_ratio", 1 if whole else math.ulp(0.0), math.inf),
            ("min_positives", 1, math.inf),
            ("replicates", 1, math.inf),
            ("validation", math.ulp(0.0), math.nextafter(1.0, 0.0)),
        ):
            value = getattr(self, name)
            known = (
                isinstance(value, int | float) and math.isfinite(value) and least <= value <= most
            )
            if not known or (name == "prevalence_ratio" and whole and value != int(value)):
                raise InputError(
                    f"{name}={value!r}: expected a number from {least:g} to {most:g}"
                    + ", whole under prevalence='hall'" * (name == "prevalence_ratio")
                )

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
    scores, labels : Source
        Of all rows.
    rows : ndarray of int, shape (m,)
        The rows that take part.
    groups : Groups
        Of these rows.
    names : tuple of str
        Of the concepts.
    units : Units or None
    keys : ndarray of uint64, shape (m,)
        Key of each row's unit in random streams; its place where there are no units, so that
        models and versions that share rows share draws.
    excluded : dict of str to int
    """

    scores: Source
    labels: Source
    rows: Integers = field(repr=False)
    groups: Groups
    names: tuple[str, ...]
    units: Units | None
    keys: Words = field(repr=False)
    excluded: dict[str, int]

    def block(self, start: int, stop: int) -> tuple[AnyArray, Booleans]:
        """Return scores and labels of some concepts, each (concepts, m), checked.

        Raises
        ------
        InputError
            When a score is not finite or a label is not 0 or 1.
        """
        names = self.names[start:stop]
        scores, labels = (
            block if len(self.rows) == block.shape[1] else block[:, self.rows]
            for block in (self.scores.block(start, stop), self.labels.block(start, stop))
        )
        for values, name in zip(scores, names, strict=True):
            wrong = ~np.isfinite(values)
            if wrong.any():
                raise InputError(
                    f"scores: NaN or infinite for concept {name!r} in row "
                    f"{self.rows[np.argmax(wrong)]}; expected finite numbers"
                )
        return scores, flags(labels, names, self.rows)


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
        When shapes or names differ, names repeat, or no row is left.
    """
    values, truth = Source.of(scores, "scores"), Source.of(labels, "labels")
    if values.shape != truth.shape:
        raise InputError(
            f"labels: shape {truth.shape}; expected {values.shape}, one column per concept as in "
            "scores"
        )
    names = _names(concepts, values, truth)
    found, n = Groups.of(groups), values.shape[0]
    for what, column in (("groups", found.codes), ("units", units)):
        if column is not None and len(column) != n:
            raise InputError(f"{what}: {len(column)} rows; expected {n}, as in scores")
    _one_of("unlabelled", unlabelled, ("keep", "leave out"))
    bare = np.full(n, unlabelled == "leave out")
    for start in range(0, len(names) if bare.any() else 0, BLOCK):
        stop = start + BLOCK
        bare &= ~flags(truth.block(start, stop), names[start:stop], np.arange(n)).any(axis=0)
    kept = (found.codes >= 0) & ~bare
    if not kept.any():
        raise InputError("groups: no row is left; expected rows with a group and a label")
    counts = {"missing group": found.n_missing, "no label": int((bare & (found.codes >= 0)).sum())}
    rows = np.flatnonzero(kept)
    keys = rows.astype(np.uint64)
    every = units_of(units, n, np.ones(n, dtype=np.bool_))
    if every is not None:
        codes = every.codes[rows]
        keys[codes >= 0] = unit_keys(every.names)[codes[codes >= 0]]
    return Concepts(
        values, truth, rows, found.take(rows), names, units_of(units, n, kept), keys,
        {reason: count for reason, count in counts.items() if count},
    )  # fmt: skip


def _names(concepts: Sequence[str] | None, scores: Source, labels: Source) -> tuple[str, ...]:
    own = scores.names or labels.names
    if scores.names and labels.names and scores.names != labels.names:
        wrong = next(b for a, b in zip(scores.names, labels.names, strict=True) if a != b)
        raise InputError(f"labels: column {wrong!r}; expected the concepts of scores, in order")
    many = scores.shape[1]
    names = tuple(map(str, (own or range(many)) if concepts is None else concepts))
    if len(names) != many or len({*names}) < many:
        raise InputError(
            f"concepts: {len(names)} names, {len({*names})} of them distinct; expected {many} "
            "distinct ones, the columns of scores"
        )
    return names


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
    """

    choices: Choices
    names: tuple[str, ...]
    groups: Groups = field(repr=False)
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
            return centred(self.replicates(concept)), CENTRED
        first, second = np.array(self.pairs, dtype=np.int64).reshape(-1, 2).T
        text = f"{self.null_text}; {len(null)} permutations"
        return np.asarray(null[:, first] - null[:, second]), text

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
    totals : list of ndarray, shape (1 + replicates,)
        What the rows of each group come to.
    units : Units or None
    permutations, seed : int
    """

    metrics: tuple[Metric, ...]
    choices: Choices
    groups: Groups
    codes: Integers32 = field(repr=False)
    rows: tuple[Integers32, ...] = field(repr=False)
    by_key: Integers32 | None = field(repr=False)
    times: Bytes | None = field(repr=False)
    totals: list[Integers32] = field(repr=False)
    units: Units | None
    permutations: int
    seed: int

    def measure(self, name: str, scores: Floats, labels: Booleans) -> Measured:
        """Measure one concept by all metrics in one pass over its draws."""
        choices, positives = self.choices, np.zeros(len(self.groups), dtype=np.int64)
        count_by_group(labels, self.codes, positives)
        reasons = reasons_of(self.groups, positives, choices)
        compared = [g for g, reason in enumerate(reasons) if not reason]
        tuning, tuned = self._tuning_rows(labels, positives, compared)
        threshold, _ = best_f1_threshold(scores[tuning], labels[tuning])
        measured = np.zeros(len(scores), dtype=np.uint8)
        if not math.isnan(threshold):
            np.greater_equal(scores, threshold, out=measured.view(np.bool_))
            measured += 2
            measured[tuning] = 0
        draw, sums = self._draw(positives, tuned, compared), {}
        for g in compared if self.times is not None or draw[0] else ():
            rows = self.rows[g]
            packed = packed_rows(scores, labels, measured, rows)
            if self.times is None:
                key = (self.seed, name, self.groups.names[g])
                sums[g] = fixed_prevalence(packed, labels[rows], draw, key, choices.replicates)
            else:
                times = (self.times, self.totals[g])
                sums[g] = weighted_sums(packed, rows, measured, times, choices.ratio)
        why, values = {}, {}
        for metric in self.metrics:
            untuned = metric not in RANKED and math.isnan(threshold)
            nothing = "no positive to tune the threshold on" if untuned else ""
            found = np.full((len(next(iter(sums.values()), [[]])[0]) or 1, len(reasons)), np.nan)
            for g, some in sums.items():
                if not untuned:
                    found[:, g] = metric_of_sums(metric, some, choices.ratio)
            if self.times is None:
                known = (column[~np.isnan(column)] for column in found.T)
                means = [float(one.mean()) if len(one) else math.nan for one in known]
                found = np.concatenate([[means], found])
            values[metric] = found
            why[metric] = tuple(
                reason or nothing or ("the metric's denominator is 0" if math.isnan(value) else "")
                for reason, value in zip(reasons, found[0].tolist(), strict=True)
            )
        tuned_metrics = RANKED if math.isnan(threshold) else self.metrics
        usable = [one for one in self.metrics if compared and one in tuned_metrics]
        null = self._null(name, scores, labels, measured > 0, threshold, compared, usable)
        return Measured(positives, threshold, why, values, null)

    def _tuning_rows(
        self, labels: Booleans, positives: Integers, compared: list[int]
    ) -> tuple[Integers32, Integers]:
        """Return the rows that tune the threshold, and how many by group, negative and positive."""
        quota = np.zeros((len(positives), 2), dtype=np.int64)
        if self.by_key is None or not compared:
            return np.empty(0, dtype=np.int32), quota
        counts = np.stack([self.groups.counts - positives, positives], axis=1)
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
        ratio, negatives = int(self.choices.prevalence_ratio), self.groups.counts - positives
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
        if not self.permutations or not metrics:
            return found
        rows = np.sort(np.concatenate([self.rows[g] for g in compared]))
        place = np.full(len(self.groups), -1, dtype=np.int32)
        place[compared] = np.arange(len(compared))
        levels = tuple(self.groups.levels[g] for g in compared)
        only = Groups(self.groups.attributes, levels, place[self.codes[rows]], self.groups.min_size)
        units = self.units and Units(self.units.codes[rows], self.units.names)
        seed = int(stream(self.seed, "concept", name).integers(2**62))
        # Metrics of one kind share cells and what is exchangeable.
        for ranked, null in {(one in RANKED, null_of(one, self.choices)) for one in metrics}:
            same = [
                one
                for one in metrics
                if (one in RANKED, null_of(one, self.choices)) == (ranked, null)
            ]
            cells = ranked_cells(scores[rows], labels[rows])
            if not ranked:
                cells = threshold_cells(scores[rows], labels[rows], threshold, used[rows])
            cell = np.arange(cells.size)
            # At a threshold, cells 0 and 2 are predicted positive.
            strata = cell % 2 if null == "prediction" else np.zeros_like(cell)
            if null == "class":
                strata = (cell >= cells.positive).astype(np.int64)
            drawn = permuted(
                same, self.choices.ratio, cells, strata, only, units, self.permutations, seed
            )
            for metric, some in zip(same, drawn, strict=True):
                found[metric] = np.full((len(some), len(self.groups)), np.nan)
                found[metric][:, compared] = some
        return found


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
    metrics = tuple(dict.fromkeys(metrics))
    hall, bootstrap = choices.prevalence == "hall", isinstance(resampling, Bootstrap)
    codes = np.ascontiguousarray(data.groups.codes, dtype=np.int32)
    rows = tuple(np.flatnonzero(codes == g).astype(np.int32) for g in range(len(data.groups)))
    by_key = None
    if not {*metrics} <= {*RANKED}:
        key = unit_uniforms(seed, "validation", data.keys, range(1))[0]
        by_key = np.argsort(key, kind="stable").astype(np.int32)
    # The same for every concept: means over concepts keep what those of one image have in common.
    times = None if hall else unit_times(data.keys, choices.replicates * bootstrap, seed)
    totals = [] if times is None else [times[r].sum(axis=0, dtype=np.int32) for r in rows]
    many = permutations_of(resampling, rows=len(data.rows), concepts=len(data.names))
    shared = Shared(
        metrics, choices, data.groups, codes, rows, by_key, times, totals, data.units,
        0 if hall else many, seed,
    )  # fmt: skip

    def measure(start: int) -> list[Measured]:
        block = (data.names[start : start + BLOCK], *data.block(start, start + BLOCK))
        return [
            shared.measure(name, scores.astype(np.float64), np.ascontiguousarray(labels))
            for name, scores, labels in zip(*block, strict=True)
        ]

    blocks = each(measure, range(0, len(data.names), BLOCK))
    found = [one for block in blocks for one in block]
    results = {}
    for metric in metrics:
        boot = None
        if hall or bootstrap:
            boot = np.full((choices.replicates, len(found), len(data.groups)), np.nan)
            for index, one in enumerate(found):
                # Where no group takes part there are no replicates.
                if len(one.values[metric]) > 1:
                    boot[:, index] = one.values[metric][1:]
        results[metric] = ConceptResults(
            replace(choices, metric=metric),
            data.names,
            data.groups,
            np.stack([one.values[metric][0] for one in found]),
            np.stack([one.positives for one in found]),
            tuple(one.reasons[metric] for one in found),
            boot,
            tuple(one.null.get(metric) for one in found),
            np.array([math.nan if metric in RANKED else one.threshold for one in found]),
            NULLS[null_of(metric, choices)],
            level_of(resampling),
            resolution_of(resampling),
            data.excluded,
            "row" if data.units is None else "unit",
        )
    return results


def permutations_of(resampling: Bootstrap | Permutation | None, *, rows: int, concepts: int) -> int:
    """Return how many permutations each concept gets; 0 where they would take too long."""
    if resampling is None:
        return 0
    if isinstance(resampling, Permutation):
        return resampling.replicates
    asked = max(resampling.permutations, math.ceil(1.0 / resampling.resolution))
    return asked if asked * rows * concepts <= MAX_SHUFFLED_ROWS else 0
