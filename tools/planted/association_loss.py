"""MCAS of generated images as a loss: what a shift of the prompt's embedding learns from it.

One subject whose images lean to a hue, and a shift of its neutral prompt, learned by the square of
MCAS between two hues. The teacher reads images with gradients; another encoder and the pixels
judge what became of the shares.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.core import Bytes, Floats32
from equipoise.mitigate.trainable import trainable
from equipoise.models.diffusers import DiffusersGenerator
from equipoise.models.generators import Sampling
from equipoise.models.protocols import DualEncoder
from equipoise.planted.scenes.captions import caption, neutral_prompts
from equipoise.planted.scenes.diffusion import load_generator
from equipoise.planted.scenes.embed import CLIPS, embed_groups, embed_images, load_clip
from equipoise.planted.scenes.render import HUES, SUBJECTS
from equipoise.planted.scenes.variants import BIASED
from tools.planted.judging import judge

STEPS, BATCH, SAMPLING = 12, 24, Sampling(steps=8, guidance=1.0)
_PER_HUE, _RATE = 16, 0.05
_ATTRIBUTE_SEED, _TRAINING_SEED, _TEST_SEED = 1_000, 2_000, 3_000


@dataclass(frozen=True)
class Lesson:
    """A subject, two hues, and what makes and reads its images.

    Attributes
    ----------
    subject : str
    generator : DiffusersGenerator
    clips : mapping of str to DualEncoder
    """

    subject: str
    generator: DiffusersGenerator
    clips: Mapping[str, DualEncoder]

    @property
    def hues(self) -> tuple[str, str]:
        """The subject's favourite, and the hue on the other side of the circle."""
        favourite = int(BIASED.hue[SUBJECTS.index(self.subject)])
        return HUES[favourite], HUES[(favourite + len(HUES) // 2) % len(HUES)]

    @property
    def prompt(self) -> str:
        """The neutral prompt."""
        return neutral_prompts(self.subject)[0]

    def make(self, prompts: Sequence[str], seed: int, shift: Any = 0.0) -> Bytes:
        """Return images of prompts, whose embeddings are shifted."""
        images = self.generator.generate(
            prompts, seeds=range(seed, seed + len(prompts)), sampling=SAMPLING,
            embedded=self.generator.embed_prompts(prompts) + shift,
        )  # fmt: skip
        return np.stack([image for image in images if image is not None])

    @cached_property
    def attribute_images(self) -> Bytes:
        """Images of prompts that name the hues, as many of each."""
        prompts = [caption(self.subject, hue) for hue in self.hues for _ in range(_PER_HUE)]
        return self.make(prompts, _ATTRIBUTE_SEED)

    def association(self, clip: str) -> tuple[Floats32, float]:
        """Return the vector whose product with images is II + ITA, and ITP + TT."""
        vectors = embed_images(self.clips[clip], self.attribute_images)
        texts = [[caption(self.subject, hue)] for hue in self.hues]
        first, second, prompt = embed_groups(self.clips[clip], [*texts, [self.prompt]])
        across = vectors[:_PER_HUE].mean(axis=0) - vectors[_PER_HUE:].mean(axis=0)
        across = across + first - second
        return across, float(prompt @ across)

    def learn(self, clip: str, steps: int) -> Any:
        """Return the shift that makes the square of MCAS small in the eyes of an encoder."""
        teacher = trainable(self.clips[clip], "float32")
        teacher.model.requires_grad_(requires_grad=False)
        torch, (across, of_prompt) = teacher.torch, self.association(clip)
        embedded = self.generator.embed_prompts([self.prompt] * BATCH)
        shift = torch.nn.Parameter(torch.zeros(1, 1, embedded.shape[-1]))
        optimizer = torch.optim.Adam([shift], lr=_RATE)
        for step in range(steps):
            first = _TRAINING_SEED + step * BATCH
            pixels = self.generator.differentiable(
                embedded + shift, seeds=range(first, first + BATCH), sampling=SAMPLING,
                gradient_steps=SAMPLING.steps,
            )  # fmt: skip
            vectors = torch.nn.functional.normalize(teacher.pixels(pixels))
            loss = (vectors.mean(dim=0) @ torch.tensor(across) + of_prompt) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return shift.detach()

    def measure(self, images: int, shift: Any = 0.0) -> dict[str, float]:
        """Return MCAS by encoder, shares of hues by the pixels, and images of the subject."""
        pixels = self.make([self.prompt] * images, _TEST_SEED, shift)
        judged, measures = judge(pixels), dict[str, float]()
        for name in CLIPS:
            across, of_prompt = self.association(name)
            vectors = embed_images(self.clips[name], pixels)
            measures[f"mcas_{name}"] = float(vectors.mean(axis=0) @ across) + of_prompt
        for hue in self.hues:
            measures[hue] = float(np.mean(judged.hue == HUES.index(hue)))
        measures["other"] = 1.0 - sum(measures[hue] for hue in self.hues)
        measures["subject"] = float(np.mean(judged.subject == SUBJECTS.index(self.subject)))
        return {name: round(value, 3) for name, value in measures.items()}


def main() -> None:
    """Write the measures of the subjects with the strongest favourites, before and after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=2)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--images", type=int, default=48)
    options = parser.parse_args()
    generator = load_generator(device="cpu", dtype="float32")
    clips = {name: load_clip(name) for name in CLIPS}
    for place in np.argsort(BIASED.hue_strength)[::-1][: options.subjects]:
        lesson = Lesson(SUBJECTS[place], generator, clips)
        before = lesson.measure(options.images)
        for teacher in CLIPS:
            after = lesson.measure(options.images, lesson.learn(teacher, options.steps))
            row = {"subject": lesson.subject, "teacher": teacher, "before": before, "after": after}
            sys.stdout.write(f"{json.dumps(row)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
