"""Rows of predictions for tests: a worked example, random ones, and rows from counts."""

import numpy as np

# Counts by true class, predicted class and group of 600 drawn rows, seed 11 of a generator whose
# model errs more often on class 0 for group 1; the golden values of tests/metrics were computed
# from these rows by an independent implementation.
EXAMPLE = np.array(
    [
        [[49, 14, 59], [3, 0, 6], [5, 46, 3]],
        [[4, 8, 5], [45, 69, 51], [0, 1, 8]],
        [[3, 7, 4], [7, 5, 3], [70, 61, 64]],
    ]
)


def rows_of(counts):
    """Expand counts by (true class, predicted class, group) to one row each."""
    cells = np.indices(counts.shape).reshape(3, -1)
    y_true, y_pred, group = np.repeat(cells, counts.ravel(), axis=1)
    return y_true, y_pred, group


def random_rows(seed):
    """Rows of a model that is right more often than not, whatever the group."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 3, 1600)
    y_pred = np.where(rng.random(1600) < 0.6, y_true, rng.integers(0, 3, 1600))
    return y_true, y_pred, rng.integers(0, 4, 1600)


def weights_of(counts, table):
    """Weights of a table that are not 0, by true class, label and group."""
    return {
        (counts.classes[truth], counts.classes[label], name): weight
        for truth, label, row in zip(counts.truth, counts.prediction, table, strict=True)
        for name, weight in zip(counts.groups.names, row.tolist(), strict=True)
        if weight
    }


def column(table, name):
    """A column of an Arrow table as numpy array."""
    return np.asarray(table[name].to_pylist())


def part(table, metric, subject, aggregate=None):
    """The one part of a metric and class, of several aggregates that of one."""
    (matching,) = [
        row
        for row in table.to_pylist()
        if (row["metric"], row["subject"]) == (metric, subject)
        and aggregate in (None, row["aggregate"])
    ]
    return matching
