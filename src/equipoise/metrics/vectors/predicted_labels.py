"""Labels that a model predicts for images of groups: their concentration, and WEAT of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Booleans,
    Ends,
    Estimate,
    Facts,
    Floats,
    GroupLabels,
    Groups,
    GroupValue,
    Harm,
    InputError,
    Integers,
    IntervalKind,
    Labels,
    NullHypothesis,
    Part,
    Strings,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    record,
    tally,
    unwarned,
)
from equipoise.core.labels import shape_of
from equipoise.metrics.building import (
    SPREAD,
    UNTESTED,
    ChanceTest,
    bootstrap_method,
    centred_percentile,
    compare_with_chance,
    ends_of,
    explain_undefined,
    gaps,
    group_rows,
    number,
    sizes,
)
from equipoise.metrics.labels import name_unit
from equipoise.metrics.measure import DEFAULT, Draws, permutations_text
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import (
    ANY_NUMBER,
    COHEN,
    POINTS,
    MetricSpec,
    Tested,
    make_estimate,
)
from equipoise.metrics.vectors.resampling import HARM, Alternative, permutations
from equipoise.metrics.vectors.sets import Similarity, embed
from equipoise.stats.draws import ItemSampler, Sampler, TableSampler
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, unit_keys

# Why percentiles of replicates are no confidence interval.
_MOVED = "moved to the value, since resampling adds noise of its own to the counts"
_CHOSEN_ANEW = "each replicate chooses the labels anew, and may compare others"
ASIDE = "a largest of many is larger still, or smaller, with the noise that resampling adds"


_shape = partial(
    MetricSpec,
    null_kind=NullHypothesis.ROWS,
    kinds=("associations", "answers"),
    range=ANY_NUMBER,
    harm=None,
    direction="Neither: the shape of the counts.",
    chance="none: descriptive",
    interval="resampling spread over images or units, no confidence interval",
    reference="Mandal 2024, chapters 5 and 7",
)


def spread(method: str, reason: str) -> str:
    """Say that percentiles of replicates are no confidence interval, and why."""
    return f"{SPREAD}: {method}; not a confidence interval: {reason}"


@metric(
    MetricSpec(
        name="label_concentration",
        needs=("images", "groups", "labels"),
        takes=("k", "whole_vocabulary", "regions"),
        null_kind=NullHypothesis.ROWS,
        of_base_rates=True,
        kinds=("associations", "answers"),
        unit="points",
        definition="Largest difference between groups in the share of their k top labels.",
        direction="Higher: fewer labels describe one group's images.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0, more so for small groups",
        interval="resampling spread over images or units, no confidence interval",
        null="images of all groups are exchangeable",
        reference="Mandal 2024, chapters 5 and 7",
    )
)
def label_concentration(
    labels: Labels,
    groups: GroupLabels,
    *,
    vocabulary: Sequence[str] | None = None,
    k: int = 10,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How far the labels predicted for a group's images pile up on a few, compared between groups.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Predicted label of each image.
    groups : array-like (n,), mapping of attribute to array-like, or Groups
    vocabulary : sequence of str, optional
        All labels, for skewness and kurtosis with zeros. Default: labels predicted for the group.
    k : int
        How many of a group's most frequent labels make its top share.
    units : array-like, shape (n,), optional
        Names of the units that repeat.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The ends need Bootstrap.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Largest difference between groups in the share of images on their k most frequent labels,
        in [0, 1], higher is worse; small groups have higher shares by chance, which the chance
        level shows. Ends: resampling spread, moved to the value, since replicates pile up more.
        Chance and p: images exchange groups. `.by` has the shares; "label_skewness" (g1) and
        "label_kurtosis" (excess) of each group's counts, without chance level.

    Raises
    ------
    InputError
        When lengths differ, k is below 1, or a label is not in the vocabulary.

    References
    ----------
    Mandal 2024, chapters 5 and 7.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> labels = ["chef", "judge", "pilot"] * 20 + ["nurse"] * 50 + ["clerk"] * 10
    >>> m.label_concentration(labels, ["men"] * 60 + ["women"] * 60, k=1)
    <label_concentration 0.500 [0.385, 0.601]; chance 0.073, p ≤ 0.001, n = 120 in 2 groups>
    """
    if k < 1:
        raise InputError(f"k={k}: expected at least 1")
    shapes = _LabelShapes.of(labels, groups, vocabulary, units, resampling, rng, k)
    names = ("top_share", "label_skewness", "label_kurtosis")
    parts = [shapes.part(name, place) for place, name in enumerate(names)]
    params = {"k": k, "labels": "predicted" if vocabulary is None else "vocabulary"}
    tested = shapes.chance_test.fields("resampling is off, or there is no value")
    return shapes.estimate("label_concentration", 0, parts, params, tested)


