"""Labels predicted for images of groups: WEAT of them, and how they pile up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from equipoise.audits.associations.cases import cases_of
from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.associations.leaning import crossed, extremes
from equipoise.audits.associations.pieces import (
    Note,
    Piece,
    Question,
    Row,
    Told,
    at,
    drafted,
    part_draft,
)
from equipoise.audits.associations.spaces import Side, Space
from equipoise.audits.associations.words import cosines
from equipoise.audits.findings import Place, without_verdict
from equipoise.core.errors import DataError
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.data.problems import listed
from equipoise.metrics.associations.labels import label_concentration, predicted_label_weat
from equipoise.metrics.associations.members import exact_mean

# Similarities that differ by rounding only are ties, which go to the label named first.
_DECIMALS = 12

Objects = npt.NDArray[np.object_]
Indices = npt.NDArray[np.int64]


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


def measure_label_weat(question: Question) -> Iterator[Piece]:
    """Measure WEAT of the labels that are predicted most for each of two groups."""
    asked = question.asked
    for space in question.spaces:
        for _ in cases_of(asked, space):
            found = predicted(question, space)
            first, second = two_groups(asked, space)
            assert found.vocabulary is not None  # noqa: S101 - the metric requires labels
            a, b = (space.chosen(name, "text") for name in asked.attributes)
            estimate = predicted_label_weat(
                found.labels,
                found.groups,
                found.vocabulary.ids,
                found.vocabulary.things,
                a.things,
                b.things,
                first=first,
                alternative=asked.alternative or "two-sided",
                ddof=asked.ddof,
                similarity=space.similarity,
                units=found.units,
                **question.drawn(space),
            )
            text = crossed(
                (f"labels of {first}", f"those of {second}"),
                _means(estimate),
                question.pair,
                plural=True,
            )
            place = question.place(space)
            told = Told(f"{asked.attributes[0]} against {asked.attributes[1]}", text)
            yield drafted(estimate, place, Family.COMPOSITE, told)
            yield from _label_rows(place, found)
            for part in estimate.parts:
                yield Row(
                    "label_scores",
                    {
                        **at(place), "label": part.subject, "value": part.value,
                        "set": first if part.shows.endswith("in x") else second,
                    },
                )  # fmt: skip
            yield from _unused(question, space, found)


def _means(estimate: Estimate) -> tuple[float, float]:
    """Return the mean association score of the labels of each group; NaN where it has none."""
    scores = [
        [part.value for part in estimate.parts if part.shows.endswith(f"in {side}")]
        for side in ("x", "y")
    ]
    first, second = (math.fsum(one) / len(one) if one else math.nan for one in scores)
    return first, second


def measure_concentration(question: Question) -> Iterator[Piece]:
    """Measure how far the labels of each group pile up on a few."""
    asked = question.asked
    for space in question.spaces:
        for _ in cases_of(asked, space):
            found = predicted(question, space)
            whole = asked.whole_vocabulary and found.vocabulary is not None
            estimate = label_concentration(
                found.labels,
                found.groups,
                vocabulary=found.vocabulary.ids if whole and found.vocabulary is not None else None,
                k=asked.k,
                units=found.units,
                **question.drawn(space),
            )
            place = question.place(space)
            share, *shapes = estimate.parts
            text = extremes(f"labels pile up on {asked.k}", share.by_group)
            told = Told("", text, {}, share.by_group)
            yield drafted(estimate, place, Family.COMPOSITE, told)
            for part in shapes:
                one = Told("", "", {}, part.by_group)
                draft = part_draft(estimate, part, place, Family.DESCRIPTIVE, one)
                yield without_verdict(draft, "a shape of counts, without a chance level")
            yield from _label_rows(place, found)
            yield from _unused(question, space, found)


def predicted(question: Question, space: Space) -> Predicted:
    """Return the label of each image: its column's, or the text that it is most similar to.

    Raises
    ------
    DataError
        When a label of the column is not among the labels of the question.
    """
    asked = question.asked
    table = asked.images or ""
    items = space.data.items[table]
    vocabulary = _vocabulary(question, space) if asked.labels else None
    groups = items.columns[asked.groups or ""]
    place = _rows(asked, space)
    if asked.label_column is not None:
        labels = items.columns[asked.label_column]
        _check_labels(items.name, asked.label_column, labels, vocabulary)
        units = space.units(table, place) if table in space.data.units else None
    else:
        images = space.images(table)
        assert vocabulary is not None  # noqa: S101 - one of both is required
        scores = np.round(cosines(space, images, vocabulary), _DECIMALS)
        labels = np.array(vocabulary.ids, dtype=object)[scores.argmax(axis=1)]
        units = images.units if images.clustered else None
    return Predicted(labels, groups[place], units, vocabulary, len(items) - len(place))


def _rows(asked: MeasureConfig, space: Space) -> Indices:
    """Return the images that have a label: all by a column, else those with a usable vector."""
    table = asked.images or ""
    if asked.label_column is not None:
        return np.arange(len(space.data.items[table]))
    return space.places(table)


def _vocabulary(question: Question, space: Space) -> Side:
    """Return the labels: members of one set, or the mean of each of several sets."""
    sides = [space.usable(space.chosen(name, "text")) for name in question.asked.labels]
    if len(sides) == 1:
        return sides[0]
    if space.similarity is not None:
        raise DataError(
            f"{space.model}: scores of pairs cannot be averaged to labels",
            expected="one set in labels, whose members are the labels",
            fix="name one set",
        )
    things = [np.asarray(side.things, dtype=np.float64) for side in sides]
    unit = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in things]
    means = np.stack([exact_mean(one) for one in unit])
    names = tuple(side.name for side in sides)
    return Side("labels", means, names, names, 0)


def _check_labels(file: str, column: str, labels: Objects, vocabulary: Side | None) -> None:
    if vocabulary is None:
        return
    strange = sorted({one for one in labels if one is not None} - {*vocabulary.ids})
    if strange:
        raise DataError(
            f"{strange[0]!r} is not among the labels of the question",
            file=file,
            column=column,
            expected=f"some of {listed(vocabulary.ids)}",
            fix="add it to the set of labels, or map it to one of them",
        )


def two_groups(asked: MeasureConfig, space: Space) -> tuple[str, str]:
    """Return the group whose labels are X, and the other.

    Raises
    ------
    DataError
        When images with a label are not of two groups, or none is of the group named first.
    """
    items = space.data.items[asked.images or ""]
    groups = items.columns[asked.groups or ""][_rows(asked, space)]
    names = sorted({one for one in groups if one is not None})
    if len(names) != 2:
        raise DataError(
            f"predicted_label_weat compares two groups; the column has {listed(names)}",
            file=items.name,
            column=asked.groups,
            expected="two different values",
            fix="name a column of two values, with other values as `missing:`",
        )
    if asked.first is not None and asked.first not in names:
        raise DataError(
            f"first: no image has {asked.first!r}",
            file=items.name,
            column=asked.groups,
            expected=f"one of {listed(names)}",
        )
    return (names[1], names[0]) if asked.first == names[1] else (names[0], names[1])


def _label_rows(place: Place, found: Predicted) -> Iterator[Row]:
    pairs = [
        (group, label)
        for group, label in zip(found.groups.tolist(), found.labels.tolist(), strict=True)
        if group is not None and label is not None
    ]
    totals: dict[str, int] = {}
    counts: dict[tuple[str, str], int] = {}
    for group, label in pairs:
        totals[group] = totals.get(group, 0) + 1
        counts[group, label] = counts.get((group, label), 0) + 1
    for (group, label), count in sorted(counts.items()):
        yield Row(
            "labels",
            {
                **at(place), "group": group, "label": label, "count": count,
                "share": count / totals[group],
            },
        )  # fmt: skip


def _unused(question: Question, space: Space, found: Predicted) -> Iterator[Note]:
    if found.unused:
        yield Note(
            f"{space.model}: {found.unused} items of {question.asked.images} have no usable "
            "vector and so no predicted label."
        )
