"""Read the images of an experiment: decoded, scaled to one size, with their faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.cli.augmenting.config import SIDES, AugmentConfig, SetConfig
from equipoise.core.errors import DataError, InputError
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import ImageError, Pictures, decode, pictures_of_table
from equipoise.mitigate.augmentation import (
    CascadeDetector,
    Faces,
    Regions,
    YuNetDetector,
    regions_of_columns,
)

Image = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Read:
    """One set of images, and what became of every row of its table.

    Attributes
    ----------
    faces : Faces
    inputs : mapping
    counts : mapping
        Rows, and those left out by reason; failures by group.
    notes : tuple of str
    """

    faces: Faces
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    notes: tuple[str, ...]


def read_set(name: str, given: SetConfig, config: AugmentConfig, base: Path) -> Read:
    """Read one of the three sets.

    Raises
    ------
    DataError
        When its table cannot be used, a box is none, or no image is left.
    """
    table = base / given.table if isinstance(given.table, Path) else given.table
    boxes = tuple(config.faces.columns[side] for side in SIDES) if config.faces.columns else ()
    columns = (config.path, config.label, config.group, *boxes)
    items = load_items(ItemSource(table, config.id, columns), what=f"{name} images")
    label, group = items.columns[config.label], items.columns[config.group]
    paths = items.columns[config.path]
    complete = np.array([None not in row for row in zip(label, group, paths, strict=True)])
    kept = np.flatnonzero(complete)
    pictures = pictures_of_table(
        items.ids[kept].tolist(), paths[kept].tolist(), root=base / given.root, name=items.name,
        column=config.path,
    )  # fmt: skip
    decoded = _decoded(items, kept, pictures)
    lost = Counter(str(group[kept[place]]) for place, one in enumerate(decoded) if one is None)
    rows = np.array([row for row, one in zip(kept, decoded, strict=True) if one is not None], int)
    images = [one for one in decoded if one is not None]
    if not images:
        raise DataError("no image can be used", file=items.name, fix="see the paths of the images")
    regions = _regions(images, items, rows, config, base)
    scaled, boxed = _scaled(images, regions, config.size)
    faces = Faces(np.stack(scaled), _texts(label[rows]), _texts(group[rows]), boxed)
    without = int((~complete).sum())
    counts = {
        **items.counts, "without a label, group or path": without, "not readable": dict(lost)
    }  # fmt: skip
    return Read(faces, items.inputs, counts, (*_notes(name, faces, without, lost),))


def _texts(values: NDArray[Any]) -> NDArray[np.object_]:
    return np.array([str(value) for value in values], dtype=object)


def _notes(name: str, faces: Faces, without: int, lost: Counter[str]) -> list[str]:
    notes = []
    if without:
        notes.append(f"{name}: {without} rows have no label, group or path, and are not used.")
    if lost:
        told = ", ".join(f"{group} {many}" for group, many in sorted(lost.items()))
        notes.append(f"{name}: {sum(lost.values())} images cannot be read ({told}).")
    missing = faces.regions.missing(faces.groups)
    if any(count for count, _ in missing.values()):
        told = ", ".join(f"{group} {count} of {of}" for group, (count, of) in missing.items())
        notes.append(f"{name}: no face was found in some images, which stay as they are ({told}).")
    return notes


def _decoded(items: Items, kept: NDArray[np.int64], pictures: Pictures) -> list[Image | None]:
    """Return the images in the order of the table; None where one cannot be read."""
    places = {name: place for place, name in enumerate(pictures.ids.tolist())}
    found: list[Image | None] = []
    for name in items.ids[kept].tolist():
        try:
            found.append(decode(pictures.read(places[name])))
        except (ImageError, OSError):
            found.append(None)
    return found


def _regions(
    images: list[Image], items: Items, rows: NDArray[np.int64], config: AugmentConfig, base: Path
) -> Regions:
    if config.faces.columns is not None:
        ends = {side: _numbers(items, config.faces.columns[side], rows) for side in SIDES}
        try:
            return regions_of_columns(ends, [image.shape[:2] for image in images])
        except InputError as error:
            raise DataError(str(error), file=items.name) from None
    if config.faces.model is not None:
        return YuNetDetector(base / config.faces.model)(images)
    return CascadeDetector()(images)


def _numbers(items: Items, column: str, rows: NDArray[np.int64]) -> list[float | None]:
    found: list[float | None] = []
    for row in rows.tolist():
        text = items.columns[column][row]
        try:
            found.append(None if text is None else float(text))
        except ValueError:
            raise DataError(
                f"{text!r} is no number", file=items.name, column=column, row=row + 1,
                expected="an end of the box of a face in pixels",
            ) from None  # fmt: skip
    return found


def _scaled(images: list[Image], regions: Regions, size: int) -> tuple[list[Image], Regions]:
    """Scale images to squares, and boxes with them."""
    from PIL import Image as Pillow

    made, boxes = [], regions.boxes.copy()
    found = regions.found.copy()
    for place, image in enumerate(images):
        height, width = image.shape[:2]
        picture = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
        made.append(np.asarray(picture))
        share = size / np.array([width, height, width, height])
        boxes[place] = np.clip(np.rint(boxes[place] * share), 0, size)
        # A face of less than two pixels is none at this size.
        found[place] &= bool((boxes[place, 2:] - boxes[place, :2]).min() >= 2)
    boxes[~found] = 0
    return made, Regions(boxes, found)
