"""Concepts read, checked and measured by several metrics in one pass, spread over threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from numbers import Real
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.counts import Units, units_of
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
from equipoise.stats.resampling import Bootstrap, Permutation, level_of, resolution_of
from equipoise.stats.streams import stream, unit_keys, unit_times, unit_uniforms
from equipoise.stats.threads import each

Array = npt.NDArray[Any]


@runtime_checkable
class NamedColumns(Protocol):
    """Columns that are read one at a time, such as `equipoise.data.Matrix`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    def column(self, name: str) -> Array:
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
    values: Array | NamedColumns = field(repr=False)
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
            length = len(values.column(names[0])) if names else 0
            return cls(what, values, _filled(what, (length, len(names))), names)
        try:
            array = np.asarray(values)
        except ValueError:
            raise InputError(f"{what}: rows of different lengths; expected (n, concepts)") from None
        array = array[:, None] if array.ndim == 1 else array
        _check_type(what, array)
        return cls(what, array, _filled(what, array.shape), None)

    def whole(self) -> Array:
        """Return all columns, shape (n, concepts)."""
        return (
            self.values if isinstance(self.values, np.ndarray) else self.block(0, self.shape[1]).T
        )

    def block(self, start: int, stop: int) -> Array:
        """Return some columns, one after the other, shape (stop - start, n)."""
        if isinstance(self.values, np.ndarray):
            return np.ascontiguousarray(self.values[:, start:stop].T)
        names = (self.names or ())[start:stop]
        return np.stack([self._column(name) for name in names])

    def _column(self, name: str) -> Array:
        column = np.asarray(self.values.column(name))  # type: ignore[union-attr]
        _check_type(f"{self.what}, column {name!r}", column)
        if column.shape != self.shape[:1]:
            raise InputError(
                f"{self.what}, column {name!r}: shape {column.shape}; expected {self.shape[:1]}, "
                f"as column {(self.names or ())[0]!r}"
            )
        return column


def check_scores(block: Array, names: Sequence[str], rows: npt.NDArray[np.int64]) -> None:
    """Raise an InputError where a score, shape (concepts, n), is not finite."""
    for values, name in zip(block, names, strict=True):
        wrong = ~np.isfinite(values)
        if wrong.any():
            raise InputError(
                f"scores: NaN or infinite for concept {name!r} in row {rows[np.argmax(wrong)]}; "
                "expected finite numbers"
            )


def flags(block: Array, names: Sequence[str], rows: npt.NDArray[np.int64]) -> Flags:
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


def _filled(what: str, shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"{what}: shape {shape}; expected (n, concepts), neither of them 0")
    return shape[0], shape[1]


def _check_type(what: str, array: Array) -> None:
    # An empty or ragged matrix has no type worth telling.
    if array.size and array.ndim <= 2 and array.dtype.kind not in "fiub":
        raise InputError(f"{what}: type {array.dtype}; expected numbers")


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
        if not (_is_number(self.prevalence_ratio) and self.prevalence_ratio > 0):
            raise InputError(
                f"prevalence_ratio={self.prevalence_ratio!r}: expected a finite number above 0"
            )
        if self.prevalence == "hall" and self.prevalence_ratio != int(self.prevalence_ratio):
            raise InputError(
                f"prevalence_ratio={self.prevalence_ratio}: expected a whole number of negatives "
                'to draw for each positive; prevalence="weighted" takes any'
            )
        for name in ("min_positives", "replicates"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 1):
                raise InputError(f"{name}={value!r}: expected at least 1")
        if not (_is_number(self.validation) and 0 < self.validation < 1):
            raise InputError(f"validation={self.validation!r}: expected a share between 0 and 1")

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
    rows: npt.NDArray[np.int64] = field(repr=False)
    groups: Groups
    names: tuple[str, ...]
    units: Units | None
    keys: npt.NDArray[np.uint64] = field(repr=False)
    excluded: dict[str, int]

    def block(self, start: int, stop: int) -> tuple[npt.NDArray[Any], Flags]:
        """Return scores and labels of some concepts, each (concepts, m), checked.

        Raises
        ------
        InputError
            When a score is not finite or a label is not 0 or 1.
        """
        names = self.names[start:stop]
        scores = self._kept(self.scores.block(start, stop))
        check_scores(scores, names, self.rows)
        return scores, flags(self._kept(self.labels.block(start, stop)), names, self.rows)

    def _kept(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return block if len(self.rows) == block.shape[1] else block[:, self.rows]


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
    found = Groups.of(groups)
    n = values.shape[0]
    if len(found.codes) != n:
        raise InputError(f"groups: {len(found.codes)} rows; expected {n}, as in scores")
    _one_of("unlabelled", unlabelled, ("keep", "leave out"))
    bare = _bare(truth, names) if unlabelled == "leave out" else np.zeros(n, dtype=np.bool_)
    kept = (found.codes >= 0) & ~bare
    if not kept.any():
        raise InputError("groups: no row is left; expected rows with a group and a label")
    counts = {"missing group": found.n_missing, "no label": int((bare & (found.codes >= 0)).sum())}
    rows = np.flatnonzero(kept)
    return Concepts(
        values,
        truth,
        rows,
        found.take(rows),
        names,
        _units(units, kept),
        _keys(units, rows, n),
        {reason: count for reason, count in counts.items() if count},
    )


def _names(concepts: Sequence[str] | None, scores: Source, labels: Source) -> tuple[str, ...]:
    own = scores.names or labels.names
    if scores.names and labels.names and scores.names != labels.names:
        a, b = next(
            pair for pair in zip(scores.names, labels.names, strict=True) if len({*pair}) > 1
        )
        raise InputError(f"labels: column {b!r}; expected {a!r}, the concepts as in scores")
    many = scores.shape[1]
    names = tuple(map(str, (own or range(many)) if concepts is None else concepts))
    if len(names) != many:
        raise InputError(f"concepts: {len(names)} names; expected {many}, the columns of scores")
    if len(set(names)) < many:
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"concepts: {twice} named more than once; expected distinct names")
    return names


def _bare(labels: Source, names: tuple[str, ...]) -> Flags:
    """Whether a row has no positive label."""
    rows = np.arange(labels.shape[0])
    bare = np.ones(len(rows), dtype=np.bool_)
    for start in range(0, len(names), BLOCK):
        stop = start + BLOCK
        bare &= ~flags(labels.block(start, stop), names[start:stop], rows).any(axis=0)
    return bare


def _units(units: Any, kept: Flags) -> Units | None:
    if units is not None and len(units) != len(kept):
        raise InputError(f"units: {len(units)} rows; expected {len(kept)}, as in scores")
    return units_of(units, len(kept), kept)


def _keys(units: Any, rows: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.uint64]:
    keys = rows.astype(np.uint64)
    found = units_of(units, n, np.ones(n, dtype=np.bool_))
    if found is None:
        return keys
    codes = found.codes[rows]
    known = codes >= 0
    keys[known] = unit_keys(found.names)[codes[known]]
    return keys


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


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

    def shared(self, concept: int | None, g: int, h: int) -> Flags:
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
