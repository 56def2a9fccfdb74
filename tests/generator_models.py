"""A quick model that makes images, for tests; `python:generator_models:…` names it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from equipoise.counterfactuals import caption_sets
from equipoise.models import ModelInfo

Image = NDArray[np.uint8]


def info(name="python:generator_models:swatches"):
    return ModelInfo(name, "swatches", weights_sha256="0" * 64)


def swatch(prompt, seed):
    """What is made of a prompt and a seed: a test can compute it by itself."""
    digest = sha256(f"{prompt}\0{seed}".encode()).digest()
    return np.frombuffer(digest[:27], dtype=np.uint8).reshape(3, 3, 3)


@dataclass
class Swatches:
    """Makes swatches; `act` may raise, or return None to refuse."""

    info: ModelInfo = field(default_factory=info)
    act: Callable[[str, Image], Image | None] = lambda _, image: image
    asked: list[int] = field(default_factory=list)
    controls: list[Any] = field(default_factory=list)

    def generate(self, prompts, *, seeds, sampling):
        self.asked.append(len(prompts))
        pairs = zip(prompts, seeds, strict=True)
        return [self.act(prompt, swatch(prompt, seed)) for prompt, seed in pairs]

    def check_control(self):
        pass

    def tokens(self, prompts):
        words = [[sum(word.encode()) for word in prompt.split()] for prompt in prompts]
        return [(*codes, *[0] * (16 - len(codes))) for codes in words]

    def room(self, sampling):
        return 8

    def generate_with(self, prompts, *, seeds, sampling, attention):
        attention.begin(sampling.steps)
        self.controls.append(attention)
        return self.generate(prompts, seeds=seeds, sampling=sampling)


def swatches(*, device, dtype):
    return Swatches()


def captions(subjects=4):
    """Sets of six captions."""
    words = ["doctor", "umpire", "nurse", "chef", "pilot", "clerk", "judge", "baker"]
    values = {"race": ["Asian", "Black", "White"], "gender": ["male", "female"]}
    return caption_sets(words[:subjects], values)


def prompts(count=5):
    """Prompts with a column of their own."""
    ids = [f"p{place}" for place in range(count)]
    texts = [f"a photo of {place} people" for place in range(count)]
    return pa.table({"prompt_id": ids, "prompt": texts, "people": [*range(count)]})
