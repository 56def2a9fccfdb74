"""Trend and gender difference: similarities of groups' images to favourable and other words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate
from equipoise.core.finding import GroupValue
from equipoise.core.labels import encode
from equipoise.core.parts import parts_to_table
from equipoise.metrics.building import (
    NOTHING,
    Against,
    Folded,
    against,
    bootstrap_method,
    ends_of,
    gaps,
    known_mean,
    number,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.metrics.vectors.partitions import permutations
from equipoise.stats.draws import Exchange
from equipoise.stats.resampling import Bootstrap, Exact, Resampling, level_of, resolution_of
from equipoise.stats.streams import stream, unit_keys, unit_uniforms

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_BLOCK = 64
# P(at most k) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)
_AS_MEANS = "similarities are given as means: pass ImageSimilarities for intervals and chance"


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

    scores: npt.ArrayLike = field(repr=False)
    words: Sequence[str]
    groups: Any = field(repr=False)
    regions: Any = field(default=None, repr=False)
    units: Any = field(default=None, repr=False)


Similarities = Mapping[str, Mapping[str, Any]] | ImageSimilarities


@dataclass(frozen=True, eq=False)
class Images:
    """One number per image, sorted by region and group."""

    number: Floats
    region: Indices
    group: Indices
    unit: Indices
    units: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Cells:
    """Means by region and group.

    Attributes
    ----------
    regions, groups : tuple of str
    counts : ndarray of int, shape (regions, groups)
        Images; 0 where means were given.
    values : ndarray, shape (regions, groups)
        NaN where a cell has no image.
    images : Images or None
        None where means were given.
    excluded : mapping of str to int
    """

    regions: tuple[str, ...]
    groups: tuple[str, ...]
    counts: Indices
    values: Floats
    images: Images | None = field(default=None, repr=False)
    excluded: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls, similarities: Similarities, signs: Mapping[str, float], regions: Sequence[str] | None
    ) -> Cells:
        """Sum similarities with a sign per word, and average by region and group.

        Raises
        ------
        InputError
            When a word is missing, shapes do not fit, or no image is complete.
        """
        if isinstance(similarities, ImageSimilarities):
            return cls._of_images(similarities, signs)
        if not similarities:
            raise InputError("similarities: no groups; expected a mapping of group to words")
        columns = []
        for group, words in similarities.items():
            what = f"similarities of {group!r}"
            _check_words(what, signs, words)
            rows = [np.atleast_1d(np.asarray(words[word], dtype=np.float64)) for word in signs]
            if rows[0].ndim != 1 or len({one.shape for one in rows}) > 1:
                raise InputError(f"{what}: expected one number per region for each word")
            columns.append(_signed(np.stack(rows, axis=-1), signs))
        if len({len(column) for column in columns}) > 1:
            raise InputError("similarities: groups have different numbers of regions; expected one")
        values = np.stack(columns, axis=1)
        names = range(1, len(values) + 1) if regions is None else regions
        if len(names) != len(values):
            raise InputError(f"regions: {len(names)} names; expected {len(values)}")
        counts = np.zeros(values.shape, dtype=np.int64)
        return cls(tuple(map(str, names)), tuple(map(str, similarities)), counts, values)

    @classmethod
    def _of_images(cls, given: ImageSimilarities, signs: Mapping[str, float]) -> Cells:
        scores, words = np.asarray(given.scores, dtype=np.float64), [*given.words]
        if scores.ndim != 2 or scores.shape[1] != len(words):
            raise InputError(f"scores: shape {scores.shape}; expected (images, {len(words)} words)")
        _check_words("words", signs, words)
        total = _signed(scores[:, [words.index(word) for word in signs]], signs)
        n = len(scores)
        whole = np.full(n, "all")
        region, regions = _codes(whole if given.regions is None else given.regions, n, "regions")
        group, groups = _codes(whole if given.groups is None else given.groups, n, "groups")
        unit, units = np.zeros(n, dtype=np.int64), None
        if given.units is not None:
            unit, units = _codes(given.units, n, "units")
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
        own = np.arange(len(rows)) if units is None else unit[rows]
        images = Images(total[rows], region[rows], group[rows], own, units)
        shape = len(regions), len(groups)
        cell = images.region * shape[1] + images.group
        counts = np.bincount(cell, minlength=shape[0] * shape[1])
        with np.errstate(invalid="ignore"):
            values = np.bincount(cell, images.number, minlength=len(counts)) / counts
        left_out = {why: count for why, count in excluded.items() if count}
        return cls(regions, groups, counts.reshape(shape), values.reshape(shape), images, left_out)

    @property
    def unit(self) -> str:
        """What is resampled."""
        return "unit" if self.images is not None and self.images.units else "image"

    def bootstrap(self, resampling: Resampling | None, seed: int) -> Floats | None:
        """Return means of resampled images or units, (replicates, regions, groups)."""
        images = self.images
        if not isinstance(resampling, Bootstrap) or images is None:
            return None
        found = []
        for start in range(0, resampling.replicates, _BLOCK):
            weights = self._weights(images, start, min(_BLOCK, resampling.replicates - start), seed)
            found += [self._means(images, images.group, row) for row in weights]
        return np.stack(found)

    def exchanged(self, resampling: Resampling | None, seed: int) -> Floats | None:
        """Return means with groups exchanged within regions, (permutations, regions, groups)."""
        images = self.images
        if resampling is None or images is None:
            return None
        blocks = Exchange.of(images.group, images.unit, images.region)
        ones = np.ones(len(images.group))
        found = []
        for step in range(permutations(len(ones) * 20, resampling)):
            group = blocks.shuffle(images.group, stream(seed, "permutation", step))
            found.append(self._means(images, group, ones))
        return np.stack(found)

    def _means(self, images: Images, group: Indices, weight: Floats) -> Floats:
        cell, size = images.region * len(self.groups) + group, self.values.size
        total = np.bincount(cell, weight * images.number, minlength=size)
        with np.errstate(invalid="ignore"):
            means = total / np.bincount(cell, weight, minlength=size)
        return np.asarray(means.reshape(self.values.shape))

    def _weights(self, images: Images, start: int, size: int, seed: int) -> Floats:
        """How often each image counts: units by a Poisson(1) of their name, images within cells."""
        if images.units:
            keys = unit_keys(images.units)
            uniforms = unit_uniforms(seed, "bootstrap", keys, range(start, start + size))
            times = np.searchsorted(_POISSON, uniforms, side="right")
            return times[:, images.unit].astype(np.float64)
        rng, first = stream(seed, "bootstrap", start), 0
        weights = np.zeros((size, len(images.number)))
        for n in self.counts.ravel().tolist():
            if n:
                rows = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
                drawn = np.bincount(rows.ravel(), minlength=size * n)
                weights[:, first : first + n] = drawn.reshape(size, n)
            first += n
        return weights

    def by_group(self, boot: Floats | None, index: int, level: float) -> tuple[GroupValue, ...]:
        """Return the means of one region."""
        found = []
        for place, group in enumerate(self.groups):
            ends = ends_of(None if boot is None else boot[:, index, place])
            n, value = int(self.counts[index, place]), float(self.values[index, place])
            note = "no images" if math.isnan(value) else ""
            found.append(GroupValue(group, (group,), n, value, *ends(level), note))
        return tuple(found)

    def estimate(
        self,
        metric: str,
        numbers: Floats,
        boot: Floats | None,
        ends: Sequence[Ends],
        helds: Sequence[Against],
        resampling: Resampling | None,
        params: Mapping[str, Any],
        no_chance: str,
    ) -> Estimate:
        """Return the estimate of numbers (1 + regions,): the whole, then of each region."""
        level = level_of(resampling)
        parts = [
            number(
                metric,
                float(numbers[1 + index]),
                subject=region,
                ends=ends[1 + index],
                level=level,
                held=helds[1 + index],
                n=int(self.counts[index].sum()),
                by_group=self.by_group(boot, index, level),
                reason="fewer than two groups" if math.isnan(numbers[1 + index]) else "",
            )
            for index, region in enumerate(self.regions)
        ]
        without = f"none: {_AS_MEANS}" if self.images is None else "none: use Bootstrap()"
        return make_estimate(
            metric=metric,
            value=float(numbers[0]),
            n=dict(zip(self.groups, self.counts.sum(axis=0).tolist(), strict=True)),
            method=bootstrap_method(boot, resampling, f"{self.unit}s", without),
            params=params,
            **helds[0].fields(no_chance),
            by=parts_to_table(parts),
            excluded=self.excluded,
            unit=self.unit,
            reason="no region has two groups" if math.isnan(numbers[0]) else "",
            ends=ends[0],
        )


def _check_words(what: str, signs: Mapping[str, float], given: Any) -> None:
    if missing := [word for word in signs if word not in given]:
        raise InputError(f"{what}: no word {missing[0]!r}; expected all of {[*signs]}")


def _signed(scores: Floats, signs: Mapping[str, float]) -> Floats:
    """Sum of the positive columns minus that of the negative ones."""
    up = np.array([*signs.values()]) > 0
    return np.asarray(scores[:, up].sum(axis=1) - scores[:, ~up].sum(axis=1))


def _codes(labels: Any, n: int, what: str) -> tuple[Indices, tuple[str, ...]]:
    codes, names = encode(labels, what=what)
    if len(codes) != n:
        raise InputError(f"{what}: {len(codes)} labels; expected {n}, one per row of scores")
    return codes.astype(np.int64), names


def _signs(positive: Sequence[str], negative: Sequence[str]) -> dict[str, float]:
    words = [*positive, *negative]
    if not words:
        raise InputError("positive and negative: no words; expected at least one")
    if twice := sorted({word for word in words if words.count(word) > 1}):
        raise InputError(f"positive and negative: {twice[0]!r} occurs more than once")
    return dict.fromkeys(positive, 1.0) | dict.fromkeys(negative, -1.0)


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
    cells = Cells.of(similarities, _signs(positive, negative), regions)
    boot, many = cells.bootstrap(resampling, rng), 1 + len(cells.regions)
    regional = [ends_of(None if boot is None else known_mean(boot[:, i])) for i in range(many - 1)]
    whole = ends_of(None if boot is None else known_mean(boot.reshape(len(boot), -1)))
    return cells.estimate(
        "trend",
        np.append(known_mean(cells.values.ravel()), known_mean(cells.values)),
        boot,
        [whole, *regional],
        [NOTHING] * many,
        resampling,
        {"positive": [*positive], "negative": [*negative]},
        "a trend compares words, not groups; see gender_difference",
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
    cells = Cells.of(similarities, signs, regions)
    if len(cells.groups) < 2:
        raise InputError(f"similarities: groups {[*cells.groups]}; expected at least two")

    def differences(values: Floats) -> Floats:
        each = gaps(values)
        return np.concatenate([known_mean(each)[..., None], each], axis=-1)

    observed, exchanged = differences(cells.values), cells.exchanged(resampling, rng)
    null = None if exchanged is None else differences(exchanged)
    boot = cells.bootstrap(resampling, rng)
    drawn = None if boot is None else differences(boot)
    ends = [ends_of(drawn, index) for index in range(len(observed))]
    if boot is not None and boot.shape[2] == 2:
        ends[1:] = [Folded(one[:, 0] - one[:, 1]) for one in boot.transpose(1, 0, 2)]
    text = "images exchange their group within each region"
    helds = [
        against(
            None if null is None else null[:, index],
            float(value),
            "higher",
            "" if null is None else f"{text}; {len(null)} permutations",
            resolution=resolution_of(resampling),
        )
        for index, value in enumerate(observed)
    ]
    no_chance = _AS_MEANS if cells.images is None else NO_INTERVAL
    params = {"words": [*signs]}
    return cells.estimate(
        "gender_difference", observed, boot, ends, helds, resampling, params, no_chance
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
    )
)
register(
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
    )
)
