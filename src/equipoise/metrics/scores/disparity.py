"""Disparities of multi-label classifiers by concept, with prevalence under control."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from equipoise.core import (
    Booleans,
    Ends,
    Estimate,
    Excluded,
    Floats,
    GroupValue,
    InputError,
    Integers,
    Part,
    no_ends,
    parts_to_table,
)
from equipoise.metrics.building import (
    NOTHING,
    Against,
    ends_of,
    folded_ends,
    number,
    replicates_text,
    sizes,
    spread_level,
)
from equipoise.metrics.building import excluded_of as with_groups
from equipoise.metrics.counts import count
from equipoise.metrics.counts.accuracy import HitRate
from equipoise.metrics.counts.against_rest import OTHERS
from equipoise.metrics.measure import DEFAULT, measure
from equipoise.metrics.scores.cells import Metric
from equipoise.metrics.scores.measure import (
    Choices,
    ConceptResults,
    ConceptRun,
    Prevalence,
    read_concepts,
)
from equipoise.metrics.spec import AGAINST_REST, POINTS, MetricSpec, make_estimate, register
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed


def _pairwise_ends(replicates: Floats | None) -> Ends:
    """Return ends of the largest |difference|: folded percentiles of each pair, simultaneous."""
    if replicates is None:
        return no_ends
    known = replicates[:, ~np.isnan(replicates).all(axis=0)]
    if not known.shape[1]:
        return no_ends

    def ends(level: float) -> tuple[float, float]:
        each = [folded_ends(column)(spread_level(level, known.shape[1])) for column in known.T]
        return max(low for low, _ in each), max(high for _, high in each)

    return ends


def _largest(results: ConceptResults, concept: int | None) -> tuple[float, Against]:
    """Return the largest |difference| over pairs, NaN without one, held against chance."""
    differences = results.differences(concept)
    null, text = results.null_differences(concept)
    known = ~np.isnan(differences)
    if not known.any():
        return math.nan, NOTHING
    value = float(np.abs(differences[known]).max())
    if null is None:
        return value, NOTHING
    # A replicate without a value for some pair has no largest difference.
    return value, results.against(np.abs(null[:, known]).max(axis=1), value, text)


def _pairs(results: ConceptResults, concept: int | None) -> Iterator[Part]:
    """Yield the difference of each pair of groups in a concept, or of means over concepts."""
    name = results.choices.metric + AGAINST_REST if results.columns else "concept_difference"
    for (g, h), value, replicates, held in results.compared(concept):
        none, shared = math.isnan(value), results.shared(concept, g, h)
        if concept is None:
            note = f"mean over {int(shared.sum())} concepts"
            shown = tuple(_group_value(results, one, shared, note) for one in (g, h))
        else:
            shown = tuple(_in_concept(results, concept, one) for one in (g, h))
        about = [] if concept is None else [results.names[concept]]
        about += [] if results.columns else [" − ".join(one.group for one in shown)]
        yield number(
            name,
            value,
            subject=": ".join(about),
            ends=ends_of(None if none else replicates),
            level=results.level,
            held=held,
            n=sum(one.n for one in shown),
            by_group=shown,
            reason="a group takes no part" if none else "",
            shows="the metric of each group",
        )


def _concept(results: ConceptResults, concept: int) -> Part:
    value, held = _largest(results, concept)
    none = math.isnan(value)
    shown = tuple(_in_concept(results, concept, g) for g in range(len(results.groups)))
    left = Counter(one for one in results.reasons[concept] if one)
    return number(
        results.choices.metric,
        value,
        subject=results.names[concept],
        ends=no_ends if none else _pairwise_ends(results.replicates(concept)),
        level=results.level,
        held=held,
        n=sum(one.n for one in shown),
        by_group=shown,
        reason="fewer than two groups take part" if none else "",
        excluded=tuple(Excluded(reason, count) for reason, count in sorted(left.items())),
    )


def _in_concept(results: ConceptResults, concept: int, g: int) -> GroupValue:
    members = results.members(g, concept)
    positives, rows = int(results.positives[concept, members].sum()), _rows(results, members)
    why = results.reasons[concept][g] if g < len(results.groups) else ""
    note = why or f"{positives} of {rows} positive"
    return _group_value(results, g, results.shared(concept, g, g), note)


def _rows(results: ConceptResults, members: Integers) -> int:
    return int(results.groups.counts[members].sum())


def _group_value(results: ConceptResults, g: int, concepts: Booleans, note: str) -> GroupValue:
    """Return the mean over some concepts of a group, or all others of one, with its interval."""
    value = float(results.observed[concepts, g].mean()) if concepts.any() else math.nan
    groups, boot = results.groups, None
    if results.boot is not None and concepts.any():
        boot = results.boot[:, concepts, g].mean(axis=1)
    ends = ends_of(None if math.isnan(value) else boot)(results.level)
    name, levels = (groups.names[g], groups.levels[g]) if g < len(groups) else (OTHERS, ())
    return GroupValue(name, levels, _rows(results, results.members(g)), value, *ends, note)


HALL_RULE = "[Hall]'s protocol has its own rule: the interval against 0; see `low` and `high`"


def concept_disparity(  # noqa: PLR0913 - the choices of the assessment, all with defaults
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    metric: Metric = "average_precision",
    prevalence: Prevalence = "weighted",
    prevalence_ratio: float = 5,
    min_positives: int = 50,
    replicates: int = 250,
    validation: float = 0.2,
    incomplete: Literal["group", "concept"] = "group",
    unlabelled: Literal["keep", "leave out"] = "keep",
    concepts: Sequence[str] | None = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in the mean over concepts of a metric.

    Parameters
    ----------
    scores : array-like, shape (n, concepts) or (n,)
        Scores of a model, larger for present.
    labels : array-like of 0 and 1, same shape
        Whether the image shows the concept.
    groups : array-like (n,), mapping of attribute to labels, or Groups
        An image of several groups has one row for each, with its name in `units`.
    metric : str
        average_precision, auroc, true_positive_rate, false_positive_rate, precision or f1. All
        but the first two use one threshold per concept: the one of largest F1 on the validation
        rows of all groups, held fixed.
    prevalence : "weighted", "hall" or "observed"
        "weighted" weighs negatives so that all concepts and groups have `prevalence_ratio`
        negatives per positive; "hall" draws such samples, and has its own rule of significance;
        "observed" leaves prevalence as it is, so that average precision, precision and F1
        differ where prevalence does.
    prevalence_ratio : float
        Negatives per positive.
    min_positives : int
        A group with fewer positives leaves the concept, and is counted.
    replicates : int
        Bootstrap replicates: of images, or of [Hall]'s samples.
    validation : float
        Share of rows, of each group and label, that thresholds are tuned on and not measured on.
    incomplete : "group" or "concept"
        What leaves where a group has too few positives: the group, or the concept as in [Hall].
    unlabelled : "keep" or "leave out"
        Rows without any positive label.
    concepts : sequence of str, optional
        Names; the columns' numbers by default.
    units : array-like, shape (n,), optional
        Names of what repeats (images, persons): resampled as a whole.
    resampling : Bootstrap, Permutation or None
        Permutations, level and resolution; replicates are those above. None: the value alone.
    rng : int or Generator
        Seed. Models and versions measured with one seed on the same rows share their draws.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: folded percentiles, simultaneous over pairs of
        groups. Chance of the aggregate: replicates centred at no difference; of each concept:
        groups permuted, within each true class under fixed prevalence. `.by` has the aggregate
        by pair of groups ("concept_difference"), each concept by the metric's name with the
        values and prevalence of all groups, and each concept's differences by pair. With three
        groups or more, then each group minus the mean of all others, weighted by their positives,
        over concepts and in each ("average_precision_against_rest").

    Raises
    ------
    InputError
        When shapes differ, a score is not finite, a label not 0 or 1, or a choice is unknown.

    References
    ----------
    Hall et al. 2023.
    """
    choices = Choices(
        metric, prevalence, prevalence_ratio, min_positives, replicates, validation, incomplete
    )
    results = concept_metrics(
        scores, labels, groups, [metric], choices, unlabelled=unlabelled, concepts=concepts,
        units=units, resampling=resampling, rng=rng,
    )  # fmt: skip
    return summarise(results[metric])


