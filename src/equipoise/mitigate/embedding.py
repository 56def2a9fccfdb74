"""Vectors of images and of neutral prompts, as every measure here takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import ModelError
from equipoise.models.wrapped import unit_vectors

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]
Shorts = npt.NDArray[np.float32]

_PART = 256


def embedded(model: DualEncoder, images: Any, progress: Progress | None = None) -> Shorts:
    """Return vectors of images, (n, dimension), as the model gave them, in one piece of memory.

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    found: Shorts | None = None
    for rows, vectors in in_parts(model, images, progress):
        if found is None:
            found = np.empty((len(images), vectors.shape[1]), dtype=np.float32)
        found[rows] = vectors
    return np.empty((0, model.info.dimension or 0), dtype=np.float32) if found is None else found


def in_parts(
    model: DualEncoder, images: Any, progress: Progress | None = None
) -> Iterator[tuple[slice, Shorts]]:
    """Yield which images, and their vectors, a few at a time: all of them need not be held.

    Raises
    ------
    ModelError
        When a vector is zero or not finite.
    """
    for start in range(0, len(images), _PART):
        if progress is not None:
            progress("embedding images", start, len(images))
        end = min(start + _PART, len(images))
        vectors = model.embed_images([images[row] for row in range(start, end)])
        yield slice(start, end), _finite(vectors, model)


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


def _finite(vectors: Shorts, model: DualEncoder) -> Shorts:
    if not (np.isfinite(vectors).all() and (np.abs(vectors).max(axis=1) > 0).all()):
        raise ModelError(
            f"{model.info.name} gave a vector that is zero or not finite. To do: dtype: float32"
        )
    return vectors
