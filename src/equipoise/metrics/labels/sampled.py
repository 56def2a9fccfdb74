"""Shares by group from human labels on a sample of images and machine labels on all of them."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Labels,
    Part,
    Span,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    parts_to_table,
    record,
    tally,
)
from equipoise.metrics.building import group_rows, too_small
from equipoise.metrics.labels.table import fill_labels
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec, make_estimate
from equipoise.stats.intervals import Scored, largest_gap, scored, studentized_range
from equipoise.stats.resampling import DEFAULT_REPLICATES, Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, stream

_METHOD = "Wilson at the effective sample size of the stratified sample"
_RATIO = f"{_METHOD}; variance by bootstrap within strata"
_NO_CHANCE = "images are drawn by group, so groups are not exchangeable"
_NO_LABEL = "no labelled image"
# Stands for an infinite sample size where every image is labelled.
_CENSUS = 1e15


@record
class SampledShare:
    """A share estimated from a stratified sample.

    Attributes
    ----------
    value : float
        NaN without a label.
    effective : float
        Size of a simple random sample with the same variance.
    missed : float
        Weight of the strata without labels, where the share may be anything.
    n : int
        Labelled images.
    """

    value: float
    effective: float
    missed: float
    n: int

    def at(self, level: float) -> Scored:
        """Return the share with its interval."""
        if np.isnan(self.value):
            return Scored(*nans((3, 1)))[0]
        share = scored(self.value * self.effective, self.effective, level)
        scaled = share.scaled(1.0 - self.missed)
        return Scored(
            scaled.value + self.missed / 2.0, scaled.low, np.asarray(scaled.high + self.missed)
        )


@record
class SampledCells:
    """Strata within groups: their sizes, and the outcomes of their labelled images.

    Attributes
    ----------
    groups : Groups
    code : ndarray, shape (n,)
        Cell of each image; -1 where an attribute is missing.
    group : ndarray, shape (cells,)
        Group of each cell.
    sizes : ndarray, shape (cells,)
        Images of each cell.
    counts : ndarray, shape (cells, 3)
        Labelled images outside the condition, and those inside without and with the outcome.
    conditional : bool
        Whether there is a condition; without one, no label lies outside.
    """

    groups: Groups
    code: Integers
    group: Integers
    sizes: Floats
    counts: Floats
    conditional: bool

    @classmethod
    def of(
        cls,
        outcome: ArrayLike,
        strata: Labels,
        groups: GroupLabels | None = None,
        *,
        condition: ArrayLike | None = None,
    ) -> SampledCells:
        """Count cells; see `labelled_share_gap` for parameters and errors."""
        stratum, names = encode(strata, subject="strata")
        n = len(stratum)
        image_groups = Groups.of(fill_labels(groups, n))
        inside = np.ones(n) if condition is None else _binary(condition, "condition", n)
        has_outcome = _binary(outcome, "outcome", n)
        if len(image_groups.codes) != n:
            raise InputError(
                f"groups: {len(image_groups.codes)} labels; expected {n}, as of strata"
            )
        in_cell = (image_groups.codes >= 0) & (stratum >= 0)
        pair = np.where(in_cell, integers(image_groups.codes) * len(names) + stratum, -1)
        cells = np.unique(pair[in_cell])
        code = np.where(in_cell, np.searchsorted(cells, pair), -1)
        # 0 outside the condition, 1 inside without the outcome, 2 with it; NaN without a label.
        kind = np.where(inside == 0, 0.0, inside + has_outcome)
        labelled = in_cell & ~np.isnan(kind)
        counts = np.zeros((len(cells), 3))
        np.add.at(counts, (code[labelled], integers(kind[labelled])), 1.0)
        sizes = floats(np.bincount(code[in_cell], minlength=len(cells)))
        return cls(
            image_groups, code, cells // max(len(names), 1), sizes, counts, condition is not None
        )

    @property
    def labelled(self) -> Integers:
        """Labelled images of each cell, shape (cells,)."""
        return integers(self.counts.sum(axis=1))

    @property
    def shares(self) -> Floats:
        """Shares of outcomes in each cell, with half a label added per outcome, (cells, 3)."""
        added = self.counts + np.where([self.conditional, True, True], 0.5, 0.0)
        return floats(added / added.sum(axis=1, keepdims=True))

    def share(self, chosen: Booleans, resampling: Resampling | None, rng: Seed) -> SampledShare:
        """Return the share in the cells that are chosen, a mask of shape (cells,)."""
        # Names of groups and strata must not change the draws.
        order = np.lexsort((*self.counts.T, self.sizes))
        order = order[chosen[order]]
        sizes, counts, soft = self.sizes[order], self.counts[order], self.shares[order]
        n = counts.sum(axis=1)
        labelled = n > 0
        with np.errstate(invalid="ignore"):
            observed = np.where(labelled[:, None], counts / n[:, None], 0.0)
        inside = float((sizes * observed[:, 1:].sum(axis=1)).sum())
        if inside == 0:
            return SampledShare(np.nan, np.nan, np.nan, int(n.sum()))
        value = float((sizes * observed[:, 2]).sum()) / inside
        missed = float(sizes[~labelled].sum())
        sizes, soft, n = sizes[labelled], soft[labelled], n[labelled]
        smoothed_rate = _ratio(sizes, soft)
        # The sample variance of n + 1 labels, and the finite population: labels don't vary.
        variance_factor = (1.0 + 1.0 / n) * (1.0 - n / sizes)
        if self.conditional:
            replicates = (
                resampling.replicates if isinstance(resampling, Bootstrap) else DEFAULT_REPLICATES
            )
            resampled = stream(rng, "labels").multinomial(
                integers(n), soft, size=(replicates, len(n))
            )
            replicate_shares = soft + np.sqrt(variance_factor)[:, None] * (
                resampled / n[:, None] - soft
            )
            variance = float(np.nanvar(_ratio(sizes, np.maximum(replicate_shares, 0.0))))
        else:
            spread = soft[:, 2] * soft[:, 1] / n * variance_factor
            variance = float((sizes**2 * spread).sum() / sizes.sum() ** 2)
        effective = smoothed_rate * (1.0 - smoothed_rate) / variance if variance else _CENSUS
        return SampledShare(value, float(effective), missed / (inside + missed), int(n.sum()))

    def allocate(self, size: int, group: str | None = None) -> Integers:
        """Return how many more images of each cell to label, by Neyman allocation.

        Parameters
        ----------
        size : int
            Images to label; fewer where fewer are left.
        group : str, optional
            Group whose difference from all other groups is to be known better; unless given, the
            shares of all groups alike.

        Returns
        -------
        ndarray of int64, shape (cells,)

        Raises
        ------
        InputError
            If there is no such group.

        References
        ----------
        Neyman 1934, JRSS 97, 558-625; Wright 2012, The American Statistician 66, 217-224 (the
        exact allocation in whole numbers).
        """
        if group is not None:
            group = self.groups.display_name(group)
        if group is not None and group not in self.groups.names:
            raise InputError(
                f"group {group!r}: unknown; expected one of {', '.join(self.groups.names)}"
            )
        sides = self.group
        if group is not None:
            sides = integers(self.group == self.groups.names.index(group))
        weight, variance = np.zeros(len(sides)), np.zeros(len(sides))
        for side in np.unique(sides):
            in_side = sides == side
            sizes, soft = self.sizes[in_side], self.shares[in_side]
            inside, rate = float((sizes * soft[:, 1:].sum(axis=1)).sum()), _ratio(sizes, soft)
            # Of one image: what it adds to the numerator beyond the rate times the denominator.
            mean = soft[:, 2] * (1.0 - rate) - soft[:, 1] * rate
            squares = soft[:, 2] * (1.0 - rate) ** 2 + soft[:, 1] * rate**2
            weight[in_side], variance[in_side] = sizes / inside, squares - mean**2
        return _greedy(weight**2 * variance, self.labelled, integers(self.sizes), size)


def _binary(values: ArrayLike, subject: str, n: int) -> Floats:
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.inf])
    if numbers.shape != (n,) or not (np.isnan(numbers) | np.isin(numbers, (0, 1))).all():
        raise InputError(
            f"{subject}: expected {n} values, as in strata, that are true, false, or None where "
            "there is no label"
        )
    return numbers


def _ratio(sizes: Floats, shares: Floats) -> Any:
    """Return the share inside the condition with the outcome, (..., cells, 3) to (...)."""
    inside = (sizes * shares[..., 1:].sum(axis=-1)).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return (sizes * shares[..., 2]).sum(axis=-1) / inside


def _greedy(gain: Floats, labelled: Integers, sizes: Integers, size: int) -> Integers:
    """Label one image after another where the variance falls most; first cells without labels."""

    def entry(cell: int) -> tuple[bool, float, int]:
        n = int(labelled[cell] + additional[cell])
        return n > 0, -gain[cell] / (n * (n + 1) if n else 1), cell

    additional = np.zeros(len(sizes), dtype=np.int64)
    heap = [entry(cell) for cell in np.flatnonzero(labelled < sizes).tolist()]
    heapq.heapify(heap)
    for _ in range(size):
        if not heap:
            break
        cell = heap[0][2]
        additional[cell] += 1
        if labelled[cell] + additional[cell] < sizes[cell]:
            heapq.heapreplace(heap, entry(cell))
        else:
            heapq.heappop(heap)
    return additional


@metric(
    MetricSpec(
        name="labelled_share",
        kinds=("review",),
        title="Share by human labels",
        unit="share",
        harm=None,
        rate=True,
        neutral=None,
        definition=(
            "Share of all images with an outcome: people label a stratified sample, and strata of "
            "machine labels carry it to all images."
        ),
        direction="Neither: the outcome decides.",
        chance=f"none: {_NO_CHANCE}",
        interval=_METHOD,
        reference="Cochran 1977; Korn & Graubard 1998",
    )
)
def labelled_share(
    outcome: ArrayLike,
    strata: Labels,
    *,
    condition: ArrayLike | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of all images with an outcome, from human labels on a stratified sample.

    Parameters
    ----------
    outcome : array-like of bool, shape (n,)
        Whether the label of each image has the outcome; None where the image has no label.
    strata : array-like, shape (n,)
        What is known of all images, such as group, machine label and prediction together. The
        labelled images of a stratum must be a random sample of it.
    condition : array-like of bool, shape (n,), optional
        Whether the image counts; None without a label. A rate of true positives counts images
        that people call positive.
    resampling : Bootstrap, Permutation or None
        Replicates of the bootstrap within strata, which a condition needs; None: no interval.
    rng : int or Generator
        Seed of the bootstrap.

    Returns
    -------
    Estimate
        In [0, 1]. Errors of the machine labels may depend on anything: strata alone use them.
        Variance: sum of W² v / n (1 - n / N) over strata, with v the sample variance of counts
        with half a label added per outcome; with a condition from the bootstrap. Interval:
        Wilson's at the effective sample size. Strata without a label add their whole weight to it.

    Raises
    ------
    InputError
        When values are neither true, false nor None, or lengths differ.

    References
    ----------
    Cochran 1977, Sampling Techniques, chapter 5; Korn & Graubard 1998, Survey Methodology 24.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.labelled_share([1, 0, 1, 1] * 10, ["a", "b"] * 20)
    <labelled_share 0.750 [0.750, 0.750]; n = 40>
    """
    cells = SampledCells.of(outcome, strata, condition=condition)
    share = cells.share(np.ones(len(cells.sizes), dtype=bool), resampling, rng)

    def ends(level: float) -> Span:
        scored_share = share.at(level)
        return float(scored_share.low), float(scored_share.high)

    return _estimate(Aggregate.VALUE, share.at(0.95).value, cells, resampling, ends, {})