@metric(
    _shape(
        name="label_skewness",
        title="Skewness of label counts",
        symbol="g1",
        definition="Skewness of the counts of a group's labels.",
    )
)
def label_skewness(
    labels: Labels,
    groups: GroupLabels,
    *,
    vocabulary: Sequence[str] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Compare groups in the skewness of the counts of their labels.

    Parameters
    ----------
    labels, groups, vocabulary, units, resampling, rng
        As in `label_concentration`.

    Returns
    -------
    Estimate
        Largest difference between groups, descriptive; `.by` has the skewness g1 of each group.

    Raises
    ------
    InputError
        When lengths differ, or a label is not in the vocabulary.

    References
    ----------
    Mandal 2024, chapters 5 and 7.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> men = ["chef"] * 30 + ["judge"] * 20 + ["pilot"] * 10
    >>> women = ["nurse"] * 40 + ["clerk"] * 12 + ["cook"] * 8
    >>> m.label_skewness(men + women, ["men"] * 60 + ["women"] * 60)
    <label_skewness 0.665 [0.057, 1.431]; n = 120 in 2 groups>
    """
    shapes = _LabelShapes.of(labels, groups, vocabulary, units, resampling, rng)
    return shapes.describe("label_skewness", 1)


@metric(
    _shape(
        name="label_kurtosis",
        kinds=("associations",),
        title="Kurtosis of label counts",
        definition="Excess kurtosis of the counts of a group's labels.",
    )
)
def label_kurtosis(
    labels: Labels,
    groups: GroupLabels,
    *,
    vocabulary: Sequence[str] | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Compare groups in the excess kurtosis of the counts of their labels.

    Parameters
    ----------
    labels, groups, vocabulary, units, resampling, rng
        As in `label_concentration`.

    Returns
    -------
    Estimate
        Largest difference between groups, descriptive; `.by` has the excess kurtosis of each group.

    Raises
    ------
    InputError
        When lengths differ, or a label is not in the vocabulary.

    References
    ----------
    Mandal 2024, chapters 5 and 7.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> men = ["chef"] * 30 + ["judge"] * 20 + ["pilot"] * 10
    >>> women = ["nurse"] * 40 + ["clerk"] * 12 + ["cook"] * 8
    >>> m.label_kurtosis(men + women, ["men"] * 60 + ["women"] * 60)
    <label_kurtosis 0.000 [0.000, 0.000]; n = 120 in 2 groups>
    """
    shapes = _LabelShapes.of(labels, groups, vocabulary, units, resampling, rng)
    return shapes.describe("label_kurtosis", 2)


def _shapes(k: int, zeros: bool, usable: Booleans, tables: Floats) -> Floats:
    """Return gaps of top share, skewness and excess kurtosis, then each of every group."""
    counts = np.swapaxes(tables, 1, 2)
    top = -np.sort(-counts, axis=2)[:, :, : min(k, counts.shape[2])].sum(axis=2)
    mask = (counts > 0) | zeros
    n = mask.sum(axis=2)
    with unwarned():
        mean = np.where(mask, counts, 0.0).sum(axis=2) / n
        residuals = np.where(mask, counts - mean[:, :, None], 0.0)
        second = (residuals**2).sum(axis=2) / n
        third = (residuals**3).sum(axis=2) / n
        fourth = (residuals**4).sum(axis=2) / n
        second = np.where(second <= 1e-20 * mean**2, np.nan, second)
        shapes = [top / counts.sum(axis=2), third / second**1.5, fourth / second**2 - 3.0]
    compared = [gaps(values, usable) for values in shapes]
    return np.concatenate([np.stack(compared, 1), *shapes], axis=1)


_TOO_FEW = "fewer than two groups have images enough"
_UNDEFINED = "one group has no labels of its own, or all scores are equal"
_NO_LABELS = "no labels of its own"
CommonLabels = Literal["drop", "keep"]
COMMON_LABELS: tuple[CommonLabels, ...] = get_args(CommonLabels)


@metric(
    MetricSpec(
        name="predicted_label_weat",
        needs=("images", "groups", "labels", "attributes"),
        takes=("alternative", "first", "ddof", "common_labels"),
        null_kind=NullHypothesis.ROWS,
        title="WEAT of predicted labels",
        symbol="d",
        kinds=("associations",),
        range=(-2.0, 2.0),
        range_note="about",
        harm="either",
        definition=(
            "WEAT effect size of the labels predicted most often for each of two groups, in the "
            "text encoder's space. Labels of both groups are left out unless you keep them."
        ),
        direction="Either: positive means labels of the first group go with a.",
        threshold=0.2,
        threshold_reason=COHEN,
        chance="near 0",
        interval="resampling spread over images or units, no confidence interval",
        null="images of both groups are exchangeable; labels are chosen anew",
        reference="Mandal 2024, chapter 5",
    )
)
def predicted_label_weat(  # noqa: PLR0913 - one keyword for each choice
    labels: Labels,
    groups: GroupLabels,
    vocabulary: Sequence[str],
    embeddings: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    *,
    first: str | None = None,
    alternative: Alternative = "two-sided",
    ddof: int = 1,
    common_labels: CommonLabels = "drop",
    similarity: Similarity | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """WEAT of the labels that a model predicts most for images of each of two groups.

    X and Y are the more frequent half of the distinct labels predicted for each group: those at
    least as frequent as the label at that place. Labels in both are counted, and left out unless
    they are to be kept.

    Parameters
    ----------
    labels : array-like, shape (n,)
        Label predicted for each image.
    groups : array-like, shape (n,)
        One of two groups for each image.
    vocabulary : sequence of str, length v
        The labels that `embeddings` belong to.
    embeddings : array-like, shape (v, d)
        Embeddings of the labels by the text encoder.
    a, b : array-like, shape (n, d)
        Embeddings of the attribute words, by the same encoder.
    first : str, optional
        The group whose labels are X, which a one-sided alternative needs. Default: the first in
        order, which the sign depends on and p doesn't.
    alternative, ddof, similarity
        As in `weat`; "greater": labels of the first group go with a.
    common_labels : "drop" or "keep"
        Whether labels in both X and Y are left out, or stay in both.
    units : array-like, shape (n,), optional
        Names of the units that repeat.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. The interval needs Bootstrap.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Effect size d. Ends: resampling spread over images; it can leave out d, since replicates
        choose labels anew. Chance and p: images exchange groups, and labels are chosen anew, as
        they were with the very images they test. `.by` has d with the mean score of each group's
        labels, then the score of each label of X and Y. `.params`: "difference" of both means, and
        "statistic", the difference of both sums.

    Raises
    ------
    InputError
        When there are not two groups, a label is not in the vocabulary or has no embedding,
        lengths differ, an alternative is one-sided and `first` isn't declared, or an option is
        unknown.

    References
    ----------
    Mandal 2024, chapter 5.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> words = rng.normal(size=(4, 8))
    >>> labels = ["chef", "judge"] * 20 + ["nurse", "clerk"] * 20
    >>> m.predicted_label_weat(
    ...     labels,
    ...     ["men"] * 40 + ["women"] * 40,
    ...     ["chef", "judge", "nurse", "clerk"],
    ...     words,
    ...     rng.normal(size=(6, 8)),
    ...     rng.normal(size=(6, 8)),
    ... )
    <predicted_label_weat 0.755 [−1.414, 1.414]; chance −0.031, p = 0.75, n = 80 in 2 groups>
    """
    _check_choices(alternative, first, common_labels)
    sets = embed({"embeddings": embeddings}, {"a": a, "b": b}, similarity=similarity)
    usable, expected = len(sets["embeddings"]), len(vocabulary)
    if not shape_of(embeddings)[0] == usable == expected:
        raise InputError(f"embeddings: {usable} rows, not zero; expected {expected}, as vocabulary")
    counted = LabelCounts.of(labels, groups, units, vocabulary)
    names = counted.groups.names
    if len(names) != 2 or first not in (None, *names):
        raise InputError(f"groups: {[*names]}, first={first!r}; expected two, and one of them")
    sign = -1.0 if first == names[1] else 1.0
    scores = sets["embeddings"].dots(sets["a"].mean - sets["b"].mean)[counted.order]
    shared, turn = common_labels == "keep", np.array([sign, 1.0, 1.0, sign, sign])

    def effects(tables: Floats) -> Floats:
        return floats(turn * _effects(tables, scores, ddof, shared))

    observed, boot, chance_test = counted.measure(effects, HARM[alternative], resampling, rng)
    method, value = bootstrap_method(boot, resampling, f"{counted.unit}s"), float(observed[0])
    *sides, in_both = (mask[0] for mask in _chosen(counted.table[None], shared))
    means = _means_of_groups(counted.groups, sides, observed, boot, level_of(resampling))
    params = {
        "alternative": alternative, "ddof": ddof, "common_labels": common_labels,
        "similarity": "cosine" if similarity is None else "scores of pairs",
        "difference": float(observed[3]), "statistic": float(observed[4]),
    }  # fmt: skip
    return make_estimate(
        "predicted_label_weat",
        value,
        sizes(counted.groups),
        method if boot is None else spread(method, _CHOSEN_ANEW),
        interval_kind=IntervalKind.SPREAD,
        params=params,
        **chance_test.fields("resampling is off, or there is no value"),
        harm=HARM[alternative],
        by=[
            number("predicted_label_weat", value, n=sum(map(tally, sides)), by_group=means),
            *counted.parts(scores, sides[:: int(sign)]),
        ],
        excluded={**counted.excluded, "labels of both groups": 0 if shared else tally(in_both)},
        unit=counted.unit,
        reason=explain_undefined(value, _UNDEFINED),
        ends=ends_of(boot, 0),
    )


def _check_choices(alternative: str, first: str | None, common_labels: str) -> None:
    if alternative not in HARM:
        raise InputError(f"alternative={alternative!r}: expected one of {[*HARM]}")
    if alternative != "two-sided" and first is None:
        raise InputError(
            f"first: required by alternative={alternative!r}; name the group whose labels go with a"
        )
    if common_labels not in COMMON_LABELS:
        raise InputError(f"common_labels={common_labels!r}: expected one of {[*COMMON_LABELS]}")


def _means_of_groups(
    groups: Groups, sides: Sequence[Booleans], observed: Floats, boot: Floats | None, level: float
) -> tuple[GroupValue, ...]:
    """Return the mean score of the labels of each group."""
    low, high = np.array([ends_of(boot, index)(level) for index in (1, 2)]).T
    n_chosen = [*map(tally, sides)]
    notes = ["" if n else _NO_LABELS for n in n_chosen]
    return group_rows(groups, n_chosen, observed[1:3], low, high, notes)


@record
class LabelCounts:
    """How often each label was predicted for each group.

    Attributes
    ----------
    labels : tuple of str
        Sorted.
    order : ndarray of int
        Place of each label in the vocabulary as given.
    groups : Groups
    table : ndarray, shape (labels, groups)
    sampler : Sampler
    excluded : mapping of str to int
    unit : str
    """

    labels: Strings
    order: Integers
    groups: Groups
    table: Floats
    sampler: Sampler
    excluded: Mapping[str, int]
    unit: str

    @classmethod
    def of(
        cls,
        labels: Labels,
        groups: GroupLabels,
        units: Labels | None,
        vocabulary: Sequence[str] | None,
    ) -> LabelCounts:
        """Count predicted labels by group.

        Raises
        ------
        InputError
            When lengths differ, a label is not in the vocabulary, the vocabulary repeats a label,
            or no row is complete.
        """
        codes, names = encode(labels, subject="labels")
        n, label_groups = len(codes), Groups.of(groups)
        if len(label_groups.codes) != n:
            raise InputError(f"groups: {len(label_groups.codes)} rows; expected {n}, as in labels")
        order = np.arange(len(names))
        if vocabulary is not None:
            words = np.array([str(word) for word in vocabulary])
            order = np.argsort(words, kind="stable")
            all_words = tuple(words[order].tolist())
            place = {word: code for code, word in enumerate(all_words)}
            if len(place) < len(all_words):
                raise InputError("vocabulary: a label occurs twice; expected each label once")
            if strange := [name for name in names if name not in place]:
                raise InputError(
                    f"labels: {strange[0]!r} is not in the vocabulary; add it, or map labels first"
                )
            codes = np.array([*(place[name] for name in names), -1], dtype=np.int32)[codes]
            names = all_words
        unit, unit_names = (codes, ()) if units is None else encode(units, subject="units")
        if len(unit) != n:
            raise InputError(f"units: {len(unit)} names; expected {n}, one per label")
        complete = (codes >= 0) & (label_groups.codes >= 0) & (unit >= 0)
        if not complete.any():
            raise InputError("labels: no row has a label and a group")
        used_groups, n_used = label_groups.take(complete), tally(complete)
        table = np.zeros((len(names), len(label_groups)))
        np.add.at(table, (codes[complete], used_groups.codes), 1.0)
        sampler: Sampler = TableSampler(table)
        if units is not None:
            outcome, group = integers(codes[complete]), integers(used_groups.codes)
            row_units = integers(unit[complete])
            rows, weights, keys = np.arange(n_used), np.ones(n_used), unit_keys(unit_names)
            sampler = ItemSampler(outcome, rows, weights, group, row_units, keys, table.shape)
        excluded = {"missing label, group or unit": n - n_used}
        name = name_unit(units, "image")
        return cls(names, order, used_groups, table, sampler, excluded, name)

    def parts(self, scores: Floats, sides: Sequence[Booleans]) -> Iterator[Part]:
        """Yield the score of each label of x, then of y, with its images by group."""
        nothing = nans(2)
        for side, mask in zip("xy", sides, strict=True):
            for index in np.flatnonzero(mask).tolist():
                counts = self.table[index]
                yield number(
                    "association_score",
                    float(scores[index]),
                    subject=self.labels[index],
                    n=int(counts.sum()),
                    by_group=group_rows(self.groups, counts, counts, nothing, nothing, ["", ""]),
                    shows=f"images with the label, in {side}",
                )

    def measure(
        self,
        statistic: Callable[[Floats], Floats],
        harm: Harm,
        resampling: Resampling | None,
        seed: Seed,
    ) -> tuple[Floats, Floats | None, ChanceTest]:
        """Return numbers of tables (r, labels, groups), observed and resampled.

        The first number is held against groups exchanged between images.
        """
        observed, boot = statistic(self.table[None])[0], None
        if resampling is None:
            return observed, boot, UNTESTED
        if isinstance(resampling, Bootstrap):
            blocks = self.sampler.bootstrap(resampling.replicates, seed)
            boot = np.concatenate(blocks.each(lambda _, tables: statistic(tables)))
        draws = permutations(self.table.size * 50, resampling)
        exchanges = self.sampler.exchanges(np.zeros(len(self.table), np.int64), draws, seed)
        nulls = tuple(
            np.concatenate(tables.each(lambda _, tables: statistic(tables)[:, :1]))
            for tables in exchanges
        )
        text = f"images of all groups are exchangeable; {permutations_text(nulls)}"
        exchanged = replace(Draws.of(resampling, observed), nulls=nulls, null_text=text)
        return observed, boot, compare_with_chance(exchanged, 0, harm)


@record
class _LabelShapes:
    """Gaps between groups in the shapes of their label counts, and the shapes of each group.

    Attributes
    ----------
    counted : LabelCounts
    observed : ndarray, shape (3 + 3 groups,)
        Gaps of top share, skewness and excess kurtosis, then each of every group.
    boot : ndarray, shape (replicates, 3 + 3 groups), or None
    chance_test : ChanceTest
        Of the gap of top shares.
    resampling : Bootstrap, Permutation or None
    """

    counted: LabelCounts
    observed: Floats
    boot: Floats | None
    chance_test: ChanceTest
    resampling: Resampling | None

    @classmethod
    def of(
        cls,
        labels: Labels,
        groups: GroupLabels,
        vocabulary: Sequence[str] | None = None,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
        k: int = 1,
    ) -> _LabelShapes:
        """Count labels by group and draw the shapes of the counts."""
        counted = LabelCounts.of(labels, groups, units, vocabulary)
        shapes = partial(_shapes, k, vocabulary is not None, counted.groups.usable)
        return cls(counted, *counted.measure(shapes, "higher", resampling, rng), resampling)

    def part(self, name: str, place: int) -> Part:
        """Return one of the gaps with the shape of each group."""
        sides, observed = self.counted.groups, self.observed
        level, start = level_of(self.resampling), 3 + place * len(self.counted.groups)
        values = observed[start : start + len(sides)]
        columns = range(start, start + len(sides))
        low, high = np.array([self.ends(column)(level) for column in columns]).T
        notes = np.select(
            [sides.counts == 0, np.isnan(values)],
            ["no images", "its labels are equally frequent"],
            "",
        ).tolist()
        return number(
            name,
            float(observed[place]),
            n=int(sides.counts.sum()),
            ends=self.ends(place, 0.0),
            level=level,
            chance_test=UNTESTED if place else self.chance_test,
            by_group=group_rows(sides, sides.counts, values, low, high, notes),
        )

    def ends(self, column: int, least: float = -math.inf) -> Ends:
        """Return the spread of a number that replicates shift."""
        if self.boot is None:
            return no_ends
        return centred_percentile(float(self.observed[column]), self.boot[:, column], least)

    def estimate(
        self, metric: str, place: int, parts: Sequence[Part], params: Facts, tested: Tested
    ) -> Estimate:
        """Return one of the gaps as an estimate."""
        counted, boot = self.counted, self.boot
        method = bootstrap_method(boot, self.resampling, f"{counted.unit}s")
        return make_estimate(
            metric,
            float(self.observed[place]),
            sizes(counted.groups),
            method if boot is None else spread(method, _MOVED),
            interval_kind=IntervalKind.SPREAD,
            excluded=counted.excluded,
            unit=counted.unit,
            ends=self.ends(place, 0.0),
            params=params,
            by=parts,
            reason=explain_undefined(float(self.observed[place]), _TOO_FEW),
            **tested,
        )

    def describe(self, metric: str, place: int) -> Estimate:
        """Return a gap without a chance level, with the shape of each group."""
        part, tested = self.part(metric, place), UNTESTED.fields("descriptive")
        return self.estimate(metric, place, [part], {}, tested)


def _effects(tables: Floats, scores: Floats, ddof: int, shared: bool) -> Floats:
    """Return numbers of the labels of two groups, shape (r, 5).

    They are the effect size d, the mean of each group, their difference and that of sums.
    """
    x, y, _ = _chosen(tables, shared)
    nx, ny = x.sum(axis=1), y.sum(axis=1)
    either = x | y
    n, sums = either.sum(axis=1), ((x * scores).sum(axis=1), (y * scores).sum(axis=1))
    with unwarned():
        means = sums[0] / nx, sums[1] / ny
        centre = (either * scores).sum(axis=1) / n
        squares = (either * (scores - centre[:, None]) ** 2).sum(axis=1)
        deviation = np.sqrt(squares / np.maximum(n - ddof, 0))
        flat = ~(deviation > 1e-12 * np.abs(scores).max())
        difference = means[0] - means[1]
        effect = difference / np.where(flat, np.nan, deviation)
        return floats(np.stack([effect, *means, difference, sums[0] - sums[1]], axis=1))


def _chosen(tables: Floats, shared: bool) -> tuple[Booleans, Booleans, Booleans]:
    """Return labels of the first group, of the second, and of both, each (r, labels).

    A group's labels are those at least as frequent as the one that ends the more frequent half.
    Unless they are shared, those of both groups are in neither.
    """
    frequent = []
    for group in (0, 1):
        counts = tables[:, :, group]
        half = integers(np.ceil((counts > 0).sum(axis=1) / 2.0))
        falling = -np.sort(-counts, axis=1)
        edge = np.take_along_axis(falling, np.maximum(half - 1, 0)[:, None], axis=1)
        frequent.append((counts >= edge) & (counts > 0))
    first, second = frequent
    common = first & second
    return (first, second, common) if shared else (first & ~common, second & ~common, common)
