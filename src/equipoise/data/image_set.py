"""Images with their attributes and labels, and rules that change a set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from equipoise.core import (
    Booleans,
    DataError,
    Facts,
    Fields,
    InputError,
    Integers,
    Objects,
    Strings,
    integers,
    record,
    tally,
)
from equipoise.core.types import FileFacts, Json
from equipoise.data.labels import Items, ItemSource, load_items
from equipoise.data.problems import listed, match, show
from equipoise.stats.streams import stream, unit_keys, unit_uniforms


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
    counts: Facts


ID = "image_id"
LABEL = "label"
Schema = Mapping[str, type[pl.DataType]]
MARKS = ("labels", "captions", "boxes")
"""What a set may have of its images, beside their table."""
CORNERS = ("left", "top", "width", "height")
BOX: Schema = {LABEL: pl.String, **dict.fromkeys(CORNERS, pl.Float64)}


@record
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
    inputs: Mapping[str, FileFacts]
    counts: Facts
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
        """Names of the columns except the id."""
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
        """Return the set with a new column, made by a rule.

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

    def take(self, mask: Booleans, step: Step) -> ImageSet:
        """Return the selected images with their labels, captions and boxes."""
        table = self.table.filter(mask)
        return self.replace_marks(lambda marks: marks.filter(mask[self.places(marks)]), table, step)

    def replace_marks(
        self, change: Callable[[pl.DataFrame], pl.DataFrame], table: pl.DataFrame, step: Step
    ) -> ImageSet:
        """Return the set with a new table, and labels, captions and boxes changed."""
        changed_marks: Fields = {}
        for name in MARKS:
            frame = getattr(self, name)
            if frame is not None:
                changed_marks[name] = change(frame)
        return replace(self, table=table, steps=(*self.steps, step), **changed_marks)

    def apply(self, *rules: Rule) -> ImageSet:
        """Return the set after applying the rules in order."""
        images = self
        for rule in rules:
            images = rule(images)
        return images

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
        items = load_items(ItemSource(self.table, ID, named), subject="images")
        return replace(items, name=self.name, inputs=self.inputs)


class Rule(Protocol):
    """A declared choice: a frozen object that makes a set from a set, and says how."""

    @property
    def description(self) -> str:
        """The rule in words, the same for the same rule."""
        ...

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the set under the rule, with a new step."""
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

    def __init__(self, file: str, subject: str, ids: Iterable[str], key: str) -> None:
        self._file, self._subject = file, subject
        self._places: dict[str, int] = {}
        for place, item_id in enumerate(ids):
            if item_id in self._places:
                raise DataError(
                    f"the {subject} id {item_id!r} is there twice",
                    file=f"{file}, {key}[{place}]",
                    expected="every id once",
                    fix="remove one of the two",
                )
            self._places[item_id] = place

    def index(self, key: str, place: str) -> int:
        """Return the position of an id; raise if it is not listed."""
        if key not in self._places:
            raise DataError(
                f"there is no {self._subject} of the id {key!r}",
                file=f"{self._file}, {place}",
                expected="an id that is listed",
                fix="use files, and their lists, of one and the same version of the data",
            )
        return self._places[key]


@dataclass
class ImageRecords:
    """Images as a reader collects them, in the order of their file.

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

    def count_labels(self) -> dict[str, int]:
        """Count the pairs of image and label, and images without a label."""
        labelled = {*(self.labels or ())}
        images = len(self.ids) - len({image for image, _ in labelled})
        return {"pairs": len(labelled), "images_without_labels": images}

    def count_missing(self) -> dict[str, int]:
        """Count the empty cells of each column."""
        return {name: values.count(None) for name, values in self.columns.items()}


def image_set(
    image_records: ImageRecords,
    *,
    name: str,
    format: str,  # noqa: A002 - the field has this name
    inputs: Mapping[str, FileFacts],
    counts: Mapping[str, Json],
    steps: tuple[Step, ...] = (),
) -> ImageSet:
    """Return records as a set, in an order that doesn't depend on the file's.

    Raises
    ------
    DataError
        When a column has the name of the ids.
    """
    if ID in image_records.columns:
        raise DataError(
            "a column has the name of the ids of images",
            file=name,
            column=ID,
            fix="rename the column, or name it as `id`",
        )
    data = {ID: image_records.ids, **image_records.columns}
    table = pl.DataFrame(data, schema=dict.fromkeys(data, pl.String)).sort(ID)

    def marks(rows: Iterable[tuple[Any, ...]] | None, schema: Schema) -> pl.DataFrame | None:
        if rows is None:
            return None
        of_images = [(image_records.ids[image], *row) for image, *row in rows]
        return pl.DataFrame(of_images, schema={ID: pl.String, **schema}, orient="row").sort(
            ID, *schema
        )

    labels = marks(
        None if image_records.labels is None else {*image_records.labels}, {LABEL: pl.String}
    )
    captions = marks(image_records.captions, {"caption": pl.String})
    corners = ((image, label, *box) for image, label, box in image_records.boxes or ())
    boxes = marks(None if image_records.boxes is None else corners, BOX)
    return ImageSet(name, format, table, labels, captions, boxes, inputs, counts, steps)


