"""Trend and gender difference: similarities of groups' images to favourable and other words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.arrays import Floats, Integers
from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.core.parts import parts_to_table
from equipoise.metrics.building import (
    NOTHING,
    against,
    bootstrap_method,
    ends_of,
    folded_ends,
    gaps,
    group_rows,
    known_mean,
    number,
    sizes,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.vectors.partitions import permutations
from equipoise.stats.draws import Exchange
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, resolution_of
from equipoise.stats.streams import Seed, stream, unit_counts, unit_keys

_BLOCK = 64


@dataclass(frozen=True, eq=False)
class ImageSimilarities:
    """Similarities of single images to words, for `trend` and `gender_difference`.

    Attributes
    ----------
    scores : array-like, shape (images, words)
    words : sequence of str
        Names of the columns.
    groups : array-like, shape (images,)
    regions : array-like, shape (images,), optional
        Default: one region, "all".
    units : array-like, shape (images,), optional
        Names of the units that repeat.
    """

    scores: npt.ArrayLike
    words: Sequence[str]
    groups: Any
    regions: Any = None
    units: Any = None


@dataclass(frozen=True, eq=False)
class Images:
    """One number per image, sorted by region and group, and its mean in each cell of these."""

    regions: tuple[str, ...]
    groups: Groups
    number: Floats
    region: Integers
    group: Integers
    unit: Integers
    units: tuple[str, ...] | None
    excluded: Mapping[str, int]

    @classmethod
    def of(cls, given: ImageSimilarities, signs: Mapping[str, float]) -> Images:
        """Sum similarities with a sign per word.

        Raises
        ------
        InputError
            When a word is missing, shapes do not fit, or no image is complete.
        """
        scores, words = np.asarray(given.scores, dtype=np.float64), [*given.words]
        if scores.ndim != 2 or scores.shape[1] != len(words):
            raise InputError(f"scores: shape {scores.shape}; expected (images, {len(words)} words)")
        if missing := [word for word in signs if word not in words]:
            raise InputError(f"words: no word {missing[0]!r}; expected all of {[*signs]}")
        columns, up = scores[:, [*map(words.index, signs)]], np.array([*signs.values()]) > 0
        total = columns[:, up].sum(axis=1) - columns[:, ~up].sum(axis=1)
        n, coded = len(scores), {}
        labels = {"regions": given.regions, "groups": given.groups, "units": given.units}
        for what, some in labels.items():
            coded[what] = encode(np.full(n, "all") if some is None else some, what=what)
            if len(coded[what][0]) != n:
                raise InputError(f"{what}: {len(coded[what][0])} labels; expected {n}, as scores")
        region, group, unit = (codes.astype(np.int64) for codes, _ in coded.values())
        finite, named = np.isfinite(total), (group >= 0) & (region >= 0) & (unit >= 0)
        excluded = {
            "no finite similarity": int((~finite).sum()),
            "missing group, region or unit": int((~named).sum()),
        }
        rows = np.flatnonzero(finite & named)
        if not len(rows):
            raise InputError(f"scores: none of {n} images has a group, a region and finite numbers")
        rows = rows[np.lexsort((unit[rows], total[rows], group[rows], region[rows]))]
        # Images that are units of their own are numbered in this order, whatever the one given.
        own, units = (np.arange(len(rows)), None)
        if given.units is not None:
            own, units = unit[rows], coded["units"][1]
        levels = tuple((name,) for name in coded["groups"][1])
        groups = Groups(("group",), levels, coded["groups"][0][rows])
        return cls(
            coded["regions"][1], groups, total[rows], region[rows], group[rows], own, units,
            excluded,
        )  # fmt: skip

    def sums(self, group: Integers, weight: Floats) -> Floats:
        """Return sums of weights by region and group."""
        cell = self.region * len(self.groups) + group
        found = np.bincount(cell, weight, minlength=len(self.regions) * len(self.groups))
        return found.reshape(len(self.regions), len(self.groups)).astype(np.float64)

    def means(self, group: Integers, weight: Floats) -> Floats:
        """Return means by region and group, NaN where a cell has no image."""
        with np.errstate(invalid="ignore"):
            return self.sums(group, weight * self.number) / self.sums(group, weight)

    def bootstrap(self, resampling: Resampling | None, seed: Seed) -> Floats | None:
        """Return means of resampled images or units, (replicates, regions, groups)."""
        if not isinstance(resampling, Bootstrap):
            return None
        found = []
        for start in range(0, resampling.replicates, _BLOCK):
            weights = self._weights(start, min(_BLOCK, resampling.replicates - start), seed)
            found += [self.means(self.group, row) for row in weights]
        return np.stack(found)

    def exchanged(self, resampling: Resampling | None, seed: Seed) -> Floats | None:
        """Return means with groups exchanged within regions, (permutations, regions, groups)."""
        if resampling is None:
            return None
        blocks, ones = Exchange.of(self.group, self.unit, self.region), np.ones(len(self.group))
        found = []
        for step in range(permutations(len(ones) * 20, resampling)):
            group = blocks.shuffle(self.group, stream(seed, "permutation", step))
            found.append(self.means(group, ones))
        return np.stack(found)

    def _weights(self, start: int, size: int, seed: Seed) -> Floats:
        """How often each image counts: units by a Poisson(1) of their name, images within cells."""
        if self.units:
            times = unit_counts(seed, unit_keys(self.units), range(start, start + size))
            return times[:, self.unit].astype(np.float64)
        rng, first = stream(seed, "bootstrap", start), 0
        weights = np.zeros((size, len(self.number)))
        counts = self.sums(self.group, np.ones(len(self.group))).astype(np.int64)
        for n in counts[counts > 0].tolist():
            rows = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
            drawn = np.bincount(rows.ravel(), minlength=size * n)
            weights[:, first : first + n] = drawn.reshape(size, n)
            first += n
        return weights


def _signs(positive: Sequence[str], negative: Sequence[str]) -> dict[str, float]:
    words = [*positive, *negative]
    twice = sorted({word for word in words if words.count(word) > 1})
    if twice or not words:
        raise InputError(f"positive and negative: {twice or 'no words'}; expected each word once")
    return dict.fromkeys(positive, 1.0) | dict.fromkeys(negative, -1.0)


def trend(
    similarities: ImageSimilarities,
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Sum over positive words of the mean similarity, minus the sum over negative words.

    Parameters
    ----------
    similarities : ImageSimilarities
    positive, negative : sequence of str
        Words of each kind; each word once.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int or Generator
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

    def means(values: Floats) -> Floats:
        whole = known_mean(values.reshape(*values.shape[:-2], -1))
        return np.concatenate([whole[..., None], known_mean(values)], axis=-1)

    params = {"positive": [*positive], "negative": [*negative]}
    return _estimate("trend", Images.of(similarities, signs), means, resampling, rng, params)


def gender_difference(
    similarities: ImageSimilarities,
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Difference between groups in the sum of mean similarities over all words, by region.

    Parameters
    ----------
    similarities, positive, negative, resampling, rng
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
        As `trend`; or there are fewer than two groups.

    References
    ----------
    Mandal 2024, chapter 4.
    """
    signs = dict.fromkeys(_signs(positive, negative), 1.0)
    images = Images.of(similarities, signs)
    if len(images.groups) < 2:
        raise InputError(f"groups: {[*images.groups.names]}; expected at least two")

    def differences(values: Floats) -> Floats:
        each = gaps(values)
        return np.concatenate([known_mean(each)[..., None], each], axis=-1)

    params = {"words": [*signs]}
    return _estimate("gender_difference", images, differences, resampling, rng, params)


