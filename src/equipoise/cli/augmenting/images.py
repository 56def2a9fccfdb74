"""Images of an experiment: decoded once, scaled to one size, with their faces.

A decoded image is kept by the content of its file, so that another run decodes and searches only
new images, whatever tables and sets they are in. The store holds packs: .npy files of records,
mapped into memory. A run adds one pack, into which smaller ones go, so that there are few.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.audits.kinds import Progress
from equipoise.cli.augmenting.config import AugmentConfig, FacesConfig, SetConfig
from equipoise.core.errors import DataError, InputError, MissingExtraError, RunError
from equipoise.core.wording import percent
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import Decoding, ImageError, Pictures, decode, pictures_of_table
from equipoise.mitigate.augmentation import (
    CascadeDetector,
    Faces,
    Regions,
    YuNetDetector,
    regions_of_columns,
)
from equipoise.mitigate.augmentation.faces import SIDES, Image

Detector = Callable[[Sequence[Image]], Regions]
Pack = NDArray[np.void]

_AT_ONCE, _HASHED, _LISTED = 64, 256, 20
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
    """Rows of a table without a missing cell, in the order of their ids."""

    items: Items
    rows: NDArray[np.intp]
    pictures: Pictures
    labels: NDArray[np.object_]
    groups: NDArray[np.object_]

    def where(self, place: int) -> str:
        return f"row {self.rows[place] + 1}, {self.pictures.where(place)}"


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
    RunError
        When the store cannot be written.
    """
    detector = _detector(config.faces, base)
    table = _listed(name, given, config, base)
    kept = base / config.store / "augmentation" / "images" / _store_name(config, base)
    decoded, failed = _decode(table.pictures, config.size, detector, kept, name, progress)
    _refuse_too_many(table, failed, config)
    used = np.array([place for place in range(len(table.rows)) if place not in failed], np.intp)
    shapes = decoded["shapes"]
    regions = Regions(decoded["boxes"], np.asarray(decoded["boxes"].any(axis=1)))
    if config.faces.columns is not None:
        regions = _boxes(table.items, config.faces.columns, table.rows[used], shapes.tolist())
    # Boxes are scaled as their images are; a face of less than two pixels is none then.
    ends = regions.boxes * (config.size / np.tile(shapes[:, ::-1], (1, 2)))
    regions = Regions.of(ends, [(config.size, config.size)] * len(used))
    faces = Faces(decoded["pixels"], table.labels[used], table.groups[used], regions)
    by_group = dict(sorted(Counter(str(table.groups[place]) for place in failed).items()))
    without = table.items.columns[config.path].size - len(table.rows)
    counts = {
        **table.items.counts, "without a label, group or path": without,
        "cannot be used, by group": by_group,
        "cannot be used": {table.where(place): failed[place] for place in [*failed][:_LISTED]},
    }  # fmt: skip
    notes = []
    if without:
        notes.append(f"{name}: {without} rows have no label, group or path, and are not used.")
    if failed:
        first, groups = next(iter(failed)), ", ".join(f"{g} {n}" for g, n in by_group.items())
        notes.append(
            f"{name}: {len(failed)} of {len(table.rows)} images cannot be used ({groups}), such as "
            f"{table.where(first)}: {failed[first]}."
        )
    notes += [*_faceless(name, faces), *_imbalance(name, faces)]
    return Read(
        faces, table.items.inputs, counts, tuple(notes), table.items.name,
        lambda place: table.where(int(used[place])),
    )  # fmt: skip


def _listed(name: str, given: SetConfig, config: AugmentConfig, base: Path) -> _Listed:
    source = base / given.table if isinstance(given.table, Path) else given.table
    boxes = [config.faces.columns[side] for side in SIDES] if config.faces.columns else []
    columns = (config.path, config.label, config.group)
    items = load_items(ItemSource(source, config.id, (*columns, *boxes)), what=f"{name} images")
    cells = np.stack([items.columns[column] for column in columns])
    kept = np.flatnonzero((cells != None).all(axis=0))  # noqa: E711 - cell by cell
    if not len(kept):
        raise DataError("no row has a label, a group and a path", file=items.name)
    ids = items.ids[kept].tolist()
    pictures = pictures_of_table(
        ids, cells[0, kept].tolist(), root=base / given.root, name=items.name, column=config.path
    )
    places = dict(zip(ids, kept.tolist(), strict=True))
    rows = np.array([places[image] for image in pictures.ids.tolist()], np.intp)
    labels, groups = cells[1:, rows].astype(str).astype(object)
    return _Listed(items, rows, pictures, labels, groups)