@dataclass(frozen=True)
class LeaveOutImages:
    """Leave out images by id.

    Attributes
    ----------
    ids : frozenset of str
    reason : str
        Who they are, in words, as in "they are in Visual Genome".
    """

    ids: frozenset[str]
    reason: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"images are left out where {self.reason}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted."""
        out = _is_in(images, self.ids)
        counts = {"images_left_out": int(out.sum()), "ids_not_here": len(self.ids - {*images.ids})}
        return _take_nonempty(images, ~out, Step("left out", self.description, counts))


def leave_out_visual_genome(visual_genome: ImageSet) -> LeaveOutImages:
    """Return the rule of [Hall] that leaves images of Visual Genome out of COCO.

    Parameters
    ----------
    visual_genome : ImageSet
        With the column `coco_id`, as `read_visual_genome_images` reads it.

    References
    ----------
    Hall et al. 2023, case study 1.
    """
    ids = visual_genome.column("coco_id").drop_nulls()
    return LeaveOutImages(frozenset(ids), "they are in Visual Genome too")


@dataclass(frozen=True)
class LeaveOutUnlabelled:
    """Leave out images without a label, as [Hall] does."""

    @property
    def description(self) -> str:
        """The rule in words."""
        return "images without a label are left out"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted.

        Raises
        ------
        InputError
            When the set has no labels at all.
        """
        labelled = np.zeros(len(images), dtype=np.bool_)
        labelled[images.places(images.label_table())] = True
        counts = {"images_left_out": tally(~labelled)}
        return _take_nonempty(images, labelled, Step("unlabelled", self.description, counts))


@dataclass(frozen=True)
class LeaveOutLabels:
    """Leave out some labels, for example labels that define the groups.

    Attributes
    ----------
    labels : frozenset of str
    reason : str
    """

    labels: frozenset[str]
    reason: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"labels are left out where {self.reason}: {', '.join(sorted(self.labels))}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted; images that lose every label stay."""
        pairs = images.label_table()
        out = pairs[LABEL].is_in([*self.labels])
        n_labels = pairs.filter(out)[LABEL].n_unique()
        counts = {"labels_left_out": n_labels, "pairs_left_out": int(out.sum())}
        step = Step("labels left out", self.description, counts)
        return replace(images, labels=pairs.filter(~out), steps=(*images.steps, step))


@dataclass(frozen=True)
class IdsFrom:
    """Name images by a column, for example `file_name` if scores name files.

    Attributes
    ----------
    column : str
    """

    column: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"images are named by the column {self.column}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Name them; the ids of before stand in the column `original_id`.

        Raises
        ------
        InputError
            When an image has no name there, or two have the same.
        """
        names = images.column(self.column)
        if names.has_nulls() or names.n_unique() < len(names):
            raise InputError(
                f"{images.name}, column {self.column!r}: an image has no name there, or two have "
                "the same; expected a name for each image"
            )

        def renamed(marks: pl.DataFrame) -> pl.DataFrame:
            return marks.with_columns(names[images.places(marks)].alias(ID)).sort(marks.columns)

        table = images.table.with_columns(names.alias(ID), images.table[ID].alias("original_id"))
        dropped = table if self.column == "original_id" else table.drop(self.column)
        step = Step("ids", self.description, {"images": len(images)})
        return images.replace_marks(renamed, dropped.sort(ID), step)


@dataclass(frozen=True)
class RandomSplit:
    """Images are split at random into "train" and "test".

    Attributes
    ----------
    share : float
        Of the test images, from 0 to 1.
    seed : int
    column : str
        Where the part of each image stands.
    """

    share: float
    seed: int = 0
    column: str = "split"

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"{self.share:.0%} of the images, drawn with seed {self.seed}, are test images"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Add the column; the parts of an image depend on the ids and the seed alone."""
        order = stream(self.seed, "split").permutation(len(images))
        test = order < round(self.share * len(images))
        part = pl.Series(self.column, np.where(test, "test", "train"))
        counts = {"test": tally(test), "train": tally(~test)}
        return images.with_column(part, Step("split", self.description, counts))


