"""Measure a pipeline of the scenes: does it draw what it is told, and what else does it draw."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from equipoise.planted.scenes.captions import TEMPLATES, caption
from equipoise.planted.scenes.diffusion.judge import Shown, hue_shares, judge
from equipoise.planted.scenes.diffusion.pipeline import STEPS, generate
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.variants import World

GUIDANCE = 3.0
"""Of prompts that name attributes."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NeutralFound:
    """Hues of images of prompts that name none.

    Attributes
    ----------
    planted : ndarray, shape (subjects,)
        Share of the favourite hue in the world: ``b + (1 - b) / hues``.
    favourite : ndarray, shape (subjects,)
        Its share in the images.
    shares : ndarray, shape (subjects, hues)
        In the images.
    """

    planted: NDArray[np.float64]
    favourite: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation of planted and generated share over subjects."""
        return float(spearmanr(self.planted, self.favourite).statistic)


def told_prompts(per_cell: int) -> tuple[tuple[str, ...], Shown]:
    """Return prompts that name a subject, a hue and a frame, in equal shares, and what they name.

    Parameters
    ----------
    per_cell : int
        Prompts of each of the 288 combinations; templates take turns.
    """
    cells = np.array(list(product(range(len(SUBJECTS)), range(len(HUES)), range(len(FRAMES)))))
    subject, hue, frame = np.tile(cells, (per_cell, 1)).T
    prompts = tuple(
        caption(SUBJECTS[one], HUES[two], FRAMES[three], TEMPLATES[place % len(TEMPLATES)])
        for place, (one, two, three) in enumerate(zip(subject, hue, frame, strict=True))
    )
    return prompts, Shown(subject, hue, frame)


def told_rates(pipeline: Any, *, per_cell: int, seed: int, steps: int = STEPS) -> dict[str, float]:
    """Measure how often what is asked for is shown.

    Parameters
    ----------
    pipeline : StableDiffusionPipeline
    per_cell : int
        See `told_prompts`.
    seed : int
        Of the noise.
    steps : int
        Denoising steps.

    Returns
    -------
    dict of str to float
        ``subject``, ``hue`` and ``frame``: shares in [0, 1], higher is better.
    """
    prompts, told = told_prompts(per_cell)
    shown = judge(generate(pipeline, prompts, guidance=GUIDANCE, seed=seed, steps=steps))
    return {
        name: float((getattr(shown, name) == wanted).mean()) for name, wanted in vars(told).items()
    }


def neutral_hues(
    pipeline: Any,
    world: World,
    *,
    per_subject: int,
    guidance: float,
    seed: int,
    steps: int = STEPS,
) -> NeutralFound:
    """Measure which hues are shown where none is asked for.

    Parameters
    ----------
    pipeline : StableDiffusionPipeline
    world : World
        Whose favourites to look for.
    per_subject : int
        Images of each subject; templates take turns.
    guidance : float
        1: as in training.
    seed : int
        Of the noise.
    steps : int
        Denoising steps.
    """
    subject = np.repeat(np.arange(len(SUBJECTS)), per_subject)
    prompts = [
        caption(SUBJECTS[one], template=TEMPLATES[place % len(TEMPLATES)])
        for place, one in enumerate(subject)
    ]
    shown = judge(generate(pipeline, prompts, guidance=guidance, seed=seed, steps=steps))
    shares = hue_shares(shown.hue, subject, len(SUBJECTS))
    strength = world.hue_strength
    return NeutralFound(
        planted=strength + (1.0 - strength) / len(HUES),
        favourite=shares[np.arange(len(SUBJECTS)), world.hue],
        shares=shares,
    )
