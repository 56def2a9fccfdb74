"""From drawn gaps to the estimate: its numbers, what was left out, and its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

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
from equipoise.metrics.measure import NO_INTERVAL, Draws
from equipoise.metrics.rankings.estimates import query_weights, weighted_mean
from equipoise.metrics.rankings.pools import Floats
from equipoise.metrics.similarity.effects import Effects
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, resolution_of

_REPLICATES_AT_ONCE = 4_000_000


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


def simultaneous(effects: Floats, boot: Floats | None, freedom: int) -> Ends:
    """Return the ends of the gap of one pool, none where there are no replicates."""
    found = None if boot is None else Simultaneous.of(effects, boot, freedom)
    return no_ends if found is None else found


def pointwise(
    effects: Floats, boot: Floats | None, freedom: int, level: float
) -> tuple[Floats, Floats]:
    """Return Student's ends of each effect alone, each (groups,)."""
    if boot is None or freedom < 1:
        return np.full(len(effects), np.nan), np.full(len(effects), np.nan)
    drawn = boot[~np.isnan(boot).all(axis=1)]
    error = drawn.std(axis=0) if len(drawn) > 1 else np.full(len(effects), np.nan)
    normal = float(special.ndtri((1.0 + level) / 2.0))
    half = normal * widening(freedom, level) * error
    return effects - half, effects + half


def widening(freedom: int, level: float) -> float:
    """Return how much wider than the bootstrap's an interval of few units is.

    The bootstrap's variance lacks the factor n / (n − 1), and its quantiles are those of known
    variances.
    """
    upper = (1.0 + level) / 2.0
    student = float(special.stdtrit(freedom, upper)) / float(special.ndtri(upper))
    return student * float(np.sqrt((freedom + 1) / freedom))


_SETS = "groups are exchangeable within each counterfactual set"
_UNITS = "groups are exchangeable between units of a pool, within units of several groups"
_IMAGES = "groups are exchangeable over the images of each pool"


