"""Text-tower distillation: a neutral prompt moves to the mean of its counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from equipoise.mitigate.fitting import Plan, fit_weights
from equipoise.mitigate.recipe import (
    Count,
    Dtype,
    Progress,
    Rate,
    Recipe,
    digest_of_texts,
    record_of,
)
from equipoise.mitigate.sets import SubjectTexts, Training
from equipoise.mitigate.trainable import Trainable, trainable
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.models import DualEncoder

Goal = Sequence[tuple[str, Any]]
"""Texts with the unit vector that each is to have."""


class TextDistillation(Recipe):
    """Training of the text tower alone, without images.

    The vector of a neutral prompt is drawn to the normalised mean of the vectors that the frozen
    model gives its counterfactual captions; vectors of captions with attributes are kept.

    Attributes
    ----------
    name : str
    steps : int
        Most steps: training stops where the validation loss no longer falls.
    learning_rate : float
    subjects : int
        Subjects in a step.
    kept : int
        Captions in a step whose vectors are held in place.
    look_every : int
        Steps between two checks of the validation loss.
    patience : int
        Checks without a better loss after which training stops.
    dtype : str
        See `Contrastive`.
    """

    recipe: Literal["text_distillation"] = "text_distillation"
    name: str = "text_distillation"
    steps: Count = 100
    learning_rate: Rate = 1e-5
    subjects: Count = 8
    kept: Count = 128
    look_every: Count = 10
    patience: Count = 4
    dtype: Dtype = "auto"

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Train on the texts of the training subjects."""
        subject = trainable(base, self.dtype)
        neutral, captions = _goals(base, training.texts)
        prompts, watched = _goals(base, training.validation)

        def loss(step: int) -> Any:
            draw = stream(seed, "mitigate", "distillation", step)
            chosen = draw.choice(len(neutral), min(self.subjects, len(neutral)), replace=False)
            rows = draw.choice(len(captions), min(self.kept, len(captions)), replace=False)
            moved = [pair for place in chosen for pair in neutral[int(place)]]
            return _loss(subject, moved, [captions[int(row)] for row in rows])

        def validation() -> Any:
            return _loss(subject, [pair for goal in prompts for pair in goal], watched)

        inputs = {
            "texts": digest_of_texts(training.texts),
            "validation_texts": digest_of_texts(training.validation),
            "subjects": sorted(training.subjects),
        }
        look = self.look_every
        return fit_weights(
            subject,
            subject.weights("texts"),
            Plan(self.steps, self.learning_rate, look, self.patience, look),
            base,
            loss=loss,
            validation=validation if training.validation else None,
            record=record_of(self, base, seed, inputs, subject.torch),
            out=out,
            progress=progress,
        )


def _goals(
    base: DualEncoder, texts: Sequence[SubjectTexts]
) -> tuple[list[Goal], list[tuple[str, Any]]]:
    """Return the goals of the neutral prompts of each subject, and of all captions.

    Captions keep the vectors of the frozen model; prompts go to the mean of those of a subject.
    """
    neutral: list[Goal] = []
    captions: list[tuple[str, Any]] = []
    for own in texts:
        vectors = _unit(base.embed_texts(own.attributed))
        mean = _unit(vectors.mean(axis=0, keepdims=True))[0]
        neutral.append([(text, mean) for text in own.neutral])
        captions += zip(own.attributed, vectors, strict=True)
    return neutral, captions


def _unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _loss(subject: Trainable, moved: Goal, held: Goal) -> Any:
    """Return 1 - cosine with the goal, of prompts that move and of captions that stay."""
    return _distance(subject, moved) + _distance(subject, held)


def _distance(subject: Trainable, goal: Goal) -> Any:
    torch = subject.torch
    with subject.autocast():
        vectors = subject.texts([text for text, _ in goal])
    wanted = torch.from_numpy(np.array([vector for _, vector in goal], dtype=np.float32))
    unit = torch.nn.functional.normalize(vectors.float())
    return 1.0 - (unit * wanted.to(unit.device)).sum(dim=1).mean()
