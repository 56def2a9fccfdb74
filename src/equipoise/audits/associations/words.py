"""Trend and gender difference: similarities of groups' images to words, by region."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.associations.cases import cases_of
from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.associations.leaning import extremes
from equipoise.audits.associations.outside import related
from equipoise.audits.associations.pieces import (
    Piece,
    Question,
    Row,
    Told,
    at,
    drafted,
    part_draft,
)
from equipoise.audits.associations.spaces import Side, Space
from equipoise.audits.findings import Place, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.metrics.associations.cells import ImageSimilarities
from equipoise.metrics.associations.members import similarities as inner_products
from equipoise.metrics.associations.words import gender_difference, trend

Floats = npt.NDArray[np.float64]

_ONE_REGION = "all"
_BLOCK = 4096


def measure_trend(question: Question) -> Iterator[Piece]:
    """Measure the trend of each region and group, and its relation to figures from outside."""
    for space in question.spaces:
        for _ in cases_of(question.asked, space):
            given, words = similarities(question, space)
            estimate = trend(given, *words, **question.drawn(space))
            place = question.place(space)
            yield from _found(question, space, place, estimate, Family.DESCRIPTIVE)
            yield from _words(place, given, words)
            yield from _related_by_group(question, place, estimate)


def measure_gender_difference(question: Question) -> Iterator[Piece]:
    """Measure how differently groups are placed to all words, by region."""
    for space in question.spaces:
        for _ in cases_of(question.asked, space):
            given, words = similarities(question, space)
            estimate = gender_difference(given, *words, **question.drawn(space))
            place = question.place(space)
            yield from _found(question, space, place, estimate, Family.LEAF)
            yield from _words(place, given, words)
            if question.asked.outside is not None:
                values = {part.subject: part.value for part in estimate.parts}
                yield from related(question, place, values, "gender_difference", _ends(estimate))


def words_of(asked: MeasureConfig, space: Space) -> tuple[Side, Side]:
    """Return the positive and the negative words that a model knows.

    Raises
    ------
    DataError
        When a word is in both sets.
    """
    up, down = (
        space.usable(space.chosen(name or "", "text")) for name in (asked.positive, asked.negative)
    )
    if both := sorted({*up.ids} & {*down.ids}):
        raise DataError(
            f"{both[0]!r} is in the set {up.name!r} and in {down.name!r}",
            expected="each word among the positive or among the negative ones",
            fix="take it out of one of them",
        )
    return up, down


def similarities(
    question: Question, space: Space
) -> tuple[ImageSimilarities, tuple[list[str], list[str]]]:
    """Return similarities of images to words, and the positive and negative words.

    Raises
    ------
    DataError
        When a word is in both sets.
    """
    asked = question.asked
    table = asked.images or ""
    images = space.images(table)
    up, down = words_of(asked, space)
    scores = np.concatenate([cosines(space, images, words) for words in (up, down)], axis=1)
    place = space.places(table)
    columns = space.data.items[table].columns
    regions = None if asked.regions is None else columns[asked.regions][place]
    given = ImageSimilarities(
        scores,
        [*up.ids, *down.ids],
        columns[asked.groups or ""][place],
        regions,
        images.units if images.clustered else None,
    )
    return given, ([*up.ids], [*down.ids])


def cosines(space: Space, rows: Side, columns: Side) -> Floats:
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


def _found(
    question: Question, space: Space, place: Place, estimate: Estimate, family: Family
) -> Iterator[Piece]:
    """Yield the number over all regions, and that of each where there are several."""
    lost = Excluded(
        f"{question.asked.images}: no usable vector", space.unusable(question.asked.images or "")
    )
    told = Told(excluded=(lost,) if lost.count else ())
    several = question.asked.regions is not None
    if several:
        told = Told("", _by_sign(estimate), {}, _averages(estimate), told.excluded)
        composite = Family.COMPOSITE if family is Family.LEAF else family
        yield drafted(estimate, place, composite, told)
    for part in estimate.parts:
        subject = part.subject if several else ""
        what = "closer to positive words" if part.metric == "trend" else "closer to all words"
        one = Told(subject, extremes(what, part.by_group), {}, part.by_group, told.excluded)
        draft = part_draft(estimate, part, place, family, one)
        if family is Family.DESCRIPTIVE:
            draft = without_verdict(draft, estimate.no_chance)
        yield draft
        yield from _region_rows(place, part.metric, part.subject, part.by_group)


def _by_sign(estimate: Estimate) -> str:
    what = "closer to positive words" if estimate.metric == "trend" else "closer to all words"
    return extremes(f"{what} over all regions", _averages(estimate))


def _averages(estimate: Estimate) -> tuple[GroupValue, ...]:
    """Return each group's mean over the regions that have it."""
    by_group: dict[str, list[GroupValue]] = {}
    for part in estimate.parts:
        for one in part.by_group:
            by_group.setdefault(one.group, []).append(one)
    found = []
    for group, values in by_group.items():
        known = [one.value for one in values if not math.isnan(one.value)]
        mean = math.fsum(known) / len(known) if known else math.nan
        n = sum(one.n for one in values)
        found.append(GroupValue(group, (group,), n, mean, math.nan, math.nan))
    return tuple(found)


def _region_rows(
    place: Place, metric: str, region: str, by_group: tuple[GroupValue, ...]
) -> Iterator[Row]:
    for one in by_group:
        yield Row(
            "regions",
            {
                **at(place),
                "metric": metric, "region": region, "group": one.group, "n": one.n,
                "value": one.value, "low": one.low, "high": one.high,
            },
        )  # fmt: skip


def _words(
    place: Place,
    given: ImageSimilarities,
    words: tuple[list[str], list[str]],
) -> Iterator[Row]:
    """Yield the mean similarity of each region and group to each word."""
    scores = np.asarray(given.scores)
    n = len(scores)
    regions = np.full(n, _ONE_REGION, dtype=object) if given.regions is None else given.regions
    cells: dict[tuple[str, str], list[int]] = {}
    for row, (region, group) in enumerate(zip(regions, given.groups, strict=True)):
        if region is not None and group is not None:
            cells.setdefault((region, group), []).append(row)
    for (region, group), rows in sorted(cells.items()):
        means = np.sort(scores[rows], axis=0).mean(axis=0)
        for word, mean in zip(given.words, means.tolist(), strict=True):
            yield Row(
                "words",
                {
                    **at(place),
                    "region": region, "group": group, "word": word,
                    "kind": "positive" if word in words[0] else "negative",
                    "similarity": mean, "n": len(rows),
                },
            )  # fmt: skip


def _related_by_group(question: Question, place: Place, estimate: Estimate) -> Iterator[Piece]:
    if question.asked.outside is None:
        return
    groups = [one.group for one in estimate.parts[0].by_group]
    for index, group in enumerate(groups):
        values = {part.subject: part.by_group[index].value for part in estimate.parts}
        ends = {
            part.subject: (part.by_group[index].low, part.by_group[index].high)
            for part in estimate.parts
        }
        yield from related(question, place, values, f"trend, {group}", ends)


def _ends(estimate: Estimate) -> Mapping[str, tuple[float, float]]:
    return {part.subject: (part.low, part.high) for part in estimate.parts}
