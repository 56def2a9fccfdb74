"""Named sets in one space: exchanges of members, the jackknife, and estimates of them.

Numbers of members that exchange are made whole once (fixed point), so that sums are exact, ties are
ties, and neither the order of rows nor threads decide anything. All other statistics are smooth
functions of mean vectors, so that the jackknife takes one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property, partial
from operator import itemgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Chance,
    Ends,
    Estimate,
    Floats,
    GroupValue,
    Harm,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    Part,
    Span,
    Words,
    floats,
    integers,
    no_ends,
    numbered,
    record,
    tally,
)
from equipoise.core.types import Json
from equipoise.metrics.building import STUDENT, UNTESTED, ChanceTest, compare_with_null, number
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import make_estimate
from equipoise.metrics.vectors.sets import Members, Similarity, dropped_of, embed, shared_members
from equipoise.stats.chance import PValue, band, mirrored_band, mirrored_p_value, p_value
from equipoise.stats.compiled import compiled
from equipoise.stats.exchange import Exchange
from equipoise.stats.intervals import jackknife_t
from equipoise.stats.moments import Moments, lower_root
from equipoise.stats.resampling import Resampling, level_of, null_draws
from equipoise.stats.streams import Seed, add_exchanged, draw_subsets, keys, stream
from equipoise.stats.threads import each

Numbers = Integers | Floats
Alternative = Literal["greater", "less", "two-sided"]

HARM: dict[Alternative, Harm] = {"greater": "higher", "less": "lower", "two-sided": "either"}
# Partitions that are enumerated by default.
MOST_PARTITIONS = 200_000
# Partitions are counted no further: nobody enumerates, or halves, that many.
MOST_COUNTED = 10**15
# Subset sums of one side of a halved pool: 2^22 numbers.
MOST_HALVED = 44
# Members that permutations beyond the least number may move: a second or two of work.
_MAX_MOVED = 1_000_000_000
# Subsets, and exchanges of units, that a thread draws in one go.
_BLOCK, _EXCHANGED_AT_ONCE = 2048, 256
# Members of the smaller set from which on sums are drawn from moments, and the most draws.
_LARGE, _MAX_DRAWN = 4096, 100_000
# Differences of sums that are rounding only, relative to the sum of absolute numbers; and
# variances, relative to the sum of squares.
_TIE, _FLAT = 1e-12, 1e-20


@compiled("void(int64[::1], int64, int64[::1])")
def enumerate_sums(values: Integers, size: int, out: Integers) -> None:
    """Write the sums of all subsets of `size` members (n,), in lexicographic order.

    After its first member, a subset goes on as one of the last of one member fewer: all sums of
    those, which stand at the end, are added to the member in one run. Runs read what no earlier
    one wrote.
    """
    n, end = values.shape[0], out.shape[0]
    # Subsets that go on with all, all but the first, ... of the members left.
    lengths = np.ones(n - size + 1, np.int64)
    out[end - 1] = 0
    for chosen in range(size):
        place = end - lengths.sum()
        for spare in range(n - size, -1, -1):
            value, n_sums = values[n - 1 - chosen - spare], lengths[spare]
            sums, continued = out[place : place + n_sums], out[end - n_sums :]
            for i in range(n_sums):
                sums[i] = value + continued[i]
            place += n_sums
        lengths = np.cumsum(lengths)


@compiled("void(uint64[:, ::1], int64[:, ::1], int64[:, ::1])")
def add_chosen(words: Words, values: Integers, out: Integers) -> None:
    """Write the sums of the members with a set bit.

    Parameters
    ----------
    words : ndarray, shape (draws, w)
    values : ndarray, shape (k, 64 w)
        k numbers of each member.
    found : ndarray, shape (draws, k)
    """
    for line in range(words.shape[0]):
        for column in range(values.shape[0]):
            total = np.int64(0)
            for place in range(words.shape[1]):
                word = words[line, place]
                for bit in range(64):
                    chosen = -np.int64(word >> np.uint64(bit) & np.uint64(1))
                    total += values[column, 64 * place + bit] & chosen
            out[line, column] = total


@record
class ExchangedDifferences:
    """Differences in means of two sets, observed and with members exchanged.

    Attributes
    ----------
    observed : ndarray, shape (k,)
        Mean of the first set minus mean of the second, of each of k numbers.
    draws : ndarray, shape (m, k)
        With members exchanged; of partitions that are mirrored, the first half.
    enumerated : bool
        Whether every partition stands there once.
    partitions : int
        How many partitions there are.
    text : str
        How the null was drawn.
    scale : float
        Sum of absolute numbers over both sets, in units of the differences: what ties refer to.
    resolution : float
        The finest p-value that matters; 0 where draws are not approximated.
    halves : tuple of (ndarray of int64, int, int), or None
        Whole numbers, size of the first set and its sum, where p can be counted exactly.
    mirrored : bool
        Whether `drawn` lacks as many rows, minus its own from the last to the first: the mirror
        images that partitions into sets of equal sizes have.
    error, errors : ndarray, shape (k,) and (m, k)
        Standard errors of `observed` and of `drawn`, where differences are tested in their units;
        else empty.
    """

    observed: Floats
    draws: Floats
    enumerated: bool
    partitions: int
    text: str
    scale: float
    resolution: float = 0.0
    halves: tuple[Integers, int, int] | None = None
    mirrored: bool = False
    error: Floats = field(default_factory=partial(np.empty, 0))
    errors: Floats = field(default_factory=partial(np.empty, 0))

    @cached_property
    def null(self) -> Floats:
        """All differences with members exchanged, shape (partitions, k)."""
        return np.concatenate([self.draws, -self.draws[::-1]]) if self.mirrored else self.draws

    @cached_property
    def null_errors(self) -> Floats:
        """Standard errors of `null`."""
        errors = [self.errors, self.errors[::-1]]
        return np.concatenate(errors) if self.mirrored else self.errors

    def chance(self, method: str, harm: Harm, factor: float = 1.0, shift: float = 0.0) -> Chance:
        """Return the chance level of factor × the single number (k = 1) + shift."""
        if self.mirrored and shift == 0.0:
            return mirrored_band(self.draws[:, 0] * factor, harm, method=method)
        weights = 1.0 if self.enumerated else None
        return band(self.null[:, 0] * factor + shift, harm, method=method, weights=weights)

    def p_value(self, harm: Harm) -> PValue:
        """Return the p-value of the single number (k = 1), exact where that is feasible."""
        observed = float(self.observed[0])
        if self.mirrored:
            return mirrored_p_value(self.draws[:, 0], observed, harm, scale=self.scale)
        if self.halves is None:
            weights = 1.0 if self.enumerated else None
            null, finest = self.null[:, 0], self.resolution
            return p_value(
                null, observed, harm, weights=weights, resolution=finest, scale=self.scale
            )
        values, size, first = self.halves
        tie = math.floor(_TIE * int(np.abs(values).sum()))
        total = math.comb(len(values), size)
        tails = {
            "higher": lambda: count_at_least(values, size, first - tie),
            "lower": lambda: total - count_at_least(values, size, first + tie + 1),
        }
        sides = ("higher", "lower") if harm == "either" else (harm,)
        extreme = min(tails[side]() for side in sides)
        value = min(1.0, len(sides) * extreme / total)
        return PValue(value, "exact, partitions counted in two halves")


def compare_with_exchanges(
    tested: ExchangedDifferences | None,
    value: float,
    harm: Harm,
    null: str,
    statistic: Callable[[Floats], Floats] | None = None,
    *,
    column: int = 0,
    factor: float = 1.0,
    shift: float = 0.0,
) -> ChanceTest:
    """Hold a value against exchanged members.

    Parameters
    ----------
    tested : Exchanged or None
        None: there is nothing to hold it against.
    value, harm, null
        The value, its harm, and the null hypothesis in words.
    statistic : callable, optional
        From all differences (partitions, k) to the value's draws. Default: one of the differences,
        in units of its standard errors where these are known, times `factor` plus `shift`.
    column : int
        Which difference.
    """
    if tested is None or math.isnan(value):
        return UNTESTED
    text = f"{null}; {tested.text}"
    if statistic is None and len(tested.error):
        error = float(tested.error[column])
        ratios = tested.null[:, column] / tested.null_errors[:, column]
        return compare_studentized(
            tested, float(tested.observed[column]) / error, ratios, harm, text,
            factor=factor * error, shift=shift,
        )  # fmt: skip
    if statistic is None and column:
        statistic = itemgetter((slice(None), column))
    if statistic is not None:
        return compare_with_null(
            statistic(tested.null),
            value,
            harm,
            text,
            weights=1.0 if tested.enumerated else None,
            resolution=tested.resolution,
            scale=tested.scale,
        )
    p = tested.p_value(harm)
    chance = tested.chance(text, harm, factor, shift)
    return ChanceTest(chance, p.value, f"{text}; {p.method}", p.at_most)


def compare_studentized(
    tested: ExchangedDifferences,
    observed: float,
    ratios: Floats,
    harm: Harm,
    text: str,
    *,
    factor: float,
    shift: float = 0.0,
) -> ChanceTest:
    """Compare a studentized difference with its values under exchanged members.

    The p-value is exact where members are exchangeable and, in large sets, valid where means are
    equal and spreads aren't (Janssen 1997, Statistics & Probability Letters 36, 9-21). The chance
    level is that of the ratio times `factor`, the standard error, plus `shift`.
    """
    weights = 1.0 if tested.enumerated else None
    p = p_value(ratios, observed, harm, weights=weights, resolution=tested.resolution)
    text = f"{text}; differences in standard errors"
    chance = band(ratios * factor + shift, harm, method=text, weights=weights)
    return ChanceTest(chance, p.value, f"{text}; {p.method}", p.at_most)


def _whole(numbers: Floats) -> tuple[Integers, int]:
    """Return numbers as whole ones times a power of two, as fine as sums allow, and its bits."""
    largest_sum = float(np.abs(numbers).sum(axis=0).max(initial=0.0))
    bits = math.floor(61 - math.log2(largest_sum)) if largest_sum > 0 else 0
    return integers(np.rint(np.ldexp(numbers, bits))), bits


def exchange(
    first: Floats,
    second: Floats,
    resampling: Resampling,
    seed: Seed,
    name: str,
    *,
    units: tuple[Sequence[str], Sequence[str]] | None = None,
    studentized: bool = False,
) -> ExchangedDifferences:
    """Exchange the members of two sets, keeping their sizes.

    Parameters
    ----------
    first, second : ndarray, shape (n, k)
        k numbers of each member.
    resampling : Bootstrap or Permutation
    seed, name : int, str
        Key of the random stream.
    units : tuple of two sequences of str, optional
        Units of the members: units of one set move as a whole, units of both exchange within.
    studentized : bool
        Give standard errors too. A single difference of sets of equal sizes needs none: it ranks
        partitions as its ratio does.

    Raises
    ------
    InputError
        When units do not fit the members.
    """
    pooled, n, m = np.concatenate([first, second]), len(first), len(second)
    k = pooled.shape[1]
    studentized = studentized and (n != m or k > 1 or units is not None)
    if studentized:
        # Sums of squares keep their digits around the mean of all.
        pooled = pooled - pooled.mean(axis=0)
        if units is None:
            pooled = np.concatenate([pooled, pooled**2], axis=1)
    fixed_point, bits = _whole(pooled)
    scale = float(np.ldexp(np.abs(fixed_point).sum(axis=0).max(), -bits)) * (1 / n + 1 / m)
    if units is not None:
        draws = permutations(n + m, resampling)
        streams = keys(seed, "partition", name, "unit", n_streams=draws)
        differences, errors = _exchange_units(fixed_point, n, units, streams, bits)
        observed, null = differences[0], differences[1:]
        text = f"{draws} random exchanges of units"
        exchanged = ExchangedDifferences(
            observed, null, False, 0, text, scale, resampling.resolution
        )
        return replace(exchanged, error=errors[0], errors=errors[1:]) if studentized else exchanged
    partitions = count_partitions(n, m)
    enumerated = _enumerates(partitions, resampling)
    sums, text, halved = _draw_sums(fixed_point, n, resampling, seed, name)
    total, first_sum = fixed_point.sum(axis=0), fixed_point[:n].sum(axis=0)
    observed = _difference(first_sum, total - first_sum, n, m, bits)[..., :k]
    null = _difference(sums, total - sums, n, m, bits)[..., :k]
    exchanged = ExchangedDifferences(
        observed,
        null,
        enumerated,
        partitions,
        text,
        scale,
        resampling.resolution,
        halved,
        enumerated and n == m,
    )
    if not studentized:
        return exchanged
    error = _error(first_sum, total - first_sum, n, m, bits)
    errors = _error(sums, total - sums, n, m, bits)
    return replace(exchanged, error=error, errors=errors)


def _enumerates(partitions: int, resampling: Resampling) -> bool:
    """Whether all partitions are taken; a single draw is for intervals alone."""
    return partitions <= MOST_PARTITIONS and null_draws(resampling) > 1


def _draw_sums(
    fixed_point: Integers, n: int, resampling: Resampling, seed: Seed, name: str
) -> tuple[Numbers, str, tuple[Integers, int, int] | None]:
    """Return sums of n exchanged members, how they were drawn, and what halves need, if used."""
    m = len(fixed_point) - n
    partitions = count_partitions(n, m)
    single = fixed_point.shape[1] == 1
    ordered = fixed_point[
        np.argsort(fixed_point[:, 0]) if single else np.lexsort(fixed_point.T[::-1])
    ]
    if _enumerates(partitions, resampling):
        sums = _all_sums(ordered, n, mirrored=n == m)
        return sums, f"all {partitions} partitions enumerated", None
    # Through the smaller set.
    few_sums, text = _few_sums(ordered, min(n, m), resampling, seed, name)
    few_sums = few_sums if n <= m else ordered.sum(axis=0) - few_sums
    if n + m > MOST_HALVED or not single:
        return few_sums, text, None
    halved = ordered[:, 0], n, int(fixed_point[:n, 0].sum())
    return few_sums, f"{text} for the chance level", halved


def _few_sums(
    values: Integers, size: int, resampling: Resampling, seed: Seed, name: str
) -> tuple[Numbers, str]:
    """Return sums of random subsets of `size` members, shape (draws, k), and how they were drawn.

    Sums of many members are drawn from the moments of all (n, k), where these are nearly normal.
    """
    n, k = values.shape
    if size >= _LARGE:
        moments = Moments.of(lambda part: floats(values[part]), n, k)
        if moments.normal(size, n):
            draws = null_draws(resampling, _MAX_DRAWN)
            sizes = np.array([size, n - size])
            replicates = moments.exchanged_sums(lambda sums: sums[:, 0], sizes, draws, seed, name)
            text = f"{draws} partitions drawn from the moments of the members"
            return np.concatenate(replicates), text
    draws = permutations(n, resampling)
    return random_sums(values, size, draws, seed, name), f"{draws} random partitions"


def _difference(first: Numbers, second: Numbers, n: int, m: int, bits: int) -> Floats:
    """Return differences of means from sums in fixed point."""
    low = (first - second) / n if n == m else first / n - second / m
    # In two steps, for 2^-bits may be no float.
    return low * math.ldexp(1.0, -bits // 2) * math.ldexp(1.0, -bits - -bits // 2)


def _error(first: Numbers, second: Numbers, n: int, m: int, bits: int) -> Floats:
    """Return standard errors of differences in means, from sums of k numbers and their squares.

    A set of one adds none; errors are above 0, so that ratios are finite.
    """
    k = first.shape[-1] // 2
    variance = np.zeros(())
    for sums, size in ((first, n), (second, m)):
        totals = np.ldexp(floats(sums), -bits)
        squares = totals[..., k:] - totals[..., :k] ** 2 / size
        variance = variance + np.maximum(squares, 0.0) / (size * max(size - 1, 1))
    squares_total = np.ldexp(floats((first + second)[..., k:]), -bits)
    return np.sqrt(np.maximum(variance, squares_total * _FLAT + np.finfo(np.float64).tiny))


def count_partitions(first: int, second: int) -> int:
    """Return in how many ways two sets exchange members, counted up to `MOST_COUNTED`."""
    # Sixty of more than a hundred are chosen in more ways than that; all digits would take seconds.
    return min(MOST_COUNTED, math.comb(first + second, min(first, second, 60)))


def permutations(members: int, resampling: Resampling) -> int:
    """Return how many draws resolve the finest p-value, within what moving members costs."""
    return null_draws(resampling, _MAX_MOVED // max(members, 1))


def count_at_least(values: Integers, size: int, threshold: int) -> int:
    """Count subsets of `size` members with a sum of at least a threshold.

    Sums of each half are grouped by size and sorted, and pairs counted between them, so that 40
    members take 2^20 sums a side instead of 1.4e11 subsets.

    Parameters
    ----------
    values : ndarray of int64, shape (n,), n <= 44
    size, threshold : int
    """
    first_sums, second_sums = _sorted_sums(values[::2]), _sorted_sums(values[1::2])
    count = 0
    for left_size, sums in enumerate(first_sums):
        if 0 <= size - left_size < len(second_sums):
            right_sums = second_sums[size - left_size]
            # Reversed, what is searched for rises, which keeps the search in the cache.
            needed = threshold - sums[::-1]
            count += len(sums) * len(right_sums) - int(np.searchsorted(right_sums, needed).sum())
    return count


def _sorted_sums(values: Integers) -> list[Integers]:
    """Return the sums of all subsets, by their size."""
    sums: list[Integers] = [np.zeros(1, dtype=np.int64)]
    empty = np.empty(0, dtype=np.int64)
    for value in values:
        pairs = zip(
            [*sums, empty], [empty, *(subset_sums + value for subset_sums in sums)], strict=True
        )
        sums = [np.concatenate(pair) for pair in pairs]
    return [np.sort(subset_sums) for subset_sums in sums]


def _all_sums(ordered: Integers, size: int, *, mirrored: bool) -> Integers:
    """Return the sums of all subsets of `size` of members (n, k), in lexicographic order.

    Mirrored, only of those with the first member: the complement of the first is the last.
    """
    remaining, size = (ordered[1:], size - 1) if mirrored else (ordered, size)
    all_sums = np.empty((remaining.shape[1], math.comb(len(remaining), size)), dtype=np.int64)
    for column, sums in zip(np.ascontiguousarray(remaining.T), all_sums, strict=True):
        enumerate_sums(column, size, sums)
    return np.ascontiguousarray(all_sums.T) + (ordered[0] if mirrored else 0)


def random_sums(values: Integers, size: int, draws: int, seed: Seed, *names: str) -> Integers:
    """Return sums of random subsets of `size` members, all equally likely.

    Parameters
    ----------
    values : ndarray of int64, shape (n, k)
    size, draws : int
    seed, names : int, str
        Key of the random stream.

    Returns
    -------
    ndarray of int64, shape (draws, k)
    """
    n, k = values.shape
    words = math.ceil(n / 64)
    columns = np.zeros((k, 64 * words), dtype=np.int64)
    columns[:, :n] = values.T
    sums = np.empty((draws, k), dtype=np.int64)
    starts = range(0, draws, _BLOCK)
    streams = keys(seed, "partition", *names, n_streams=len(starts))

    def draw(index: int) -> None:
        part = sums[starts[index] : starts[index] + _BLOCK]
        chosen = np.empty((len(part), words), dtype=np.uint64)
        draw_subsets(streams[index], n, size, chosen)
        add_chosen(chosen, columns, part)

    each(draw, range(len(starts)))
    return sums


def _exchange_units(
    fixed_point: Integers,
    n: int,
    units: tuple[Sequence[str], Sequence[str]],
    streams: Words,
    bits: int,
) -> tuple[Floats, Floats]:
    """Return differences in means and their standard errors, both (1 + draws, k).

    The first is observed, the others with the groups of carriers exchanged.
    """
    group = integers(np.arange(len(fixed_point)) >= n)
    unit = numbered([*units[0], *units[1]])
    # Rows in another order must give the same draws.
    order = np.lexsort((*fixed_point.T, group, unit))
    fixed_point, group, unit = fixed_point[order], group[order], unit[order]
    blocks = Exchange.within(group, unit, np.zeros_like(unit))
    counted = np.column_stack([np.ones_like(group), fixed_point])
    carried = np.zeros((len(blocks.pool), counted.shape[1]), dtype=np.int64)
    np.add.at(carried, blocks.carrier, counted)
    k = fixed_point.shape[1]
    n_own, sums = floats(carried[:, :1]), np.ldexp(carried[:, 1:].astype(float), -bits)
    fixed, fine = _whole(np.concatenate([sums**2, sums * n_own], axis=1))
    carried = np.ascontiguousarray(np.concatenate([carried, fixed, carried[:, :1] ** 2], axis=1))
    members = np.bincount(blocks.pool)
    starts = np.concatenate([[0], np.cumsum(members)])
    n_first = np.bincount(blocks.pool[blocks.group == 0], minlength=len(members))
    places = np.argsort(blocks.pool, kind="stable")
    first = np.empty((1 + len(streams), carried.shape[1]), dtype=np.int64)
    first[0] = carried[blocks.group == 0].sum(axis=0)

    def draw(start: int) -> None:
        block = slice(start, start + _EXCHANGED_AT_ONCE)
        add_exchanged(streams[block], places.copy(), starts, n_first, carried, first[1:][block])

    each(draw, range(0, len(streams), _EXCHANGED_AT_ONCE))
    second = carried.sum(axis=0) - first
    differences, variance = np.zeros((2, len(first), k))
    for sign, sums, groups in ((1.0, first, 0), (-1.0, second, 1)):
        counts, total, squares, crosses, sizes = np.split(sums, np.cumsum([1, k, k, k]), axis=1)
        mean = np.ldexp(total / counts, -bits)
        square, cross = np.ldexp(floats(squares), -fine), np.ldexp(floats(crosses), -fine)
        squares_around = square - 2.0 * mean * cross + mean**2 * sizes
        carriers = tally(blocks.group == groups)
        differences += sign * mean
        variance += (
            np.maximum(squares_around, 0.0) / floats(counts) ** 2 * carriers / max(carriers - 1, 1)
        )
    least = _FLAT * fixed[:, :k].sum(axis=0) * math.ldexp(1.0, -fine)
    return differences, np.sqrt(np.maximum(variance, least + np.finfo(np.float64).tiny))


SetUnits = Mapping[str, Labels]
"""Names of the units that the members of a set repeat within, by set."""


# Pairs of sets, and how often the mean similarity between them counts.
Terms = Mapping[tuple[str, str], float]


@record
class Jackknife:
    """Numbers with their leave-one-out values by independent sample.

    Attributes
    ----------
    make : callable
        Returns the numbers, shape (k,), and an array of shape (members, k) for each sample; it is
        called when an end is first needed.
    scale : float, optional
        The first number is the inverse hyperbolic tangent of what is wanted divided by it.
    """

    make: Callable[[], tuple[Floats, Sequence[Floats]]]
    scale: float | None = None

    @cached_property
    def numbers(self) -> tuple[Floats, Sequence[Floats]]:
        """The numbers, and the numbers without each member of each sample."""
        return self.make()

    @cached_property
    def ends(self) -> Callable[[float], tuple[Floats, Floats]]:
        """Function of the level that returns both ends of every number."""
        return cache(self._ends)

    def _ends(self, level: float) -> tuple[Floats, Floats]:
        all_ends = jackknife_t(*self.numbers, level)
        if self.scale is not None:
            for end in all_ends:
                end[0] = self.scale * np.tanh(end[0])
        return all_ends

    def draws(self, n_draws: int, seed: Seed) -> Floats:
        """Draw normal numbers with the covariance of a bootstrap, shape (many, k)."""
        values, left_out = self.numbers
        covariance = np.zeros((len(values), len(values)))
        for replicates in left_out:
            deviations = replicates - replicates.mean(axis=0)
            # A bootstrap of n members has (n - 1) / n of the variance of their mean.
            covariance += ((len(replicates) - 1.0) / len(replicates)) ** 2 * np.einsum(
                "nj,nk->jk", deviations, deviations
            )
        normal = stream(seed, "jackknife").standard_normal((n_draws, len(values)))
        return floats(values + np.einsum("rj,kj->rk", normal, lower_root(covariance)))


@record
class JackknifeEnds:
    """Ends of the interval of a number of a jackknife."""

    jackknife: Jackknife
    column: int

    def __call__(self, level: float) -> Span:
        """Return the lower and upper end."""
        low, high = self.jackknife.ends(level)
        return float(low[self.column]), float(high[self.column])


def ends_at(jackknife: Jackknife | None, column: int) -> Ends:
    """Return the interval of a number."""
    return no_ends if jackknife is None else JackknifeEnds(jackknife, column)


@record
class Space:
    """Named sets in one space, and how statistics of them are resampled.

    Attributes
    ----------
    sets : mapping of str to Members
    similarity : callable or None
        None: the cosine.
    fixed : collection of str
        Sets that intervals take as given.
    resampling : Bootstrap, Permutation or None
    seed : int
    """

    sets: Mapping[str, Members]
    similarity: Similarity | None
    fixed: Collection[str]
    resampling: Resampling | None
    seed: Seed

    @classmethod
    def of(
        cls,
        targets: Mapping[str, ArrayLike],
        attributes: Mapping[str, ArrayLike],
        fixed: Collection[str],
        similarity: Similarity | None = None,
        units: SetUnits | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Space:
        """Embed the sets.

        Raises
        ------
        InputError
            See `equipoise.metrics.vectors.sets.embed`; or a fixed set does not exist.
        """
        sets = embed(targets, attributes, similarity=similarity, units=units)
        if unknown := sorted({*fixed} - {*sets}):
            raise InputError(f"fixed: no set is called {unknown[0]!r}; expected some of {[*sets]}")
        return cls(sets, similarity, fixed, resampling, rng)

    def __getitem__(self, name: str) -> Members:
        return self.sets[name]

    @property
    def level(self) -> float:
        """Confidence level of parts."""
        return level_of(self.resampling)

    def bilinear(self, numbers: Sequence[Terms]) -> tuple[Floats, Jackknife | None]:
        """Return sums of mean similarities between sets, and their jackknife.

        Parameters
        ----------
        numbers : sequence of mapping of (str, str) to float
            For each number, pairs of sets and how often their mean similarity counts. Units that
            are in several sets count to first order.
        """
        means = {name: members.mean for name, members in self.sets.items()}
        slopes = {name: np.zeros((len(numbers), len(means[name]))) for name in self.varied}
        values = np.zeros(len(numbers))
        for place, terms in enumerate(numbers):
            for (first, second), times in terms.items():
                values[place] += times * np.einsum("d,d->", means[first], means[second])
                for set_name, partner in ((first, second), (second, first)):
                    if set_name in slopes:
                        slopes[set_name][place] += times * means[partner]
        if self.resampling is None:
            return values, None

        def make() -> tuple[Floats, list[Floats]]:
            rows = {name: with_ones(self[name].similarities(to)) for name, to in slopes.items()}
            left_out = []
            for sums in self.sums_without_each(rows):
                left_out_values = values
                for name, table in rows.items():
                    mean = table[:, 1:].mean(axis=0)
                    left_out_values = left_out_values + (
                        sums[name][:, 1:] / sums[name][:, :1] - mean
                    )
                left_out.append(left_out_values)
            return values, left_out

        return values, Jackknife(make)

    def sums_without_each(self, rows: Mapping[str, Floats]) -> list[dict[str, Floats]]:
        """Return sums of rows without each member, or unit, of each sample of the jackknife.

        A set whose members vary is a sample; sets that share units are one.

        Parameters
        ----------
        rows : mapping of str to ndarray, shape (n, c)
            Numbers of the members, by set.

        Returns
        -------
        list of dict of str to ndarray, shape (members or units, c)
            One for each sample, with the sums of all sets.
        """
        totals = {name: table.sum(axis=0) for name, table in rows.items()}

        def without(sample: set[str]) -> dict[str, Floats]:
            removed, codes = {name: rows[name] for name in sample}, self.codes(sample)
            n_left_out = 1 + max(int(set_codes.max()) for set_codes in codes.values())
            for name, table in removed.items():
                if self[name].units is not None:
                    removed[name] = np.zeros((n_left_out, table.shape[1]))
                    np.add.at(removed[name], codes[name], table)
            return {
                name: total - removed.get(name, np.zeros((n_left_out, 1)))
                for name, total in totals.items()
            }

        return [without(sample) for sample in self.samples(rows)]

    def samples(self, names: Container[str]) -> list[set[str]]:
        """Return the independent samples among some sets: sets that share units are one."""
        samples: list[set[str]] = []
        for name in self.varied:
            if name not in names:
                continue
            units, joined = {*(self[name].units or ())}, {name}
            separate: list[set[str]] = []
            for sample in samples:
                if units.isdisjoint(self._units_of(sample)):
                    separate.append(sample)
                else:
                    joined |= sample
            samples = [*separate, joined]
        return samples

    def codes(self, sample: Iterable[str]) -> dict[str, Integers]:
        """Return the number of each member's unit, or of the member, by set of a sample."""
        names = [*sample]
        if any(self[name].units is None for name in names):
            return {name: np.arange(len(self[name])) for name in names}
        _, places = np.unique(self._units_of(names), return_inverse=True)
        ends = np.cumsum([len(self[name]) for name in names])[:-1]
        return dict(zip(names, np.split(places, ends), strict=True))

    def _units_of(self, names: Iterable[str]) -> list[Any]:
        """Return the units of the members of some sets, set after set."""
        units: list[Any] = []
        for name in names:
            units += self[name].units or ()
        return units

    def exchange(
        self,
        first: str,
        second: str,
        directions: Sequence[Floats],
        key: str,
        *,
        studentized: bool = True,
    ) -> ExchangedDifferences | None:
        """Exchange the members of two sets, each counted by its products with k directions.

        Raises
        ------
        InputError
            When only one of them has units; see `equipoise.metrics.vectors.resampling.exchange`.
        """
        if self.resampling is None:
            return None
        members = self[first], self[second]
        with_units = [name for name in (first, second) if self[name].units is not None]
        if len(with_units) == 1:
            raise InputError(
                f"units: only {with_units[0]!r} has some; {first} and {second} exchange members, "
                "so name the units of both"
            )
        low, high = (set_members.similarities(np.array(directions)) for set_members in members)
        units = (members[0].units or (), members[1].units or ()) if with_units else None
        return exchange(
            low, high, self.resampling, self.seed, key, units=units, studentized=studentized
        )

    def part(
        self, metric: str, value: float, jackknife: Jackknife | None, column: int, **columns: Any
    ) -> Part:
        """Return a number of the jackknife as a part; see `number` for columns."""
        return number(metric, value, ends=ends_at(jackknife, column), level=self.level, **columns)

    def group_values(
        self,
        names: Sequence[str],
        values: Sequence[float],
        jackknife: Jackknife | None = None,
        first: int = 0,
    ) -> tuple[GroupValue, ...]:
        """Return a number of each set with the interval of its column, from `first` on."""
        return tuple(
            GroupValue(
                name, (name,), len(self[name]), value, *ends_at(jackknife, column)(self.level)
            )
            for column, (name, value) in enumerate(zip(names, values, strict=True), start=first)
        )

    def estimate(  # noqa: PLR0913 - one keyword for each field
        self,
        metric: str,
        value: float,
        parts: Iterable[Part] | Callable[[], Iterable[Part]],
        chance_test: ChanceTest,
        *,
        jackknife: Jackknife | None,
        ends: Ends | None = None,
        corrected: float = math.nan,
        kind: str = "",
        interval_kind: IntervalKind = IntervalKind.CONFIDENCE,
        params: Mapping[str, Json] | None = None,
        pairs: Sequence[tuple[str, str]] = (),
        reason: str = "",
        harm: Harm | None = None,
        no_chance: str = "resampling is off, or there is no value",
    ) -> Estimate:
        """Return the estimate of a number of the sets.

        Parameters
        ----------
        metric, value, corrected, interval_kind, reason, harm, no_chance
            Fields of the estimate.
        parts : callable
            Makes them when they are first needed.
        held : ChanceTest
        found : Jackknife or None
            Its first number is the value, unless there are `ends`.
        kind : str
            How intervals are made, in words.
        params : mapping, optional
            Further parameters.
        pairs : sequence of pairs of str
            Sets whose common members are counted.
        """
        method, fixed_names = NO_INTERVAL, [name for name in self.sets if name not in self.varied]
        if self.resampling is not None and not self.varied:
            method = "none: no set of two members or more varies"
        elif self.resampling is not None:
            method = f"{kind or STUDENT} over {', '.join(self.varied)}"
            if fixed_names:
                method += f"; {', '.join(fixed_names)} fixed"
        shared = {
            f"{a} and {b}": count for a, b in pairs if (count := shared_members(self[a], self[b]))
        }
        return make_estimate(
            metric=metric,
            value=value,
            n={name: len(members) for name, members in self.sets.items()},
            method=method,
            interval_kind=interval_kind,
            params={
                **(params or {}),
                "similarity": "cosine" if self.similarity is None else "scores of pairs",
                **({"in_both": shared} if shared else {}),
            },
            **chance_test.fields(no_chance),
            harm=harm,
            by=parts,
            excluded={
                dropped_of(name, reason): count
                for name, members in self.sets.items()
                for reason, count in members.dropped.items()
            },
            unit="row" if all(members.units is None for members in self.sets.values()) else "unit",
            reason=reason,
            ends=ends or ends_at(jackknife, 0),
            corrected=corrected,
        )

    @cached_property
    def varied(self) -> list[str]:
        """Names of the sets that vary between samples."""
        return [
            name
            for name, members in self.sets.items()
            if name not in self.fixed and members.independent > 1
        ]


def with_ones(rows: Floats) -> Floats:
    """Return rows (n, k) behind a one each: their sums hold the number of rows."""
    return np.column_stack([np.ones(len(rows)), rows])
