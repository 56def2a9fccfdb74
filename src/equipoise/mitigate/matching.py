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
from equipoise.mitigate.embedding import embedded
from equipoise.mitigate.ensembling import ensemble_of
from equipoise.mitigate.fitting import wrapped
from equipoise.mitigate.record import digest_of_images, digest_of_texts, record_of
from equipoise.mitigate.sets import ImageSets, SubjectTexts
from equipoise.mitigate.telling import directions_of, gate_of, told_right, values_of
from equipoise.models.wrapped import PLACE, Matching, Said, Wrapping, unit_vectors

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

VALUE = "{value}"


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
            When there are no images, an attribute has one value, a value has no caption, a text
            or a value holds ``{}``, `said` is of other attributes, or the prompts of every subject
            name a value.
        """
        sets, known = training.known_images(self.name), training.known
        values = values_of(sets)
        self._check([*values])
        inputs = {
            "texts": digest_of_texts(known),
            "images": digest_of_images(sets.images, sets.set, *sets.attributes.values()),
            "subjects": sorted(one.subject for one in known),
        }
        record = record_of(self.facts, base, seed, inputs)

        def make() -> Wrapping:
            spoken = {name: self._spoken(name, values[name], known) for name in values}
            vectors = unit_vectors(embedded(base, sets.images, progress))
            rows = directions_of(vectors, sets, values) if self.directions else vectors[:0]
            numbers = (one.astype(np.float32) for one in (*gate_of(vectors, sets, values), rows))
            matching = Matching(spoken, (), *numbers)
            weights, kept = _weights(matching, base, vectors, sets, known)
            found = {
                "weights": [*weights],
                "told_right": told_right(vectors, sets, values),
                "names_a_value": [*kept],
            }
            matching = replace(matching, weights=weights)
            return Wrapping(applied_to=(), matching=matching, record={**record, **found})

        return wrapped(out, base, record, make)

    def _check(self, attributes: Sequence[str]) -> None:
        problem = None if self.said is None else problem_of(self.said, attributes)
        if problem:
            raise InputError(problem)

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
            given = tuple(
                one.subject.join(part.replace(VALUE, value) for part in template.split(PLACE))
                for template in self.said[attribute]
            )
            values = ({attribute: value},) * len(given)
            return SubjectTexts(one.subject, one.neutral, given, values)
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


def problem_of(said: Mapping[str, Sequence[str]], attributes: Sequence[str]) -> str:
    """Return what is wrong with templates for the attributes of images; "" if nothing is."""
    if missing := [name for name in attributes if name not in said]:
        return (
            f"said: nothing of {missing[0]!r}, an attribute of the images; expected templates "
            f"with {PLACE} and {VALUE} for each"
        )
    if unknown := [name for name in said if name not in attributes]:
        return f"said: {unknown[0]!r} is no attribute of the images ({', '.join(attributes)})"
    for name, templates in said.items():
        for one in [templates] if isinstance(templates, str) else templates:
            once = all(one.count(place) == 1 for place in (PLACE, VALUE))
            if isinstance(templates, str) or not once:
                return (
                    f"said.{name}: {one!r} does not hold {PLACE}, for the subject, and {VALUE}, "
                    f"once each, in a list; expected such as ['a photo of a {VALUE} {PLACE}']"
                )
    return ""


def _weights(
    matching: Matching,
    base: DualEncoder,
    vectors: Floats,
    sets: ImageSets,
    known: Sequence[SubjectTexts],
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return the weights with the least variance within sets, averaged over subjects.

    Subjects of which a prompt names a value, as "a red hat" does, teach nothing: such a prompt is
    not held against captions. They come second.
    """
    by_subject: dict[str, list[npt.NDArray[np.intp]]] = {}
    for members in sets.by_set().values():
        by_subject.setdefault(sets.subject[members[0]], []).append(members)
    parts, kept = [], []
    for one in known:
        if one.subject not in by_subject:
            continue
        blocks = matching.blocks(base.embed_texts, one.neutral)
        if min(map(len, blocks)) == 1:
            kept.append(one.subject)
            continue
        prompts, sums = np.mean(blocks, axis=0), []
        for members in by_subject[one.subject]:
            scores = matching.cosines(vectors[members], prompts)
            sums.append(scores - scores.mean(axis=0))
        within = np.concatenate(sums)
        parts.append(within.T @ within / len(within))
    if not parts:
        raise InputError(
            f"prompts of {kept[0]!r} name a value of an attribute, as do those of every subject "
            "that has images; expected prompts that name none"
        )
    total = np.sum(parts, axis=0)
    size = float(np.trace(total))
    if not size > 0.0:
        raise InputError("neutral prompts are equally similar to the members of every set")
    # What is least at a given sum is, but for its size, least less that sum: a problem of least
    # squares without negative numbers.
    root = np.linalg.cholesky(total / size + 1e-9 * np.eye(len(total)))
    found = nnls(root.T, np.linalg.solve(root, np.ones(len(total))))[0]
    return tuple(float(one) for one in found / found.sum()), tuple(kept)
