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
    digest_images,
    digest_texts,
)
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training, list_named_values
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
    """Neutral prompts with the mean unit vector of their captions.

    The texts of the training subjects give the templates: a prompt and a caption with the subject
    taken out, which hold for any other subject.

    Attributes
    ----------
    name : str
    """

    recipe: Literal["prompt_ensemble"] = "prompt_ensemble"
    name: str = "prompt_ensemble"

    def _wrap(self, _base: DualEncoder, training: Training, _: Progress | None) -> Wrapping:
        return Wrapping(build_ensemble(training.texts))


def build_ensemble(texts: Sequence[SubjectTexts]) -> Ensemble:
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
    for subject_texts in texts:
        _refuse_place(subject_texts)
        captions = [
            _make_template(text, subject_texts.subject) for text in subject_texts.attributed
        ]
        for prompt in subject_texts.neutral:
            neutral = _make_template(prompt, subject_texts.subject)
            if neutral.count(PLACE) == 1:
                matches = [text for text in captions if PLACE in text]
            else:
                neutral, matches = prompt, [*subject_texts.attributed]
            if matches:
                rules.setdefault(neutral, {}).update(dict.fromkeys(matches))
    values = list_named_values(texts)
    if not rules or not values:
        raise InputError(
            "no caption is a neutral prompt with attributes: expected captions that name the "
            "subject by its own name, and the values of the attributes"
        )
    return Ensemble(
        tuple(Rule(key, tuple(templates)) for key, templates in sorted(rules.items())), values
    )


def _refuse_place(texts: SubjectTexts) -> None:
    """Refuse texts that hold the mark that stands for the subject in templates."""
    for text in (texts.subject, *texts.neutral, *texts.attributed):
        if PLACE in text:
            raise InputError(
                f"{text!r}, of {texts.subject!r}, holds {PLACE}, which stands for the subject in "
                "templates; expected texts and values without it"
            )


def _make_template(text: str, subject: str) -> str:
    """Replace the subject in a text by a mark."""
    return re.sub(rf"(?<!\w){re.escape(subject)}(?=s?(?!\w))", lambda _: PLACE, text)


Values = Mapping[str, Sequence[str]]
"""Values of each attribute, sorted."""

VALUE = "{value}"

# Share of the mean variance that the ridge adds: few images do not tell values by luck.
_RIDGE = 0.01


class MatchedPrompts(WrappedRecipe):
    """A neutral prompt's similarity, averaged with captions that match the image.

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
        sets, all_texts = training.require_images(self.name), training.all_texts
        return {
            "texts": digest_texts(all_texts),
            "images": digest_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(texts.subject for texts in all_texts),
        }

    def _wrap(self, base: DualEncoder, training: Training, progress: Progress | None) -> Wrapping:
        sets, all_texts = training.require_images(self.name), training.all_texts
        values = list_values(sets)
        if problem := self.problem([*values]):
            raise InputError(problem)
        attributes = []
        for name, attribute_values in values.items():
            captions = []
            for value in attribute_values:
                texts = [
                    self._name_value(subject_texts, name, value) for subject_texts in all_texts
                ]
                captions.append(ValueCaptions(value, build_ensemble(texts).rules))
            attributes.append(Attribute(name, tuple(captions)))
        vectors = unit_vectors(embed_images(base, sets.images, progress))
        learned_arrays = (*fit_gate(vectors, sets, values), find_directions(vectors, sets, values))
        arrays = (array.astype(np.float32) for array in learned_arrays)
        matching = Matching(tuple(attributes), (), *arrays)
        weights, naming_subjects = _fit_weights(matching, base, vectors, sets, all_texts)
        learned = {"weights": [*weights], "names_a_value": naming_subjects}
        return Wrapping(matching=replace(matching, weights=weights), record=learned)

    def problem(self, attributes: Sequence[str]) -> str:
        """Return the problem of the templates for the images' attributes, or ""."""
        if {*self.said} != {*attributes}:
            return f"said: has {[*self.said]}; expected the attributes {[*attributes]}"
        for name, templates in self.said.items():
            for text in templates:
                if text.count(PLACE) != 1 or text.count(VALUE) != 1:
                    return f"said.{name}: {text!r} doesn't contain {PLACE} and {VALUE} once each"
        return ""

    def _name_value(self, subject_texts: SubjectTexts, attribute: str, value: str) -> SubjectTexts:
        """Return a subject's texts with captions that name one value."""
        captions = []
        for template in self.said[attribute]:
            parts = [part.replace(VALUE, value) for part in template.split(PLACE)]
            captions.append(subject_texts.subject.join(parts))
        values = ({attribute: value},) * len(captions)
        return replace(subject_texts, attributed=tuple(captions), values=values)


