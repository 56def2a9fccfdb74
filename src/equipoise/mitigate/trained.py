"""Recipes that train weights: on counterfactual sets, or the text tower on captions alone."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from equipoise.core import InputError, Positions
from equipoise.mitigate.recipe import Plan, TrainedRecipe, digest_of_images
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training
from equipoise.mitigate.trainable import Towers, Trainable
from equipoise.models.protocols import DualEncoder
from equipoise.stats.streams import stream

Codes = npt.NDArray[np.integer[Any]]


class Contrastive(TrainedRecipe):
    """Contrastive training on counterfactual sets, whole sets in a batch.

    Attributes
    ----------
    name : str
    epochs : int
        Most passes over the sets: training stops where the validation loss no longer falls.
    batch : int
        Most images of sets in a batch; sets are never cut.
    learning_rate : float
    penalty : float
        Weight of the variance of a neutral prompt's logits within sets; 0: none.
    towers : "both", "texts" or "images"
        Towers to train.
    looks : int
        Checks of the validation loss in an epoch.
    patience : int
        Checks without a better loss after which training stops.
    dtype : str
        "auto" (bfloat16 on a GPU, else float32), "float32", "bfloat16" or "float16".

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals: 1 epoch, batches of 32, learning rate 5e-6 to 9e-6.
    """

    recipe: Literal["contrastive"] = "contrastive"
    name: str = "contrastive"
    epochs: PositiveInt = 1
    batch: Annotated[int, Field(ge=2)] = 32
    learning_rate: PositiveFloat = 5e-6
    penalty: NonNegativeFloat = 0.0
    towers: Towers = "both"
    looks: PositiveInt = 4

    def _plan(self, base: DualEncoder, subject: Trainable, training: Training, seed: int) -> Plan:  # noqa: ARG002 - the copy is enough
        images = training.known_images(self.name, watched=False)
        sets = [*images.by_set().values()]
        largest = max(map(len, sets))
        if largest > self.batch:
            raise InputError(
                f"a counterfactual set has {largest} images, and a batch {self.batch}; expected "
                "batches that hold whole sets"
            )
        in_epoch = len([*_packed(sets, self.batch)])
        look = max(1, in_epoch // self.looks)
        watched = training.validation_images

        @cache
        def epoch(number: int) -> list[Positions]:
            order = stream(seed, "mitigate", "order", number).permutation(len(sets))
            return [*_packed([sets[place] for place in order], self.batch)]

        def loss(step: int) -> Any:
            number, place = divmod(step, in_epoch)
            # Sets of unequal size may fill another number of batches in another order.
            packed = epoch(number)
            return self._loss(subject, images, packed[place % len(packed)], training.texts)

        def validation() -> Any:
            # The mean over the sets of the validation subjects, in fixed batches.
            assert watched is not None  # noqa: S101
            return sum(
                self._loss(subject, watched, rows, training.validation) * (len(rows) / len(watched))
                for rows in _packed([*watched.by_set().values()], self.batch)
            )

        return Plan(
            subject.weights(self.towers), self.epochs * in_epoch, self.learning_rate, look, loss,
            validation if watched else None,
        )  # fmt: skip

    def _inputs(self, training: Training) -> dict[str, Any]:
        inputs = super()._inputs(training)
        for name in ("images", "validation_images"):
            images: ImageSets | None = getattr(training, name)
            if images is not None:
                columns = (images.subject, images.set, images.caption)
                inputs[name] = digest_of_images(images.images, *columns)
        return inputs

    def _loss(
        self, subject: Trainable, images: ImageSets, rows: Positions, known: Sequence[SubjectTexts]
    ) -> Any:
        torch, model = subject.torch, subject.model
        scale, bias = model.logit_scale.exp(), getattr(model, "logit_bias", None)
        texts, captions = np.unique(images.caption[rows].astype(str), return_inverse=True)
        with subject.autocast():
            pictures = subject.images([images.images[row] for row in rows.tolist()])
            vectors = subject.texts(texts.tolist())
        loss = contrastive_loss(torch, pictures, vectors, captions, scale, bias)
        if not self.penalty:
            return loss
        # The mean vector of the neutral prompts of each subject of the batch, and its place.
        names, places = np.unique(images.subject[rows].astype(str), return_inverse=True)
        neutral = {about.subject: about.neutral for about in known}
        prompts = [neutral[name] for name in names.tolist()]
        with subject.autocast():
            spoken = subject.texts([text for own in prompts for text in own])
        unit = torch.nn.functional.normalize(spoken.float()).split([*map(len, prompts)])
        queries = torch.stack([part.mean(dim=0) for part in unit])
        sets = np.unique(images.set[rows].astype(str), return_inverse=True)[1]
        spread = spread_within_sets(torch, pictures, queries, sets, places, scale)
        return loss + self.penalty * spread


def _packed(sets: Sequence[Positions], batch: int) -> Iterator[Positions]:
    """Put whole sets together until the next one does not fit."""
    held: list[Positions] = []
    for rows in sets:
        if held and sum(map(len, held)) + len(rows) > batch:
            yield np.concatenate(held)
            held = []
        held.append(rows)
    yield np.concatenate(held)


def contrastive_loss(torch: Any, images: Any, texts: Any, own: Codes, scale: Any, bias: Any) -> Any:
    """Return the loss with which such models are trained, of images and distinct texts.

    A text that several images share is a match for each of them, and no mismatch: the softmax of
    an image runs over distinct texts, that of a text has its images as equal targets.

    Parameters
    ----------
    torch : module
    images : tensor, shape (n, d)
    texts : tensor, shape (m, d)
        Each text once.
    own : ndarray of int, shape (n,)
        The text of each image.
    scale, bias : tensor, tensor or None
        With a bias: the sigmoid loss of each pair, as SigLIP is trained.

    Returns
    -------
    tensor of one number

    References
    ----------
    Radford et al. 2021; Zhai et al. 2023.
    """
    functional = torch.nn.functional
    logits = scale * functional.normalize(images) @ functional.normalize(texts).T
    places = torch.from_numpy(own).to(logits.device)
    match = functional.one_hot(places, len(texts)).to(logits.dtype)
    if bias is not None:
        signs = 2.0 * match - 1.0
        return -functional.logsigmoid(signs * (logits + bias)).sum() / len(images)
    of_images = functional.cross_entropy(logits, places)
    of_texts = functional.cross_entropy(logits.T, (match / match.sum(dim=0, keepdim=True)).T)
    return (of_images + of_texts) / 2.0


def spread_within_sets(
    torch: Any, images: Any, queries: Any, sets: Codes, subjects: Codes, scale: Any
) -> Any:
    """Return the variance of the logits of a subject's neutral query within each set, averaged.

    Parameters
    ----------
    torch : module
    images : tensor, shape (n, d)
    queries : tensor, shape (q, d)
        One for each subject.
    sets, subjects : ndarray of int, shape (n,)
        Set and query of each image; sets are 0 to s - 1.
    scale : tensor
        Held fixed: a model must not lower its spread by lowering all its logits.

    Returns
    -------
    tensor of one number
        0 where a query is equally similar to all members of every set.
    """
    normalize = torch.nn.functional.normalize
    query = normalize(queries)[torch.from_numpy(subjects).to(queries.device)]
    logits = scale.detach() * (normalize(images) * query).sum(dim=1)
    place = torch.from_numpy(sets).to(logits.device)
    zeros = torch.zeros(int(sets.max()) + 1, dtype=logits.dtype, device=logits.device)
    sizes = zeros.index_add(0, place, torch.ones_like(logits))
    means = zeros.index_add(0, place, logits) / sizes
    squares = zeros.index_add(0, place, (logits - means[place]) ** 2)
    return (squares / sizes).mean()


Goal = list[tuple[str, Any]]
"""Texts with the unit vector that each is to have."""


class TextDistillation(TrainedRecipe):
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
    steps: PositiveInt = 100
    learning_rate: PositiveFloat = 1e-5
    subjects: PositiveInt = 8
    kept: PositiveInt = 128
    look_every: PositiveInt = 10

    def _plan(self, base: DualEncoder, subject: Trainable, training: Training, seed: int) -> Plan:
        neutral, captions = _goals(base, training.texts)
        prompts, watched = _goals(base, training.validation)

        def loss(step: int) -> Any:
            draw = stream(seed, "mitigate", "distillation", step)
            chosen = draw.choice(len(neutral), min(self.subjects, len(neutral)), replace=False)
            rows = draw.choice(len(captions), min(self.kept, len(captions)), replace=False)
            moved = [pair for place in chosen for pair in neutral[place]]
            return _distance(subject, moved) + _distance(subject, [captions[row] for row in rows])

        def validation() -> Any:
            moved = [pair for goal in prompts for pair in goal]
            return _distance(subject, moved) + _distance(subject, watched)

        return Plan(
            subject.weights("texts"), self.steps, self.learning_rate, self.look_every, loss,
            validation if training.validation else None,
        )  # fmt: skip


def _goals(base: DualEncoder, texts: Sequence[SubjectTexts]) -> tuple[list[Goal], Goal]:
    """Return the goals of the neutral prompts of each subject, and of all captions.

    Captions keep the vectors of the frozen model; prompts go to the mean of those of a subject.
    """
    neutral: list[Goal] = []
    captions: Goal = []
    for own in texts:
        vectors = base.embed_texts(own.attributed)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        mean = vectors.mean(axis=0)
        mean /= np.linalg.norm(mean, axis=0)
        neutral.append([(text, mean) for text in own.neutral])
        captions += zip(own.attributed, vectors, strict=True)
    return neutral, captions


def _distance(subject: Trainable, goal: Goal) -> Any:
    """Return 1 - cosine with the goal."""
    torch = subject.torch
    with subject.autocast():
        vectors = subject.texts([text for text, _ in goal])
    wanted = torch.from_numpy(np.array([vector for _, vector in goal], dtype=np.float32))
    unit = torch.nn.functional.normalize(vectors.float())
    return 1.0 - (unit * wanted.to(unit.device)).sum(dim=1).mean()
