"""Images with regions, and every model's maps of them: read from files, or made and kept."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.audits.config_fields import located
from equipoise.audits.outputs import LiveModels
from equipoise.core.errors import ConfigError, DataError, InputError, ModelError
from equipoise.core.files import open_regular, read_table, table_bytes
from equipoise.core.groups import Groups
from equipoise.data import Vectors, load_items, load_vectors
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.evidence.decoding import Decoding, ImageError, decode
from equipoise.evidence.store import digest_of, ids_digest, locked, part_name, warn_of_damage, write
from equipoise.models.protocols import Offer

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
    from equipoise.audits.kinds import Progress
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures


# Raised whenever the same images, model and settings would give other maps than before.
_FORMAT = 1
_PART = 64

ROWS = pa.schema(
    [("id", pa.string()), ("map", pa.list_(pa.float32())), ("frame", pa.list_(pa.float64())),
     ("grid", pa.list_(pa.int64())), ("stage", pa.string()), ("reason", pa.string())]
)  # fmt: skip


@dataclass(frozen=True)
class MapRequest:
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
    asked: MapRequest,
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
    asked : MapRequest
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


def _check(table: pa.Table, asked: MapRequest, max_failures: float, name: str) -> None:
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
    asked: MapRequest,
    pictures: Pictures,
    places: Sequence[int],
    key: str,
    folder: Path,
    number: int,
) -> pa.Table:
    """Return one part: read where it is there, whole and made of the same bytes."""
    data = [_read_picture(pictures, place) for place in range(len(pictures))]
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
    rows = [*_rows(asked, pictures, data, targets)]
    table = pa.Table.from_pylist(rows, ROWS)
    # What a model failed on is tried again: the cause may be gone, such as a full memory.
    if all(row["stage"] != "model" for row in rows):
        write(path, table_bytes(table))
    return table


def _read_picture(pictures: Pictures, place: int) -> bytes | str:
    try:
        return pictures.read(place)
    except OSError as error:
        return error.strerror or str(error)


def _rows(
    asked: MapRequest, pictures: Pictures, data: Sequence[bytes | str], targets: Sequence[str]
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
    found = _maps_of_images(asked, images, targets, failed)
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


def _maps_of_images(
    asked: MapRequest,
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


def _run(asked: MapRequest, images: dict[int, Any], targets: Sequence[str]) -> dict[int, Any]:
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


Floats = npt.NDArray[np.float64]

_OFFERS: tuple[Offer, ...] = ("classifier", "encoder", "scorer", "answerer")
# Largest number of rows and columns of a map.
_SIDE = 32


@dataclass(frozen=True, eq=False)
class Mapped:
    """One model's maps.

    Attributes
    ----------
    used : ndarray of int64, shape (n,)
        Images with a map.
    maps : ndarray, shape (n, rows, columns)
    boxes : mapping of str to ndarray, shape (n, 4)
        By region, as shares of the map.
    pictures : mapping of str to bytes
        Overlays by image.
    without : int
        Images without a map.
    """

    used: npt.NDArray[np.int64] = field(repr=False)
    maps: npt.NDArray[Any] = field(repr=False)
    boxes: Mapping[str, Floats] = field(repr=False)
    pictures: Mapping[str, bytes] = field(repr=False)
    without: int


@dataclass(frozen=True, eq=False)
class ActivationData:
    """What an audit of activations measures.

    Attributes
    ----------
    images : Items
    models : mapping of str to Mapped
    inputs, counts : mapping
        Of every file read.
    """

    images: Items
    models: Mapping[str, Mapped]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]

    @property
    def ids(self) -> npt.NDArray[np.object_]:
        """Ids of the images."""
        return self.images.ids


def load(config: Config, models: Models) -> ActivationData:
    """Read the images and regions; read or make every model's maps.

    Raises
    ------
    ConfigError
        When nothing says where the pictures are, a model is of another kind, or it has no such
        label or layer.
    DataError
        When a file can't be read or joined, a box is no four numbers, or an image has no target.
    """
    data = config.data
    known = models.read_images(data.images, data.columns)
    table = known.source(models.base, data.columns)
    images = models.once("images", lambda: load_items(table, what="images"))
    boxes = {name: boxes_of(images, region) for name, region in data.regions.items()}
    inputs, every = dict(images.inputs), {}
    counts: dict[str, Any] = {"images": images.counts, "models": {}}
    for name, section in config.models.items():
        if section.model is None:
            every[name], read = _from_files(name, section, images, boxes, config, models.base)
        else:
            made = _make(name, section, known.need_pictures(name), images, boxes, config, models)
            cells = load_vectors(made.outputs, images, max_unmatched=data.max_unmatched)
            frames = made.frames[cells.rows[_used(cells)]]
            every[name] = _mapped(cells, made.grid, boxes, frames, made.overlays)
            read = [cells]
        for vectors in read:
            inputs |= vectors.inputs
        counts["models"][name] = read[0].counts
    return ActivationData(images, every, inputs, counts)


def boxes_of(images: Items, region: RegionConfig) -> Floats:
    """Return the boxes of a region in pixels, (n, 4); NaN where a cell is empty.

    Raises
    ------
    DataError
        When a cell is no number, or a box ends before it begins.
    """
    found = np.full((len(images), 4), np.nan)
    for place, column in enumerate(region.columns):
        for row, cell in enumerate(images.columns[column].tolist()):
            if cell is not None:
                found[row, place] = _number(cell, images.name, column, row + 1)
    whole = ~np.isnan(found).any(axis=1)
    wrong = whole & ((found[:, 2] <= found[:, 0]) | (found[:, 3] <= found[:, 1]))
    if wrong.any():
        raise DataError(
            "the box ends before it begins",
            file=images.name,
            column=region.left,
            row=int(np.argmax(wrong)) + 1,
            expected="left < right and top < bottom, in pixels",
        )
    return found


def _number(cell: Any, file: str, column: str, row: int) -> float:
    try:
        found = float(cell)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise DataError(
            f"{cell!r} is no number",
            file=file,
            column=column,
            row=row,
            expected="the edge of a box in pixels, or an empty cell",
        )
    return found


def _from_files(
    name: str,
    section: ModelConfig,
    images: Items,
    boxes: Mapping[str, Floats],
    config: Config,
    base: Path,
) -> tuple[Mapped, list[Vectors]]:
    assert section.maps is not None  # noqa: S101 - a model without maps is run
    limit = config.data.max_unmatched
    what = f"models.{name}.maps"
    cells = load_vectors(section.maps.source(base), images, what=what, max_unmatched=limit)
    grid, frames, read = _grid(section, cells), None, [cells]
    if section.frames is not None:
        what = f"models.{name}.frames"
        found = load_vectors(section.frames.source(base), images, what=what, max_unmatched=limit)
        frames = _frames(found, _used(cells))
        read.append(found)
    return _mapped(cells, grid, boxes, frames, _overlays(section, base)), read


def _used(cells: Vectors) -> npt.NDArray[np.int64]:
    return np.flatnonzero((cells.rows >= 0) & ~cells.not_finite)


def _mapped(
    cells: Vectors,
    grid: tuple[int, int],
    boxes: Mapping[str, Floats],
    frames: Floats | None,
    overlays: Mapping[str, bytes],
) -> Mapped:
    from equipoise.explain.frames import framed

    used = _used(cells)
    placed = {region: box[used] for region, box in boxes.items()}
    if frames is not None:
        placed = {region: framed(box, frames) for region, box in placed.items()}
    maps = np.asarray(cells.take(used), dtype=np.float64).reshape(len(used), *grid)
    return Mapped(used, maps, placed, overlays, len(cells.rows) - len(used))


def _grid(given: ModelConfig, cells: Vectors) -> tuple[int, int]:
    side = math.isqrt(cells.dimension)
    grid = given.grid or (side, side)
    if grid[0] * grid[1] != cells.dimension:
        raise DataError(
            f"maps of {cells.dimension} cells, which are no {grid[0]} × {grid[1]}",
            file=cells.name,
            fix="give their rows and columns as 'grid'",
        )
    return grid


def _frames(frames: Vectors, used: npt.NDArray[np.int64]) -> Floats:
    if frames.dimension != 4 or (frames.rows[used] < 0).any():
        raise DataError(
            f"frames of {frames.dimension} numbers, "
            f"and {int((frames.rows[used] < 0).sum())} images with a map and none",
            file=frames.name,
            expected="left, top, right and bottom for each image with a map",
        )
    return np.asarray(frames.take(used), dtype=np.float64)


def _overlays(given: ModelConfig, base: Path) -> dict[str, bytes]:
    """Return overlays by image; other cells than bytes are for the report to leave out."""
    if given.overlays is None:
        return {}
    import pyarrow.parquet as pq

    table = located(given.overlays, base)
    if isinstance(table, Path):
        try:
            with open_regular(table) as file:
                table = pq.read_table(file, page_checksum_verification=True)
        except (OSError, pa.ArrowException) as error:
            raise DataError(
                "it cannot be read", file=str(given.overlays), expected="a Parquet file"
            ) from error
    rows = pa.table(table).select(["image_id", "image"]).to_pylist()
    return {str(row["image_id"]): row["image"] for row in rows if isinstance(row["image"], bytes)}


@dataclass(frozen=True, eq=False)
class _Made:
    """Maps of a live model, or stand-ins of them: one entry per row of `outputs`."""

    outputs: Outputs
    frames: Floats
    grid: tuple[int, int]
    overlays: Mapping[str, bytes]


def _make(
    name: str,
    section: ModelConfig,
    pictures: Pictures,
    images: Items,
    boxes: Mapping[str, Floats],
    config: Config,
    models: Models,
) -> _Made:
    """Make a model's maps; a dry run returns stand-ins of one cell."""
    # Maps of half precision are too coarse.
    precise = section.model_copy(update={"dtype": section.dtype or "float32"})
    models.capability(name, precise, *_OFFERS)
    targets = _targets(section, pictures, images, config)
    if not isinstance(models, LiveModels):
        made = _stand_in(name, section, pictures)
    else:
        model = models.opened(precise)
        _check_targets(name, section, model, targets)
        table, folder = maps_of(
            MapRequest(model, section, targets),
            pictures,
            models.store,
            max_failures=config.extraction.max_failures,
            part=config.extraction.part,
            progress=models.progress,
        )
        made = _kept(name, table, folder, pictures, asdict(model.info))
        if config.gallery:
            overlays = _lay(made, pictures, images, boxes, config)
            made = _Made(made.outputs, made.frames, made.grid, overlays)
    models.outputs.append(made.outputs)
    return made


