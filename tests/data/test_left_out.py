"""Rows that lack a model's output, and how many of them are failures that a run lists itself."""

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.data import ArraySource, ItemSource, load_items, load_vectors
from equipoise.data.outputs import Outputs

ITEMS = load_items(ItemSource(pa.table({"id": ["a", "b", "c"]}), "id", ()))
VECTORS = np.array([[3.0, 4.0], [0.0, 2.0]])


def test_items_that_a_file_lacks_are_told() -> None:
    vectors = load_vectors(ArraySource(VECTORS, ids=["a", "c"]), ITEMS, max_unmatched=0.5)
    assert vectors.unmatched == 1
    assert vectors.counts["items_without_row"] == 1
    assert (vectors.normalised, vectors.rescaled) == (False, True)


def test_items_that_a_live_model_failed_on_are_failures() -> None:
    outputs = Outputs(
        model="m",
        content="embeddings",
        source="models.m.model",
        ids=pl.Series(["a", "c"]),
        values=VECTORS.astype(np.float32),
        requested=np.array(["a", "b", "c"], dtype=object),
        failed={"b": "model"},
    )
    vectors = load_vectors(outputs, ITEMS, max_unmatched=0.0)
    assert vectors.unmatched == 0
    assert (vectors.normalised, vectors.rescaled) == (False, False)
