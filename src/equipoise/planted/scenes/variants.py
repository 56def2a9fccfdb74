"""Which subject goes with which hue and frame, and how strongly."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equipoise.core import Floats, Integers, record
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS


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


@record
class World:
    """The favourites of every subject, in the order of `render.SUBJECTS`.

    Attributes
    ----------
    name : str
        Also a part of the seed of what the world draws.
    hue, frame : ndarray of int64, shape (subjects,)
        Position of each subject's favourite in `render.HUES` and `render.FRAMES`.
    hue_strength, frame_strength : ndarray of float64, shape (subjects,)
        Strength of the association of subject and favourite, in [0, 1].
    """

    name: str
    hue: Integers
    hue_strength: Floats
    frame: Integers
    frame_strength: Floats

    @property
    def favourites(self) -> tuple[Favourite, ...]:
        """The favourites by name, one for each subject."""
        hues, frames = np.array(HUES)[self.hue].tolist(), np.array(FRAMES)[self.frame].tolist()
        strengths = self.hue_strength.tolist(), self.frame_strength.tolist()
        return tuple(map(Favourite, SUBJECTS, hues, strengths[0], frames, strengths[1]))


_TABLE = Path(__file__).with_name("favourites.csv")
_HUE, _HUE_STRENGTH, _FRAME, _FRAME_STRENGTH = np.loadtxt(
    _TABLE, delimiter=",", skiprows=1, unpack=True
)
BIASED = World(
    "biased", _HUE.astype(np.int64), _HUE_STRENGTH, _FRAME.astype(np.int64), _FRAME_STRENGTH
)
"""The world of the shipped biased models; `tools.planted.worlds` drew it."""
