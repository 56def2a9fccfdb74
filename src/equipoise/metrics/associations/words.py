"""Trend and gender difference: similarities of groups' images to favourable and other words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.cells import (
    Cells,
    Similarities,
    cells_of,
)
from equipoise.metrics.building import NOTHING, Against, Percentile
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.pairs import Folded
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.chance import band, p_value
from equipoise.stats.resampling import Bootstrap, Exact, Resampling

Floats = npt.NDArray[np.float64]

_REFERENCE = "Mandal 2024, chapter 4"
_AS_MEANS = "similarities are given as means: pass ImageSimilarities for intervals and chance"


def trend(
    similarities: Similarities,
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    regions: Sequence[str] | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Sum over positive words of the mean similarity, minus the sum over negative words.

    Parameters
    ----------
    similarities : mapping of group to mapping of word to number or array (regions,)
        Mean similarity of a group's images to each word, by region. Or `ImageSimilarities`, which
        give intervals too.
    positive, negative : sequence of str
        Words of each kind; each word once.
    regions : sequence of str, optional
        Names of the regions; by default their numbers, or those of `ImageSimilarities`.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone. The interval needs Bootstrap and `ImageSimilarities`.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over regions and groups; lower: closer to negative words. No chance level: a trend
        compares words, not groups. `.by` has one row per region with the trend of each group.

    Raises
    ------
    InputError
        When a word is missing or in both lists, or shapes do not fit.

    References
    ----------
    Mandal 2024, chapter 4.
    """
    signs = _signs(positive, negative)
    cells = cells_of(similarities, signs, regions)
    boot = _replicates(cells, resampling, rng)
    level = 0.95 if resampling is None else resampling.level
    averaged = None if boot is None else _mean(boot.reshape(len(boot), -1))
    ends: Ends = no_ends if averaged is None else Percentile(averaged)
    parts = []
    for index, region in enumerate(cells.regions):
        drawn = None if boot is None else _mean(boot[:, index])
        low, high = no_ends(level) if drawn is None else Percentile(drawn)(level)
        parts.append(
            Part(
                "trend",
                region,
                float(_mean(cells.values[index][None])[0]),
                low,
                high,
                n=int(cells.counts[index].sum()),
                by_group=_by_group(cells, boot, index, level),
            )
        )
    return make_estimate(
        metric="trend",
        value=float(_mean(cells.values.reshape(1, -1))[0]),
        n=cells.sizes,
        method=_method(cells, boot, resampling),
        params={"positive": [*positive], "negative": [*negative]},
        no_chance="a trend compares words, not groups; see gender_difference",
        by=parts_to_table(parts),
        excluded=cells.excluded,
        unit=cells.unit,
        ends=ends,
    )


