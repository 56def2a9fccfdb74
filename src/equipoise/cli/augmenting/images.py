"""Images of an experiment: decoded, scaled to one size, with their faces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.audits.config_fields import located
from equipoise.audits.kinds import Progress
from equipoise.cli.augmenting.config import AugmentConfig, FacesConfig, SetConfig
from equipoise.core.arrays import Bytes, Integers, Positions
from equipoise.core.errors import DataError, InputError
from equipoise.core.wording import percent
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import ImageError, Pictures, decode, pictures_of_table
from equipoise.mitigate.augmentation import (
    CascadeDetector,
    Faces,
    Regions,
    YuNetDetector,
    regions_of_columns,
)
from equipoise.mitigate.augmentation.faces import SIDES, Image

Detector = Callable[[Sequence[Image]], Regions]

_AT_ONCE, _LISTED = 64, 20
_CLOSE = 0.05
"""Shares of a group among the images of two labels that are about the same."""


@dataclass(frozen=True, eq=False)
class Read:
    """One set of images, and counts of every row of its table.

    Attributes
    ----------
    faces : Faces
        In the order of the ids.
    inputs : mapping
    counts : mapping
        Rows, and those left out by reason; failures by group, and the first of them.
    notes : tuple of str
    """

    faces: Faces
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    notes: tuple[str, ...]


def read_set(
    name: str, given: SetConfig, config: AugmentConfig, base: Path, progress: Progress | None = None
) -> Read:
    """Read one of the three sets.

    Raises
    ------
    DataError
        When its table cannot be used, more images fail than `max_failures` allows, or a box is
        not valid.
    ModelError
        When the detector cannot be used.
    """
    detector = _detector(config.faces, base)
    boxes = config.faces.columns or {}
    columns = (config.path, config.label, config.group)
    source = ItemSource(located(given.table, base), config.id, (*columns, *boxes.values()))
    items = load_items(source, what=f"{name} images")
    cells = np.stack([items.columns[column] for column in columns])
    kept = np.flatnonzero((cells != None).all(axis=0))  # noqa: E711 - cell by cell
    if not len(kept):
        raise DataError("no row has a label, a group and a path", file=items.name)
    rows = kept[np.argsort(items.ids[kept].astype(str), kind="stable")]
    pictures = pictures_of_table(
        items.ids[rows].tolist(),
        cells[0, rows].tolist(),
        root=base / given.root,
        name=items.name,
        column=config.path,
    )
    labels, groups = cells[1:, rows].astype(str).astype(object)
    sources = [f"row {row + 1}, {pictures.where(place)}" for place, row in enumerate(rows.tolist())]
    images, shapes, found, failed = _decode(pictures, config.size, detector, name, progress)
    _refuse_too_many(items, sources, failed, config)
    used = np.array([place for place in range(len(rows)) if place not in failed], np.intp)
    regions = _boxes(items, boxes, rows[used], shapes) if boxes else found
    # Boxes are scaled as their images are; a face of less than two pixels is none then.
    ends = regions.boxes * (config.size / np.tile(np.array(shapes)[:, ::-1], (1, 2)))
    regions = Regions.of(ends, [(config.size, config.size)] * len(used))
    kept_sources = [sources[place] for place in used]
    faces = Faces(images, labels[used], groups[used], regions, kept_sources)
    by_group = dict(sorted(Counter(str(groups[place]) for place in failed).items()))
    without = len(items.ids) - len(rows)
    counts = {
        **items.counts, "without a label, group or path": without,
        "cannot be used, by group": by_group,
        "cannot be used": {sources[place]: failed[place] for place in [*failed][:_LISTED]},
    }  # fmt: skip
    notes = []
    if without:
        notes.append(f"{name}: {without} rows have no label, group or path, and are not used.")
    if failed:
        first, lost = next(iter(failed.items()))
        numbers = ", ".join(f"{group} {n}" for group, n in by_group.items())
        notes.append(
            f"{name}: {len(failed)} of {len(rows)} images cannot be used ({numbers}), such as "
            f"{sources[first]}: {lost}."
        )
    return Read(faces, items.inputs, counts, (*notes, *_notes(name, faces)))


def _detector(faces: FacesConfig, base: Path) -> Detector | None:
    if faces.detector is None:
        return None
    detector = CascadeDetector() if faces.model is None else YuNetDetector(base / faces.model)
    # An unusable detector is an error before images are read.
    detector([])
    return detector


def _decode(
    pictures: Pictures, size: int, detector: Detector | None, name: str, progress: Progress | None
) -> tuple[Bytes, list[tuple[int, int]], Regions, dict[int, str]]:
    """Return scaled images, their shapes before, their faces, and why each other can't be used."""
    from PIL import Image as Pillow

    scaled: list[Image] = []
    shapes: list[tuple[int, int]] = []
    boxes: list[Integers] = []
    failed: dict[int, str] = {}
    for start in range(0, len(pictures), _AT_ONCE):
        if progress is not None:
            progress(f"reading {name} images", start, len(pictures))
        images = []
        for place in range(start, min(start + _AT_ONCE, len(pictures))):
            try:
                images.append(decode(pictures.read(place)))
            except OSError as error:
                failed[place] = error.strerror or str(error)
            except ImageError as error:
                failed[place] = error.reason
        for image in images:
            picture = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
            scaled.append(np.asarray(picture))
            shapes.append((image.shape[0], image.shape[1]))
        empty = np.zeros((len(images), 4), np.int64)
        boxes.append(empty if detector is None else detector(images).boxes)
    found = np.concatenate(boxes)
    return np.array(scaled), shapes, Regions(found, np.asarray(found.any(axis=1))), failed


def _refuse_too_many(
    items: Items, sources: Sequence[str], failed: Mapping[int, str], config: AugmentConfig
) -> None:
    n = len(sources)
    allowed = math.floor(config.max_failures * n + 1e-9)
    if len(failed) > allowed or len(failed) == n:
        first, why = next(iter(failed.items()))
        raise DataError(
            f"{len(failed)} of {n} images cannot be used, and max_failures allows {allowed}; the "
            f"first is {sources[first]}: {why}",
            file=items.name,
            fix="check that paths start from 'root', repair them, or raise max_failures",
        )


def _notes(name: str, faces: Faces) -> Iterator[str]:
    """Note images without a face, and where groups go with labels and should not, or vice versa."""
    if not faces.regions.found.all():
        missing = faces.regions.missing(faces.groups).items()
        groups = ", ".join(f"{group} {count} of {n}" for group, (count, n) in missing)
        yield f"{name}: images without a face stay as they are ({groups})."
    group = min({*faces.groups})
    shares = {
        label: float((faces.groups[faces.labels == label] == group).mean())
        for label in sorted({*faces.labels})
    }
    least, most = min(shares.values()), max(shares.values())
    balanced = most - least <= _CLOSE
    if balanced == (name == "biased"):
        how = "as frequent" if balanced else "not as frequent"
        yield (
            f"{name}: groups are {how} with each label ({group}: {percent(least)} to "
            f"{percent(most)} of the images of a label)."
        )


def _boxes(
    items: Items,
    columns: Mapping[str, str],
    rows: Positions,
    sizes: Sequence[tuple[int, int]],
) -> Regions:
    try:
        ends = {side: items.columns[columns[side]][rows].astype(np.float64) for side in SIDES}
        return regions_of_columns(ends, sizes, rows=(rows + 1).tolist())
    except (InputError, ValueError) as error:
        raise DataError(
            str(error), file=items.name, expected="ends of the box of a face in pixels"
        ) from None
