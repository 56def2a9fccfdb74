"""Shrinkage within sets, in closed form: neutral prompts turn from what varies inside a set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.mitigate.embedding import embedded, queries_of
from equipoise.mitigate.fitting import wrapped
from equipoise.mitigate.record import digest_of_images, digest_of_texts, record_of
from equipoise.mitigate.sets import ImageSets, SubjectTexts
from equipoise.models.wrapped import Wrapping, unit_vectors

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

# Beyond 16 subjects that look alike are confused, which nobody sees who has none among those known.
STRENGTHS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0)
_FEWEST = 3


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
        None: the largest of `STRENGTHS` at which images of a subject that C was measured without
        are named right, among all subjects known, at most `allowed_loss` less often than before:
        the mean over subjects and one standard error. 0, which changes nothing, if none is.
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
            When there are no images, or too few subjects to choose a strength by.
        """
        every, known = training.known_images(self.name), training.known
        inputs = {
            "texts": digest_of_texts(known),
            "images": digest_of_images(every.images, every.set),
            "subjects": sorted(one.subject for one in known),
        }
        record = record_of(self.facts, base, seed, inputs)

        def make() -> Wrapping:
            sets = Vectors(unit_vectors(embedded(base, every.images, progress)), every)
            strength = self._chosen(base, known, sets) if self.strength is None else self.strength
            values = sorted({v for one in known for named in one.values for v in named.values()})
            return Wrapping(
                transform=shrinking(sets.covariance(), strength).astype(np.float32),
                applied_to=("texts",),
                spared=tuple(value for value in values if value),
                record={**record, "strength": strength},
            )

        return wrapped(out, base, record, make)

    def _chosen(self, base: DualEncoder, known: Sequence[SubjectTexts], sets: Vectors) -> float:
        """Return a strength from what each subject loses by a matrix learned without it."""
        places = {one.subject: place for place, one in enumerate(known)}
        queries = queries_of(base, [one.neutral for one in known])
        if len(places) < _FEWEST:
            raise InputError(
                f"{self.name} chooses its strength by leaving out each of {len(places)} subjects "
                f"in turn; expected at least {_FEWEST}. To do: give the strength"
            )
        losses = np.array(
            [
                [sets.loss(name, places[name], queries, strength) for strength in STRENGTHS]
                for name in sets.subjects
            ]
        )
        # One standard error over subjects is left as room: these are other subjects than the ones
        # that the matrix will be used on.
        spread = losses.std(axis=0, ddof=1) / math.sqrt(len(losses))
        fit = losses.mean(axis=0) + spread <= self.allowed_loss
        return max((one for one, good in zip(STRENGTHS, fit, strict=True) if good), default=0.0)


class Vectors:
    """Unit vectors of images in sets, and what varies within the sets of all subjects but one."""

    def __init__(self, vectors: Floats, sets: ImageSets) -> None:
        self.vectors, self.subjects = vectors, sets.subjects
        self.rows = {name: np.flatnonzero(sets.subject == name) for name in self.subjects}
        apart = vectors.copy()
        for rows in sets.by_set().values():
            apart[rows] -= vectors[rows].mean(axis=0)
        self._products = {name: apart[rows].T @ apart[rows] for name, rows in self.rows.items()}

    def covariance(self, without: str = "") -> Floats:
        """Return the covariance within sets, with a mean variance of 1.

        Raises
        ------
        InputError
            When the members of every set are alike.
        """
        kept = [product for name, product in self._products.items() if name != without]
        total: Floats = np.sum(kept, axis=0)
        size = float(np.trace(total)) / len(total)
        if not size > 0.0:
            raise InputError("the members of every set have one vector: nothing varies within sets")
        return total / size

    def loss(self, subject: str, place: int, queries: Floats, strength: float) -> float:
        """Return how much less often a subject's images are named right, by a matrix of others."""
        images = self.vectors[self.rows[subject]]
        moved = unit_vectors(queries @ shrinking(self.covariance(subject), strength))
        right = [
            float(((images @ one.T).argmax(axis=1) == place).mean()) for one in (queries, moved)
        ]
        return right[0] - right[1]


def shrinking(covariance: Floats, strength: float) -> Floats:
    """Return the matrix (I + strength · C)⁻¹, which is symmetric."""
    found = np.linalg.inv(np.eye(len(covariance)) + strength * covariance).astype(np.float64)
    return np.asarray((found + found.T) / 2.0)
