"""Recipes in closed form: prompts are ensembles, or directions of groups are removed or shrunk."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from equipoise.core.arrays import Floats
from equipoise.core.errors import InputError
from equipoise.mitigate.measuring import embed_images, queries_of, text_vectors
from equipoise.mitigate.recipe import (
    Count,
    Progress,
    Rate,
    WrappedRecipe,
    digest_of_images,
    digest_of_texts,
)
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import PLACE, Ensemble, Rule, Wrapping, unit_vectors

# Share of the largest singular value: directions that are smaller are rounding.
_NOTHING = 1e-9
# Beyond 16, subjects that look alike are confused, which the training subjects need not show.
STRENGTHS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0)
_FEWEST = 3


class PromptEnsemble(WrappedRecipe):
    """Neutral prompts whose vector is the mean of the unit vectors of their captions.

    The texts of the training subjects give the templates: a prompt and a caption with the subject
    taken out, which hold for any other subject.

    Attributes
    ----------
    name : str
    """

    recipe: Literal["prompt_ensemble"] = "prompt_ensemble"
    name: str = "prompt_ensemble"

    def _wrapping(
        self,
        base: DualEncoder,  # noqa: ARG002 - texts alone decide
        training: Training,
        record: Mapping[str, Any],
        progress: Progress | None,  # noqa: ARG002 - done at once
    ) -> Wrapping:
        return Wrapping(ensemble_of(training.texts), record=record)


def ensemble_of(texts: Sequence[SubjectTexts]) -> Ensemble:
    """Return the templates that the texts of subjects have in common.

    A subject is found as a whole word, or with an s for many: "man" not in "woman". A caption may
    hold it several times. A prompt that does not hold it once is kept whole, and holds for itself
    alone.

    Raises
    ------
    InputError
        When no caption names a value of an attribute, or a text holds ``{}``.
    """
    rules: dict[str, dict[str, None]] = {}
    for own in texts:
        for text in (own.subject, *own.neutral, *own.attributed):
            if PLACE in text:
                raise InputError(
                    f"{text!r}, of {own.subject!r}, holds {PLACE}, which stands for the subject in "
                    "templates; expected texts and values without it"
                )
        captions = [_template(text, own.subject) for text in own.attributed]
        for prompt in own.neutral:
            neutral = _template(prompt, own.subject)
            if neutral.count(PLACE) == 1:
                matches = [text for text in captions if PLACE in text]
            else:
                neutral, matches = prompt, [*own.attributed]
            if matches:
                rules.setdefault(neutral, {}).update(dict.fromkeys(matches))
    values = values_named(texts)
    if not rules or not values:
        raise InputError(
            "no caption says a neutral prompt with attributes: expected captions that name the "
            "subject as it is called, and the values of their attributes"
        )
    return Ensemble(tuple(Rule(key, tuple(said)) for key, said in sorted(rules.items())), values)


def values_named(texts: Sequence[SubjectTexts]) -> tuple[str, ...]:
    """Return the values of attributes that captions name, sorted."""
    return tuple(
        sorted({value for own in texts for row in own.values for value in row.values() if value})
    )


def _template(text: str, subject: str) -> str:
    """Return a text with places for the subject; the text itself where it has none."""
    return re.sub(rf"(?<!\w){re.escape(subject)}(?=s?(?!\w))", lambda _: PLACE, text)


class DirectionRemoval(WrappedRecipe):
    """Vectors without the directions in which captions of one subject differ by attribute.

    Attributes
    ----------
    name : str
    directions : int, optional
        How many; None: one less than the values of each attribute, summed.
    removed_from : "texts", "images" or "both"
    """

    recipe: Literal["direction_removal"] = "direction_removal"
    name: str = "direction_removal"
    directions: Count | None = None
    removed_from: Literal["texts", "images", "both"] = "both"

    def _wrapping(
        self,
        base: DualEncoder,
        training: Training,
        record: Mapping[str, Any],
        progress: Progress | None,  # noqa: ARG002 - done at once
    ) -> Wrapping:
        rows = group_directions(base, training.texts, self.directions)
        towers = ("texts", "images") if self.removed_from == "both" else (self.removed_from,)
        transform = (np.eye(rows.shape[1]) - rows.T @ rows).astype(np.float32)
        return Wrapping(transform=transform, applied_to=towers, record=record)


def group_directions(
    base: DualEncoder, texts: Sequence[SubjectTexts], count: int | None = None
) -> Floats:
    """Return the directions in which captions that differ in one attribute alone lie apart.

    For each subject and attribute, the mean unit vector of the captions of every value is taken,
    less the mean over values; directions are the first right singular vectors of all of these.

    Parameters
    ----------
    base : DualEncoder
    texts : sequence of SubjectTexts
    count : int, optional
        See `DirectionRemoval`.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows.

    Raises
    ------
    InputError
        When no attribute has two values, or there are fewer directions than `count`.
    """
    apart: list[Floats] = []
    values: dict[str, set[str]] = defaultdict(set)
    for own in texts:
        vectors = text_vectors(base, own.attributed)
        rows: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row, named in enumerate(own.values):
            for attribute, value in named.items():
                if value:
                    rows[attribute][value].append(row)
        for attribute, by_value in rows.items():
            if len(by_value) > 1:
                values[attribute] |= {*by_value}
                means = np.stack(
                    [vectors[by_value[value]].mean(axis=0) for value in sorted(by_value)]
                )
                apart.append(means - means.mean(axis=0))
    wanted = sum(len(named) - 1 for named in values.values()) if count is None else count
    every = np.concatenate(apart) if apart else np.empty((0, 0))
    if not 1 <= wanted <= min(every.shape):
        raise InputError(
            f"{wanted} directions of captions that differ in {len(every)} ways; expected at least "
            "one, and captions of at least two values of an attribute"
        )
    return principal_rows(every, wanted)


def principal_rows(rows: Floats, most: int) -> Floats:
    """Return the directions in which rows are largest.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, dimension)
    most : int
        Most directions; fewer where rows lie in fewer.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows, the direction in which rows are largest first.
    """
    _, sizes, turned = np.linalg.svd(rows, full_matrices=False)
    turned = turned[: min(most, int((sizes > _NOTHING * sizes[0]).sum()))]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(turned).argmax(axis=1)
    return np.asarray(turned * np.sign(turned[np.arange(len(turned)), largest])[:, None])


class SetShrinkage(WrappedRecipe):
    """Neutral prompts multiplied by (I + strength · C)⁻¹, C the covariance within sets.

    C is the covariance of image vectors less the mean of their set, scaled to a mean variance of 1:
    the directions in which members of a set differ, of any subject, count less the more they
    differ. Images and captions that name a value of an attribute stay as they are.

    Attributes
    ----------
    name : str
    strength : float, optional
        None: the largest of `STRENGTHS` at which images of a subject that C was measured without
        are named right, among all subjects known, at most `allowed_loss` less often than before:
        the mean over subjects and one standard error. 0, which changes nothing, if none is.
    allowed_loss : float
        Share of images.
    """

    recipe: Literal["set_shrinkage"] = "set_shrinkage"
    name: str = "set_shrinkage"
    strength: Rate | None = None
    allowed_loss: Annotated[float, Field(ge=0, lt=1)] = 0.01

    def _inputs(self, training: Training) -> dict[str, Any]:
        images, known = training.known_images(self.name), training.known
        return {
            "texts": digest_of_texts(known),
            "images": digest_of_images(images.images, images.set),
            "subjects": sorted(texts.subject for texts in known),
        }

    def _wrapping(
        self,
        base: DualEncoder,
        training: Training,
        record: Mapping[str, Any],
        progress: Progress | None,
    ) -> Wrapping:
        images = training.known_images(self.name)
        sets = _Vectors(unit_vectors(embed_images(base, images.images, progress)), images)
        strength = self.strength
        if strength is None:
            strength = self._chosen(base, training.known, sets)
        return Wrapping(
            transform=_shrinking(sets.covariance(), strength).astype(np.float32),
            applied_to=("texts",),
            spared=values_named(training.known),
            record={**record, "strength": strength},
        )

    def _chosen(self, base: DualEncoder, known: Sequence[SubjectTexts], sets: _Vectors) -> float:
        """Return a strength from the loss of each subject by a matrix learned without it."""
        if len(known) < _FEWEST:
            raise InputError(
                f"{self.name} chooses its strength by leaving out each of {len(known)} subjects "
                f"in turn; expected at least {_FEWEST}. To do: give the strength"
            )
        places = {texts.subject: place for place, texts in enumerate(known)}
        queries = queries_of(base, [texts.neutral for texts in known])
        losses = np.array(
            [
                [sets.loss(name, places[name], queries, strength) for strength in STRENGTHS]
                for name in sets.rows
            ]
        )
        # One standard error over subjects is left as room: the matrix is used on other subjects.
        spread = losses.std(axis=0, ddof=1) / math.sqrt(len(losses))
        fit = np.flatnonzero(losses.mean(axis=0) + spread <= self.allowed_loss)
        return STRENGTHS[fit[-1]] if len(fit) else 0.0


class _Vectors:
    """Unit vectors of images in sets, and their variation within the sets of each subject."""

    def __init__(self, vectors: Floats, sets: ImageSets) -> None:
        self.vectors = vectors
        self.rows = {name: np.flatnonzero(sets.subject == name) for name in sets.subjects}
        apart = sets.deviations(vectors)
        self._products = {name: apart[rows].T @ apart[rows] for name, rows in self.rows.items()}

    def covariance(self, without: str = "") -> Floats:
        """Return the covariance within sets, with a mean variance of 1.

        Raises
        ------
        InputError
            When the members of every set are alike.
        """
        kept = [product for name, product in self._products.items() if name != without]
        total: Floats = np.sum(kept, axis=0)
        size = float(np.trace(total)) / len(total)
        if not size > 0.0:
            raise InputError("the members of every set have one vector: nothing varies within sets")
        return total / size

    def loss(self, subject: str, place: int, queries: Floats, strength: float) -> float:
        """Return how much less often a subject's images are named right, by a matrix of others."""
        images = self.vectors[self.rows[subject]]
        moved = unit_vectors(queries @ _shrinking(self.covariance(subject), strength))
        before, after = (
            float(((images @ some.T).argmax(axis=1) == place).mean()) for some in (queries, moved)
        )
        return before - after


def _shrinking(covariance: Floats, strength: float) -> Floats:
    """Return the matrix (I + strength · C)⁻¹, which is symmetric."""
    inverse = np.linalg.inv(np.eye(len(covariance)) + strength * covariance)
    return np.asarray((inverse + inverse.T) / 2.0)
