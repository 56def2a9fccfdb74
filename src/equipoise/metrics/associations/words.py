"""Trend and gender difference: similarities of groups' images to favourable and other words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.labels import encode
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.partitions import permutations
from equipoise.metrics.building import (
    NOTHING,
    Against,
    against,
    bootstrap_method,
    ends_of,
    known_mean,
    number,
)
from equipoise.metrics.gaps import gaps
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.pairs import Folded
from equipoise.metrics.spec import MetricSpec, make_estimate, register
from equipoise.stats.draws import Exchange
from equipoise.stats.resampling import Bootstrap, Exact, Resampling, level_of, resolution_of
from equipoise.stats.streams import stream, unit_keys, unit_uniforms

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_BLOCK = 64
# P(at most k) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)


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
    """One number per image, with its region, group and unit."""

    number: Floats
    region: Indices
    group: Indices
    unit: Indices
    unit_names: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class Cells:
    """Means by region and group.

    Attributes
    ----------
    regions, groups : tuple of str
    values : ndarray, shape (regions, groups)
        NaN where a cell has no image.
    counts : ndarray of int, shape (regions, groups)
        Images; 0 where means were given.
    images : Images or None
        None where means were given.
    excluded : mapping of str to int
    """

    regions: tuple[str, ...]
    groups: tuple[str, ...]
    values: Floats
    counts: Indices
    images: Images | None = field(default=None, repr=False)
    excluded: Mapping[str, int] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, int]:
        """Images of each group."""
        return dict(zip(self.groups, self.counts.sum(axis=0).tolist(), strict=True))

    @property
    def unit(self) -> str:
        """What is resampled."""
        return "unit" if self.images is not None and self.images.unit_names else "image"

    def bootstrap(self, replicates: int, seed: int) -> Floats:
        """Return means of resampled images or units, (replicates, regions, groups)."""
        found = []
        for start in range(0, replicates, _BLOCK):
            weights = self._weights(start, min(_BLOCK, replicates - start), seed)
            found += [self._means(self._known.group, row) for row in weights]
        return np.stack(found)

    def exchanged(self, resampling: Resampling, seed: int) -> Floats:
        """Return means with groups exchanged within regions, (permutations, regions, groups)."""
        images = self._known
        blocks = Exchange.of(images.group, images.unit, images.region)
        draws = permutations(len(images.group) * 20, resampling)
        ones = np.ones(len(images.group))
        rngs = (stream(seed, "permutation", step) for step in range(draws))
        return np.stack([self._means(blocks.shuffle(images.group, rng), ones) for rng in rngs])

    @property
    def _known(self) -> Images:
        assert self.images is not None  # noqa: S101 - callers ask for draws of images only
        return self.images

    def _means(self, group: Indices, weight: Floats) -> Floats:
        cell = self._known.region * len(self.groups) + group
        size = self.values.size
        total = np.bincount(cell, weight * self._known.number, minlength=size)
        with np.errstate(invalid="ignore"):
            means = total / np.bincount(cell, weight, minlength=size)
        return np.asarray(means.reshape(self.values.shape))

    def _weights(self, start: int, size: int, seed: int) -> Floats:
        """How often each image counts: units by a Poisson(1) of their name, images within cells."""
        images = self._known
        if images.unit_names:
            keys = unit_keys(images.unit_names)
            uniforms = unit_uniforms(seed, "bootstrap", keys, range(start, start + size))
            times = np.searchsorted(_POISSON, uniforms, side="right")
            return np.asarray(times[:, images.unit], dtype=np.float64)
        rng = stream(seed, "bootstrap", start)
        weights = np.zeros((size, len(images.number)))
        # Images are sorted by cell, so that each cell is a run of rows.
        ends = np.cumsum(self.counts.ravel())
        for first, last in zip(ends - self.counts.ravel(), ends, strict=True):
            n = int(last - first)
            if n:
                rows = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
                drawn = np.bincount(rows.ravel(), minlength=size * n)
                weights[:, first:last] = drawn.reshape(size, n)
        return weights


def cells_of_images(given: ImageSimilarities, signs: Mapping[str, float]) -> Cells:
    """Sum each image's similarities with a sign per word, and average by region and group.

    Raises
    ------
    InputError
        When a word is missing, shapes do not fit, or no image is complete.
    """
    scores = np.asarray(given.scores, dtype=np.float64)
    words = [*given.words]
    if scores.ndim != 2 or scores.shape[1] != len(words):
        raise InputError(f"scores: shape {scores.shape}; expected (images, {len(words)} words)")
    if missing := [word for word in signs if word not in words]:
        raise InputError(f"words: no word {missing[0]!r}; expected all of {[*signs]}")
    up = [words.index(word) for word, sign in signs.items() if sign > 0]
    down = [words.index(word) for word, sign in signs.items() if sign < 0]
    number = scores[:, up].sum(axis=1) - scores[:, down].sum(axis=1)
    n = len(scores)
    region, regions = _codes(given.regions, n, "regions", "all")
    group, groups = _codes(given.groups, n, "groups", "all")
    unit, units = _codes(given.units, n, "units", None)
    known = np.isfinite(number) & (group >= 0) & (region >= 0) & (unit >= 0)
    excluded = {
        "no finite similarity": int((~np.isfinite(number)).sum()),
        "missing group, region or unit": int(((group < 0) | (region < 0) | (unit < 0)).sum()),
    }
    if not known.any():
        raise InputError(f"scores: none of {n} images has a group, a region and finite numbers")
    rows = np.flatnonzero(known)
    rows = rows[np.lexsort((unit[rows], number[rows], group[rows], region[rows]))]
    # Images that are units of their own are numbered in this order, whatever the one given.
    unit = unit[rows] if given.units is not None else np.arange(len(rows))
    images = Images(
        number[rows],
        region[rows],
        group[rows],
        unit,
        units if given.units is not None else None,
    )
    shape = len(regions), len(groups)
    cell = images.region * shape[1] + images.group
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    sums = np.bincount(cell, images.number, minlength=len(counts))
    with np.errstate(invalid="ignore"):
        values = (sums / counts).reshape(shape)
    return Cells(
        regions,
        groups,
        values,
        counts.reshape(shape),
        images,
        {why: count for why, count in excluded.items() if count},
    )


def cells_of(
    similarities: Similarities, signs: Mapping[str, float], regions: Sequence[str] | None
) -> Cells:
    """Return signed sums by region and group of either form of similarities.

    Raises
    ------
    InputError
        When a word is missing or shapes do not fit.
    """
    if isinstance(similarities, ImageSimilarities):
        return cells_of_images(similarities, signs)
    if not similarities:
        raise InputError("similarities: no groups; expected a mapping of group to words")
    columns = [_column(group, words, signs) for group, words in similarities.items()]
    if len({len(column) for column in columns}) > 1:
        raise InputError("similarities: groups have different numbers of regions; expected one")
    values = np.stack(columns, axis=1)
    names = [*map(str, range(1, len(values) + 1))] if regions is None else [*map(str, regions)]
    if len(names) != len(values):
        raise InputError(f"regions: {len(names)} names; expected {len(values)}, as similarities")
    groups = tuple(map(str, similarities))
    return Cells(tuple(names), groups, values, np.zeros(values.shape, dtype=np.int64))


def _column(group: str, words: Mapping[str, Any], signs: Mapping[str, float]) -> Floats:
    """Signed sum of a group's similarities, shape (regions,)."""
    _need(signs, words, f"similarities of {group!r}")
    arrays = [np.atleast_1d(np.asarray(words[word], dtype=np.float64)) for word in signs]
    if len({one.shape for one in arrays}) > 1 or arrays[0].ndim != 1:
        raise InputError(
            f"similarities of {group!r}: words have different numbers of regions; "
            "expected one number per region for each"
        )
    up = [one for one, sign in zip(arrays, signs.values(), strict=True) if sign > 0]
    down = [one for one, sign in zip(arrays, signs.values(), strict=True) if sign < 0]
    zero = np.zeros_like(arrays[0])
    return np.asarray(sum(up, start=zero) - sum(down, start=zero))


