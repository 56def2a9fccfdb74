"""Counterfactual fine-tuning: a dual encoder trained further on whole counterfactual sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.mitigate.fitting import Plan, fitted
from equipoise.mitigate.losses import contrastive_loss, spread_within_sets
from equipoise.mitigate.record import digest_of_images, digest_of_texts, record_of, reloaded
from equipoise.mitigate.sets import ImageSets, Pairs, SubjectTexts
from equipoise.mitigate.trainable import Towers, Trainable, trainable
from equipoise.stats.streams import stream

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Contrastive:
    """Contrastive training on counterfactual sets, whole sets in a batch.

    Attributes
    ----------
    name : str
    epochs : int
        Passes over the sets, at most: training stops where the validation loss no longer falls.
    batch : int
        Images of sets in a batch, at most; sets are never cut.
    learning_rate : float
    penalty : float
        Weight of the variance of a neutral prompt's logits within sets; 0: none.
    mix : float
        Pairs of one's own for each image of a set; needs `Training.pairs`.
    towers : "both", "texts" or "images"
        What is trained.
    looks : int
        Looks at the validation loss in an epoch.
    patience : int
        Looks without a better loss after which training stops.
    dtype : str
        "auto" (bfloat16 on a GPU, else float32), "float32", "bfloat16" or "float16".

    References
    ----------
    Howard et al. 2024, SocialCounterfactuals: 1 epoch, batches of 32, learning rate 5e-6 to 9e-6.
    """

    name: str = "contrastive"
    epochs: int = 1
    batch: int = 32
    learning_rate: float = 5e-6
    penalty: float = 0.0
    mix: float = 0.0
    towers: Towers = "both"
    looks: int = 4
    patience: int = 4
    dtype: str = "auto"

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"recipe": "contrastive", **asdict(self)}

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Train on the images of the training subjects.

        Raises
        ------
        InputError
            When there are no images, a set does not fit into a batch, or pairs are to be mixed in
            and there are none.
        """
        images = self._checked(training)
        subject = trainable(base, self.dtype)
        batches = Batches(images, training.pairs if self.mix else None, self, seed)
        weights = subject.weights(self.towers)
        watched = training.validation_images
        name = fitted(
            subject,
            weights,
            self._plan(batches),
            loss=lambda step: self._loss(subject, batches.of(step), training.texts),
            validation=None
            if watched is None or not len(watched)
            else lambda: self._validation(subject, watched, training.validation),
            record=record_of(self.facts, base, seed, _inputs(training), subject.torch),
            out=out,
            progress=progress,
        )
        return reloaded(name, base)

    def _checked(self, training: Training) -> ImageSets:
        images = training.known_images(self.name, watched=False)
        if self.mix and training.pairs is None:
            raise InputError(f"{self.name} mixes in pairs (mix: {self.mix}), and there are none")
        largest = max(map(len, images.by_set().values()))
        if largest > self.batch:
            raise InputError(
                f"a counterfactual set has {largest} images, and a batch {self.batch}; expected "
                "batches that hold whole sets"
            )
        return images

    def _plan(self, batches: Batches) -> Plan:
        each = batches.in_epoch
        return Plan(
            self.epochs * each,
            self.learning_rate,
            max(1, each // self.looks),
            self.patience,
            max(1, min(each // self.looks, 100)),
        )

    def _loss(self, subject: Trainable, batch: Batch, known: Sequence[SubjectTexts]) -> Any:
        torch = subject.torch
        texts, own = np.unique(batch.captions.astype(str), return_inverse=True)
        with subject.autocast():
            images = subject.images(batch.images)
            vectors = subject.texts(texts.tolist())
        own = own.astype(np.int64)
        loss = contrastive_loss(torch, images, vectors, own, subject.scale, subject.bias)
        if not self.penalty:
            return loss
        queries, places = _queries(subject, known, batch.subjects)
        sets = np.unique(batch.sets.astype(str), return_inverse=True)[1].astype(np.int64)
        spread = spread_within_sets(
            torch, images[: len(sets)], queries, sets, places, subject.scale
        )
        return loss + self.penalty * spread

    def _validation(
        self, subject: Trainable, watched: ImageSets, known: Sequence[SubjectTexts]
    ) -> Any:
        """Return the mean loss over the sets of the validation subjects, in fixed batches."""
        losses, sizes = [], []
        for rows in _packed([*watched.by_set().values()], self.batch):
            losses.append(self._loss(subject, _batch(watched, rows), known))
            sizes.append(len(rows))
        shares = np.array(sizes) / sum(sizes)
        return sum(loss * float(share) for loss, share in zip(losses, shares, strict=True))


@dataclass(frozen=True, eq=False)
class Batch:
    """Images with captions: first those of sets, then pairs of one's own, which have no set."""

    images: list[Any]
    captions: npt.NDArray[np.object_]
    sets: npt.NDArray[np.object_]
    subjects: npt.NDArray[np.object_]


def _batch(images: ImageSets, rows: Places) -> Batch:
    return Batch(
        [images.images[int(row)] for row in rows],
        images.caption[rows],
        images.set[rows],
        images.subject[rows],
    )


class Batches:
    """The batch of each step: a function of the seed and the step alone."""

    def __init__(
        self, images: ImageSets, pairs: Pairs | None, recipe: Contrastive, seed: int
    ) -> None:
        self.images, self.pairs, self.recipe, self.seed = images, pairs, recipe, seed
        self.sets = [*images.by_set().values()]
        self.in_epoch = len([*_packed(self.sets, recipe.batch)])
        self._epoch = cache(self._packed_epoch)

    def of(self, step: int) -> Batch:
        """Return the batch of a step, which counts from 0."""
        epoch, place = divmod(step, self.in_epoch)
        batch = _batch(self.images, self._epoch(epoch)[place])
        if self.pairs is None:
            return batch
        count = max(1, round(self.recipe.mix * len(batch.images)))
        draw = stream(self.seed, "mitigate", "pairs", step)
        rows = draw.choice(len(self.pairs), min(count, len(self.pairs)), replace=False)
        return Batch(
            [*batch.images, *(self.pairs.images[int(row)] for row in rows)],
            np.concatenate([batch.captions, self.pairs.caption[rows]]),
            batch.sets,
            batch.subjects,
        )

    def _packed_epoch(self, epoch: int) -> list[Places]:
        order = stream(self.seed, "mitigate", "order", epoch).permutation(len(self.sets))
        packed = [*_packed([self.sets[place] for place in order], self.recipe.batch)]
        # Sets of unequal size may fill another number of batches in another order.
        return [packed[place % len(packed)] for place in range(self.in_epoch)]


def _packed(sets: Sequence[npt.NDArray[np.intp]], batch: int) -> Iterator[Places]:
    """Put whole sets together until the next one does not fit."""
    held: list[npt.NDArray[np.intp]] = []
    for rows in sets:
        if held and sum(map(len, held)) + len(rows) > batch:
            yield np.concatenate(held).astype(np.int64)
            held = []
        held.append(rows)
    if held:
        yield np.concatenate(held).astype(np.int64)


def _queries(
    subject: Trainable, known: Sequence[SubjectTexts], subjects: npt.NDArray[np.object_]
) -> tuple[Any, Places]:
    """Return the mean vector of the neutral prompts of each subject of a batch, and its place."""
    names, places = np.unique(subjects.astype(str), return_inverse=True)
    by_name = {one.subject: one.neutral for one in known}
    prompts = [by_name[name] for name in names.tolist()]
    with subject.autocast():
        vectors = subject.texts([text for texts in prompts for text in texts])
    unit = subject.torch.nn.functional.normalize(vectors.float())
    means = [part.mean(dim=0) for part in unit.split([len(texts) for texts in prompts])]
    return subject.torch.stack(means), places.astype(np.int64)


def _inputs(training: Training) -> dict[str, Any]:
    found: dict[str, Any] = {
        "texts": digest_of_texts(training.texts),
        "validation_texts": digest_of_texts(training.validation),
        "subjects": sorted(training.subjects),
    }
    for name, images in (
        ("images", training.images), ("validation_images", training.validation_images),
    ):  # fmt: skip
        if images is not None:
            columns = (images.subject, images.set, images.caption)
            found[name] = digest_of_images(images.images, *columns)
    if training.pairs is not None:
        found["pairs"] = digest_of_images(training.pairs.images, training.pairs.caption)
    return found
