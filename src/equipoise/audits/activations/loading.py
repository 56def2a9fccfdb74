"""Read the images, their regions, and every model's maps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.config_arrays import located
from equipoise.core.errors import DataError
from equipoise.core.regular import open_regular
from equipoise.data import Vectors, load_items, load_vectors
from equipoise.data.items import Items

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig

Floats = npt.NDArray[np.float64]


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


def load(config: Config, *, base: Path) -> ActivationData:
    """Read everything that a configuration names.

    Raises
    ------
    DataError
        When a file cannot be read or joined, or a box is no four numbers.
    """
    data = config.data
    images = load_items(data.images.source(base, data.columns), what="images")
    boxes = {name: boxes_of(images, region) for name, region in data.regions.items()}
    inputs, models = dict(images.inputs), {}
    counts: dict[str, Any] = {"images": images.counts, "models": {}}
    for name, given in config.models.items():
        models[name], read = _mapped(name, given, images, boxes, data.max_unmatched, base)
        for one in read:
            inputs |= one.inputs
        counts["models"][name] = read[0].counts
    return ActivationData(images, models, inputs, counts)


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


def _mapped(
    name: str,
    given: ModelConfig,
    images: Items,
    boxes: Mapping[str, Floats],
    max_unmatched: float,
    base: Path,
) -> tuple[Mapped, list[Vectors]]:
    assert given.maps is not None  # noqa: S101 - models to run have maps by now
    what = f"models.{name}.maps"
    cells = load_vectors(given.maps.source(base), images, what=what, max_unmatched=max_unmatched)
    used, read = np.flatnonzero((cells.rows >= 0) & ~cells.not_finite), [cells]
    grid = _grid(given, cells)
    placed = {region: box[used] for region, box in boxes.items()}
    if given.frames is not None:
        frames = load_vectors(
            given.frames.source(base), images, what=f"models.{name}.frames",
            max_unmatched=max_unmatched,
        )  # fmt: skip
        read.append(frames)
        placed = {region: _framed(box, _frames(frames, used)) for region, box in placed.items()}
    maps = np.asarray(cells.take(used), dtype=np.float64).reshape(len(used), *grid)
    return Mapped(used, maps, placed, _pictures(given, base), len(images) - len(used)), read


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


def _framed(boxes: Floats, frames: Floats) -> Floats:
    from equipoise.explain.frames import framed

    return framed(boxes, frames)


def _pictures(given: ModelConfig, base: Path) -> dict[str, bytes]:
    """Return overlays by image; other cells than bytes are for the report to leave out."""
    if given.overlays is None:
        return {}
    import pyarrow as pa
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
