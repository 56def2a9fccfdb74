"""Scores and labels of concepts, checked once at the edge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.counts import Units, units_of
from equipoise.metrics.scores.cells import RANKED, Flags, Metric
from equipoise.stats.streams import unit_keys

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
