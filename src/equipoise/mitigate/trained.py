"""The recipe that trains weights, on counterfactual sets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from equipoise.core import InputError, Integers, Positions
from equipoise.mitigate.recipe import Plan, TrainedRecipe, digest_images
from equipoise.mitigate.sets import ImageSets, SubjectTexts, Training
from equipoise.mitigate.trainable import Towers, Trainable, trainable
from equipoise.models.protocols import DualEncoder
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from torch import Tensor


class Contrastive(TrainedRecipe):
    """Contrastive training on counterfactual sets.

    Attributes
    ----------
    name : str
    epochs : int
        Most passes over the sets: training stops where the validation loss no longer falls.
    batch : int
        Most images in a batch.
    batches : "sets" or "pairs"
        What a batch is filled with: whole sets, or pairs of an image and its caption, shuffled
        over all sets.
    learning_rate : float
    towers : "both", "texts" or "images"
        Towers to train.
    captions : "given" or "neutral"
        What images are matched with: their captions, or prompts that name the subject alone.
    looks : int
        Checks of the validation loss in an epoch.
    patience : int
        Checks without a better loss after which training stops.
    dtype : str
        "auto" (bfloat16 on a GPU, else float32), "float32", "bfloat16" or "float16".

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals: 1 epoch, batches of 32 pairs, learning rate 5e-6 to
    9e-6, no early stopping.
    """

    recipe: Literal["contrastive"] = "contrastive"
    name: str = "contrastive"
    epochs: PositiveInt = 1
    batch: Annotated[int, Field(ge=2)] = 32
    batches: Literal["sets", "pairs"] = "sets"
    learning_rate: PositiveFloat = 5e-6
    towers: Towers = "both"
    captions: Literal["given", "neutral"] = "given"
    looks: PositiveInt = 4

    def _begin(self, base: DualEncoder, training: Training, seed: int) -> tuple[Trainable, Plan]:
        subject = trainable(base, self.dtype)
        images = training.require_images(self.name, watched=False)
        parts = self._parts(images, seed)
        in_epoch = len([*_pack(parts, self.batch)])
        look = max(1, in_epoch // self.looks)
        watched = training.validation_images
        if self.captions == "neutral":
            images = _use_neutral_captions(images, training.all_texts)
            watched = _use_neutral_captions(watched, training.all_texts) if watched else None

        @cache
        def epoch(number: int) -> list[Positions]:
            order = stream(seed, "mitigate", "order", number).permutation(len(parts))
            return [*_pack([parts[place] for place in order], self.batch)]

        def loss(step: int) -> Any:
            number, place = divmod(step, in_epoch)
            # Sets of unequal size may fill another number of batches in another order.
            packed = epoch(number)
            return self._loss(subject, images, packed[place % len(packed)])

        def validation() -> Any:
            # The mean over the images of the validation subjects, in fixed batches.
            assert watched is not None  # noqa: S101
            return sum(
                self._loss(subject, watched, rows) * (len(rows) / len(watched))
                for rows in _pack(self._parts(watched, seed), self.batch)
            )

        return subject, Plan(
            subject.weights(self.towers), self.epochs * in_epoch, self.learning_rate, look, loss,
            validation if watched else None,
        )  # fmt: skip

    def _parts(self, images: ImageSets, seed: int) -> list[Positions]:
        """Return the rows that a batch takes together: those of a set, or one."""
        if self.batches == "pairs":
            order = stream(seed, "mitigate", "pairs").permutation(len(images))
            return [*order[:, np.newaxis]]
        sets = [*images.by_set().values()]
        if (largest := max(map(len, sets))) > self.batch:
            raise InputError(
                f"a counterfactual set has {largest} images, and a batch {self.batch}; expected "
                "batches that hold whole sets. To do: a larger batch, or batches: pairs"
            )
        return sets

    def _inputs(self, training: Training) -> dict[str, Any]:
        inputs = super()._inputs(training)
        for name in ("images", "validation_images"):
            images: ImageSets | None = getattr(training, name)
            if images is not None:
                columns = (images.subject, images.set, images.caption)
                inputs[name] = digest_images(images.images, *columns)
        return inputs

    def _loss(self, subject: Trainable, images: ImageSets, rows: Positions) -> Any:
        torch, model = subject.torch, subject.model
        scale, bias = model.logit_scale.exp(), getattr(model, "logit_bias", None)
        texts, captions = np.unique(images.caption[rows].astype(str), return_inverse=True)
        with subject.autocast():
            pictures = subject.images([images.images[row] for row in rows.tolist()])
            vectors = subject.texts(texts.tolist())
        return contrastive_loss(torch, pictures, vectors, captions, scale, bias)


def _use_neutral_captions(images: ImageSets, texts: Sequence[SubjectTexts]) -> ImageSets:
    """Return the images with neutral prompts as captions, in turn over the sets."""
    prompts, captions = (
        {subject_texts.subject: subject_texts.neutral for subject_texts in texts},
        images.caption.copy(),
    )
    for place, rows in enumerate(images.by_set().values()):
        subject_prompts = prompts[images.subject[rows[0]]]
        captions[rows] = subject_prompts[place % len(subject_prompts)]
    return replace(images, caption=captions)


def _pack(parts: Sequence[Positions], batch: int) -> Iterator[Positions]:
    """Yield batches of whole parts."""
    together: list[Positions] = []
    for rows in parts:
        if together and sum(map(len, together)) + len(rows) > batch:
            yield np.concatenate(together)
            together = []
        together.append(rows)
    yield np.concatenate(together)


def contrastive_loss(
    torch: ModuleType,
    images: "Tensor",
    texts: "Tensor",
    caption_codes: Integers,
    scale: "Tensor",
    bias: "Tensor | None",
) -> "Tensor":
    """Return the contrastive loss of images and distinct texts.

    A text that several images share is a match for each of them, and no mismatch: the softmax of
    an image runs over distinct texts, that of a text has its images as equal targets.

    Parameters
    ----------
    torch : module
    images : tensor, shape (n, d)
    texts : tensor, shape (m, d)
        Each text once.
    caption_codes : ndarray of int, shape (n,)
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
    places = torch.from_numpy(caption_codes).to(logits.device)
    match = functional.one_hot(places, len(texts)).to(logits.dtype)
    if bias is not None:
        signs = 2.0 * match - 1.0
        return -functional.logsigmoid(signs * (logits + bias)).sum() / len(images)
    of_images = functional.cross_entropy(logits, places)
    of_texts = functional.cross_entropy(logits.T, (match / match.sum(dim=0, keepdim=True)).T)
    return (of_images + of_texts) / 2.0
