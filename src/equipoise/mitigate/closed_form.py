"""Recipes in closed form: ensembles of prompts, and prompts matched to images."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import nnls

from equipoise.core import Floats, InputError, Progress
from equipoise.mitigate.measuring import embed_images
from equipoise.mitigate.recipe import (
    Names,
    WrappedRecipe,
    digest_of_images,
    digest_of_texts,
)
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import (
    PLACE,
    Attribute,
    Ensemble,
    Matching,
    Rule,
    ValueCaptions,
    Wrapping,
    unit_vectors,
)

# Share of the largest singular value: directions that are smaller are rounding.
_NOTHING = 1e-9


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

    def _wrapping(self, _base: DualEncoder, training: Training, _: Progress | None) -> Wrapping:
        return Wrapping(ensemble_of(training.texts))


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
    named = {value for own in texts for row in own.values for value in row.values()}
    values = tuple(sorted(named - {""}))
    if not rules or not values:
        raise InputError(
            "no caption says a neutral prompt with attributes: expected captions that name the "
            "subject as it is called, and the values of their attributes"
        )
    return Ensemble(tuple(Rule(key, tuple(said)) for key, said in sorted(rules.items())), values)


def _template(text: str, subject: str) -> str:
    """Return a text with places for the subject; the text itself where it has none."""
    return re.sub(rf"(?<!\w){re.escape(subject)}(?=s?(?!\w))", lambda _: PLACE, text)


Values = Mapping[str, Sequence[str]]
"""Values of each attribute, sorted."""

VALUE = "{value}"

# Share of the mean variance that the ridge adds: few images do not tell values by luck.
_RIDGE = 0.01


class MatchedPrompts(WrappedRecipe):
    """A neutral prompt's similarity to an image, averaged with its captions that fit the image.

    score = w₀ · cos(image, prompt) + w₁ · cos(both without directions) + Σ wₐ · cos(image, captions
    of the prompt that name the value of attribute a the image shows). A linear rule, learned from
    the images of the sets, tells which value that is; directions are those in which the images of
    sets differ by value on average; weights are 0 or above, 1 in all, and the same for every
    prompt: those with the least variance of neutral logits within the sets of the subjects known.
    Texts that name a value stay as they are.

    It rests on how such a bias comes about: who writes captions leaves out what is usual. So a
    prompt without the attribute leans to images where it is usual, a prompt that names it to images
    where it is not, and a mean of both leans less. Only a handful of weights is learned, of no
    subject in particular.

    Attributes
    ----------
    name : str
    said : mapping of str to tuple of str
        By attribute, templates of captions that name it alone, with ``{}`` for the subject and
        ``{value}``: "a photo of a {value} {}".
    """

    recipe: Literal["matched_prompts"] = "matched_prompts"
    name: str = "matched_prompts"
    said: dict[str, Names]

    def _inputs(self, training: Training) -> dict[str, Any]:
        sets, known = training.known_images(self.name), training.known
        return {
            "texts": digest_of_texts(known),
            "images": digest_of_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(texts.subject for texts in known),
        }

    def _wrapping(
        self, base: DualEncoder, training: Training, progress: Progress | None
    ) -> Wrapping:
        sets, known = training.known_images(self.name), training.known
        values = values_of(sets)
        if problem := self.problem([*values]):
            raise InputError(problem)
        spoken = []
        for name, own_values in values.items():
            rules = (
                ensemble_of([self._naming(own, name, value) for own in known]).rules
                for value in own_values
            )
            spoken.append(Attribute(name, tuple(map(ValueCaptions, own_values, rules))))
        vectors = unit_vectors(embed_images(base, sets.images, progress))
        learned_arrays = (*gate_of(vectors, sets, values), directions_of(vectors, sets, values))
        arrays = (array.astype(np.float32) for array in learned_arrays)
        matching = Matching(tuple(spoken), (), *arrays)
        weights, kept = _weights(matching, base, vectors, sets, known)
        learned = {"weights": [*weights], "names_a_value": kept}
        return Wrapping(matching=replace(matching, weights=weights), record=learned)

    def problem(self, attributes: Sequence[str]) -> str:
        """Return the problem of `said` for the attributes of images; "" if there is none."""
        if {*self.said} != {*attributes}:
            return f"said: has {[*self.said]}; expected the attributes {[*attributes]}"
        for name, templates in self.said.items():
            for text in templates:
                if text.count(PLACE) != 1 or text.count(VALUE) != 1:
                    return f"said.{name}: {text!r} does not hold {PLACE} and {VALUE} once each"
        return ""

    def _naming(self, own: SubjectTexts, attribute: str, value: str) -> SubjectTexts:
        """Return a subject's texts with captions that name a value alone."""
        texts = tuple(
            own.subject.join(part.replace(VALUE, value) for part in template.split(PLACE))
            for template in self.said[attribute]
        )
        return replace(own, attributed=texts, values=({attribute: value},) * len(texts))


