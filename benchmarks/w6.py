"""W6: every confusion rate of every class and group, with what 100 resamplings say about each.

Peers: fairlearn's MetricFrame with its bootstrap, one class against the rest, and rows resampled
with numpy, counted once for all classes and rates. Both give percentile intervals of 100
replicates. `rates` gives intervals in closed form, and where it is asked for them a chance level
and p-value for each gap from 100 permutations of its null, which no peer gives.
"""

from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
import pandas as pd
from fairlearn.metrics import (
    MetricFrame,
    false_negative_rate,
    false_positive_rate,
    selection_rate,
    true_negative_rate,
    true_positive_rate,
)
from sklearn.metrics import accuracy_score, precision_score

from benchmarks import harness
from benchmarks.harness import Row, compared, peak_mb, predictions, read_seconds, sizes, timed
from equipoise.metrics import rates
from equipoise.stats import Bootstrap

CLASSES, GROUPS, REPLICATES = 10, 8, 100
FULL = Bootstrap(replicates=REPLICATES, permutations=REPLICATES, resolution=1.0 / REPLICATES)
# As good as no chance levels: what the peers give, and no more.
INTERVALS = Bootstrap(replicates=REPLICATES, permutations=1, resolution=1.0)
RATES = {
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "true_negative_rate": true_negative_rate,
    "false_negative_rate": false_negative_rate,
    "precision": precision_score,
    "negative_predictive_value": lambda truth, label: precision_score(1 - truth, 1 - label),
    "selection_rate": selection_rate,
    "accuracy": accuracy_score,
}
FEW = 2
FAIRLEARN, NUMPY = "fairlearn MetricFrame", "numpy row bootstrap"


def ours(columns, resampling=INTERVALS):
    """Return the gaps of all rates with intervals, and the rate of every group with its own."""
    estimate = rates(*columns, resampling=resampling)
    assert estimate.by is not None, "the parts, which are made when they are read"  # noqa: S101
    return estimate


def our_shares(columns):
    """Return every rate, (rates, classes, groups)."""
    table = ours(columns).by
    rate_rows = table.filter(np.isin(table["metric"].to_pylist(), list(RATES)))
    order = {name: index for index, name in enumerate(RATES)}
    shares = np.empty((len(RATES), CLASSES, GROUPS))
    for part in rate_rows.to_pylist():
        values = [entry["value"] for entry in part["by_group"]]
        shares[order[part["metric"]], int(part["subject"])] = values
    return shares


def shares_of(cube):
    """Return every rate of counts (truth, label, group)."""
    correct = np.einsum("ccg->cg", cube)
    truth, label, total = cube.sum(axis=1), cube.sum(axis=0), cube.sum(axis=(0, 1))
    hit, wrong = correct / truth, (label - correct) / (total - truth)
    # Predictive values are those at the prevalence of all groups together.
    prevalence = truth.sum(axis=1, keepdims=True) / total.sum()
    true, false = prevalence * hit, (1 - prevalence) * wrong
    missed, right = prevalence - true, 1 - prevalence - false
    return np.stack([
        hit, wrong, 1 - wrong, 1 - hit, true / (true + false), right / (right + missed),
        label / total, (2 * correct + total - truth - label) / total,
    ])  # fmt: skip


def numpy_bootstrap(columns):
    """Return replicates of every rate: rows drawn with replacement, counted once for all."""
    rng = np.random.default_rng(0)
    truth, label, group = columns
    # Small numbers, so that what is gathered stays in the caches as far as it can.
    packed = ((truth * CLASSES + label) * GROUPS + group).astype(np.uint16)
    shape, rows = (CLASSES, CLASSES, GROUPS), len(packed)
    replicates = []
    for _ in range(REPLICATES):
        sample = packed[rng.integers(0, rows, rows, dtype=np.int32)]
        cube = np.bincount(sample, minlength=CLASSES * CLASSES * GROUPS).reshape(shape)
        replicates.append(shares_of(cube.astype(np.float64)))
    return np.stack(replicates)


def fairlearn_seconds(columns):
    """Return seconds extrapolated from one class and few replicates, and its rates."""
    truth, label = ((column == 0).astype(int) for column in columns[:2])
    group = pd.Series(columns[2], name="group")

    def frame(**bootstrap):
        return MetricFrame(
            metrics=RATES, y_true=truth, y_pred=label, sensitive_features=group, **bootstrap
        )

    started = perf_counter()
    result = frame()
    plain = perf_counter() - started
    started = perf_counter()
    frame(n_boot=FEW, ci_quantiles=[0.025, 0.975], random_state=0)
    per_replicate = max(perf_counter() - started - plain, 0.0) / FEW
    return CLASSES * (plain + REPLICATES * per_replicate), result.by_group.to_numpy(dtype=float).T


def rows():
    """Yield the rows of the table."""
    goals = ((100_000, None, None), (1_000_000, 10_000.0, None), (10_000_000, None, 500.0))
    for n_rows, fairlearn_goal, numpy_goal in sizes(*goals):
        columns = predictions(n_rows, CLASSES, GROUPS)
        size = f"{n_rows:,} rows"
        exact = our_shares(columns)
        limit = (
            read_seconds(sum(column.nbytes for column in columns)),
            "the labels read once from memory",
        )
        mine, full = partial(ours, columns), partial(ours, columns, FULL)
        label, with_chance = "all rates with intervals", "all rates, intervals and chance"
        if n_rows <= 1_000_000:
            peer, peer_rates = fairlearn_seconds(columns)
            # Its predictive values are those at each group's own prevalence.
            same = ["predictive" not in name and name != "precision" for name in RATES]
            np.testing.assert_allclose(
                exact[same, 0], peer_rates[same], rtol=1e-12, err_msg="rates differ"
            )
            note = f"extrapolated from one class and {FEW} replicates"
            for name, call in ((label, mine), (with_chance, full)):
                times, memory = (peer, timed(call)), peak_mb(call)
                yield Row(
                    "W6",
                    name,
                    size,
                    FAIRLEARN,
                    *times,
                    fairlearn_goal,
                    *limit,
                    memory,
                    note,
                    n_rows,
                )
        differ = "rates differ from replicates"
        check = partial(np.testing.assert_allclose, exact, atol=0.01, err_msg=differ)
        (row,) = compared(
            mine, [(NUMPY, partial(numpy_bootstrap, columns), numpy_goal)],
            lambda _, replicates: check(replicates.mean(axis=0)),  # noqa: B023 - called at once
            repeats=3, workload="W6", what=label, size=size,
            limit_seconds=limit[0], limit=limit[1], n=n_rows,
        )  # fmt: skip
        yield row
        yield replace(row, what=with_chance, seconds=timed(full), goal=None, memory_mb=None)


if __name__ == "__main__":
    harness.main(rows)
