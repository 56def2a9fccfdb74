"""Trend and gender difference: similarities of groups' images to favourable and other words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    AnyArray,
    Estimate,
    Facts,
    Floats,
    Groups,
    InputError,
    Integers,
    NullHypothesis,
    Part,
    Strings,
    encode,
    floats,
    integers,
    record,
    tally,
    unwarned,
)
from equipoise.metrics.building import (
    PERCENTILE,
    apply_to_draws,
    bootstrap_method,
    column_of,
    compare_with_chance,
    ends_of,
    explain_undefined,
    gaps,
    nan_mean,
    part,
    rows_of_replicates,
    sizes,
)
from equipoise.metrics.labels import fill_labels
from equipoise.metrics.measure import DEFAULT, Draws
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, MetricSpec, make_estimate
from equipoise.metrics.vectors.resampling import permutations
from equipoise.stats import Bootstrap, Resampling
from equipoise.stats.exchange import Exchange
from equipoise.stats.mean_norms import BOUNDS, MeanNorm
from equipoise.stats.streams import Seed, stream, unit_counts, unit_keys

_BLOCK = 64


_words = partial(
    MetricSpec,
    null_kind=NullHypothesis.ROWS,
    kinds=("associations",),
    needs=("images", "groups", "positive", "negative"),
    takes=("regions", "outside"),
    interval="percentile bootstrap over images or units",
    reference="Mandal 2024, chapter 4",
)


@record
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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 4))
    >>> seen = m.ImageSimilarities(
    ...     scores,
    ...     ["clever", "kind", "lazy", "rude"],
    ...     ["women", "men"] * 20,
    ...     ["Asia", "Europe"] * 20,
    ... )
    >>> seen.words
    ['clever', 'kind', 'lazy', 'rude']
    """

    scores: ArrayLike
    words: Sequence[str]
    groups: Any
    regions: Any = None
    units: Any = None