@metric(
    MetricSpec(
        name="labelled_share",
        aggregate=Aggregate.DIFFERENCE,
        kinds=("review",),
        title="Gap in the share by human labels",
        unit="points",
        definition="Largest minus smallest share by human labels over groups.",
        direction="Higher: groups differ more.",
        chance=f"none: {_NO_CHANCE}",
        interval="simultaneous over groups, from Wilson's at effective sample sizes",
        reference="Cochran 1977; Zou & Donner 2008",
    )
)
def labelled_share_gap(
    outcome: ArrayLike,
    strata: Labels,
    groups: GroupLabels,
    *,
    condition: ArrayLike | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in `labelled_share`.

    Parameters
    ----------
    outcome, strata, condition, resampling, rng
        As of `labelled_share`. Strata are crossed with the groups.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        Group of every image, as given: not corrected for errors of a model. For the share within
        a group that people label, pass whether the label is that group as `condition` of
        `labelled_share`.

    Returns
    -------
    Estimate
        In [0, 1]. `n` has labelled images by group. `.by` has the part `labelled_share` of all
        images with every group's share, and for every group the difference from all other groups.
        Intervals of differences: MOVER; of the largest, simultaneous over groups.

    Raises
    ------
    InputError
        As `labelled_share`.

    References
    ----------
    Zou & Donner 2008 (differences), and the references of `labelled_share`.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.labelled_share_gap(
    ...     [1, 0, 1, 1] * 20, ["a", "b"] * 40, ["women", "men", "men", "women"] * 20
    ... )
    <labelled_share difference 0.500 [0.500, 0.500]; n = 80 in 2 groups>
    """
    cells = SampledCells.of(outcome, strata, groups, condition=condition)
    image_groups, level = cells.groups, level_of(resampling)
    group_cells = cells.group == np.arange(len(image_groups))[:, None]
    usable = image_groups.usable[cells.group]
    shares = [cells.share(chosen, resampling, rng) for chosen in group_cells]
    rest_shares = [cells.share(usable & ~chosen, resampling, rng) for chosen in group_cells]
    compared = [
        share for share, large in zip(shares, image_groups.usable, strict=True) if large and share.n
    ]

    def ends(level: float) -> Span:
        wide = 2.0 * special.ndtr(studentized_range(level, max(len(compared), 2))) - 1.0
        low, high = largest_gap(_scored_shares(compared, wide), _scored_shares(compared, level))
        return float(low), float(high)

    group_scores, rest_scores = _scored_shares(shares, level), _scored_shares(rest_shares, level)
    unlabelled = np.array([np.isnan(share.value) for share in shares])
    small = too_small(image_groups)
    notes = np.select([~image_groups.usable, unlabelled], [small, _NO_LABEL], "").tolist()
    lows = highs = nans(len(shares))
    if resampling:
        lows, highs = group_scores.low, group_scores.high
    rows = group_rows(
        image_groups, [share.n for share in shares], group_scores.value, lows, highs, notes
    )
    overall = cells.share(np.ones(len(cells.sizes), dtype=bool), resampling, rng)
    parts = [_part("labelled_share", "", overall.at(level), overall.n, resampling, by_group=rows)]
    differences = group_scores.minus(rest_scores)
    for place, (name, note) in enumerate(zip(image_groups.names, notes, strict=True)):
        parts.append(
            _part(
                "labelled_share", name, differences[place], shares[place].n, resampling,
                by_group=(rows[place],), reason=note, aggregate=Aggregate.AGAINST_REST,
            )
        )  # fmt: skip
    values = _scored_shares(compared, level).value
    value = float(values.max() - values.min()) if (~np.isnan(values)).sum() >= 2 else np.nan
    counted = {name: share.n for name, share in zip(image_groups.names, shares, strict=True)}
    too_few_groups = "fewer than two groups with labels"
    estimate = _estimate(
        Aggregate.DIFFERENCE, value, cells, resampling, ends, counted, too_few_groups
    )
    vars(estimate)["by"] = parts_to_table(parts)
    return estimate


def _scored_shares(shares: list[SampledShare], level: float) -> Scored:
    arrays = [share.at(level).arrays for share in shares]
    return Scored(*np.array(arrays, dtype=np.float64).reshape(-1, 3).T)


def _part(
    metric: str,
    subject: str,
    value: Scored,
    n: int,
    resampling: Resampling | None,
    **columns: Any,
) -> Part:
    low, high = (float(value.low), float(value.high)) if resampling else (np.nan, np.nan)
    return Part(metric, subject, float(value.value), low, high, n=n, **columns)


def _estimate(
    aggregate: Aggregate,
    value: float | AnyArray,
    cells: SampledCells,
    resampling: Resampling | None,
    ends: Ends,
    n: dict[str, int],
    few: str = "no label inside the condition",
) -> Estimate:
    method = _RATIO if cells.conditional else _METHOD
    missing = tally(cells.code < 0)
    reason = ""
    if np.isnan(value):
        reason = _NO_LABEL if not cells.labelled.any() else few
    empty = int(cells.sizes[cells.labelled == 0].sum())
    return make_estimate(
        "labelled_share",
        float(value),
        n or {"labelled": int(cells.labelled.sum())},
        method if resampling else NO_INTERVAL,
        aggregate=aggregate,
        no_chance=_NO_CHANCE,
        params={"images": int(cells.sizes.sum()), "strata": len(cells.sizes)},
        excluded={"no group or stratum": missing, "in strata without labels": empty},
        unit="image",
        reason=reason,
        ends=ends if resampling and not np.isnan(value) else no_ends,
    )
