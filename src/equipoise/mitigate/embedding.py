"""Vectors of images and of neutral prompts, as every measure here takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import ModelError
from equipoise.models.matching import unit_vectors

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

_PART = 256


def embedded(model: DualEncoder, images: Any, progress: Progress | None = None) -> Floats:
    """Return vectors of images, (n, dimension), read a few at a time.

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    found = []
    for start in range(0, len(images), _PART):
        if progress is not None:
            progress("embedding images", start, len(images))
        found.append(model.embed_images([images[row] for row in _rows(start, len(images))]))
    return _finite(np.concatenate(found), model)


def _rows(start: int, end: int) -> range:
    return range(start, min(start + _PART, end))


def queries_of(model: DualEncoder, prompts: Sequence[Sequence[str]]) -> Floats:
    """Return one unit vector for each group of prompts: the mean of their unit vectors."""
    vectors = texts_read(model, [text for group in prompts for text in group])
    ends = np.cumsum([len(group) for group in prompts])[:-1]
    return unit_vectors(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def texts_read(model: DualEncoder, texts: Sequence[str]) -> Floats:
    """Return unit vectors of texts, (n, dimension).

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    return unit_vectors(_finite(model.embed_texts(texts), model))


def _finite(vectors: npt.NDArray[np.float32], model: DualEncoder) -> Floats:
    if not (np.isfinite(vectors).all() and (np.abs(vectors).max(axis=1) > 0).all()):
        raise ModelError(
            f"{model.info.name} gave a vector that is zero or not finite. To do: dtype: float32"
        )
    return vectors.astype(np.float64)
