"""Images with what a data set says of them, whatever format it came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
import polars as pl

from equipoise.core import DataError, InputError
from equipoise.core.arrays import Booleans, Floats, Integers, Objects
from equipoise.data.labels import Items, ItemSource, load_items
from equipoise.data.outputs import Coded


class Marked:
    """Something that belongs to images, in one row each.

    Attributes
    ----------
    image : ndarray of int64, shape (rows,)
        Position of the image.
    """

    image: Integers

    def take(self, kept: Booleans) -> Self:
        """Return what belongs to the images kept, with their new positions."""
        rows = np.flatnonzero(kept[self.image])
        moved = (np.cumsum(kept) - 1)[self.image[rows]]
        parts = {
            name: part.take(rows) if isinstance(part, Coded) else part[rows]
            for name, part in vars(self).items()
        }
        return type(self)(**parts | {"image": moved})


@dataclass(frozen=True, eq=False)
class Pairs(Marked):
    """Labels by image, each pair once, in the order of images and then labels.

    Attributes
    ----------
    image : ndarray of int64, shape (pairs,)
        Position of the image.
    label : Coded, shape (pairs,)
    """

    image: Integers
    label: Coded


@dataclass(frozen=True, eq=False)
class Captions(Marked):
    """Texts by image, in the order of images and then texts.

    Attributes
    ----------
    image : ndarray of int64, shape (captions,)
    texts : ndarray of str objects, shape (captions,)
    """

    image: Integers
    texts: Objects


@dataclass(frozen=True, eq=False)
class Boxes(Marked):
    """Boxes by image, in the order of images, labels and then corners.

    Attributes
    ----------
    image : ndarray of int64, shape (boxes,)
    label : Coded, shape (boxes,)
        What the box holds; a box of two labels has two rows.
    corners : ndarray of float64, shape (boxes, 4)
        Left, top, width and height in pixels.
    """

    image: Integers
    label: Coded
    corners: Floats


@dataclass(frozen=True)
class Step:
    """A declared rule that was applied.

    Attributes
    ----------
    name : str
    description : str
        The rule in words, the same for the same rule.
    counts : mapping
        What it did to how many images or labels.
    """

    name: str
    description: str
    counts: Mapping[str, Any]


def coded(values: Sequence[str | None]) -> Coded:
    """Encode some texts; None is missing."""
    return Coded.of(pl.Series(values, dtype=pl.String))


def pairs(labels: Iterable[tuple[int, str]]) -> Pairs:
    """Return pairs of an image and a label, each once and in order."""
    ordered = sorted({*labels})
    image = np.array([position for position, _ in ordered], dtype=np.int64)
    return Pairs(image, coded([text for _, text in ordered]))


ID = "image_id"
LABEL = "label"


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in the order of their ids, with columns, labels, captions and boxes.

    Attributes
    ----------
    name : str
        The files as given.
    format : str
    ids : ndarray of str objects, shape (n,)
        Each once, sorted as text.
    columns : mapping of str to Coded, shape (n,)
        Attributes and other facts as text; -1 where missing.
    labels : Pairs or None
    captions : Captions or None
    boxes : Boxes or None
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Of reading: what was read, and what was left out.
    steps : tuple of Step
        The rules applied since, in order, with their counts.
    """

    name: str
    format: str
    ids: Objects
    columns: Mapping[str, Coded]
    labels: Pairs | None
    captions: Captions | None
    boxes: Boxes | None
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    steps: tuple[Step, ...] = ()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.ids)

    def column(self, name: str) -> Coded:
        """Return a column.

        Raises
        ------
        InputError
            When there is no such column.
        """
        if name not in self.columns:
            raise InputError(
                f"{self.name} has no column {name!r}; expected one of "
                f"{', '.join(map(repr, self.columns)) or 'none, since there are no columns'}"
            )
        return self.columns[name]

    def with_column(self, name: str, values: Coded, step: Step) -> ImageSet:
        """Return the set with one more column, made by a rule.

        Raises
        ------
        InputError
            When there is such a column.
        """
        if name in self.columns or name == ID:
            raise InputError(
                f"{self.name} has a column {name!r} already; expected another name: give the rule "
                "a 'version'"
            )
        columns = {**self.columns, name: values}
        return replace(self, columns=columns, steps=(*self.steps, step))

    def take(self, kept: Booleans, step: Step) -> ImageSet:
        """Return the images that a rule keeps, with what belongs to them."""
        return replace(
            self,
            ids=self.ids[kept],
            columns={name: column.take(kept) for name, column in self.columns.items()},
            labels=self.labels.take(kept) if self.labels else None,
            captions=self.captions.take(kept) if self.captions else None,
            boxes=self.boxes.take(kept) if self.boxes else None,
            steps=(*self.steps, step),
        )

    def apply(self, *rules: Rule) -> ImageSet:
        """Return the set after some rules, one after the other."""
        images = self
        for rule in rules:
            images = rule(images)
        return images

    def image_table(self) -> pl.DataFrame:
        """Return one row per image: its id and every column as text."""
        columns = {name: column.values.tolist() for name, column in self.columns.items()}
        data = {ID: self.ids.tolist(), **columns}
        return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))

    def label_table(self) -> pl.DataFrame:
        """Return the labels as a table with a row for each image and label.

        Raises
        ------
        InputError
            When there are no labels.
        """
        pairs = self.need_labels()
        data = {ID: self.ids[pairs.image].tolist(), LABEL: pairs.label.values.tolist()}
        return pl.DataFrame(data, schema=dict.fromkeys(data, pl.String))

    def need_labels(self) -> Pairs:
        """Return the labels.

        Raises
        ------
        InputError
            When there are none.
        """
        if self.labels is None:
            raise InputError(f"{self.name} has no labels; combine it with a set that has some")
        return self.labels

    def items(self) -> Items:
        """Return the images as items with every column that has a value."""
        named = tuple(name for name, column in self.columns.items() if (column.codes >= 0).any())
        items = load_items(ItemSource(self.image_table(), ID, named), what="images")
        return replace(items, name=self.name, inputs=self.inputs)