def _detector(faces: FacesConfig, base: Path) -> Detector | None:
    if faces.detector is None:
        return None
    detector = CascadeDetector() if faces.model is None else YuNetDetector(base / faces.model)
    # An unusable detector is an error before images are read.
    detector([])
    return detector


def _store_name(config: AugmentConfig, base: Path) -> str:
    """Return the folder of decoded images: a digest of what decides them beside their content."""
    try:
        from PIL import __version__ as pillow
    except ImportError as error:
        raise MissingExtraError("pillow", "images") from error
    faces = config.faces
    facts: dict[str, Any] = {
        "size": config.size, "decoding": Decoding().facts, "pillow": pillow,
    }  # fmt: skip
    if faces.detector is not None:
        import cv2

        facts |= {"detector": faces.detector, "opencv": cv2.__version__}
    if faces.model is not None:
        facts["model"] = sha256((base / faces.model).read_bytes()).hexdigest()
    return sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _decode(
    pictures: Pictures,
    size: int,
    detector: Detector | None,
    folder: Path,
    name: str,
    progress: Progress | None,
) -> tuple[Pack, dict[int, str]]:
    """Return records of the usable images, in order, and why each of the others is not.

    A record has the digest of a file, its scaled pixels, the shape before, and the box of the face
    that was found, in pixels before scaling: zeros without one.
    """
    fields: Any = [
        ("digests", np.uint8, 32), ("pixels", np.uint8, (size, size, 3)),
        ("shapes", np.int64, 2), ("boxes", np.int64, 4),
    ]  # fmt: skip
    decoded: Pack = np.zeros(len(pictures), np.dtype(fields))
    packs = _read_packs(folder, decoded.dtype)
    known = {
        bytes(digest): (pack, row)
        for pack in packs.values()
        for row, digest in enumerate(np.array(pack["digests"]))
    }
    failed: dict[int, str] = {}
    fresh: list[int] = []
    for start in range(0, len(pictures), _AT_ONCE):
        if progress is not None:
            progress(f"reading {name} images", start, len(pictures))
        new: dict[int, Image] = {}
        for place in range(start, min(start + _AT_ONCE, len(pictures))):
            try:
                data = pictures.read(place)
                digest = sha256(data).digest()
                if digest in known:
                    pack, row = known[digest]
                    decoded[place] = pack[row]
                else:
                    new[place] = decode(data)
                    decoded["digests"][place] = np.frombuffer(digest, np.uint8)
            except OSError as error:
                failed[place] = error.strerror or str(error)
            except ImageError as error:
                failed[place] = error.reason
        _fill(decoded, new, detector)
        fresh += new
    if fresh:
        # Each content once, however many files have it.
        _, places = np.unique(decoded["digests"][fresh], axis=0, return_index=True)
        _add_pack(folder, decoded[np.array(fresh)[places]], packs)
    return np.delete(decoded, [*failed]), failed


def _fill(decoded: Pack, new: Mapping[int, Image], detector: Detector | None) -> None:
    """Write images that were just decoded into their records."""
    from PIL import Image as Pillow

    if detector is not None and new:
        decoded["boxes"][[*new]] = detector([*new.values()]).boxes
    for place, image in new.items():
        side = decoded["pixels"].shape[1:3]
        picture = Pillow.fromarray(image).resize(side, Pillow.Resampling.BILINEAR)
        decoded["pixels"][place] = np.asarray(picture)
        decoded["shapes"][place] = image.shape[:2]


