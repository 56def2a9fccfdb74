"""What readers collect, put in an order that does not depend on that of a file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.coded import Coded
from equipoise.data.image_parts import Boxes, Captions, Pairs, Positions, Step, coded, unique_pairs
from equipoise.data.image_set import ImageSet


class Places:
    """Ids met so far, with where each is and its position.

    Parameters
    ----------
    file, what : str
        The path as given, and what has the ids, for errors.
    """

    def __init__(self, file: str, what: str) -> None:
        self._file, self._what = file, what
        self._places: dict[str, tuple[int, str]] = {}

    def add(self, key: str, place: str) -> int:
        """Keep an id and return its position; an id that was met is an error."""
        if key in self._places:
            raise DataError(
                f"the {self._what} id {key!r} is at {self._places[key][1]} and {place}",
                file=self._file,
                expected="every id once",
                fix="remove one of the two",
            )
        self._places[key] = (len(self._places), place)
        return len(self._places) - 1

    def of(self, key: str, place: str, where: str) -> int:
        """Return the position of an id; one that is not there is an error."""
        if key not in self._places:
            raise DataError(
                f"there is no {self._what} of the id {key!r}",
                file=f"{self._file}, {place}",
                expected=f"an id that {where} has",
                fix="use the annotations and the list of one and the same version of the data",
            )
        return self._places[key][0]

    def __contains__(self, key: str) -> bool:
        """Whether an id was met."""
        return key in self._places

    def __len__(self) -> int:
        """Return how many ids were met."""
        return len(self._places)


class Marks:
    """Labels of images, with boxes if they have any, held as numbers: there may be millions."""

    def __init__(self, marks: Iterable[tuple[int, str]] = ()) -> None:
        self._image, self._label, self._corners = array("q"), array("q"), array("d")
        self._codes: dict[str, int] = {}
        for image, label in marks:
            self.add(image, label)

    def add(self, image: int, label: str, corners: tuple[float, ...] = ()) -> None:
        """Keep a label of an image; the same one may come again."""
        self._image.append(image)
        self._label.append(self._codes.setdefault(label, len(self._codes)))
        self._corners.extend(corners)

    @property
    def image(self) -> Positions:
        """Position of the image of each mark."""
        return np.array(self._image, dtype=np.int64)

    @property
    def label(self) -> Coded:
        """Label of each mark."""
        names = sorted(self._codes)
        place = {name: code for code, name in enumerate(names)}
        codes = np.array([place[name] for name in self._codes] or [0], dtype=np.int32)
        return Coded(codes[np.array(self._label, dtype=np.int64)], tuple(names))

    @property
    def corners(self) -> npt.NDArray[np.float64]:
        """Corners of each mark, shape (marks, 4)."""
        return np.array(self._corners, dtype=np.float64).reshape(-1, 4)

    @property
    def images(self) -> int:
        """How many images have a mark."""
        return len(np.unique(self.image))

    @property
    def pairs(self) -> int:
        """How many different pairs of image and label there are."""
        return len(unique_pairs(self.image, self.label).image)


@dataclass
class Gathered:
    """What a reader collects, in the order of its file.

    Attributes
    ----------
    ids : list of str
        Each once.
    columns : dict of str to list of str or None
    labels : Marks, optional
    captions : list of (int, str), optional
        Position of an image and a text.
    boxes : Marks, optional
    """

    ids: list[str] = field(default_factory=list)
    columns: dict[str, list[str | None]] = field(default_factory=dict)
    labels: Marks | None = None
    captions: list[tuple[int, str]] | None = None
    boxes: Marks | None = None


def image_set(
    gathered: Gathered,
    *,
    name: str,
    format: str,  # noqa: A002 - the field has this name
    inputs: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, Any],
    steps: tuple[Step, ...] = (),
) -> ImageSet:
    """Return what was gathered in an order that does not depend on that of the file."""
    order = np.array(sorted(range(len(gathered.ids)), key=gathered.ids.__getitem__), dtype=np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    columns = {
        column: coded([values[row] for row in order.tolist()])
        for column, values in gathered.columns.items()
    }
    return ImageSet(
        name=name,
        format=format,
        ids=np.array(gathered.ids, dtype=object)[order],
        columns=columns,
        labels=None if gathered.labels is None else _labels(gathered.labels, place),
        captions=None if gathered.captions is None else _captions(gathered.captions, place),
        boxes=None if gathered.boxes is None else _boxes(gathered.boxes, place),
        inputs=inputs,
        counts=counts,
        steps=steps,
    )


def _labels(labels: Marks, place: Positions) -> Pairs:
    return unique_pairs(place[labels.image], labels.label)


def _captions(captions: list[tuple[int, str]], place: Positions) -> Captions:
    ordered = sorted((int(place[position]), text) for position, text in captions)
    texts = np.array([text for _, text in ordered], dtype=object)
    return Captions(np.array([position for position, _ in ordered], dtype=np.int64), texts)


def _boxes(boxes: Marks, place: Positions) -> Boxes:
    image, label, corners = place[boxes.image], boxes.label, boxes.corners
    order = np.lexsort((*corners.T[::-1], label.codes, image))
    return Boxes(image[order], Coded(label.codes[order], label.vocabulary), corners[order])