def _need(words: Collection[str], given: Collection[str], what: str) -> None:
    if missing := [word for word in words if word not in given]:
        raise InputError(f"{what}: no word {missing[0]!r}; expected all of {[*words]}")


def _codes(labels: Any, n: int, what: str, single: str | None) -> tuple[Indices, tuple[str, ...]]:
    """Encode labels; without them all images are in one region, or each is its own unit."""
    if labels is None:
        return (np.arange(n), ()) if single is None else (np.zeros(n, dtype=np.int64), (single,))
    codes, names = encode(labels, what=what)
    if len(codes) != n:
        raise InputError(f"{what}: {len(codes)} labels; expected {n}, one per row of scores")
    return codes.astype(np.int64), names


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
    level = level_of(resampling)
    parts = []
    for index, region in enumerate(cells.regions):
        parts.append(
            number(
                "trend",
                float(known_mean(cells.values[index])),
                subject=region,
                ends=ends_of(None if boot is None else known_mean(boot[:, index])),
                level=level,
                n=int(cells.counts[index].sum()),
                by_group=_by_group(cells, boot, index, level),
            )
        )
    return make_estimate(
        metric="trend",
        value=float(known_mean(cells.values.ravel())),
        n=cells.sizes,
        method=_method(cells, boot, resampling),
        params={"positive": [*positive], "negative": [*negative]},
        no_chance="a trend compares words, not groups; see gender_difference",
        by=parts_to_table(parts),
        excluded=cells.excluded,
        unit=cells.unit,
        ends=ends_of(None if boot is None else known_mean(boot.reshape(len(boot), -1))),
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
        null = gaps(cells.exchanged(resampling, rng))
    observed = gaps(cells.values)
    level = level_of(resampling)
    parts = [
        _region_part(cells, index, observed[index], boot, null, level, resampling)
        for index in range(len(cells.regions))
    ]
    value = float(known_mean(observed))
    held = _held(None if null is None else known_mean(null), value, resampling)
    return make_estimate(
        metric="gender_difference",
        value=value,
        n=cells.sizes,
        method=_method(cells, boot, resampling),
        params={"words": [*signs]},
        **held.fields(_AS_MEANS if cells.images is None else NO_INTERVAL),
        by=parts_to_table(parts),
        excluded=cells.excluded,
        unit=cells.unit,
        reason="no region has two groups" if math.isnan(value) else "",
        ends=ends_of(None if boot is None else known_mean(gaps(boot))),
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


def _held(null: Floats | None, value: float, resampling: Resampling | None) -> Against:
    if null is None:
        return NOTHING
    text = f"images exchange their group within each region; {len(null)} permutations"
    return against(null, value, "higher", text, resolution=resolution_of(resampling))


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
    return number(
        "gender_difference",
        float(value),
        subject=cells.regions[index],
        ends=no_ends if boot is None else _folded(boot[:, index]),
        level=level,
        held=held,
        n=int(cells.counts[index].sum()),
        by_group=_by_group(cells, boot, index, level),
        reason="fewer than two groups" if math.isnan(value) else "",
    )


def _folded(drawn: Floats) -> Ends:
    if drawn.shape[1] == 2:
        return Folded(drawn[:, 0] - drawn[:, 1])
    return ends_of(gaps(drawn))


def _by_group(
    cells: Cells, boot: Floats | None, index: int, level: float
) -> tuple[GroupValue, ...]:
    found = []
    for place, group in enumerate(cells.groups):
        ends = ends_of(None if boot is None else boot[:, index, place])
        n, value = int(cells.counts[index, place]), float(cells.values[index, place])
        note = "no images" if math.isnan(value) else ""
        found.append(GroupValue(group, (group,), n, value, *ends(level), note))
    return tuple(found)


def _method(cells: Cells, boot: Floats | None, resampling: Resampling | None) -> str:
    without = f"none: {_AS_MEANS}" if cells.images is None else "none: use Bootstrap()"
    return bootstrap_method(boot, resampling, f"{cells.unit}s", without)


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
