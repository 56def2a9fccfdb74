"""How much more similar a concept is to images of one group than to those of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from equipoise.core.arrays import Floats
from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import (
    Against,
    Known,
    against_chance,
    ends_of,
    gaps,
    group_rows,
    known_mean,
    number,
    part,
    replicates_text,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL, Draws
from equipoise.metrics.rankings.estimates import query_weights, weighted_mean
from equipoise.metrics.rankings.pools import pools_of
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate, register
from equipoise.metrics.values.group_effects import Effects
from equipoise.stats.chance import band
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Exact, Resampling, level_of, resolution_of

_REPLICATES_AT_ONCE = 4_000_000
_SETS = "groups are exchangeable within each counterfactual set"
_UNITS = "groups are exchangeable between units of a pool, within units of several groups"
_IMAGES = "groups are exchangeable over the images of each pool"


def similarity_gap(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    scale: float | None = None,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    clusters: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Largest difference between groups in mean similarity to a concept.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        Similarity of each image to each concept.
    groups, queries, within, sets, units
        See `equipoise.metrics.rankings.max_skew`. With `sets`, images are compared within their
        set: similarity = set + group, by least squares.
    scale : float, optional
        What makes a logit of a similarity, such as CLIP's learned temperature: the gap is then in
        logits, what a softmax sees, and called "logit_gap".
    clusters : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and
        exchange their groups as one where they have one group. Sets lie within units.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts of the gap (largest less smallest effect of a group), 0 or above,
        higher is worse. Interval: percentile bootstrap over concepts; of one concept, and of the
        parts, simultaneous intervals of all pairs of groups over resampled units. `.by` has one
        part per concept with the effects of its groups, which are 0 on average; "group_effect"
        of every group and concept, with its own chance band; over several concepts also that of
        each group on average (subject ""); with sets the gap of plain means against the null of
        pool order ("…_pool_order").

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, `scale` is not above 0, a set has images of
        several units, or `resampling` is Exact.

    References
    ----------
    Chen & Dou 2022 (similarity by group); Hothorn, Bretz & Westfall 2008, Biometrical Journal 50,
    346-363 (simultaneous intervals).
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for similarities; use Permutation()")
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise InputError(f"scale={scale}: expected a number above 0, or None for no logits")
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    effects = Effects.of(pools, sets, clusters, 1.0 if scale is None else scale)
    return DrawnGaps(effects, scale, resampling, rng).estimate()


@dataclass(frozen=True, eq=False)
class DrawnGaps:
    """The gap of every concept; everything is drawn once, when it is first needed.

    Attributes
    ----------
    effects : Effects
    scale : float or None
        Of logits.
    resampling : Bootstrap, Permutation or None
    rng : int
    """

    effects: Effects
    scale: float | None
    resampling: Resampling | None
    rng: int

    @property
    def metric(self) -> str:
        """Name by the unit of the gap."""
        return "similarity_gap" if self.scale is None else "logit_gap"

    @property
    def resampled_unit(self) -> str:
        """Unit that intervals of single concepts resample."""
        if self.effects.clusters is not None:
            return "unit"
        return "set" if self.effects.paired else "image"

    @cached_property
    def boot(self) -> Floats | None:
        """Resampled effects, (replicates, pools, groups)."""
        if not isinstance(self.resampling, Bootstrap) or not len(self.effects.known):
            return None
        return self.effects.resampled(self.resampling.replicates, self.rng)

    @cached_property
    def bands(self) -> Floats | None:
        """Effects with exchanged groups, (draws, pools, groups)."""
        return None if self.resampling is None else self.effects.bands(self.rng)

    @cached_property
    def weights(self) -> Floats | None:
        """How often each concept with a value is in each replicate of the mean."""
        if not len(self.effects.known):
            return None
        return query_weights(self.effects.pools, self.effects.known, self.resampling, self.rng)

    @cached_property
    def draws(self) -> Draws:
        """Gaps: the mean over concepts first, and each concept after it."""
        null, effects = None, self.effects
        if self.resampling is not None:
            null = effects.exchanged(self.resampling, self.rng)
        text = _SETS if effects.paired else _IMAGES if effects.clusters is None else _UNITS
        return self._held(gaps(effects.effects), null, text)

    def _held(self, each: Floats, null: Floats | None, text: str) -> Draws:
        known = self.effects.known
        mean = each[known].mean() if len(known) else np.nan
        return Draws(
            observed=np.append(mean, each),
            null=None if null is None else np.insert(null, 0, null[:, known].mean(axis=1), axis=1),
            level=level_of(self.resampling),
            null_text="" if null is None else f"{text}; {len(null)} permutations",
            resolution=resolution_of(self.resampling),
            intervals=self.resampling is not None,
        )

    def estimate(self) -> Estimate:
        """Return the mean over concepts with its parts."""
        effects, pools, draws = self.effects, self.effects.pools, self.draws
        held, value = against_chance(draws, 0, "higher"), float(draws.observed[0])
        one, many = len(pools.pools) == 1, len(pools.pools)
        params: dict[str, Any] = {"queries": many, "scale": self.scale}
        if effects.paired:
            params |= {"compared": "within sets", "items_without_set": pools.without_set}
        left_out = {
            "queries without two groups to compare": many - len(effects.known),
            "images whose set holds one group": effects.alone if effects.paired else 0,
            "empty groups": int((pools.sizes == 0).all(axis=0).sum()),
        }
        # Each image once.
        rows = np.unique(np.concatenate([pools.block[:0], *(b.items for b in effects.blocks)]))
        counts = np.bincount(pools.groups.codes[rows], minlength=len(pools.groups))
        no_chance = "nothing to exchange" if self.resampling else "no resampling was asked for"
        none = math.isnan(value)
        return make_estimate(
            metric=self.metric,
            value=value,
            n=dict(zip(pools.groups.names, counts.tolist(), strict=True)),
            method=self._method(),
            params=params,
            **held.fields("not estimable" if none else no_chance),
            by=parts_to_table(self._parts()),
            excluded={**pools.excluded, **{why: n for why, n in left_out.items() if n}},
            unit=self.resampled_unit if one else "query",
            reason=self._reason(0) if none else "",
            ends=self._ends(0) if one else self._mean_ends(draws.observed[1:]),
        )

    def _method(self) -> str:
        if self.resampling is None or not len(self.effects.known):
            return NO_INTERVAL
        if self.boot is None:
            return "none: use Bootstrap()"
        if len(self.effects.pools.pools) > 1:
            return replicates_text(self.boot, "queries")
        return (
            f"simultaneous over pairs of groups, bootstrap over {self.resampled_unit}s, "
            f"{len(self.boot)} replicates"
        )

    def _reason(self, index: int) -> str:
        """Say why a concept has no gap."""
        pools = self.effects.pools
        present = pools.sizes[index] > 0
        if present.sum() < 2:
            return "fewer than two groups in the pool"
        if (present & pools.groups.usable).sum() < 2:
            return "fewer than two groups with rows enough"
        return "no set holds two groups"

    def _ends(self, index: int) -> Ends:
        """Return the ends of the gap of one concept."""
        if self.boot is None:
            return no_ends
        freedom = int(self.effects.freedom[index])
        found = Simultaneous.of(self.effects.effects[index], self.boot[:, index], freedom)
        return no_ends if found is None else found

    def _mean_ends(self, each: Floats) -> Ends:
        """Return the ends of a mean over concepts, none for one."""
        known = each[self.effects.known]
        return ends_of(None if self.weights is None else weighted_mean(self.weights, known))

    def _parts(self) -> Iterator[Part]:
        effects, known = self.effects, self.effects.known.tolist()
        by_group = {}
        for index, pool in enumerate(effects.pools.pools):
            by_group[index] = self._by_group(index)
            yield part(
                self.metric,
                pool.name,
                self.draws,
                index + 1,
                ends=self._ends(index),
                held=against_chance(self.draws, index + 1, "higher"),
                n=int(effects.sizes[index].sum()),
                by_group=by_group[index],
                reason="" if index in known else self._reason(index),
            )
        for index in known:
            bands = None if self.bands is None else self.bands[:, index].T
            yield from _effects(effects.pools.pools[index].name, by_group[index], bands)
        if len(known) > 1:
            bands = None
            if self.bands is not None:
                groups = range(self.bands.shape[2])
                bands = np.stack([known_mean(self.bands[:, known, one]) for one in groups])
            yield from _effects("", self._mean_effects(), bands)
        if known and effects.paired and self.resampling is not None:
            pooled = self._held(effects.plain, effects.pooled(self.resampling, self.rng), _IMAGES)
            yield part(
                f"{self.metric}_pool_order",
                "",
                pooled,
                0,
                ends=self._mean_ends(pooled.observed[1:]),
                held=against_chance(pooled, 0, "higher"),
                n=int(effects.sizes.sum()),
            )

    def _by_group(self, index: int) -> tuple[GroupValue, ...]:
        """Return the effects of one concept, each with Student's interval."""
        found, freedom = self.effects.effects[index], int(self.effects.freedom[index])
        half = np.full(len(found), np.nan)
        if self.boot is not None and freedom >= 1:
            level = level_of(self.resampling)
            boot = self.boot[:, index]
            drawn = boot[~np.isnan(boot).all(axis=1)]
            if len(drawn) > 1:
                normal = float(special.ndtri((1.0 + level) / 2.0))
                half = normal * widening(freedom, level) * drawn.std(axis=0)
        return self._values((found, found - half, found + half), [index])

    def _mean_effects(self) -> tuple[GroupValue, ...]:
        """Return the effects of groups on average over concepts."""
        known = self.effects.known
        each = self.effects.effects[known]
        low = high = np.full(each.shape[1], np.nan)
        if self.weights is not None:
            counted = ~np.isnan(each)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = (self.weights @ np.where(counted, each, 0.0)) / (self.weights @ counted)
            low, high, _ = percentile(means, level_of(self.resampling))
        return self._values((known_mean(each.T), low, high), known.tolist())

    def _values(
        self, numbers: tuple[Floats, Floats, Floats], chosen: list[int]
    ) -> tuple[GroupValue, ...]:
        pools, notes = self.effects.pools, []
        for group, value in enumerate(numbers[0]):
            note = "in no set with the others"
            if not math.isnan(value):
                note = ""
            elif not pools.sizes[chosen, group].any():
                note = "not in the pool"
            elif not pools.groups.usable[group]:
                note = f"fewer than {pools.groups.min_size} rows"
            notes.append(note)
        many = self.effects.sizes[chosen].sum(axis=0)
        return group_rows(pools.groups, many, *numbers, notes)


