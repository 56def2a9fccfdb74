"""Images of groups: trend, gender difference, and labels predicted for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_associations import MeasureConfig
from equipoise.audits.engines.associations.cases import cases_of
from equipoise.audits.engines.associations.results import (
    Note,
    Question,
    Result,
    Row,
    crossed,
    extremes,
    finding_of,
    part_finding,
)
from equipoise.audits.engines.associations.scores import related
from equipoise.audits.engines.associations.spaces import Floats, Indices, Side, Space
from equipoise.audits.findings import Place, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.data.problems import listed
from equipoise.metrics.values.trends import ImageSimilarities, gender_difference, trend
from equipoise.metrics.vectors.predicted_labels import label_concentration, predicted_label_weat
from equipoise.metrics.vectors.sets import exact_mean
from equipoise.metrics.vectors.sets import similarities as inner_products

Objects = npt.NDArray[np.object_]
Words = tuple[list[str], list[str]]

_ONE_REGION = "all"
_BLOCK = 4096
# Similarities that differ by rounding only are ties, which go to the label named first.
_DECIMALS = 12
_CLOSER = {
    "trend": "closer to positive words",
    "gender_difference": "closer to all words",
}


def measure_trend(question: Question) -> Iterator[Result]:
    """Measure the trend of each region and group, and its relation to external figures."""
    for _ in cases_of(question.options, question.space):
        images, words = _similarities(question)
        estimate = trend(images, *words, **question.drawn)
        yield from _by_region(question, estimate, Family.DESCRIPTIVE)
        yield from _word_rows(question.place(), images, words)
        groups = estimate.parts[0].by_group if question.options.outside is not None else ()
        for index, group in enumerate(groups):
            own = {part.subject: part.by_group[index] for part in estimate.parts}
            values = {region: each.value for region, each in own.items()}
            ends = {region: (each.low, each.high) for region, each in own.items()}
            yield from related(question, question.place(), values, f"trend, {group.group}", ends)


def measure_gender_difference(question: Question) -> Iterator[Result]:
    """Measure how differently groups are placed to all words, by region."""
    for _ in cases_of(question.options, question.space):
        images, words = _similarities(question)
        estimate = gender_difference(images, *words, **question.drawn)
        yield from _by_region(question, estimate, Family.LEAF)
        yield from _word_rows(question.place(), images, words)
        if question.options.outside is not None:
            values = {part.subject: part.value for part in estimate.parts}
            ends = {part.subject: (part.low, part.high) for part in estimate.parts}
            yield from related(question, question.place(), values, "gender_difference", ends)


def words_of(options: MeasureConfig, space: Space) -> tuple[Side, Side]:
    """Return the positive and the negative words of a model; refuse a word that is both."""
    up, down = (
        space.usable(space.chosen(name or "", "text"))
        for name in (options.positive, options.negative)
    )
    if both := sorted({*up.ids} & {*down.ids}):
        raise DataError(
            f"{both[0]!r} is in the set {up.name!r} and in {down.name!r}",
            expected="each word among the positive or among the negative ones",
            fix="take it out of one of them",
        )
    return up, down


def _similarities(question: Question) -> tuple[ImageSimilarities, Words]:
    """Return similarities of images to words, and the positive and negative words."""
    options, space = question.options, question.space
    table = options.images or ""
    images, rows = space.images(table), space.places(table)
    up, down = words_of(options, space)
    columns = space.data.items[table].columns
    similarities = ImageSimilarities(
        np.concatenate([_cosines(space, images, words) for words in (up, down)], axis=1),
        [*up.ids, *down.ids],
        columns[options.groups or ""][rows],
        None if options.regions is None else columns[options.regions][rows],
        images.units if images.clustered else None,
    )
    return similarities, ([*up.ids], [*down.ids])


def _cosines(space: Space, rows: Side, columns: Side) -> Floats:
    """Return similarities (rows, columns): cosines, or the model's scores."""
    if space.similarity is not None:
        return np.asarray(space.similarity(rows.things, columns.things), dtype=np.float64)
    right = _unit(columns.things)
    # Not a matrix product, whose last bits may depend on threads.
    blocks = [
        inner_products(_unit(rows.things[start : start + _BLOCK]), right)
        for start in range(0, len(rows), _BLOCK)
    ]
    return np.concatenate(blocks)


def _unit(vectors: Any) -> Floats:
    whole = np.asarray(vectors, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = whole / np.abs(whole).max(axis=1, keepdims=True)
        return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))