def gender_difference(
    similarities: Similarities,
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    regions: Sequence[str] | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Difference between groups in the sum of mean similarities over all words, by region.

    Parameters
    ----------
    similarities, positive, negative, regions, resampling, rng
        As in `trend`. With more than two groups, the largest minus the smallest sum.

    Returns
    -------
    Estimate
        Mean over regions, at least 0, higher is worse. Interval: percentile bootstrap over images;
        that of a region with two groups is the signed difference's, folded at 0. Chance and p:
        images exchange their group within each region. `.by` has one row per region with the
        groups' sums.

    Raises
    ------
    InputError
        As `trend`; or there are fewer than two groups, or Exact is asked for.

    References
    ----------
    Mandal 2024, chapter 4.
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not for gender_difference; use Permutation()")
    signs = dict.fromkeys(_signs(positive, negative), 1.0)
    cells = cells_of(similarities, signs, regions)
    if len(cells.groups) < 2:
        raise InputError(f"similarities: groups {[*cells.groups]}; expected at least two")
    boot = _replicates(cells, resampling, rng)
    null = None
    if resampling is not None and cells.images is not None:
        null = _differences(cells.exchanged(resampling, rng))
    observed = _differences(cells.values[None])[0]
    level = 0.95 if resampling is None else resampling.level
    parts = [
        _region_part(cells, index, observed[index], boot, null, level, resampling)
        for index in range(len(cells.regions))
    ]
    value = _mean(observed[None])[0]
    held = _held(None if null is None else _mean(null), value, resampling)
    return make_estimate(
        metric="gender_difference",
        value=float(value),
        n=cells.sizes,
        method=_method(cells, boot, resampling),
        params={"words": [*signs]},
        chance=held.chance,
        no_chance="" if held.chance else _AS_MEANS if cells.images is None else NO_INTERVAL,
        p_value=held.p_value,
        null=held.null,
        by=parts_to_table(parts),
        excluded=cells.excluded,
        unit=cells.unit,
        reason="no region has two groups" if math.isnan(value) else "",
        ends=no_ends if boot is None else Percentile(_mean(_differences(boot))),
    )


def _signs(positive: Sequence[str], negative: Sequence[str]) -> dict[str, float]:
    words = [*positive, *negative]
    if not words:
        raise InputError("positive and negative: no words; expected at least one")
    if twice := sorted({word for word in words if words.count(word) > 1}):
        raise InputError(
            f"positive and negative: {twice[0]!r} occurs more than once; each word belongs to one"
        )
    return {word: 1.0 if index < len(positive) else -1.0 for index, word in enumerate(words)}


def _replicates(cells: Cells, resampling: Resampling | None, seed: int) -> Floats | None:
    if not isinstance(resampling, Bootstrap) or cells.images is None:
        return None
    return cells.bootstrap(resampling.replicates, seed)


def _differences(values: Floats) -> Floats:
    """Largest minus smallest over groups, (r, regions, groups) to (r, regions)."""
    known = (~np.isnan(values)).sum(axis=2) >= 2
    spread = np.fmax.reduce(values, axis=2) - np.fmin.reduce(values, axis=2)
    return np.where(known, spread, np.nan)


def _mean(values: Floats) -> Floats:
    """Mean over cells that have a number, (r, cells) to (r,)."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1))


def _held(null: Floats | None, value: float, resampling: Resampling | None) -> Against:
    if null is None or resampling is None or isinstance(resampling, Exact) or math.isnan(value):
        return NOTHING
    found = p_value(null, value, "higher", resolution=resampling.resolution)
    text = f"images exchange their group within each region; {len(null)} permutations"
    return Against(band(null, method=text), found.value, f"{text}; {found.method}")


def _region_part(
    cells: Cells,
    index: int,
    value: float,
    boot: Floats | None,
    null: Floats | None,
    level: float,
    resampling: Resampling | None,
) -> Part:
    held = _held(None if null is None else null[:, index], value, resampling)
    low, high = _folded(boot[:, index])(level) if boot is not None else no_ends(level)
    chance = held.chance
    return Part(
        "gender_difference",
        cells.regions[index],
        float(value),
        low,
        high,
        chance=chance.mean if chance else np.nan,
        chance_low=chance.low if chance else np.nan,
        chance_high=chance.high if chance else np.nan,
        p_value=np.nan if held.p_value is None else held.p_value,
        n=int(cells.counts[index].sum()),
        by_group=_by_group(cells, boot, index, level),
        reason="fewer than two groups" if math.isnan(value) else "",
    )


def _folded(drawn: Floats) -> Ends:
    if drawn.shape[1] == 2:
        return Folded(drawn[:, 0] - drawn[:, 1])
    return Percentile(_differences(drawn[:, None])[:, 0])


def _by_group(
    cells: Cells, boot: Floats | None, index: int, level: float
) -> tuple[GroupValue, ...]:
    found = []
    for place, group in enumerate(cells.groups):
        ends = no_ends if boot is None else Percentile(boot[:, index, place])
        n, value = int(cells.counts[index, place]), float(cells.values[index, place])
        note = "no images" if math.isnan(value) else ""
        found.append(GroupValue(group, (group,), n, value, *ends(level), note))
    return tuple(found)


def _method(cells: Cells, boot: Floats | None, resampling: Resampling | None) -> str:
    if resampling is None:
        return NO_INTERVAL
    if cells.images is None:
        return f"none: {_AS_MEANS}"
    if boot is None:
        return "none: use Bootstrap()"
    return f"percentile bootstrap over {cells.unit}s, {len(boot)} replicates"


register(
    MetricSpec(
        name="trend",
        title="Trend",
        kinds=("associations",),
        range="[-words, words] for cosines",
        harm="lower",
        definition=(
            "Sum over positive words of the mean similarity of a group's images, minus that over "
            "negative words; mean over regions and groups."
        ),
        direction="Lower: closer to negative words.",
        chance="none: it compares words, not groups",
        interval="percentile bootstrap over images or units",
        reference=_REFERENCE,
    )
)
register(
    MetricSpec(
        name="gender_difference",
        title="Gender difference",
        kinds=("associations",),
        range="[0, 2 x words] for cosines",
        definition=(
            "Largest minus smallest group in the sum of mean similarities over all words, by "
            "region; mean over regions."
        ),
        direction="Higher: groups differ more.",
        chance="above 0",
        interval="percentile bootstrap over images or units",
        null="images exchange their group within each region",
        reference=_REFERENCE,
    )
)