@record
class Images:
    """One number per image, sorted by region and group, and its mean in each cell of these."""

    regions: Strings
    groups: Groups
    number: Floats
    region: Integers
    unit: Integers
    units: Strings | None
    excluded: Mapping[str, int]

    @classmethod
    def of(cls, similarities: ImageSimilarities, signs: Mapping[str, float]) -> Images:
        """Sum similarities with a sign per word.

        Raises
        ------
        InputError
            When a word is missing, shapes do not fit, or no image is complete.
        """
        scores, words = floats(similarities.scores), [*similarities.words]
        if scores.ndim != 2 or scores.shape[1] != len(words):
            raise InputError(f"scores: shape {scores.shape}; expected (images, {len(words)} words)")
        if missing := [word for word in signs if word not in words]:
            raise InputError(f"words: no word {missing[0]!r}; expected all of {[*signs]}")
        columns, up = scores[:, [*map(words.index, signs)]], np.array([*signs.values()]) > 0
        total = columns[:, up].sum(axis=1) - columns[:, ~up].sum(axis=1)
        n, coded = len(scores), []
        labels = {
            "regions": similarities.regions,
            "groups": similarities.groups,
            "units": similarities.units,
        }
        for subject, values in labels.items():
            coded.append(encode(fill_labels(values, n), subject=subject))
            if len(coded[-1][0]) != n:
                raise InputError(f"{subject}: {len(coded[-1][0])} labels; expected {n}, as scores")
        (region, regions), (group, names), (unit, units) = coded
        finite, named = np.isfinite(total), (group >= 0) & (region >= 0) & (unit >= 0)
        excluded = {
            "no finite similarity": tally(~finite),
            "missing group, region or unit": tally(~named),
        }
        rows = np.flatnonzero(finite & named)
        if not len(rows):
            raise InputError(f"scores: none of {n} images has a group, a region and finite numbers")
        rows = rows[np.lexsort((unit[rows], total[rows], group[rows], region[rows]))]
        levels = tuple((name,) for name in names)
        groups = Groups(("group",), levels, group[rows], named=False)
        # Images that are units of their own are numbered in this order, whatever the one given.
        row_units = np.arange(len(rows)) if similarities.units is None else integers(unit[rows])
        named_units = None if similarities.units is None else units
        of_rows = integers(region[rows])
        return cls(regions, groups, total[rows], of_rows, row_units, named_units, excluded)

    def sums(self, group: AnyArray, weight: Floats) -> Floats:
        """Return sums of weights by region and group."""
        cell = self.region * len(self.groups) + group
        totals = np.bincount(cell, weight, minlength=len(self.regions) * len(self.groups))
        return floats(totals.reshape(len(self.regions), len(self.groups)))

    def means(self, group: AnyArray, weight: Floats) -> Floats:
        """Return means by region and group, NaN where a cell has no image."""
        with unwarned():
            return self.sums(group, weight * self.number) / self.sums(group, weight)

    def bounds(self, means: Floats, boot: Floats | None, regions: list[int]) -> MeanNorm:
        """Return the ends of the mean over regions of the range of their groups' means."""
        replicates = np.empty((0, *means.shape)) if boot is None else boot
        chosen = np.isin(self.region, regions)
        cell = (self.region * len(self.groups) + self.groups.codes)[chosen]
        pairs = np.unique(np.stack([cell, self.unit[chosen]]), axis=1)
        fewest = int(np.unique(pairs[0], return_counts=True)[1].min())
        return MeanNorm(means[regions], replicates[:, regions], fewest - 1, "range")

    def bootstrap(self, resampling: Resampling | None, seed: Seed) -> Floats | None:
        """Return means of resampled images or units, (replicates, regions, groups)."""
        if not isinstance(resampling, Bootstrap):
            return None
        replicates = []
        for start in range(0, resampling.replicates, _BLOCK):
            weights = self._weights(start, min(_BLOCK, resampling.replicates - start), seed)
            replicates += [self.means(self.groups.codes, row) for row in weights]
        return np.stack(replicates)

    def exchanged(self, resampling: Resampling | None, seed: Seed) -> Floats | None:
        """Return means with groups exchanged within regions, (permutations, regions, groups)."""
        if resampling is None:
            return None
        codes, unit_weights = integers(self.groups.codes), np.ones(len(self.number))
        exchange, n_moved = Exchange.within(codes, self.unit, self.region), len(unit_weights) * 20
        rngs = (
            stream(seed, "permutation", step) for step in range(permutations(n_moved, resampling))
        )
        return np.stack([self.means(exchange.shuffle(codes, rng), unit_weights) for rng in rngs])

    def _weights(self, start: int, size: int, seed: Seed) -> Floats:
        """How often each image counts: units by a Poisson(1) of their name, images within cells."""
        if self.units:
            times = unit_counts(seed, unit_keys(self.units), range(start, start + size))
            return floats(times[:, self.unit])
        rng, first = stream(seed, "bootstrap", start), 0
        weights = np.zeros((size, len(self.number)))
        counts = integers(self.sums(self.groups.codes, np.ones(len(self.number))))
        for n in counts[counts > 0].tolist():
            rows = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
            image_counts = np.bincount(rows.ravel(), minlength=size * n)
            weights[:, first : first + n] = image_counts.reshape(size, n)
            first += n
        return weights


def _signs(positive: Sequence[str], negative: Sequence[str]) -> dict[str, float]:
    words = [*positive, *negative]
    repeated = sorted({word for word in words if words.count(word) > 1})
    if repeated or not words:
        raise InputError(
            f"positive and negative: {repeated or 'no words'}; expected each word once"
        )
    return dict.fromkeys(positive, 1.0) | dict.fromkeys(negative, -1.0)


