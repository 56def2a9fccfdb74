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
    read = _annotations(content.annotations, places, file)
    texts = [(image, annotation.caption) for image, annotation, _ in read]
    image_records.captions = [(image, text) for image, text in texts if text.strip()]
    return image_set(
        image_records,
        name=file,
        format="COCO captions",
        inputs={file: {**digest, "rows": len(texts)}},
        counts={
            "images": len(content.images),
            "captions": len(image_records.captions),
            "empty_captions": len(texts) - len(image_records.captions),
            "images_without_captions": len(content.images)
            - len({image for image, _ in image_records.captions}),
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
    ids = (category.id for category in content.categories)
    categories = Places(file, "category", ids, "categories")
    image_records.boxes, crowds = [], 0
    for image, instance, place in _annotations(content.annotations, places, file):
        label = names[categories.index(instance.category_id, place)]
        image_records.boxes.append((image, label, instance.bbox))
        crowds += instance.iscrowd == 1
    image_records.labels = [(image, name) for image, name, _ in image_records.boxes]
    labels_present = {name for _, name in image_records.labels}
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


def _images(images: Sequence[_Image], file: str) -> tuple[Places, ImageRecords]:
    """Return positions and records of the images, without empty columns."""
    ids = [image.id for image in images]
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
    Places(file, "annotation", (annotation.id for annotation in annotations), "annotations")
    for number, annotation in enumerate(annotations):
        place = f"annotations[{number}]"
        yield image_positions.index(annotation.image_id, place), annotation, place
