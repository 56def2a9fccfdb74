"""Predictions of several models on the same rows: paired replicates, and models swapped.

Rows are counted by true class, every model's label and group. One resampled table then gives
every model's table, so differences between models are paired; under the null hypothesis that
two models are alike, exchanging their labels on any row changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import Codes, encode, natural
from equipoise.metrics.counts import Counts, count, sum_by
from equipoise.stats.draws import ItemSampler, TableSampler, block_sizes, group_order
from equipoise.stats.streams import stream, unit_uniforms

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Joint:
    """Counts by true class, every model's label and group, over rows that all models answered.

    Attributes
    ----------
    counts : Counts
        Its predicted label is the combination of all models' labels.
    models : tuple of str
    classes : tuple of str
        Every label that occurs as truth or prediction.
    truth : ndarray of int64, shape (outcomes,)
    labels : ndarray of int64, shape (outcomes, models)
        Indices into `classes`.
    """

    counts: Counts
    models: tuple[str, ...]
    classes: tuple[str, ...]
    truth: Indices
    labels: Indices

    def alone(self, model: int) -> Seen:
        """Return what one model shows of the outcomes."""
        keys, index = np.unique(
            np.stack([self.truth, self.labels[:, model]]), axis=1, return_inverse=True
        )
        table = sum_by(self.counts.table[None], index.ravel(), keys.shape[1])[0]
        return Seen(self._counts(keys, table), index.ravel())

    def pair(self, first: int, second: int) -> Pair:
        """Return two models' labels with every outcome that swapping them can reach."""
        seen = np.stack([self.truth, self.labels[:, first], self.labels[:, second]])
        keys, inverse = np.unique(
            np.concatenate([seen, seen[[0, 2, 1]]], axis=1), axis=1, return_inverse=True
        )
        own, mirrored = np.split(inverse.ravel(), 2)
        partner = np.empty(keys.shape[1], dtype=np.int64)
        partner[own], partner[mirrored] = mirrored, own
        alone, index = np.unique(
            np.concatenate([keys[[0, 1]], keys[[0, 2]]], axis=1), axis=1, return_inverse=True
        )
        first_index, second_index = np.split(index.ravel(), 2)
        joint = sum_by(self.counts.table[None], own, keys.shape[1])
        both = [sum_by(joint, one, alone.shape[1])[0] for one in (first_index, second_index)]
        counts = self._counts(alone, 0.5 * (both[0] + both[1]))
        return Pair(self, counts, own, partner, first_index, second_index)

    def _counts(self, keys: Indices, table: Floats) -> Counts:
        return replace(
            self.counts,
            classes=self.classes,
            truth=keys[0],
            prediction=keys[1],
            sampler=TableSampler(table),
        )


