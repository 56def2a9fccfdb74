"""Pieces through a model, or through copies of it on several devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

from equipoise.counterfactuals.generating.drawing import Piece
from equipoise.counterfactuals.generating.working import Tell, made
from equipoise.models.generators import Sampling

_STEP = "images generated"


class Telling:
    """Counts images that are done, and tells how many there are."""

    def __init__(
        self, progress: Callable[[str, int, int | None], None] | None, total: int, done: int
    ) -> None:
        self._progress, self._total, self._done = progress, total, done
        self._lock = threading.Lock()

    def __call__(self, images: int) -> None:
        """Count some more."""
        with self._lock:
            self._done += images
            if self._progress is not None:
                self._progress(_STEP, self._done, self._total)


def worked(
    models: Sequence[Any], todo: Sequence[Piece], sampling: Sampling, tell: Tell
) -> Generator[tuple[Piece, list[Any]]]:
    """Yield each piece with what became of its images, as soon as it is done.

    Parameters
    ----------
    models : sequence of ImageGenerator
        The same model, once on each device. A piece is made by one of them whole, so the images
        do not depend on how many there are.
    todo : sequence of Piece
    sampling : Sampling
    tell : callable
        Called with how many images more are done.
    """
    if len(models) == 1:
        # In this thread: an interrupt ends it between two operators, not between two pieces.
        for piece in todo:
            yield piece, made(models[0], piece, sampling, tell)
        return
    free: SimpleQueue[Any] = SimpleQueue()
    for model in models:
        free.put(model)

    def work(piece: Piece) -> tuple[Piece, list[Any]]:
        model = free.get()
        try:
            return piece, made(model, piece, sampling, tell)
        finally:
            free.put(model)

    pool = ThreadPoolExecutor(len(models))
    try:
        for future in as_completed([pool.submit(work, piece) for piece in todo]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
