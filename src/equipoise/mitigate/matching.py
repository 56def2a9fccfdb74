"""Matched prompts: a neutral prompt is held against each image through captions that fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from equipoise.core.errors import InputError
from equipoise.mitigate.embedding import embedded, unit
from equipoise.mitigate.ensembling import ensemble_of
from equipoise.mitigate.fitting import wrapped
from equipoise.mitigate.record import digest_of_images, digest_of_texts, record_of, reloaded
from equipoise.mitigate.sets import ImageSets, SubjectTexts, joined
from equipoise.models.ensembles import PLACE
from equipoise.models.matching import Matching, Said
from equipoise.models.wrapped import Wrapping

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

VALUE = "{value}"
# Of the mean variance of a number, added to each: vectors of few images do not tell values by luck.
_RIDGE = 0.01
# Parts of the subjects that are left out in turn to see how often the gate tells values right.
_PARTS = 10


@dataclass(frozen=True)
class MatchedPrompts:
    """A neutral prompt's similarity to an image, averaged with its captions that fit the image.

    score = w₀ · cos(image, prompt) + w₁ · cos(both without directions) + Σ wₐ · cos(image, captions
    of the prompt that name the value of attribute a the image shows). Which value that is a linear
    rule tells, learned from the images of the sets; directions are those in which the images of
    sets differ by value on average; weights are 0 or above, 1 in all, and the same for every
    prompt: those with the least variance of neutral logits within the sets of the subjects known.
    Texts that name a value stay as they are.

    It rests on how such a bias comes about: who writes captions leaves out what is usual. So a
    prompt without the attribute leans to images where it is usual, a prompt that names it to images
    where it is not, and a mean of both leans less. What is to be learned is a handful of weights,
    of no subject in particular.

    Attributes
    ----------
    name : str
    said : mapping of str to tuple of str, optional
        By attribute, templates of captions that name it alone, with ``{}`` for the subject and
        ``{value}``: "a photo of a {value} {}". Default: of the captions that name a value, those
        that name the fewest attributes.
    directions : bool
        Whether the similarity without directions is weighed, too.
    """

    name: str = "matched_prompts"
    said: Mapping[str, tuple[str, ...]] | None = None
    directions: bool = True

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        said = None if self.said is None else {name: [*one] for name, one in self.said.items()}
        return {"recipe": "matched_prompts", **asdict(self), "said": said}

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Learn to tell values, and how to weigh, from the sets of the training subjects.

        Raises
        ------
        InputError
            When there are no images, a value has no caption, or `said` is of other attributes.
        """
        images = [one for one in (training.images, training.validation_images) if one]
        known: Sequence[SubjectTexts] = (*training.texts, *training.validation)
        if not images:
            raise InputError(f"{self.name} learns from images, and there are none of its subjects")
        sets = joined(images)
        values = {name: _values(column) for name, column in sets.attributes.items()}
        self._check(values)
        spoken = {name: self._spoken(name, values[name], known) for name in values}
        vectors = unit(embedded(base, sets.images, progress))
        rows = _directions(vectors, sets, values) if self.directions else vectors[:0]
        numbers = (one.astype(np.float32) for one in (*_gate(vectors, sets, values), rows))
        matching = Matching(spoken, (), *numbers)
        matching = replace(matching, weights=_weights(matching, base, vectors, sets, known))
        inputs = {
            "texts": digest_of_texts(known),
            "images": digest_of_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(one.subject for one in known),
        }
        record = record_of(self.facts, base, seed, inputs)
        found = {"weights": [*matching.weights], "told_right": _told_right(vectors, sets, values)}
        wrapping = Wrapping(applied_to=(), matching=matching, record={**record, **found})
        return reloaded(wrapped(out, base.info, wrapping), base)

    def _check(self, values: Mapping[str, Sequence[str]]) -> None:
        if self.said is None:
            return
        if missing := sorted(values.keys() - self.said.keys()):
            raise InputError(
                f"said: nothing of {missing[0]!r}, an attribute of the images; expected templates "
                f"with {PLACE} and {VALUE} for each"
            )
        if unknown := sorted(self.said.keys() - values.keys()):
            raise InputError(
                f"said: {unknown[0]!r} is no attribute of the images ({', '.join(values)})"
            )

    def _spoken(
        self, attribute: str, values: Sequence[str], known: Sequence[SubjectTexts]
    ) -> tuple[Said, ...]:
        return tuple(
            Said(value, ensemble_of([self._naming(one, attribute, value) for one in known]).rules)
            for value in values
        )

    def _naming(self, one: SubjectTexts, attribute: str, value: str) -> SubjectTexts:
        """Return a subject's texts with the captions alone that name a value and little else."""
        if self.said is not None:
            made = tuple(
                template.replace(VALUE, value).replace(PLACE, one.subject)
                for template in self.said[attribute]
            )
            return SubjectTexts(one.subject, one.neutral, made, ({attribute: value},) * len(made))
        naming = [row for row, named in enumerate(one.values) if named.get(attribute) == value]
        if not naming:
            raise InputError(
                f"no caption of {one.subject!r} names {attribute} {value!r}, which images show. "
                "To do: give captions of every value, or templates in `said`"
            )
        sizes = {row: sum(map(bool, one.values[row].values())) for row in naming}
        fewest = [row for row in naming if sizes[row] == min(sizes.values())]
        return SubjectTexts(
            one.subject,
            one.neutral,
            tuple(one.attributed[row] for row in fewest),
            tuple(one.values[row] for row in fewest),
        )


