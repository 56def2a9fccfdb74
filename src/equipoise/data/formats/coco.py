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
from equipoise.data.image_set import Gathered, ImageSet, Places, combine, image_set
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
    places, gathered = _images(content.images, file)
    read = _annotations(content.annotations, places, file)
    texts = [(image, one.caption) for image, one, _ in read]
    gathered.captions = [(image, text) for image, text in texts if text.strip()]
    return image_set(
        gathered,
        name=file,
        format="COCO captions",
        inputs={file: {**digest, "rows": len(texts)}},
        counts={
            "images": len(content.images),
            "captions": len(gathered.captions),
            "empty_captions": len(texts) - len(gathered.captions),
            "images_without_captions": len(content.images)
            - len({image for image, _ in gathered.captions}),
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
    places, gathered = _images(content.images, file)
    names = [one.name for one in content.categories]
    Places(file, "category name", names, "categories")
    ids = (one.id for one in content.categories)
    categories = Places(file, "category", ids, "categories")
    gathered.boxes, crowds = [], 0
    for image, one, place in _annotations(content.annotations, places, file):
        category = names[categories.of(one.category_id, place)]
        gathered.boxes.append((image, category, one.bbox))
        crowds += one.iscrowd == 1
    gathered.labels = [(image, name) for image, name, _ in gathered.boxes]
    shown = {name for _, name in gathered.labels}
    return image_set(
        gathered,
        name=file,
        format="COCO instances",
        inputs={file: {**digest, "rows": len(gathered.boxes)}},
        counts={
            "images": len(content.images),
            "instances": len(gathered.boxes),
            "crowds": crowds,
            "categories": len(names),
            "categories_without_images": sorted({*names} - shown),
            **gathered.counted(),
        },
    )


def _images(listed: Sequence[_Image], file: str) -> tuple[Places, Gathered]:
    """Return the listed images, without the columns that none of them has."""
    ids = [one.id for one in listed]
    columns = {
        "file_name": [one.file_name or None for one in listed],
        "path": ["/".join((one.coco_url or "").split("/")[-2:]) or None for one in listed],
        "width": number_texts(one.width for one in listed),
        "height": number_texts(one.height for one in listed),
    }
    kept = {name: values for name, values in columns.items() if any(values)}
    return Places(file, "image", ids, "images"), Gathered(ids, kept)


def _annotations(listed: Sequence[A], images: Places, file: str) -> Iterator[tuple[int, A, str]]:
    """Yield the position of each annotation's image, the annotation, and its place."""
    Places(file, "annotation", (one.id for one in listed), "annotations")
    for number, one in enumerate(listed):
        place = f"annotations[{number}]"
        yield images.of(one.image_id, place), one, place
