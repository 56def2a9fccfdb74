"""Images with regions, and every model's maps of them: read from files, or made and kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.columns import ImageData, numbers_of
from equipoise.audits.group_sizes import groups_by
from equipoise.core import (
    AnyArray,
    ConfigError,
    DataError,
    Fields,
    Floats,
    InputError,
    Integers,
)
from equipoise.data import ArraySource, Vectors, load_items, load_vectors
from equipoise.data.labels import Items, Outputs
from equipoise.evidence.extraction import Extraction, Settings, extracted
from equipoise.evidence.pictures import decode
from equipoise.evidence.store import key_of
from equipoise.evidence.working import Asked, Request

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures


# Images in a part, unless the config sets their number.
_PART = 64


def _maps(
    model: Any, section: ModelConfig, pictures: Pictures, targets: Mapping[str, str], models: Models
) -> Extraction:
    """Return the maps of pictures: what lies in the store is read, the rest is made.

    Raises
    ------
    ModelError
        When maps cannot be made of the model, or of no image.
    DataError
        When more images fail than may.
    """
    from equipoise.explain.maps import activation_maps

    def call(ids: Sequence[str], images: Sequence[Any]) -> list[Fields]:
        maps = activation_maps(
            model,
            images,
            [targets[each] for each in ids],
            question=section.question,
            method=section.method,
            layer=section.layer,
        )
        if not np.isfinite(maps.maps).all():
            raise InputError("the model gave a map that is not finite")
        return [
            {"cells": map_.ravel(), "frame": frame, "grid": [*map_.shape]}
            for map_, frame in zip(maps.maps, maps.frames.tolist(), strict=True)
        ]

    facts = {"method": section.method, "layer": section.layer}
    facts["targets"] = key_of([*targets.values()])
    options = models.config.extraction
    settings = Settings(
        part=options.part or _PART, max_failures=options.max_failures, progress=models.progress
    )
    asked = Asked(model.info, (), call, None, "activations")
    request = Request("activations", question=section.question, facts=facts)
    return extracted(request, pictures, asked, models.store, settings)


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
    frames : ndarray, shape (n, 4), or None
        What the map lies over, in pixels.
    without : int
        Images without a map.
    pictures : mapping of int to bytes
        Overlays by place among the images with a map.
    """

    used: Integers
    maps: AnyArray
    boxes: Mapping[str, Floats]
    frames: Floats | None
    without: int
    pictures: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ActivationData(ImageData):
    """What an audit of activations measures.

    Attributes
    ----------
    models : mapping of str to Mapped
    """

    models: Mapping[str, Mapped]


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
    counts: Fields = {"images": images.counts, "models": {}}
    for name, section in config.models.items():
        grid: tuple[int, int] | None = None
        pictures: Pictures | None = None
        frames: ArraySource | Outputs | None = None
        if section.maps is not None:
            maps: ArraySource | Outputs = section.maps.source(models.base)
            if section.frames is not None:
                frames = section.frames.source(models.base)
        else:
            pictures = known.need_pictures(name)
            maps, frames, grid = _make(name, section, pictures, images, config, models)
        read = [
            load_vectors(
                source,
                images,
                what=f"models.{name}.{what}",
                max_unmatched=data.max_unmatched,
                zeros=True,
            )
            for what, source in (("maps", maps), ("frames", frames))
            if source is not None
        ]
        for vectors in read:
            inputs |= vectors.inputs
        counts["models"][name] = read[0].counts
        every[name] = _mapped(read, grid, boxes)
        if pictures is not None and config.gallery and not models.dry:
            laid = dict(_overlays(every[name], pictures, images, config))
            every[name] = replace(every[name], pictures=laid)
    return ActivationData(images, inputs, counts, every)


def boxes_of(images: Items, region: RegionConfig) -> Floats:
    """Return the boxes of a region in pixels, (n, 4); NaN where a cell is empty.

    Raises
    ------
    DataError
        When a cell is no number, or a box ends before it begins.
    """
    boxes = np.stack([numbers_of(images, column) for column in region.columns], axis=1)
    wrong = (boxes[:, 2] <= boxes[:, 0]) | (boxes[:, 3] <= boxes[:, 1])
    wrong &= ~np.isnan(boxes).any(axis=1)
    if wrong.any():
        raise DataError(
            "the box ends before it begins",
            file=images.name,
            column=region.left,
            row=int(np.argmax(wrong)) + 1,
            expected="left < right and top < bottom, in pixels",
        )
    return boxes


