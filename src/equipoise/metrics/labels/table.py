"""Counts of predictions by true class, predicted label and group.

They are the sufficient statistic of every metric of predictions: rows are encoded once, and all
classes, groups, intersections, bootstrap replicates and permutations come from one table.
Independent rows with one label each are counted without a number for each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import combinations_with_replacement, compress
from threading import get_ident
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from equipoise.core import (
    MIN_SIZE,
    Booleans,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Integers32,
    Labels,
    Strings,
    Words,
    encode,
    floats,
    integers,
    record,
    tally,
    unwarned,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.groups import CountedGroups
from equipoise.core.labels import Encoded, check_unmasked, coded, in_order, label_array
from equipoise.stats.compiled import compiled
from equipoise.stats.draws import ItemSampler, Sampler, TableSampler
from equipoise.stats.streams import place_keys, unit_keys
from equipoise.stats.threads import each, stretches, threads

Whole = NDArray[np.integer[Any]] | Booleans

ROW_COLUMNS = ("y_true", "y_pred", "groups")
"""Arguments with a value for each row."""
NO_ROWS = "no row has a true class, a prediction and a group; expected at least one"

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Passes over tables that add up outcomes; more are slower than sums of each code.
_MOST_ROUNDS = 64
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12
# Rows from which on the compiled pass, which takes half a second to load, is quicker than sorting,
# and than counts of all cells where these are no more than the rows.
_MANY, _MORE = 1 << 19, 1 << 21
# Pairs of labels whose places stay in the caches.
_MOST_PAIRS = 1 << 22
# Cells and rows of a table; more are counted by sorting.
_ROOM, _MOST_ROWS = 1 << 19, (1 << 16) - 1
# Rows that 32 bits can count.
_MOST = 1 << 31
# Rows whose labels are turned into 64-bit numbers at once.
_AT_ONCE = 1 << 20
# Rows that go through the steps of counting together.
_BLOCK = 1024
# Rows at each end of a column that tell its range before all are read: where the column is sorted,
# its least and greatest number are there.
_SAMPLE = 1 << 12


@record
class Column:
    """Labels as whole numbers from `low` on; the distance from it is a label's place.

    Attributes
    ----------
    values : ndarray of integers or booleans, shape (n,)
    low : int
    size : int
        Places there are, used or not; of a sampled column, those that its ends need.
    names : tuple of str or None
        What places 1, 2, ... stand for, sorted if `ordered`, place 0 being missing; None:
        the numbers themselves.
    """

    values: Whole
    low: int
    size: int
    names: Strings | None = None

    @classmethod
    def of(
        cls, labels: Labels, subject: str, *, ordered: bool = True, sampled: bool = False
    ) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Arrow encodes text in its own memory, which is that of polars and pandas, too. Names are
        sorted where they are `ordered`. A `sampled` column of numbers has the range of its first
        and last rows, and rows between may lie outside.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        array = coded(labels) or label_array(labels, subject=subject)
        if isinstance(array, Encoded) and not ordered:
            return cls.coded(array.codes, array.vocabulary)
        if isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iub":
            sample = np.append(array[:_SAMPLE], array[-_SAMPLE:]) if sampled else array
            low, high = (int(sample.min()), int(sample.max())) if len(sample) else (0, 0)
            size = high - low + 1
            if size <= max(_RANGE, len(array)) and -_EXACT < low <= high < _EXACT:
                return cls(array, low, size)
        return cls.coded(*encode(array, subject=subject))

    @classmethod
    def coded(cls, codes: Whole, names: Strings) -> Column:
        """Take codes into names, -1 being missing."""
        return cls(codes, -1, len(names) + 1, names)

    def __len__(self) -> int:
        return len(self.values)

    def places(self) -> Integers:
        """Return the place of each row."""
        return integers(self.values) - self.low

    def missing(self, places: Integers) -> Booleans:
        """Whether places stand for a missing label."""
        return np.asarray((places == 0) & (self.names is not None))

    def texts(self, places: Integers) -> list[str]:
        """Return the labels of places, none of them missing."""
        if self.names is not None:
            return [self.names[place - 1] for place in places.tolist()]
        return [str(value) for value in (places + self.low).astype(self.values.dtype).tolist()]


# Pairs of places that occur, sorted: the place in the first column times the size of the second,
# plus the place there; and how many rows have each place of the third column, (pairs, places).
Pairs = tuple[Integers, Any]


def _uncompiled_pairs(columns: Sequence[Column]) -> Pairs:
    """Count rows by sorting them, or all cells where there are fewer of these than of rows."""
    sizes = [column.size for column in columns]
    if (n_cells := math.prod(sizes)) >= 1 << 62:
        raise InputError(f"{sizes[0]} × {sizes[1]} × {sizes[2]} labels are too many to count")

    def count(rows: range) -> Pairs:
        keys = np.zeros(len(rows), dtype=np.int64)
        for column in columns:
            keys *= column.size
            values = column.values[rows.start : rows.stop]
            np.add(keys, values, out=keys, dtype=np.int64, casting="unsafe")
            keys -= column.low
        if n_cells <= len(keys):
            dense = np.bincount(keys, minlength=n_cells).reshape(-1, sizes[2])
            pairs = np.flatnonzero(dense.any(axis=1))
            return pairs, dense[pairs]
        # Half as many bits are sorted in half of the time.
        keys = keys.astype(np.uint32 if n_cells <= 1 << 32 else np.int64)
        keys.sort()
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        cells, counts = integers(keys[first]), np.diff(first, append=len(keys))
        pairs, place = np.unique(cells // sizes[2], return_inverse=True)
        table = np.zeros((len(pairs), sizes[2]))
        table[place, cells % sizes[2]] = counts
        return pairs, table

    return _merged_counts(each(count, stretches(len(columns[0]))), sizes[2])


def _counted_pairs(columns: Sequence[Column]) -> Pairs | None:
    """Count in one pass: a pair gets a row of the table where it is met first.

    None where that is no quicker than loading the compiled pass, for tables that are too large, and
    where a row lies outside of its column's range.
    """
    first, second, third = columns
    pairs, room = first.size * second.size, min(_ROOM // third.size, _MOST_ROWS)
    least = _MORE if pairs * third.size <= len(first) // threads() else _MANY
    if not least <= len(first) < _MOST or pairs > _MOST_PAIRS:
        return None
    ranges = np.array([(column.low, column.size) for column in columns])

    def count(rows: range) -> Pairs | None:
        row_of, keys = np.zeros(pairs, dtype=np.uint16), np.zeros(room, dtype=np.int64)
        table = np.zeros(room * third.size, dtype=np.int32)
        first_labels, second_labels, group = (
            np.ascontiguousarray(column.values[rows.start : rows.stop], dtype=np.int64)
            for column in columns
        )
        n_pairs = _add(first_labels, second_labels, group, ranges, row_of, keys, table)
        if n_pairs < 0:
            return None
        order = np.argsort(keys[:n_pairs])
        return keys[order], table.reshape(room, -1)[order]

    # As 64-bit numbers, columns of all rows would take more memory than they do.
    parts = [
        range(start, min(start + _AT_ONCE, rows.stop))
        for rows in stretches(len(first))
        for start in range(rows.start, rows.stop, _AT_ONCE)
    ]
    counted = [part for part in each(count, parts) if part is not None]
    return _merged_counts(counted, third.size) if len(counted) == len(parts) else None


def _merged_counts(blocks: Sequence[Pairs], places: int) -> Pairs:
    """Add the counts of stretches of rows."""
    all_keys = blocks[0][0]
    same_keys = all(np.array_equal(all_keys, keys) for keys, _ in blocks)
    all_keys = all_keys if same_keys else np.unique(np.concatenate([keys for keys, _ in blocks]))
    table = np.zeros((len(all_keys), places))
    for keys, counted in blocks:
        table[slice(None) if same_keys else np.searchsorted(all_keys, keys)] += counted
    return all_keys, table


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(
    f"int64({_LABELS}, {_LABELS}, {_LABELS}, int64[:, ::1], uint16[::1], int64[::1], int32[::1])"
)
def _add(
    first: Integers,
    second: Integers,
    third: Integers,
    ranges: Integers,
    row_of: NDArray[np.uint16],
    keys: Integers,
    table: Integers32,
) -> int:
    """Count rows; return how many pairs are known, -1 for a full table or a row out of range.

    `row_of` tells which row of the table a pair has, from 1 on; 0: it has none. Many rows go
    through each step together, which is several times as quick as one after the other.
    """
    low, other_low, group_low = ranges[:, 0]
    first_size, size, groups = ranges[:, 1].astype(np.uint64)
    places, n_pairs = np.empty(_BLOCK, dtype=np.uint32), 0
    for row in range(0, len(first), _BLOCK):
        end = row + _BLOCK
        first_labels, second_labels, group = first[row:end], second[row:end], third[row:end]
        outside = new = False
        for i in range(len(first_labels)):
            # What lies below a range is far without a sign.
            offset, second_offset = (
                np.uint64(first_labels[i] - low),
                np.uint64(second_labels[i] - other_low),
            )
            group_offset = np.uint64(group[i] - group_low)
            outside = bool(
                outside
                | (offset >= first_size)
                | (second_offset >= size)
                | (group_offset >= groups)
            )
            places[i] = np.uint32(offset) * np.uint32(size) + np.uint32(second_offset)
        if outside:
            return -1
        for i in range(len(first_labels)):
            new = bool(new | (row_of[places[i]] == 0))
        if new and n_pairs + _BLOCK > len(keys):
            return -1
        for i in range(len(first_labels) if new else 0):
            if row_of[places[i]] == 0:
                keys[n_pairs] = places[i]
                n_pairs += 1
                row_of[places[i]] = n_pairs
        for i in range(len(first_labels)):
            start = np.uint32(row_of[places[i]] - 1) * np.uint32(groups)
            table[start + np.uint32(group[i] - group_low)] += 1
    return n_pairs


def count_cells(
    y_true: Labels, y_pred: Labels, groups: GroupLabels
) -> tuple[Groups, Strings, Integers, Floats, dict[str, int]]:
    """Count independent rows of one label each, see `equipoise.metrics.labels.count`.

    Returns
    -------
    groups : Groups
        Of the rows that are counted.
    classes : tuple of str
        Every label that occurs, sorted.
    keys : ndarray of int64, shape (outcomes,)
        Index of the true class times the number of classes, plus that of the label; sorted.
    table : ndarray, shape (outcomes, groups)
        How many rows; whole numbers.
    excluded : dict of str to int
    """
    encoded_groups = Groups.of(groups) if isinstance(groups, Groups | Mapping) else None
    columns = _encode_columns(y_true, y_pred, groups)
    if encoded_groups:
        columns.append(Column.coded(encoded_groups.codes, encoded_groups.names))
    check_lengths(dict(zip(ROW_COLUMNS, map(len, columns), strict=True)))
    counted_table = _counted_pairs(columns)
    if counted_table is None:
        columns = [
            Column.of(column.values, "labels") if column.names is None else column
            for column in columns
        ]
        counted_table = _counted_pairs(columns) or _uncompiled_pairs(columns)
    pairs, table = counted_table
    truth, label, group = columns
    first, second = np.divmod(pairs, label.size)
    classes, (true, predicted) = _classes((truth, first), (label, second))
    complete, without = (true >= 0) & (predicted >= 0), int(group.names is not None)
    dropped = {
        "missing true class": table[true < 0].sum(),
        "missing prediction": table[(predicted < 0) & (true >= 0)].sum(),
        "missing group": table[complete, :without].sum(),
    }
    # Some pairs occur without a group only.
    used = complete & table[:, without:].any(axis=1)
    if not used.any():
        raise InputError(NO_ROWS)
    keys = true * len(classes) + predicted
    places = np.arange(without, group.size)
    if encoded_groups:
        description = encoded_groups.facts
    else:
        places = places[table[:, places].any(axis=0)]
        levels = tuple((name,) for name in group.texts(places))
        description = (("group",), levels, MIN_SIZE, False)
    rows = np.flatnonzero(used)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    keys, table = keys[rows], table.take(rows, axis=0).take(places, axis=1)

    # Where every row counts, its labels need not be kept.
    masking_columns = columns if any(dropped.values()) else [group]

    def codes() -> Integers32:
        missing = np.any([column.missing(column.places()) for column in masking_columns], axis=0)
        of_place = np.zeros(group.size, dtype=np.int32)
        of_place[places] = np.arange(len(places), dtype=np.int32)
        return np.asarray(of_place[group.places()[~missing]])

    excluded = {reason: int(count) for reason, count in dropped.items() if count}
    counted = CountedGroups(description, integers(table.sum(axis=0)), codes)
    return counted, classes, keys, table, excluded


def _encode_columns(y_true: Labels, y_pred: Labels, groups: GroupLabels) -> list[Column]:
    """Return the columns of the labels, and of the groups where these are not encoded yet."""
    named = [(y_true, "y_true"), (y_pred, "y_pred")]
    if not isinstance(groups, Groups | Mapping):
        named.append((groups, "groups"))
    # Arrow encodes text in threads; numbers are ready sooner than a thread is.
    spread = map if all(isinstance(labels, np.ndarray) for labels, _ in named) else each
    return list(
        spread(
            lambda named_labels: Column.of(
                *named_labels, ordered=named_labels[0] is groups, sampled=True
            ),
            named,
        )
    )


def _classes(*sides: tuple[Column, Integers]) -> tuple[Strings, Sequence[Integers]]:
    """Return the sorted labels that occur, and which of them each place is, -1 where missing."""
    low = min(column.low for column, _ in sides)
    size = max(column.low + column.size for column, _ in sides) - low
    all_integers = all(
        column.names is None and column.values.dtype.kind in "iu" for column, _ in sides
    )
    if not all_integers or size > 2 * sum(column.size for column, _ in sides):
        return recoded(*(_occurring(*side) for side in sides))
    # Whole numbers have an order without their texts.
    numbers = [places + (column.low - low) for column, places in sides]
    occurs = np.zeros(size, dtype=bool)
    occurs[np.concatenate(numbers)] = True
    rank = np.cumsum(occurs) - 1
    return tuple(map(str, (np.flatnonzero(occurs) + low).tolist())), [
        rank[offsets] for offsets in numbers
    ]


def _occurring(column: Column, places: Integers) -> tuple[Integers, Strings]:
    """Return places as codes into the labels that occur there, -1 where missing, and these."""
    occurs = np.bincount(places, minlength=1) > 0
    occurs[0] &= column.names is None
    return (np.cumsum(occurs) - 1)[places], tuple(column.texts(np.flatnonzero(occurs)))


# Probabilities of a row that were rounded or held in half precision.
SUM_TOLERANCE = 0.01
# Largest weight; squares and sums of weights up to it, and of their inverses, stay exact enough.
MOST_WEIGHT = 1e9


def _labels(y_pred: Any, weights: Any, true_names: Strings) -> tuple[Integers32, Strings, Floats]:
    """Return label codes (n, k), their names, and weights (n, k)."""
    encoded = isinstance(y_pred, Encoded)
    array = y_pred.codes if encoded else y_pred
    single = array.ndim == 1
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
    codes, names = encode(y_pred if encoded else array.ravel(), subject="y_pred")
    if weights is None:
        return codes.reshape(shape), names, np.full(shape, 1.0 / shape[1])
    one_each = single and np.shape(weights) == shape
    spread = _weights(weights, "weights", shape if one_each else array.shape).reshape(shape)
    largest = spread.max(axis=1)
    if len(largest) and not largest.any():
        raise InputError("weights: all are 0; expected a row with weight")
    bounded = (largest <= MOST_WEIGHT) & ((largest == 0) | (largest >= 1 / MOST_WEIGHT))
    _check_rows(bounded, "weights", f"0, or {1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}")
    return codes.reshape(shape), names, spread


def _weights(weights: Any, subject: str, shape: tuple[int, ...]) -> Floats:
    check_unmasked(weights, subject=subject)
    try:
        array = np.asarray(weights)
        spread = array.astype(np.float64, casting="unsafe" if array.dtype.kind in "OU" else "safe")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{subject}: expected numbers of shape {shape}, as y_pred") from None
    if spread.shape != shape:
        raise InputError(f"{subject}: shape {spread.shape}; expected {shape}, as y_pred")
    finite = (np.isfinite(spread) & (spread >= 0)).reshape(len(spread), -1).all(axis=1)
    _check_rows(finite, subject, "finite numbers of at least 0")
    return spread


def _check_rows(valid: Any, subject: str, expected: str) -> None:
    if not valid.all():
        raise InputError(f"{subject}, row {int(np.argmin(valid)) + 1}: expected {expected}")


RowLabels = TypeVar("RowLabels")


def name_unit(units: Labels | None, without: str = "row") -> str:
    """Return what is counted: units, or rows by their name without units."""
    if units is None:
        return without
    return "unit"


def fill_labels(labels: RowLabels | None, n: int) -> RowLabels | Encoded:
    """Return labels; without any, one label that all n rows share."""
    if labels is None:
        return Encoded(np.zeros(n, np.int32), ("all",))
    return labels


def units_of(units: Labels | None, n: int, used: Booleans) -> Encoded | None:
    """Encode the units of the rows that are kept, None without units.

    A row of code -1 is a unit of its own.

    Raises
    ------
    InputError
        When `units` has another length than `n`.
    """
    if units is None:
        return None
    codes, names = encode(units, subject="units")
    if len(codes) != n:
        raise InputError(f"units: {len(codes)} rows; expected {n}, as in y_true")
    return Encoded(*encode(Encoded(codes[used], names)))


def whole_units(codes: Integers | Integers32, names: Strings) -> tuple[Integers, Words]:
    """Make rows without a unit, -1, units of their own; return units and the keys of all units."""
    units, alone = codes.astype(np.int64), np.flatnonzero(codes < 0)
    units[alone] = len(names) + np.arange(len(alone))
    return units, np.append(unit_keys(names), place_keys(np.arange(len(alone))))


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
    owner = integers(owners.codes)
    # Rows in an order of their content alone, so that permuted rows and renamed groups give the
    # same draws.
    content = [*weights.T[::-1], *outcome.T[::-1]]
    by_content = np.lexsort([*content, owner])
    # Groups rank by what their rows hold, not by their names.
    codes, digests = groups.codes[by_content], []
    rows = by_content[np.argsort(codes, kind="stable")]
    for members in np.split(rows, np.cumsum(groups.counts)[:-1]):
        hasher = blake2b()
        for column in (owner, *outcome.T, *weights.T):
            hasher.update(column[members].tobytes())
        digests.append(hasher.digest())
    rank = np.empty(len(digests), dtype=np.int64)
    rank[sorted(range(len(digests)), key=digests.__getitem__)] = np.arange(len(digests))
    order = np.lexsort([*content, rank[groups.codes], owner])
    unit, keys = whole_units(owner[order], owners.vocabulary)
    return ItemSampler(
        integers(outcome[order].ravel()),
        np.repeat(np.arange(n), width),
        weights[order].ravel(),
        integers(groups.codes[order]),
        unit,
        keys,
        shape,
    )


Null = Literal["rows", "class", "prediction"]
Summary = TypeVar("Summary")


@record
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
    exchanged : "rows", "class", "prediction" or None
        Of draws that have the margins of the observed table: what exchanges groups.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> counts = m.count(true, pred, gender)
    >>> counts.groups.names, counts.excluded
    (('men', 'women'), {})
    """

    groups: Groups
    classes: Strings
    truth: Integers
    prediction: Integers
    sampler: Sampler
    excluded: Mapping[str, int]
    unit: str
    exchanged: Null | None = None

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
    def compared(self) -> Counts:
        """These counts with all small groups as one, where that leaves half of the groups or fewer.

        No small group is compared, and draws of the others don't depend on how small groups are
        told apart.
        """
        usable, groups = self.groups.usable, self.groups
        n_usable = tally(usable)
        if 2 * (n_usable + 1) > len(groups):
            return self
        place = np.where(usable, np.cumsum(usable) - 1, n_usable)
        levels = [*compress(groups.levels, usable.tolist()), ("",) * len(groups.attributes)]
        # Without rows of its own the last group stays out of comparisons.
        fewer = CountedGroups(
            (groups.attributes, tuple(levels), groups.min_size, groups.named),
            np.append(groups.counts[usable], 0),
            lambda: place.astype(np.int32)[groups.codes],
        )
        if isinstance(self.sampler, ItemSampler):
            size = len(self.truth), len(fewer)
            sampler: Sampler = replace(self.sampler, group=place[self.sampler.group], shape=size)
        else:
            sampler = TableSampler(
                sum_by(place, len(fewer), self.table[None].transpose(0, 2, 1))[0].T
            )
        return replace(self, groups=fewer, sampler=sampler)

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
        """Sum tables (r, outcomes, groups) over predictions: (r, classes, groups).

        Where groups are exchanged within the true class, the one sum of all tables.
        """
        return self._adders[0].sum(self.observed if self.exchanged == "class" else tables)

    def totals(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over outcomes; one sum where groups are exchanged."""
        return floats((self.observed if self.exchanged else tables).sum(axis=1))

    def by_prediction(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, groups) over true classes: (r, classes, groups)."""
        return self._adders[1].sum(tables)

    @cached_property
    def _adders(self) -> tuple[Adder, Adder]:
        """Add outcomes by true class, and by predicted label."""
        n_classes = len(self.classes)
        return Adder.of(self.truth, n_classes), Adder.of(self.prediction, n_classes)

    def hits(self, tables: Floats) -> Floats:
        """Weights of right predictions per class: (r, classes, groups)."""
        out = np.zeros((len(self.classes), tables.shape[2], len(tables)))
        out[self.truth[self.right]] = tables.transpose(1, 2, 0)[self.right]
        return out.transpose(2, 0, 1)

    @cached_property
    def right(self) -> Integers:
        """Indices of outcomes with a correct prediction."""
        return np.flatnonzero(self.truth == self.prediction)

    def once(self, tables: Floats, make: Callable[..., Summary], *arguments: Hashable) -> Summary:
        """Return what `make` makes of tables, made once while they are the same object.

        Measures that share draws share what they sum; that of the observed table is kept.
        """
        # Draws are measured in threads.
        key = (make, arguments, tables is self.observed or get_ident())
        if self._latest.get(key, (None,))[0] is not tables:
            self._latest[key] = (tables, make(self, tables, *arguments))
        shared: Summary = self._latest[key][1]
        return shared

    @cached_property
    def _latest(self) -> dict[Any, tuple[Any, ...]]:
        return {}


@record
class Adder:
    """Sums of outcomes that share a code.

    Attributes
    ----------
    order : ndarray of int64, shape (outcomes,)
        Outcomes sorted by code.
    present, first : ndarray of int64, shape (codes that occur,)
        The codes, and where each begins in `order`.
    size : int
        Codes, of which some may not occur.
    """

    order: Integers
    present: Integers
    first: Integers
    size: int

    @classmethod
    def of(cls, codes: Integers, size: int) -> Adder:
        """Sort the codes."""
        order = np.argsort(codes, kind="stable")
        present, first = np.unique(codes[order], return_index=True)
        return cls(order, present, first, size)

    @cached_property
    def _rounds(self) -> list[tuple[Any, Integers]]:
        """In turn, the codes with a first, second, ... outcome, and these."""
        outcomes_per_code = np.diff(self.first, append=len(self.order))
        rounds = [
            outcomes_per_code > place
            for place in range(min(int(outcomes_per_code.max(initial=0)), _MOST_ROUNDS + 1))
        ]
        return [
            (
                slice(None) if tally(has_outcome) == self.size else self.present[has_outcome],
                self.order[self.first[has_outcome] + place],
            )
            for place, has_outcome in enumerate(rounds)
        ]

    def sum(self, tables: Floats) -> Floats:
        """Sum tables (r, outcomes, ...) to (r, codes, ...).

        Replicates come out next to each other in memory.
        """
        outcomes = tables.transpose(*range(1, tables.ndim), 0)
        sums = np.zeros((self.size, *outcomes.shape[1:]))
        if len(self._rounds) > _MOST_ROUNDS:
            sums[self.present] = np.add.reduceat(outcomes[self.order], self.first, axis=0)
        else:
            for codes, places in self._rounds:
                sums[codes] += outcomes[places]
        return sums.transpose(-1, *range(tables.ndim - 1))


def sum_by(codes: Integers, size: int, tables: Floats) -> Floats:
    """Sum outcomes that share a code: tables (r, outcomes, groups) to (r, size, groups)."""
    return Adder.of(codes, size).sum(tables)


def count(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
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
    weights : array-like of the shape of `y_pred`, optional
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

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.count(true, pred, gender).classes
    ('chef', 'nurse')
    """
    # Arrays of Arrow have no shape: they are columns.
    column = isinstance(y_pred, Encoded) or hasattr(y_pred, "__arrow_c_array__")
    column = column or hasattr(y_pred, "__arrow_c_stream__")
    labels = y_pred if column else label_array(y_pred, subject="y_pred")
    shape = getattr(labels.codes if isinstance(labels, Encoded) else labels, "shape", (0,))
    if len(shape) > 1 or weights is not None or units is not None:
        labels = coded(labels) or labels
        return _counted_rows(y_true, labels, Groups.of(groups), weights, units)
    counted, names, keys, table, excluded = count_cells(y_true, labels, groups)
    sampler = TableSampler(table)
    return Counts(counted, names, *np.divmod(keys, len(names)), sampler, excluded, "row")


def _counted_rows(y_true: Any, y_pred: Any, groups: Groups, weights: Any, units: Any) -> Counts:
    """Count rows that are not independent, or that have several labels."""
    truth, true_names = encode(y_true, subject="y_true")
    labels, label_names, spread = _labels(y_pred, weights, true_names)
    lengths = (len(truth), len(labels), len(groups.codes))
    check_lengths(dict(zip(ROW_COLUMNS, lengths, strict=True)))
    names, (true_codes, label_codes) = recoded((truth, true_names), (labels, label_names))
    no_truth, no_label, no_group = truth < 0, (labels < 0).any(axis=1), groups.codes < 0
    complete = ~(no_truth | no_label | no_group)
    used = complete & spread.any(axis=1)
    if not used.any():
        raise InputError(NO_ROWS)
    reasons = {
        "missing true class": no_truth,
        "missing prediction": no_label & ~no_truth,
        "missing group": no_group & ~no_label & ~no_truth,
        "no weight": complete & ~used,
    }
    packed = true_codes[used, None] * len(names) + label_codes[used]
    keys, outcome = np.unique(packed, return_inverse=True)
    counted, owners = groups.take(used), units_of(units, len(truth), used)
    outcome = outcome.reshape(packed.shape)
    sampler = item_sampler(outcome, spread[used], counted, owners, (len(keys), len(counted)))
    excluded = {name: int(rows.sum()) for name, rows in reasons.items() if rows.any()}
    unit = name_unit(units)
    return Counts(counted, names, *np.divmod(keys, len(names)), sampler, excluded, unit)


def recoded(
    *columns: tuple[Integers | Integers32, Strings],
) -> tuple[Strings, list[Integers]]:
    """Return the sorted names of all columns, and codes into them; -1 stays."""
    among, places = in_order([name for _, names in columns for name in names])
    ends = np.cumsum([len(names) for _, names in columns])[:-1]
    lookups = np.split(places, ends)
    return among, [
        np.append(look, -1)[codes] for look, (codes, _) in zip(lookups, columns, strict=True)
    ]


BASES = ("both", "truth", "prediction", "total")
"""Cells of one class against the rest that all others are sums and differences of."""

_LEVEL, _NONE = 0.975, 1e-9


def moments(counts: Counts, _: Floats | None = None) -> Floats | None:
    """Return sums over units of products of two cells, (bases, bases, classes, groups).

    None where rows are independent. Summary for `Counts.once`, which passes a table, too.
    """
    sampler = counts.sampler
    if not isinstance(sampler, ItemSampler):
        return None
    classes, groups, weight = len(counts.classes), len(counts.groups), sampler.weight
    owner, group = group_owners(sampler, groups)
    total = np.bincount(owner, weight)
    truth, prediction = counts.truth[sampler.outcome], counts.prediction[sampler.outcome]
    keys = np.concatenate([owner * classes + truth, owner * classes + prediction])
    cells, place = np.unique(keys, return_inverse=True)
    of_truth, of_prediction = np.split(place, 2)
    right = np.where(truth == prediction, weight, 0.0)
    values = [
        np.bincount(of_truth, right, minlength=len(cells)),
        np.bincount(of_truth, weight, minlength=len(cells)),
        np.bincount(of_prediction, weight, minlength=len(cells)),
        total[cells // classes],
    ]
    where = cells % classes * groups + group[cells // classes]
    sums = np.empty((len(BASES), len(BASES), classes, groups))
    for first, second in combinations_with_replacement(range(len(BASES)), 2):
        product = np.bincount(where, values[first] * values[second], minlength=classes * groups)
        sums[first, second] = sums[second, first] = product.reshape(classes, groups)
    # A unit's rows count for every class, whether or not one has its label.
    sums[-1, -1] = np.bincount(group, total**2, minlength=groups)
    return sums


def accuracy_design(counts: Counts) -> Floats:
    """Return the design effect of each group's accuracy, 1 where rows are independent."""
    sampler, groups = counts.sampler, len(counts.groups)
    if not isinstance(sampler, ItemSampler):
        return np.ones(groups)
    owner, group = group_owners(sampler, groups)
    right = np.isin(sampler.outcome, counts.right)
    hits, total = np.bincount(owner, sampler.weight * right), np.bincount(owner, sampler.weight)
    sums = (
        floats(np.bincount(group, values, minlength=groups))
        for values in (hits, total, hits**2, hits * total, total**2)
    )
    return design_effects(*sums, least=least_design(counts))


def independent_units(counts: Counts) -> float:
    """Return how many units of equal weight the units of all rows count as; of rows, the rows."""
    sampler = counts.sampler
    if not isinstance(sampler, ItemSampler):
        return float(counts.totals(counts.observed)[0].sum())
    weights = np.bincount(sampler.unit[sampler.item], sampler.weight)
    return float(weights.sum() ** 2 / (weights**2).sum())


def group_owners(sampler: ItemSampler, groups: int) -> tuple[Integers, Integers]:
    """Return which rows of one unit in one group each entry is of, and their group."""
    pairs = sampler.unit[sampler.item] * groups + sampler.group[sampler.item]
    pairs, owner = np.unique(pairs, return_inverse=True)
    return owner, pairs % groups


def least_design(counts: Counts) -> float:
    """Return the least design effect: rows that share their weight may say more than one."""
    sampler = counts.sampler
    unit_weights = not isinstance(sampler, ItemSampler) or bool((sampler.weight == 1.0).all())
    return 1.0 if unit_weights else 0.0


def design_effects(
    successes: Floats,
    totals: Floats,
    squares: Floats,
    products: Floats,
    squared_totals: Floats,
    *,
    least: float = 1.0,
    squared: Floats | None = None,
) -> Floats:
    """Return how many rows say as much as one that is independent.

    The cluster-robust variance of a share over that of independent rows, with an allowance for
    few units (Student's t), and at least that of all groups together. Where all rows or none of
    all groups succeed, a unit counts as one row.

    Parameters
    ----------
    successes, totals : ndarray
    squares, products, squared_totals : ndarray
        Sums over units of squared successes, of successes times totals, and of squared totals.
    least : float
        The least design effect.
    squared : ndarray, optional
        Sum over rows of squared numbers, in place of successes that are 0 or 1.
    """
    with unwarned():
        p, units = successes / totals, totals**2 / squared_totals
        deviations = squares - 2.0 * p * products + p**2 * squared_totals
        variance = np.maximum(deviations, 0.0) * units / (units - 1.0)
        simple_variance = totals * p * (1.0 - p)
        if squared is not None:
            simple_variance = np.maximum(squared - totals * p**2, 0.0)
        t_factor = special.stdtrit(np.maximum(units - 1.0, 1.0), _LEVEL) / special.ndtri(_LEVEL)
        defined = (
            (simple_variance > _NONE * totals)
            & (units > 1.0 + _NONE)
            & (variance > _NONE * simple_variance)
        )
        # A group whose units happen to agree varies as much as the others do.
        pooled = _sum(defined, variance) / _sum(defined, simple_variance)
        design = (
            np.fmax(np.where(defined, variance / simple_variance, np.nan), pooled) * t_factor**2
        )
        design = np.where(np.isnan(design), totals / units, design)
        repeated = squared_totals > totals * (1.0 + _NONE)
    return np.where((totals > 0) & (repeated | (least == 0.0)), np.maximum(design, least), 1.0)


def _sum(defined: Booleans, values: Floats) -> Floats:
    """Sum defined values over groups."""
    return floats(np.where(defined, values, 0.0).sum(axis=-1, keepdims=True))
