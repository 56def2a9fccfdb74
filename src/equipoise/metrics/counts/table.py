"""Counts of predictions by true class, predicted label and group.

They are the sufficient statistic of every metric of predictions: rows are encoded once, and all
classes, groups, intersections, bootstrap replicates and permutations come from one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, TypeVar

import numpy as np

from equipoise.core import Booleans, Floats, Groups, InputError, Integers, Integers32, Words, encode
from equipoise.core.labels import Encoded, check_unmasked, coded, label_array, natural
from equipoise.metrics.counts.tally import NOTHING, check_lengths, count_cells
from equipoise.stats.draws import ItemSampler, Sampler, TableSampler
from equipoise.stats.streams import place_keys, unit_keys

# Probabilities of a row that were rounded or held in half precision.
SUM_TOLERANCE = 0.01
# Largest weight; squares and sums of weights up to it, and of their inverses, stay exact enough.
MOST_WEIGHT = 1e9


def _labels(
    y_pred: Any, weights: Any, true_names: tuple[str, ...]
) -> tuple[Integers32, tuple[str, ...], Floats]:
    """Return label codes (n, k), their names, and weights (n, k)."""
    known = isinstance(y_pred, Encoded)
    array = y_pred.codes if known else label_array(y_pred, what="y_pred")
    single = array.ndim == 1 and weights is None
    shape = (len(array), 1) if single else array.shape
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"y_pred: shape {shape}; expected (n, k) with k >= 1")
    if array.dtype.kind == "f" and weights is None and not single:
        if shape[1] != len(true_names):
            raise InputError(
                f"y_pred: probabilities of {shape[1]} classes; expected a column for each of "
                f"the {len(true_names)} sorted classes of y_true. Pass labels with weights= instead"
            )
        spread = _weights(array, "y_pred", shape)
        near = np.isclose(spread.sum(axis=1), 1.0, rtol=0.0, atol=SUM_TOLERANCE)
        _check_rows(near, "y_pred", "probabilities that sum to 1")
        return np.tile(np.arange(shape[1], dtype=np.int32), (len(array), 1)), true_names, spread
    codes, names = encode(y_pred if known else array.ravel(), what="y_pred")
    if weights is None:
        return codes.reshape(shape), names, np.full(shape, 1.0 / shape[1])
    spread = _weights(weights, "weights", shape)
    largest = spread.max(axis=1)
    if len(largest) and not largest.any():
        raise InputError("weights: all are 0; expected a row with weight")
    bounded = (largest <= MOST_WEIGHT) & ((largest == 0) | (largest >= 1 / MOST_WEIGHT))
    _check_rows(bounded, "weights", f"0, or {1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}")
    return codes.reshape(shape), names, spread


def _weights(weights: Any, what: str, shape: tuple[int, ...]) -> Floats:
    check_unmasked(weights, what=what)
    try:
        array = np.asarray(weights)
        spread = array.astype(np.float64, casting="unsafe" if array.dtype.kind in "OU" else "safe")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}: expected numbers of shape {shape}, as y_pred") from None
    if spread.shape != shape:
        raise InputError(f"{what}: shape {spread.shape}; expected {shape}, as y_pred")
    finite = (np.isfinite(spread) & (spread >= 0)).all(axis=1)
    _check_rows(finite, what, "finite numbers of at least 0")
    return spread


def _check_rows(right: Any, what: str, expected: str) -> None:
    if not right.all():
        raise InputError(f"{what}, row {int(np.argmin(right)) + 1}: expected {expected}")


def units_of(units: Any, n: int, kept: Booleans) -> Encoded | None:
    """Encode the units of the rows that are kept, None without units.

    A row of code -1 is a unit of its own.

    Raises
    ------
    InputError
        When `units` has another length than `n`.
    """
    if units is None:
        return None
    codes, names = encode(units, what="units")
    if len(codes) != n:
        raise InputError(f"units: {len(codes)} rows; expected {n}")
    return Encoded(*encode(Encoded(codes[kept], names)))


def whole_units(codes: Integers | Integers32, names: tuple[str, ...]) -> tuple[Integers, Words]:
    """Make rows without a unit, -1, units of their own; return units and the keys of all units."""
    units, alone = codes.astype(np.int64), np.flatnonzero(codes < 0)
    units[alone] = len(names) + np.arange(len(alone))
    return units, np.append(unit_keys(names), place_keys(0, len(alone)))


def item_sampler(
    outcome: Integers,
    spread: Floats | None,
    groups: Groups,
    units: Encoded | None,
    shape: tuple[int, int],
) -> ItemSampler:
    """Return the sampler of rows with outcomes and weights (n, k); None weighs every entry 1."""
    n, width = outcome.shape
    weights = np.ones(outcome.shape) if spread is None else spread
    owners = units or Encoded(np.full(n, -1, dtype=np.int32), ())
    owner = owners.codes.astype(np.int64)
    # Rows in an order of their content alone, so that permuted rows and renamed groups give the
    # same draws.
    content = [*weights.T[::-1], *outcome.T[::-1]]
    by_content = np.lexsort([*content, owner])
    # Groups rank by what their rows hold, not by their names.
    codes, digests = groups.codes[by_content], []
    rows = by_content[np.argsort(codes, kind="stable")]
    for members in np.split(rows, np.cumsum(groups.counts)[:-1]):
        held = blake2b()
        for column in (owner, *outcome.T, *weights.T):
            held.update(column[members].tobytes())
        digests.append(held.digest())
    rank = np.empty(len(digests), dtype=np.int64)
    rank[sorted(range(len(digests)), key=digests.__getitem__)] = np.arange(len(digests))
    order = np.lexsort([*content, rank[groups.codes], owner])
    unit, keys = whole_units(owner[order], owners.vocabulary)
    return ItemSampler(
        outcome[order].ravel().astype(np.int64),
        np.repeat(np.arange(n), width),
        weights[order].ravel(),
        groups.codes[order].astype(np.int64),
        unit,
        keys,
        shape,
    )


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
    truth: Integers
    prediction: Integers
    sampler: Sampler
    excluded: Mapping[str, int]
    unit: str

    @property
    def table(self) -> Floats:
        """Weights, shape (outcomes, groups); whole counts for top-1 predictions."""
        return self.sampler.table

    @cached_property
    def observed(self) -> Floats:
        """The table as the only one of its kind, (1, outcomes, groups); always the same object."""
        return self.table[None]

    @property
    def independent(self) -> bool:
        """Whether rows are independent and of unit weight."""
        return isinstance(self.sampler, TableSampler)

    @cached_property
    def targets(self) -> Integers:
        """Indices of the classes that occur as truth."""
        return np.unique(self.truth)

    @cached_property
    def determines_target(self) -> bool:
        """Whether every group holds one true class only, and there are several classes."""
        by_class = self.by_truth(self.observed)[0] > 0
        return len(self.targets) > 1 and bool((by_class.sum(axis=0) <= 1).all())

    def strata(self, null: Null) -> Integers:
        """Stratum of each outcome within which a null hypothesis exchanges groups."""
        if null == "rows":
            return np.zeros_like(self.truth)
        return self.truth if null == "class" else self.prediction

    def by_truth(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over predictions: (r, classes, groups)."""
        return sum_by(self.truth, len(self.classes), tables)

    def by_prediction(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over true classes: (r, classes, groups)."""
        return sum_by(self.prediction, len(self.classes), tables)

    def hits(self, tables: Floats) -> Floats:
        """Weights of right predictions per class: (r, classes, groups)."""
        out = np.zeros((len(tables), len(self.classes), tables.shape[2]))
        out[:, self.truth[self.right]] = tables[:, self.right]
        return out

    @cached_property
    def right(self) -> Integers:
        """Outcomes whose predicted label is the true class."""
        return np.flatnonzero(self.truth == self.prediction)

    def once(self, tables: Floats, make: Callable[..., Made], *arguments: Any) -> Made:
        """Return what `make` makes of tables, made once while they are the same object.

        Measures that share draws share what they sum; that of the observed table is kept.
        """
        key = (make, arguments, tables is self.observed)
        if self._latest.get(key, (None,))[0] is not tables:
            self._latest[key] = (tables, make(self, tables, *arguments))
        shared: Made = self._latest[key][1]
        return shared

    @cached_property
    def _latest(self) -> dict[Any, tuple[Any, ...]]:
        return {}


def sum_by(codes: Integers, size: int, tables: Floats) -> Floats:
    """Sum outcomes that share a code: tables (r, outcomes, groups) to (r, size, groups)."""
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    out = np.zeros((len(tables), size, tables.shape[2]))
    if len(present):
        ordered = tables[:, order] if (np.diff(codes) < 0).any() else tables
        out[:, present] = np.add.reduceat(ordered, first, axis=1)
    return out


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
    column = isinstance(y_pred, Encoded) or hasattr(y_pred, "__arrow_c_array__")
    column = column or hasattr(y_pred, "__arrow_c_stream__")
    labels = y_pred if column else label_array(y_pred, what="y_pred")
    shape = getattr(labels.codes if isinstance(labels, Encoded) else labels, "shape", (0,))
    if len(shape) > 1 or weights is not None or units is not None:
        labels = coded(labels) or labels
        return _counted_rows(y_true, labels, Groups.of(groups), weights, units)
    counted, names, keys, table, excluded = count_cells(y_true, labels, groups)
    sampler = TableSampler(table.astype(np.float64))
    return Counts(counted, names, *np.divmod(keys, len(names)), sampler, excluded, "row")


def _counted_rows(y_true: Any, y_pred: Any, groups: Groups, weights: Any, units: Any) -> Counts:
    """Count rows that are not independent, or that have several labels."""
    truth, true_names = encode(y_true, what="y_true")
    labels, label_names, spread = _labels(y_pred, weights, true_names)
    check_lengths(len(truth), y_pred=len(labels), groups=len(groups.codes))
    names, (true_codes, label_codes) = recoded((truth, true_names), (labels, label_names))
    no_truth, no_label, no_group = truth < 0, (labels < 0).any(axis=1), groups.codes < 0
    complete = ~(no_truth | no_label | no_group)
    kept = complete & spread.any(axis=1)
    if not kept.any():
        raise InputError(NOTHING)
    reasons = {
        "missing true class": no_truth,
        "missing prediction": no_label & ~no_truth,
        "missing group": no_group & ~no_label & ~no_truth,
        "no weight": complete & ~kept,
    }
    packed = true_codes[kept, None] * len(names) + label_codes[kept]
    keys, outcome = np.unique(packed, return_inverse=True)
    counted, owners = groups.take(kept), units_of(units, len(truth), kept)
    outcome = outcome.reshape(packed.shape)
    sampler = item_sampler(outcome, spread[kept], counted, owners, (len(keys), len(counted)))
    excluded = {name: int(rows.sum()) for name, rows in reasons.items() if rows.any()}
    unit = "row" if units is None else "unit"
    return Counts(counted, names, *np.divmod(keys, len(names)), sampler, excluded, unit)


def recoded(
    *columns: tuple[Integers | Integers32, tuple[str, ...]],
) -> tuple[tuple[str, ...], list[Integers]]:
    """Return the sorted names of all columns, and codes into them; -1 stays."""
    among = tuple(sorted({name for _, names in columns for name in names}, key=natural))
    place = {name: index for index, name in enumerate(among)}
    lookups = [np.array([*map(place.__getitem__, names), -1]) for _, names in columns]
    return among, [look[codes] for look, (codes, _) in zip(lookups, columns, strict=True)]
