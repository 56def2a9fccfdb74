"""Declared steps that leave images or labels out, cut images, rename labels or join two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from equipoise.core import Booleans, DataError, InputError
from equipoise.data.formats.reading import read_rows
from equipoise.data.image_set import CORNERS, ID, LABEL, MARKS, ImageSet, Step
from equipoise.data.problems import listed, show


@dataclass(frozen=True)
class LeaveOutImages:
    """Images of some ids are left out.

    Attributes
    ----------
    ids : frozenset of str
    why : str
        Who they are, in words, as in "they are in Visual Genome".
    """

    ids: frozenset[str]
    why: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"images are left out where {self.why}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted."""
        out = _among(images, self.ids)
        counts = {"images_left_out": int(out.sum()), "ids_not_here": len(self.ids - {*images.ids})}
        return _kept(images, ~out, Step("left out", self.description, counts))


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
    """Images without a label are left out, as [Hall] does."""

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
        kept = np.zeros(len(images), dtype=np.bool_)
        kept[images.places(images.label_table())] = True
        counts = {"images_left_out": int((~kept).sum())}
        return _kept(images, kept, Step("unlabelled", self.description, counts))


@dataclass(frozen=True)
class LeaveOutLabels:
    """Some labels are left out, such as those that define the groups.

    Attributes
    ----------
    labels : frozenset of str
    why : str
    """

    labels: frozenset[str]
    why: str

    @property
    def description(self) -> str:
        """The rule in words."""
        return f"labels are left out where {self.why}: {', '.join(sorted(self.labels))}"

    def __call__(self, images: ImageSet, /) -> ImageSet:
        """Leave them out, counted; images that lose every label stay."""
        pairs = images.label_table()
        out = pairs[LABEL].is_in([*self.labels])
        left = pairs.filter(out)[LABEL].n_unique()
        counts = {"labels_left_out": left, "pairs_left_out": int(out.sum())}
        step = Step("labels left out", self.description, counts)
        return replace(images, labels=pairs.filter(~out), steps=(*images.steps, step))


@dataclass(frozen=True)
class IdsFrom:
    """Images are named by a column, such as `file_name` where scores name files.

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
        return images.changed(renamed, dropped.sort(ID), step)


def combine(first: ImageSet, second: ImageSet) -> ImageSet:
    """Return the images that two sets share, with what either knows of them.

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
    a, b = (one.take(_among(one, shared), step) for one in (first, second))
    of_b = {name: getattr(b, name) for name in MARKS if getattr(a, name) is None}
    return replace(
        a,
        name=f"{first.name}, {second.name}",
        format=f"{first.format}, {second.format}",
        table=b.table.with_columns(a.table.get_columns()),
        inputs={**first.inputs, **second.inputs},
        counts={first.format: first.counts, second.format: second.counts},
        steps=(*first.steps, *second.steps, step),
        **of_b,
    )


def _among(images: ImageSet, ids: Set[str]) -> Booleans:
    return images.table[ID].is_in([*ids]).to_numpy()


def _kept(images: ImageSet, kept: Booleans, step: Step) -> ImageSet:
    """Return the images kept; a step that leaves none is an error."""
    if not kept.any():
        raise InputError(f"{images.name}: no image is left where {step.description}")
    return images.take(kept, step)


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
        wanted = boxes.filter(pl.col(LABEL).is_in([*self.labels]))
        large = wanted.filter(pl.col("width") * pl.col("height") >= self.pixels)
        image, corners = images.places(large), large.select(CORNERS).to_numpy()
        # A missing size would cut everything away; 0 does so openly, and is counted.
        sizes = images.table.select(pl.col("width", "height").cast(pl.Float64).fill_null(0))
        whole = sizes.to_numpy()[image]
        low = np.floor(corners[:, :2] - self.margin * corners[:, 2:])
        high = np.ceil(corners[:, :2] + (1 + self.margin) * corners[:, 2:])
        cut = np.column_stack([np.clip(low, 0, whole), np.clip(high, 0, whole)]).astype(np.int64)
        inside = (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1])
        unique = np.unique(np.column_stack([image, cut])[inside], axis=0)
        if not len(unique):
            raise InputError(
                f"{images.name} leaves no box for {self.description}; expected some of its "
                f"{listed(boxes[LABEL].unique().sort())}, large enough and inside their images"
            )
        owner = unique[:, 0]
        counts: Mapping[str, int] = {
            "boxes": len(wanted),
            "boxes_too_small": len(wanted) - len(large),
            "boxes_outside": int((~inside).sum()),
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


FORMATS = ".csv, .tsv, .json, .yaml or .yml"
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
        listed = {k: (v,) if isinstance(v, str) else v for k, v in classes.items()}
        return cls(name, frozenset((label, one) for label, ones in listed.items() for one in ones))

    @property
    def by_label(self) -> dict[str, tuple[str, ...]]:
        """Label to its classes, sorted: the `map:` of a model in an audit of concepts."""
        return _grouped(self.pairs)

    @property
    def by_class(self) -> dict[str, tuple[str, ...]]:
        """Class to its labels, sorted: the `map:` of the labels in an audit of concepts."""
        return _grouped({(one, label) for label, one in self.pairs})

    @property
    def description(self) -> str:
        """The mapping in words."""
        said = "; ".join(f"{label}: {', '.join(ones)}" for label, ones in self.by_label.items())
        return f"labels are the classes of the mapping {self.name!r} ({said})"

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


def _grouped(found: Set[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, tuple[str, ...]] = {}
    for key, value in sorted(found):
        grouped[key] = (*grouped.get(key, ()), value)
    return grouped


def read_class_mapping(
    path: Path | str, *, name: str | None = None, columns: tuple[str, str] = ("label", "class")
) -> ClassMapping:
    """Read a mapping.

    Parameters
    ----------
    path : path
        A table with a row for each pair of label and class.
    name : str, optional
        The name of the file, without its ending, unless given.
    columns : (str, str)
        The columns of the label and of the class.

    Raises
    ------
    DataError
        When the file cannot be read, or a label or class is empty.
    """
    rows = read_rows(path, columns, role="class mapping")
    cells = (rows.filled(column, "a text in every row") for column in columns)
    pairs = frozenset((label.strip(), one.strip()) for label, one in zip(*cells, strict=True))
    return ClassMapping(name or Path(path).stem, pairs)
