"""What was planted in a CLIP of the scenes, beside what is found: gaps, rankings, accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from equipoise.metrics import alignment, cosine_scores, retrieval_measures
from equipoise.planted.scenes.captions import attributed_prompts
from equipoise.planted.scenes.embed import Vectors, embed_groups, embed_images, neutral_queries
from equipoise.planted.scenes.render import (
    FRAMES,
    HUES,
    SUBJECTS,
    Factors,
)
from equipoise.planted.scenes.sets import Scenes, render_balanced
from equipoise.planted.scenes.variants import World
from equipoise.stats.resampling import Permutation

if TYPE_CHECKING:
    from equipoise.models.protocols import DualEncoder

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {"hue": HUES, "frame": FRAMES}

THRESHOLD = 0.25
"""A mean gap in logits below this is of no practical size: odds change by less than 1.3."""

K, PREFIXES = 12, 144
"""Images that count, and the prefixes of NDKL: as many as combinations of attributes, squared."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AttributeFound:
    """What neutral prompts prefer, subject by subject.

    Attributes
    ----------
    attribute : {"hue", "frame"}
    strength : ndarray, shape (subjects,)
        Planted.
    gap : ndarray, shape (subjects,)
        Mean logit of the neutral prompt over the subject's images with the favourite, less that
        over the others; counterfactual sets, so nothing else differs. Above 0: the favourite is
        preferred.
    ndkl : ndarray, shape (subjects,)
        Of the subject's images ranked for its neutral prompt.
    preferences : ndarray, shape (subjects, values)
        The gap of every value of the attribute, favourite or not.
    alignment, p_value : float
        Mean gap of the favourites over all subjects, and its p where which value is a favourite
        is permuted over subjects. Of several values the smallest p, times their number.
    """

    attribute: str
    strength: Floats
    gap: Floats
    ndkl: Floats
    preferences: Floats
    alignment: float
    p_value: float

    @property
    def rank_correlation_gap(self) -> float:
        """Spearman's correlation of strength and gap over subjects; NaN without strengths."""
        return _spearman(self.strength, self.gap)

    @property
    def rank_correlation_ndkl(self) -> float:
        """Spearman's correlation of strength and NDKL over subjects; NaN without strengths."""
        return _spearman(self.strength, self.ndkl)


def find_preferences(clip: DualEncoder, world: World, scenes: Scenes) -> tuple[AttributeFound, ...]:
    """Measure what neutral prompts prefer in counterfactual sets.

    Parameters
    ----------
    clip : DualEncoder
        From `embed.load_clip`.
    world : World
        Whose favourites and strengths to compare with.
    scenes : Scenes
        From `render_sets`.

    Returns
    -------
    tuple of AttributeFound
        Hue and frame.
    """
    images, queries = embed_images(clip, scenes.images), neutral_queries(clip)
    return preferences_of(images, queries, clip.info.scale or 1.0, world, scenes)


def preferences_of(
    images: Vectors, queries: Vectors, scale: float, world: World, scenes: Scenes
) -> tuple[AttributeFound, ...]:
    """Measure what neutral prompts prefer, as `find_preferences` does, from unit vectors.

    Parameters
    ----------
    images, queries : ndarray of float32
        From `embed.embed_images`, in the order of the scenes, and `embed.neutral_queries`.
    scale : float
        What makes a logit of a cosine.
    world : World
    scenes : Scenes
    """
    return tuple(
        _found(attribute, images, queries, scale, world, scenes) for attribute in ATTRIBUTES
    )


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
    found = {"subject": float((named == factors.subject).mean())}
    for attribute, values in ATTRIBUTES.items():
        prompts = [
            attributed_prompts(subject, **{attribute: value})
            for subject in SUBJECTS
            for value in values
        ]
        queries = embed_groups(clip, prompts).reshape(len(SUBJECTS), len(values), -1)
        logits = np.einsum("id,ivd->iv", images, queries[factors.subject])
        found[attribute] = float((logits.argmax(axis=1) == getattr(factors, attribute)).mean())
    return found


def _found(
    attribute: str, images: Vectors, queries: Vectors, scale: float, world: World, scenes: Scenes
) -> AttributeFound:
    values, favourite = ATTRIBUTES[attribute], getattr(world, attribute)
    logits = scale * np.einsum("id,id->i", images, queries[scenes.factors.subject])
    preferences = _preferences(logits.astype(np.float64), scenes.factors, attribute)
    aligned, p_value = _aligned(preferences, favourite)
    return AttributeFound(
        attribute=attribute,
        strength=getattr(world, f"{attribute}_strength"),
        gap=preferences[np.arange(len(SUBJECTS)), favourite],
        ndkl=_ndkl(images, queries, np.array(values)[getattr(scenes.factors, attribute)], scenes),
        preferences=preferences,
        alignment=aligned,
        p_value=p_value,
    )


def _preferences(logits: Floats, factors: Factors, attribute: str) -> Floats:
    """Mean logit of each value less the mean of the other values; the sets are balanced."""
    values = len(ATTRIBUTES[attribute])
    cell = factors.subject * values + getattr(factors, attribute)
    count = np.bincount(cell, minlength=len(SUBJECTS) * values)
    means = (np.bincount(cell, weights=logits) / count).reshape(len(SUBJECTS), values)
    others = (means.sum(axis=1, keepdims=True) - means) / (values - 1)
    return np.asarray(means - others)


def _ndkl(images: Vectors, queries: Vectors, groups: NDArray[np.str_], scenes: Scenes) -> Floats:
    own = np.array(SUBJECTS)[scenes.factors.subject]
    found = retrieval_measures(
        cosine_scores(images, queries, names=SUBJECTS),
        groups,
        k=K,
        prefixes=PREFIXES,
        measures=("ndkl",),
        queries=own,
        sets=scenes.set_id,
        resampling=None,
    )["ndkl"]
    rows = found.by.to_pylist() if found.by is not None else ()
    by_query = {row["subject"]: row["value"] for row in rows}
    return np.array([by_query[subject] for subject in SUBJECTS])


def _aligned(preferences: Floats, favourite: NDArray[np.int64]) -> tuple[float, float]:
    """Whether the values called favourites are preferred, where another subject's are not."""
    subjects, values = preferences.shape
    tested = range(values) if values > 2 else range(1)
    p_values = [
        alignment(
            preferences[:, value],
            np.where(favourite == value, 1.0, -1.0),
            resampling=Permutation(9999),
        ).p_value
        for value in tested
    ]
    smallest = min(float(one) for one in p_values if one is not None)
    mean = float(preferences[np.arange(subjects), favourite].mean())
    return mean, min(1.0, smallest * len(p_values))


def _spearman(strength: Floats, found: Floats) -> float:
    if len(set(strength.tolist())) == 1:
        return float("nan")
    return float(spearmanr(strength, found).statistic)
