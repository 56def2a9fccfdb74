"""Images with regions, and every model's maps of them: read from files, or made and kept."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.columns import numbers_of
from equipoise.audits.group_sizes import groups_by
from equipoise.audits.outputs import LiveModels
from equipoise.core.arrays import AnyArray, Floats, Integers, Objects
from equipoise.core.errors import ConfigError, DataError, InputError, ModelError
from equipoise.core.files import read_table, table_bytes
from equipoise.data import ArraySource, Vectors, load_items, load_vectors
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.evidence.decoding import Decoding, ImageError, decode
from equipoise.evidence.store import digest_of, ids_digest, locked, part_name, warn_of_damage, write
from equipoise.models.protocols import Offer

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
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
class _MapRun:
    """Maps of pictures by one model: what lies in the store is read, the rest is made.

    Attributes
    ----------
    model : object
    section : ModelConfig
    pictures : Pictures
    targets : tuple of str
        One for each picture, in their order.
    """

    model: Any
    section: ModelConfig
    pictures: Pictures
    targets: tuple[str, ...]

    def maps(self, models: Models) -> tuple[pa.Table, Path]:
        """Return the maps as a table of `ROWS`, and their folder.

        `stage` and `reason` say why an image has no map.

        Raises
        ------
        ModelError
            When maps cannot be made of the model, or of no image.
        DataError
            When more images fail than may.
        """
        size, progress = models.config.extraction.part or _PART, models.progress
        section, n = self.section, len(self.pictures)
        facts = {
            "format": _FORMAT, "model": self.model.info.key, "decoding": Decoding().facts,
            "method": section.method, "layer": section.layer, "question": section.question,
            "ids": ids_digest(self.pictures),
            # Maps made before the size could be chosen lie in a folder whose key does not name it.
            **({} if size == _PART else {"part": size}),
        }  # fmt: skip
        key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        folder = models.store / "activations" / key[:16]
        parts = []
        with locked(folder):
            for number, start in enumerate(range(0, n, size)):
                if progress is not None:
                    progress("maps", start, n)
                places = [*range(start, min(start + size, n))]
                own = replace(
                    self,
                    pictures=self.pictures.take(places),
                    targets=self.targets[start : start + size],
                )
                parts.append(own.part(key, folder, number))
        table = pa.concat_tables(parts)
        self._check(table, models.config.extraction.max_failures)
        return table, folder

    def _check(self, table: pa.Table, max_failures: float) -> None:
        failed = [row for row in table.select(["id", "reason"]).to_pylist() if row["reason"]]
        first = f"the first is {failed[0]['id']!r}: {failed[0]['reason']}" if failed else ""
        if len(failed) == len(table):
            raise ModelError(f"{self.model.info.name}: no image has a map; {first}")
        if len(failed) > max_failures * len(table):
            raise DataError(
                f"{len(failed)} of {len(table)} images have no map; {first}",
                file=self.pictures.name,
                fix="repair these images, or raise extraction.max_failures to do without them",
            )

    def part(self, key: str, folder: Path, number: int) -> pa.Table:
        """Return one part: read where it is there, whole and made of the same bytes."""
        data = [_read_picture(self.pictures, place) for place in range(len(self.pictures))]
        named = [
            f"{hashlib.sha256(each).hexdigest() if isinstance(each, bytes) else ''} {target}"
            for each, target in zip(data, self.targets, strict=True)
        ]
        path = folder / part_name(number, digest_of(key, self.pictures, named))
        try:
            return read_table(path, schema=ROWS)
        except FileNotFoundError:
            pass
        except (OSError, pa.ArrowException):
            warn_of_damage(path)
        rows = self._rows(data)
        table = pa.Table.from_pylist(rows, ROWS)
        # What a model failed on is tried again: the cause may be gone, such as a full memory.
        if all(row["stage"] != "model" for row in rows):
            write(path, table_bytes(table))
        return table

    def _rows(self, data: Sequence[bytes | str]) -> list[dict[str, Any]]:
        images: dict[int, Any] = {}
        failed: dict[int, tuple[str, str]] = {}
        for place, each in enumerate(data):
            crop = None if self.pictures.crops is None else self.pictures.crops[place]
            if isinstance(each, str):
                failed[place] = "read", each
                continue
            try:
                images[place] = decode(each, Decoding(), crop)
            except ImageError as error:
                failed[place] = "decode", error.reason
        try:
            made = _run(self, images)
        except Exception:  # noqa: BLE001 - each image is tried by itself
            made = {}
            for place, image in images.items():
                try:
                    made |= _run(self, {place: image})
                except Exception as error:  # noqa: BLE001 - a failure of this image, counted
                    failed[place] = "model", f"{type(error).__name__}: {error}"
        rows = []
        for place, name in enumerate(self.pictures.ids.tolist()):
            stage, reason = failed.get(place, ("", ""))
            row = {"id": name, "stage": stage, "reason": reason}
            if place in made:
                map_, frame = made[place]
                row |= {"map": map_.ravel(), "frame": frame, "grid": [*map_.shape]}
            rows.append(row)
        return rows


def _read_picture(pictures: Pictures, place: int) -> bytes | str:
    try:
        return pictures.read(place)
    except OSError as error:
        return error.strerror or str(error)


def _run(run: _MapRun, images: Mapping[int, Any]) -> dict[int, Any]:
    """Return the map and frame of each image."""
    from equipoise.explain.maps import activation_maps

    if not images:
        return {}
    section = run.section
    maps = activation_maps(
        run.model,
        [*images.values()],
        [run.targets[place] for place in images],
        question=section.question,
        method=section.method,
        layer=section.layer,
    )
    if not np.isfinite(maps.maps).all():
        raise InputError("the model gave a map that is not finite")
    rows = zip(maps.maps, maps.frames.tolist(), strict=True)
    return dict(zip(images, rows, strict=True))


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
    def ids(self) -> Objects:
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
        grid, pictures = section.grid, None
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
                source, images, what=f"models.{name}.{what}", max_unmatched=data.max_unmatched
            )
            for what, source in (("maps", maps), ("frames", frames))
            if source is not None
        ]
        for vectors in read:
            inputs |= vectors.inputs
        counts["models"][name] = read[0].counts
        every[name] = _mapped(read, grid, boxes)
        if pictures is not None and config.gallery and isinstance(models, LiveModels):
            laid = dict(_overlays(every[name], pictures, images, config))
            every[name] = replace(every[name], pictures=laid)
    return ActivationData(images, every, inputs, counts)


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
            fix="give their rows and columns as 'grid'",
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
    models.capability(name, precise, *_OFFERS)
    targets, n = _targets(section, pictures, images, config), len(pictures)
    if isinstance(models, LiveModels):
        from equipoise.explain.scoring import scoring

        model = models.opened(precise)
        try:
            scoring(model, targets, question=section.question)
        except InputError as error:
            raise ConfigError(f"models.{name}: {error}") from None
        table, folder = _MapRun(model, section, pictures, targets).maps(models)
        whole = table.filter(pa.compute.equal(table["stage"], ""))
        grids = {tuple(grid) for grid in whole["grid"].to_pylist()}
        if len(grids) != 1:
            raise DataError(
                f"models.{name}: maps of {len(grids)} sizes; the model takes images of any size",
                fix="cut or resize the images to one size",
            )
        maps, frames = (np.stack(whole[column].to_numpy()) for column in ("map", "frame"))
        digest = hashlib.sha256()
        for column in ("id", "map", "frame"):
            digest.update(repr(whole[column].to_pylist()).encode())
        file = {"sha256": digest.hexdigest(), "bytes": whole.nbytes, "rows": len(whole)}
        more: dict[str, Any] = {
            "failed": {row["id"]: row["stage"] for row in table.to_pylist() if row["stage"]},
            "info": asdict(model.info), "inputs": {f"evidence/activations/{folder.name}": file},
        }  # fmt: skip
        ids, (grid,) = whole["id"].to_pylist(), grids
    else:
        ids, grid = pictures.ids.tolist(), (1, 1)
        maps, frames = np.ones((n, 1), np.float32), np.tile([0.0, 0.0, 1e9, 1e9], (n, 1))
        numbers = _SIDE * _SIDE
        more = {"pending": {
            "runs": section.called, "items": n, "in_store": None, "to_do": None,
            "numbers": numbers, "bytes": 4 * numbers * n,
        }}  # fmt: skip
    outputs = Outputs(
        model=name, content="embeddings", source=f"models.{name}.model",
        ids=pl.Series("", ids, dtype=pl.String), requested=pictures.ids, values=maps, **more,
    )  # fmt: skip
    return models.keep(outputs), replace(outputs, values=frames), grid


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
            "the cell of the target is empty",
            file=images.name,
            column=column,
            row=targets.index(None) + 1,
            expected="a label, a text or an answer",
        )
    by_id = dict(zip(images.ids.tolist(), targets, strict=True))
    return tuple(by_id[each] for each in pictures.ids.tolist())


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
