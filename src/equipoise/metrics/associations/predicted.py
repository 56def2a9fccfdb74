"""Counts of predicted labels by group, and what is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.metrics.associations.partitions import permutations
from equipoise.metrics.gaps import gaps
from equipoise.stats.draws import ItemSampler, Sampler, TableSampler
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]
Measured = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """How often each label was predicted for each group.

    Attributes
    ----------
    labels : tuple of str
        Sorted.
    order : ndarray of int
        Place of each label in the vocabulary as given.
    groups : Groups
    table : ndarray, shape (labels, groups)
    sampler : Sampler
    excluded : mapping of str to int
    unit : str
    """

    labels: tuple[str, ...]
    order: Indices
    groups: Groups
    table: Floats
    sampler: Sampler = field(repr=False)
    excluded: Mapping[str, int]
    unit: str

    def draws(
        self, measure: Measured, resampling: Resampling | None, seed: int
    ) -> tuple[Floats, Floats | None, Floats | None]:
        """Return a measure of tables (r, labels, groups): observed, resampled, exchanged."""
        observed = measure(self.table[None])[0]
        if resampling is None or isinstance(resampling, Exact):
            return observed, None, None
        boot = None
        if isinstance(resampling, Bootstrap):
            blocks = self.sampler.bootstrap(resampling.replicates, seed)
            boot = np.concatenate([measure(tables) for tables in blocks])
        draws = permutations(self.table.size * 50, resampling)
        strata = np.zeros(len(self.table), dtype=np.int64)
        exchanged = self.sampler.permute(strata, draws, seed)
        return observed, boot, np.concatenate([measure(tables) for tables in exchanged])


def count_labels(
    labels: Any, groups: Any, units: Any, vocabulary: Sequence[str] | None
) -> LabelCounts:
    """Count predicted labels by group.

    Raises
    ------
    InputError
        When lengths differ, a label is not in the vocabulary, the vocabulary repeats a label, or no
        row is complete.
    """
    codes, names = encode(labels, what="labels")
    found = Groups.of(groups)
    if len(found.codes) != len(codes):
        raise InputError(f"groups: {len(found.codes)} rows; expected {len(codes)}, as labels")
    order = np.arange(len(names))
    if vocabulary is not None:
        codes, names, order = _within(codes, names, vocabulary)
    unit, keys = _units(units, len(codes))
    known = (codes >= 0) & (found.codes >= 0) & (unit >= 0)
    if not known.any():
        raise InputError("labels: no row has a label and a group")
    kept = found.take(known)
    shape = len(names), len(found)
    table = np.zeros(shape)
    np.add.at(table, (codes[known], kept.codes), 1.0)
    n = int(known.sum())
    sampler: Sampler = TableSampler(table)
    if keys is not None:
        sampler = ItemSampler(
            codes[known].astype(np.int64),
            np.arange(n),
            np.ones(n),
            kept.codes.astype(np.int64),
            unit[known],
            keys,
            shape,
        )
    dropped = {"missing label, group or unit": len(codes) - n}
    excluded = {why: count for why, count in dropped.items() if count}
    return LabelCounts(
        names, order, kept, table, sampler, excluded, "image" if keys is None else "unit"
    )


@dataclass(frozen=True, eq=False)
class Concentration:
    """Gaps of top share, skewness and kurtosis over groups, then each of every group."""

    k: int
    zeros: bool
    usable: Masks

    def __call__(self, tables: Floats) -> Floats:
        """Return numbers of each table, shape (r, 3 + 3 groups)."""
        counts = np.swapaxes(tables, 1, 2)
        totals = counts.sum(axis=2)
        kept = min(self.k, counts.shape[2])
        top = -np.sort(-counts, axis=2)[:, :, :kept].sum(axis=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = top / totals
            mask = np.ones_like(counts, dtype=bool) if self.zeros else counts > 0
            skewness, kurtosis = _shape(counts, mask)
        each = [share, skewness, kurtosis]
        return np.concatenate(
            [np.stack([gaps(one, self.usable) for one in each], 1), *each], axis=1
        )


def _shape(counts: Floats, mask: Masks) -> tuple[Floats, Floats]:
    """Return g1 and excess kurtosis of the counts under the mask, along the last axis."""
    n = mask.sum(axis=2)
    mean = np.where(mask, counts, 0.0).sum(axis=2) / n
    apart = np.where(mask, counts - mean[:, :, None], 0.0)
    second, third, fourth = ((apart**power).sum(axis=2) / n for power in (2, 3, 4))
    flat = second <= 1e-20 * mean**2
    second = np.where(flat, np.nan, second)
    return third / second**1.5, fourth / second**2 - 3.0


@dataclass(frozen=True, eq=False)
class Chosen:
    """Effect size of the labels that each of two groups has for itself.

    Attributes
    ----------
    scores : ndarray, shape (labels,)
        Association score of each label.
    ddof : int
    sign : float
        -1 where the second group's labels are X.
    """

    scores: Floats
    ddof: int
    sign: float

    def __call__(self, tables: Floats) -> Floats:
        """Return d of each table, shape (r, 1)."""
        x, y, _ = self.chosen(tables)
        nx, ny = x.sum(axis=1), y.sum(axis=1)
        n = nx + ny
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (x * self.scores).sum(axis=1) / nx, (y * self.scores).sum(axis=1) / ny
            either = x | y
            centre = (either * self.scores).sum(axis=1) / n
            squares = (either * (self.scores - centre[:, None]) ** 2).sum(axis=1)
            spread = np.sqrt(squares / np.maximum(n - self.ddof, 0))
            flat = ~(spread > 1e-12 * np.abs(self.scores).max())
            found = self.sign * (means[0] - means[1]) / np.where(flat, np.nan, spread)
        return np.asarray(found[:, None])

    def chosen(self, tables: Floats) -> tuple[Masks, Masks, Masks]:
        """Labels of the first group alone, of the second alone, and of both, each (r, labels)."""
        first, second = (_frequent(tables[:, :, group]) for group in (0, 1))
        return first & ~second, second & ~first, first & second


def _frequent(counts: Floats) -> Masks:
    """Labels at least as frequent as the one that ends the more frequent half, (r, labels)."""
    half = np.ceil((counts > 0).sum(axis=1) / 2.0).astype(np.int64)
    falling = -np.sort(-counts, axis=1)
    edge = np.take_along_axis(falling, np.maximum(half - 1, 0)[:, None], axis=1)
    return np.asarray((counts >= edge) & (counts > 0))


def _within(
    codes: npt.NDArray[np.int32], names: tuple[str, ...], vocabulary: Sequence[str]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...], Indices]:
    words = [str(word) for word in vocabulary]
    if len(set(words)) < len(words):
        raise InputError("vocabulary: a label occurs twice; expected each label once")
    if strange := [name for name in names if name not in set(words)]:
        raise InputError(
            f"labels: {strange[0]!r} is not in the vocabulary; add it, or map labels first"
        )
    order = np.array(sorted(range(len(words)), key=words.__getitem__), dtype=np.int64)
    ordered = tuple(words[place] for place in order)
    place = {word: code for code, word in enumerate(ordered)}
    lookup = np.array([*(place[name] for name in names), -1], dtype=np.int32)
    return lookup[codes], ordered, order


def _units(units: Any, n: int) -> tuple[Indices, npt.NDArray[np.uint64] | None]:
    if units is None:
        return np.arange(n), None
    codes, names = encode(units, what="units")
    if len(codes) != n:
        raise InputError(f"units: {len(codes)} names; expected {n}, one per label")
    return codes.astype(np.int64), unit_keys(names)


CHOSEN_ANEW = "each replicate chooses the labels anew, and may compare others"
UNEVEN = "resampling adds noise of its own to the counts, which moves their shape"
ASIDE = "a largest of many is larger still, or smaller, with the noise that resampling adds"

_SPREAD = "resampling spread"


def spread(method: str, why: str) -> str:
    """Say that percentiles of replicates are no confidence interval, and why; "none" stays."""
    if not method.startswith("percentile bootstrap"):
        return method
    return f"{_SPREAD}: {method}; not a confidence interval: {why}"


def is_spread(method: str) -> bool:
    """Whether ends are no confidence interval, so that nothing is concluded from them."""
    return method.startswith(_SPREAD)
