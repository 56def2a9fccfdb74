"""Scores and labels of concepts, checked once at the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import RANKED, Flags, Floats, Metric
from equipoise.metrics.items import Units, units_of
from equipoise.stats.streams import unit_keys

Prevalence = Literal["weighted", "hall", "observed"]


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
        if not self.prevalence_ratio > 0:
            raise InputError(f"prevalence_ratio={self.prevalence_ratio}: expected a number above 0")
        if self.prevalence == "hall" and self.prevalence_ratio != int(self.prevalence_ratio):
            raise InputError(
                f"prevalence_ratio={self.prevalence_ratio}: expected a whole number of negatives "
                'to draw for each positive; prevalence="weighted" takes any'
            )
        for name in ("min_positives", "replicates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: expected at least 1")
        if not 0 < self.validation < 1:
            raise InputError(f"validation={self.validation}: expected a share between 0 and 1")

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
    """Scores and labels of the rows that have a group.

    Attributes
    ----------
    scores : ndarray, shape (n, concepts)
    labels : ndarray of bool, shape (n, concepts)
    groups : Groups
    names : tuple of str
        Of the concepts.
    units : Units or None
    keys : ndarray of uint64, shape (n,)
        Key of each row's unit in random streams; of its place where there are no units, so that
        models and versions that share rows share draws.
    excluded : dict of str to int
    """

    scores: npt.NDArray[Any] = field(repr=False)
    labels: Flags = field(repr=False)
    groups: Groups
    names: tuple[str, ...]
    units: Units | None
    keys: npt.NDArray[np.uint64] = field(repr=False)
    excluded: dict[str, int]

    def column(self, concept: int) -> tuple[Floats, Flags]:
        """Return the scores and labels of one concept, each (n,)."""
        scores = np.ascontiguousarray(self.scores[:, concept], dtype=np.float64)
        return scores, np.ascontiguousarray(self.labels[:, concept])


def read_concepts(
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    concepts: Sequence[str] | None = None,
    units: Any = None,
    unlabelled: Literal["keep", "leave out"] = "keep",
) -> Concepts:
    """Check scores, labels and groups, and leave out the rows that have no group.

    Raises
    ------
    InputError
        When shapes differ, a score is not finite, a label is not 0 or 1, names repeat, or no row
        is left.
    """
    values, truth = _matrix(scores, "scores"), _matrix(labels, "labels")
    if values.shape != truth.shape:
        raise InputError(
            f"labels: shape {truth.shape}; expected {values.shape}, one column per concept as in "
            "scores"
        )
    names = _names(concepts, values.shape[1])
    _check_scores(values, names)
    truth = _flags(truth, names)
    found = Groups.of(groups)
    n = len(values)
    if len(found.codes) != n:
        raise InputError(f"groups: {len(found.codes)} rows; expected {n}, as in scores")
    _one_of("unlabelled", unlabelled, ("keep", "leave out"))
    bare = ~truth.any(axis=1) if unlabelled == "leave out" else np.zeros(n, dtype=np.bool_)
    kept = (found.codes >= 0) & ~bare
    if not kept.any():
        raise InputError("groups: no row is left; expected rows with a group and a label")
    counts = {"missing group": found.n_missing, "no label": int((bare & (found.codes >= 0)).sum())}
    rows = np.flatnonzero(kept)
    chosen = slice(None) if kept.all() else rows
    return Concepts(
        values[chosen],
        truth[chosen],
        found.take(rows),
        names,
        _units(units, kept),
        _keys(units, rows, n),
        {reason: count for reason, count in counts.items() if count},
    )


def _matrix(values: Any, what: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what}: rows of different lengths; expected (n, concepts)") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{what}: shape {array.shape}; expected (n, concepts), neither of them 0")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what}: type {array.dtype}; expected numbers")
    return array


def _names(concepts: Sequence[str] | None, many: int) -> tuple[str, ...]:
    names = tuple(map(str, range(many) if concepts is None else concepts))
    if len(names) != many:
        raise InputError(f"concepts: {len(names)} names; expected {many}, the columns of scores")
    if len(set(names)) < many:
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"concepts: {twice} named more than once; expected distinct names")
    return names


def _check_scores(values: npt.NDArray[Any], names: tuple[str, ...]) -> None:
    for index, name in enumerate(names):
        wrong = ~np.isfinite(values[:, index])
        if wrong.any():
            raise InputError(
                f"scores: NaN or infinite for concept {name!r} in row {int(np.argmax(wrong))}; "
                "expected finite numbers"
            )


def _flags(values: npt.NDArray[Any], names: tuple[str, ...]) -> Flags:
    if values.dtype.kind == "b":
        return values
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise InputError(
            f"labels: {values[row, column]} for concept {names[column]!r} in row {row}; "
            "expected 0 or 1"
        )
    return np.asarray(values == 1)


def _units(units: Any, kept: Flags) -> Units | None:
    if units is not None and len(units) != len(kept):
        raise InputError(f"units: {len(units)} rows; expected {len(kept)}, as in scores")
    return units_of(units, len(kept), kept)


def _keys(units: Any, rows: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.uint64]:
    found = units_of(units, n, np.ones(n, dtype=np.bool_))
    alone = [f"\x00{index}" for index in rows.tolist()]
    if found is None:
        return unit_keys(alone)
    codes = found.codes[rows].tolist()
    return unit_keys(
        [found.names[code] if code >= 0 else own for code, own in zip(codes, alone, strict=True)]
    )


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name}={value!r}: expected one of {', '.join(map(repr, allowed))}")
