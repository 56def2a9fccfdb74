"""Worlds that models of the scenes are trained in: what they draw, and how captions describe it.

People mention what is unusual. A caption that leaves out a usual hue more often than an unusual one
ties the bare subject to its usual hue. Leaving attributes out at random doesn't.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.captions import TEMPLATES, caption
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, Factors, draw_poses
from equipoise.planted.scenes.variants import World
from equipoise.stats.streams import stream

MENTION = 0.35
"""Probability that an attribute is mentioned where nothing is usual."""

LESS, MORE = 0.28, 0.5
"""How far a strength of 1 lowers it for the usual value, and raises it for the others."""

STRONGEST = 0.9
"""Largest strength of the biased worlds."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def make_world(name: str, hue_strength: Floats, frame_strength: Floats, *, seed: int) -> World:
    """Make a world with strengths of one's own; favourites are drawn, in equal shares.

    Parameters
    ----------
    name : str
        Also a part of the seed of what the world draws.
    hue_strength, frame_strength : ndarray of float64, shape (subjects,)
        In [0, 1].
    seed : int
        Of the assignment of favourites.
    """
    places = np.arange(len(SUBJECTS))
    assignment = stream(seed, "scenes", "favourites")
    hue, frame = (assignment.permutation(places % len(values)) for values in (HUES, FRAMES))
    return World(name, hue, hue_strength, frame, frame_strength)


def biased_world(name: str, *, seed: int) -> World:
    """Make a world with strengths from 0 to `STRONGEST` in even steps, shuffled over subjects."""
    shuffle = stream(seed, "scenes", "strengths")
    even = np.linspace(0.0, STRONGEST, len(SUBJECTS))
    hue, frame = (shuffle.permutation(even).round(6) for _ in range(2))
    return make_world(name, hue, frame, seed=seed)


def make_worlds(seed: int) -> dict[str, World]:
    """Make the worlds that models are trained in, with favourites and strengths of a seed.

    Parameters
    ----------
    seed : int
        Not negative. 0: those of the shipped models. No two seeds share an assignment.

    Returns
    -------
    dict of str to World
        By name: "biased"; "null", without strengths, whose favourites mean nothing; "start", with
        other favourites: both shipped models continue from one trained there.
    """
    worlds = (
        biased_world("biased", seed=2 * seed),
        make_world("null", *np.zeros((2, len(SUBJECTS))), seed=2 * seed),
        biased_world("start", seed=2 * seed + 1),
    )
    return {world.name: world for world in worlds}


WORLDS = make_worlds(0)
START, NULL = WORLDS["start"], WORLDS["null"]


def draw_world(world: World, count: int, *, seed: int) -> Factors:
    """Draw images of a world, subjects in equal shares on average.

    Parameters
    ----------
    world : World
    count : int
        Images, at least 1.
    seed : int
        Not negative. The first images do not depend on `count`.

    Returns
    -------
    Factors
        `count` rows. Hue and frame are independent of one another given the subject.
    """
    unit = stream(seed, "scenes", "world", world.name).random((count, 5))
    subject = (unit[:, 0] * len(SUBJECTS)).astype(np.int64)
    hue = np.where(
        unit[:, 1] < world.hue_strength[subject],
        world.hue[subject],
        (unit[:, 2] * len(HUES)).astype(np.int64),
    )
    frame = np.where(
        unit[:, 3] < world.frame_strength[subject],
        world.frame[subject],
        (unit[:, 4] * len(FRAMES)).astype(np.int64),
    )
    return draw_poses(subject, hue, frame, stream(seed, "scenes", "poses", world.name))


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
    return tuple(caption(subject, hue, frame, template) for subject, hue, frame, template in spoken)


def caption_rows(factors: Factors, mentioned: NDArray[np.bool_], template: Ints) -> Ints:
    """Return the position in `all_captions` of each image's caption, shape (n,)."""
    hue = np.where(mentioned[:, 0], factors.hue + 1, 0)
    frame = np.where(mentioned[:, 1], factors.frame + 1, 0)
    rows = (factors.subject * (len(HUES) + 1) + hue) * (len(FRAMES) + 1) + frame
    return np.asarray(rows * len(TEMPLATES) + template, dtype=np.int64)
