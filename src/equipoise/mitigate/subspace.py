"""Directions of vectors in which groups differ: a subspace that is projected out."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from equipoise.config.fields import Listed, Name
from equipoise.core import Floats, InputError, Objects, Progress
from equipoise.mitigate.measuring import embed_images, embed_unit_texts
from equipoise.mitigate.recipe import WrappedRecipe, digest_images, digest_texts
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import Subspace, Wrapping, unit_vectors

Centre = Literal["pair", "group"]
"""The mean that vectors are taken from: of their pair, or of their group."""

_NOTHING = 1e-6
"""Share of the largest singular value: directions that are smaller are rounding."""


def find_subspace(
    vectors: Floats, groups: Objects, pairs: Objects | None = None, *, centre: Centre = "pair"
) -> Floats:
    """Find the principal directions of vectors less a mean.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, dimension)
    groups : ndarray of str objects, shape (n,)
    pairs : ndarray of objects, shape (n,), optional
        Vectors of one pair differ in their group alone; needed to centre by pair. A pair may have
        several vectors of a group. Those of pairs with one group alone take no part.
    centre : "pair" or "group"
        By pair, the first directions are those in which groups differ. By group, the difference
        of the groups' means is subtracted too, so directions are those in which members of a
        group differ.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows, the one with the most variance first; none where vectors don't vary.

    Raises
    ------
    InputError
        When pairs are missing, or none has two groups.
    """
    if centre == "group":
        blocks = [np.flatnonzero(groups == group) for group in sorted({*groups.tolist()})]
    elif pairs is None:
        raise InputError("pairs: missing. To do: name the column of pairs, or set centre: group")
    else:
        names = pairs.astype(str)
        blocks = [np.flatnonzero(names == name) for name in sorted({*names.tolist()})]
        blocks = [rows for rows in blocks if len({*groups[rows].tolist()}) > 1]
        if not blocks:
            raise InputError(
                "no pair has two groups, so pairs don't show how groups differ; expected pairs "
                "that differ in their group alone, or centre: group"
            )
    deviations = np.concatenate([vectors[rows] - vectors[rows].mean(axis=0) for rows in blocks])
    _, sizes, directions = np.linalg.svd(deviations, full_matrices=False)
    directions = directions[sizes > max(_NOTHING * sizes[0], _NOTHING)]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return np.asarray(directions * signs[:, None])


class SubspaceProjection(WrappedRecipe):
    """Vectors without the first principal directions of an attribute.

    Attributes
    ----------
    name : str
    centre : "pair" or "group"
        See `find_subspace`. A pair is images of one set, or captions, that differ in the attribute
        alone.
    k : int
        Directions of each attribute.
    of : "texts", "images" or "both"
        Vectors that lose them; those of texts and of images have directions of their own.
    attributes : list of str
        Attributes to remove; all unless given.
    """

    recipe: Literal["subspace"] = "subspace"
    name: str = "subspace"
    centre: Centre = "pair"
    k: PositiveInt = 1
    of: Literal["texts", "images", "both"] = "both"
    attributes: Listed[Name] = ()

    def problem(self, attributes: Sequence[str]) -> str:
        """Return the problem of the recipe's attributes for those of the images, or ""."""
        if unknown := sorted({*self.attributes} - {*attributes}):
            return f"attributes: has {unknown[0]!r}; expected some of {[*attributes]}"
        return ""

    def _inputs(self, training: Training) -> dict[str, object]:
        sets, texts = training.require_images(self.name), training.all_texts
        return {
            "texts": digest_texts(texts),
            "images": digest_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(subject_texts.subject for subject_texts in texts),
        }

    def _wrap(self, base: DualEncoder, training: Training, progress: Progress | None) -> Wrapping:
        sets = training.require_images(self.name)
        if problem := self.problem([*sets.attributes]):
            raise InputError(problem)
        attributes = [*(self.attributes or sets.attributes)]
        images = texts = None
        if self.of != "texts":
            images = self._of_images(base, sets, attributes, progress)
        if self.of != "images":
            texts = self._of_texts(base, training.all_texts, attributes)
        return Wrapping(subspace=Subspace(images, texts))

    def _of_images(
        self,
        base: DualEncoder,
        sets: ImageSets,
        attributes: Sequence[str],
        progress: Progress | None,
    ) -> Floats:
        vectors, parts = unit_vectors(embed_images(base, sets.images, progress)), []
        for attribute in attributes:
            column = sets.attributes[attribute]
            others = [cells for name, cells in sets.attributes.items() if name != attribute]
            pairs = _joined([sets.set, *others])
            rows = np.flatnonzero(column != None)  # noqa: E711 - cell by cell
            parts.append(self._first(vectors[rows], column[rows], pairs[rows]))
        return _orthonormal(parts)

    def _of_texts(
        self, base: DualEncoder, texts: Sequence[SubjectTexts], attributes: Sequence[str]
    ) -> Floats:
        captions = [*chain.from_iterable(subject_texts.attributed for subject_texts in texts)]
        values = [*chain.from_iterable(subject_texts.values for subject_texts in texts)]
        vectors, parts = embed_unit_texts(base, captions), []
        for attribute in attributes:
            column = np.array([row.get(attribute) or None for row in values], dtype=object)
            pairs = np.array(
                [
                    _without(caption, value)
                    for caption, value in zip(captions, column.tolist(), strict=True)
                ],
                dtype=object,
            )
            rows = np.flatnonzero(column != None)  # noqa: E711 - cell by cell
            parts.append(self._first(vectors[rows], column[rows], pairs[rows]))
        return _orthonormal(parts)

    def _first(self, vectors: Floats, groups: Objects, pairs: Objects) -> Floats:
        return find_subspace(vectors, groups, pairs, centre=self.centre)[: self.k]


def _joined(columns: Sequence[Objects]) -> Objects:
    """Return one label for each row of several columns."""
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return np.array([repr(row) for row in rows], dtype=object)


def _without(caption: str, value: str | None) -> str:
    """Return a caption with a mark in place of the value that it names."""
    return re.sub(rf"(?<!\w){re.escape(value or '')}(?!\w)", "\0", caption) if value else caption


def _orthonormal(parts: Sequence[Floats]) -> Floats:
    """Return orthonormal rows that span the directions of several attributes."""
    _, sizes, rows = np.linalg.svd(np.concatenate(parts), full_matrices=False)
    return np.asarray(rows[sizes > _NOTHING])
