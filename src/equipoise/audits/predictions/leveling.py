"""A cell of predictions at the level of the other groups: counted, and put in their place."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from equipoise.audits.cells import Cell, Outcomes
from equipoise.audits.engines.labels import LabelDesign
from equipoise.core import Booleans, Floats, Groups, Integers, Integers32
from equipoise.data import Coded, PredictionData
from equipoise.data.predictions import ModelPredictions, Predictions

DataT = TypeVar("DataT", bound=PredictionData)
# Fractions of its multiples are as even as can be, wherever they start.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


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
    attributes = {name: data.coded_attributes[name] for name in cell.groups.attributes}
    groups = Groups.of(attributes)
    # Rows without an answer are neither right nor wrong: they stay as they are.
    answered = design.labels.coded_state.equals("answered")
    inside = answered & (groups.codes == groups.levels.index(cell.levels))
    outside = answered & ~inside & (groups.codes >= 0)
    rows = _exchanged(data.coded_target, inside, outside, design.predictions.codes, cell.subject)
    key = design.key or design.model
    return replace(data, models={**data.models, key: _taken(data.models[key], rows)})


def _exchanged(
    target: Coded, inside: Booleans, outside: Booleans, labels: Integers32, subject: str
) -> Integers:
    """Return for each row the row whose outcome it gets.

    Within each true class the rows inside get outcomes of those outside, evenly spaced over their
    labels. Any stretch of the rows does: tables are often sorted by other attributes.
    """
    rows = np.arange(len(inside))
    for code, name in enumerate(target.vocabulary):
        if subject in ("", name):
            of_class = target.codes == code
            receiving, giving = (np.flatnonzero(of_class & side) for side in (inside, outside))
            if len(receiving) and len(giving):
                ordered = giving[np.argsort(labels[giving], kind="stable")]
                place = _spread(len(receiving)) * len(ordered)
                rows[receiving] = ordered[place.astype(np.int64)]
    return rows


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