def _read_packs(folder: Path, form: np.dtype[Any]) -> dict[Path, Pack]:
    """Return the undamaged packs of a folder, mapped into memory.

    A pack is named after the SHA-256 of its records. The images of a damaged pack are decoded
    again.
    """
    packs = {}
    for path in sorted(folder.glob("*.npy")):
        with suppress(OSError, ValueError, EOFError):
            pack = np.load(path, mmap_mode="r", allow_pickle=False)
            if pack.dtype == form and pack.ndim == 1 and path.name == _pack_name(pack):
                packs[path] = pack
    return packs


def _pack_name(pack: Pack) -> str:
    digest = sha256()
    for start in range(0, len(pack), _HASHED):
        digest.update(np.ascontiguousarray(pack[start : start + _HASHED]).view(np.uint8).data)
    return f"{digest.hexdigest()[:16]}.npy"


def _add_pack(folder: Path, pack: Pack, others: Mapping[Path, Pack]) -> None:
    """Write a pack, and smaller ones with it, which are then removed."""
    merged = []
    for path, other in sorted(others.items(), key=lambda pair: (len(pair[1]), pair[0])):
        if len(other) > len(pack):
            break
        pack = np.concatenate([pack, other])
        merged.append(path)
    path = folder / _pack_name(pack)
    # Under another name first, so that a pack is never there in part.
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            np.save(file, pack, allow_pickle=False)
        partial.replace(path)
        for old in merged:
            old.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(
            f"{folder}: decoded images cannot be kept there ({error.strerror or error}). To do: "
            "free space, or name another store"
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _refuse_too_many(table: _Listed, failed: Mapping[int, str], config: AugmentConfig) -> None:
    n = len(table.rows)
    allowed = math.floor(config.max_failures * n + 1e-9)
    if len(failed) <= allowed and len(failed) < n:
        return
    first = min(failed, key=lambda place: int(table.rows[place]))
    fix = "repair them, take their rows out, or raise max_failures to do without them"
    if len(failed) == n:
        fix = "check that the files lie there: paths start from the folder given as 'root'"
    raise DataError(
        f"{len(failed)} of {n} images cannot be used, and max_failures allows {allowed}; the first "
        f"is {table.where(first)}: {failed[first]}",
        file=table.items.name,
        fix=fix,
    )


def _faceless(name: str, faces: Faces) -> Iterator[str]:
    """Note how many images have no face, and how they are used."""
    without = int((~faces.regions.found).sum())
    if without:
        missing = faces.regions.missing(faces.groups).items()
        groups = ", ".join(f"{group} {count} of {n}" for group, (count, n) in missing)
        then = {"biased": ", which stay as they are", "test": ", which are not covered"}
        which = f"{without} of {len(faces)} images{then.get(name, '')}"
        yield f"{name}: no face was found in {which} ({groups})."


def _imbalance(name: str, faces: Faces) -> Iterator[str]:
    """Note where groups go with labels and should not, or should and do not."""
    group = min({*faces.groups})
    shares = {
        label: float((faces.groups[faces.labels == label] == group).mean())
        for label in sorted({*faces.labels})
    }
    least, *_, most = sorted([*shares, *shares], key=lambda label: (shares[label], label))
    told = f"{group}: {percent(shares[most])} of {most}, {percent(shares[least])} of {least}"
    close = shares[most] - shares[least] <= _CLOSE
    if name == "biased" and close:
        yield f"{name}: groups are about as frequent with each label ({told}): little to mitigate."
    if name != "biased" and not close:
        yield f"{name}: groups are not as frequent with each label, as they should be ({told})."


def _boxes(
    items: Items,
    columns: Mapping[str, str],
    rows: NDArray[np.intp],
    sizes: Sequence[tuple[int, int]],
) -> Regions:
    ends: dict[str, list[float | None]] = {}
    for side, column in columns.items():
        ends[side] = []
        for row in rows.tolist():
            text = items.columns[column][row]
            try:
                ends[side].append(None if text is None else float(text))
            except ValueError:
                raise DataError(
                    f"{text!r} is no number", file=items.name, column=column, row=row + 1,
                    expected="an end of the box of a face in pixels",
                ) from None  # fmt: skip
    try:
        return regions_of_columns(ends, sizes, rows=(rows + 1).tolist())
    except InputError as error:
        raise DataError(str(error), file=items.name) from None