def _fit_weights(
    matching: Matching,
    base: DualEncoder,
    vectors: Floats,
    sets: ImageSets,
    texts: Sequence[SubjectTexts],
) -> tuple[tuple[float, ...], list[str]]:
    """Return the weights with the least variance within sets, averaged over subjects.

    Subjects of which a prompt names a value, as "a red hat" does, teach nothing: such a prompt is
    not held against captions. They come second.
    """
    parts: list[Floats] = []
    naming_subjects: list[str] = []
    by_set = [*sets.by_set().values()]
    for subject_texts in texts:
        members = [rows for rows in by_set if sets.subject[rows[0]] == subject_texts.subject]
        if not members:
            continue
        blocks = matching.blocks(base.embed_texts, subject_texts.neutral)
        if min(map(len, blocks)) == 1:
            naming_subjects.append(subject_texts.subject)
            continue
        prompts = np.mean(blocks, axis=0)
        centred = []
        for rows in members:
            scores = matching.cosines(vectors[rows], prompts)
            centred.append(scores - scores.mean(axis=0))
        deviations = np.concatenate(centred)
        parts.append(deviations.T @ deviations / len(deviations))
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
    return tuple((solution / solution.sum()).tolist()), naming_subjects


def list_values(sets: ImageSets) -> dict[str, list[str]]:
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


def fit_gate(vectors: Floats, sets: ImageSets, values: Values) -> tuple[Floats, Floats]:
    """Fit ridge regressions from image vectors to attribute values.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, dimension)
        Of unit length.
    sets : ImageSets
        The same n images; those without a value of an attribute teach nothing of it.
    values : mapping of str to sequence of str
        See `list_values`.

    Returns
    -------
    slopes : ndarray of float64, shape (dimension, values)
        Columns in the order of `values`, attribute after attribute.
    offsets : ndarray of float64, shape (values,)
        A vector times slopes, plus offsets, is largest at its own value of each attribute.
    """
    slopes, offsets = [], []
    for name, attribute_values in values.items():
        column = sets.attributes[name]
        labelled = column != None  # noqa: E711 - cell by cell
        x = vectors[labelled]
        y = (column[labelled][:, None] == np.array(attribute_values, dtype=object)).astype(
            np.float64
        )
        centre, level = x.mean(axis=0), y.mean(axis=0)
        spread = (x - centre).T @ (x - centre)
        ridge = _RIDGE * np.trace(spread) / len(spread)
        slope = np.linalg.solve(spread + ridge * np.eye(len(spread)), (x - centre).T @ (y - level))
        slopes.append(slope)
        offsets.append(level - centre @ slope)
    return np.concatenate(slopes, axis=1), np.concatenate(offsets)


def find_directions(vectors: Floats, sets: ImageSets, values: Values) -> Floats:
    """Return the directions in which images differ from their set by value.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows: one less than the values of each attribute, summed, or fewer.
    """
    deviations = sets.deviations(vectors)
    means = []
    for name, attribute_values in values.items():
        column = sets.attributes[name]
        by_value = np.stack(
            [deviations[column == value].mean(axis=0) for value in attribute_values]
        )
        means.append(by_value - by_value.mean(axis=0))
    max_rank = sum(len(attribute_values) - 1 for attribute_values in values.values())
    _, sizes, turned = np.linalg.svd(np.concatenate(means), full_matrices=False)
    turned = turned[: min(max_rank, int((sizes > _NOTHING * sizes[0]).sum()))]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(turned).argmax(axis=1)
    return np.asarray(turned * np.sign(turned[np.arange(len(turned)), largest])[:, None])