class Rule(Protocol):
    """A declared choice: a frozen object that makes a set from a set, and says how."""

    @property
    def description(self) -> str:
        """The rule in words, the same for the same rule."""
        ...

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the set under the rule, with one more step."""
        ...


class Places:
    """Positions of the ids met so far.

    Parameters
    ----------
    file, what : str
        The path as given, and what has the ids, for errors.
    """

    def __init__(self, file: str, what: str) -> None:
        self._file, self._what = file, what
        self._places: dict[str, int] = {}

    def add(self, key: str, place: str) -> int:
        """Keep an id and return its position; an id that was met is an error."""
        if key in self._places:
            raise DataError(
                f"the {self._what} id {key!r} is there twice, the second time at {place}",
                file=self._file,
                expected="every id once",
                fix="remove one of the two",
            )
        self._places[key] = len(self._places)
        return len(self._places) - 1

    def of(self, key: str, place: str) -> int:
        """Return the position of an id; one that is not there is an error."""
        if key not in self._places:
            raise DataError(
                f"there is no {self._what} of the id {key!r}",
                file=f"{self._file}, {place}",
                expected=f"an id that the list of each {self._what} has",
                fix="use the annotations and the list of one and the same version of the data",
            )
        return self._places[key]

    def __len__(self) -> int:
        """Return how many ids were met."""
        return len(self._places)


@dataclass
class Gathered:
    """What a reader collects, in the order of its file.

    Attributes
    ----------
    ids : list of str
        Each once.
    columns : dict of str to list of str or None
    labels : list of (int, str), optional
        Position of an image and a label; the same pair may come again.
    captions : list of (int, str), optional
        Position of an image and a text.
    boxes : list of (int, str, corners), optional
        Position of an image, a label, and left, top, width and height.
    """

    ids: list[str] = field(default_factory=list)
    columns: dict[str, list[str | None]] = field(default_factory=dict)
    labels: list[tuple[int, str]] | None = None
    captions: list[tuple[int, str]] | None = None
    boxes: list[tuple[int, str, tuple[float, ...]]] | None = None

    def counted(self) -> dict[str, int]:
        """Return how many pairs of image and label there are, and images without a label."""
        labelled = {*(self.labels or ())}
        images = len(self.ids) - len({image for image, _ in labelled})
        return {"pairs": len(labelled), "images_without_labels": images}

    def missing(self) -> dict[str, int]:
        """Return the images by column where the cell is empty."""
        return {name: values.count(None) for name, values in self.columns.items()}


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
    labels = captions = boxes = None
    if gathered.labels is not None:
        labels = pairs((int(place[image]), label) for image, label in gathered.labels)
    if gathered.captions is not None:
        ordered = sorted((int(place[image]), text) for image, text in gathered.captions)
        texts = np.array([text for _, text in ordered], dtype=object)
        captions = Captions(np.array([image for image, _ in ordered], dtype=np.int64), texts)
    if gathered.boxes is not None:
        marked = sorted((int(place[image]), text, box) for image, text, box in gathered.boxes)
        boxes = Boxes(
            np.array([image for image, _, _ in marked], dtype=np.int64),
            coded([label for _, label, _ in marked]),
            np.array([corners for *_, corners in marked], dtype=np.float64).reshape(-1, 4),
        )
    ids = np.array(gathered.ids, dtype=object)[order]
    return ImageSet(name, format, ids, columns, labels, captions, boxes, inputs, counts, steps)