def _check_targets(name: str, section: ModelConfig, model: Any, targets: Sequence[str]) -> None:
    from equipoise.explain.scoring import scoring

    try:
        scoring(model, targets, question=section.question)
    except InputError as error:
        raise ConfigError(f"models.{name}: {error}") from None


def _stand_in(name: str, section: ModelConfig, pictures: Pictures) -> _Made:
    n, numbers = len(pictures), _SIDE * _SIDE
    pending = {
        "runs": section.called, "items": n, "in_store": None, "to_do": None,
        "numbers": numbers, "bytes": 4 * numbers * n,
    }  # fmt: skip
    outputs = Outputs(
        model=name, content="embeddings", source=f"models.{name}.model",
        ids=pl.Series("", pictures.ids.tolist(), dtype=pl.String), requested=pictures.ids,
        values=np.ones((n, 1), np.float32), pending=pending,
    )  # fmt: skip
    return _Made(outputs, np.tile([0.0, 0.0, 1e9, 1e9], (n, 1)), (1, 1), {})


def _targets(
    section: ModelConfig, pictures: Pictures, images: Items, config: Config
) -> tuple[str, ...]:
    """Return the target of each picture.

    Raises
    ------
    DataError
        When an image has none.
    """
    if section.target is not None:
        return (section.target,) * len(pictures)
    column = str(config.data.target)
    targets = images.columns[column].tolist()
    if None in targets:
        raise DataError(
            "there is nothing to ask for",
            file=images.name,
            column=column,
            row=targets.index(None) + 1,
            expected="a label, a text or an answer",
            fix="fill it in, or remove the row",
        )
    by_id = dict(zip(images.ids.tolist(), targets, strict=True))
    return tuple(by_id[each] for each in pictures.ids.tolist())