@dataclass(frozen=True, eq=False)
class DrawnGaps:
    """The gap of every concept; everything is drawn once, when it is asked for.

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
    def level(self) -> float:
        """Confidence level of parts."""
        return level_of(self.resampling)

    @property
    def of_parts(self) -> str:
        """What the intervals of single concepts resample."""
        if self.effects.clusters is not None:
            return "unit"
        return "set" if self.effects.paired else "image"

    @cached_property
    def each(self) -> Floats:
        """Gap of every pool."""
        return gaps(self.effects.effects)

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
        """The mean over concepts first, and each concept after it."""
        null = None
        if self.resampling is not None:
            null = self.effects.exchanged(self.resampling, self.rng)
        unpaired = _IMAGES if self.effects.clusters is None else _UNITS
        return self._held(self.each, null, _SETS if self.effects.paired else unpaired)

    @cached_property
    def pooled(self) -> Draws:
        """Gaps of plain means, and what the secondary null gives them."""
        null = None
        if self.resampling is not None:
            null = self.effects.pooled(self.resampling, self.rng)
        return self._held(self.effects.plain, null, _IMAGES)

    def _held(self, each: Floats, null: Floats | None, text: str) -> Draws:
        known = self.effects.known
        mean = each[known].mean() if len(known) else np.nan
        return Draws(
            observed=np.append(mean, each),
            null=None if null is None else np.insert(null, 0, null[:, known].mean(axis=1), axis=1),
            level=self.level,
            null_text="" if null is None else f"{text}; {len(null)} permutations",
            resolution=resolution_of(self.resampling),
            intervals=self.resampling is not None,
        )

    def ends(self, index: int) -> Ends:
        """Return the ends of the gap of one concept."""
        drawn = None if self.boot is None else self.boot[:, index]
        return simultaneous(self.effects.effects[index], drawn, int(self.effects.freedom[index]))

    def mean_ends(self, each: Floats) -> Ends:
        """Return the ends of a mean over concepts, none for one."""
        known = each[self.effects.known]
        return ends_of(None if self.weights is None else weighted_mean(self.weights, known))


def estimate_of(drawn: DrawnGaps) -> Estimate:
    """Turn gaps into the estimate, see `equipoise.metrics.similarity.gap.similarity_gap`."""
    held, value = against_chance(drawn.draws, 0, "higher"), float(drawn.draws.observed[0])
    one = len(drawn.effects.pools.pools) == 1
    return make_estimate(
        metric=drawn.metric,
        value=value,
        n=_sizes(drawn),
        method=_method(drawn),
        params=_params(drawn),
        **held.fields(_why_none(drawn, value)),
        by=parts_to_table(_parts(drawn)),
        excluded={**drawn.effects.pools.excluded, **_left_out(drawn)},
        unit=drawn.of_parts if one else "query",
        reason=_why(drawn, 0) if math.isnan(value) else "",
        ends=drawn.ends(0) if one else drawn.mean_ends(drawn.each),
    )


def _sizes(drawn: DrawnGaps) -> dict[str, int]:
    """Count the images of each group, each once."""
    groups = drawn.effects.pools.groups
    none = np.empty(0, dtype=np.int64)
    rows = np.unique(np.concatenate([none, *(one.items for one in drawn.effects.blocks)]))
    counts = np.bincount(groups.codes[rows], minlength=len(groups))
    return dict(zip(groups.names, counts.tolist(), strict=True))


def _method(drawn: DrawnGaps) -> str:
    if drawn.resampling is None or not len(drawn.effects.known):
        return NO_INTERVAL
    if drawn.boot is None:
        return "none: use Bootstrap()"
    many = f"{len(drawn.boot)} replicates"
    if len(drawn.effects.pools.pools) > 1:
        return replicates_text(drawn.boot, "queries")
    return f"simultaneous over pairs of groups, bootstrap over {drawn.of_parts}s, {many}"


def _params(drawn: DrawnGaps) -> dict[str, Any]:
    pools = drawn.effects.pools
    found: dict[str, Any] = {"queries": len(pools.pools), "scale": drawn.scale}
    if drawn.effects.paired:
        found |= {"compared": "within sets", "items_without_set": pools.without_set}
    return found


def _left_out(drawn: DrawnGaps) -> dict[str, int]:
    pools = drawn.effects.pools
    found = {
        "queries without two groups to compare": len(pools.pools) - len(drawn.effects.known),
        "images whose set holds one group": drawn.effects.alone if drawn.effects.paired else 0,
        "empty groups": int((pools.sizes == 0).all(axis=0).sum()),
    }
    return {reason: many for reason, many in found.items() if many}


def _why(drawn: DrawnGaps, index: int) -> str:
    pools = drawn.effects.pools
    if (pools.sizes[index] > 0).sum() < 2:
        return "fewer than two groups in the pool"
    if ((pools.sizes[index] > 0) & pools.groups.usable).sum() < 2:
        return "fewer than two groups with rows enough"
    return "no set holds two groups"


def _why_none(drawn: DrawnGaps, value: float) -> str:
    if math.isnan(value):
        return "not estimable"
    return "no resampling was asked for" if drawn.resampling is None else "nothing to exchange"


def _parts(drawn: DrawnGaps) -> Iterator[Part]:
    yield from _of_concepts(drawn)
    if not len(drawn.effects.known):
        return
    yield from _of_groups(drawn)
    if len(drawn.effects.known) > 1:
        yield from _on_average(drawn)
    if drawn.effects.paired and drawn.resampling is not None:
        yield part(
            f"{drawn.metric}_pool_order",
            "",
            drawn.pooled,
            0,
            ends=drawn.mean_ends(drawn.pooled.observed[1:]),
            held=against_chance(drawn.pooled, 0, "higher"),
            n=int(drawn.effects.sizes.sum()),
        )


def _of_concepts(drawn: DrawnGaps) -> Iterator[Part]:
    known = set(drawn.effects.known.tolist())
    for index, pool in enumerate(drawn.effects.pools.pools):
        yield part(
            drawn.metric,
            pool.name,
            drawn.draws,
            index + 1,
            ends=drawn.ends(index),
            held=against_chance(drawn.draws, index + 1, "higher"),
            n=int(drawn.effects.sizes[index].sum()),
            by_group=_by_group(drawn, index),
            reason="" if index in known else _why(drawn, index),
        )


def _by_group(drawn: DrawnGaps, index: int) -> tuple[GroupValue, ...]:
    """Return the effects of one concept, each with an interval of its own."""
    found = drawn.effects.effects[index]
    boot = None if drawn.boot is None else drawn.boot[:, index]
    ends = pointwise(found, boot, int(drawn.effects.freedom[index]), drawn.level)
    return _values(drawn, (found, *ends), [index])


def _values(
    drawn: DrawnGaps, numbers: tuple[Floats, Floats, Floats], chosen: list[int]
) -> tuple[GroupValue, ...]:
    groups, many = drawn.effects.pools.groups, drawn.effects.sizes[chosen].sum(axis=0)
    notes = [
        _note(drawn, place, chosen) if math.isnan(value) else ""
        for place, value in enumerate(numbers[0])
    ]
    return group_rows(groups, many, *numbers, notes)


def _note(drawn: DrawnGaps, group: int, chosen: list[int]) -> str:
    """Say why a group has no effect."""
    pools = drawn.effects.pools
    if not pools.sizes[chosen, group].any():
        return "not in the pool"
    if not pools.groups.usable[group]:
        return f"fewer than {pools.groups.min_size} rows"
    return "in no set with the others"


def _of_groups(drawn: DrawnGaps) -> Iterator[Part]:
    """Yield every effect with its own chance band."""
    for index in drawn.effects.known.tolist():
        name = drawn.effects.pools.pools[index].name
        for place, one in enumerate(_by_group(drawn, index)):
            null = None if drawn.bands is None else drawn.bands[:, index, place]
            yield _effect(name, one, null)


def _on_average(drawn: DrawnGaps) -> Iterator[Part]:
    """Yield the effects of groups on average over concepts."""
    known = drawn.effects.known
    each = drawn.effects.effects[known]
    low = high = np.full(each.shape[1], np.nan)
    if drawn.weights is not None:
        counted = ~np.isnan(each)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (drawn.weights @ np.where(counted, each, 0.0)) / (drawn.weights @ counted)
        low, high, _ = percentile(means, drawn.level)
    for place, one in enumerate(_values(drawn, (known_mean(each.T), low, high), known.tolist())):
        null = None if drawn.bands is None else known_mean(drawn.bands[:, known, place])
        yield _effect("", one, null)


def _effect(concept: str, one: GroupValue, null: Floats | None) -> Part:
    chance = band(np.full(1, np.nan) if null is None else null)
    return number(
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