def _by_region(question: Question, estimate: Estimate, family: Family) -> Iterator[Result]:
    """Yield the number over all regions, and that of each where there are several."""
    table, place = question.options.images or "", question.place()
    lost = question.space.unusable(table)
    excluded = (Excluded(f"{table}: no usable vector", lost),) if lost else ()
    several = question.options.regions is not None
    if several:
        averages = _averages(estimate)
        yield finding_of(
            estimate, place, Family.COMPOSITE if family is Family.LEAF else family,
            direction=extremes(f"{_CLOSER[estimate.metric]} over all regions", averages),
            by_group=averages, excluded=excluded,
        )  # fmt: skip
    for part in estimate.parts:
        described = part_finding(
            estimate, part, place, family, subject=part.subject if several else "",
            direction=extremes(_CLOSER[part.metric], part.by_group), by_group=part.by_group,
            excluded=excluded,
        )  # fmt: skip
        tested = family is not Family.DESCRIPTIVE
        yield described if tested else without_verdict(described, estimate.no_chance)
        for each in part.by_group:
            yield Row.of(
                "regions", place, metric=part.metric, region=part.subject, group=each.group,
                n=each.n, value=each.value, low=each.low, high=each.high,
            )  # fmt: skip


def _averages(estimate: Estimate) -> tuple[GroupValue, ...]:
    """Return each group's mean over the regions that have it."""
    by_group: dict[str, list[GroupValue]] = {}
    for part in estimate.parts:
        for each in part.by_group:
            by_group.setdefault(each.group, []).append(each)
    averages = []
    for group, values in by_group.items():
        known = [each.value for each in values if not math.isnan(each.value)]
        mean = math.fsum(known) / len(known) if known else math.nan
        n = sum(each.n for each in values)
        averages.append(GroupValue(group, (group,), n, mean, math.nan, math.nan))
    return tuple(averages)


def _word_rows(place: Place, images: ImageSimilarities, words: Words) -> Iterator[Row]:
    """Yield the mean similarity of each region and group to each word."""
    scores = np.asarray(images.scores)
    whole = np.full(len(scores), _ONE_REGION, dtype=object)
    cells: dict[tuple[str, str], list[int]] = {}
    regions = whole if images.regions is None else images.regions
    for row, (region, group) in enumerate(zip(regions, images.groups, strict=True)):
        if region is not None and group is not None:
            cells.setdefault((region, group), []).append(row)
    for (region, group), rows in sorted(cells.items()):
        means = np.sort(scores[rows], axis=0).mean(axis=0)
        for word, mean in zip(images.words, means.tolist(), strict=True):
            yield Row.of(
                "words", place, region=region, group=group, word=word,
                kind="positive" if word in words[0] else "negative", similarity=mean, n=len(rows),
            )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Predicted:
    """Labels of images, with their groups.

    Attributes
    ----------
    labels, groups : ndarray of str or None, shape (n,)
    units : tuple of str or None
    vocabulary : Side or None
        The labels there are.
    unused : int
        Images without a usable vector.
    """

    labels: Objects = field(repr=False)
    groups: Objects = field(repr=False)
    units: tuple[str, ...] | None = field(repr=False)
    vocabulary: Side | None
    unused: int


def measure_label_weat(question: Question) -> Iterator[Result]:
    """Measure WEAT of the labels that are predicted most for each of two groups."""
    options, space = question.options, question.space
    for _ in cases_of(options, space):
        predicted = _predicted(question)
        first, second = two_groups(options, space)
        assert predicted.vocabulary is not None  # noqa: S101 - the metric requires labels
        a, b = (space.chosen(name, "text") for name in options.attributes)
        estimate = predicted_label_weat(
            predicted.labels,
            predicted.groups,
            predicted.vocabulary.ids,
            predicted.vocabulary.things,
            a.things,
            b.things,
            first=first,
            alternative=options.alternative or "two-sided",
            ddof=options.ddof,
            similarity=space.similarity,
            units=predicted.units,
            **question.drawn,
        )
        names = f"labels of {first}", f"those of {second}"
        yield finding_of(
            estimate, question.place(), Family.COMPOSITE,
            subject=" against ".join(options.attributes),
            direction=crossed(names, _means(estimate), question.pair, plural=True),
        )  # fmt: skip
        yield from _label_rows(question, predicted)
        for part in estimate.parts:
            yield Row.of(
                "label_scores", question.place(), label=part.subject, value=part.value,
                set=first if part.shows.endswith("in x") else second,
            )  # fmt: skip


def _means(estimate: Estimate) -> tuple[float, float]:
    """Return the mean association score of the labels of each group; NaN where it has none."""
    scores = [
        [part.value for part in estimate.parts if part.shows.endswith(f"in {side}")]
        for side in ("x", "y")
    ]
    first, second = (math.fsum(own) / len(own) if own else math.nan for own in scores)
    return first, second


