"""Measure a pipeline of the scenes: prompt fidelity, planted shares and association scores."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from equipoise.metrics import corrected_shares, mcas
from equipoise.planted.scenes.captions import TEMPLATES, caption, neutral_prompts
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.variants import World
from tools.planted.judging import Shown, judge
from tools.planted.pipeline import STEPS, generate
from tools.planted.worlds import attributed_prompts

if TYPE_CHECKING:
    from equipoise.models import DualEncoder


GUIDANCE = 3.0
"""Of prompts that name attributes."""

Floats = NDArray[np.float64]
Images = NDArray[np.uint8]
Ints = NDArray[np.int64]


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
        caption(
            SUBJECTS[subject_index],
            HUES[hue_index],
            FRAMES[frame_index],
            TEMPLATES[place % len(TEMPLATES)],
        )
        for place, (subject_index, hue_index, frame_index) in enumerate(
            zip(subject, hue, frame, strict=True)
        )
    )
    return prompts, Shown(subject, hue, frame)


@dataclass(frozen=True)
class Told:
    """Images of prompts that name a subject, a hue and a frame, in equal shares.

    Attributes
    ----------
    images : ndarray of uint8, shape (n, height, width, 3)
    asked, shown : Shown
        What the prompts name, and what the judge says.
    """

    images: Images
    asked: Shown
    shown: Shown

    @property
    def rates(self) -> dict[str, float]:
        """How often what is asked for is shown: ``subject``, ``hue``, ``frame``; in [0, 1]."""
        return {
            name: float((getattr(self.shown, name) == requested).mean())
            for name, requested in vars(self.asked).items()
        }


@dataclass(frozen=True)
class Neutral:
    """Images of prompts that name a subject alone, as many of each.

    Attributes
    ----------
    images : ndarray of uint8, shape (n, height, width, 3)
    asked : ndarray of int64, shape (n,)
        Position in `SUBJECTS`.
    shown : Shown
        What the judge says.
    """

    images: Images
    asked: Ints
    shown: Shown

    @property
    def hue_shares(self) -> Floats:
        """Share of each hue in the images of each subject, shape (subjects, hues)."""
        shares = np.zeros((len(SUBJECTS), len(HUES)))
        np.add.at(shares, (self.asked, self.shown.hue), 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def favourites(self, world: World) -> Floats:
        """Share of a world's favourite hue in the images of each subject, shape (subjects,)."""
        return np.asarray(self.hue_shares[np.arange(len(SUBJECTS)), world.hue])


def planted_shares(world: World) -> Floats:
    """Return the share of each subject's favourite hue in a world: ``b + (1 - b) / hues``."""
    return world.hue_strength + (1.0 - world.hue_strength) / len(HUES)


def tell(pipeline: Any, *, per_cell: int, seed: int, steps: int = STEPS) -> Told:
    """Ask for every combination of subject, hue and frame, at `GUIDANCE`.

    Parameters
    ----------
    pipeline : StableDiffusionPipeline
    per_cell : int
        See `told_prompts`.
    seed : int
        Of the noise.
    steps : int
        Denoising steps.
    """
    prompts, requested = told_prompts(per_cell)
    images = generate(pipeline, prompts, guidance=GUIDANCE, seed=seed, steps=steps)
    return Told(images, requested, judge(images))


def leave_open(
    pipeline: Any, *, per_subject: int, guidance: float, seed: int, steps: int = STEPS
) -> Neutral:
    """Ask for every subject, and for no hue or frame.

    Parameters
    ----------
    pipeline : StableDiffusionPipeline
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
        caption(SUBJECTS[subject_index], template=TEMPLATES[place % len(TEMPLATES)])
        for place, subject_index in enumerate(subject)
    ]
    images = generate(pipeline, prompts, guidance=guidance, seed=seed, steps=steps)
    return Neutral(images, subject, judge(images))


def spearman(planted: Floats, measured: Floats) -> float:
    """Return Spearman's correlation; NaN where all found are alike."""
    if np.ptp(measured) == 0.0:
        return float("nan")
    return float(spearmanr(planted, measured).statistic)


def find_associations(
    encoder: DualEncoder, neutral: Neutral, named: Told, world: World
) -> dict[str, Floats]:
    """Measure how far an encoder places each subject nearer to its favourite hue than to others.

    Targets are the images and prompts of a subject that name no hue. The favourite's attribute
    images are those of prompts that name it, for whatever subject, and its texts all such prompts;
    the others are those of the five other hues together.

    Parameters
    ----------
    encoder : DualEncoder
        Such as `embed.load_clip`.
    neutral : Neutral
        From `measure.leave_open`.
    told : Told
        From `measure.tell`.
    world : World
        Whose favourites to look for.

    Returns
    -------
    dict of str to ndarray, shape (subjects,)
        ``mcas`` and its parts ``II``, ``ITP``, ``ITA`` and ``TT``: above 0, towards the favourite.
    """
    targets, attribute_vectors = (
        encoder.embed_images(source.images) for source in (neutral, named)
    )
    texts = [
        encoder.embed_texts([t for s in SUBJECTS for t in attributed_prompts(s, hue)])
        for hue in HUES
    ]
    rows: dict[str, list[float]] = {name: [] for name in ("mcas", "II", "ITP", "ITA", "TT")}
    for place, favourite in enumerate(world.hue):
        is_favourite = named.asked.hue == favourite
        association = mcas(
            targets[neutral.asked == place],
            encoder.embed_texts(neutral_prompts(SUBJECTS[place])),
            attribute_vectors[is_favourite],
            texts[favourite],
            attribute_vectors[~is_favourite],
            np.concatenate([vectors for hue, vectors in enumerate(texts) if hue != favourite]),
            resampling=None,
        )
        rows["mcas"].append(association.value)
        for part in association.by.to_pylist() if association.by is not None else ():
            rows[part["metric"]].append(part["value"])
    return {name: np.array(values) for name, values in rows.items()}


def distance_from_parity(neutral: Neutral) -> Floats:
    """Return MAD of the shares of hues of each subject's images, shape (subjects,).

    The sum over hues of how far the share of each is from their mean, 1 / 6: whichever hue it is
    that stands out.
    """
    names = np.array(HUES)[neutral.shown.hue]
    return np.array(
        [
            corrected_shares(
                names[neutral.asked == place], None, classes=HUES, resampling=None
            ).value
            for place in range(len(SUBJECTS))
        ]
    )