def _mapped(
    read: Sequence[Vectors], grid: tuple[int, int] | None, boxes: Mapping[str, Floats]
) -> Mapped:
    from equipoise.explain.maps import framed

    cells, edges = read[0], None
    used = np.flatnonzero((cells.rows >= 0) & ~cells.not_finite)
    placed = {region: box[used] for region, box in boxes.items()}
    for frames in read[1:]:
        if frames.dimension != 4 or (frames.rows[used] < 0).any():
            raise DataError(
                f"frames of {frames.dimension} numbers, or images with a map and no frame",
                file=frames.name,
                expected="left, top, right and bottom for each image with a map",
            )
        edges = np.asarray(frames.take(used), dtype=np.float64)
        placed = {region: framed(box, edges) for region, box in placed.items()}
    side = math.isqrt(cells.dimension)
    rows, columns = grid or (side, side)
    if rows * columns != cells.dimension:
        raise DataError(
            f"maps of {cells.dimension} cells, which are no {rows} × {columns}",
            file=cells.name,
            fix="resize them to squares",
        )
    maps = np.asarray(cells.take(used), dtype=np.float64).reshape(len(used), rows, columns)
    return Mapped(used, maps, placed, edges, len(cells.rows) - len(used))


def _make(
    name: str,
    section: ModelConfig,
    pictures: Pictures,
    images: Items,
    config: Config,
    models: Models,
) -> tuple[Outputs, Outputs, tuple[int, int]]:
    """Make a model's maps, with their frames and grid; a dry run returns stand-ins of one cell."""
    # Maps of half precision are too coarse.
    precise = section.model_copy(update={"dtype": section.dtype or "float32"})
    models.capability(name, precise, "classifier", "encoder", "scorer", "answerer")
    targets, n = _targets(section, pictures, images, config), len(pictures)
    if not models.dry:
        from equipoise.explain.scoring import scoring

        model = models.opened(precise)
        try:
            scoring(model, [*targets.values()], question=section.question)
        except InputError as error:
            raise ConfigError(f"models.{name}: {error}") from None
        run = _maps(model, section, pictures, targets, models)
        cells = run.table["map"].combine_chunks()
        grids = {tuple(grid) for grid in cells.field("grid").to_pylist()}
        if len(grids) != 1:
            raise DataError(
                f"models.{name}: maps of {len(grids)} sizes; the model takes images of any size",
                fix="cut or resize the images to one size",
            )
        maps, frames = (
            np.stack(cells.field(key).to_numpy(zero_copy_only=False)) for key in ("cells", "frame")
        )
        failures = (run.failures[column].to_pylist() for column in ("image_id", "stage"))
        more: Fields = {
            "failed": dict(zip(*failures, strict=True)), "info": run.info, "inputs": run.inputs,
        }  # fmt: skip
        ids, (grid,) = run.table["image_id"].to_pylist(), grids
    else:
        ids, grid = pictures.ids.tolist(), (1, 1)
        maps, frames = np.ones((n, 1), np.float32), np.tile([0.0, 0.0, 1e9, 1e9], (n, 1))
        numbers = _SIDE * _SIDE
        more = {"pending": {
            "runs": section.called, "items": n, "in_store": None, "to_do": None,
            "numbers": numbers, "bytes": 4 * numbers * n,
        }}  # fmt: skip
    outputs = models.keep(
        name, "embeddings", "images", ids, requested=pictures.ids, values=maps, **more
    )
    return outputs, replace(outputs, values=frames), grid


def _targets(
    section: ModelConfig, pictures: Pictures, images: Items, config: Config
) -> dict[str, str]:
    """Return the target of each picture by its id.

    Raises
    ------
    DataError
        When an image has none.
    """
    wanted = pictures.ids.tolist()
    if section.target is not None:
        return dict.fromkeys(wanted, section.target)
    column = str(config.data.target)
    targets = images.columns[column].tolist()
    if None in targets:
        raise DataError(
            "the cell of the target is empty",
            file=images.name,
            column=column,
            row=targets.index(None) + 1,
            expected="a label, a text or an answer",
        )
    by_id = dict(zip(images.ids.tolist(), targets, strict=True))
    return {each: by_id[each] for each in wanted}


def _overlays(
    mapped: Mapped, pictures: Pictures, images: Items, config: Config
) -> Iterator[tuple[int, bytes]]:
    """Lay maps over the first images of every group, with the outlines of all regions.

    Regions that are to be blurred are; an image without one of them is blurred as a whole.
    """
    from equipoise.explain.overlays import WHOLE, overlay

    assert mapped.frames is not None  # noqa: S101 - maps of a live model have frames
    ids = images.ids[mapped.used].tolist()
    where = {name: row for row, name in enumerate(pictures.ids.tolist())}
    chosen = set[int]()
    for groups in groups_by(config.data.groups, images.coded):
        codes = groups.codes[mapped.used]
        for code in range(len(groups)):
            chosen.update(np.flatnonzero(codes == code)[: config.gallery].tolist())
    for place in sorted(chosen):
        row = where[ids[place]]
        image = decode(
            pictures.read(row), crop=None if pictures.crops is None else pictures.crops[row]
        )
        lines = {region: box[place] for region, box in mapped.boxes.items()}
        hidden = [WHOLE] if config.blur == "all" else [lines[region] for region in config.blur]
        map_, frame = mapped.maps[place].astype(np.float32), mapped.frames[place].tolist()
        yield place, overlay(image, map_, frame, [*lines.values()], hidden)
