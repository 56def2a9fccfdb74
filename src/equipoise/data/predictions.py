"""Predictions of one or more models, joined to labels by id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.core import InputError
from equipoise.data.answers import read_answers
from equipoise.data.join import check_matches, match
from equipoise.data.joined import Joined
from equipoise.data.labels import read_labels
from equipoise.data.results import PredictionData
from equipoise.data.sources import LabelSource, PredictionSource


def load_predictions(
    labels: LabelSource, models: Mapping[str, PredictionSource], *, max_unmatched: float = 0.01
) -> PredictionData:
    """Read labels and predictions and join them by id.

    Parameters
    ----------
    labels : LabelSource
    models : mapping of str to PredictionSource
        By the name that findings will give to the model.
    max_unmatched : float in [0, 1]
        Largest share of ids, of labels and of each model's predictions, that may have no
        partner. Up to there they are counted. Ids that are `failed` need none.

    Returns
    -------
    PredictionData
        The same for any order of the rows of any table.

    Raises
    ------
    DataError
        When a table cannot be used as given; the message says where and what to do.
    InputError
        When `max_unmatched` is outside [0, 1] or there is no model.
    """
    if not 0 <= max_unmatched <= 1:
        raise InputError(f"max_unmatched is {max_unmatched}; expected a share from 0 to 1")
    if not models:
        raise InputError("models is empty; expected at least one model")
    rows = read_labels(labels)
    inputs: dict[str, Mapping[str, Any]] = {rows.file: rows.digest}
    loaded, counts = {}, {}
    for name, source in models.items():
        answers = read_answers(source, model=name, id_column=labels.id)
        positions = match(answers.ids, rows.ids)
        sides = (rows.ids, rows.file), (answers.ids, answers.file)
        check_matches(*sides, positions, max_unmatched, failed=source.failed)
        loaded[name], counts[name] = Joined(rows, source, answers, positions).predictions()
        inputs[answers.file] = answers.digest
    return PredictionData(
        rows.ids.to_numpy(),
        rows.target,
        rows.attributes,
        rows.unit,
        loaded,
        inputs,
        {"labels": rows.counts, "models": counts},
    )
