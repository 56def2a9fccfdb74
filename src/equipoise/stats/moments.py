"""Sums over many rows drawn from their moments: a draw costs the same for any number of rows.

Where groups are exchanged, or rows are drawn a Poisson(1) number of times, the sums of large groups
are nearly normal with known means and covariances. `Moments.normal` says whether they are near
enough. Sums of smaller groups are drawn row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from equipoise.core import Floats, Floats32, Integers, floats, record
from equipoise.stats.streams import Seed, stream
from equipoise.stats.threads import each, sum_results

Item = TypeVar("Item")
Result = TypeVar("Result")

# Numbers of rows that are read at once; draws that are made at once, and normal numbers of these.
_NUMBERS, _DRAWS, _NORMAL = 1 << 18, 128, 1 << 22
# Columns of a triangular root that are found before the others are mended.
_PANEL = 64
# The largest skewness and excess kurtosis of a sum: they move a tail of 0.0001 by a tenth and a
# twentieth, a tail of 0.001 by half as much.
_SKEWNESS, _KURTOSIS = 0.01, 0.01
# A variance that is rounding only, relative to the one of all.
_NOTHING = 1e-12


@record
class Moments:
    """Moments of k numbers over n rows.

    Attributes
    ----------
    rows : int
    mean : ndarray, shape (k,)
    scatter : ndarray, shape (k, k)
        Sums over rows of products of deviations from the mean.
    skewness, kurtosis : ndarray, shape (k,)
        Third and fourth standardised moments of the rows, the latter less 3; 0 where a number
        does not vary.
    """

    rows: int
    mean: Floats
    scatter: Floats
    skewness: Floats
    kurtosis: Floats

    @classmethod
    def of(cls, read: Callable[[slice], Floats], rows: int, numbers: int) -> Moments:
        """Read rows twice, some at a time and in threads, for their mean and their moments.

        Parameters
        ----------
        read : callable
            From a slice of the rows to their numbers, shape (some, k).
        rows, numbers : int
            n and k.
        """
        step = max(1, _NUMBERS // numbers)
        parts = [slice(start, min(start + step, rows)) for start in range(0, rows, step)]
        (total,) = sum_results(lambda part: [read(part).sum(axis=0, dtype=np.float64)], parts)
        return cls.around(total / rows, rows, lambda part: [read(part)], parts)

    @classmethod
    def around(
        cls,
        mean: Floats,
        rows: int,
        read: Callable[[Item], Iterable[Floats | Floats32]],
        parts: Sequence[Item],
    ) -> Moments:
        """Read rows once, in threads, for the moments around a mean that is known.

        Parameters
        ----------
        mean : ndarray, shape (k,)
        rows : int
            n.
        read : callable
            From a part to blocks of its rows, each of shape (some, k). Blocks of float32 are
            multiplied as they are, twice as fast; moments then have five digits.
        parts : sequence
        """

        def powers(part: Item) -> list[Floats]:
            total = np.zeros((len(mean), len(mean))), *np.zeros((2, len(mean)))
            for block in read(part):
                single = block.dtype == np.float32
                deviations = block - (mean.astype(np.float32) if single else mean)
                squares = deviations * deviations
                total[0][:] += deviations.T @ deviations
                total[1][:] += np.einsum("nk,nk->k", squares, deviations)
                total[2][:] += np.einsum("nk,nk->k", squares, squares)
            return [*total]

        scatter, cubes, fourths = sum_results(powers, parts)
        variance = np.diag(scatter) / rows
        scale = np.where(variance > 0, variance, np.inf)
        kurtosis = np.where(variance > 0, fourths / rows / scale**2 - 3.0, 0.0)
        return cls(rows, mean, scatter, cubes / rows / scale**1.5, kurtosis)

    def normal(self, rows: int, n_exchanging: float = math.inf, first: int | None = None) -> bool:
        """Return whether sums of `rows` rows are near enough to normal.

        Parameters
        ----------
        rows : int
            Rows of the smallest group.
        of : float
            Rows that exchange groups; infinite for rows that are drawn with replacement.
        first : int, optional
            How many of the numbers, from the first on, have to be; default: all. Numbers that are
            in standard errors alone, such as squares, need not.
        """
        if rows < 1 or rows >= n_exchanging:
            return False
        share = rows / n_exchanging
        spread = math.sqrt(rows * (1.0 - share))
        skewness = np.abs(self.skewness[:first]).max(initial=0.0) * abs(1.0 - 2.0 * share) / spread
        kurtosis = max(np.abs(self.kurtosis[:first]).max(initial=0.0), 1.0) / spread**2
        return bool(skewness <= _SKEWNESS and kurtosis <= _KURTOSIS)

    def exchanged_sums(
        self,
        function: Callable[[Floats], Result],
        sizes: Integers,
        draws: int,
        seed: Seed,
        name: str,
        read: Callable[[Integers], Floats] | None = None,
        first: int | None = None,
    ) -> list[Result]:
        """Apply a function to sums by group, groups exchanged between all rows.

        Sums have the exact means and covariances of a permutation, and add up to the sum of all.

        Parameters
        ----------
        function : callable
            Takes sums of shape (some draws, groups, k). Its value for a draw must not depend on
            the other draws.
        sizes : ndarray of int64, shape (groups,)
            Rows of each group, n together.
        draws : int
        seed, name : int, str
            Key of the random stream.
        read : callable, optional
            From places of rows to their numbers. Groups that are too small to be normal then draw
            their rows, and the others share what remains; without it all are drawn from moments.
        first : int, optional
            See `normal`.

        Returns
        -------
        list
            Results in the order of the draws, the same for groups in another order, but for
            groups of equal sizes.
        """
        # The smallest group draws first, so that renamed groups keep their draws.
        order = np.argsort(sizes, kind="stable")
        inverse_order, ordered_sizes = np.argsort(order), sizes[order]
        n_small = 0 if read is None else self.n_small(ordered_sizes, first)
        n_large_rows, large = (
            int(ordered_sizes[n_small:].sum()),
            floats(ordered_sizes[n_small:, None]),
        )
        root = lower_root(self.scatter / max(self.rows - 1, 1)).T
        step = max(1, min(_DRAWS, _NORMAL // max(len(sizes) * len(root), 1)))

        def draw_block(start: int) -> Result:
            shape = (min(step, draws - start), len(large), len(self.mean))
            normal = stream(seed, name, "moments", start).standard_normal(shape)
            normal *= np.sqrt(large)
            normal -= large / n_large_rows * normal.sum(axis=1, keepdims=True)
            sums = (normal.reshape(-1, shape[2]) @ root).reshape(shape)
            mean = np.broadcast_to(self.mean, (shape[0], 1, shape[2]))
            if n_small and read is not None:
                rng = stream(seed, name, "rows", start)
                blocks = [
                    _drawn_sums(read, self.rows, ordered_sizes[:n_small], rng)
                    for _ in range(shape[0])
                ]
                small_sums = np.stack(blocks)
                mean = (
                    self.rows * self.mean - small_sums.sum(axis=1, keepdims=True)
                ) / n_large_rows
                sums = np.concatenate([small_sums, sums + large * mean], axis=1)
            else:
                sums += large * mean
            return function(sums[:, inverse_order])

        return each(draw_block, range(0, draws, step))

    def n_small(self, sizes: Integers, first: int | None = None) -> int:
        """Return how many groups, the smallest ones, are too small for a normal sum.

        Parameters
        ----------
        sizes : ndarray of int64, shape (groups,)
            In order; groups that exchange rows with each other. The last is never too small: its
            sum is what the others leave.
        first : int, optional
            See `normal`.
        """
        remaining = np.cumsum(sizes[::-1])[::-1]
        for group, (rows, n_remaining) in enumerate(
            zip(sizes.tolist(), remaining.tolist(), strict=True)
        ):
            if self.normal(rows, n_remaining, first):
                return group
        return len(sizes) - 1

    def poisson_sums(self, draws: int, seed: Seed, name: str) -> tuple[Floats, Floats]:
        """Draw each row a Poisson(1) number of times, as a bootstrap of independent rows does.

        Returns
        -------
        tuple of ndarray, shape (draws,) and (draws, k)
            How many rows are drawn, and the sums of their numbers.
        """
        root = lower_root(self.scatter).T

        def draw_block(start: int) -> tuple[Floats, Floats]:
            shape = (min(_DRAWS, draws - start), 1 + len(self.mean))
            normal = stream(seed, name, "moments", start).standard_normal(shape)
            rows = self.rows + math.sqrt(self.rows) * normal[:, 0]
            return rows, rows[:, None] * self.mean + normal[:, 1:] @ root

        rows, sums = zip(*each(draw_block, range(0, draws, _DRAWS)), strict=True)
        return np.concatenate(rows), np.concatenate(sums)


def _drawn_sums(
    read: Callable[[Integers], Floats], rows: int, sizes: Integers, rng: np.random.Generator
) -> Floats:
    """Return sums over random rows, so many for each group, without replacement."""
    numbers = read(rng.choice(rows, int(sizes.sum()), replace=False))
    sums = np.zeros((len(sizes), numbers.shape[1]))
    nonempty = sizes > 0
    if nonempty.any():
        sums[nonempty] = np.add.reduceat(numbers, (np.cumsum(sizes) - sizes)[nonempty], axis=0)
    return sums


def lower_root(covariance: Floats) -> Floats:
    """Return the triangular root of a covariance matrix, by Cholesky's steps in one fixed order."""
    residual, root = covariance.copy(), np.zeros_like(covariance)
    for start in range(0, len(residual), _PANEL):
        panel = slice(start, start + _PANEL)
        for place in range(len(residual))[panel]:
            if residual[place, place] > _NOTHING * covariance[place, place]:
                root[start:, place] = residual[start:, place] / math.sqrt(residual[place, place])
                residual[start:, panel] -= np.outer(root[start:, place], root[panel, place])
        after = slice(start + _PANEL, None)
        residual[after, after] -= root[after, panel] @ root[after, panel].T
    return root
