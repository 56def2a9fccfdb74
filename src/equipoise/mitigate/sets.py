"""Training data of recipes: texts of subjects, counterfactual sets, pairs, and their split."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core import Floats, InputError, Objects, Positions, record
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder
from equipoise.stats.streams import stream

VALIDATION = 0.2
"""Default share of the training subjects on which a loss is watched."""


@dataclass(frozen=True)
class SubjectTexts:
    """Texts about one subject, with and without attributes.

    Attributes
    ----------
    subject : str
    neutral : tuple of str
        Prompts that name the subject and no attribute.
    attributed : tuple of str
        Captions that name it with attributes: counterfactuals of one another.
    values : tuple of mapping of str to str
        For each caption, the value of each attribute that it names.
    """

    subject: str
    neutral: tuple[str, ...]
    attributed: tuple[str, ...]
    values: tuple[Mapping[str, str], ...]


def list_named_values(texts: Iterable[SubjectTexts]) -> tuple[str, ...]:
    """Return the attribute values that captions name, sorted."""
    values: set[str] = set()
    for subject_texts in texts:
        for row in subject_texts.values:
            values.update(row.values())
    return tuple(sorted(values - {""}))


@record
class ImageSets:
    """Images in counterfactual sets: members differ in their attributes alone.

    Attributes
    ----------
    images : sequence of n images
        uint8 arrays (height, width, 3); a sequence may read each image on access.
    subject, set, caption : ndarray of str objects, shape (n,)
    attributes : mapping of str to ndarray of str objects, shape (n,)
        Values by attribute; None where an image has none.
    """

    images: Any
    subject: Objects
    set: Objects
    caption: Objects
    attributes: Mapping[str, Objects]

    def __post_init__(self) -> None:
        owners: dict[str, str] = {}
        for name, subject in zip(self.set, self.subject, strict=True):
            if owners.setdefault(name, subject) != subject:
                raise InputError(
                    f"the set {name!r} has images of {owners[name]!r} and of {subject!r}; expected "
                    "one subject in a set"
                )

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.images)

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects, sorted."""
        return tuple(sorted({*self.subject.tolist()}))

    def of(self, subjects: Collection[str]) -> ImageSets:
        """Return the images of some subjects."""
        rows = np.flatnonzero(np.isin(self.subject.astype(str), [*subjects]))
        return select_rows([(self, rows)])

    def by_set(self) -> dict[str, Positions]:
        """Return the rows of each set, sets sorted by name."""
        names, codes = np.unique(self.set.astype(str), return_inverse=True)
        rows = np.split(np.argsort(codes, kind="stable"), np.bincount(codes).cumsum()[:-1])
        # Of no images there is one empty part, and no name.
        return dict(zip(names.tolist(), rows, strict=False))

    def deviations(self, vectors: Floats) -> Floats:
        """Return image vectors, (n, dimension), less the mean of their set."""
        deviations = vectors.copy()
        for rows in self.by_set().values():
            deviations[rows] -= vectors[rows].mean(axis=0)
        return deviations


def select_rows(parts: Sequence[tuple[ImageSets, Positions]]) -> ImageSets:
    """Return some rows of sets that have the same attributes."""
    places: list[tuple[Any, int]] = []
    subjects, set_names, captions = [], [], []
    attributes: dict[str, list[Objects]] = {name: [] for name in parts[0][0].attributes}
    for part, rows in parts:
        places += [(part.images, row) for row in rows.tolist()]
        subjects.append(part.subject[rows])
        set_names.append(part.set[rows])
        captions.append(part.caption[rows])
        for name, columns in attributes.items():
            columns.append(part.attributes[name][rows])
    return ImageSets(
        Lookup(places),
        np.concatenate(subjects),
        np.concatenate(set_names),
        np.concatenate(captions),
        {name: np.concatenate(columns) for name, columns in attributes.items()},
    )


@record
class Lookup:
    """Images of other sequences, read on access."""

    places: Sequence[tuple[Any, int]]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, place: int) -> Any:
        images, row = self.places[place]
        return images[row]

    def content(self, place: int) -> bytes:
        """Return the bytes of an image."""
        return read_content(*self.places[place])


def read_content(images: Images, place: int) -> bytes:
    """Return the bytes of an image's file, or of its pixels without a file."""
    if hasattr(images, "content"):
        return bytes(images.content(place))
    return np.ascontiguousarray(images[place]).tobytes()


@dataclass(frozen=True)
class Split:
    """Subjects to learn from, and subjects to withhold.

    Attributes
    ----------
    training, withheld : tuple of str
        Sorted, without a subject in common.

    Raises
    ------
    InputError
        When a subject is on both sides, or a side is empty.
    """

    training: tuple[str, ...]
    withheld: tuple[str, ...]

    def __post_init__(self) -> None:
        shared = sorted({*self.training} & {*self.withheld})
        if shared or not self.training or not self.withheld:
            raise InputError(
                f"{len(self.training)} subjects to learn from, {len(self.withheld)} withheld, on "
                f"both sides: {', '.join(shared[:5]) or 'none'}; expected at least one on either "
                "side, none on both"
            )


