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
from equipoise.counterfactuals import generate_prompts
from equipoise.evidence import decode
from equipoise.metrics import representation
from equipoise.mitigate.measuring import (
    ACCURACY,
    Measured,
    Numbers,
    embed_images,
    queries_of,
    text_vectors,
)
from equipoise.mitigate.sets import ImageSets, SubjectTexts
from equipoise.models.generators import ImageGenerator, Sampling
from equipoise.models.protocols import DualEncoder
from equipoise.models.wrapped import unit_vectors

SHARE_GAP, SIMILARITY, PRECISION = "share_gap", "prompt_similarity", "image_precision"
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
        """Return the same with the labelled images of some subjects alone."""
        return replace(self, images=self.images.of(subjects))

    def measure(
        self,
        model: ImageGenerator,
        *,
        only: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Measured:
        """Measure a generator on images of the neutral prompts of subjects.

        Returns
        -------
        Measured
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
        asked = [(text, name) for name in subjects for text in self.texts[name].neutral]
        prompts, names = map(list, zip(*asked, strict=True))
        table = pa.table({"prompt_id": prompts, "prompt": prompts, "subject": names})
        made = generate_prompts(
            table, model, self.store, images=self.count, seed=self.seed, sampling=self.sampling,
            progress=progress,
        )  # fmt: skip
        rows = {row["image_id"]: row for row in made.table.to_pylist()}
        shown = made.pictures.ids.tolist()
        said = [rows[name]["prompt"] for name in shown]
        owner = np.array([rows[name]["subject"] for name in shown], dtype=object)
        pictures = [decode(made.pictures.read(place)) for place in range(len(shown))]
        vectors = unit_vectors(embed_images(self.probe, pictures, progress))
        near = np.einsum("nd,nd->n", vectors, text_vectors(self.probe, said))
        known = self._labelled[np.isin(self.images.subject.astype(str), subjects)]
        numbers = {
            ACCURACY: self._named(vectors) == owner,
            SIMILARITY: near,
            PRECISION: within(vectors, known),
        }
        utility = {
            (measure, ABOUT): dict.fromkeys(rows, math.nan)
            | dict(zip(shown, own.astype(np.float64).tolist(), strict=True))
            for measure, own in numbers.items()
        }
        bias: Numbers = {}
        chance: Numbers = {}
        for name, told in self.read(vectors, owner).items():
            values = {row[name] for own in self.texts.values() for row in own.values}
            for subject in subjects:
                own = told[owner == subject].tolist()
                found = representation(own, dict.fromkeys(values, 1.0)) if own else None
                level = found.chance.mean if found and found.chance else math.nan
                bias.setdefault((SHARE_GAP, name), {})[subject] = found.value if found else math.nan
                chance.setdefault((SHARE_GAP, name), {})[subject] = level
        return Measured(bias, utility, chance)

    def read(self, vectors: Floats, owner: Objects) -> dict[str, Objects]:
        """Return the value of each attribute that images show, by the probe.

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
        told = {name: np.full(len(owner), None, dtype=object) for name in self.images.attributes}
        for subject in {*owner.tolist()}:
            own, rows = self.texts[subject], owner == subject
            captions = queries_of(self.probe, [[text] for text in own.attributed])
            logits = (self.probe.info.scale or 100.0) * vectors[rows] @ captions.T
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            for name, values in told.items():
                said = np.array([row[name] for row in own.values], dtype=object)
                names = np.array(sorted({*said.tolist()}), dtype=object)
                sums = [weights[:, said == value].mean(axis=1) for value in names]
                values[rows] = names[np.argmax(sums, axis=0)]
        return told

    def errors(self) -> dict[str, float]:
        """Return the share of labelled images that the probe reads wrong, by attribute."""
        shown = {"subject": self.images.subject, **self.images.attributes}
        told = {
            "subject": self._named(self._labelled),
            **self.read(self._labelled, self.images.subject),
        }
        return {name: float((told[name] != own).mean()) for name, own in shown.items()}

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know of the probe."""
        wrong = ", ".join(f"{name} {number(100 * x, 1)} %" for name, x in self.errors().items())
        return (
            "A probe reads what generated images show, and shares are not corrected for its "
            f"errors. On labelled images it is wrong about {wrong}.",
        )

    def _named(self, vectors: Floats) -> Objects:
        """Return the subject whose neutral prompts are nearest to each image."""
        prompts = queries_of(self.probe, [own.neutral for own in self.texts.values()])
        named: Objects = np.array([*self.texts], dtype=object)[(vectors @ prompts.T).argmax(axis=1)]
        return named

    @cached_property
    def _labelled(self) -> Floats:
        return unit_vectors(embed_images(self.probe, self.images.images))


def within(vectors: Floats, reference: Floats) -> Any:
    """Return whether vectors lie among others: nearer to one than its third neighbour does.

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
