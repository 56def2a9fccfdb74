"""From drawn gaps to the estimate: its numbers, what was left out, and its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from equipoise.core.estimate import Estimate
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import against_chance, part
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.retrieval.pools import Floats
from equipoise.metrics.similarity.drawn import DrawnGaps
from equipoise.metrics.similarity.intervals import pointwise
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.intervals import percentile


def estimate_of(drawn: DrawnGaps) -> Estimate:
    """Turn gaps into the estimate, see `equipoise.metrics.similarity.gap.similarity_gap`."""
    against, value = against_chance(drawn.draws, 0, "higher"), float(drawn.draws.observed[0])
    one = len(drawn.effects.pools.pools) == 1
    return make_estimate(
        metric=drawn.metric,
        value=value,
        n=_sizes(drawn),
        method=_method(drawn),
        params=_params(drawn),
        chance=against.chance,
        no_chance="" if against.chance else _why_none(drawn, value),
        p_value=against.p_value,
        null=against.null,
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
        return f"percentile bootstrap over queries, {many}"
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
            against=against_chance(drawn.pooled, 0, "higher"),
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
            against=against_chance(drawn.draws, index + 1, "higher"),
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
    rows = zip(groups.names, groups.levels, many.tolist(), *numbers, strict=True)
    return tuple(
        GroupValue(
            name, levels, n, float(value), float(low), float(high),
            _note(drawn, place, chosen) if math.isnan(value) else "",
        )
        for place, (name, levels, n, value, low, high) in enumerate(rows)
    )  # fmt: skip


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
    for place, one in enumerate(_values(drawn, (_mean(each.T), low, high), known.tolist())):
        null = None if drawn.bands is None else _mean(drawn.bands[:, known, place])
        yield _effect("", one, null)


def _mean(values: Floats) -> Floats:
    """Return means along the last axis of the numbers there are."""
    counted = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        found = np.where(counted, values, 0.0).sum(axis=-1) / counted.sum(axis=-1)
    return np.asarray(found)


def _effect(concept: str, one: GroupValue, null: Floats | None) -> Part:
    chance = band(np.full(1, np.nan) if null is None else null)
    return Part(
        "group_effect",
        concept,
        one.value,
        one.low,
        one.high,
        chance=chance.mean,
        chance_low=chance.low,
        chance_high=chance.high,
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
