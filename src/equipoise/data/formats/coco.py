"""COCO: captions and instances as JSON.

Source: "Data format" of the COCO data set (cocodataset.org/#format-data): `images` with `id`,
`width`, `height` and `file_name`; `annotations` with `image_id` and `caption`, or `category_id`,
`bbox` (left, top, width, height) and `iscrowd`; `categories` with `id` and `name`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from equipoise.core import DataError, InputError
from equipoise.data.formats.registry import data_format
from equipoise.data.formats.rows import JsonFile, Record
from equipoise.data.image_set import Gathered, ImageSet, Places, image_set
from equipoise.data.image_steps import combine


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
    images, annotations = source.lists("images", "annotations")
    places, gathered = _images(images, source.name)
    read = _annotations(annotations, places, source.name)
    texts = [(image, one.text("caption")) for image, one in read]
    gathered.captions = [(image, text) for image, text in texts if text.strip()]
    counts = {
        "images": len(places),
        "captions": len(gathered.captions),
        "empty_captions": len(texts) - len(gathered.captions),
        "images_without_captions": len(places) - len({image for image, _ in gathered.captions}),
    }
    return image_set(
        gathered,
        name=source.name,
        format="COCO captions",
        inputs={source.name: {**source.digest, "rows": len(texts)}},
        counts=counts,
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
    images, annotations, listed = source.lists("images", "annotations", "categories")
    places, gathered = _images(images, source.name)
    categories, names, crowds = Places(source.name, "category"), [], 0
    for record in listed:
        categories.add(record.id("id"), record.place)
        name = record.text("name")
        if name in names or not name.strip():
            raise DataError(
                f"the name {name!r} is empty or that of another category",
                file=f"{record.file}, {record.place}",
                expected="a name of its own for every category",
                fix="rename one of them",
            )
        names.append(name)
    gathered.boxes = []
    for image, record in _annotations(annotations, places, source.name):
        category = names[categories.of(record.id("category_id"), record.place)]
        gathered.boxes.append((image, category, record.numbers("bbox", 4)))
        crowds += "iscrowd" in record.fields and record.number("iscrowd") == 1
    gathered.labels = [(image, category) for image, category, _ in gathered.boxes]
    shown = {category for _, category in gathered.labels}
    counts = {
        "images": len(places),
        "instances": len(gathered.boxes),
        "crowds": crowds,
        "categories": len(names),
        "categories_without_images": sorted({*names} - shown),
        **gathered.counted(),
    }
    return image_set(
        gathered,
        name=source.name,
        format="COCO instances",
        inputs={source.name: {**source.digest, "rows": len(gathered.boxes)}},
        counts=counts,
    )


def _images(records: Iterator[Record], file: str) -> tuple[Places, Gathered]:
    """Return the listed images, without the columns that none of them has."""
    places, gathered = Places(file, "image"), Gathered()
    columns: dict[str, list[str | None]] = {"file_name": [], "width": [], "height": []}
    for record in records:
        places.add(record.id("id"), record.place)
        gathered.ids.append(record.id("id"))
        for name, values in columns.items():
            read = record.text if name == "file_name" else record.number_text
            values.append(read(name) or None if name in record.fields else None)
    gathered.columns = {name: values for name, values in columns.items() if any(values)}
    _check_some(places, "images", file)
    return places, gathered


def _annotations(
    records: Iterator[Record], images: Places, file: str
) -> Iterator[tuple[int, Record]]:
    """Yield each annotation with the position of its image."""
    known = Places(file, "annotation")
    for record in records:
        known.add(record.id("id"), record.place)
        yield images.of(record.id("image_id"), record.place), record
    _check_some(known, "annotations", file)


def _check_some(found: Places, key: str, file: str) -> None:
    if not len(found):
        raise DataError(
            f"the list {key!r} is empty",
            file=file,
            expected=f"at least one of the {key}",
            fix="read a file with annotations: those of the test images have none",
        )
