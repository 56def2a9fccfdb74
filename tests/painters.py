"""A generator that paints scenes and plants a favourite, so that tests know its shares."""

from dataclasses import dataclass, field

import numpy as np

from equipoise.models import ModelInfo
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS, draw_poses, render


@dataclass
class Painter:
    """Paints the subject of a prompt, the values that it names, and mostly red without a hue.

    Attributes
    ----------
    red : float
        Share of red where no hue is named, beside what equal shares give.
    refused : str
        Prompts with this word give no image.
    """

    red: float = 0.9
    refused: str = "nothing"
    info: ModelInfo = field(
        default_factory=lambda: ModelInfo("python:painters:painter", "painter", "0" * 64)
    )
    asked: list[str] = field(default_factory=list)

    def generate(self, prompts, *, seeds, sampling):
        self.asked += prompts
        return [
            None if self.refused in prompt else self.paint(prompt, seed)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]

    def paint(self, prompt, seed):
        rng = np.random.default_rng(seed)
        hue = 0 if rng.random() < self.red else int(rng.integers(len(HUES)))
        named = (
            next(place for place, subject in enumerate(SUBJECTS) if subject in prompt),
            next((place for place, value in enumerate(HUES) if value in prompt.split()), hue),
            next(
                (place for place, value in enumerate(FRAMES) if value in prompt.split()),
                int(rng.integers(len(FRAMES))),
            ),
        )
        cell = (np.array([code]) for code in named)
        return render(draw_poses(*cell, rng))[0]


def painter(*, device, dtype):
    return Painter()