@metric(
    _words(
        name="trend",
        range=ANY_NUMBER,
        range_note="from −words to words for cosines",
        harm="lower",
        definition=(
            "Sum over positive words of the mean similarity of a group's images, minus that over "
            "negative words; mean over regions and groups."
        ),
        direction="Lower: closer to negative words.",
        chance="none: it compares words, not groups",
    )
)
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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 4))
    >>> seen = m.ImageSimilarities(
    ...     scores,
    ...     ["clever", "kind", "lazy", "rude"],
    ...     ["women", "men"] * 20,
    ...     ["Asia", "Europe"] * 20,
    ... )
    >>> m.trend(seen, ["clever", "kind"], ["lazy", "rude"])
    <trend 0.007 [−0.608, 0.595]; n = 40 in 2 groups>
    """
    signs = _signs(positive, negative)

    def means(values: Floats) -> Floats:
        overall = nan_mean(values.reshape(*values.shape[:-2], -1))
        return np.concatenate([overall[..., None], nan_mean(values)], axis=-1)

    params = {"positive": [*positive], "negative": [*negative]}
    return _estimate("trend", Images.of(similarities, signs), means, params, resampling, rng)


@metric(
    _words(
        name="gender_difference",
        range=(0.0, math.inf),
        range_note="at most 2 x words for cosines",
        definition=(
            "Largest minus smallest group in the sum of mean similarities over all words, by "
            "region; mean over regions."
        ),
        direction="Higher: groups differ more.",
        interval="bounds without the noise of images or units, by resampling them",
        chance="above 0",
        null="images exchange their group within each region",
    )
)
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
        Mean over regions, at least 0, higher is worse; `.corrected` is it less what the noise of
        images makes of it. Interval: bounds by resampled images or units. Chance and p:
        images exchange their group within each region. `.by` has one row per region with the
        groups' sums.

    Raises
    ------
    InputError
        As `trend`; or there are fewer than two groups.

    References
    ----------
    Mandal 2024, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 4))
    >>> seen = m.ImageSimilarities(
    ...     scores,
    ...     ["clever", "kind", "lazy", "rude"],
    ...     ["female", "male"] * 20,
    ...     ["Asia", "Asia", "Europe", "Europe"] * 10,
    ... )
    >>> m.gender_difference(seen, ["clever", "kind"], ["lazy", "rude"])
    <gender_difference 1.023 [0.000, 2.405]; chance 0.736, p = 0.22, n = 40 in 2 groups>
    """
    signs = dict.fromkeys(_signs(positive, negative), 1.0)
    images = Images.of(similarities, signs)
    if len(images.groups) < 2:
        raise InputError(f"groups: {[*images.groups.names]}; expected at least two")

    def differences(values: Floats) -> Floats:
        region_gaps = gaps(values)
        return np.concatenate([nan_mean(region_gaps)[..., None], region_gaps], axis=-1)

    params = {"words": [*signs]}
    return _estimate("gender_difference", images, differences, params, resampling, rng)


def _estimate(
    metric: str,
    images: Images,
    statistic: Callable[[Floats], Floats],
    params: Facts,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Return the estimate of a statistic of means: of the whole, then of each region."""
    codes, unit_weights, compares = (
        images.groups.codes,
        np.ones(len(images.number)),
        metric != "trend",
    )
    values, counts = images.means(codes, unit_weights), images.sums(codes, unit_weights)
    boot = images.bootstrap(resampling, rng)
    null = images.exchanged(resampling, rng) if compares else None
    draws = Draws.of(
        resampling,
        statistic(values),
        apply_to_draws(statistic, boot),
        apply_to_draws(statistic, null),
        "images exchange their group within each region",
    )
    value = float(draws.observed[0])
    comparable = np.flatnonzero((counts > 0).sum(axis=1) > 1).tolist() if compares else []
    overall_ends = images.bounds(values, boot, comparable) if comparable else None
    no_chance = "a trend compares words, not groups; see gender_difference"
    unit, kind = "unit" if images.units else "image", BOUNDS if overall_ends else PERCENTILE
    return make_estimate(
        metric,
        value,
        sizes(images.groups),
        bootstrap_method(boot, resampling, f"{unit}s", kind=kind),
        params=params,
        **compare_with_chance(draws, 0, "higher").fields(
            "resampling is off" if compares else no_chance
        ),
        by=_list_regions(metric, images, draws, values, counts, boot, comparable),
        excluded=images.excluded,
        unit=unit,
        reason=explain_undefined(value, "no region has two groups"),
        ends=overall_ends or ends_of(draws.boot, 0),
        corrected=overall_ends.estimate if overall_ends else math.nan,
    )


def _list_regions(
    metric: str,
    images: Images,
    draws: Draws,
    values: Floats,
    counts: Floats,
    boot: Floats | None,
    comparable: list[int],
) -> list[Part]:
    """Return the part of each region; those that compare groups have bounds of their own."""
    parts = []
    for index, (region, n) in enumerate(zip(images.regions, counts, strict=True)):
        region_boot, ends = column_of(boot, index), ends_of(draws.boot, index + 1)
        if boot is not None and index in comparable:
            ends = images.bounds(values, boot, [index])
        notes = np.where(n > 0, "", "no images").tolist()
        parts.append(
            part(
                metric,
                region,
                draws,
                index + 1,
                ends=ends,
                chance_test=compare_with_chance(draws, index + 1, "higher"),
                n=int(n.sum()),
                by_group=rows_of_replicates(
                    images.groups, n, values[index], region_boot, draws.level, notes
                ),
                reason=explain_undefined(draws.observed[index + 1], "fewer than two groups"),
            )
        )
    return parts
