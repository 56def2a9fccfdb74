"""Rates of two models on the same rows: how each group's rate changes, and how extremes move.

The largest gap between groups and the rate of the worst group are largest numbers of several. Their
percentile intervals miss the truth too often, as each model's extreme is picked from its own noise.
An interval of an extreme's change is made of the changes of the groups that may be extreme.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from equipoise.core import AnyArray, Booleans, Floats, Integers, floats, nans, record
from equipoise.metrics.labels.paired import Joint
from equipoise.metrics.labels.table import design_effects, group_owners
from equipoise.metrics.measure import Extreme, PairedName
from equipoise.stats.draws import ItemSampler
from equipoise.stats.intervals import Scored, divide, normal, scored
from equipoise.stats.pairs import (
    Block,
    largest_change,
    paired_scored,
    paired_z,
    simultaneous_p,
    simultaneous_z,
)

# Share of an interval's error that goes to which groups may be extreme.
_PICKED = 0.2
# Differences of pairs of groups that are held at once.
_MOST_NUMBERS = 1 << 20


@record
class PairedRate:
    """A rate of two models on the same rows, arrays (classes, groups).

    Attributes
    ----------
    n : ndarray
        Rows in the rate's denominator, which is the same for both models.
    first, second : ndarray
        Rows with the outcome, by model.
    gains, losses : ndarray
        Rows with the outcome for the second model alone, and for the first alone.
    designs : tuple of ndarray
        Rows that say as much as one that is independent: of the change, and of both rates.
    compared : ndarray of bool
        Whether a group takes part and has rows enough.
    """

    n: Floats
    first: Floats
    second: Floats
    gains: Floats
    losses: Floats
    designs: tuple[Floats, Floats, Floats]
    compared: Booleans

    @property
    def values(self) -> tuple[Floats, Floats]:
        """The rates of both models."""
        return divide(self.first, self.n), divide(self.second, self.n)

    def changes(self, z: Floats | float) -> Scored:
        """Return how the rate of each compared group changes, with its paired interval."""
        design = self.designs[0]
        change = paired_scored(self.gains / design, self.losses / design, self.n / design, z)
        return _masked(change, self.compared)

    def levels(self, level: float) -> tuple[Scored, Scored]:
        """Return both models' rates of each compared group with Wilson intervals."""
        first, second = (
            _masked(scored(hits / design, self.n / design, level), self.compared)
            for hits, design in zip((self.first, self.second), self.designs[1:], strict=True)
        )
        return first, second

    @cached_property
    def p_values(self) -> Floats:
        """P-values of each class that hold for all its compared groups together."""
        z = paired_z(self.gains / self.designs[0], self.losses / self.designs[0])
        tests = self.compared.sum(axis=1)
        p = np.stack([simultaneous_p(row, int(k)) for row, k in zip(z, tests, strict=True)])
        return np.where(self.compared, p, np.nan)

    def simultaneous(self, level: float) -> Scored:
        """Return the changes with intervals that hold for all compared groups of a class."""
        return self.changes(self._critical(level))

    def reach(self, level: float) -> Floats:
        """Return the largest change by chance, for all compared groups of a class."""
        spread = np.sqrt((self.gains + self.losses) * self.designs[0])
        return self._critical(level) * divide(spread, self.n)

    def _critical(self, level: float) -> Floats:
        tests = self.compared.sum(axis=1).tolist()
        return np.array([simultaneous_z(level, n) for n in tests])[:, None]

    def of_classes(self, classes: Integers) -> PairedRate:
        """Return the rate of some classes."""
        arrays = {
            name: getattr(self, name)[classes]
            for name in ("n", "first", "second", "gains", "losses", "compared")
        }
        first, second, third = (design[classes] for design in self.designs)
        return PairedRate(**arrays, designs=(first, second, third))

    @cached_property
    def other_groups(self) -> PairedRate:
        """The rate of all other compared groups."""
        n, first, second, gains, losses = (
            _sum_of_others(rows, self.compared)
            for rows in (self.n, self.first, self.second, self.gains, self.losses)
        )
        # The variance of the others' share is the mean of the groups' variances, by their rows.
        of_change, of_first, of_second = (
            np.where(n > 0, divide(_sum_of_others(self.n * design, self.compared), n), 1.0)
            for design in self.designs
        )
        designs = of_change, of_first, of_second
        return PairedRate(n, first, second, gains, losses, designs, self.compared & (n > 0))


def _sum_of_others(rows: Floats, compared: Booleans) -> Floats:
    selected = np.where(compared, rows, 0.0)
    return floats(np.maximum(selected.sum(axis=-1, keepdims=True) - selected, 0.0))


def _masked(values: Scored, compared: Booleans) -> Scored:
    return Scored(*(np.where(compared, array, np.nan) for array in values.arrays))


