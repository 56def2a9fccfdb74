"""Vectors as recipes and measures take them: of length 1, and none that is no direction."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from equipoise.core.errors import ModelError
from equipoise.mitigate.embedding import embedded, in_parts, queries_of, texts_read
from equipoise.models.wrapped import unit_vectors


def model(vectors: Sequence[Sequence[float]]) -> Any:
    """Return a model whose images and texts are rows of vectors, by their number."""
    rows = np.array(vectors, dtype=np.float32)

    def embed(asked: Sequence[Any]) -> Any:
        return rows[[int(one) for one in asked]]

    return SimpleNamespace(
        info=SimpleNamespace(name="hf:clip", dimension=rows.shape[1]),
        embed_images=embed,
        embed_texts=embed,
    )


def test_vectors_of_zeros_stay_and_others_are_of_length_1() -> None:
    found = unit_vectors(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    assert found.dtype == np.float64
    assert found.tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_a_prompt_is_the_direction_of_the_mean_of_directions() -> None:
    found = queries_of(model([[2.0, 0.0], [0.0, 5.0], [0.0, 1.0]]), [("0", "1"), ("2",)])
    np.testing.assert_allclose(found, [[0.5**0.5, 0.5**0.5], [0.0, 1.0]])


def test_images_are_read_in_parts_and_held_as_they_were_given() -> None:
    rows = np.random.default_rng(0).standard_normal((600, 3)).astype(np.float32)
    told: list[tuple[str, int, int | None]] = []
    found = embedded(model(rows.tolist()), range(600), lambda *step: told.append(step))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, rows)
    assert told == [("embedding images", start, 600) for start in (0, 256, 512)]
    parts = [(rows, len(part)) for rows, part in in_parts(model(rows.tolist()), range(600))]
    assert parts == [(slice(0, 256), 256), (slice(256, 512), 256), (slice(512, 600), 88)]
    assert embedded(model([[1.0, 2.0]]), []).shape == (0, 2)


@pytest.mark.parametrize("number", [0.0, np.nan, np.inf])
def test_a_vector_that_is_no_direction_is_refused(number: float) -> None:
    bad = model([[1.0, 2.0], [number, number]])
    message = "^hf:clip gave a vector that is zero or not finite. To do: dtype: float32$"
    with pytest.raises(ModelError, match=message):
        embedded(bad, [0, 1])
    with pytest.raises(ModelError, match=message):
        texts_read(bad, ["0", "1"])
