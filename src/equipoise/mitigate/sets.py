"""What a recipe learns from: texts of subjects, counterfactual sets of images, plain pairs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True)
class SubjectTexts:
    """What is said of one subject, with and without attributes.

    Attributes
    ----------
    subject : str
    neutral : tuple of str
        Prompts that name the subject and no attribute.
    attributed : tuple of str
        Captions that name it with attributes: counterfactuals of one another.
    values : tuple of mapping of str to str
        Of each caption, attribute to the value that it names.
    """

    subject: str
    neutral: tuple[str, ...]
    attributed: tuple[str, ...]
    values: tuple[Mapping[str, str], ...]

    def __post_init__(self) -> None:
        for name, texts in (("neutral", self.neutral), ("attributed", self.attributed)):
            if not texts:
                raise InputError(f"{self.subject!r} has no {name} text; expected at least one")
        if len(self.values) != len(self.attributed):
            raise InputError(
                f"{self.subject!r} has {len(self.attributed)} attributed texts and values of "
                f"{len(self.values)}; expected as many"
            )


@dataclass(frozen=True, eq=False)
class ImageSets:
    """Images in counterfactual sets: members of a set differ in their attributes alone.

    Attributes
    ----------
    images : sequence of n images
        uint8 arrays (height, width, 3); a sequence may read each when it is asked for.
    subject, set, caption : ndarray of str objects, shape (n,)
    attributes : mapping of str to ndarray of str objects, shape (n,)
        Values by attribute; None where an image has none.
    """

    images: Any = field(repr=False)
    subject: Objects = field(repr=False)
    set: Objects = field(repr=False)
    caption: Objects = field(repr=False)
    attributes: Mapping[str, Objects] = field(repr=False)

    def __post_init__(self) -> None:
        n = len(self.images)
        columns = {"subject": self.subject, "set": self.set, "caption": self.caption}
        for name, column in {**columns, **self.attributes}.items():
            if len(column) != n:
                raise InputError(f"{name}: {len(column)} rows; expected {n}, one for each image")
        owner: dict[str, str] = {}
        for name, subject in zip(self.set, self.subject, strict=True):
            if owner.setdefault(name, subject) != subject:
                raise InputError(
                    f"the set {name!r} has images of {owner[name]!r} and of {subject!r}; expected "
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
        wanted = {*subjects}
        rows = np.flatnonzero([subject in wanted for subject in self.subject])
        return ImageSets(
            Rows(self.images, rows),
            self.subject[rows],
            self.set[rows],
            self.caption[rows],
            {name: values[rows] for name, values in self.attributes.items()},
        )

    def by_set(self) -> dict[str, npt.NDArray[np.intp]]:
        """Return the rows of each set, sets sorted by name."""
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(self.set.tolist()):
            rows.setdefault(str(name), []).append(row)
        return {name: np.array(rows[name], dtype=np.intp) for name in sorted(rows)}


def joined(parts: Sequence[ImageSets]) -> ImageSets:
    """Return the images of several parts as one; they have the same attributes."""
    return ImageSets(
        Several(tuple(one.images for one in parts)),
        np.concatenate([one.subject for one in parts]),
        np.concatenate([one.set for one in parts]),
        np.concatenate([one.caption for one in parts]),
        {
            name: np.concatenate([one.attributes[name] for one in parts])
            for name in parts[0].attributes
        },
    )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Images with their captions, without sets: data of one's own, mixed in when training.

    Attributes
    ----------
    images : sequence of n images
    caption : ndarray of str objects, shape (n,)
    """

    images: Any = field(repr=False)
    caption: Objects = field(repr=False)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.images)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a sequence of images, looked up when they are asked for."""

    every: Any
    rows: npt.NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Any:
        return self.every[int(self.rows[place])]

    def content(self, place: int) -> bytes:
        """Return the bytes that an image is made of."""
        return content_of(self.every, int(self.rows[place]))


@dataclass(frozen=True, eq=False)
class Several:
    """Sequences of images, one after the other."""

    parts: tuple[Any, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __getitem__(self, place: int) -> Any:
        part, row = self._found(place)
        return part[row]

    def content(self, place: int) -> bytes:
        """Return the bytes that an image is made of."""
        return content_of(*self._found(place))

    def _found(self, place: int) -> tuple[Any, int]:
        for part in self.parts:
            if place < len(part):
                return part, place
            place -= len(part)
        raise IndexError(place)


def content_of(images: Any, place: int) -> bytes:
    """Return the bytes that an image is made of: of its file, or of its pixels."""
    if hasattr(images, "content"):
        return bytes(images.content(place))
    return np.ascontiguousarray(images[place]).tobytes()
