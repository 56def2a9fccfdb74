"""Whole audits: every metric of predictions with every interval, chance level and p-value.

There is no peer that does as much. The one here is fairlearn's MetricFrame for three rates of every
class, values alone, extrapolated from a few classes.
"""

from functools import partial
from time import perf_counter

import numpy as np
import polars as pl
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate

from benchmarks import harness
from benchmarks.harness import Row, predictions, sizes, timed
from equipoise import audits

RATES = {
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "selection_rate": selection_rate,
}
FEW = 3


def planted(rows, classes, groups):
    """Predictions of which three in four are right, each class confused with five others."""
    truth, label, group = predictions(rows, classes, groups)
    names = np.array([f"class {index:04d}" for index in range(classes)])
    member = np.array([f"group {index:02d}" for index in range(groups)])
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "truth": names[truth],
            "label": names[label],
            "group": member[group],
        }
    )


def audit(table):
    """Audit with the defaults."""
    data = {"table": table, "id": "id", "target": "truth", "groups": ["group"]}
    models = {"model": {"table": table, "prediction": "label"}}
    audits.run(audits.parse_config({"audit": "predictions", "data": data, "models": models}))


def fairlearn_seconds(table, classes):
    """Return seconds for the gaps of three rates in all classes, from a few of them."""
    frame = table.to_pandas()
    started = perf_counter()
    for name in sorted(frame["truth"].unique())[:FEW]:
        truth, label = (frame[column] == name for column in ("truth", "label"))
        MetricFrame(
            metrics=RATES, y_true=truth, y_pred=label, sensitive_features=frame["group"]
        ).difference()
    return (perf_counter() - started) * classes / min(classes, FEW)


def rows():
    """Yield the rows of the table."""
    for n_rows, classes, groups in sizes((3_000, 2, 7), (100_000, 100, 8), (1_000_000, 1_000, 23)):
        table = planted(n_rows, classes, groups)
        yield Row(
            "Audit",
            "a whole audit of one model",
            f"{n_rows:,} rows, {classes:,} classes, {groups} groups",
            "fairlearn, three rates, values alone",
            fairlearn_seconds(table, classes),
            timed(partial(audit, table), repeats=1),
            note=f"extrapolated from {FEW} classes",
            n=n_rows,
        )


if __name__ == "__main__":
    harness.main(rows)