@dataclass(frozen=True)
class Sample:
    """Some images of each cell take part: drawn at random, or the first ones.

    Attributes
    ----------
    n : int
        Images of each cell; all where it has fewer.
    by : tuple of str
        Columns whose values make the cells; images without a value are left out.
    order : "random" or "first"
    rank : str, optional
        Column of numbers whose smallest are first; names otherwise, digits as numbers.
    seed : int
    """

    n: int
    by: tuple[str, ...] = ()
    order: Literal["random", "first"] = "random"
    rank: str | None = None
    seed: int = 0

    @property
    def description(self) -> str:
        """The rule in words."""
        how = f"drawn with seed {self.seed}"
        if self.order == "first":
            how = f"the first by {self.rank or 'name'}"
        of = f" of each {' × '.join(self.by)}" if self.by else ""
        return f"at most {self.n} images{of}, {how}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Take them; a draw depends on the names and the seed alone.

        Raises
        ------
        InputError
            When there is no such column, or a rank is no number.
        """
        names = [f"cell {place}" for place in range(len(self.by))]
        cells = [images.column(name).alias(cell) for name, cell in zip(self.by, names, strict=True)]
        places = pl.DataFrame([pl.Series("order", self._places_in_order(images)), *cells])
        ordered = places.with_row_index("place").drop_nulls().sort("order")
        cut = ordered.group_by(names, maintain_order=True) if names else ordered
        sampled_rows = cut.head(self.n)
        sampled = np.zeros(len(images), dtype=np.bool_)
        sampled[sampled_rows["place"].to_numpy()] = True
        counts = {"images_left_out": tally(~sampled)}
        return _take_nonempty(images, sampled, Step("sample", self.description, counts))

    def _places_in_order(self, images: ImageSet) -> Integers:
        """Return the place of each image in the order that they are taken in."""
        ids = images.ids.tolist()
        if self.order == "random":
            uniforms = unit_uniforms(self.seed, "sample", unit_keys(ids), range(1))[0]
            return integers(np.argsort(np.argsort(uniforms, kind="stable")))
        keys = [
            [
                int(text) if place % 2 else text
                for place, text in enumerate(re.split("([0-9]+)", name))
            ]
            for name in ids
        ]
        by_name = sorted(range(len(ids)), key=keys.__getitem__)
        if self.rank is not None:
            ranks = _ranks(images.column(self.rank), images)
            by_name.sort(key=ranks.__getitem__)
        places = np.empty(len(ids), np.int64)
        places[by_name] = np.arange(len(ids))
        return places


def _ranks(column: pl.Series, images: ImageSet) -> list[float]:
    numbers = column.cast(pl.Float64, strict=False).fill_nan(None)
    if numbers.has_nulls():
        place = int(numbers.is_null().arg_max() or 0)
        raise InputError(
            f"{images.name}, column {column.name!r}: the image {images.ids[place]!r} has "
            f"{show(column[place])}; expected a number for each image"
        )
    return numbers.to_list()


def concatenate(parts: Sequence[ImageSet]) -> ImageSet:
    """Join the images of several parts of a data set, for example train and val.

    Raises
    ------
    InputError
        When two parts share an image.
    """
    names = ", ".join(part.name for part in parts)
    table = pl.concat([part.table for part in parts], how="diagonal").sort(ID)
    if table[ID].has_nulls() or table[ID].n_unique() < len(table):
        twice = table[ID].filter(table[ID].is_duplicated())[0]
        raise InputError(
            f"the image {twice!r} is in two of {names}; expected parts without overlap"
        )

    joined_marks: Fields = {}
    for name in MARKS:
        frames = [frame for part in parts if (frame := getattr(part, name)) is not None]
        joined_marks[name] = pl.concat(frames).sort(frames[0].columns) if frames else None
    inputs: dict[str, FileFacts] = {}
    counts: dict[str, Json] = {}
    steps: list[Step] = []
    for part in parts:
        inputs |= part.inputs
        counts[part.name] = dict(part.counts)
        steps += part.steps
    return replace(
        parts[0],
        name=names,
        table=table,
        inputs=inputs,
        counts=counts,
        steps=tuple(steps),
        **joined_marks,
    )


def combine(first: ImageSet, second: ImageSet) -> ImageSet:
    """Return the images that two sets share, with the facts of both.

    Parameters
    ----------
    first, second : ImageSet
        As captions and instances of COCO. Where both have labels, captions, boxes or a column of
        one name, those of the first are used.

    Returns
    -------
    ImageSet
        With a step that counts the images of one set alone, which are left out.

    Raises
    ------
    DataError
        When they share no image.
    """
    shared = {*first.ids} & {*second.ids}
    if not shared:
        raise DataError(
            f"no image of {first.name} is in {second.name}",
            file=second.name,
            expected="sets of the same images",
            fix="read both files of one and the same part of the data (train or val)",
        )
    description = f"images of {first.format} that are images of {second.format} too"
    counts = {"images": len(shared), "only_first": len(first) - len(shared)}
    step = Step("combined", description, counts | {"only_second": len(second) - len(shared)})
    base = first.take(_is_in(first, shared), step)
    other = second.take(_is_in(second, shared), step)
    missing_marks = {name: getattr(other, name) for name in MARKS if getattr(base, name) is None}
    return replace(
        base,
        name=f"{first.name}, {second.name}",
        format=f"{first.format}, {second.format}",
        table=other.table.with_columns(base.table.get_columns()),
        inputs={**first.inputs, **second.inputs},
        counts={first.format: first.counts, second.format: second.counts},
        steps=(*first.steps, *second.steps, step),
        **missing_marks,
    )


def _is_in(images: ImageSet, ids: Set[str]) -> Booleans:
    return images.table[ID].is_in([*ids]).to_numpy()


def _take_nonempty(images: ImageSet, mask: Booleans, step: Step) -> ImageSet:
    """Return the selected images; raise if there are none."""
    if not mask.any():
        raise InputError(f"{images.name}: no image is left where {step.description}")
    return images.take(mask, step)


@dataclass(frozen=True)
class CropBoxes:
    """Each box of some labels becomes an image of its own.

    Attributes
    ----------
    labels : frozenset of str
        What is cropped, such as "person", or synsets.
    margin : float
        Share of the box's width and height that is added on each side, up to the border of the
        image.
    pixels : float
        Smaller boxes, in square pixels and before the margin, are left out.
    """

    labels: frozenset[str]
    margin: float = 0.0
    pixels: float = 0.0

    def __post_init__(self) -> None:
        """Check the margin.

        Raises
        ------
        InputError
            When there is no label, or a number is below 0.
        """
        if not self.labels or self.margin < 0 or self.pixels < 0:
            raise InputError(
                f"labels are {sorted(self.labels)}, margin is {self.margin:g} and pixels "
                f"{self.pixels:g}; expected labels, and 0 or more"
            )

    @property
    def description(self) -> str:
        """The rule in words."""
        least = f" of at least {self.pixels:g} pixels" if self.pixels else ""
        added = f", with {self.margin:.0%} of it added on each side" if self.margin else ""
        return f"crops of every box{least} of {', '.join(sorted(self.labels))}{added}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the crops as images, each with the columns and labels of its image.

        The columns `left`, `top`, `right` and `bottom` say what to cut out, in whole pixels, and
        `image` from where: name it as the unit, since crops of one image are not independent. Ids
        are the image's with the number of its crop, counted by label and corners. Several boxes
        with the same corners are one crop.

        Raises
        ------
        InputError
            When the set has no boxes, no sizes of images, or no box of these labels.
        """
        boxes = images.boxes
        if boxes is None or not {"width", "height"} <= {*images.columns}:
            raise InputError(f"{images.name} has no boxes, or no widths and heights of its images")
        labelled_boxes = boxes.filter(pl.col(LABEL).is_in([*self.labels]))
        large = labelled_boxes.filter(pl.col("width") * pl.col("height") >= self.pixels)
        image, corners = images.places(large), large.select(CORNERS).to_numpy()
        # A missing size would cut everything away; 0 does so openly, and is counted.
        sizes = images.table.select(pl.col("width", "height").cast(pl.Float64).fill_null(0))
        image_sizes = sizes.to_numpy()[image]
        low = np.floor(corners[:, :2] - self.margin * corners[:, 2:])
        high = np.ceil(corners[:, :2] + (1 + self.margin) * corners[:, 2:])
        cut = integers(
            np.column_stack([np.clip(low, 0, image_sizes), np.clip(high, 0, image_sizes)])
        )
        inside = (cut[:, 2:] > cut[:, :2]).all(axis=1)
        unique = np.unique(np.column_stack([image, cut])[inside], axis=0)
        if not len(unique):
            raise InputError(
                f"{images.name} leaves no box for {self.description}; expected some of its "
                f"{listed(boxes[LABEL].unique().sort())}, large enough and inside their images"
            )
        owner = unique[:, 0]
        counts: Mapping[str, int] = {
            "boxes": len(labelled_boxes),
            "boxes_too_small": len(labelled_boxes) - len(large),
            "boxes_outside": tally(~inside),
            "boxes_of_the_same_corners": int(inside.sum() - len(unique)),
            "images_without_crop": int(len(images) - len(np.unique(owner))),
        }
        numbers = pl.Series(np.arange(len(owner)) - np.searchsorted(owner, owner))
        sources = images.table[ID][owner].alias("image")
        ends = pl.DataFrame(unique[:, 1:], schema=["left", "top", "right", "bottom"], orient="row")
        ids = (sources + "#" + numbers.cast(pl.String)).alias(ID)
        table = images.table[owner].with_columns(ids, sources, *ends.cast(pl.String))
        labels = images.labels
        if labels is not None:
            pairs = table.select(ID, "image").join(labels, left_on="image", right_on=ID)
            labels = pairs.select(ID, LABEL).sort(ID, LABEL)
        return replace(
            images,
            format=f"crops of {images.format}",
            table=table.drop("width", "height").sort(ID),
            labels=labels,
            captions=None,
            boxes=None,
            steps=(*images.steps, Step("crops", self.description, counts)),
        )