def paired_rate(joint: Joint, name: PairedName) -> PairedRate:
    """Count a rate of two models on the rows that both answered.

    Parameters
    ----------
    joint : Joint
        Of two models.
    name : str
        Accuracy is of all rows, in one class; other rates are of each class against the rest.
    """
    counts, table = joint.counts, joint.counts.table
    classes = np.arange(1 if name == "accuracy" else len(joint.classes))
    sums: list[Floats] = []
    designs: list[list[Floats]] = []
    for place in classes.tolist():
        base, first, second = _outcomes(joint, name, place)
        both = first & second
        weights = np.stack([base, first, second, second & ~both, first & ~both]).astype(np.float64)
        sums.append(weights @ table)
        designs.append([
            _design(joint, base, numbers) for numbers in (
                second.astype(np.float64) - first, first.astype(np.float64),
                second.astype(np.float64),
            )
        ])  # fmt: skip
    n, first, second, gains, losses = np.stack(sums, axis=1)
    change, first_design, second_design = np.stack(designs, axis=1) if len(classes) else nans(3)
    least = counts.groups.min_size
    compared = counts.groups.usable & ((np.rint(n) >= least) | (least <= 1))
    compared &= (compared.sum(axis=1) >= 2)[:, None]
    designs_of = change, first_design, second_design
    return PairedRate(n, first, second, gains, losses, designs_of, compared)


def _outcomes(joint: Joint, name: PairedName, place: int) -> tuple[Booleans, Booleans, Booleans]:
    """Return which joint outcomes count in a rate's denominator, and in both its numerators."""
    truth, labels = joint.truth, joint.labels
    if name == "accuracy":
        base = np.ones(len(truth), dtype=bool)
        return base, labels[:, 0] == truth, labels[:, 1] == truth
    base = {
        "true_positive_rate": truth == place,
        "false_positive_rate": truth != place,
        "selection_rate": np.ones(len(truth), dtype=bool),
    }[name]
    first, second = (base & (labels[:, model] == place) for model in (0, 1))
    return base, first, second


def _design(joint: Joint, base: Booleans, numbers: Floats) -> Floats:
    """Return the design effect of the mean of an outcome's numbers in each group."""
    sampler, n_groups = joint.counts.sampler, len(joint.counts.groups)
    if not isinstance(sampler, ItemSampler):
        return np.ones(n_groups)
    owner, group = group_owners(sampler, n_groups)
    total = np.bincount(owner, base[sampler.outcome])
    value = np.bincount(owner, numbers[sampler.outcome])
    squared = np.bincount(owner, numbers[sampler.outcome] ** 2)

    def by_group(values: AnyArray) -> Floats:
        return floats(np.bincount(group, values, minlength=n_groups))

    return design_effects(
        by_group(value), by_group(total), by_group(value**2), by_group(value * total),
        by_group(total**2), squared=by_group(squared),
    )  # fmt: skip


def extreme_change(
    rates: Sequence[PairedRate], extreme: Extreme, level: float
) -> Iterator[tuple[float, float]]:
    """Yield an interval of how an extreme moves over all classes, then in each class.

    Each end misses at most as often as that of a 95 % interval does. The largest of several
    numbers moves at most as far as the number that is largest afterwards, and at least as far as
    the number that is largest before, so that no price is paid for the number of groups. A fifth of
    the error goes to which groups may be extreme, and to how far.

    Parameters
    ----------
    rates : sequence of PairedRate
        Of the same classes; the extreme is over all of them.
    extreme : "worst", "shortfall" or "gap"
        Of "worst" the change is that of the lowest rate.
    level : float
    """
    error = (1.0 - level) / 2.0
    critical = normal(1.0 - 2.0 * (1.0 - _PICKED) * error)
    changes = [(rate.changes(critical), rate.other_groups.changes(critical)) for rate in rates]
    classes = np.flatnonzero(np.all([rate.compared.any(axis=1) for rate in rates], axis=0))
    for scope in (classes, *(classes[classes == place] for place in range(len(rates[0].n)))):
        tests = sum(_n_numbers(rate.compared[scope], extreme) for rate in rates)
        band = 1.0 - _PICKED * error / (tests + 1)

        def blocks(scope: Integers = scope, band: float = band) -> Iterator[Block]:
            for rate, (change, other_groups) in zip(rates, changes, strict=True):
                step = max(_MOST_NUMBERS // max(rate.n.shape[1] ** 2, 1), 1)
                for start in range(0, len(scope), step):
                    part = scope[start : start + step]
                    yield _numbers(rate, extreme, part, (change[part], other_groups[part]), band)

        low, high = largest_change(blocks)
        yield (-high, -low) if extreme == "worst" else (low, high)


def _n_numbers(compared: Booleans, extreme: Extreme) -> int:
    groups = compared.sum(axis=-1)
    return int((groups * (groups - 1) if extreme == "gap" else groups).sum())


def _numbers(
    rate: PairedRate, extreme: Extreme, part: Integers, changes: tuple[Scored, Scored], band: float
) -> Block:
    """Return the numbers of some classes; the largest is the extreme."""
    selected = rate.of_classes(part)
    change, other_groups = changes
    first, second = selected.levels(band)
    if extreme == "worst":
        return _negative(change), _negative(first), _negative(second)
    if extreme == "gap":
        return _pairs(change), _pairs(first), _pairs(second)
    share = divide(selected.other_groups.n, selected.n + selected.other_groups.n)
    first_others, second_others = selected.other_groups.levels(band)
    return (
        other_groups.minus(change).scaled(share),
        first_others.minus(first).scaled(share),
        second_others.minus(second).scaled(share),
    )


def _negative(values: Scored) -> Scored:
    return Scored(-values.value, -values.high, -values.low)


def _pairs(values: Scored) -> Scored:
    """Return the differences of each two groups, the first minus the second."""
    differences = values[..., :, None].minus(values[..., None, :])
    same = np.eye(values.value.shape[-1], dtype=bool)
    return Scored(*(np.where(same, np.nan, array) for array in differences.arrays))
