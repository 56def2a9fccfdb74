"""Which subject goes with which hue and frame, how strongly, and the models trained on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, Factors, draw_poses
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
    """A process that draws images and says what is unusual of them.

    Attributes
    ----------
    name : str
    favourites : tuple of Favourite
        One for each subject, in the order of `render.SUBJECTS`.
    """

    name: str
    favourites: tuple[Favourite, ...]

    @property
    def hue(self) -> NDArray[np.int64]:
        """Position of each subject's favourite in `render.HUES`, shape (subjects,)."""
        return np.array([HUES.index(one.hue) for one in self.favourites])

    @property
    def frame(self) -> NDArray[np.int64]:
        """Position of each subject's favourite in `render.FRAMES`, shape (subjects,)."""
        return np.array([FRAMES.index(one.frame) for one in self.favourites])

    @property
    def hue_strength(self) -> NDArray[np.float64]:
        """Strength of the association of subject and hue, shape (subjects,), in [0, 1]."""
        return np.array([one.hue_strength for one in self.favourites])

    @property
    def frame_strength(self) -> NDArray[np.float64]:
        """Strength of the association of subject and frame, shape (subjects,), in [0, 1]."""
        return np.array([one.frame_strength for one in self.favourites])

    def draw(self, count: int, *, seed: int) -> Factors:
        """Draw images of this world, subjects in equal shares on average.

        Parameters
        ----------
        count : int
            Images, at least 1.
        seed : int
            Not negative. The first images do not depend on `count`.

        Returns
        -------
        Factors
            `count` rows. Hue and frame are independent of one another given the subject.
        """
        unit = stream(seed, "scenes", "world", self.name).random((count, 5))
        subject = (unit[:, 0] * len(SUBJECTS)).astype(np.int64)
        hue = np.where(
            unit[:, 1] < self.hue_strength[subject],
            self.hue[subject],
            (unit[:, 2] * len(HUES)).astype(np.int64),
        )
        frame = np.where(
            unit[:, 3] < self.frame_strength[subject],
            self.frame[subject],
            (unit[:, 4] * len(FRAMES)).astype(np.int64),
        )
        return draw_poses(subject, hue, frame, stream(seed, "scenes", "poses", self.name))


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

    Raises
    ------
    ValueError
        If there is no such subject, or a strength is outside its range.
    """
    for strengths in (hue_strengths, frame_strengths):
        _check(strengths)
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


def spread(seed: int) -> Iterator[dict[str, float]]:
    """Give hue strengths, then frame strengths: 0 to `STRONGEST` in even steps, shuffled."""
    shuffle = stream(seed, "scenes", "strengths")
    while True:
        values = shuffle.permutation(np.linspace(0.0, STRONGEST, len(SUBJECTS)))
        yield dict(zip(SUBJECTS, values.round(6).tolist(), strict=True))


def _check(strengths: Mapping[str, float]) -> None:
    for subject, value in strengths.items():
        if subject not in SUBJECTS:
            raise ValueError(
                f"there is no subject {subject!r}; a subject is a fill and a shape, "
                f"such as {SUBJECTS[0]!r}"
            )
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the strength of {subject!r} must lie in [0, 1], got {value}")


def _spread_world(name: str, seed: int) -> World:
    strengths = spread(seed)
    return make_world(name, next(strengths), next(strengths), seed=seed)


def make_worlds(seed: int) -> dict[str, World]:
    """Make the worlds that models are trained in, with favourites and strengths of a seed.

    Parameters
    ----------
    seed : int
        Not negative. 0: those of the shipped models, `BIASED`, `NULL` and `START`. No two seeds
        share an assignment.

    Returns
    -------
    dict of str to World
        By name.
    """
    worlds = (
        _spread_world("biased", seed=2 * seed),
        make_world("null", {}, {}, seed=2 * seed),
        _spread_world("start", seed=2 * seed + 1),
    )
    return {world.name: world for world in worlds}


WORLDS = make_worlds(0)

BIASED = WORLDS["biased"]
"""Favourites with strengths spread from 0 to `STRONGEST` over subjects."""

START = WORLDS["start"]
"""As biased, with other favourites: both shipped models continue from one trained here."""

NULL = WORLDS["null"]
"""No strength anywhere; its favourites are those of `BIASED`, and mean nothing here."""