@dataclass(frozen=True, eq=False)
class Seen:
    """One model's counts, and where each joint outcome falls in them."""

    counts: Counts
    index: Indices

    def tables(self, tables: Floats) -> Floats:
        """Turn joint tables (r, outcomes, groups) into this model's."""
        return sum_by(tables, self.index, len(self.counts.truth))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two models' labels on the same rows.

    Attributes
    ----------
    joint : Joint
    counts : Counts
        The form (true class, one label) that measures read; its table is the mean of
        both models' tables, which swapping them leaves as it is.
    own : ndarray of int64
        Where each joint outcome falls among the pair's outcomes.
    partner : ndarray of int64
        The outcome with the two labels swapped.
    first, second : ndarray of int64
        Where each outcome of the pair falls in `counts`, by the first and the second label.
    """

    joint: Joint
    counts: Counts
    own: Indices
    partner: Indices
    first: Indices
    second: Indices

    def split(self, tables: Floats) -> tuple[Floats, Floats]:
        """Turn tables of the pair's outcomes into those of the first and second model."""
        size = len(self.counts.truth)
        return sum_by(tables, self.first, size), sum_by(tables, self.second, size)

    def tables(self, tables: Floats) -> Floats:
        """Turn joint tables (r, outcomes, groups) into those of the pair's outcomes."""
        return sum_by(tables, self.own, len(self.partner))

    def observed(self) -> Floats:
        """Return the observed table of the pair's outcomes, shape (1, outcomes, groups)."""
        return self.tables(self.joint.counts.table[None])

    def swapped(self, replicates: int, seed: int) -> Iterator[Floats]:
        """Yield tables in which each row, or unit, swaps the two models with probability 1/2."""
        sampler = self.joint.counts.sampler
        if isinstance(sampler, ItemSampler):
            yield from self._swapped_units(sampler, replicates, seed)
            return
        observed = self.observed()[0]
        upper = np.flatnonzero(self.partner > np.arange(len(self.partner)))
        both = (observed[upper] + observed[self.partner[upper]]).astype(np.int64)
        order = group_order(observed)
        for start, size in block_sizes(replicates, observed.size):
            rng = stream(seed, "swap", start)
            tables = np.broadcast_to(observed, (size, *observed.shape)).copy()
            kept = rng.binomial(both[:, order], 0.5, size=(size, *both.shape))
            tables[:, upper] = kept[:, :, np.argsort(order)]
            tables[:, self.partner[upper]] = both - tables[:, upper]
            yield tables

    def _swapped_units(self, sampler: ItemSampler, replicates: int, seed: int) -> Iterator[Floats]:
        outcome = self.own[sampler.outcome]
        mirrored, unit = self.partner[outcome], sampler.unit[sampler.item]
        size, groups = len(self.partner), sampler.shape[1]
        for start, many in block_sizes(replicates, max(size * groups, len(sampler.keys))):
            flips = unit_uniforms(seed, "swap", sampler.keys, range(start, start + many)) < 0.5
            tables = np.empty((many, size, groups))
            for table, flip in zip(tables, flips, strict=True):
                places = np.where(flip[unit], mirrored, outcome) * groups
                flat = places + sampler.group[sampler.item]
                table[:] = np.bincount(flat, sampler.weight, size * groups).reshape(size, groups)
            yield tables


@dataclass(frozen=True, eq=False)
class _Combined:
    """The combination of all models' labels on each row, as if it were one model's label."""

    codes: Codes
    vocabulary: tuple[str, ...]


def join(y_true: Any, predictions: Mapping[str, Any], groups: Any, *, units: Any = None) -> Joint:
    """Count the rows that every model answered by true class, all labels and group.

    Parameters
    ----------
    y_true : array-like, shape (n,)
    predictions : mapping of str to array-like, shape (n,)
        Best label of each model; missing where it gave none.
    groups : array-like (n,), mapping, or Groups
    units : array-like, shape (n,), optional
        Names of the units that repeat.

    Raises
    ------
    InputError
        With fewer than two models, when lengths differ, or no row is complete.
    """
    if len(predictions) < 2:
        raise InputError(f"predictions: {len(predictions)} models; expected at least two")
    encoded = [encode(y_true, what="y_true")]
    encoded += [
        encode(labels, what=f"predictions[{name!r}]") for name, labels in predictions.items()
    ]
    for name, (some, _) in zip(predictions, encoded[1:], strict=True):
        if len(some) != len(encoded[0][0]):
            raise InputError(
                f"predictions[{name!r}]: {len(some)} rows; "
                f"expected {len(encoded[0][0])}, as in y_true"
            )
    classes = tuple(sorted({name for _, names in encoded for name in names}, key=natural))
    codes = np.stack([_recode(some, names, classes) for some, names in encoded])
    complete = (codes >= 0).all(axis=0)
    combined = np.full(codes.shape[1], -1, dtype=np.int32)
    combinations, combined[complete] = np.unique(codes[1:, complete], axis=1, return_inverse=True)
    names = tuple(str(index) for index in range(combinations.shape[1]))
    counts = count(y_true, _Combined(combined, names), Groups.of(groups), units=units)
    of_class = {name: index for index, name in enumerate(classes)}
    of_combination = {name: index for index, name in enumerate(names)}
    truth = np.array([of_class.get(name, -1) for name in counts.classes])
    numbers = np.array([of_combination.get(name, -1) for name in counts.classes])
    seen = combinations[:, numbers[counts.prediction]].T
    return Joint(counts, tuple(predictions), classes, truth[counts.truth], seen)


def _recode(codes: Any, names: tuple[str, ...], classes: tuple[str, ...]) -> Indices:
    place = {name: index for index, name in enumerate(classes)}
    places = np.array([*(place[name] for name in names), -1], dtype=np.int64)
    recoded: Indices = places[codes]
    return recoded
