"""A cell of predictions at the level of the other groups: counted, and put in their place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from equipoise.audits.candidates import lacking_of, scores_of
from equipoise.audits.cells import Cell, Outcomes
from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.labels.predictions.scores import ModelScores
from equipoise.core import Booleans, Fields, Floats, Groups, Integers, Integers32
from equipoise.data import PredictionData
from equipoise.data.predictions import ModelPredictions, Predictions

DataT = TypeVar("DataT", bound=PredictionData)
# Fractions of its multiples are as even as can be, wherever they start.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Rows whose outcomes tell the level of the values of other attributes, also as a share of the rows
# that get them: many copies of few outcomes would multiply their chance errors.
_LEAST_ROWS, _LEAST_SHARE = 10, 0.1
_ALPHA = 0.05


def outcomes_of(design: LabelDesign) -> Outcomes | None:
    """Count right predictions by group and true class; None of raw texts."""
    if design.wording:
        return None
    counts = design.by_class
    classes = len(counts.classes)
    rows = np.zeros((classes, len(counts.groups)))
    np.add.at(rows, counts.truth, counts.table)
    right = np.zeros_like(rows)
    hits = counts.truth == counts.prediction
    np.add.at(right, counts.truth[hits], counts.table[hits])
    return Outcomes(counts.groups, counts.classes, right.T, rows.T)


def level_data(data: DataT, design: LabelDesign, cell: Cell) -> DataT:
    """Return data in which a model's rows of a cell have the outcomes of the other groups."""
    attributes = cell.groups.attributes
    groups = Groups.of({name: data.coded_attributes[name] for name in attributes})
    # Rows without an answer are neither right nor wrong: they stay as they are.
    answered = design.labels.coded_state.equals("answered")
    inside = answered & (groups.codes == groups.levels.index(cell.levels))
    outside = answered & ~inside & (groups.codes >= 0)
    target = data.coded_target
    of_class = target.equals(cell.subject) if cell.subject else target.codes >= 0
    rows = (inside | outside) & of_class
    right = target.codes == design.predictions.coded.codes_in(target.vocabulary)
    other_columns = [
        column.codes for name, column in data.coded_attributes.items()
        if name not in attributes
        and _matters(column.codes[rows], target.codes[rows], inside[rows], right[rows])
    ]  # fmt: skip
    key = design.key or design.model
    donors = _exchanged(
        (target.codes, *other_columns),
        inside & of_class,
        outside & of_class,
        design.predictions.codes,
    )
    models = {**data.models, key: _taken(data.models[key], donors)}
    return replace(data, models=models, **_moved_scores(data, {key: donors}))


def _matters(values: Integers32, classes: Integers32, inside: Booleans, right: Booleans) -> bool:
    """Whether values of an attribute differ beyond chance on both sides of a cell together.

    A copy of the cell's attribute with some errors doesn't, and would leave few rows of equal value
    on the other side.
    """
    labelled = values >= 0
    values, classes = values[labelled], classes[labelled]
    shape = int(values.max(initial=0)) + 1, int(classes.max(initial=0)) + 1, 2
    places = np.ravel_multi_index((values, classes, inside[labelled].astype(int)), shape)
    rows = np.bincount(places, minlength=math.prod(shape)).reshape(shape).astype(float)
    hits = np.bincount(places, right[labelled], minlength=math.prod(shape)).reshape(shape)
    lacking, variance = (counts.sum(axis=2) for counts in lacking_of(hits.astype(float), rows))
    scores = np.column_stack(
        [scores_of(lacking, variance), scores_of(lacking.sum(axis=1), variance.sum(axis=1))]
    )
    tests = max(np.count_nonzero(rows.any(axis=(1, 2))) - 1, 1) * scores.shape[1]
    return bool(np.abs(scores).max() >= NormalDist().inv_cdf(1 - _ALPHA / (2 * tests)))


def sample_data(data: DataT, share: float, seed: int) -> DataT:
    """Return data of a random share of the rows, in their order."""
    n = len(data.ids)
    rows = np.random.default_rng(seed).choice(n, int(share * n), replace=False, shuffle=False)
    rows.sort()
    return replace(
        data,
        ids=data.ids[rows],
        coded_target=data.coded_target.take(rows),
        coded_attributes={
            name: column.take(rows) for name, column in data.coded_attributes.items()
        },
        coded_unit=None if data.coded_unit is None else data.coded_unit.take(rows),
        models={name: _taken(model, rows) for name, model in data.models.items()},
        **_moved_scores(data, dict.fromkeys(data.models, rows)),
    )


def _moved_scores(data: PredictionData, rows: Mapping[str, Integers]) -> Fields:
    """Return the field of scores with those of other rows by model; nothing of labels alone."""
    scores: Mapping[str, ModelScores] = vars(data).get("scores", {})
    moved = {
        name: replace(model_scores, values=model_scores.values[rows[name]])
        for name, model_scores in scores.items()
        if name in rows
    }
    return {"scores": {**scores, **moved}} if scores else {}


def _exchanged(
    strata: Sequence[Integers32], inside: Booleans, outside: Booleans, labels: Integers32
) -> Integers:
    """Return for each row the row whose outcome it gets.

    Within each true class, and there within the values of other attributes where these have
    enough rows, the rows inside get outcomes of those outside, evenly spaced over their labels. So
    the cell keeps what the other attributes make of it. Any stretch of the rows is spaced, as
    tables are often sorted by further columns.
    """
    rows = np.arange(len(inside))
    for columns, least, share in ((strata[:1], 1, 0.0), (strata, _LEAST_ROWS, _LEAST_SHARE)):
        for members in _strata(columns, inside | outside):
            receiving, giving = members[inside[members]], members[outside[members]]
            if len(receiving) and len(giving) >= max(least, share * len(receiving)):
                ordered = giving[np.argsort(labels[giving], kind="stable")]
                place = _spread(len(receiving)) * len(ordered)
                rows[receiving] = ordered[place.astype(np.int64)]
    return rows


def _strata(columns: Sequence[Integers32], rows: Booleans) -> list[Integers]:
    """Return rows by their values in all columns."""
    places = np.flatnonzero(rows)
    values = np.stack([column[places] for column in columns])
    order = np.lexsort(values)
    starts = np.flatnonzero((np.diff(values[:, order], axis=1) != 0).any(axis=0)) + 1
    return np.split(places[order], starts)


def _spread(n: int) -> Floats:
    """Return n evenly spaced numbers in [0, 1), in an order in which stretches are spaced, too."""
    ranks = np.argsort(np.argsort(np.arange(n) * _GOLDEN % 1.0))
    spread: Floats = (ranks + 0.5) / n
    return spread


def _taken(model: ModelPredictions, rows: Integers) -> ModelPredictions:
    """Return a model's predictions with the outcomes of other rows."""
    versions = {name: _taken_version(version, rows) for name, version in model.versions.items()}
    return replace(model, versions=versions, coded_state=model.coded_state.take(rows))


def _taken_version(version: Predictions, rows: Integers) -> Predictions:
    top, probabilities = version.coded_top, version.probabilities
    return replace(
        version,
        coded=version.coded.take(rows),
        coded_top=None if top is None else top.take(rows),
        probabilities=None if probabilities is None else probabilities[rows],
    )
