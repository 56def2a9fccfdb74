"""Shares of groups in a data set against those in a population, or in another data set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from equipoise.core import (
    Estimate,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    integers,
    no_ends,
    record,
    unwarned,
)
from equipoise.metrics.building import (
    UNTESTED,
    compare_with_null,
    known_ends,
    number,
    spread_level,
)
from equipoise.metrics.labels.misclassified_groups import CorrectedShares
from equipoise.metrics.labels.part import PartMetric
from equipoise.metrics.labels.reference import ReferenceKind, check_total, sample_size
from equipoise.metrics.labels.shares import independent_rows
from equipoise.metrics.labels.table import name_unit
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, POINTS, MetricSpec, make_estimate
from equipoise.stats.intervals import Scored, scored
from equipoise.stats.resampling import Resampling, level_of, null_draws, resolution_of
from equipoise.stats.streams import Seed, stream

REFERENCE = "the reference"
_NULL = "representation"
# Added to a count of 0 where the logarithm of a drawn share is wanted.
_UNSEEN = 0.5
_TOGETHER = ", simultaneous over groups"


def _population(
    reference: Mapping[str, float] | Groups, groups: Groups, kind: ReferenceKind | None
) -> tuple[dict[str, float], float]:
    """Return the shares of a reference, and the independent images that they were counted in."""
    if isinstance(reference, Groups):
        sizes = dict(zip(reference.names, reference.counts.tolist(), strict=True))
    else:
        sizes = {groups.display_name(str(name)): float(n) for name, n in reference.items()}
    numbers = np.array([*sizes.values()])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        raise InputError(
            f"reference: {sizes!r}; expected a share or count of each group, at least 0 and not "
            "all 0"
        )
    if not isinstance(reference, Groups):
        check_total(sizes.values(), kind)
    total = float(numbers.sum())
    shares = {name: size / total for name, size in sizes.items() if size}
    return shares, total if isinstance(reference, Groups) else sample_size(sizes.values(), kind)


_spec = partial(
    MetricSpec,
    null_kind=NullHypothesis.REFERENCE,
    kinds=("dataset",),
    group_metric="representation",
    reference="equipoise; Geyik et al. 2019 (skew), of a whole data set in place of its top K",
    null="images are drawn from the reference, or exchange their data sets",
)


@metric(
    _spec(
        name="representation_gap",
        title="Difference from the reference population",
        definition=(
            "Largest absolute difference over groups between the share of images and the share in "
            "a reference population, given as exact or counted in a sample."
        ),
        threshold=0.05,
        threshold_reason=POINTS,
        direction="Higher: the data set departs more from the reference.",
        chance="above 0",
        interval="Wilson, or Newcombe against a sample, simultaneous over groups",
    )
)
def representation_gap(
    groups: GroupLabels,
    reference: Mapping[str, float] | Groups,
    *,
    kind: ReferenceKind | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups' shares here and in a reference.

    Parameters
    ----------
    groups : array-like (n,), mapping of attribute to labels, or Groups
        The group of each image. Groups of any size count: a rare group may be the finding.
    reference : mapping of str to number, or Groups
        Share or count of each group by its display name, such as "Black, female": shares are
        among the images of these groups. Or the groups of another data set, which is a sample
        like this one.
    kind : "census" or "sample", optional
        Whether a mapping is exact, or counts of a sample, whose own error is in interval and test.
        Without it, shares, percentages and ratios below 10 are exact, and other whole numbers
        are counts of a sample.
    units : array-like (n,), optional
        Units that repeat, such as persons.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: Wilson intervals (Newcombe's against a sample),
        simultaneous over groups. Chance and p: the same maximum where images are drawn from the
        reference, or exchange their data sets. `.by` has the `representation` of every group,
        ln(share / reference share), negative where the group is under-represented: -inf without
        an image, NaN where the reference has none. `.excluded` counts images of groups that a
        mapping doesn't name.

    Raises
    ------
    InputError
        When no image has a group of the reference, or numbers of the reference are negative, not
        finite or all 0, no counts for a sample, or shares that don't sum to 1.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> m.representation_gap(["women"] * 40 + ["men"] * 60, {"women": 0.5, "men": 0.5})
    <representation_gap 0.100 [0.000, 0.202]; chance 0.039, p = 0.048, n = 100 in 2 groups>
    """
    all_groups = Groups.of(groups)
    image_groups = compared_with(all_groups, reference)
    shares, n_reference = _population(reference, all_groups, kind)
    sizes = {
        name: size
        for name, size in zip(image_groups.names, image_groups.counts.tolist(), strict=True)
        if size
    }
    if not sizes:
        raise InputError("no image has a group of the reference; expected at least one that has")
    names = tuple(dict.fromkeys((*sizes, *shares)))
    n = np.array([sizes.get(name, 0) for name in names])
    target = np.array([shares.get(name, 0.0) for name in names])
    rows = independent_rows(image_groups.codes, units, "groups")
    excluded = {
        "no group": all_groups.n_missing,
        "a group outside the reference": image_groups.n_missing - all_groups.n_missing,
    }
    sides = _Sides(names, n / n.sum(), rows, target, n_reference)
    rng = stream(rng, _NULL, image_groups.name)
    return _estimate(sides, n.tolist(), shares, excluded, name_unit(units), resampling, rng)


