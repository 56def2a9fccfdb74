"""Maps of a set of pictures, made part by part and kept in the store: a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from equipoise.core.errors import DataError, InputError, ModelError
from equipoise.core.files import read_table, table_bytes
from equipoise.evidence.decoding import Decoding, ImageError, decode
from equipoise.evidence.parts import digest_of, part_name, warn_of_damage
from equipoise.evidence.store import ids_digest, locked, write

if TYPE_CHECKING:
    from equipoise.audits.activations.config import ModelConfig
    from equipoise.audits.kinds import Progress
    from equipoise.evidence.pictures import Pictures

# Raised whenever the same images, model and settings would give other maps than before.
_FORMAT = 1
_PART = 64

ROWS = pa.schema(
    [("id", pa.string()), ("map", pa.list_(pa.float32())), ("frame", pa.list_(pa.float64())),
     ("grid", pa.list_(pa.int64())), ("stage", pa.string()), ("reason", pa.string())]
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What maps are made of.

    Attributes
    ----------
    model : object
    given : ModelConfig
    targets : tuple of str
        One for each picture, in their order.
    """

    model: Any
    given: ModelConfig
    targets: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides a map but the picture and its target."""
        one = self.given
        settings = {"method": one.method, "layer": one.layer, "question": one.question}
        decoding = Decoding().facts
        return {"format": _FORMAT, "model": self.model.info.key, "decoding": decoding, **settings}


def maps_of(
    asked: Asked,
    pictures: Pictures,
    store: Path,
    *,
    max_failures: float,
    part: int | None = None,
    progress: Progress | None = None,
) -> tuple[pa.Table, Path]:
    """Return the maps of pictures, what lies in the store read and the rest made.

    Parameters
    ----------
    asked : Asked
    pictures : Pictures
    store : Path
        Folder of the evidence.
    max_failures : float
        Largest share of images that may have no map.
    part : int, optional
        Images in one file; 64 unless given.
    progress : callable, optional
        Told the step, the images done, and all of them.

    Returns
    -------
    pyarrow.Table
        `ROWS`: `stage` and `reason` where an image has no map.
    Path
        Their folder.

    Raises
    ------
    ModelError
        When maps cannot be made of the model, or of no image.
    DataError
        When more images fail than may.
    """
    size = part or _PART
    facts = asked.facts | {"ids": ids_digest(pictures)}
    # Maps made before the size could be chosen lie in a folder whose key does not name it.
    facts |= {} if size == _PART else {"part": size}
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    folder = store / "activations" / key[:16]
    parts = []
    with locked(folder):
        for number, start in enumerate(range(0, len(pictures), size)):
            if progress is not None:
                progress("maps", start, len(pictures))
            places = [*range(start, min(start + size, len(pictures)))]
            parts.append(_part(asked, pictures.take(places), places, key, folder, number))
    table = pa.concat_tables(parts)
    _check(table, asked, max_failures, pictures.name)
    return table, folder


def _check(table: pa.Table, asked: Asked, max_failures: float, name: str) -> None:
    failed = [row for row in table.select(["id", "reason"]).to_pylist() if row["reason"]]
    if not failed:
        return
    first = f"the first is {failed[0]['id']!r}: {failed[0]['reason']}"
    if len(failed) == len(table):
        raise ModelError(f"{asked.model.info.name}: no image has a map; {first}")
    if len(failed) > max_failures * len(table):
        raise DataError(
            f"{len(failed)} of {len(table)} images have no map; {first}",
            file=name,
            fix="repair these images, or raise extraction.max_failures to do without them",
        )


def _part(
    asked: Asked, pictures: Pictures, places: Sequence[int], key: str, folder: Path, number: int
) -> pa.Table:
    """Return one part: read where it is there, whole and made of the same bytes."""
    data = [_read(pictures, place) for place in range(len(pictures))]
    targets = [asked.targets[place] for place in places]
    contents = [hashlib.sha256(one).hexdigest() if isinstance(one, bytes) else "" for one in data]
    named = [f"{content} {target}" for content, target in zip(contents, targets, strict=True)]
    path = folder / part_name(number, digest_of(key, pictures, named))
    try:
        return read_table(path, schema=ROWS)
    except FileNotFoundError:
        pass
    except (OSError, pa.ArrowException):
        warn_of_damage(path)
    rows = [*_made(asked, pictures, data, targets)]
    table = pa.Table.from_pylist(rows, ROWS)
    # What a model failed on is tried again: the cause may be gone, such as a full memory.
    if all(row["stage"] != "model" for row in rows):
        write(path, table_bytes(table))
    return table


def _read(pictures: Pictures, place: int) -> bytes | str:
    try:
        return pictures.read(place)
    except OSError as error:
        return error.strerror or str(error)


def _made(
    asked: Asked, pictures: Pictures, data: Sequence[bytes | str], targets: Sequence[str]
) -> Iterator[dict[str, Any]]:
    images: dict[int, Any] = {}
    failed: dict[int, tuple[str, str]] = {}
    for place, one in enumerate(data):
        crop = None if pictures.crops is None else pictures.crops[place]
        if isinstance(one, str):
            failed[place] = "read", one
            continue
        try:
            images[place] = decode(one, Decoding(), crop)
        except ImageError as error:
            failed[place] = "decode", error.reason
    found = _mapped(asked, images, targets, failed)
    for place, name in enumerate(pictures.ids.tolist()):
        stage, reason = failed.get(place, ("", ""))
        map_, frame = found.get(place, (None, None))
        yield {
            "id": name,
            "map": None if map_ is None else map_.ravel(),
            "frame": frame,
            "grid": None if map_ is None else [*map_.shape],
            "stage": stage,
            "reason": reason,
        }


def _mapped(
    asked: Asked,
    images: dict[int, Any],
    targets: Sequence[str],
    failed: dict[int, tuple[str, str]],
) -> dict[int, Any]:
    """Return map and frame of each image; one on which the model fails is tried alone."""
    try:
        return _run(asked, images, targets)
    except Exception:  # noqa: BLE001 - each image is tried by itself
        found: dict[int, Any] = {}
    for place, image in images.items():
        try:
            found |= _run(asked, {place: image}, targets)
        except Exception as error:  # noqa: BLE001 - a failure of this image, which is counted
            failed[place] = "model", f"{type(error).__name__}: {error}"
    return found


def _run(asked: Asked, images: dict[int, Any], targets: Sequence[str]) -> dict[int, Any]:
    from equipoise.explain.maps import activation_maps

    if not images:
        return {}
    one = asked.given
    maps = activation_maps(
        asked.model,
        [*images.values()],
        [targets[place] for place in images],
        question=one.question,
        method=one.method,
        layer=one.layer,
    )
    bad = ~np.isfinite(maps.maps).all(axis=(1, 2))
    if bad.any():
        raise InputError("the model gave a map that is not finite")
    rows = zip(maps.maps, maps.frames.tolist(), strict=True)
    return dict(zip(images, rows, strict=True))
