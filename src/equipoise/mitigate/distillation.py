"""Text-tower distillation: a neutral prompt learns to say what its counterfactuals say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.mitigate.fitting import Plan, fitted
from equipoise.mitigate.record import digest_of_texts, record_of, reloaded
from equipoise.mitigate.sets import SubjectTexts
from equipoise.mitigate.trainable import Trainable, trainable
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder


@dataclass(frozen=True)
class TextDistillation:
    """Training of the text tower alone, without images.

    The vector of a neutral prompt is drawn to the normalised mean of the vectors that the frozen
    model gives its counterfactual captions; vectors of captions with attributes are kept.

    Attributes
    ----------
    name : str
    steps : int
        At most: training stops where the validation loss no longer falls.
    learning_rate : float
    subjects : int
        Subjects in a step.
    kept : int
        Captions in a step whose vectors are held in place.
    look_every : int
        Steps between two looks at the validation loss.
    patience : int
        Looks without a better loss after which training stops.
    dtype : str
        See `Contrastive`.
    """

    name: str = "text_distillation"
    steps: int = 100
    learning_rate: float = 1e-5
    subjects: int = 8
    kept: int = 128
    look_every: int = 10
    patience: int = 4
    dtype: str = "auto"

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"recipe": "text_distillation", **asdict(self)}

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
        learned = Targets.of(base, training.texts)
        watched = Targets.of(base, training.validation) if training.validation else None
        inputs = {
            "texts": digest_of_texts(training.texts),
            "validation_texts": digest_of_texts(training.validation),
            "subjects": sorted(training.subjects),
        }
        name = fitted(
            subject,
            subject.weights("texts"),
            Plan(self.steps, self.learning_rate, self.look_every, self.patience, self.look_every),
            loss=lambda step: _loss(subject, *self._drawn(learned, seed, step)),
            validation=None
            if watched is None
            else lambda: _loss(subject, watched.neutral_texts, watched.attributed),
            record=record_of(self.facts, base, seed, inputs, subject.torch),
            out=out,
            progress=progress,
        )
        return reloaded(name, base)

    def _drawn(self, targets: Targets, seed: int, step: int) -> tuple[Goal, Goal]:
        draw = stream(seed, "mitigate", "distillation", step)
        count = min(self.subjects, len(targets.neutral))
        chosen = draw.choice(len(targets.neutral), count, replace=False)
        moved = [pair for place in chosen for pair in targets.neutral[int(place)]]
        every = targets.attributed
        rows = draw.choice(len(every), min(self.kept, len(every)), replace=False)
        return tuple(moved), tuple(every[int(row)] for row in rows)


Goal = Sequence[tuple[str, Any]]
"""Texts with the unit vector that each is to have."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Where the vectors of texts are to go.

    Attributes
    ----------
    neutral : tuple of Goal
        One for each subject: its neutral prompts, all with one goal.
    attributed : Goal
        Captions with the vectors that they have.
    """

    neutral: tuple[Goal, ...]
    attributed: Goal

    @staticmethod
    def of(base: DualEncoder, texts: Sequence[SubjectTexts]) -> Targets:
        """Ask the frozen model where its captions lie."""
        neutral: list[Goal] = []
        attributed: list[tuple[str, Any]] = []
        for one in texts:
            vectors = _unit(base.embed_texts(one.attributed))
            mean = _unit(vectors.mean(axis=0, keepdims=True))[0]
            neutral.append([(text, mean) for text in one.neutral])
            attributed += zip(one.attributed, vectors, strict=True)
        return Targets(tuple(neutral), attributed)

    @property
    def neutral_texts(self) -> Goal:
        """The neutral prompts of all subjects."""
        return [pair for goal in self.neutral for pair in goal]


def _unit(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _loss(subject: Trainable, moved: Goal, held: Goal) -> Any:
    """Return 1 - cosine with the goal, of prompts that move and of captions that stay."""
    return _away(subject, moved) + _away(subject, held)


def _away(subject: Trainable, goal: Goal) -> Any:
    torch = subject.torch
    with subject.autocast():
        found = subject.texts([text for text, _ in goal])
    wanted = torch.from_numpy(np.array([vector for _, vector in goal], dtype=np.float32))
    unit = torch.nn.functional.normalize(found.float())
    return 1.0 - (unit * wanted.to(unit.device)).sum(dim=1).mean()
