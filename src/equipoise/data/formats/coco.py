"""COCO: captions and instances as JSON.

Source: "Data format" of the COCO data set (cocodataset.org/#format-data): `images` with `id`,
`width`, `height`, `file_name` and `coco_url`; `annotations` with `image_id` and `caption`, or
`category_id`, `bbox` (left, top, width, height) and `iscrowd`; `categories` with `id` and `name`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from equipoise.core import InputError
from equipoise.data.formats.reading import Id, Number, Records, Text, data_format, read_json
from equipoise.data.image_set import ImageRecords, ImageSet, Places, combine, image_set
from equipoise.data.tables import number_texts


class _Image(BaseModel):
    id: Id
    file_name: Text | None = None
    coco_url: Text | None = None
    width: Number | None = None
    height: Number | None = None


class _Annotation(BaseModel):
    id: Id
    image_id: Id


class _Caption(_Annotation):
    caption: Text


class _Instance(_Annotation):
    category_id: Id
    bbox: tuple[Number, Number, Number, Number]
    iscrowd: Number = 0


class _Category(BaseModel):
    id: Id
    name: Id


class _CaptionFile(BaseModel):
    images: Records[_Image]
    annotations: Records[_Caption]


class _InstanceFile(BaseModel):
    images: Records[_Image]
    annotations: Records[_Instance]
    categories: Records[_Category]


A = TypeVar("A", bound=_Annotation)


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
    if captions is not None and instances is not None:
        return combine(read_coco_captions(captions), read_coco_instances(instances))
    if captions is not None:
        return read_coco_captions(captions)
    if instances is not None:
        return read_coco_instances(instances)
    raise InputError("neither captions nor instances is given; expected one of them")


def read_coco_captions(path: Path | str) -> ImageSet:
    """Read `captions_*.json`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ImageSet
        With the columns `file_name`, `path` (as `train2017/000000000009.jpg`, from `coco_url`),
        `width` and `height` where the file has them, and captions.
        Counts: "images", "captions", "empty_captions", which are left out, and
        "images_without_captions", which stay.

    Raises
    ------
    DataError
        When the file is cut off, lacks a key, has a value of a wrong type, an id twice, or a
        caption of an image that it does not list.
    """
    content, digest = read_json(path, TypeAdapter(_CaptionFile))
    file = str(path)
    places, image_records = _images(content.images, file)
    captions: list[tuple[int, str]] = []
    images_with_captions: set[int] = set()
    for image, annotation, _ in _annotations(content.annotations, places, file):
        if annotation.caption.strip():
            captions.append((image, annotation.caption))
            images_with_captions.add(image)
    image_records.captions = captions
    n_annotations = len(content.annotations)
    return image_set(
        image_records,
        name=file,
        format="COCO captions",
        inputs={file: {**digest, "rows": n_annotations}},
        counts={
            "images": len(content.images),
            "captions": len(captions),
            "empty_captions": n_annotations - len(captions),
            "images_without_captions": len(content.images) - len(images_with_captions),
        },
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
    content, digest = read_json(path, TypeAdapter(_InstanceFile))
    file = str(path)
    places, image_records = _images(content.images, file)
    names = [category.name for category in content.categories]
    Places(file, "category name", names, "categories")
    categories = Places(file, "category", _ids(content.categories), "categories")
    image_records.boxes, image_records.labels, crowds = [], [], 0
    labels_present: set[str] = set()
    for image, instance, place in _annotations(content.annotations, places, file):
        label = names[categories.index(instance.category_id, place)]
        image_records.boxes.append((image, label, instance.bbox))
        image_records.labels.append((image, label))
        labels_present.add(label)
        crowds += instance.iscrowd == 1
    return image_set(
        image_records,
        name=file,
        format="COCO instances",
        inputs={file: {**digest, "rows": len(image_records.boxes)}},
        counts={
            "images": len(content.images),
            "instances": len(image_records.boxes),
            "crowds": crowds,
            "categories": len(names),
            "categories_without_images": sorted({*names} - labels_present),
            **image_records.count_labels(),
        },
    )


def _ids(records: Sequence[_Image | _Annotation | _Category]) -> list[str]:
    """Return the ids of records, in the order of their list."""
    return [record.id for record in records]


def _images(images: Sequence[_Image], file: str) -> tuple[Places, ImageRecords]:
    """Return positions and records of the images, without empty columns."""
    ids = _ids(images)
    columns = {
        "file_name": [image.file_name or None for image in images],
        "path": ["/".join((image.coco_url or "").split("/")[-2:]) or None for image in images],
        "width": number_texts(image.width for image in images),
        "height": number_texts(image.height for image in images),
    }
    filled_columns = {name: values for name, values in columns.items() if any(values)}
    return Places(file, "image", ids, "images"), ImageRecords(ids, filled_columns)


def _annotations(
    annotations: Sequence[A], image_positions: Places, file: str
) -> Iterator[tuple[int, A, str]]:
    """Yield the position of each annotation's image, the annotation, and its place."""
    Places(file, "annotation", _ids(annotations), "annotations")
    for number, annotation in enumerate(annotations):
        place = f"annotations[{number}]"
        yield image_positions.index(annotation.image_id, place), annotation, place
