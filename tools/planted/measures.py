"""Measures of the shipped models of the scenes: preferences, accuracy, and the classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from equipoise.audits.demonstrating import PREFIXES, K
from equipoise.core import Floats
from equipoise.metrics import alignment, cosine_scores, retrieval_measures
from equipoise.models import load_model
from equipoise.models.onnx import OnnxClassifier, load_onnx_classifier
from equipoise.planted.scenes.embed import WEIGHTS, embed_groups, embed_images, neutral_queries
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.sets import Scenes, render_balanced
from equipoise.planted.scenes.variants import World
from equipoise.stats import Permutation
from tools.planted.worlds import attributed_prompts

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


def load_cnn(name: str, weights: Path = WEIGHTS) -> OnnxClassifier:
    """Load a convolutional network of the scenes, "biased" or "null"; it names `SUBJECTS`."""
    return load_onnx_classifier(weights / f"cnn-{name}.onnx", SUBJECTS)


def load_classifiers(weights: Path = WEIGHTS) -> dict[str, Any]:
    """Load the convolutional networks and ViTs that lie in a folder; they name `SUBJECTS`."""
    return {
        path.stem: load_model(f"{kind}:{path}", device="cpu", dtype="float32")
        for kind, pattern in (("onnx", "cnn-*.onnx"), ("hf", "vit-*"))
        for path in sorted(weights.glob(pattern))
    }


ATTRIBUTES = {"hue": HUES, "frame": FRAMES}


@dataclass(frozen=True)
class Preferences:
    """What neutral prompts prefer, subject by subject, beside what was planted.

    Attributes
    ----------
    strength : ndarray, shape (subjects,)
        Planted.
    gaps : ndarray, shape (subjects, values)
        Mean logit of the neutral prompt over the subject's images with each value, less that over
        its other images. Nothing else differs in counterfactual sets.
    gap : ndarray, shape (subjects,)
        That of the favourite. Above 0: the favourite is preferred.
    ndkl : ndarray, shape (subjects,)
        Of the subject's images ranked for its neutral prompt.
    p_value : float
        Of the mean gap of the favourites, where which value is a favourite is permuted over
        subjects. Of several values the smallest p, times their number.
    """

    strength: Floats
    gaps: Floats
    gap: Floats
    ndkl: Floats
    p_value: float

    @property
    def rank_correlation_gap(self) -> float:
        """Spearman's correlation of strength and gap over subjects."""
        return float(spearmanr(self.strength, self.gap).statistic)

    @property
    def rank_correlation_ndkl(self) -> float:
        """Spearman's correlation of strength and NDKL over subjects."""
        return float(spearmanr(self.strength, self.ndkl).statistic)


def find_preferences(clip: DualEncoder, world: World, scenes: Scenes) -> dict[str, Preferences]:
    """Measure what neutral prompts prefer in counterfactual sets, by attribute: hue and frame.

    Parameters
    ----------
    clip : DualEncoder
    world : World
        Whose favourites and strengths to compare with.
    scenes : Scenes
        From `render_sets`.
    """
    images, queries = embed_images(clip, scenes.images), neutral_queries(clip)
    subject, indices = scenes.factors.subject, np.arange(len(SUBJECTS))
    logits = (clip.info.scale or 1.0) * np.einsum("id,id->i", images, queries[subject])
    scores = cosine_scores(images, queries, names=SUBJECTS)
    preferences = {}
    for attribute, values in ATTRIBUTES.items():
        codes = getattr(scenes.factors, attribute)
        cell, cells = subject * len(values) + codes, len(SUBJECTS) * len(values)
        sums = np.bincount(cell, weights=logits.astype(np.float64), minlength=cells)
        means = (sums / np.bincount(cell, minlength=cells)).reshape(len(SUBJECTS), -1)
        gaps = means - (means.sum(axis=1, keepdims=True) - means) / (len(values) - 1)
        ndkl = retrieval_measures(
            scores,
            np.array(values)[codes],
            k=K,
            prefixes=PREFIXES,
            measures=("ndkl",),
            queries=np.array(SUBJECTS)[subject],
            sets=scenes.set_id,
            resampling=None,
        )["ndkl"]
        by_query = {part.subject: part.value for part in ndkl.parts}
        favourite = getattr(world, attribute)
        preferences[attribute] = Preferences(
            getattr(world, f"{attribute}_strength"),
            gaps,
            gaps[indices, favourite],
            np.array([by_query[name] for name in SUBJECTS]),
            _p_value(gaps, favourite),
        )
    return preferences


def _p_value(gaps: NDArray[np.float64], favourite: NDArray[np.int64]) -> float:
    """Whether the values called favourites are preferred, where another subject's are not."""
    values = gaps.shape[1]
    p_values: list[Any] = [
        alignment(
            gaps[:, value],
            np.where(favourite == value, 1.0, -1.0),
            resampling=Permutation(9999),
        ).p_value
        for value in (range(values) if values > 2 else range(1))
    ]
    return min(1.0, float(min(p_values)) * len(p_values))


def accuracies(clip: DualEncoder, *, per_cell: int = 10, seed: int = 1) -> dict[str, float]:
    """Measure zero-shot accuracy on balanced held-out images.

    Returns
    -------
    dict of str to float
        ``subject`` by neutral prompts; ``hue`` and ``frame`` by prompts that name the subject
        with each value.
    """
    scenes = render_balanced(per_cell, seed=seed)
    images, factors = embed_images(clip, scenes.images), scenes.factors
    named = (images @ neutral_queries(clip).T).argmax(axis=1)
    results = {"subject": float((named == factors.subject).mean())}
    for attribute, values in ATTRIBUTES.items():
        prompts = [
            attributed_prompts(subject, **{attribute: value})
            for subject in SUBJECTS
            for value in values
        ]
        queries = embed_groups(clip, prompts).reshape(len(SUBJECTS), len(values), -1)
        logits = np.einsum("id,ivd->iv", images, queries[factors.subject])
        results[attribute] = float((logits.argmax(axis=1) == getattr(factors, attribute)).mean())
    return results
