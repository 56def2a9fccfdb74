"""Results in runs of MLflow: metrics, verdicts as tags, the report as an artefact."""

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import Any, TypeVar

from equipoise.core.errors import MissingExtraError
from equipoise.report.tracking import TrackedResult, Tracker

Value = TypeVar("Value")
_FOLDER = "equipoise"
# MLflow takes no more tags at once.
_MOST_AT_ONCE = 100


def _is_active() -> bool:
    mlflow: Any = sys.modules.get("mlflow")
    return mlflow is not None and mlflow.active_run() is not None


def _log(result: TrackedResult) -> None:
    """Log to the active run; as functions of MLflow do, start one where none is active."""
    try:
        mlflow = import_module("mlflow")
    except ModuleNotFoundError as error:
        raise MissingExtraError("mlflow", "mlflow") from error
    for numbers in _batches(result.numbers):
        mlflow.log_metrics(numbers, step=result.step)
    for verdicts in _batches(result.verdicts):
        mlflow.set_tags(verdicts)
    folder = _FOLDER if result.step is None else f"{_FOLDER}/{result.step}"
    for file in result.files:
        mlflow.log_artifact(str(file), folder)


def _batches(values: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    items = iter(values.items())
    while batch := dict(islice(items, _MOST_AT_ONCE)):
        yield batch


TRACKER = Tracker(_is_active, _log)
