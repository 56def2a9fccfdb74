"""Visual Genome: objects with boxes and synsets as JSON.

Source: visualgenome.org, "API object model", and the data set's card in huggingface/datasets:
`objects.json` is a list of `image_id` and `objects`, each with `x`, `y`, `w`, `h`, `names` and
`synsets`; `image_data.json` is a list of `image_id`, `width`, `height` and `coco_id`.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from equipoise.core import InputError
from equipoise.core.types import FileFacts
from equipoise.data.formats.reading import Id, Number, Records, Text, data_format, read_json
from equipoise.data.image_set import ID, ImageRecords, ImageSet, Places, image_set
from equipoise.data.tables import number_texts


class _Object(BaseModel):
    x: Number
    y: Number
    w: Number
    h: Number
    names: list[Text] | None = None
    synsets: list[Text] | None = None


class _Objects(BaseModel):
    image_id: Id
    objects: list[_Object]


class _Facts(BaseModel):
    image_id: Id
    width: Number
    height: Number
    coco_id: Id | None = None


@data_format("visual_genome", file_names="stems", boxes=True)
def read_visual_genome(
    objects: Path | str | None = None,
    image_data: Path | str | None = None,
    *,
    labels: Literal["synsets", "names"] = "synsets",
) -> ImageSet:
    """Read `objects.json`, with image sizes if `image_data.json` is given.

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
    records, digest = read_json(objects, TypeAdapter(Records[_Objects]))
    file, images = str(objects), [record.image_id for record in records]
    Places(file, "image", images, "")
    labels_of: list[tuple[int, str]] = []
    boxes: list[tuple[int, str, tuple[float, ...]]] = []
    counts = {"objects": 0, "objects_without_label": 0, "boxes_without_area": 0}
    for position, record in enumerate(records):
        for instance in record.objects:
            texts = instance.names if labels == "names" else instance.synsets
            names = [*dict.fromkeys(filter(None, map(str.strip, texts or ())))]
            counts["objects"] += 1
            counts["objects_without_label"] += not names
            counts["boxes_without_area"] += instance.w <= 0 or instance.h <= 0
            corners = (instance.x, instance.y, instance.w, instance.h)
            labels_of += ((position, name) for name in names)
            if instance.w > 0 and instance.h > 0:
                boxes += ((position, name, corners) for name in names)
    image_records = ImageRecords(images, labels=labels_of, boxes=boxes)
    without = image_records.count_labels()["images_without_labels"]
    counts |= {"images": len(images), "images_without_labels": without}
    inputs: dict[str, FileFacts] = {file: {**digest, "rows": len(images)}}
    if image_data is not None:
        sizes = read_visual_genome_images(image_data)
        rows = Places(file, f"image in {sizes.name}", sizes.ids, "")
        order = [rows.index(image, f"[{place}]") for place, image in enumerate(images)]
        image_records.columns = sizes.table[order].drop(ID).to_dict(as_series=False)
        counts["images_without_objects_file"] = len(sizes) - len(images)
        inputs |= sizes.inputs
    name = ", ".join(inputs)
    return image_set(image_records, name=name, format="Visual Genome", inputs=inputs, counts=counts)


def read_visual_genome_images(path: Path | str) -> ImageSet:
    """Read only `image_data.json`: the images, their sizes and ids in COCO.

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
    records, digest = read_json(path, TypeAdapter(Records[_Facts]))
    file, images = str(path), [record.image_id for record in records]
    Places(file, "image", images, "")
    columns = {
        "width": number_texts(record.width for record in records),
        "height": number_texts(record.height for record in records),
        "coco_id": [record.coco_id for record in records],
    }
    in_coco = len(images) - columns["coco_id"].count(None)
    return image_set(
        ImageRecords(images, columns),
        name=file,
        format="Visual Genome images",
        inputs={file: {**digest, "rows": len(images)}},
        counts={"images": len(images), "in_coco": in_coco},
    )
