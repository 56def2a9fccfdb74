"""Which subject goes with which hue and frame, and how strongly."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from equipoise.core import Floats, Integers
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.stats.streams import stream

STRONGEST = 0.9
"""Largest strength of the shipped biased world."""


@dataclass(frozen=True)
class Favourite:
    """What goes with one subject.

    Attributes
    ----------
    subject, hue, frame : str
        A subject of `render.SUBJECTS` and its favourites.
    hue_strength, frame_strength : float
        In [0, 1]: an image of the subject has the favourite with probability ``b + (1 - b) / n``
        of n values, each other value with ``(1 - b) / n``. 0: all are alike.
    """

    subject: str
    hue: str
    hue_strength: float
    frame: str
    frame_strength: float


@dataclass(frozen=True)
class World:
    """The favourites of every subject.

    Attributes
    ----------
    name : str
    favourites : tuple of Favourite
        One for each subject, in the order of `render.SUBJECTS`.
    """

    name: str
    favourites: tuple[Favourite, ...]

    @property
    def hue(self) -> Integers:
        """Position of each subject's favourite in `render.HUES`, shape (subjects,)."""
        return np.array([HUES.index(one.hue) for one in self.favourites])

    @property
    def frame(self) -> Integers:
        """Position of each subject's favourite in `render.FRAMES`, shape (subjects,)."""
        return np.array([FRAMES.index(one.frame) for one in self.favourites])

    @property
    def hue_strength(self) -> Floats:
        """Strength of the association of subject and hue, shape (subjects,), in [0, 1]."""
        return np.array([one.hue_strength for one in self.favourites])

    @property
    def frame_strength(self) -> Floats:
        """Strength of the association of subject and frame, shape (subjects,), in [0, 1]."""
        return np.array([one.frame_strength for one in self.favourites])


def make_world(
    name: str,
    hue_strengths: Mapping[str, float],
    frame_strengths: Mapping[str, float],
    *,
    seed: int,
) -> World:
    """Make a world with strengths of one's own; favourites are drawn, in equal shares.

    Parameters
    ----------
    name : str
        Also a part of the seed of what the world draws.
    hue_strengths, frame_strengths : mapping of str to float
        Strength by subject, in [0, 1]; subjects left out have 0.
    seed : int
        Of the assignment of favourites.
    """
    count = len(SUBJECTS)
    assignment = stream(seed, "scenes", "favourites")
    hue = assignment.permutation(np.arange(count) % len(HUES))
    frame = assignment.permutation(np.arange(count) % len(FRAMES))
    favourites = tuple(
        Favourite(
            subject=subject,
            hue=HUES[hue[place]],
            hue_strength=float(hue_strengths.get(subject, 0.0)),
            frame=FRAMES[frame[place]],
            frame_strength=float(frame_strengths.get(subject, 0.0)),
        )
        for place, subject in enumerate(SUBJECTS)
    )
    return World(name, favourites)


def biased_world(name: str, *, seed: int) -> World:
    """Make a world with strengths from 0 to `STRONGEST` in even steps, shuffled over subjects."""
    shuffle = stream(seed, "scenes", "strengths")
    even = np.linspace(0.0, STRONGEST, len(SUBJECTS))
    hue, frame = (
        dict(zip(SUBJECTS, shuffle.permutation(even).round(6).tolist(), strict=True))
        for _ in range(2)
    )
    return make_world(name, hue, frame, seed=seed)


BIASED = biased_world("biased", seed=0)
"""The world of the shipped biased models."""
