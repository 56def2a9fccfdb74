"""Visual Genome: objects with boxes and synsets as JSON.

Source: visualgenome.org, "API object model", and the data set's card in huggingface/datasets:
`objects.json` is a list of `image_id` and `objects`, each with `x`, `y`, `w`, `h`, `names` and
`synsets`; `image_data.json` is a list of `image_id`, `width`, `height` and `coco_id`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from equipoise.core import DataError, InputError
from equipoise.data.formats.json_file import JsonFile, Record
from equipoise.data.formats.registry import data_format
from equipoise.data.image_set import Gathered, ImageSet, Marks, Places, image_set

_COLUMNS = ("width", "height", "coco_id")


@dataclass(frozen=True)
class _ImageData:
    name: str
    digest: dict[str, Any]
    rows: dict[str, dict[str, str | None]]


@data_format("visual_genome", file_names="stems", boxes=True)
def read_visual_genome(
    objects: Path | str | None = None,
    image_data: Path | str | None = None,
    *,
    labels: Literal["synsets", "names"] = "synsets",
) -> ImageSet:
    """Read `objects.json`, with the sizes of the images where `image_data.json` is given.

    Parameters
    ----------
    objects : path, optional
        Without it the images of `image_data` are read alone.
    image_data : path, optional
        Gives the columns `width`, `height` and `coco_id`: rules about the share of an image need
        the first two, leaving these images out of COCO the third.
    labels : {"synsets", "names"}
        What an object is labelled by.

    Returns
    -------
    ImageSet
        With labels and boxes; an object of two synsets is a box of each. Counts: "images",
        "objects", "objects_without_label", which are left out, "boxes_without_area", which stay
        labels and are left out of the boxes, "images_without_labels", which stay, and
        "images_without_objects_file": images that only `image_data` lists, which are left out.

    Raises
    ------
    DataError
        When a file is cut off, lacks a key, has a value of a wrong type or an image twice, or
        `image_data` lacks an image.
    """
    if objects is None:
        if image_data is None:
            raise InputError("neither objects nor image_data is given; expected one of them")
        return read_visual_genome_images(image_data)
    if labels not in ("synsets", "names"):
        raise InputError(f"labels is {labels!r}; expected 'synsets' or 'names'")
    sizes = _image_data(image_data) if image_data is not None else None
    source = JsonFile(objects)
    places = Places(source.name, "image")
    objects_read = _Objects(labels)
    gathered = Gathered(labels=objects_read.labels, boxes=objects_read.boxes)
    if sizes:
        gathered.columns = {name: [] for name in _COLUMNS}
    for record in source.records():
        image = _image_id(record)
        position = places.add(image, record.place)
        gathered.ids.append(image)
        _add_size(gathered, sizes, image, record)
        for one in record.objects("objects"):
            objects_read.add(position, one)
    _check_some(places, source.name)
    counts = {"images": len(places), **objects_read.counts}
    counts["images_without_labels"] = len(places) - objects_read.labels.images
    inputs = {source.name: {**source.digest, "rows": len(places)}}
    if sizes:
        counts["images_without_objects_file"] = len(sizes.rows) - len(places)
        inputs[sizes.name] = {**sizes.digest, "rows": len(sizes.rows)}
    name = ", ".join(inputs)
    return image_set(gathered, name=name, format="Visual Genome", inputs=inputs, counts=counts)


def read_visual_genome_images(path: Path | str) -> ImageSet:
    """Read `image_data.json` alone: which images there are, their sizes and ids in COCO.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the columns `width`, `height` and `coco_id`. Counts: "images" and "in_coco".

    Raises
    ------
    DataError
        As `read_visual_genome`.
    """
    data = _image_data(path)
    columns = {name: [row[name] for row in data.rows.values()] for name in _COLUMNS}
    in_coco = sum(one is not None for one in columns["coco_id"])
    counts = {"images": len(data.rows), "in_coco": in_coco}
    return image_set(
        Gathered(ids=[*data.rows], columns=columns),
        name=data.name,
        format="Visual Genome images",
        inputs={data.name: {**data.digest, "rows": len(data.rows)}},
        counts=counts,
    )


def _image_data(path: Path | str) -> _ImageData:
    source = JsonFile(path)
    places = Places(source.name, "image")
    rows: dict[str, dict[str, str | None]] = {}
    for record in source.records():
        image = _image_id(record)
        places.add(image, record.place)
        rows[image] = {
            "width": record.number_text("width"),
            "height": record.number_text("height"),
            "coco_id": record.optional_id("coco_id"),
        }
    _check_some(places, source.name)
    return _ImageData(source.name, dict(source.digest), rows)


def _check_some(places: Places, file: str) -> None:
    if not len(places):
        raise DataError(
            "the list is empty",
            file=file,
            expected="at least one image",
            fix="check that this is the right file",
        )


def _image_id(record: Record) -> str:
    # Version 1.0 of the files has "id".
    old = "image_id" not in record.fields and "id" in record.fields
    return record.id("id" if old else "image_id")


def _add_size(gathered: Gathered, sizes: _ImageData | None, image: str, record: Record) -> None:
    if sizes is None:
        return
    if image not in sizes.rows:
        raise DataError(
            f"{sizes.name} has no image of the id {image!r}",
            file=f"{record.file}, {record.place}",
            expected="an image that both files have",
            fix="use both files of one and the same version of the data",
        )
    for name, values in gathered.columns.items():
        values.append(sizes.rows[image][name])


class _Objects:
    """Labels and boxes of the objects met so far, and how many there were."""

    def __init__(self, by: str) -> None:
        self._by = by
        self.labels, self.boxes = Marks(), Marks()
        self.counts = {"objects": 0, "objects_without_label": 0, "boxes_without_area": 0}

    def add(self, image: int, record: Record) -> None:
        """Keep an object of an image."""
        corners = tuple(record.number(key) for key in ("x", "y", "w", "h"))
        # Some objects have no list of synsets at all.
        listed = self._by == "names" or self._by in record.fields
        stripped = (name.strip() for name in (record.texts(self._by) if listed else ()))
        names = [*dict.fromkeys(filter(None, stripped))]
        flat = corners[2] <= 0 or corners[3] <= 0
        self.counts["objects"] += 1
        self.counts["objects_without_label"] += not names
        self.counts["boxes_without_area"] += flat
        for name in names:
            self.labels.add(image, name)
            if not flat:
                self.boxes.add(image, name, corners)