def _effects(concept: str, values: tuple[GroupValue, ...], bands: Floats | None) -> Iterator[Part]:
    """Yield the effect of every group with its own chance band, from draws (groups, m)."""
    for place, one in enumerate(values):
        chance = band(np.full(1, np.nan) if bands is None else bands[place])
        yield number(
            "group_effect",
            one.value,
            subject=concept,
            ends=Known(one.low, one.high),
            held=Against(chance, None, ""),
            n=one.n,
            by_group=(one,),
            reason=one.note,
            shows="effect of the group",
        )


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Ends of the largest difference of several effects: intervals of all pairs that hold at once.

    Attributes
    ----------
    differences, errors : ndarray, shape (pairs,)
        Of every pair of groups.
    largest : ndarray, shape (replicates,)
        Largest |difference − observed| / error over the pairs, in each replicate.
    freedom : int
        Units of the smallest group, less one.
    """

    differences: Floats
    errors: Floats
    largest: Floats
    freedom: int

    @classmethod
    def of(cls, effects: Floats, boot: Floats, freedom: int) -> Simultaneous | None:
        """Prepare the ends.

        Parameters
        ----------
        effects : ndarray, shape (groups,)
        boot : ndarray, shape (replicates, groups)
            NaN where groups do not meet.
        freedom : int

        Returns
        -------
        Simultaneous or None
            None where the smallest group has one unit, or replicates are too few.
        """
        kept = np.flatnonzero(~np.isnan(effects))
        drawn = boot[~np.isnan(boot[:, kept]).any(axis=1)][:, kept]
        if freedom < 1 or len(drawn) < 2:
            return None
        first, second = np.array([*combinations(range(len(kept)), 2)]).T
        differences = effects[kept][first] - effects[kept][second]
        errors, largest = np.empty(len(first)), np.zeros(len(drawn))
        # Some pairs at a time: among many groups there are thousands.
        size = max(1, _REPLICATES_AT_ONCE // len(drawn))
        for start in range(0, len(first), size):
            part = slice(start, start + size)
            apart = drawn[:, first[part]] - drawn[:, second[part]]
            errors[part] = apart.std(axis=0)
            moved = np.abs(apart - differences[part])
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(errors[part] > 0, moved / errors[part], 0.0)
            largest = np.maximum(largest, ratio.max(axis=1))
        return cls(differences, errors, largest, freedom)

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        critical = float(np.quantile(self.largest, level)) * widening(self.freedom, level)
        half = critical * self.errors
        sizes = np.abs(self.differences)
        return float(np.maximum(sizes - half, 0.0).max()), float((sizes + half).max())


def widening(freedom: int, level: float) -> float:
    """Return how much wider than the bootstrap's an interval of few units is.

    The bootstrap's variance lacks the factor n / (n − 1), and its quantiles are those of known
    variances.
    """
    upper = (1.0 + level) / 2.0
    student = float(special.stdtrit(freedom, upper)) / float(special.ndtri(upper))
    return student * float(np.sqrt((freedom + 1) / freedom))


_gap = partial(
    MetricSpec,
    kinds=("similarity",),
    reference=(
        "Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models'; Hothorn, "
        "Bretz & Westfall 2008 (simultaneous intervals)"
    ),
    direction="Higher: one group is more similar to the concept than another.",
    chance="above 0, more so for small and many groups",
    interval=(
        "bootstrap over images, sets or units, simultaneous over pairs of groups; of the mean over "
        "concepts, percentile bootstrap over concepts"
    ),
    null=(
        "groups are exchangeable within each counterfactual set, else over the pool; between units "
        "that have one group"
    ),
)
register(
    _gap(
        name="similarity_gap",
        title="Similarity gap",
        range="[0, 2] for cosines",
        threshold=0.01,
        threshold_reason=COSINE,
        definition=(
            "Largest minus smallest group effect on an image's similarity to a concept, by least "
            "squares with counterfactual sets if there are any; mean over concepts."
        ),
        parameters={"sets": "counterfactual sets", "clusters": "images resampled together"},
    )
)
register(
    _gap(
        name="logit_gap",
        title="Similarity gap in logits",
        range="[0, ∞)",
        threshold=0.25,
        threshold_reason="the odds of a softmax change by more than 1.28 to 1",
        definition=(
            "The similarity gap times the model's own scale. e to its power is the ratio of the "
            "odds that a softmax over concepts gives."
        ),
        parameters={
            "scale": "logit per similarity",
            "sets": "counterfactual sets",
            "clusters": "images resampled together",
        },
    )
)
register(
    _gap(
        name="group_effect",
        title="Group effect",
        range="any number",
        harm="either",
        definition=(
            "Similarity of a concept to images of a group minus the average over groups, all else "
            "equal; in logits where the scale is known."
        ),
        direction="Either: positive means the group is closer to the concept than average.",
        chance="0",
        interval="bootstrap over images, sets or units with Student's quantiles",
        null="that of the gap, which is tested",
    )
)
