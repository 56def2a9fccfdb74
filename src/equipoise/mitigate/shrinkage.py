"""Shrinkage within sets, in closed form: neutral prompts turn from what varies inside a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.mitigate.embedding import embedded, queries_of, unit
from equipoise.mitigate.fitting import publish
from equipoise.mitigate.record import digest_of_images, digest_of_texts, record_of, reloaded
from equipoise.mitigate.sets import ImageSets, SubjectTexts
from equipoise.models.wrapped import Wrapping, save_wrapped

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

STRENGTHS = (1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)


@dataclass(frozen=True)
class SetShrinkage:
    """Neutral prompts multiplied by (I + strength · C)⁻¹, C what varies within counterfactual sets.

    C is the covariance of image vectors less the mean of their set, scaled to a mean variance of 1:
    the directions in which members of a set differ, of any subject, count less the more they
    differ. Images and captions that name a value of an attribute stay as they are.

    Attributes
    ----------
    name : str
    strength : float, optional
        None: the largest of `STRENGTHS` with which the images of the validation subjects are named
        right, among all subjects of the training, at most `allowed_loss` less often than before.
    allowed_loss : float
        Share of images.
    """

    name: str = "set_shrinkage"
    strength: float | None = None
    allowed_loss: float = 0.01

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"recipe": "set_shrinkage", **asdict(self)}

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> DualEncoder:
        """Measure what varies within the sets of the training subjects.

        Raises
        ------
        InputError
            When there are no images, or no validation subjects to choose a strength by.
        """
        images = training.images
        if images is None or not len(images):
            raise InputError(f"{self.name} learns from images, and there are none of its subjects")
        covariance = within_sets(unit(embedded(base, images.images, progress)), images)
        strength = self.strength
        if strength is None:
            strength = self._chosen(base, training, covariance, progress)
        values = sorted(
            {v for one in training.texts for named in one.values for v in named.values()}
        )
        inputs = {
            "texts": digest_of_texts(training.texts),
            "images": digest_of_images(images.images, images.set),
            "subjects": sorted(training.subjects),
        }
        wrapping = Wrapping(
            transform=shrinking(covariance, strength).astype(np.float32),
            applied_to=("texts",),
            spared=tuple(value for value in values if value),
            record={**record_of(self.facts, base, seed, inputs), "strength": strength},
        )
        publish(out, lambda partial: save_wrapped(partial, base.info, wrapping, at=out))
        return reloaded(f"equipoise:{out}", base)

    def _chosen(
        self,
        base: DualEncoder,
        training: Training,
        covariance: Floats,
        progress: Progress | None,
    ) -> float:
        watched = training.validation_images
        if watched is None or not len(watched):
            raise InputError(
                f"{self.name} chooses its strength on images of validation subjects, and there are "
                "none. To do: give the strength"
            )
        known: Sequence[SubjectTexts] = (*training.validation, *training.texts)
        places = {one.subject: place for place, one in enumerate(known)}
        truth = np.array([places[subject] for subject in watched.subject])
        images = unit(embedded(base, watched.images, progress))
        queries = queries_of(base, known)

        def accuracy(strength: float) -> float:
            moved = unit(queries @ shrinking(covariance, strength))
            return float(((images @ moved.T).argmax(axis=1) == truth).mean())

        least = accuracy(0.0) - self.allowed_loss
        fit = [one for one in STRENGTHS if accuracy(one) >= least]
        return max(fit, default=STRENGTHS[0])


def within_sets(images: Floats, sets: ImageSets) -> Floats:
    """Return the covariance of unit vectors less the mean of their set, with a mean variance of 1.

    Raises
    ------
    InputError
        When the members of every set are alike.
    """
    apart = images.copy()
    for rows in sets.by_set().values():
        apart[rows] -= images[rows].mean(axis=0)
    covariance = apart.T @ apart / len(apart)
    size = float(np.trace(covariance)) / len(covariance)
    if not size > 0.0:
        raise InputError("the members of every set have one vector: nothing varies within sets")
    found: Floats = covariance / size
    return found


def shrinking(covariance: Floats, strength: float) -> Floats:
    """Return the matrix (I + strength · C)⁻¹, which is symmetric."""
    found: Floats = np.linalg.inv(np.eye(len(covariance)) + strength * covariance)
    return (found + found.T) / 2.0
