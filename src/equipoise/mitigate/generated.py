"""Measures of a generator before and after: shares, prompt fit and image quality, by a probe."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from equipoise.core import Floats, Objects, Progress, record
from equipoise.core.wording import number
from equipoise.counterfactuals import GenerationSettings, generate_prompts
from equipoise.evidence import decode
from equipoise.metrics import representation_gap
from equipoise.mitigate.measuring import (
    ACCURACY,
    SHARE_GAP,
    ModelMeasures,
    Numbers,
    embed_images,
    embed_prompts,
    embed_unit_texts,
)
from equipoise.mitigate.sets import ImageSets, SubjectTexts
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import unit_vectors

SIMILARITY, PRECISION = "prompt_similarity", "image_precision"
ABOUT = "generated images"
_NEIGHBOURS = 3


@record
class GeneratedTest:
    """Prompts that a generator makes images of, and a probe that reads the images.

    Attributes
    ----------
    images : ImageSets
        Labelled images: they show the probe's errors, and are the reference of image quality.
    texts : mapping of str to SubjectTexts
        By subject. The captions say what the probe compares images with.
    probe : DualEncoder
    sampling : Sampling
    count : int
        Images of each prompt.
    store : Path
        Folder that keeps the images; images that are there are not made again.
    seed : int
    teacher : DualEncoder, optional
        What reads generated images while a recipe learns; best another than the probe.
    """

    images: ImageSets
    texts: Mapping[str, SubjectTexts]
    probe: DualEncoder
    sampling: Sampling
    count: int
    store: Path
    seed: int = 0
    teacher: DualEncoder | None = None

    def of(self, subjects: Collection[str]) -> Self:
        """Return this test with the labelled images of some subjects alone."""
        return replace(self, images=self.images.of(subjects))

    def measure(
        self,
        model: ImageGenerator,
        *,
        only: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> ModelMeasures:
        """Measure a generator on images of the neutral prompts of subjects.

        Returns
        -------
        ModelMeasures
            `bias`: by attribute, the largest difference between the shares of its values in the
            images of a subject and equal shares. `utility`, by image: whether the probe names its
            subject among all, its cosine with its prompt, and whether it lies among the labelled
            images of the subjects (nearer to one than its third neighbour). `chance`: the share
            gap of as many images with values drawn in equal shares.

        References
        ----------
        Kynkäänniemi et al. 2019: precision.
        """
        subjects = [name for name in self.images.subjects if only is None or name in only]
        pairs = [(text, name) for name in subjects for text in self.texts[name].neutral]
        prompts, names = map(list, zip(*pairs, strict=True))
        table = pa.table({"prompt_id": prompts, "prompt": prompts, "subject": names})
        generated = generate_prompts(
            table, model, self.store, images=self.count, seed=self.seed,
            settings=GenerationSettings(sampling=self.sampling, progress=progress),
        )  # fmt: skip
        rows = {row["image_id"]: row for row in generated.table.to_pylist()}
        image_ids = generated.pictures.ids.tolist()
        image_prompts, subject_names, pictures = [], [], []
        for place, name in enumerate(image_ids):
            image_prompts.append(rows[name]["prompt"])
            subject_names.append(rows[name]["subject"])
            pictures.append(decode(generated.pictures.read(place)))
        owner = np.array(subject_names, dtype=object)
        vectors = unit_vectors(embed_images(self.probe, pictures, progress))
        similarity = np.einsum("nd,nd->n", vectors, embed_unit_texts(self.probe, image_prompts))
        labelled_vectors = self._labelled_vectors[
            np.isin(self.images.subject.astype(str), subjects)
        ]
        image_scores = {
            ACCURACY: self._predict_subjects(vectors) == owner,
            SIMILARITY: similarity,
            PRECISION: lie_within(vectors, labelled_vectors),
        }
        utility: Numbers = {}
        for measure, scores in image_scores.items():
            by_image = zip(image_ids, scores.astype(np.float64).tolist(), strict=True)
            utility[measure, ABOUT] = dict.fromkeys(rows, math.nan) | dict(by_image)
        bias: Numbers = {}
        chance: Numbers = {}
        for name, predicted_values in self.read(vectors, owner).items():
            equal_shares = dict.fromkeys(self._named_values(name), 1.0)
            gaps, levels = {}, {}
            for subject in subjects:
                subject_values = predicted_values[owner == subject].tolist()
                gaps[subject] = levels[subject] = math.nan
                if subject_values:
                    estimate = representation_gap(subject_values, equal_shares)
                    gaps[subject] = estimate.value
                    if estimate.chance:
                        levels[subject] = estimate.chance.mean
            bias[SHARE_GAP, name], chance[SHARE_GAP, name] = gaps, levels
        return ModelMeasures(bias, utility, chance)

    def _named_values(self, attribute: str) -> set[str]:
        """Return the values of an attribute that captions name."""
        values: set[str] = set()
        for subject_texts in self.texts.values():
            values.update(row[attribute] for row in subject_texts.values)
        return values

    def read(self, vectors: Floats, owner: Objects) -> dict[str, Objects]:
        """Return the attribute values of images, predicted by the probe.

        Parameters
        ----------
        vectors : ndarray of float64, shape (n, dimension)
            Unit vectors of the images.
        owner : ndarray of str objects, shape (n,)
            Subject of each image; it is compared with captions of this subject alone.

        Returns
        -------
        dict of str to ndarray of str objects, shape (n,)
            By attribute.
        """
        predicted = {
            name: np.full(len(owner), None, dtype=object) for name in self.images.attributes
        }
        for subject in {*owner.tolist()}:
            subject_texts, rows = self.texts[subject], owner == subject
            captions = embed_prompts(self.probe, [[text] for text in subject_texts.attributed])
            logits = (self.probe.info.scale or 100.0) * vectors[rows] @ captions.T
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            for name, values in predicted.items():
                caption_values = np.array([row[name] for row in subject_texts.values], dtype=object)
                names = np.array(sorted({*caption_values.tolist()}), dtype=object)
                sums = [weights[:, caption_values == value].mean(axis=1) for value in names]
                values[rows] = names[np.argmax(sums, axis=0)]
        return predicted

    def errors(self) -> dict[str, float]:
        """Return the probe's error rate on labelled images, by attribute."""
        labels = {"subject": self.images.subject, **self.images.attributes}
        predicted = {
            "subject": self._predict_subjects(self._labelled_vectors),
            **self.read(self._labelled_vectors, self.images.subject),
        }
        return {name: float((predicted[name] != column).mean()) for name, column in labels.items()}

    def notes(self) -> tuple[str, ...]:
        """Return the limitations of the probe."""
        wrong = ", ".join(f"{name} {number(100 * x, 1)} %" for name, x in self.errors().items())
        return (
            "A probe classifies generated images, and shares are not corrected for its "
            f"errors. On labelled images it is wrong about {wrong}.",
        )

    def _predict_subjects(self, vectors: Floats) -> Objects:
        """Return the subject with the nearest neutral prompts to each image."""
        prompts = embed_prompts(
            self.probe, [subject_texts.neutral for subject_texts in self.texts.values()]
        )
        named: Objects = np.array([*self.texts], dtype=object)[(vectors @ prompts.T).argmax(axis=1)]
        return named

    @cached_property
    def _labelled_vectors(self) -> Floats:
        return unit_vectors(embed_images(self.probe, self.images.images))


def lie_within(vectors: Floats, reference: Floats) -> Any:
    """Return whether vectors are as near to a reference as its third neighbour.

    Parameters
    ----------
    vectors, reference : ndarray of float64, shape (n, d) and (m, d)
        Of unit length; m of 4 or more.

    Returns
    -------
    ndarray of bool, shape (n,)

    References
    ----------
    Kynkäänniemi et al. 2019, "Improved precision and recall metric", k = 3.
    """
    third = np.sort(reference @ reference.T, axis=1)[:, -1 - _NEIGHBOURS]
    return (vectors @ reference.T >= third).any(axis=1)