def corrected_representation(
    names: Strings,
    shares: CorrectedShares,
    target: Floats,
    n_reference: float,
    *,
    excluded: Mapping[str, int],
    unit: str,
    resampling: Resampling | None,
) -> Estimate:
    """Return the representation of groups that a classifier assigned, corrected for its errors.

    Parameters
    ----------
    names : tuple of str
        Of the compared groups.
    shares : CorrectedShares
    target : ndarray, shape (groups,)
        Shares of the reference.
    n_reference : float
        Images that these were counted in; infinity where they are exact.
    excluded, unit
        Of the estimate.
    resampling
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        As that of `representation`. Intervals: percentiles of draws of rows and labelled rows,
        simultaneous over groups. Chance and p: images of the reference population, or of both
        together, are assigned with errors and corrected.
    """
    total = round(float(shares.counts[shares.compared].sum()))
    rows = shares.rows * total / float(shares.counts.sum())
    sides = _Sides(names, shares.values, rows, target, n_reference, shares)
    sizes = _counts(shares.values, total).tolist()
    rng = stream(shares.assigned.seed, _NULL, shares.name)
    reference = dict(zip(names, target.tolist(), strict=True))
    return _estimate(sides, sizes, reference, excluded, unit, resampling, rng)


def _estimate(
    sides: _Sides,
    sizes: list[int],
    reference: Mapping[str, float],
    excluded: Mapping[str, int],
    unit: str,
    resampling: Resampling | None,
    rng: np.random.Generator,
) -> Estimate:
    null = None
    if resampling is not None:
        draws = null_draws(resampling, MAX_DRAWN_CELLS // len(sides.names))
        null = sides.draw_null(rng, draws)
    finest, largest_gap = (
        resolution_of(resampling),
        float(np.abs(sides.shares - sides.target).max()),
    )
    null_gaps = None if null is None else np.abs(null[0] - null[1]).max(axis=1)
    chance_test = compare_with_null(
        null_gaps, largest_gap, "higher", sides.hypothesis, resolution=finest, sampled="draw"
    )
    return make_estimate(
        "representation_gap",
        largest_gap,
        dict(zip(sides.names, sizes, strict=True)),
        NO_INTERVAL if resampling is None else f"{sides.interval}{_TOGETHER}",
        params={"reference": {name: round(share, 12) for name, share in reference.items()}},
        **chance_test.fields("resampling is off"),
        by=sides.parts(sizes, null, level_of(resampling), finest),
        excluded=excluded,
        interval_kind=IntervalKind.SIMULTANEOUS,
        unit=unit,
        ends=no_ends if resampling is None else sides.together,
    )


def method_of_group(method: str) -> str:
    """Return the method of the interval of one group's ratio from that of the largest gap."""
    alone = method.removesuffix(_TOGETHER)
    return "hybrid score interval (Donner & Zou)" if alone == "Newcombe" else alone


def compared_with(groups: Groups, reference: Mapping[str, float] | Groups) -> Groups:
    """Return groups without those that a declared population doesn't name."""
    if isinstance(reference, Groups):
        return groups
    named = {groups.display_name(str(name)) for name in reference}
    inside = np.array([name in named for name in groups.names] + [False])
    return replace(groups, codes=np.where(inside[groups.codes], groups.codes, np.int32(-1)))


@record
class _Sides:
    """Shares of groups on both sides, each of as many independent images.

    Attributes
    ----------
    names : tuple of str
    shares, target : ndarray, shape (groups,)
    rows, n : float
        `n` is infinite where the target is known exactly.
    corrected : CorrectedShares, optional
        What shares are from, where a classifier assigned the groups.
    """

    names: Strings
    shares: Floats
    rows: float
    target: Floats
    n: float
    corrected: CorrectedShares | None = None

    @property
    def hypothesis(self) -> str:
        """The null hypothesis in words."""
        if math.isinf(self.n):
            return "images are drawn from the reference population"
        return "images exchange their data sets"

    @property
    def interval(self) -> str:
        """The name of the intervals of differences."""
        if self.corrected is not None:
            return "percentiles of corrected shares, from draws of rows and labelled rows"
        return "Wilson" if math.isinf(self.n) else "Newcombe"

    def scored(self, level: float) -> tuple[Scored, Scored]:
        """Return the shares of both sides with their intervals."""
        if self.corrected is None:
            observed = scored(self.shares * self.rows, self.rows, level)
        else:
            observed = self.corrected.scored(level)
        if math.isinf(self.n):
            return observed, Scored(self.target, self.target, self.target)
        return observed, scored(self.target * self.n, self.n, level)

    def together(self, level: float) -> Span:
        """Return the ends of the largest difference."""
        observed, target = self.scored(spread_level(level, len(self.names)))
        difference = observed.minus(target)
        low = np.max([difference.low, -difference.high], initial=0.0)
        return float(low), float(np.abs([difference.low, difference.high]).max())

    def draw_null(self, rng: np.random.Generator, draws: int) -> tuple[Floats, Floats]:
        """Return shares of both sides under the hypothesis, each (draws, groups)."""
        if self.corrected is not None:
            return self._draw_corrected(self.corrected, rng, draws)
        rows = max(round(self.rows), 1)
        # By size, so that renamed groups keep their draws.
        order = np.lexsort((self.shares, self.target))
        inverse_order = np.argsort(order)
        if math.isinf(self.n):
            counts = rng.multinomial(rows, self.target[order], draws)[:, inverse_order]
            return counts / rows, self.target[None]
        n_other = max(round(self.n), 1)
        pooled = _counts(self.shares * self.rows + self.target * self.n, rows + n_other)
        counts = rng.multivariate_hypergeometric(pooled[order], rows, draws, method="marginals")[
            :, inverse_order
        ]
        return counts / rows, (pooled - counts) / n_other

    def _draw_corrected(
        self, corrected: CorrectedShares, rng: np.random.Generator, draws: int
    ) -> tuple[Floats, Floats]:
        if math.isinf(self.n):
            return corrected.redraw(rng, self.target, draws), self.target[None]
        pooled = (self.shares * self.rows + self.target * self.n) / (self.rows + self.n)
        n_other = max(round(self.n), 1)
        others = rng.multinomial(n_other, pooled / pooled.sum(), draws) / n_other
        return corrected.redraw(rng, pooled, draws), others

    def parts(
        self, sizes: list[int], null: tuple[Floats, Floats] | None, level: float, finest: float
    ) -> Iterator[Part]:
        """Yield the representation of each group, with its reference share."""
        observed, target = self.scored(level)
        ratio, least = observed.over(target), _UNSEEN / max(self.rows, 1.0)
        rows = 0 if math.isinf(self.n) else round(self.n)
        with unwarned():
            logs = Scored(*map(np.log, ratio.arrays))
        for place, name in enumerate(self.names):
            chance_test, reason = UNTESTED, ""
            if self.target[place] == 0:
                reason = "the reference has no image of the group"
            elif null is not None:
                first, second = (
                    side_shares[:, place % side_shares.shape[1]] for side_shares in null
                )
                null_logs = np.log(np.maximum(first, least) / np.maximum(second, least))
                observed_log = max(float(logs.value[place]), math.log(least / self.target[place]))
                chance_test = compare_with_null(
                    null_logs,
                    observed_log,
                    "either",
                    self.hypothesis,
                    resolution=finest,
                    sampled="draw",
                )
            low, high = float(logs.low[place]), float(logs.high[place])
            yield number(
                "representation",
                math.nan if reason else float(logs.value[place]),
                subject=name,
                ends=no_ends if null is None or reason else known_ends(low, high),
                level=level,
                chance_test=chance_test,
                n=sum(sizes),
                by_group=(
                    GroupValue(name, (name,), sizes[place], *_at(observed, place)),
                    GroupValue(REFERENCE, (REFERENCE,), rows, *_at(target, place)),
                ),
                reason=reason,
            )


def _at(side: Scored, place: int) -> tuple[float, float, float]:
    value, low, high = (float(values[place]) for values in side.arrays)
    return value, low, high


def _counts(weights: Floats, total: int) -> Integers:
    """Return whole numbers in these proportions that sum to a total."""
    exact = weights / weights.sum() * total
    rounded = integers(np.floor(exact))
    order = np.argsort(rounded - exact, kind="stable")
    rounded[order[: total - int(rounded.sum())]] += 1
    return integers(rounded)


representation = metric(
    _spec(
        name="representation",
        aliases=("skew of a data set",),
        of_whole=True,
        range=ANY_NUMBER,
        unit="log ratio",
        harm="either",
        definition=(
            "ln(share of images in a group / its share in the reference population), shown as the "
            "ratio."
        ),
        threshold=0.223,
        threshold_reason="ln 1.25: four fifths of a share, the rule of US employment selection",
        direction="Either: negative means under-represented, positive over-represented.",
        chance="about 0",
        interval="Wilson, or the hybrid score interval of Donner & Zou against a sample",
        clause=(
            "In {model}, {share} of the images of the reference's groups show {group} ({n}), "
            "against {expected} in the reference."
        ),
        expectation="reference",
    )
)(PartMetric("representation", representation_gap, method=method_of_group))
