"""Read the tables that a configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.audits.config_arrays import located
from equipoise.data import PredictionSource, load_predictions

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.audits.predictions.config_inputs import ModelConfig
    from equipoise.data import PredictionData


def load(config: Config, *, base: Path) -> PredictionData:
    """Read and join the labels and every model's predictions.

    Parameters
    ----------
    config : Config
    base : Path
        What relative paths are relative to.

    Raises
    ------
    DataError
        When a table cannot be read or joined; it names the file, column and row.
    """
    data = config.data
    models = {name: _source(model, base) for name, model in config.models.items()}
    return load_predictions(data.labels(base), models, max_unmatched=data.max_unmatched)


def _source(model: ModelConfig, base: Path) -> PredictionSource:
    maps = dict(model.maps or {}) if model.map is None else {"default": model.map}
    return PredictionSource(
        table=located(model.table, base),
        prediction=model.prediction,
        top=model.top,
        probabilities=model.probabilities,
        id=model.id,
        rank=model.rank,
        maps=maps,
        missing=model.missing,
        unknown=model.unknown,
        refused=model.refused,
        open_vocabulary=model.open_vocabulary,
        normalize=None if model.normalize is None else model.normalize.steps,
        encoding=model.encoding,
        delimiter=model.delimiter,
        failed=model.failed(),
        offered=model.offered,
    )
