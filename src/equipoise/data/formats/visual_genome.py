"""Visual Genome: objects with boxes and synsets as JSON.

Source: visualgenome.org, "API object model", and the data set's card in huggingface/datasets:
`objects.json` is a list of `image_id` and `objects`, each with `x`, `y`, `w`, `h`, `names` and
`synsets`; `image_data.json` is a list of `image_id`, `width`, `height` and `coco_id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from equipoise.core import DataError, InputError
from equipoise.data.formats.registry import data_format
from equipoise.data.formats.rows import JsonFile, Record
from equipoise.data.image_set import Gathered, ImageSet, Places, image_set

_COLUMNS = ("width", "height", "coco_id")


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
    source = JsonFile(objects)
    gathered, shown, boxes = Gathered(), [], []
    counts = {"objects": 0, "objects_without_label": 0, "boxes_without_area": 0}
    for position, (image, record) in enumerate(_records(source)):
        gathered.ids.append(image)
        for one in record.objects("objects"):
            corners = tuple(one.number(key) for key in ("x", "y", "w", "h"))
            # Some objects have no list of synsets at all.
            texts = one.texts(labels) if labels == "names" or labels in one.fields else ()
            names = [*dict.fromkeys(filter(None, (text.strip() for text in texts)))]
            flat = corners[2] <= 0 or corners[3] <= 0
            counts["objects"] += 1
            counts["objects_without_label"] += not names
            counts["boxes_without_area"] += flat
            shown += [(position, name) for name in names]
            boxes += [] if flat else [(position, name, corners) for name in names]
    gathered.labels, gathered.boxes = shown, boxes
    images, labelled = len(gathered.ids), {position for position, _ in shown}
    counts |= {"images": images, "images_without_labels": images - len(labelled)}
    inputs = {source.name: {**source.digest, "rows": images}}
    if image_data is not None:
        sizes = JsonFile(image_data)
        facts = {image: _facts(record) for image, record in _records(sizes)}
        for place, image in enumerate(gathered.ids):
            if image not in facts:
                raise DataError(
                    f"{sizes.name} has no image of the id {image!r}",
                    file=f"{source.name}, [{place}]",
                    expected="an image that both files have",
                    fix="use both files of one and the same version of the data",
                )
        gathered.columns = {n: [facts[image][n] for image in gathered.ids] for n in _COLUMNS}
        counts["images_without_objects_file"] = len(facts) - images
        inputs[sizes.name] = {**sizes.digest, "rows": len(facts)}
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
    source = JsonFile(path)
    facts = {image: _facts(record) for image, record in _records(source)}
    columns = {name: [row[name] for row in facts.values()] for name in _COLUMNS}
    in_coco = len(facts) - columns["coco_id"].count(None)
    return image_set(
        Gathered([*facts], columns),
        name=source.name,
        format="Visual Genome images",
        inputs={source.name: {**source.digest, "rows": len(facts)}},
        counts={"images": len(facts), "in_coco": in_coco},
    )


def _facts(record: Record) -> dict[str, str | None]:
    in_coco = record.fields.get("coco_id") is not None
    return {
        "width": record.number_text("width"),
        "height": record.number_text("height"),
        "coco_id": record.id("coco_id") if in_coco else None,
    }


def _records(source: JsonFile) -> Iterator[tuple[str, Record]]:
    """Yield the id of each image with its record."""
    places = Places(source.name, "image")
    for record in source.records():
        image = record.id("image_id")
        places.add(image, record.place)
        yield image, record
    if not len(places):
        raise DataError(
            "the list is empty",
            file=source.name,
            expected="at least one image",
            fix="check that this is the right file",
        )
