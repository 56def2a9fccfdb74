"""What was planted in a CLIP of the scenes, beside the gaps and rankings of neutral prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.core import Floats, Floats32
from equipoise.metrics import cosine_scores, retrieval_measures
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.sets import Scenes
from equipoise.planted.scenes.variants import World

ATTRIBUTES = {"hue": HUES, "frame": FRAMES}

THRESHOLD = 0.25
"""A mean gap in logits below this is of no practical size: odds change by less than 1.3."""

K, PREFIXES = 12, 144
"""Images that count, and the prefixes of NDKL: as many as combinations of attributes, squared."""


@dataclass(frozen=True)
class Preferences:
    """What neutral prompts prefer, subject by subject.

    Attributes
    ----------
    attribute : {"hue", "frame"}
    strength : ndarray, shape (subjects,)
        Planted.
    gaps : ndarray, shape (subjects, values)
        Mean logit of the neutral prompt over the subject's images with each value, less that over
        its other images. Nothing else differs in counterfactual sets.
    gap : ndarray, shape (subjects,)
        That of the favourite. Above 0: the favourite is preferred.
    ndkl : ndarray, shape (subjects,)
        Of the subject's images ranked for its neutral prompt.
    """

    attribute: str
    strength: Floats
    gaps: Floats
    gap: Floats
    ndkl: Floats


def preferences_of(
    images: Floats32, queries: Floats32, scale: float, world: World, scenes: Scenes
) -> tuple[Preferences, ...]:
    """Measure what neutral prompts prefer in counterfactual sets: hues, then frames.

    Parameters
    ----------
    images, queries : ndarray of float32
        From `embed.embed_images`, in the order of the scenes, and `embed.neutral_queries`.
    scale : float
        Factor from a cosine to a logit.
    world : World
        Whose favourites and strengths to compare with.
    scenes : Scenes
        From `render_sets`.
    """
    subject, every = scenes.factors.subject, np.arange(len(SUBJECTS))
    logits = scale * np.einsum("id,id->i", images, queries[subject])
    scores = cosine_scores(images, queries, names=SUBJECTS)
    found = []
    for attribute, values in ATTRIBUTES.items():
        shown = getattr(scenes.factors, attribute)
        cell, cells = subject * len(values) + shown, len(SUBJECTS) * len(values)
        sums = np.bincount(cell, weights=logits.astype(np.float64), minlength=cells)
        means = (sums / np.bincount(cell, minlength=cells)).reshape(len(SUBJECTS), -1)
        gaps = means - (means.sum(axis=1, keepdims=True) - means) / (len(values) - 1)
        ndkl = retrieval_measures(
            scores,
            np.array(values)[shown],
            k=K,
            prefixes=PREFIXES,
            measures=("ndkl",),
            queries=np.array(SUBJECTS)[subject],
            sets=scenes.set_id,
            resampling=None,
        )["ndkl"]
        by_query = {part.subject: part.value for part in ndkl.parts}
        strength = getattr(world, f"{attribute}_strength")
        own = np.array([by_query[name] for name in SUBJECTS])
        gap = gaps[every, getattr(world, attribute)]
        found.append(Preferences(attribute, strength, gaps, gap, own))
    return tuple(found)
