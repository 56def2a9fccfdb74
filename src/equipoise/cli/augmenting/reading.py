"""Read the images of an experiment: decoded, scaled to one size, with their faces."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.kinds import Progress
from equipoise.cli.augmenting.config import SIDES, AugmentConfig, FacesConfig, SetConfig
from equipoise.cli.augmenting.decoding import Decoded, Detector, Failed, decoded_once
from equipoise.core.errors import DataError, InputError, MissingExtraError
from equipoise.core.wording import percent
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import Decoding, Pictures, pictures_of_table
from equipoise.mitigate.augmentation import (
    CascadeDetector,
    Faces,
    Regions,
    YuNetDetector,
    regions_of_columns,
)

_LISTED = 20
_CLOSE = 0.05
"""Shares of a group among the images of two labels that are about the same."""


@dataclass(frozen=True, eq=False)
class Read:
    """One set of images, and what became of every row of its table.

    Attributes
    ----------
    faces : Faces
        In the order of the ids.
    inputs : mapping
    counts : mapping
        Rows, and those left out by reason; failures by group, and the first of them.
    notes : tuple of str
    file : str
        The table.
    where : callable
        From the place of an image in `faces` to its row and file, for messages.
    """

    faces: Faces
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    notes: tuple[str, ...]
    file: str
    where: Callable[[int], str]


@dataclass(frozen=True, eq=False)
class _Listed:
    """Rows of a table that have all that is needed, in the order of their ids."""

    items: Items
    rows: NDArray[np.int64]
    pictures: Pictures
    labels: NDArray[np.object_]
    groups: NDArray[np.object_]
    without: int

    def where(self, place: int) -> str:
        return f"row {self.rows[place] + 1}, {self.pictures.where(place)}"


def read_set(
    name: str, given: SetConfig, config: AugmentConfig, base: Path, told: Progress | None = None
) -> Read:
    """Read one of the three sets.

    Its images are decoded once: what is needed of them is kept in the store, by the content of
    their files.

    Raises
    ------
    DataError
        When its table cannot be used, more images fail than `max_failures` allows, or a box is
        none.
    ModelError
        When the detector cannot be used.
    """
    detector = _detector(config.faces, base)
    table = _listed(name, given, config, base)
    kept = base / config.store / "augmentation" / "images" / _name(config, base)
    decoded, failed = decoded_once(
        table.pictures, config.size, detector, kept, told, step=f"reading {name} images"
    )
    _refuse_too_many(table, failed, config)
    lost = {one.place for one in failed}
    used = np.array([place for place in range(len(table.rows)) if place not in lost], np.int64)
    regions = _regions(decoded, table.items, table.rows[used], config.faces)
    faces = Faces(
        decoded.pixels, table.labels[used], table.groups[used],
        _scaled(regions, decoded.shapes, config.size),
    )  # fmt: skip
    by_group = dict(sorted(Counter(str(table.groups[one.place]) for one in failed).items()))
    counts = {
        **table.items.counts, "without a label, group or path": table.without,
        "cannot be used, by group": by_group,
        "cannot be used": {table.where(one.place): one.reason for one in failed[:_LISTED]},
    }  # fmt: skip
    return Read(
        faces, table.items.inputs, counts, (*_notes(name, faces, table, failed, by_group),),
        table.items.name, lambda place: table.where(int(used[place])),
    )  # fmt: skip


def _listed(name: str, given: SetConfig, config: AugmentConfig, base: Path) -> _Listed:
    source = base / given.table if isinstance(given.table, Path) else given.table
    boxes = tuple(config.faces.columns[side] for side in SIDES) if config.faces.columns else ()
    columns = (config.path, config.label, config.group, *boxes)
    items = load_items(ItemSource(source, config.id, columns), what=f"{name} images")
    label, group = items.columns[config.label], items.columns[config.group]
    paths = items.columns[config.path]
    complete = np.array([None not in row for row in zip(label, group, paths, strict=True)])
    kept = np.flatnonzero(complete)
    if not len(kept):
        raise DataError("no row has a label, a group and a path", file=items.name)
    pictures = pictures_of_table(
        items.ids[kept].tolist(), paths[kept].tolist(), root=base / given.root, name=items.name,
        column=config.path,
    )  # fmt: skip
    places = {one: row for row, one in zip(kept.tolist(), items.ids[kept].tolist(), strict=True)}
    rows = np.array([places[one] for one in pictures.ids.tolist()], np.int64)
    without = int((~complete).sum())
    return _Listed(items, rows, pictures, _texts(label[rows]), _texts(group[rows]), without)


def _texts(values: NDArray[Any]) -> NDArray[np.object_]:
    return np.array([str(value) for value in values], dtype=object)


def _detector(faces: FacesConfig, base: Path) -> Detector | None:
    if faces.detector is None:
        return None
    found = CascadeDetector() if faces.model is None else YuNetDetector(base / faces.model)
    # A detector that is missing is told before images are read.
    found([])
    return found


def _name(config: AugmentConfig, base: Path) -> str:
    """Name the folder of decoded images by what decides them beside their content."""
    faces = config.faces
    facts: dict[str, Any] = {
        "size": config.size, "decoding": Decoding().facts, "pillow": _pillow(),
    }  # fmt: skip
    if faces.detector is not None:
        import cv2

        facts |= {"detector": faces.detector, "opencv": cv2.__version__}
    if faces.model is not None:
        facts["model"] = sha256((base / faces.model).read_bytes()).hexdigest()
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _pillow() -> str:
    try:
        from PIL import __version__
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    return __version__


def _refuse_too_many(table: _Listed, failed: Sequence[Failed], config: AugmentConfig) -> None:
    n = len(table.rows)
    allowed = math.floor(config.max_failures * n + 1e-9)
    if len(failed) <= allowed and len(failed) < n:
        return
    first = min(failed, key=lambda one: int(table.rows[one.place]))
    fix = (
        "see whether the files lie there: paths start from the folder that the configuration gives "
        "as 'root'"
        if len(failed) == n
        else "repair them, take their rows out, or raise max_failures to do without them"
    )
    raise DataError(
        f"{len(failed)} of {n} images cannot be used, and max_failures allows {allowed}; the first "
        f"is {table.where(first.place)}: {first.reason}",
        file=table.items.name,
        fix=fix,
    )


def _notes(
    name: str, faces: Faces, table: _Listed, failed: Sequence[Failed], by_group: Mapping[str, int]
) -> list[str]:
    notes = []
    if table.without:
        notes.append(
            f"{name}: {table.without} rows have no label, group or path, and are not used."
        )
    if failed:
        told = ", ".join(f"{group} {many}" for group, many in by_group.items())
        notes.append(
            f"{name}: {len(failed)} of {len(table.rows)} images cannot be used ({told}), such as "
            f"{table.where(failed[0].place)}: {failed[0].reason}."
        )
    return [*notes, *_faceless(name, faces), *_apart(name, faces)]


def _faceless(name: str, faces: Faces) -> Iterator[str]:
    """Say in how many images no face was found, and what becomes of them."""
    missing = faces.regions.missing(faces.groups)
    without = int((~faces.regions.found).sum())
    if not without:
        return
    told = ", ".join(f"{group} {count} of {of}" for group, (count, of) in missing.items())
    which = f"any of the {len(faces)}" if without == len(faces) else f"{without} of {len(faces)}"
    then = {"biased": ", which stay as they are", "test": ", which are not covered"}.get(name, "")
    yield f"{name}: no face was found in {which} images{then} ({told})."


def _apart(name: str, faces: Faces) -> Iterator[str]:
    """Say where groups go with labels and should not, or should and do not."""
    group = min({*faces.groups})
    share = {
        label: float((faces.groups[faces.labels == label] == group).mean())
        for label in sorted({*faces.labels})
    }
    ordered = sorted(share, key=lambda label: (share[label], label))
    least, most = ordered[0], ordered[-1]
    told = f"{group}: {percent(share[most])} of {most}, {percent(share[least])} of {least}"
    close = share[most] - share[least] <= _CLOSE
    if name == "biased" and close:
        yield f"{name}: groups are about as frequent with each label ({told}): little to mitigate."
    if name != "biased" and not close:
        yield f"{name}: groups are not as frequent with each label, as they should be ({told})."


def _regions(
    decoded: Decoded, items: Items, rows: NDArray[np.int64], faces: FacesConfig
) -> Regions:
    if faces.columns is None:
        return Regions(decoded.boxes, np.asarray(decoded.boxes.any(axis=1)))
    ends = {side: _numbers(items, faces.columns[side], rows) for side in SIDES}
    try:
        return regions_of_columns(ends, decoded.shapes.tolist(), rows=(rows + 1).tolist())
    except InputError as error:
        raise DataError(str(error), file=items.name) from None


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


def _scaled(regions: Regions, shapes: NDArray[np.int64], size: int) -> Regions:
    """Scale boxes as their images were."""
    share = size / np.tile(shapes[:, ::-1], (1, 2))
    boxes = np.clip(np.rint(regions.boxes * share), 0, size).astype(np.int64)
    # A face of less than two pixels is none at this size.
    found = regions.found & ((boxes[:, 2:] - boxes[:, :2]).min(axis=1) >= 2)
    boxes[~found] = 0
    return Regions(boxes, found)
