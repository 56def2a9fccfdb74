"""Small models that pause at every image, so that a kill can meet them anywhere."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TypeVar

from equipoise.models import ModelInfo
from tests.generator_models import Swatches
from tests.picture_models import Means

T = TypeVar("T")
PAUSE = "SOAK_SECONDS"
"""Environment variable: seconds that a model pauses at each image."""
WORKER_STOP = "SOAK_WORKER_STOP"
"""Environment variable: while this file exists, the next worker removes it and kills itself."""


def slow_means(*, device: str, dtype: str) -> Means:  # noqa: ARG001
    """Return a model that embeds, as `python:tools.soak.models:slow_means` names it."""
    about = ModelInfo(
        "python:tools.soak.models:slow_means", "means", weights_sha256="0" * 64, dimension=4
    )
    return Means(about, lambda _, row: _paused(row))


def slow_swatches(*, device: str, dtype: str) -> Swatches:  # noqa: ARG001
    """Return a generator, as `python:tools.soak.models:slow_swatches` names it."""
    about = ModelInfo("python:tools.soak.models:slow_swatches", "swatches", weights_sha256="0" * 64)
    return Swatches(about, lambda _, image: _paused(image))


def _paused(made: T) -> T:
    time.sleep(float(os.environ.get(PAUSE, "0")))
    stop = os.environ.get(WORKER_STOP)
    if stop and Path(stop).exists():
        Path(stop).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return made
