"""A cell of predictions at the level of the other groups: counted, and put in their place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from equipoise.audits.cells import Cell, Outcomes
from equipoise.audits.engines.labels import LabelDesign
from equipoise.core import Booleans, Floats, Groups, Integers, Integers32
from equipoise.data import PredictionData
from equipoise.data.predictions import ModelPredictions, Predictions

DataT = TypeVar("DataT", bound=PredictionData)
# Fractions of its multiples are as even as can be, wherever they start.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
# Rows whose outcomes tell the level of the values of other attributes.
_LEAST_ROWS = 10


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
    other_columns = [
        column.codes for name, column in data.coded_attributes.items() if name not in attributes
    ]
    target = data.coded_target
    of_class = target.equals(cell.subject) if cell.subject else target.codes >= 0
    key = design.key or design.model
    rows = _exchanged(
        (target.codes, *other_columns),
        inside & of_class,
        outside & of_class,
        design.predictions.codes,
    )
    return replace(data, models={**data.models, key: _taken(data.models[key], rows)})


def sample_data(data: DataT, share: float, seed: int) -> DataT:
    """Return data of a random share of the rows, in their order.

    Scores stay those of all rows, as only labels made of them are counted again.
    """
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
    )


def _exchanged(
    strata: Sequence[Integers32], inside: Booleans, outside: Booleans, labels: Integers32
) -> Integers:
    """Return for each row the row whose outcome it gets.

    Within each true class, and there within the values of the other attributes where these have
    enough rows, the rows inside get outcomes of those outside, evenly spaced over their labels. So
    the cell keeps what the other attributes make of it. Any stretch of the rows is spaced, as
    tables are often sorted by further columns.
    """
    rows = np.arange(len(inside))
    for columns, least in ((strata[:1], 1), (strata, _LEAST_ROWS)):
        for members in _strata(columns, inside | outside):
            receiving, giving = members[inside[members]], members[outside[members]]
            if len(receiving) and len(giving) >= least:
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
