"""Effects of groups on similarity, freed of what the members of a counterfactual set share.

The similarity of image i of set s and group g is modelled as a_s + e_g + noise, and the effects e
are estimated by least squares. Where every set holds every group as often, the difference of two
effects is that of the groups' means; without sets all images are one set, and it is so too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from equipoise.metrics.retrieval.kernels import group_sums
from equipoise.metrics.retrieval.pools import Floats, Indices
from equipoise.metrics.retrieval.shuffled_sums import of_shuffled
from equipoise.metrics.retrieval.statistics import Bools
from equipoise.stats.poisson import Times
from equipoise.stats.threads import added

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Numbers that are held at once: weights of images over all replicates, patterns of sets.
_CELLS = 4_000_000
# Of the largest eigenvalue, what counts as none: groups that do not meet in a set.
_NOTHING = 1e-9

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Block:
    """Concepts whose pools hold the same images.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
        Images of groups that are compared, in sets of several groups.
    scores : ndarray of float64, shape (concepts, n)
    codes : ndarray of int32, shape (n,)
    stratum : ndarray of int64, shape (n,)
        Set of each image, from 0.
    loose : ndarray of bool, shape (n,)
        Images of no set: independent ones, which are compared among themselves.
    groups : int
    """

    places: Indices
    items: Indices = field(repr=False)
    scores: Floats = field(repr=False)
    codes: Codes = field(repr=False)
    stratum: Indices = field(repr=False)
    loose: Bools = field(repr=False)
    groups: int

    @cached_property
    def counts(self) -> Floats:
        """Images by set and group, shape (sets, groups)."""
        flat = self.stratum * self.groups + self.codes
        sets = int(self.stratum.max(initial=-1)) + 1
        found = np.bincount(flat, minlength=sets * self.groups).reshape(sets, self.groups)
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def kept(self) -> Indices:
        """Groups that meet in sets, directly or through others: the largest such party."""
        met = laplacian(self.counts).sum(axis=0)
        _, party = connected_components(np.abs(met) > 0, directed=False)
        sizes = np.bincount(party, weights=self.counts.sum(axis=0))
        kept = np.flatnonzero((party == sizes.argmax()) & (self.counts.sum(axis=0) > 0))
        return kept.astype(np.int64)

    @cached_property
    def centred(self) -> Floats:
        """Scores less the mean of their set, shape (n, concepts)."""
        sets, found = len(self.counts), np.empty(self.scores.shape[::-1])
        sizes = self.counts.sum(axis=1)
        for column, row in enumerate(self.scores):
            sums = np.bincount(self.stratum, weights=row, minlength=sets)
            found[:, column] = row - (sums / sizes)[self.stratum]
        return found

    @cached_property
    def inverse(self) -> Floats:
        """What sums of centred scores of the kept groups are multiplied with."""
        whole = laplacian(self.counts).sum(axis=0)[np.ix_(self.kept, self.kept)]
        return np.asarray(np.linalg.inv(_anchored(whole[None])[0]))

    @cached_property
    def effects(self) -> Floats:
        """Effects of the groups, 0 on average; (concepts, groups), NaN where not compared."""
        return np.asarray(self.exchanged(self.codes[None], paired=True)[0])

    def exchanged(self, codes: Codes, *, paired: bool) -> Floats:
        """Return effects with other labels, (draws, concepts, groups).

        Parameters
        ----------
        codes : ndarray of int32, shape (draws, n)
        paired : bool
            Every set keeps its number of images of each group; otherwise all are one set.
        """
        sums = np.zeros((len(codes), self.groups, len(self.scores)))
        counts = np.zeros((len(codes), self.groups))
        group_sums(np.ascontiguousarray(codes), self._by_image(paired=paired), sums, counts)
        return self._of_sums(sums, counts, paired=paired)

    def shuffled(
        self,
        function: Callable[[Floats], Floats],
        draws: int,
        rng: int,
        name: str,
        *,
        paired: bool,
    ) -> Floats:
        """Return a function of effects with groups exchanged among all images.

        Parameters
        ----------
        function : callable
            Of effects (some draws, concepts, groups) to (some draws, concepts, ...).
        draws, rng, name
            How many, and the key of the random stream.
        paired
            As in `exchanged`.
        """
        sizes = np.bincount(self.codes, minlength=self.groups)

        def of_sums(sums: Floats) -> Floats:
            return function(self._of_sums(sums, sizes[None], paired=paired))

        scores = self._by_image(paired=paired)
        return np.concatenate(of_shuffled(of_sums, scores, sizes, draws, rng, name))

    def _by_image(self, *, paired: bool) -> Floats:
        return self.centred if paired else self._plain

    def _of_sums(self, sums: Floats, counts: npt.NDArray[Any], *, paired: bool) -> Floats:
        """Return effects from sums (draws, groups, concepts) of so many (draws, groups)."""
        known = sums[:, self.kept].transpose(0, 2, 1)
        if paired:
            return self._placed(known @ self.inverse)
        with np.errstate(invalid="ignore"):
            means = known / counts[:, None, self.kept]
        return self._placed(means - means.mean(axis=2, keepdims=True))

    @cached_property
    def _plain(self) -> Floats:
        """Scores less their mean over the pool, which rounds less than the scores do."""
        return np.ascontiguousarray((self.scores - self.scores.mean(axis=1, keepdims=True)).T)

    def resampled(self, times: Callable[[slice], Times], replicates: int) -> Floats:
        """Return effects with resampled images, (replicates, concepts, groups).

        NaN where groups no longer meet. Images are taken some at a time, with all replicates.

        Parameters
        ----------
        times : callable
            From places of images to how often each counts, (images, replicates); the same for all
            images of a set.
        replicates : int
        """
        step = max(1, _CELLS // replicates)

        def add(start: int) -> list[Floats]:
            held = slice(start, start + step)
            weights = times(held).T.astype(np.float64)
            return [*self._sums(weights, held), self._of_sets(weights, held)]

        members, loose, many, whole = added(add, range(0, len(self.items), step))
        if self.loose.any():
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = loose.sum(axis=2) / many.sum(axis=1)[:, None]
            loose -= many[:, None] * np.nan_to_num(mean)[..., None]
            whole += laplacian(many)
        inner = whole[:, self.kept[:, None], self.kept]
        return self._placed(_solved(inner, (members + loose)[..., self.kept]))

    def _sums(self, weights: Floats, held: slice) -> tuple[Floats, Floats, Floats]:
        """Add up scores of members of sets and of loose images, and count the loose ones."""
        shape = len(weights), self.groups
        sums = np.zeros((2, shape[0], len(self.scores), self.groups))
        many = np.zeros(shape)
        for index, chosen in enumerate((~self.loose[held], self.loose[held])):
            for group in range(self.groups):
                rows = np.flatnonzero(chosen & (self.codes[held] == group))
                if len(rows):
                    part = weights[:, rows]
                    sums[index, :, :, group] = part @ self.centred[held][rows]
                    many[:, group] = part.sum(axis=1) if index else 0.0
        return sums[0], sums[1], many

    @cached_property
    def _first(self) -> Indices:
        """The first image of each set."""
        members = np.flatnonzero(~self.loose)
        return np.asarray(members[np.unique(self.stratum[members], return_index=True)[1]])

    @cached_property
    def _patterns(self) -> tuple[Floats, Indices]:
        """Make-ups of sets, shape (patterns, groups), and which of them each set has."""
        names = self.stratum[self._first]
        patterns, which = np.unique(self.counts[names], axis=0, return_inverse=True)
        return patterns, which.reshape(-1)

    def _of_sets(self, weights: Floats, held: slice) -> Floats:
        """Add up what sets of one make-up give, times how often they were drawn.

        A set is drawn where the first of its images is.
        """
        found = np.zeros((len(weights), self.groups, self.groups))
        here = np.flatnonzero((self._first >= held.start) & (self._first < held.stop))
        if not len(here):
            return found
        drawn = weights[:, self._first[here] - held.start]
        patterns, which = self._patterns
        size = max(1, _CELLS // max(self.groups**2, len(here)))
        for start in range(0, len(patterns), size):
            part = patterns[start : start + size]
            times = drawn @ (which[here, None] == start + np.arange(len(part)))
            found += np.tensordot(times, laplacian(part), axes=1)
        return found

    def _placed(self, effects: Floats) -> Floats:
        found = np.full((*effects.shape[:2], self.groups), np.nan)
        found[..., self.kept] = np.round(effects, _DECIMALS)
        return found


def laplacian(counts: Floats) -> Floats:
    """Return diag(c) − c cᵀ / n of each row of counts, shape (rows, groups, groups)."""
    total = np.maximum(counts.sum(axis=1), 1e-300)[:, None, None]
    alone = counts[:, :, None] * np.eye(counts.shape[1])
    return np.asarray(alone - counts[:, :, None] * counts[:, None, :] / total)


def _anchored(inner: Floats) -> Floats:
    """Fix the constant that effects leave open, without changing their differences."""
    many = inner.shape[1]
    scale = np.trace(inner, axis1=1, axis2=2) / many
    return np.asarray(inner + np.maximum(scale, 1e-300)[:, None, None] / many)


def _solved(inner: Floats, sums: Floats) -> Floats:
    """Return effects from (replicates, groups, groups) and (replicates, concepts, groups)."""
    values = np.linalg.eigvalsh(inner)
    met = values[:, 1] > _NOTHING * np.maximum(values[:, -1], 1e-300) if inner.shape[1] > 1 else []
    found = np.full(sums.shape, np.nan)
    known = np.flatnonzero(met)
    if len(known):
        solved = np.linalg.solve(_anchored(inner[known]), sums[known].transpose(0, 2, 1))
        found[known] = solved.transpose(0, 2, 1)
    return found