_EXAMPLES = 5


@dataclass(frozen=True)
class ClassMapping:
    """Which classes of a model stand for each label of a data set.

    Attributes
    ----------
    name : str
    pairs : frozenset of (str, str)
        Label and class; either may be in several.
    """

    name: str
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, name: str, classes: Mapping[str, str | Sequence[str]]) -> ClassMapping:
        """Return the mapping of a dictionary of label to class or classes."""
        pairs: set[tuple[str, str]] = set()
        for label, class_names in classes.items():
            if isinstance(class_names, str):
                pairs.add((label, class_names))
            else:
                pairs.update((label, class_name) for class_name in class_names)
        return cls(name, frozenset(pairs))

    @property
    def by_label(self) -> dict[str, Strings]:
        """Label to its classes, sorted: the `map:` of a model in an audit of concepts."""
        return _group_pairs(self.pairs)

    @property
    def by_class(self) -> dict[str, Strings]:
        """Class to its labels, sorted: the `map:` of the labels in an audit of concepts."""
        return _group_pairs({(class_name, label) for label, class_name in self.pairs})

    @property
    def description(self) -> str:
        """The mapping in words."""
        mapping_text = "; ".join(
            f"{label}: {', '.join(class_names)}" for label, class_names in self.by_label.items()
        )
        return f"labels are the classes of the mapping {self.name!r} ({mapping_text})"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Return the set with the classes of each image as its labels.

        An image has a class when any of its labels has it. Labels without a class are counted, and
        so are classes whose labels no image has.

        Raises
        ------
        InputError
            When the set has no labels, or none of them is in the mapping.
        """
        old = images.label_table()
        vocabulary = {*old[LABEL]}
        unmapped = sorted(vocabulary - {*self.by_label})
        if len(unmapped) == len(vocabulary):
            raise InputError(
                f"the mapping {self.name!r} has none of the labels of {images.name}, such as "
                f"{', '.join(map(show, unmapped[:_EXAMPLES]))}"
            )
        pairs = pl.DataFrame(sorted(self.pairs), schema=[LABEL, "class"], orient="row")
        new = old.join(pairs, on=LABEL).select(ID, pl.col("class").alias(LABEL))
        new = new.unique().sort(ID, LABEL)
        counts = {
            "labels": len(vocabulary),
            "labels_without_class": len(unmapped),
            "labels_without_class_examples": unmapped[:_EXAMPLES],
            "classes": new[LABEL].n_unique(),
            "classes_without_images": len({*self.by_class} - {*new[LABEL]}),
            "images_without_class": len(images) - new[ID].n_unique(),
        }
        step = Step(f"classes of {self.name}", self.description, counts)
        return replace(images, labels=new, steps=(*images.steps, step))


def _group_pairs(pairs: Set[tuple[str, str]]) -> dict[str, Strings]:
    grouped: dict[str, Strings] = {}
    for key, value in sorted(pairs):
        grouped[key] = (*grouped.get(key, ()), value)
    return grouped
