"""Named sets in one space: the jackknife, exchanges of members, and estimates of them.

All statistics are smooth functions of mean vectors, so that the jackknife takes one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core import (
    Ends,
    Estimate,
    Floats,
    GroupValue,
    Harm,
    InputError,
    Part,
    no_ends,
    parts_to_table,
)
from equipoise.metrics.building import (
    STUDENT,
    Against,
    number,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, Drawing
from equipoise.metrics.spec import make_estimate
from equipoise.metrics.vectors.partitions import Exchanged, exchange
from equipoise.metrics.vectors.sets import Members, Similarity, embed, shared_members
from equipoise.stats.intervals import jackknife_t
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed, stream

# Variance that is left of a number, relative to its own, below which it is rounding.
_NOTHING = 1e-12

# Pairs of sets, and how often the mean similarity between them counts.
Terms = Mapping[tuple[str, str], float]


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Numbers, and what they are without each member of each independent sample.

    Attributes
    ----------
    values : ndarray, shape (k,)
    left_out : sequence of ndarray, shape (members, k)
    scale : float, optional
        The first number is the inverse hyperbolic tangent of what is wanted divided by it.
    """

    values: Floats
    left_out: Sequence[Floats]
    scale: float | None = None

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return both ends of every number, see `jackknife_t`."""
        both = jackknife_t(self.values, self.left_out, level)
        if self.scale is not None:
            for end in both:
                end[0] = self.scale * np.tanh(end[0])
        return both

    def changed(self, function: Callable[[Floats], Floats]) -> Jackknife:
        """Return a smooth function of the numbers (..., k)."""
        return Jackknife(function(self.values), [*map(function, self.left_out)])

    def draws(self, many: int, seed: Seed) -> Floats:
        """Draw normal numbers with the covariance of a bootstrap, shape (many, k)."""
        covariance = np.zeros((len(self.values), len(self.values)))
        for one in self.left_out:
            apart = one - one.mean(axis=0)
            # A bootstrap of n members has (n - 1) / n of the variance of their mean.
            covariance += ((len(one) - 1.0) / len(one)) ** 2 * np.einsum("nj,nk->jk", apart, apart)
        normal = stream(seed, "jackknife").standard_normal((many, len(self.values)))
        return np.asarray(self.values + np.einsum("rj,kj->rk", normal, _root(covariance)))

    def column(self, index: int) -> Ends:
        """Return the ends of one number."""

        def ends(level: float) -> tuple[float, float]:
            low, high = self.ends(level)
            return float(low[index]), float(high[index])

        return ends


def ends_at(found: Jackknife | None, column: int) -> Ends:
    """Return the interval of a number."""
    return no_ends if found is None else found.column(column)


class Options(Drawing, total=False):
    """What every score of sets takes, see `equipoise.metrics.association_score`."""

    similarity: Similarity | None
    units: Mapping[str, Any] | None


@dataclass(frozen=True, eq=False)
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
        targets: Mapping[str, Any],
        attributes: Mapping[str, Any],
        fixed: Collection[str],
        *,
        similarity: Similarity | None = None,
        units: Mapping[str, Any] | None = None,
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
        means = {name: one.mean for name, one in self.sets.items()}
        slopes = {name: np.zeros((len(numbers), len(means[name]))) for name in self.moved}
        values = np.zeros(len(numbers))
        for place, terms in enumerate(numbers):
            for (first, second), times in terms.items():
                values[place] += times * np.einsum("d,d->", means[first], means[second])
                for one, other in ((first, second), (second, first)):
                    if one in slopes:
                        slopes[one][place] += times * means[other]
        if self.resampling is None:
            return values, None
        rows = {name: with_ones(self[name].similarities(to)) for name, to in slopes.items()}
        left_out = []
        for sums in self.sums_without_each(rows):
            without = values
            for name, own in rows.items():
                mean = own[:, 1:].mean(axis=0)
                without = without + (sums[name][:, 1:] / sums[name][:, :1] - mean)
            left_out.append(without)
        return values, Jackknife(values, left_out)

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
        totals = {name: own.sum(axis=0) for name, own in rows.items()}
        samples: list[set[str]] = []
        for name in (one for one in self.moved if one in rows):
            units = {*(self[name].units or ())}
            joined = [one for one in samples if any(units & {*(self[o].units or ())} for o in one)]
            samples = [one for one in samples if one not in joined] + [{name}.union(*joined)]
        return [self._without_each(rows, totals, sample) for sample in samples]

    def _without_each(
        self, rows: Mapping[str, Floats], totals: Mapping[str, Floats], sample: Collection[str]
    ) -> dict[str, Floats]:
        lost = {name: rows[name] for name in sample}
        if all(self[name].units is not None for name in sample):
            names = {unit for name in sample for unit in self[name].units or ()}
            place = dict(zip(sorted(names), range(len(names)), strict=True))
            for name, own in lost.items():
                lost[name] = np.zeros((len(place), own.shape[1]))
                np.add.at(lost[name], [place[unit] for unit in self[name].units or ()], own)
        many = len(next(iter(lost.values())))
        return {
            name: total - lost[name] if name in lost else np.broadcast_to(total, (many, len(total)))
            for name, total in totals.items()
        }

    def exchange(
        self,
        first: str,
        second: str,
        directions: Sequence[Floats],
        key: str,
        *,
        studentized: bool = True,
    ) -> Exchanged | None:
        """Exchange the members of two sets, each counted by its products with k directions.

        Raises
        ------
        InputError
            When only one of them has units; see `equipoise.metrics.vectors.partitions.exchange`.
        """
        if self.resampling is None:
            return None
        both = self[first], self[second]
        known = [one.name for one in both if one.units is not None]
        if len(known) == 1:
            raise InputError(
                f"units: only {known[0]!r} has some; {first} and {second} exchange members, so "
                "name the units of both"
            )
        low, high = (np.stack([one.dots(to) for to in directions], axis=1) for one in both)
        units = (both[0].units or (), both[1].units or ()) if known else None
        return exchange(
            low, high, self.resampling, self.seed, key, units=units, studentized=studentized
        )

    def part(
        self, metric: str, value: float, found: Jackknife | None, column: int, **columns: Any
    ) -> Part:
        """Return a number of the jackknife; other columns are those of `number`."""
        return number(metric, value, ends=ends_at(found, column), level=self.level, **columns)

    def group_values(
        self,
        names: Sequence[str],
        values: Sequence[float],
        found: Jackknife | None = None,
        first: int = 0,
    ) -> tuple[GroupValue, ...]:
        """Return a number of each set with the interval of its column, from `first` on."""
        return tuple(
            GroupValue(name, (name,), len(self[name]), value, *ends_at(found, column)(self.level))
            for column, (name, value) in enumerate(zip(names, values, strict=True), start=first)
        )

    def estimate(  # noqa: PLR0913 - one keyword for each field
        self,
        metric: str,
        value: float,
        parts: Sequence[Part],
        held: Against,
        *,
        found: Jackknife | None,
        ends: Ends | None = None,
        corrected: float = math.nan,
        kind: str = "",
        params: Mapping[str, Any] | None = None,
        pairs: Sequence[tuple[str, str]] = (),
        reason: str = "",
        harm: Harm | None = None,
        no_chance: str = "no resampling was asked for, or there is no value",
    ) -> Estimate:
        """Return the estimate of a number of the sets.

        Parameters
        ----------
        metric, value, corrected, reason, harm, no_chance
            Fields of the estimate.
        parts : sequence of Part
        held : Against
        found : Jackknife or None
            Its first number is the value, unless there are `ends`.
        kind : str
            How intervals are made, in words.
        params : mapping, optional
            Further parameters.
        pairs : sequence of pairs of str
            Sets whose common members are counted.
        """
        shared = {
            f"{a} and {b}": count for a, b in pairs if (count := shared_members(self[a], self[b]))
        }
        return make_estimate(
            metric=metric,
            value=value,
            n={name: len(one) for name, one in self.sets.items()},
            method=self.method_of(kind),
            params={
                **(params or {}),
                "similarity": "cosine" if self.similarity is None else "scores of pairs",
                **({"in_both": shared} if shared else {}),
            },
            **held.fields(no_chance),
            harm=harm,
            by=lambda: parts_to_table(parts),
            excluded={
                f"{name}: {why}": count
                for name, one in self.sets.items()
                for why, count in one.dropped.items()
            },
            unit="row" if all(one.units is None for one in self.sets.values()) else "unit",
            reason=reason,
            ends=ends or ends_at(found, 0),
            corrected=corrected,
        )

    @property
    def moved(self) -> list[str]:
        """Sets whose members vary between samples."""
        return [name for name, one in self.sets.items() if name not in self.fixed and one.varies]

    def method_of(self, kind: str) -> str:
        """Return how intervals are made."""
        if self.resampling is None:
            return NO_INTERVAL
        if not self.moved:
            return "none: no set of two members or more varies"
        still = [name for name in self.sets if name not in self.moved]
        text = f"{kind or STUDENT} over {', '.join(self.moved)}"
        return f"{text}; {', '.join(still)} fixed" if still else text


def with_ones(rows: Floats) -> Floats:
    """Return rows (n, k) behind a one each: their sums hold the number of rows."""
    return np.column_stack([np.ones(len(rows)), rows])


def _root(covariance: Floats) -> Floats:
    """Return the triangular root of a covariance matrix, by Cholesky's steps in one fixed order."""
    left, root = covariance.copy(), np.zeros_like(covariance)
    for place in range(len(left)):
        if left[place, place] > _NOTHING * covariance[place, place]:
            root[:, place] = left[:, place] / math.sqrt(left[place, place])
            left -= np.outer(root[:, place], root[:, place])
    return root
