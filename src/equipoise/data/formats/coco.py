"""COCO: captions and instances as JSON.

Source: "Data format" of the COCO data set (cocodataset.org/#format-data): `images` with `id`,
`width`, `height` and `file_name`; `annotations` with `image_id` and `caption`, or `category_id`,
`bbox` (left, top, width, height) and `iscrowd`; `categories` with `id` and `name`.
"""

from __future__ import annotations

from pathlib import Path

from equipoise.core import DataError, InputError
from equipoise.data.formats.json_file import JsonFile, Record
from equipoise.data.formats.registry import data_format
from equipoise.data.image_set import Gathered, ImageSet, Marks, Places, image_set
from equipoise.data.image_steps import combine

_IMAGES = ("file_name", "width", "height")


@data_format("coco", file_column="file_name", boxes=True)
def read_coco(captions: Path | str | None = None, instances: Path | str | None = None) -> ImageSet:
    """Read captions, instances, or the images that are in both files.

    Parameters
    ----------
    captions : path, optional
        `captions_*.json`; see `read_coco_captions`.
    instances : path, optional
        `instances_*.json`; see `read_coco_instances`.

    Raises
    ------
    InputError
        When neither is given.
    DataError
        As the readers of either file, and when both share no image.
    """
    readers = ((read_coco_captions, captions), (read_coco_instances, instances))
    sets = [read(path) for read, path in readers if path is not None]
    if not sets:
        raise InputError("neither captions nor instances is given; expected one of them")
    return sets[0] if len(sets) == 1 else combine(*sets)


def read_coco_captions(path: Path | str) -> ImageSet:
    """Read `captions_*.json`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the columns `file_name`, `width` and `height` where the file has them, and captions.
        Counts: "images", "captions", "empty_captions", which are left out, and
        "images_without_captions", which stay.

    Raises
    ------
    DataError
        When the file is cut off, lacks a key, has a value of a wrong type, an id twice, or a
        caption of an image that it does not list.
    """
    source = JsonFile(path)
    reader = _Reader(source.name)
    gathered = reader.gathered
    gathered.captions = []
    waiting: list[tuple[str, str, str]] = []
    empty = 0
    for key, record in source.lists("images", "annotations"):
        if key == "images":
            reader.image(record)
            continue
        image, text = reader.annotation(record), record.text("caption")
        empty += not text.strip()
        if text.strip():
            waiting.append((image, text, record.place))
    reader.check_annotated()
    for image, text, place in waiting:
        gathered.captions.append((reader.images.of(image, place, "`images`"), text))
    counts = {
        "images": len(reader.images),
        "captions": len(waiting),
        "empty_captions": empty,
        "images_without_captions": len(reader.images) - len({i for i, _ in gathered.captions}),
    }
    inputs = {source.name: {**source.digest, "rows": len(reader.annotations)}}
    return image_set(
        gathered, name=source.name, format="COCO captions", inputs=inputs, counts=counts
    )


def read_coco_instances(path: Path | str) -> ImageSet:
    """Read `instances_*.json`: every category that is marked in an image is its label.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With labels, boxes and the columns of `read_coco_captions`. Crowds count as labels too.
        Counts: "images", "instances", "crowds", "pairs" of image and label, "categories",
        "categories_without_images" by name, and "images_without_labels", which stay.

    Raises
    ------
    DataError
        As `read_coco_captions`; also for a category that is not listed, and two of one name.
    """
    source = JsonFile(path)
    reader = _Reader(source.name)
    categories: dict[str, str] = {}
    known = Places(source.name, "category")
    waiting: list[tuple[str, str, tuple[float, ...], str]] = []
    crowds = 0
    for key, record in source.lists("images", "annotations", "categories"):
        if key == "images":
            reader.image(record)
        elif key == "categories":
            known.add(record.id("id"), record.place)
            categories[record.id("id")] = _category(record, categories)
        else:
            image = reader.annotation(record)
            corners = record.numbers("bbox", 4)
            waiting.append((image, record.id("category_id"), corners, record.place))
            crowds += "iscrowd" in record.fields and record.number("iscrowd") == 1
    reader.check_annotated()
    labels, boxes = Marks(), Marks()
    for image, category, corners, place in waiting:
        position = reader.images.of(image, place, "`images`")
        known.of(category, place, "`categories`")
        labels.add(position, categories[category])
        boxes.add(position, categories[category], corners)
    gathered = reader.gathered
    gathered.labels, gathered.boxes = labels, boxes
    counts = {
        "images": len(reader.images),
        "instances": len(waiting),
        "crowds": crowds,
        "pairs": labels.pairs,
        "categories": len(categories),
        "categories_without_images": sorted({*categories.values()} - {*labels.label.vocabulary}),
        "images_without_labels": len(reader.images) - labels.images,
    }
    inputs = {source.name: {**source.digest, "rows": len(waiting)}}
    return image_set(
        gathered, name=source.name, format="COCO instances", inputs=inputs, counts=counts
    )


class _Reader:
    """Images and ids of annotations, as both kinds of file have them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.images = Places(file, "image")
        self.annotations = Places(file, "annotation")
        self.gathered = Gathered(columns={name: [] for name in _IMAGES})

    def image(self, record: Record) -> None:
        """Keep an image."""
        self.images.add(record.id("id"), record.place)
        self.gathered.ids.append(record.id("id"))
        for name, values in self.gathered.columns.items():
            has = name in record.fields
            value = record.text(name) if name == "file_name" and has else None
            values.append(value or (record.number_text(name) if has else None))

    def annotation(self, record: Record) -> str:
        """Keep the id of an annotation and return that of its image."""
        self.annotations.add(record.id("id"), record.place)
        return record.id("image_id")

    def check_annotated(self) -> None:
        """Raise where there is nothing to read, and drop the columns that no image has."""
        for key, found in (("images", self.images), ("annotations", self.annotations)):
            if not len(found):
                raise DataError(
                    f"the list {key!r} is empty",
                    file=self.file,
                    expected=f"at least one of the {key}",
                    fix="read a file with annotations: those of the test images have none",
                )
        columns = self.gathered.columns
        self.gathered.columns = {n: v for n, v in columns.items() if any(one for one in v)}


def _category(record: Record, known: dict[str, str]) -> str:
    name = record.text("name")
    if name in known.values() or not name.strip():
        raise DataError(
            f"the name {name!r} is empty or that of another category",
            file=f"{record.file}, {record.place}",
            expected="a name of its own for every category",
            fix="rename one of them",
        )
    return name
