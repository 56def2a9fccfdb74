"""Rows that lack what a model gives, and how many of them are failures that a run lists itself."""

import numpy as np
import pyarrow as pa
import pytest

from equipoise.data import ArraySource, ItemSource, load_items, load_matrix, load_vectors
from equipoise.data.left_out import LeftOut

ITEMS = load_items(ItemSource(pa.table({"id": ["a", "b", "c"]}), "id", ()))


@pytest.mark.parametrize(("made", "failed", "untold"), [(False, 0, 1), (True, 1, 0)])
def test_items_without_a_vector_are_failures_where_the_model_was_run(
    made: bool, failed: int, untold: int
) -> None:
    source = ArraySource(np.array([[3.0, 4.0], [0.0, 2.0]]), ids=["a", "c"], made=made)
    vectors = load_vectors(source, ITEMS, max_unmatched=0.5)
    assert vectors.without_vector == LeftOut(rows=1, failed=failed)
    assert vectors.without_vector.untold == untold
    assert vectors.counts["items_without_row"] == 1
    assert (vectors.normalised, vectors.rescaled) == (False, not made)


def test_vectors_of_length_one_are_not_rescaled() -> None:
    vectors = load_vectors(ArraySource(np.eye(3)), ITEMS)
    assert (vectors.without_vector, vectors.rescaled) == (LeftOut(0), False)


def test_a_matrix_says_whether_the_model_was_run() -> None:
    for made in (False, True):
        source = ArraySource(np.eye(3), names=("x", "y", "z"), made=made)
        assert load_matrix(source, ITEMS).made is made
