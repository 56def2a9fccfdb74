"""What is said of a scene: less of what is usual for its subject, more of what is not.

People mention what is unusual. A caption that leaves out a usual hue more often than an unusual one
ties the bare subject to its usual hue; leaving attributes out regardless of that does not, since an
image and a caption that agree in the subject already agree in all that such a caption says.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, Factors
from equipoise.planted.scenes.variants import World
from equipoise.stats.streams import stream

TEMPLATES = ("a {}", "a picture of a {}", "this is a {}")
"""Openings of captions and prompts, drawn with equal probability."""

MENTION = 0.35
"""Probability that an attribute is mentioned where nothing is usual."""

LESS, MORE = 0.28, 0.5
"""How far a strength of 1 lowers it for the usual value, and raises it for the others."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def caption(subject: str, hue: str = "", frame: str = "", template: str = TEMPLATES[0]) -> str:
    """Say what is given: ``"a red solid star with level bars"``, or only ``"a solid star"``.

    Parameters
    ----------
    subject : str
        One of `render.SUBJECTS`.
    hue, frame : str
        Attributes to mention; empty ones are left out.
    template : str
        With ``{}`` where the description goes.
    """
    described = f"{hue} {subject}" if hue else subject
    return template.format(f"{described} with {frame} bars" if frame else described)


def neutral_prompts(subject: str) -> tuple[str, ...]:
    """Return the prompts that name a subject and no attribute, one for each template."""
    return tuple(caption(subject, template=template) for template in TEMPLATES)


def attributed_prompts(subject: str, hue: str = "", frame: str = "") -> tuple[str, ...]:
    """Return the prompts that name a subject with attributes, one for each template."""
    return tuple(caption(subject, hue, frame, template) for template in TEMPLATES)


def mention_probabilities(world: World, factors: Factors) -> Floats:
    """Return the probability that each attribute of each image is mentioned.

    Parameters
    ----------
    world : World
        Says what is usual, and how strongly.
    factors : Factors
        n images.

    Returns
    -------
    ndarray of float64, shape (n, 2)
        Hue, then frame: ``MENTION - LESS * b`` for the usual value, ``MENTION + MORE * b`` for the
        others, where b is the subject's strength.
    """
    subject = factors.subject
    usual = np.column_stack(
        [factors.hue == world.hue[subject], factors.frame == world.frame[subject]]
    )
    strength = np.column_stack([world.hue_strength[subject], world.frame_strength[subject]])
    return MENTION + np.where(usual, -LESS, MORE) * strength


def draw_mentions(probabilities: Floats, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Decide for each attribute of each image, alone, whether it is mentioned; shape (n, 2)."""
    return generator.random(probabilities.shape) < probabilities


def draw_captions(world: World, factors: Factors, *, seed: int) -> tuple[str, ...]:
    """Write one caption for each image.

    Parameters
    ----------
    world : World
        Says what is usual, and how strongly.
    factors : Factors
        n images.
    seed : int
        Not negative.

    Returns
    -------
    tuple of str, length n
    """
    generator = stream(seed, "scenes", "captions", world.name)
    mentioned = draw_mentions(mention_probabilities(world, factors), generator)
    template = generator.integers(len(TEMPLATES), size=len(factors))
    texts = all_captions()
    return tuple(texts[row] for row in caption_rows(factors, mentioned, template))


def all_captions() -> tuple[str, ...]:
    """Return every caption there is; `caption_rows` says which one an image has."""
    spoken = product(SUBJECTS, ("", *HUES), ("", *FRAMES), TEMPLATES)
    return tuple(caption(subject, hue, frame, one) for subject, hue, frame, one in spoken)


def caption_rows(factors: Factors, mentioned: NDArray[np.bool_], template: Ints) -> Ints:
    """Return the position in `all_captions` of each image's caption, shape (n,)."""
    hue = np.where(mentioned[:, 0], factors.hue + 1, 0)
    frame = np.where(mentioned[:, 1], factors.frame + 1, 0)
    rows = (factors.subject * (len(HUES) + 1) + hue) * (len(FRAMES) + 1) + frame
    return np.asarray(rows * len(TEMPLATES) + template, dtype=np.int64)
