"""Counting without sorting: the same counts as by sorting, whatever the labels and threads are."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from equipoise.metrics import count
from equipoise.metrics.labels import table as cells
from equipoise.stats import threads as spread
from prediction_rows import weights_of

ROWS = 5_000
RNG = np.random.default_rng(5)
TRUTH, LABEL, GROUP = (RNG.integers(0, bound, ROWS) for bound in (9, 11, 4))


FORMS = {
    "from 0": (TRUTH, LABEL, GROUP),
    "negative, with holes": (3 * TRUTH - 7, 2 * LABEL - 9, 5 * GROUP - 100),
    "narrow": (TRUTH.astype(np.int8), LABEL.astype(np.uint16), GROUP.astype(np.int32)),
    "of the other byte order": tuple(column.astype(">i8") for column in (TRUTH, LABEL, GROUP)),
    "read only": tuple(np.broadcast_to(column, column.shape) for column in (TRUTH, LABEL, GROUP)),
    "every second": tuple(np.repeat(column, 2)[::2] for column in (TRUTH, LABEL, GROUP)),
    "booleans": (TRUTH > 4, LABEL > 4, GROUP > 1),
    "text, some missing": tuple(
        np.array(["", "b", "a"], dtype=object)[column % 3] for column in (TRUTH, LABEL, GROUP)
    ),
    "text beside numbers": (TRUTH, np.array([str(label) for label in LABEL]), GROUP),
    "one outside the sample": (TRUTH, np.where(np.arange(ROWS) == 1, 40, LABEL), GROUP - 1),
    "far from 0": (TRUTH + 10**12, LABEL - 10**12, GROUP),
}


def bytes_of(counts):
    arrays = (counts.table, counts.truth, counts.prediction, counts.groups.counts)
    names = (counts.classes, counts.groups.levels, dict(counts.excluded))
    return (*names, *((array.dtype, array.shape, array.tobytes()) for array in arrays))


def test_a_table_that_is_too_small_is_counted_by_sorting(monkeypatch):
    expected = count(TRUTH, LABEL, GROUP)
    monkeypatch.setattr(cells, "_MANY", 1)
    monkeypatch.setattr(cells, "_ROOM", 100)
    assert bytes_of(count(TRUTH, LABEL, GROUP)) == bytes_of(expected)


@pytest.mark.parametrize("sorting", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_counts_are_those_of_a_data_frame(form, sorting, monkeypatch):
    if not sorting:
        monkeypatch.setattr(cells, "_uncompiled_pairs", None)
        monkeypatch.setattr(cells, "_MANY", 1)
        monkeypatch.setattr(cells, "_MORE", 1)
        monkeypatch.setattr(cells, "_SAMPLE", 100)
        monkeypatch.setattr(spread, "_FEW", 1_000)
    truth, label, group = ([str(value) for value in column.tolist()] for column in FORMS[form])
    frame = pd.DataFrame({"truth": truth, "label": label, "group": group})
    complete = frame[(frame != "").all(axis=1)]
    counts = count(*FORMS[form])
    expected = complete.groupby(["truth", "label", "group"]).size().to_dict()
    assert weights_of(counts, counts.table) == expected
    assert sum(counts.excluded.values()) == ROWS - len(complete)


TEXT = ["x", "", None, "y", "x"]


@pytest.mark.parametrize(
    "labels",
    [
        TEXT,
        pa.chunked_array([TEXT[:2], TEXT[2:]], pa.large_string()),
        pl.Series(TEXT, dtype=pl.Categorical),
        pd.Series(TEXT, dtype="category"),
    ],
    ids=lambda labels: f"{type(labels).__module__}.{type(labels).__name__}",
)
def test_text_in_any_memory(labels):
    counts = count(labels, labels, ["g"] * len(TEXT))
    assert counts.classes == ("x", "y")
    assert counts.table.tolist() == [[2], [1]]
    assert counts.excluded == {"missing true class": 2}
    assert count(["c"] * len(TEXT), ["c"] * len(TEXT), labels).groups.names == ("x", "y")
