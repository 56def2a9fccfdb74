"""Whether one set of images is more diverse than another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from equipoise.core.errors import InputError
from equipoise.core.estimate import Chance, Ends, Estimate, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.diversity.sets import Sets, Spread
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate, register
from equipoise.stats.resampling import Resampling

NULL = "both sets are equally diverse: Welch's t of the jackknifed difference, two-sided"
_METHOD = "jackknife of both U-statistics, Welch's t"
_FEW = "fewer than three images with a direction in a set"


def iss_difference(
    sets: Sequence[Any] | Mapping[str, Any],
    *,
    components: int | None = None,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Largest difference of ISS_intra between two of several sets.

    Parameters
    ----------
    sets : sequence or mapping of name to array-like (n_s, d)
        Two or more sets of independent images in one space, of any sizes.
    components : int, optional
        Project on this many principal components of all sets together before.
    resampling : Bootstrap, Permutation, Exact or None
        None gives values alone. Otherwise intervals and tests are closed forms.

    Returns
    -------
    Estimate
        In [-2, 2]: of the pair that differs most, the first set's ISS_intra minus the second's;
        chance 0. `.by` has "iss_difference" of every pair ("a − b"), with the ISS_intra of
        both in `by_group`. The p-value of the whole is Bonferroni's over the pairs.

    Raises
    ------
    InputError
        When there are fewer than two sets, or they are not as in `iss_cross`.

    References
    ----------
    Mandal 2024, chapter 3; Efron & Stein 1981, Annals of Statistics 9, 586-596.
    """
    found = Sets.of(sets, components)
    if len(found.names) < 2:
        raise InputError("sets: one set; expected two or more to compare")
    spreads = [found.pair(a, a) for a in range(len(found.names))]
    pairs = [*combinations(range(len(found.names)), 2)]
    differences = [_difference(spreads[a], spreads[b]) for a, b in pairs]
    bare, level = resampling is None, None if resampling is None else resampling.level
    parts = [
        _part(found, spreads, pair, one, level=level)
        for pair, one in zip(pairs, differences, strict=True)
    ]
    largest = int(np.argmax([-1.0 if math.isnan(p.value) else abs(p.value) for p in parts]))
    part, ends = parts[largest], differences[largest]
    tests = sum(not math.isnan(one.p_value) for one in parts)
    return make_estimate(
        metric="iss_difference",
        value=part.value,
        n={name: one.count for name, one in zip(found.names, found.sums, strict=True)},
        method=NO_INTERVAL if bare else _METHOD,
        params={"components": components, "pair": part.subject},
        chance=None if bare or math.isnan(part.chance) else _zero(part),
        no_chance="no resampling was asked for" if bare else part.reason,
        p_value=None if math.isnan(part.p_value) else min(1.0, tests * part.p_value),
        null="" if bare else NULL if tests == 1 else f"{NULL}; Bonferroni over {tests} pairs",
        by=parts_to_table(parts),
        excluded={"zero vectors": found.zeros} if found.zeros else {},
        unit="image",
        reason=part.reason,
        ends=no_ends if bare else _ends(ends),
    )


def _difference(a: Spread, b: Spread) -> Spread:
    """Return the difference of two independent distances, with Welch's degrees of freedom."""
    parts = (a.error**2, b.error**2)
    total = sum(parts)
    if not total > 0.0:
        return Spread(a.value - b.value, total, math.nan)
    below = parts[0] ** 2 / a.freedom + parts[1] ** 2 / b.freedom
    return Spread(a.value - b.value, math.sqrt(total), total**2 / below)


def _half(one: Spread, level: float) -> float:
    return float(special.stdtrit(one.freedom, (1.0 + level) / 2.0)) * one.error


def _ends(one: Spread) -> Ends:
    def ends(level: float) -> tuple[float, float]:
        half = _half(one, level)
        return max(-2.0, one.value - half), min(2.0, one.value + half)

    return ends


def _p(one: Spread) -> float:
    """Return Welch's two-sided p; NaN where a set has no spread."""
    if not one.error > 0.0:
        return math.nan
    return float(2.0 * special.stdtr(one.freedom, -abs(one.value) / one.error))


def _zero(part: Part) -> Chance:
    return Chance(0.0, part.chance_low, part.chance_high, NULL)


def _part(
    sets: Sets,
    spreads: Sequence[Spread],
    pair: tuple[int, int],
    one: Spread,
    *,
    level: float | None,
) -> Part:
    a, b = pair
    zeros = sets.sums[a].zeros + sets.sums[b].zeros
    known = level is not None and one.error > 0.0
    low, high = _ends(one)(level) if known and level is not None else (math.nan, math.nan)
    half = _half(one, 0.95) if known else math.nan
    return Part(
        "iss_difference",
        f"{sets.names[a]} − {sets.names[b]}",
        one.value,
        low,
        high,
        chance=0.0 if known else math.nan,
        chance_low=-half,
        chance_high=half,
        p_value=_p(one) if known else math.nan,
        n=sets.sums[a].count + sets.sums[b].count,
        by_group=tuple(_group(sets, spreads, index, level) for index in pair),
        excluded=(Excluded("zero vectors", zeros),) if zeros else (),
        reason=_reason(one, bare=level is None),
        shows="iss_intra",
    )


def _reason(one: Spread, *, bare: bool) -> str:
    if math.isnan(one.value):
        return "fewer than two images with a direction in a set"
    if bare or one.error > 0.0:
        return ""
    return _FEW if math.isnan(one.error) else "the images of both sets are all alike"


def _group(sets: Sets, spreads: Sequence[Spread], index: int, level: float | None) -> GroupValue:
    name, one = sets.names[index], spreads[index]
    low, high = (math.nan, math.nan) if level is None else one(level)
    return GroupValue(name, (name,), sets.sums[index].count, one.value, low, high)


register(
    MetricSpec(
        name="iss_difference",
        title="Difference in diversity",
        kinds=("diversity",),
        group_metric="iss_intra",
        range="[-2, 2]",
        harm="either",
        definition=(
            "ISS intra of one set minus that of another; of more than two sets, the pair that "
            "differs most."
        ),
        threshold=0.02,
        threshold_reason=COSINE,
        direction=(
            "Either: negative means the first set's images are more alike, positive the second's."
        ),
        chance="0",
        interval="jackknife of both U-statistics, Student's t with Welch's degrees of freedom",
        null="both sets are equally diverse: Welch's t, two-sided, Bonferroni over pairs",
        parameters={"components": "principal components to project on: none"},
        reference="Mandal 2024, chapter 3 (image similarity score); Efron & Stein 1981",
    )
)