def concept_metrics(  # noqa: PLR0913 - as in concept_disparity
    scores: Any,
    labels: Any,
    groups: Any,
    metrics: Sequence[Metric],
    choices: Choices | None = None,
    *,
    unlabelled: Literal["keep", "leave out"] = "keep",
    concepts: Sequence[str] | None = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> dict[Metric, ConceptResults]:
    """Measure concepts by several metrics in one pass, at hardly more than the cost of one.

    Parameters
    ----------
    metrics : sequence of str
        As `metric` of `concept_disparity`; that of `choices` does not count.
    choices : Choices, optional
        Everything but the metric.

    The others, and errors, are those of `concept_disparity`.

    Returns
    -------
    dict of metric to ConceptResults
        In the order of `metrics`, for `design_choices`.
    """
    choices = choices or Choices()
    for metric in metrics:
        replace(choices, metric=metric)
    if not metrics:
        raise InputError("metrics: none; expected at least one")
    data = read_concepts(
        scores, labels, groups, concepts=concepts, units=units, unlabelled=unlabelled
    )
    return ConceptRun(data, choices, metrics, resampling, rng).results(resampling)


def summarise(results: ConceptResults) -> Estimate:
    """Return the estimate that `concept_disparity` gives, from measured concepts."""
    value, held = _largest(results, None)
    choices, boot = results.choices, results.boot
    parts = [*_pairs(results, None)]
    for index in range(len(results.names)):
        parts += [_concept(results, index), *_pairs(results, index)]
    if (rest := results.against_rest) is not None:
        for concept in (None, *range(len(results.names))):
            parts += _pairs(rest, concept)
    missing = np.isnan(results.observed[:, results.groups.usable])
    empty = missing.all(axis=1)
    left_out = {
        "concepts without two groups": int(empty.sum()),
        "groups left out of a concept": int(missing[~empty].sum()),
    }
    tuned = {} if choices.ranked else {
        "validation": choices.validation,
        "thresholds": dict(zip(results.names, results.thresholds.tolist(), strict=True)),
    }  # fmt: skip
    observed = choices.prevalence == "observed"
    unit = "samples of fixed prevalence" if results.hall else f"{results.unit}s"
    simultaneous = ", simultaneous over pairs of groups" if len(results.pairs) > 1 else ""
    return make_estimate(
        "concept_disparity",
        value,
        sizes(results.groups),
        "none: use Bootstrap()"
        if boot is None
        else f"{replicates_text(boot, unit)}; folded{simultaneous}"
        + ("; thresholds held fixed" if tuned else ""),
        params={
            "metric": choices.metric,
            "prevalence": choices.prevalence,
            "min_positives": choices.min_positives,
            "replicates": choices.replicates,
            "incomplete": choices.incomplete,
            "concepts": len(results.names),
            **({} if observed else {"prevalence_ratio": choices.prevalence_ratio}),
            **tuned,
        },
        **held.fields(HALL_RULE if results.hall else "its chance level rests on replicates"),
        by=parts_to_table(parts),
        excluded=with_groups(results.groups, results.excluded) | left_out,
        unit=results.unit,
        reason="no concept with two groups" if math.isnan(value) else "",
        ends=no_ends if math.isnan(value) else _pairwise_ends(results.replicates(None)),
    )


def concept_hit_rate(
    scores: Any,
    labels: Any,
    groups: Any,
    *,
    k: int = 5,
    others: Iterable[Any] = (),
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of images of which any true concept is among the k largest scores.

    Parameters
    ----------
    scores, labels, groups, units, resampling, rng
        As in `concept_disparity`. Images without a label are left out and counted.
    k : int
        Less than the number of classes. Equal scores go to the first columns.
    others : iterable of array-like, each of shape (n,)
        Scores of the model's classes beside the concepts, which take places among the k as well.

    Returns
    -------
    Estimate
        As `equipoise.metrics.counts.accuracy.hit_rate`.

    Raises
    ------
    InputError
        As `concept_disparity`, or when k does not fit.
    """
    data = read_concepts(scores, labels, groups)
    many = len(data.names)
    rest = [*others]
    if not 1 <= k < many + len(rest):
        raise InputError(
            f"k={k}: expected 1 to {many + len(rest) - 1}, less than the number of classes: among "
            "as many, every image is a hit"
        )
    data.block(0, many)  # checked
    values, shown = data.scores, data.labels.astype(np.bool_)
    # A hit has fewer than k classes above its best true one; equal scores go to first columns.
    best = np.where(shown, values, -np.inf).max(axis=1, initial=-np.inf)
    first = np.argmax(shown & (values == best[:, None]), axis=1)
    above = (values > best[:, None]).sum(axis=1)
    above += ((values == best[:, None]) & (np.arange(many) < first[:, None])).sum(axis=1)
    for column in rest:
        other = np.asarray(column)
        if other.shape != best.shape or not np.isfinite(other[data.rows]).all():
            raise InputError(f"others: expected {len(best)} finite scores for each class")
        above += other > best
    counts = count(
        np.where(shown.any(axis=1), "hit", ""),
        np.where(above < k, "hit", "miss"),
        groups,
        units=units,
    )
    return measure(counts, [HitRate(k)], resampling, rng)[0]


_disparity = partial(
    MetricSpec,
    kinds=("concepts",),
    rate=True,
    harm="lower",
    threshold=0.05,
    threshold_reason=POINTS,
    chance="above 0 for the gap between groups",
    interval=(
        "percentile bootstrap over images or units, folded at 0, simultaneous over pairs of groups"
    ),
    null=(
        "groups are exchangeable within each true class; over all rows where prevalence is not "
        "fixed"
    ),
    reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
)
register(
    _disparity(
        name="concept_disparity",
        title="Disparity over concepts",
        rate=False,
        harm="higher",
        definition=(
            "Largest difference over pairs of groups in the mean over concepts of a one-vs-all "
            "metric, over the concepts that both groups have."
        ),
        direction="Higher: the classifier works better for one group than for another.",
        null="no difference between groups: centred replicates (asymptotic)",
    ),
    _disparity(
        name="concept_difference",
        title="Difference of two groups",
        range="[−1, 1]",
        rate=False,
        harm="either",
        definition=(
            "Metric of the first group minus that of the second, for a concept or the mean over "
            "concepts."
        ),
        direction="Either: positive means the first group has the larger value.",
        chance="about 0",
        interval=(
            "percentile bootstrap over images or units; by [Hall]'s protocol, significant if it "
            "excludes 0"
        ),
        null="that of the disparity, two-sided",
    ),
    _disparity(
        name="average_precision",
        rest="average_precision",
        title="Average precision",
        symbol="AP",
        definition=(
            "Sum over thresholds of precision times the gain in recall, tied scores grouped."
        ),
        direction="Lower: the group's images are ranked worse.",
    ),
    _disparity(
        name="auroc",
        rest="auroc",
        title="AUROC",
        definition=(
            "Probability that a positive scores above a negative, ties one half; independent of "
            "prevalence."
        ),
        direction="Lower: the group's images are ranked worse.",
        null="groups are exchangeable within each true class",
    ),
    _disparity(
        name="f1",
        rest="f1",
        title="F1",
        definition="2 TP / (2 TP + FP + FN) at the threshold of largest F1 on validation rows.",
        direction="Lower: more wrong decisions for each right one.",
    ),
)