def split_subjects(subjects: Collection[str], *, withheld: float = 0.2, seed: int = 0) -> Split:
    """Withhold a share of the subjects, drawn at random.

    Parameters
    ----------
    subjects : collection of str
        At least two.
    withheld : float
        Share to withhold, in (0, 1); rounded up to whole subjects, at least one left.
    seed : int

    Raises
    ------
    InputError
        When there are fewer than two subjects, or the share is outside (0, 1).
    """
    order = _shuffle(subjects, seed, "split")
    if len(order) < 2 or not 0.0 < withheld < 1.0:
        raise InputError("expected at least two subjects, and a share between 0 and 1")
    count = min(len(order) - 1, math.ceil(withheld * len(order) - 1e-9))
    return Split(tuple(sorted(order[count:])), tuple(sorted(order[:count])))


def _shuffle(subjects: Collection[str], seed: int, purpose: str) -> list[str]:
    names = sorted({*subjects})
    return [names[place] for place in stream(seed, "mitigate", purpose).permutation(len(names))]


def folds(subjects: Collection[str], *, count: int = 4, seed: int = 0) -> tuple[Split, ...]:
    """Split the subjects into folds, each withheld once.

    Parameters
    ----------
    subjects : collection of str
    count : int
        Parts, at least 2 and at most one for each subject.
    seed : int

    Raises
    ------
    InputError
        When there are too few subjects for the parts.
    """
    order = _shuffle(subjects, seed, "folds")
    if not 2 <= count <= len(order):
        raise InputError(f"{count} folds of {len(order)} subjects; expected a subject in each")
    splits = []
    for start in range(count):
        withheld = order[start::count]
        splits.append(Split(tuple(sorted({*order} - {*withheld})), tuple(sorted(withheld))))
    return tuple(splits)


@record
class Training:
    """Data that a recipe may learn from, and data by which it may stop.

    Attributes
    ----------
    texts : tuple of SubjectTexts
        Texts of the training subjects.
    validation : tuple of SubjectTexts
        Texts of other subjects, on which a loss is watched while training; may be empty.
    images, validation_images : ImageSets, optional
        Images of the same subjects.
    teacher : DualEncoder, optional
        What reads generated images while a recipe learns.
    """

    texts: tuple[SubjectTexts, ...]
    validation: tuple[SubjectTexts, ...] = ()
    images: ImageSets | None = None
    validation_images: ImageSets | None = None
    teacher: DualEncoder | None = None

    def __post_init__(self) -> None:
        watched = tuple(texts.subject for texts in self.validation)
        if not self.texts:
            raise InputError("there is no subject to learn from")
        if watched:
            Split(self.subjects, watched)
        for images, side_subjects in (
            (self.images, self.subjects),
            (self.validation_images, watched),
        ):
            if unknown := {*(images.subjects if images else ())} - {*side_subjects}:
                raise InputError(f"there are images of {min(unknown)!r}, and no texts on its side")

    @property
    def subjects(self) -> tuple[str, ...]:
        """The training subjects, in the order of their texts."""
        return tuple(texts.subject for texts in self.texts)

    @property
    def all_texts(self) -> tuple[SubjectTexts, ...]:
        """Texts of the training and the validation subjects."""
        return (*self.texts, *self.validation)

    def require_images(self, recipe: str, *, watched: bool = True) -> ImageSets:
        """Return the images of the training and validation subjects.

        Parameters
        ----------
        recipe : str
            Its name.
        watched : bool
            Whether to include the validation subjects.

        Raises
        ------
        InputError
            When there are none.
        """
        sides = [self.images, self.validation_images if watched else None]
        parts = [(part, np.arange(len(part))) for part in sides if part]
        if not parts:
            raise InputError(f"{recipe} learns from images, and there are none of its subjects")
        return select_rows(parts)


def build_training(
    texts: Mapping[str, SubjectTexts],
    images: ImageSets,
    subjects: Sequence[str],
    *,
    validation: float = VALIDATION,
    seed: int = 0,
) -> Training:
    """Cut subjects into training and validation subjects.

    Parameters
    ----------
    texts : mapping of str to SubjectTexts
    images : ImageSets
        Images of other subjects are left out.
    subjects : sequence of str
        None of them withheld.
    validation : float
        Share of validation subjects; 0: none.
    seed : int
    """
    learned: tuple[str, ...] = tuple(subjects)
    watched: tuple[str, ...] = ()
    if validation:
        split = split_subjects(subjects, withheld=validation, seed=seed)
        learned, watched = split.training, split.withheld
    return Training(
        tuple(map(texts.__getitem__, learned)),
        tuple(map(texts.__getitem__, watched)),
        images.of(learned),
        images.of(watched) if watched else None,
    )