def _kept(
    name: str, table: pa.Table, folder: Path, pictures: Pictures, info: Mapping[str, Any]
) -> _Made:
    """Return stored maps as outputs; images that failed are named with the stage."""
    failed = {row["id"]: row["stage"] for row in table.to_pylist() if row["stage"]}
    whole = table.filter(pa.compute.equal(table["stage"], ""))
    grids = {tuple(grid) for grid in whole["grid"].to_pylist()}
    if len(grids) != 1:
        raise DataError(
            f"models.{name}: maps of {len(grids)} sizes; the model takes images of any size",
            fix="cut or resize the images to one size",
        )
    rows, columns = grids.pop()
    maps, frames = (
        whole[column].combine_chunks().flatten().to_numpy().reshape(-1, width)
        for column, width in (("map", rows * columns), ("frame", 4))
    )
    digest = hashlib.sha256()
    for column in ("id", "map", "frame"):
        digest.update(repr(whole[column].to_pylist()).encode())
    file = {"sha256": digest.hexdigest(), "bytes": whole.nbytes, "rows": len(whole)}
    outputs = Outputs(
        model=name, content="embeddings", source=f"models.{name}.model",
        ids=pl.Series("", whole["id"].to_pylist(), dtype=pl.String), requested=pictures.ids,
        values=maps, failed=failed, info=info,
        inputs={f"evidence/activations/{folder.name}": file},
    )  # fmt: skip
    return _Made(outputs, frames, (rows, columns), {})


