"""Small models that pause at every image, so that a kill can meet them anywhere."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.models import ModelInfo
from equipoise.models.generators import Sampling

PAUSE = "SOAK_SECONDS"
"""Environment variable: seconds that a model pauses at each image."""
WORKER_STOP = "SOAK_WORKER_STOP"
"""Environment variable: while this file exists, the next worker removes it and kills itself."""


class SlowMeans:
    """Embeds an image as the means of its channels and its width."""

    info = ModelInfo(
        "python:tools.soak.models:slow_means", "means", weights_sha256="0" * 64, dimension=4
    )

    def embed_images(self, images: Sequence[Any]) -> npt.NDArray[np.float32]:
        """Return one row for each image."""
        rows = []
        for image in images:
            _pause()
            rows.append([*image.reshape(-1, 3).mean(axis=0), image.shape[1]])
        return np.array(rows, dtype=np.float32).reshape(len(images), 4)

    def embed_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return zeros: no check embeds texts."""
        return np.zeros((len(texts), 4), dtype=np.float32)


class SlowSwatches:
    """Makes an image of 3 by 3 pixels from the hash of its prompt and seed."""

    info = ModelInfo("python:tools.soak.models:slow_swatches", "swatches", weights_sha256="0" * 64)

    def generate(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling
    ) -> list[npt.NDArray[np.uint8] | None]:
        """Return an image for each prompt and seed."""
        images: list[npt.NDArray[np.uint8] | None] = []
        for prompt, seed in zip(prompts, seeds, strict=True):
            _pause()
            digest = sha256(f"{prompt}\0{seed}\0{sampling}".encode()).digest()
            images.append(np.frombuffer(digest[:27], dtype=np.uint8).reshape(3, 3, 3))
        return images

    def check_control(self) -> None:
        """Accept every set: nothing is shared within one."""

    def tokens(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        """Return a number for each word, padded to 16."""
        words = [[sum(word.encode()) for word in prompt.split()] for prompt in prompts]
        return [(*numbers, *[0] * (16 - len(numbers))) for numbers in words]

    def room(self, sampling: Sampling) -> int:  # noqa: ARG002
        """Return the images of a batch."""
        return 8

    def generate_with(
        self, prompts: Sequence[str], *, seeds: Sequence[int], sampling: Sampling, attention: Any
    ) -> list[npt.NDArray[np.uint8] | None]:
        """Return the images of a set."""
        attention.begin(sampling.steps)
        return self.generate(prompts, seeds=seeds, sampling=sampling)


def slow_means(*, device: str, dtype: str) -> SlowMeans:  # noqa: ARG001
    """Return the model, as `python:tools.soak.models:slow_means` names it."""
    return SlowMeans()


def slow_swatches(*, device: str, dtype: str) -> SlowSwatches:  # noqa: ARG001
    """Return the model, as `python:tools.soak.models:slow_swatches` names it."""
    return SlowSwatches()


def _pause() -> None:
    time.sleep(float(os.environ.get(PAUSE, "0")))
    stop = os.environ.get(WORKER_STOP)
    if stop and Path(stop).exists():
        Path(stop).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
