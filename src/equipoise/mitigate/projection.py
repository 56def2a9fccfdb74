"""Removal of group directions in closed form: what tells captions apart is projected out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.mitigate.embedding import texts_read
from equipoise.mitigate.fitting import wrapped
from equipoise.mitigate.record import digest_of_texts, record_of
from equipoise.mitigate.sets import SubjectTexts
from equipoise.models.wrapped import Wrapping

if TYPE_CHECKING:
    from equipoise.mitigate.recipe import Progress, Training
    from equipoise.models import DualEncoder

Floats = npt.NDArray[np.float64]

# Of the largest singular value: directions that are smaller are rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class DirectionRemoval:
    """Vectors without the directions in which captions of one subject differ by attribute.

    Attributes
    ----------
    name : str
    directions : int, optional
        How many; None: one less than the values of each attribute, summed.
    removed_from : "texts", "images" or "both"
    """

    name: str = "direction_removal"
    directions: int | None = None
    removed_from: Literal["texts", "images", "both"] = "both"

    @property
    def facts(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"recipe": "direction_removal", **asdict(self)}

    def fit(
        self,
        base: DualEncoder,
        training: Training,
        out: Path,
        *,
        seed: int = 0,
        progress: Progress | None = None,  # noqa: ARG002 - every recipe is told
    ) -> DualEncoder:
        """Find the directions in the captions of the training subjects."""
        inputs = {"texts": digest_of_texts(training.texts), "subjects": sorted(training.subjects)}
        record = record_of(self.facts, base, seed, inputs)

        def make() -> Wrapping:
            both = ("texts", "images")
            rows = group_directions(base, training.texts, self.directions)
            return Wrapping(
                transform=(np.eye(rows.shape[1]) - rows.T @ rows).astype(np.float32),
                applied_to=both if self.removed_from == "both" else (self.removed_from,),
                record=record,
            )

        return wrapped(out, base, record, make)


def group_directions(
    base: DualEncoder, texts: Sequence[SubjectTexts], count: int | None = None
) -> Floats:
    """Return the directions in which captions that differ in an attribute alone lie apart.

    Of each subject and attribute the mean unit vector of the captions of every value is taken,
    less the mean over values; directions are the first right singular vectors of all of these.

    Parameters
    ----------
    base : DualEncoder
    texts : sequence of SubjectTexts
    count : int, optional
        See `DirectionRemoval`.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows.

    Raises
    ------
    InputError
        When no attribute has two values, or more directions are asked for than there are.
    """
    apart: list[Floats] = []
    values: dict[str, set[str]] = defaultdict(set)
    for one in texts:
        vectors = texts_read(base, one.attributed)
        for attribute, means in _means(vectors, one.values).items():
            if len(means) > 1:
                values[attribute] |= {*means}
                stacked = np.stack([*means.values()])
                apart.append(stacked - stacked.mean(axis=0))
    wanted = sum(len(named) - 1 for named in values.values()) if count is None else count
    rows = np.concatenate(apart) if apart else np.empty((0, 0))
    if not 1 <= wanted <= min(rows.shape, default=0):
        raise InputError(
            f"{wanted} directions of captions that differ in {len(rows)} ways; expected at least "
            "one, and captions of at least two values of an attribute"
        )
    return principal_rows(rows, wanted)


def principal_rows(rows: Floats, most: int) -> Floats:
    """Return the directions in which rows are largest.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, dimension)
    most : int
        At most so many; fewer where rows lie in fewer.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows, the one in which rows are largest first.
    """
    _, sizes, turned = np.linalg.svd(rows, full_matrices=False)
    turned = turned[: min(most, int((sizes > _NOTHING * sizes[0]).sum()))]
    # The sign of a singular vector is the library's; the largest part is positive.
    largest = np.abs(turned).argmax(axis=1)
    return np.asarray(turned * np.sign(turned[np.arange(len(turned)), largest])[:, None])


def _means(unit: Floats, values: Sequence[Mapping[str, str]]) -> dict[str, dict[str, Floats]]:
    """Return the mean vector of the captions of each value, by attribute."""
    rows: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row, named in enumerate(values):
        for attribute, value in named.items():
            if value:
                rows[attribute][value].append(row)
    return {
        attribute: {value: unit[some].mean(axis=0) for value, some in sorted(by_value.items())}
        for attribute, by_value in rows.items()
    }
