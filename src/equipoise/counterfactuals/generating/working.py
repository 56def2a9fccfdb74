"""The work on one piece: ask the model, and say of each image what became of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from equipoise.counterfactuals.control import ControlledSet, generate_controlled
from equipoise.counterfactuals.generating.drawing import Candidate, Piece
from equipoise.models.generators import Sampling

Tell = Callable[[int], None]


def made(model: Any, piece: Piece, sampling: Sampling, tell: Tell) -> list[Any]:
    """Return, for each image of a piece, an array, None where refused, or why there is none.

    A batch that fails is asked for again candidate by candidate.
    """
    found: list[Any] = []
    for batch in _batches(model, piece.candidates, sampling):
        try:
            images = _made(model, batch, sampling)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is told
            images = _alone(model, batch, sampling, error)
        found += images
        tell(len(images))
    return found


def _batches(
    model: Any, candidates: Sequence[Candidate], sampling: Sampling
) -> Iterator[Sequence[Candidate]]:
    """Yield whole candidates that go to the model together."""
    room, size = _room(model, sampling), 0
    batch: list[Candidate] = []
    for candidate in candidates:
        if batch and size + len(candidate) > room:
            yield batch
            batch, size = [], 0
        batch.append(candidate)
        size += len(candidate)
    yield batch


def _room(model: Any, sampling: Sampling) -> int:
    """Return how many images a model makes together; all where it does not say."""
    return int(model.room(sampling)) if hasattr(model, "room") else sys.maxsize


def _made(model: Any, batch: Sequence[Candidate], sampling: Sampling) -> list[Any]:
    if batch[0].shared is None:
        prompts = [prompt for candidate in batch for prompt in candidate.group.prompts]
        seeds = [candidate.seed for candidate in batch for _ in candidate.group.ids]
        return [*model.generate(prompts, seeds=seeds, sampling=sampling)]
    sets = [
        ControlledSet(
            one.group.prompts, one.seed, one.base or 0, one.shared or 0.0, one.shared_self or 0.0
        )
        for one in batch
    ]
    return [image for own in generate_controlled(model, sets, sampling) for image in own]


def _alone(
    model: Any, batch: Sequence[Candidate], sampling: Sampling, error: Exception
) -> list[Any]:
    found: list[Any] = []
    for candidate in batch:
        try:
            if len(batch) == 1:
                raise error
            found += _made(model, [candidate], sampling)
        except Exception as why:  # noqa: BLE001
            reason = str(why).partition("\n")[0] or type(why).__name__
            found += [reason] * len(candidate)
    return found
