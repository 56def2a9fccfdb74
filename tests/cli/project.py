"""A small project and its result, for the tests of the commands."""

from pathlib import Path

from equipoise.core import AuditResult
from equipoise.data import LabelSource, PredictionSource, load_predictions
from report.synthetic import finding, manifest

CONFIG = """\
audit: predictions
data: {table: labels.csv, id: id, target: y, groups: [g]}
models:
  m: {table: m.csv, prediction: p}
gate:
  - {metric: worst_group_accuracy, min: 0.5}
"""


def data():
    return load_predictions(
        LabelSource(Path("labels.csv"), "id", "y", ("g",)),
        {"m": PredictionSource(Path("m.csv"), prediction="p")},
    )


def result(config, measured=0.6, **changes):
    named = {"metric": "worst_group_accuracy", "model": "m", "groups": "g", "value": measured}
    found = finding(**named | changes)
    return AuditResult((found,), manifest(resolved=config.resolved, notes=("small data",)))