def _weights(
    matching: Matching,
    base: DualEncoder,
    vectors: Floats,
    sets: ImageSets,
    known: Sequence[SubjectTexts],
) -> tuple[tuple[float, ...], list[str]]:
    """Return the weights with the least variance within sets, averaged over subjects.

    Subjects of which a prompt names a value, as "a red hat" does, teach nothing: such a prompt is
    not held against captions. They come second.
    """
    parts: list[Floats] = []
    kept: list[str] = []
    by_set = [*sets.by_set().values()]
    for own in known:
        members = [rows for rows in by_set if sets.subject[rows[0]] == own.subject]
        if not members:
            continue
        blocks = matching.blocks(base.embed_texts, own.neutral)
        if min(map(len, blocks)) == 1:
            kept.append(own.subject)
            continue
        prompts = np.mean(blocks, axis=0)
        scores = [matching.cosines(vectors[rows], prompts) for rows in members]
        within = np.concatenate([some - some.mean(axis=0) for some in scores])
        parts.append(within.T @ within / len(within))
    if not parts:
        raise InputError(
            "the prompts of every subject name a value of an attribute; expected prompts that name "
            "none"
        )
    total = np.sum(parts, axis=0)
    size = float(np.trace(total))
    # The least value at a given sum is, but for its size, the least of the value less that sum: a
    # problem of least squares without negative numbers.
    root = np.linalg.cholesky(total / size + 1e-9 * np.eye(len(total)))
    solution = nnls(root.T, np.linalg.solve(root, np.ones(len(total))))[0]
    return tuple((solution / solution.sum()).tolist()), kept


def values_of(sets: ImageSets) -> dict[str, list[str]]:
    """Return the values of each attribute that images show, sorted.

    Raises
    ------
    InputError
        When an attribute has fewer than two.
    """
    values = {}
    for name, column in sets.attributes.items():
        values[name] = sorted({str(value) for value in column.tolist() if value is not None})
        if len(values[name]) < 2:
            raise InputError(
                f"images show fewer than two values of {name}. To do: leave out this attribute"
            )
    return values


def gate_of(vectors: Floats, sets: ImageSets, values: Values) -> tuple[Floats, Floats]:
    """Return the linear rule that tells values: ridge regression on the value an image shows.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, dimension)
        Of unit length.
    sets : ImageSets
        The same n images; those without a value of an attribute teach nothing of it.
    values : mapping of str to sequence of str
        See `values_of`.

    Returns
    -------
    slopes : ndarray of float64, shape (dimension, values)
        Columns in the order of `values`, attribute after attribute.
    offsets : ndarray of float64, shape (values,)
        A vector times slopes, plus offsets, is largest at its own value of each attribute.
    """
    slopes, offsets = [], []
    for name, own in values.items():
        column = sets.attributes[name]
        labelled = column != None  # noqa: E711 - cell by cell
        x = vectors[labelled]
        y = (column[labelled][:, None] == np.array(own, dtype=object)).astype(np.float64)
        centre, level = x.mean(axis=0), y.mean(axis=0)
        spread = (x - centre).T @ (x - centre)
        ridge = _RIDGE * np.trace(spread) / len(spread)
        slope = np.linalg.solve(spread + ridge * np.eye(len(spread)), (x - centre).T @ (y - level))
        slopes.append(slope)
        offsets.append(level - centre @ slope)
    return np.concatenate(slopes, axis=1), np.concatenate(offsets)


def directions_of(vectors: Floats, sets: ImageSets, values: Values) -> Floats:
    """Return the directions in which images lie from the mean of their set, by value.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows: one less than the values of each attribute, summed, or fewer.
    """
    apart = sets.deviations(vectors)
    means = []
    for name, own in values.items():
        column = sets.attributes[name]
        by_value = np.stack([apart[column == value].mean(axis=0) for value in own])
        means.append(by_value - by_value.mean(axis=0))
    most = sum(len(own) - 1 for own in values.values())
    _, sizes, turned = np.linalg.svd(np.concatenate(means), full_matrices=False)
    turned = turned[: min(most, int((sizes > _NOTHING * sizes[0]).sum()))]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(turned).argmax(axis=1)
    return np.asarray(turned * np.sign(turned[np.arange(len(turned)), largest])[:, None])
