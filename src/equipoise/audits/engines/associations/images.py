"""Images of groups: trend, gender difference, and labels predicted for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from equipoise.audits.engines.associations.sets import related
from equipoise.audits.engines.associations.spaces import (
    Question,
    Result,
    Row,
    Side,
    Space,
    crossed,
    extremes,
    finding_of,
)
from equipoise.audits.findings import Place, without_verdict
from equipoise.core import (
    DataError,
    Estimate,
    Excluded,
    Family,
    Floats,
    GroupValue,
    Objects,
    Part,
)
from equipoise.data.problems import listed, show
from equipoise.metrics.values.trends import ImageSimilarities, gender_difference, trend
from equipoise.metrics.vectors.predicted_labels import label_concentration, predicted_label_weat
from equipoise.metrics.vectors.sets import similarities as inner_products

_ONE_REGION = "all"
_BLOCK = 4096
# Similarities that differ by rounding only are ties, which go to the label named first.
_DECIMALS = 12
_CLOSER = {"trend": "closer to positive words", "gender_difference": "closer to all words"}


def measure_regions(question: Question) -> Iterator[Result]:
    """Measure trend or gender difference by region, and its relation to external figures."""
    options, place = question.options, question.place()
    images, up, down = _similarities(question)
    tested = options.metric == "gender_difference"
    metric = gender_difference if tested else trend
    estimate = metric(images, up, down, **question.drawn)
    yield from _by_region(question, estimate)
    yield from _word_rows(place, images, up)
    if options.outside is None:
        return
    by_subject: dict[str, dict[str, Part | GroupValue]] = {}
    for part in estimate.parts:
        for each in [part] if tested else part.by_group:
            name = "gender_difference" if isinstance(each, Part) else f"trend, {each.group}"
            by_subject.setdefault(name, {})[part.subject] = each
    for name, own in by_subject.items():
        values = {region: each.value for region, each in own.items()}
        ends = {region: (each.low, each.high) for region, each in own.items()}
        yield from related(question, place, values, name, ends)


def _similarities(question: Question) -> tuple[ImageSimilarities, list[str], list[str]]:
    """Return similarities of images to words, and the positive and negative words."""
    options, space, table = question.options, question.space, question.table
    images, rows = space.images(table), space.usable[table]
    names = filter(None, (options.positive, options.negative))
    words = [space.only_usable(space.chosen(name, "text")) for name in names]
    columns = space.data.items[table].columns
    up, down = ([*side.ids] for side in words)
    if both := {*up} & {*down}:
        raise DataError(
            f"{min(both)!r} is in the set {words[0].name!r} and in {words[1].name!r}",
            expected="each word among the positive or among the negative ones",
        )
    similarities = ImageSimilarities(
        np.concatenate([_cosines(space, images, side) for side in words], axis=1),
        [*up, *down],
        columns[options.groups or ""][rows],
        None if options.regions is None else columns[options.regions][rows],
        images.units if images.clustered else None,
    )
    return similarities, up, down


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


def _by_region(question: Question, estimate: Estimate) -> Iterator[Result]:
    """Yield the number over all regions, and that of each where there are several."""
    table, place = question.table, question.place()
    lost = int((~question.space.usable[table]).sum())
    excluded = (Excluded(f"{table}: no usable vector", lost),) if lost else ()
    several, tested = question.options.regions is not None, estimate.metric == "gender_difference"
    family = Family.LEAF if tested else Family.DESCRIPTIVE
    closer = _CLOSER[estimate.metric]
    if several:
        averages = _averages(estimate)
        yield finding_of(
            estimate, place, Family.COMPOSITE if tested else family, by_group=averages,
            direction=extremes(f"{closer} over all regions", averages), excluded=excluded,
        )  # fmt: skip
    for part in estimate.parts:
        described = finding_of(
            estimate, place, family, part, subject=part.subject if several else "",
            direction=extremes(closer, part.by_group), by_group=part.by_group, excluded=excluded,
        )  # fmt: skip
        yield described if tested else without_verdict(described, estimate.no_chance)


def _averages(estimate: Estimate) -> tuple[GroupValue, ...]:
    """Return each group's mean over the regions that have it."""
    by_group: dict[str, list[GroupValue]] = {}
    for each in (group for part in estimate.parts for group in part.by_group):
        by_group.setdefault(each.group, []).append(each)
    averages = []
    for group, own in by_group.items():
        mean = _mean([each.value for each in own if not math.isnan(each.value)])
        n = sum(each.n for each in own)
        averages.append(GroupValue(group, (group,), n, mean, math.nan, math.nan))
    return tuple(averages)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _word_rows(place: Place, images: ImageSimilarities, up: Sequence[str]) -> Iterator[Row]:
    """Yield the mean similarity of each region and group to each word."""
    groups = np.asarray(images.groups)
    regions = np.asarray([_ONE_REGION] * len(groups) if images.regions is None else images.regions)
    cells = {cell for cell in zip(regions, groups, strict=True) if None not in cell}
    for region, group in sorted(cells):
        scores = np.asarray(images.scores)[(regions == region) & (groups == group)]
        means = np.sort(scores, axis=0).mean(axis=0)
        for word, mean in zip(images.words, means.tolist(), strict=True):
            yield Row("words", place, {
                "region": region, "group": group, "word": word, "similarity": mean,
                "kind": "positive" if word in up else "negative", "n": len(scores),
            })  # fmt: skip