def _values(column: npt.NDArray[np.object_]) -> list[str]:
    return sorted({str(value) for value in column.tolist() if value is not None})


def _gate(
    vectors: Floats, sets: ImageSets, values: Mapping[str, Sequence[str]], rows: Any = None
) -> tuple[Floats, Floats]:
    """Return the linear rule that tells values: ridge regression on which value an image shows."""
    chosen = np.arange(len(vectors)) if rows is None else rows
    parts = []
    for name, found in values.items():
        labels = sets.attributes[name][chosen]
        labelled = chosen[labels != None]  # noqa: E711 - of every element
        x = vectors[labelled]
        shows = sets.attributes[name][labelled][:, None] == np.array(found, dtype=object)
        y = shows.astype(np.float64)
        centre, level = x.mean(axis=0), y.mean(axis=0)
        spread = (x - centre).T @ (x - centre)
        ridge = _RIDGE * np.trace(spread) / len(spread)
        slopes = np.linalg.solve(spread + ridge * np.eye(len(spread)), (x - centre).T @ (y - level))
        parts.append((slopes, level - centre @ slopes))
    return np.concatenate([one for one, _ in parts], axis=1), np.concatenate(
        [offset for _, offset in parts]
    )


def _told_right(
    vectors: Floats, sets: ImageSets, values: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Return the share of images whose value is told right by what other subjects taught."""
    part = {name: place % _PARTS for place, name in enumerate(sets.subjects)}
    belongs = np.array([part[name] for name in sets.subject.tolist()])
    right: dict[str, list[bool]] = {name: [] for name in values}
    for number in sorted({*part.values()}):
        others, own = np.flatnonzero(belongs != number), np.flatnonzero(belongs == number)
        if not len(others):
            continue
        gate, offset = _gate(vectors, sets, values, others)
        scores, start = vectors[own] @ gate + offset, 0
        for name, found in values.items():
            best = scores[:, start : start + len(found)].argmax(axis=1)
            start += len(found)
            pairs = zip(sets.attributes[name][own].tolist(), best.tolist(), strict=True)
            right[name] += [shown == found[place] for shown, place in pairs if shown is not None]
    return {name: float(np.mean(one)) for name, one in right.items() if one}


def _directions(vectors: Floats, sets: ImageSets, values: Mapping[str, Sequence[str]]) -> Floats:
    """Return orthonormal rows: in which images lie from the mean of their set, by value."""
    apart = vectors.copy()
    for rows in sets.by_set().values():
        apart[rows] -= vectors[rows].mean(axis=0)
    means = []
    for name, found in values.items():
        labels = sets.attributes[name]
        by_value = np.stack([apart[labels == value].mean(axis=0) for value in found])
        means.append(by_value - by_value.mean(axis=0))
    wanted = sum(len(found) - 1 for found in values.values())
    turned = np.linalg.svd(np.concatenate(means), full_matrices=False)[2][:wanted]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(turned).argmax(axis=1)
    return np.asarray(turned * np.sign(turned[np.arange(len(turned)), largest])[:, None])


def _weights(
    matching: Matching,
    base: DualEncoder,
    vectors: Floats,
    sets: ImageSets,
    known: Sequence[SubjectTexts],
) -> tuple[float, ...]:
    """Return the weights with the least variance within sets, averaged over subjects."""
    parts = []
    for one in known:
        own = sets.of([one.subject])
        prompts = np.mean(matching.blocks(base.embed_texts, one.neutral), axis=0)
        scores = matching.cosines(vectors[sets.subject == one.subject], prompts)
        for members in own.by_set().values():
            scores[members] -= scores[members].mean(axis=0)
        parts.append(scores.T @ scores / len(scores))
    total = np.sum(parts, axis=0)
    size = float(np.trace(total))
    if not size > 0.0:
        raise InputError("neutral prompts are equally similar to the members of every set")
    # What is least at a given sum is, but for its size, least less that sum: a problem of least
    # squares without negative numbers.
    root = np.linalg.cholesky(total / size + 1e-9 * np.eye(len(total)))
    found = nnls(root.T, np.linalg.solve(root, np.ones(len(total))))[0]
    return tuple(float(one) for one in found / found.sum())
