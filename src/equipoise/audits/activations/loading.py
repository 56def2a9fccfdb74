"""Images with regions, and every model's maps of them: read from files, or made by a live run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.audits.activations.mapping import Asked, maps_of
from equipoise.audits.config_arrays import located
from equipoise.audits.outputs import LiveModels, Offer, Outputs
from equipoise.core.errors import ConfigError, DataError, InputError
from equipoise.core.files import open_regular
from equipoise.core.groups import Groups
from equipoise.data import Vectors, load_items, load_vectors
from equipoise.data.labels import Items

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures

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
    images = load_items(known.source(models.base, data.columns), what="images")
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
            Asked(model, section, targets),
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
