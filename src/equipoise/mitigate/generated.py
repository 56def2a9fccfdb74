"""Measures of a generator before and after: shares, prompt fit and image quality, by a probe."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from equipoise.core import Floats, Objects, Positions, Progress, record
from equipoise.counterfactuals import generate_prompts
from equipoise.evidence import decode
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
from equipoise.stats.streams import stream

SHARE_GAP, SIMILARITY, PRECISION = "share_gap", "prompt_similarity", "image_precision"
ABOUT = "generated images"
_CHANCE_DRAWS = 4000
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
    """

    images: ImageSets
    texts: Mapping[str, SubjectTexts]
    probe: DualEncoder
    sampling: Sampling
    count: int
    store: Path
    seed: int = 0

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
        asked = [(name, text) for name in subjects for text in self.texts[name].neutral]
        ids = [f"{place:05d}" for place in range(len(asked))]
        names, prompts = (list(column) for column in zip(*asked, strict=True))
        table = pa.table({"prompt_id": ids, "prompt": prompts})
        made = generate_prompts(
            table, model, self.store, images=self.count, seed=self.seed, sampling=self.sampling,
            progress=progress,
        )  # fmt: skip
        rows = {row["image_id"]: row for row in made.table.to_pylist()}
        order = [rows[name] for name in made.pictures.ids]
        of = np.array([int(row["prompt_id"]) for row in order], dtype=np.int64)
        pictures = [decode(made.pictures.read(place)) for place in range(len(order))]
        vectors = unit_vectors(embed_images(self.probe, pictures, progress))
        owner = np.array([*names, None], dtype=object)[:-1][of]
        bias, chance = self._shares(subjects, owner, vectors)
        right = self._named(vectors) == owner
        near = np.einsum("nd,nd->n", vectors, text_vectors(self.probe, prompts)[of])
        known = self._labelled[np.isin(self.images.subject.astype(str), subjects)]
        values = {ACCURACY: right, SIMILARITY: near, PRECISION: within(vectors, known)}
        every = [f"{row['prompt']} #{row['candidate']}" for row in rows.values()]
        units = [f"{row['prompt']} #{row['candidate']}" for row in order]
        utility: Numbers = {
            (measure, ABOUT): dict.fromkeys(every, math.nan)
            | dict(zip(units, numbers.astype(np.float64).tolist(), strict=True))
            for measure, numbers in values.items()
        }
        return Measured(bias, utility, chance)

    def _shares(
        self, subjects: Sequence[str], owner: Objects, vectors: Floats
    ) -> tuple[Numbers, Numbers]:
        gaps: Numbers = {(SHARE_GAP, name): {} for name in self.images.attributes}
        chance: Numbers = {key: {} for key in gaps}
        for subject in subjects:
            read = self.read(subject, vectors[owner == subject])
            for name, (places, values) in read.items():
                n, k = len(places), len(values)
                key, equal = (SHARE_GAP, name), np.full(k, 1.0 / k)
                counts = stream(self.seed, "mitigate", "chance", n, k).multinomial(
                    n, equal, size=_CHANCE_DRAWS
                )
                both = (np.bincount(places, minlength=k)[None], counts)
                gaps[key][subject], chance[key][subject] = (
                    math.nan if n == 0 else float(np.abs(c / n - equal).max(axis=1).mean())
                    for c in both
                )
        return gaps, chance

    def read(self, subject: str, vectors: Floats) -> dict[str, tuple[Positions, list[str]]]:
        """Return the value of each attribute that images of a subject show, by the probe.

        Parameters
        ----------
        subject : str
            Images are compared with its captions alone.
        vectors : ndarray of float64, shape (n, dimension)
            Unit vectors of the images.

        Returns
        -------
        dict of str to (ndarray of int, shape (n,), list of str)
            By attribute: places in the sorted values, and these.
        """
        own = self.texts[subject]
        captions = queries_of(self.probe, [[text] for text in own.attributed])
        logits = (self.probe.info.scale or 100.0) * vectors @ captions.T
        weights = np.exp(logits - logits.max(axis=1, initial=-np.inf, keepdims=True))
        found = {}
        for name in self.images.attributes:
            said = np.array([row[name] for row in own.values])
            values = sorted({*said.tolist()})
            sums = np.stack([weights[:, said == value].mean(axis=1) for value in values], axis=1)
            found[name] = (sums.argmax(axis=1), values)
        return found

    def errors(self) -> dict[str, float]:
        """Return the share of labelled images that the probe reads wrong, by attribute."""
        wrong: dict[str, list[bool]] = {"subject": []}
        wrong["subject"] = (self._named(self._labelled) != self.images.subject).tolist()
        for subject in self.images.subjects:
            rows = np.flatnonzero(self.images.subject == subject)
            for name, (places, values) in self.read(subject, self._labelled[rows]).items():
                shown = self.images.attributes[name][rows]
                wrong.setdefault(name, []).extend(np.array(values, dtype=object)[places] != shown)
        return {name: float(np.mean(rows)) for name, rows in wrong.items()}

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