def measure_label_weat(question: Question) -> Iterator[Result]:
    """Measure WEAT of the labels that are predicted most for each of two groups."""
    options, space, place = question.options, question.space, question.place()
    labels, groups, units, vocabulary = _predicted(question)
    first, second = _two_groups(question, groups)
    sides = [space.chosen(name, "text") for name in options.attributes]
    estimate = predicted_label_weat(
        labels,
        groups,
        vocabulary.ids,
        vocabulary.things,
        *(side.things for side in sides),
        first=first,
        alternative=options.alternative,
        ddof=options.ddof,
        similarity=space.similarity,
        units=units,
        **question.drawn,
    )
    own = {first: "in x", second: "in y"}
    means = [
        _mean([part.value for part in estimate.parts if part.shows.endswith(side)])
        for side in own.values()
    ]
    names = [f"labels of {group}" for group in own]
    yield finding_of(
        estimate, place, Family.COMPOSITE, subject=" against ".join(options.attributes),
        direction=crossed(names, means, question.pair),
    )  # fmt: skip
    yield from _label_rows(question, labels, groups)
    for part in estimate.parts:
        side = first if part.shows.endswith("in x") else second
        yield Row("label_scores", place, {**vars(part), "label": part.subject, "set": side})


def measure_concentration(question: Question) -> Iterator[Result]:
    """Measure how much the labels of each group concentrate on a few."""
    options, place = question.options, question.place()
    labels, groups, units, vocabulary = _predicted(question)
    estimate = label_concentration(
        labels,
        groups,
        vocabulary=vocabulary.ids if options.whole_vocabulary else None,
        k=options.k,
        units=units,
        **question.drawn,
    )
    share, *shapes = estimate.parts
    text = extremes(f"labels pile up on {options.k}", share.by_group)
    yield finding_of(estimate, place, Family.COMPOSITE, direction=text, by_group=share.by_group)
    for part in shapes:
        described = finding_of(estimate, place, Family.DESCRIPTIVE, part, by_group=part.by_group)
        yield without_verdict(described, "a shape of counts, without a chance level")
    yield from _label_rows(question, labels, groups)


def _predicted(question: Question) -> tuple[Objects, Objects, tuple[str, ...] | None, Side]:
    """Return the labels, groups and units of images, and the vocabulary.

    A label is the text that an image is most similar to.
    """
    options, space, table = question.options, question.space, question.table
    vocabulary = space.only_usable(space.chosen(options.labels[0], "text"))
    images = space.images(table)
    scores = np.round(_cosines(space, images, vocabulary), _DECIMALS)
    labels = np.array(vocabulary.ids, dtype=object)[scores.argmax(axis=1)]
    groups = space.data.items[table].columns[options.groups or ""][space.usable[table]]
    return labels, groups, images.units if images.clustered else None, vocabulary


def _two_groups(question: Question, groups: Objects) -> list[str]:
    """Return the group whose labels are X, and the other; refuse other than two groups."""
    names, first = sorted({*groups} - {None}), question.options.first
    if len(names) != 2 or first not in (None, *names):
        wanted = "" if first is None else f", one of them {show(first)}"
        raise DataError(
            f"the column has {listed(names)}",
            file=question.space.data.items[question.table].name,
            column=question.options.groups,
            expected=f"two groups{wanted}",
            fix="name a column of two values, with other values as `missing:`",
        )
    return names[::-1] if first == names[1] else names


def _label_rows(question: Question, labels: Objects, groups: Objects) -> Iterator[Row | str]:
    """Yield how often each group has each label, and the note on images without one."""
    pairs = zip(groups.tolist(), labels.tolist(), strict=True)
    counts = Counter(pair for pair in pairs if None not in pair)
    totals = Counter(group for group, _ in counts.elements())
    for (group, label), n in sorted(counts.items()):
        share = n / totals[group]
        yield Row(
            "labels", question.place(), {"group": group, "label": label, "count": n, "share": share}
        )
    if unused := len(question.space.data.items[question.table]) - len(labels):
        yield f"{question.model}: {unused} items of {question.table} have no vector and no label."