def _lay(
    made: _Made,
    pictures: Pictures,
    images: Items,
    boxes: Mapping[str, Floats],
    config: Config,
) -> dict[str, bytes]:
    """Lay maps over the first images of every group, with the outlines of all regions.

    Regions that are to be blurred are; an image without one of them is blurred as a whole.
    """
    from equipoise.evidence.decoding import decode
    from equipoise.explain.blurring import WHOLE
    from equipoise.explain.frames import framed
    from equipoise.explain.overlays import overlay

    places = {name: row for row, name in enumerate(made.outputs.ids.to_list())}
    rows = {name: row for row, name in enumerate(images.ids.tolist())}
    where = {name: row for row, name in enumerate(pictures.ids.tolist())}
    laid = {}
    for name in _first(images, places, config):
        crop = None if pictures.crops is None else pictures.crops[where[name]]
        image = decode(pictures.read(where[name]), crop=crop)
        frame = made.frames[places[name]]
        lines = {of: framed(box[rows[name]][None], frame[None])[0] for of, box in boxes.items()}
        hidden = [WHOLE] if config.blur == "all" else [lines[of] for of in config.blur]
        map_ = np.asarray(made.outputs.numbers[places[name]], np.float32).reshape(made.grid)
        laid[name] = overlay(image, map_, frame.tolist(), [*lines.values()], hidden)
    return laid


def _first(images: Items, mapped: Mapping[str, int], config: Config) -> list[str]:
    """Return the first images of every group that have a map, each once."""
    chosen = dict[str, None]()
    for attributes in config.data.groups:
        groups = Groups.of({name: images.coded[name] for name in attributes})
        for code in range(len(groups)):
            of_group = images.ids[groups.codes == code].tolist()
            chosen |= dict.fromkeys([each for each in of_group if each in mapped][: config.gallery])
    return [*chosen]