def measure_concentration(question: Question) -> Iterator[Result]:
    """Measure how much the labels of each group concentrate on a few."""
    options, place = question.options, question.place()
    for _ in cases_of(options, question.space):
        predicted = _predicted(question)
        vocabulary = predicted.vocabulary if options.whole_vocabulary else None
        estimate = label_concentration(
            predicted.labels,
            predicted.groups,
            vocabulary=None if vocabulary is None else vocabulary.ids,
            k=options.k,
            units=predicted.units,
            **question.drawn,
        )
        share, *shapes = estimate.parts
        text = extremes(f"labels pile up on {options.k}", share.by_group)
        yield finding_of(estimate, place, Family.COMPOSITE, direction=text, by_group=share.by_group)
        for part in shapes:
            described = part_finding(
                estimate, part, place, Family.DESCRIPTIVE, by_group=part.by_group
            )
            yield without_verdict(described, "a shape of counts, without a chance level")
        yield from _label_rows(question, predicted)


def _predicted(question: Question) -> Predicted:
    """Return the label of each image: its column's, or the text that it is most similar to."""
    options, space = question.options, question.space
    table = options.images or ""
    items = space.data.items[table]
    vocabulary = _vocabulary(question) if options.labels else None
    rows = _labelled(options, space)
    if options.label_column is not None:
        labels = items.columns[options.label_column]
        _check_labels(items.name, options.label_column, labels, vocabulary)
        units = space.units(table, rows) if table in space.data.units else None
    else:
        images = space.images(table)
        assert vocabulary is not None  # noqa: S101 - the config requires labels or a column
        scores = np.round(_cosines(space, images, vocabulary), _DECIMALS)
        labels = np.array(vocabulary.ids, dtype=object)[scores.argmax(axis=1)]
        units = images.units if images.clustered else None
    groups = items.columns[options.groups or ""][rows]
    return Predicted(labels, groups, units, vocabulary, len(items) - len(rows))


def _labelled(options: MeasureConfig, space: Space) -> Indices:
    """Return the images that have a label: all by a column, else those with a usable vector."""
    table = options.images or ""
    if options.label_column is not None:
        return np.arange(len(space.data.items[table]))
    return space.places(table)


def _vocabulary(question: Question) -> Side:
    """Return the labels: members of one set, or the mean of each of several sets."""
    space = question.space
    sides = [space.usable(space.chosen(name, "text")) for name in question.options.labels]
    if len(sides) == 1:
        return sides[0]
    if space.similarity is not None:
        raise DataError(
            f"{space.model}: scores of pairs cannot be averaged to labels",
            expected="one set in labels, whose members are the labels",
            fix="name one set",
        )
    things = [np.asarray(side.things, dtype=np.float64) for side in sides]
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in things]
    names = tuple(side.name for side in sides)
    return Side("labels", np.stack([exact_mean(each) for each in unit]), names, names, 0)


def _check_labels(file: str, column: str, labels: Objects, vocabulary: Side | None) -> None:
    known = None if vocabulary is None else vocabulary.ids
    strange = sorted({*labels} - {None, *known}) if known is not None else []
    if known is not None and strange:
        raise DataError(
            f"{strange[0]!r} is not among the labels of the question",
            file=file,
            column=column,
            expected=f"some of {listed(known)}",
            fix="add it to the set of labels, or map it to one of them",
        )


def two_groups(options: MeasureConfig, space: Space) -> tuple[str, str]:
    """Return the group whose labels are X, and the other; refuse other than two groups."""
    items = space.data.items[options.images or ""]
    groups = items.columns[options.groups or ""][_labelled(options, space)]
    names = sorted({each for each in groups if each is not None})
    if len(names) != 2:
        raise DataError(
            f"predicted_label_weat compares two groups; the column has {listed(names)}",
            file=items.name,
            column=options.groups,
            expected="two different values",
            fix="name a column of two values, with other values as `missing:`",
        )
    if options.first is not None and options.first not in names:
        raise DataError(
            f"first: no image has {options.first!r}",
            file=items.name,
            column=options.groups,
            expected=f"one of {listed(names)}",
        )
    return (names[1], names[0]) if options.first == names[1] else (names[0], names[1])


def _label_rows(question: Question, predicted: Predicted) -> Iterator[Row | Note]:
    """Yield how often each group has each label, and the note on images without one."""
    pairs = [*zip(predicted.groups.tolist(), predicted.labels.tolist(), strict=True)]
    counts = Counter(pair for pair in pairs if None not in pair)
    totals: Counter[str] = Counter()
    for (group, _), count in counts.items():
        totals[group] += count
    for (group, label), count in sorted(counts.items()):
        share = count / totals[group]
        yield Row.of("labels", question.place(), group=group, label=label, count=count, share=share)
    if predicted.unused:
        yield Note(
            f"{question.space.model}: {predicted.unused} items of {question.options.images} have "
            "no usable vector and so no predicted label."
        )
