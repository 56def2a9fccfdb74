"""Images with what a data set says of them, whatever format it came in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import polars as pl

from equipoise.core import Booleans, DataError, InputError, Integers, Objects
from equipoise.data.labels import Items, ItemSource, load_items
from equipoise.data.problems import match


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


ID = "image_id"
LABEL = "label"
Schema = Mapping[str, type[pl.DataType]]
MARKS = ("labels", "captions", "boxes")
"""What a set may have of its images, beside their table."""
CORNERS = ("left", "top", "width", "height")
BOX: Schema = {LABEL: pl.String, **dict.fromkeys(CORNERS, pl.Float64)}


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in the order of their ids, with columns, labels, captions and boxes.

    Attributes
    ----------
    name : str
        The files as given.
    format : str
    table : polars.DataFrame
        `image_id`, each once and sorted as text, and attributes and other facts as text.
    labels : polars.DataFrame or None
        `image_id` and `label`: each pair once, sorted.
    captions : polars.DataFrame or None
        `image_id` and `caption`, sorted.
    boxes : polars.DataFrame or None
        `image_id`, `label`, and `left`, `top`, `width` and `height` in pixels, sorted. A box of
        two labels has two rows.
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Of reading: what was read, and what was left out.
    steps : tuple of Step
        The rules applied since, in order, with their counts.
    """

    name: str
    format: str
    table: pl.DataFrame
    labels: pl.DataFrame | None
    captions: pl.DataFrame | None
    boxes: pl.DataFrame | None
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    steps: tuple[Step, ...] = ()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.table)

    @property
    def ids(self) -> Objects:
        """Ids of the images, shape (n,)."""
        return self.table[ID].to_numpy()

    @property
    def columns(self) -> list[str]:
        """Names of the columns beside the id."""
        return [name for name in self.table.columns if name != ID]

    def column(self, name: str) -> pl.Series:
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
        return self.table[name]

    def with_column(self, values: pl.Series, step: Step) -> ImageSet:
        """Return the set with one more column, made by a rule.

        Raises
        ------
        InputError
            When there is such a column.
        """
        if values.name in self.table.columns:
            raise InputError(
                f"{self.name} has a column {values.name!r} already; expected another name: give "
                "the rule a 'version'"
            )
        return replace(self, table=self.table.with_columns(values), steps=(*self.steps, step))

    def places(self, marks: pl.DataFrame) -> Integers:
        """Return the position of the image of each label, caption or box."""
        return match(marks[ID], self.table[ID])

    def take(self, kept: Booleans, step: Step) -> ImageSet:
        """Return the images that a rule keeps, with what belongs to them."""
        table = self.table.filter(kept)
        return self.changed(lambda marks: marks.filter(kept[self.places(marks)]), table, step)

    def changed(
        self, change: Callable[[pl.DataFrame], pl.DataFrame], table: pl.DataFrame, step: Step
    ) -> ImageSet:
        """Return the set with another table, and its labels, captions and boxes changed alike."""
        marks = {name: getattr(self, name) for name in MARKS}
        found: dict[str, Any] = {
            name: None if one is None else change(one) for name, one in marks.items()
        }
        return replace(self, table=table, steps=(*self.steps, step), **found)

    def apply(self, *rules: Rule) -> ImageSet:
        """Return the set after some rules, one after the other."""
        images = self
        for rule in rules:
            images = rule(images)
        return images

    def image_table(self) -> pl.DataFrame:
        """Return one row per image: its id and every column as text."""
        return self.table

    def label_table(self) -> pl.DataFrame:
        """Return the labels as a table with a row for each image and label.

        Raises
        ------
        InputError
            When there are no labels.
        """
        if self.labels is None:
            raise InputError(f"{self.name} has no labels; combine it with a set that has some")
        return self.labels

    def items(self) -> Items:
        """Return the images as items with every column that has a value."""
        named = tuple(name for name in self.columns if self.table[name].count())
        items = load_items(ItemSource(self.table, ID, named), what="images")
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
    """Positions of ids in a list of a JSON file.

    Parameters
    ----------
    file, what : str
        The path as given, and what has the ids, for errors.
    ids : iterable of str
    key : str
        Of the list, empty for the outermost.

    Raises
    ------
    DataError
        When an id is there twice.
    """

    def __init__(self, file: str, what: str, ids: Iterable[str], key: str) -> None:
        self._file, self._what = file, what
        self._places: dict[str, int] = {}
        for place, one in enumerate(ids):
            if one in self._places:
                raise DataError(
                    f"the {what} id {one!r} is there twice",
                    file=f"{file}, {key}[{place}]",
                    expected="every id once",
                    fix="remove one of the two",
                )
            self._places[one] = place

    def of(self, key: str, place: str) -> int:
        """Return the position of an id; one that is not there is an error."""
        if key not in self._places:
            raise DataError(
                f"there is no {self._what} of the id {key!r}",
                file=f"{self._file}, {place}",
                expected="an id that is listed",
                fix="use files, and their lists, of one and the same version of the data",
            )
        return self._places[key]


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
    """Return what was gathered in an order that does not depend on that of the file.

    Raises
    ------
    DataError
        When a column has the name of the ids.
    """
    if ID in gathered.columns:
        raise DataError(
            "a column has the name of the ids of images",
            file=name,
            column=ID,
            fix="rename the column, or name it as `id`",
        )
    data = {ID: gathered.ids, **gathered.columns}
    table = pl.DataFrame(data, schema=dict.fromkeys(data, pl.String)).sort(ID)

    def marks(rows: Iterable[tuple[Any, ...]] | None, schema: Schema) -> pl.DataFrame | None:
        if rows is None:
            return None
        of_images = [(gathered.ids[image], *row) for image, *row in rows]
        return pl.DataFrame(of_images, schema={ID: pl.String, **schema}, orient="row").sort(
            ID, *schema
        )

    labels = marks(None if gathered.labels is None else {*gathered.labels}, {LABEL: pl.String})
    captions = marks(gathered.captions, {"caption": pl.String})
    corners = ((image, label, *box) for image, label, box in gathered.boxes or ())
    boxes = marks(None if gathered.boxes is None else corners, BOX)
    return ImageSet(name, format, table, labels, captions, boxes, inputs, counts, steps)