def _estimate(
    metric: str,
    images: Images,
    statistic: Callable[[Floats], Floats],
    resampling: Resampling | None,
    rng: Seed,
    params: Mapping[str, Any],
) -> Estimate:
    """Return the estimate of a statistic of means: of the whole, then of each region."""
    ones, level = np.ones(len(images.group)), level_of(resampling)
    values, counts = images.means(images.group, ones), images.sums(images.group, ones)
    observed, boot = statistic(values), images.bootstrap(resampling, rng)
    drawn = None if boot is None else statistic(boot)
    ends = [ends_of(drawn, index) for index in range(len(observed))]
    helds = [NOTHING] * len(observed)
    no_chance = "a trend compares words, not groups; see gender_difference"
    if metric == "gender_difference":
        no_chance = "no resampling was asked for"
        if boot is not None and boot.shape[2] == 2:
            ends[1:] = [folded_ends(one[:, 0] - one[:, 1]) for one in boot.transpose(1, 0, 2)]
        if (exchanged := images.exchanged(resampling, rng)) is not None:
            null, resolution = statistic(exchanged), resolution_of(resampling)
            text = f"images exchange their group within each region; {len(null)} permutations"
            helds = [
                against(column, float(value), "higher", text, resolution=resolution)
                for column, value in zip(null.T, observed, strict=True)
            ]
    nothing, notes = np.full((2, *values.shape), math.nan), np.where(counts > 0, "", "no images")
    low, high = nothing if boot is None else percentile(boot, level)
    rows = zip(counts, values, low, high, notes.tolist(), strict=True)
    parts = [
        number(
            metric,
            float(observed[index]),
            subject=images.regions[index - 1],
            ends=ends[index],
            level=level,
            held=helds[index],
            n=int(row[0].sum()),
            by_group=group_rows(images.groups, *row),
            reason="fewer than two groups" if math.isnan(observed[index]) else "",
        )
        for index, row in enumerate(rows, start=1)
    ]
    unit = "unit" if images.units else "image"
    return make_estimate(
        metric=metric,
        value=float(observed[0]),
        n=sizes(images.groups),
        method=bootstrap_method(boot, resampling, f"{unit}s"),
        params=params,
        **helds[0].fields(no_chance),
        by=parts_to_table(parts),
        excluded=images.excluded,
        unit=unit,
        reason="no region has two groups" if math.isnan(observed[0]) else "",
        ends=ends[0],
    )


_words = partial(
    MetricSpec,
    kinds=("associations",),
    interval="percentile bootstrap over images or units",
    reference="Mandal 2024, chapter 4",
)
register(
    _words(
        name="trend",
        title="Trend",
        range="[-words, words] for cosines",
        harm="lower",
        definition=(
            "Sum over positive words of the mean similarity of a group's images, minus that over "
            "negative words; mean over regions and groups."
        ),
        direction="Lower: closer to negative words.",
        chance="none: it compares words, not groups",
    ),
    _words(
        name="gender_difference",
        title="Gender difference",
        range="[0, 2 x words] for cosines",
        definition=(
            "Largest minus smallest group in the sum of mean similarities over all words, by "
            "region; mean over regions."
        ),
        direction="Higher: groups differ more.",
        chance="above 0",
        null="images exchange their group within each region",
    ),
)
