"""Counts of predictions by true class, predicted label and group.

They are the sufficient statistic of every metric of predictions: rows are encoded once, and all
classes, groups, intersections, bootstrap replicates and permutations come from one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from equipoise.core.groups import Groups
from equipoise.core.labels import Encoded, coded, encode, label_array, natural
from equipoise.metrics.cells import Cells, check_any, check_lengths
from equipoise.metrics.items import Units, item_sampler, labels_of, units_of
from equipoise.stats.draws import Sampler, TableSampler

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Null = Literal["rows", "class", "prediction"]
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class Counts:
    """A table of outcomes (true class with predicted label) by group.

    Attributes
    ----------
    groups : Groups
        The groups of the rows that were counted.
    classes : tuple of str
        Every label that occurs as truth or prediction, sorted.
    truth, prediction : ndarray of int64, shape (outcomes,)
        Indices into `classes`; outcomes are sorted by truth, then prediction.
    sampler : Sampler
        Holds the table (outcomes, groups) and draws others like it.
    excluded : mapping of str to int
        Rows that were not counted, by reason.
    unit : str
        "row", or "unit" where rows are clustered.
    """

    groups: Groups
    classes: tuple[str, ...]
    truth: Indices
    prediction: Indices
    sampler: Sampler
    excluded: Mapping[str, int]
    unit: str

    @property
    def table(self) -> Floats:
        """Weights, shape (outcomes, groups); whole counts for top-1 predictions."""
        return self.sampler.table

    @cached_property
    def observed(self) -> Floats:
        """The table as the only one of its kind, shape (1, outcomes, groups).

        Always the same object, so that what is made of it can be shared, see `once`.
        """
        return self.table[None]

    @property
    def independent(self) -> bool:
        """Whether rows are independent and of unit weight."""
        return isinstance(self.sampler, TableSampler)

    @cached_property
    def targets(self) -> Indices:
        """Indices of the classes that occur as truth."""
        return np.unique(self.truth)

    @cached_property
    def determines_target(self) -> bool:
        """Whether every group holds one true class only, and there are several classes."""
        by_class = self.by_truth(self.table[None])[0] > 0
        return len(self.targets) > 1 and bool((by_class.sum(axis=0) <= 1).all())

    def strata(self, null: Null) -> Indices:
        """Stratum of each outcome within which a null hypothesis exchanges groups."""
        if null == "rows":
            return np.zeros_like(self.truth)
        return self.truth if null == "class" else self.prediction

    def by_truth(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over predictions: (r, classes, groups)."""
        return self._truths(tables)

    def by_prediction(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over true classes: (r, classes, groups)."""
        return self._predictions(tables)

    def hits(self, tables: Floats) -> Floats:
        """Weights of right predictions per class: (r, classes, groups)."""
        out = np.zeros((len(tables), len(self.classes), tables.shape[2]))
        out[:, self.truth[self._right]] = tables[:, self._right]
        return out

    def once(self, tables: Floats, make: Callable[[Counts, Floats], Made]) -> Made:
        """Return what `make` makes of tables, made once while they are the same object.

        Measures that share draws share what they sum.
        """
        seen, made = self._latest.get(make, (None, None))
        if seen is not tables:
            made = make(self, tables)
            self._latest[make] = (tables, made)
        shared: Made = made
        return shared

    @cached_property
    def _latest(self) -> dict[Any, tuple[Any, Any]]:
        return {}

    @cached_property
    def _right(self) -> Indices:
        return np.flatnonzero(self.truth == self.prediction)

    @cached_property
    def _truths(self) -> SumBy:
        return SumBy(self.truth, len(self.classes))

    @cached_property
    def _predictions(self) -> SumBy:
        return SumBy(self.prediction, len(self.classes))


@dataclass(frozen=True, eq=False)
class SumBy:
    """Sums of outcomes that share a code.

    Attributes
    ----------
    codes : ndarray of int64, shape (outcomes,)
    size : int
        How many codes there are.
    """

    codes: Indices
    size: int

    def __call__(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups): (r, size, groups)."""
        order, present, first = self._runs
        out = np.zeros((len(tables), self.size, tables.shape[2]))
        if len(present):
            ordered = tables if order is None else tables[:, order]
            out[:, present] = np.add.reduceat(ordered, first, axis=1)
        return out

    @cached_property
    def _runs(self) -> tuple[Indices | None, Indices, Indices]:
        """Order of outcomes (None where they are in order), codes, and where each begins."""
        order = np.argsort(self.codes, kind="stable")
        present, first = np.unique(self.codes[order], return_index=True)
        ordered = bool((np.diff(self.codes) >= 0).all())
        return None if ordered else order, present, first


def sum_by(tables: Floats, codes: Indices, size: int) -> Floats:
    """Sum tables (r, outcomes, groups) over outcomes of one code: (r, size, groups)."""
    return SumBy(codes, size)(tables)


def count(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    weights: Any = None,
    units: Any = None,
) -> Counts:
    """Count rows by true class, predicted label and group.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True classes. None, NaN and "" are missing.
    y_pred : array-like, shape (n,) or (n, k)
        Predicted labels; or the k best labels, each counting 1/k; or, as floats of shape
        (n, classes), probabilities of the sorted classes of `y_true` (soft counts).
    groups : array-like (n,), mapping, or Groups
        See `Groups.of`.
    weights : array-like, shape (n, k), optional
        Weight of each of the k predictions of a row, from 1e-9 to 1e9; default 1/k. Predictions
        of weight 0 don't count, and a row without weight is left out.
    units : array-like, shape (n,), optional
        Names of the units that repeat (image, person, prompt, ...): rows of a unit are
        resampled together.

    Raises
    ------
    InputError
        When lengths differ, probabilities or weights are negative or not finite, weights are out
        of range, or nothing is left.
    """
    # Arrays of Arrow have no shape: they are columns.
    known = isinstance(y_pred, Encoded) or hasattr(y_pred, "__arrow_c_array__")
    known = known or hasattr(y_pred, "__arrow_c_stream__")
    labels = y_pred if known else label_array(y_pred, what="y_pred")
    shape = getattr(labels.codes if isinstance(labels, Encoded) else labels, "shape", (0,))
    if len(shape) == 1 and weights is None and units is None:
        cells = Cells.of(y_true, labels, groups)
        return Counts(
            cells.groups,
            cells.classes,
            cells.truth,
            cells.prediction,
            TableSampler(cells.table.astype(np.float64)),
            cells.excluded,
            "row",
        )
    return _count_items(y_true, coded(labels) or labels, groups, weights, units)


def _count_items(y_true: Any, y_pred: Any, groups: Any, weights: Any, units: Any) -> Counts:
    truth, true_names = encode(y_true, what="y_true")
    grouped = Groups.of(groups)
    labels, label_names, spread = labels_of(y_pred, weights, true_names)
    check_lengths(len(truth), y_pred=len(labels), groups=len(grouped.codes))
    names = tuple(sorted({*true_names, *label_names}, key=natural))
    place = {name: index for index, name in enumerate(names)}
    lookup_truth = np.array([place[name] for name in true_names] + [-1], dtype=np.int64)
    lookup_label = np.array([place[name] for name in label_names] + [-1], dtype=np.int64)
    true_codes, label_codes = lookup_truth[truth], lookup_label[labels]
    weighted = np.ones(len(truth), dtype=bool)
    if spread is not None:
        weighted = np.asarray(spread.any(axis=1))
    kept, excluded = _complete(true_codes, label_codes, grouped, weighted)
    return _tabulate(
        true_codes[kept],
        label_codes[kept],
        grouped.take(kept),
        names,
        None if spread is None else spread[kept],
        units_of(units, len(truth), kept),
        excluded,
    )


def _complete(
    truth: Indices, labels: Indices, groups: Groups, weighted: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], Mapping[str, int]]:
    no_truth, no_label, no_group = truth < 0, (labels < 0).any(axis=1), groups.codes < 0
    complete = ~(no_truth | no_label | no_group)
    kept = complete & weighted
    check_any(kept)
    reasons = {
        "missing true class": no_truth,
        "missing prediction": no_label & ~no_truth,
        "missing group": no_group & ~no_label & ~no_truth,
        "no weight": complete & ~weighted,
    }
    return kept, {name: int(rows.sum()) for name, rows in reasons.items() if rows.any()}


def _tabulate(
    truth: Indices,
    labels: Indices,
    groups: Groups,
    names: tuple[str, ...],
    spread: Floats | None,
    units: Units | None,
    excluded: Mapping[str, int],
) -> Counts:
    packed = truth[:, None] * len(names) + labels
    keys, outcome = np.unique(packed, return_inverse=True)
    outcome = outcome.reshape(packed.shape)
    sampler = item_sampler(outcome, spread, groups, units, (len(keys), len(groups)))
    unit = "row" if units is None else "unit"
    return Counts(groups, names, keys // len(names), keys % len(names), sampler, excluded, unit)
