"""The audit of activations: how much of a model's maps lies inside regions, by group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.against_rest import leaf
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.columns import ImageData, numbers_of
from equipoise.audits.findings import Place, parts, whole, without_verdict
from equipoise.audits.group_sizes import Row, check_two, groups_by, lacking, sizes_of
from equipoise.core import (
    AnyArray,
    ConfigError,
    DataError,
    Facts,
    Family,
    Fields,
    Floats,
    Groups,
    InputError,
    Integers,
    record,
    table_of,
)
from equipoise.data import ArraySource, Vectors, load_items, load_vectors
from equipoise.data.labels import Items, Outputs
from equipoise.evidence.extraction import Extraction, Settings, extracted
from equipoise.evidence.pictures import decode
from equipoise.evidence.store import key_of
from equipoise.evidence.working import Asked, Request
from equipoise.metrics.values.activation import Regions, activation_share, activation_share_gap
from equipoise.models.images import Images

if TYPE_CHECKING:
    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures
    from equipoise.stats.resampling import Resampling

# Images in a part, unless the config sets their number.
_PART = 64
# Largest number of rows and columns of a map.
_SIDE = 32

# Seconds for an image in a permutation or replicate of a design, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_IMAGE, _SECONDS_PER_DESIGN = 4e-7, 0.15

_NO_VERDICT = "where a model looks is no disparity in itself; the gap between groups is tested"
_BESIDE = "stands beside the gap in the share itself, which is tested"


@record
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


@record
class ActivationData(ImageData):
    """What an audit of activations measures.

    Attributes
    ----------
    models : mapping of str to Mapped
    """

    models: Mapping[str, Mapped]


@record
class Design:
    """One model's maps over one region, compared between one choice of groups.

    Attributes
    ----------
    model, region : str
    every : Groups
        Of all images with a map: those without a share are counted.
    mapped : Mapped
    lacking : mapping of str to int
    draws : int
    """

    model: str
    region: str
    every: Groups
    mapped: Mapped
    lacking: Mapping[str, int]
    draws: int

    @property
    def tests(self) -> int:
        """How many tests the design makes: the gap, and each of three groups or more."""
        groups = int(self.groups.usable.sum())
        return 1 + groups * (groups > 2)

    @cached_property
    def rows(self) -> Integers:
        """Places, among the images with a map, of those that have a share."""
        return Regions.of(self.mapped.maps, self.mapped.boxes[self.region]).rows

    @cached_property
    def groups(self) -> Groups:
        """Groups of the images that have a share."""
        return self.every.take(self.rows)

    @property
    def compared(self) -> bool:
        """Whether two groups or more have enough images with a share."""
        return bool(self.groups.usable.sum() >= 2)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + self.draws * len(self.rows) * _SECONDS_PER_IMAGE


@audit_kind("activations")
class Activations(Audit["Config", ActivationData, Design]):
    """Audits of class activation maps."""

    items = "images"

    def load(self, config: Config, models: Models) -> ActivationData:
        """Read the images and regions; read or make every model's maps.

        Raises
        ------
        ConfigError
            When nothing says where the pictures are, a model is of another kind, or it has no such
            label or layer.
        DataError
            When a file can't be read or joined, a box is no four numbers, or an image has no
            target.
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

    def groups(self, config: Config, data: ActivationData) -> list[Groups]:
        """Return the groups of all images."""
        section = config.data
        return groups_by(section.groups, data.images.coded, min_size=section.min_group_size)

    def designs(self, config: Config, data: ActivationData) -> list[Design]:
        """Return every model with every region and choice of groups that can be compared."""
        designs = [*self._designs(config, data)]
        compared = [each for each in designs if each.compared]
        for each in () if compared else designs:
            which = f"{each.model}, {each.region}: fewer than two groups of {each.groups.name}"
            what = "images with a region and a map"
            check_two(each.groups, which, what, file=data.images.name)
        return compared

    def _designs(self, config: Config, data: ActivationData) -> Iterator[Design]:
        options = config.resampling
        draws = (options.permutations or options.replicates) + options.replicates
        every = product(data.models.items(), config.data.regions, self.groups(config, data))
        for (model, mapped), region, groups in every:
            codes = {name: data.images.coded[name].codes[mapped.used] for name in groups.attributes}
            own = groups.take(mapped.used)
            yield Design(model, region, own, mapped, lacking(codes), draws)

    def measure(
        self, config: Config, data: ActivationData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure the share inside the region, and its gap between groups."""
        place = Place(
            self.name, design.model, design.groups.name, "default", config.resampling.level
        )
        maps, boxes = design.mapped.maps, design.mapped.boxes[design.region]
        how: Fields = {
            "groups": design.every, "units": _units(design, config, data),
            "resampling": resampling, "rng": config.resampling.seed,
        }  # fmt: skip
        share = activation_share(maps, boxes, **how)
        gap, beyond = (
            activation_share_gap(maps, boxes, beyond_area=area, **how) for area in (False, True)
        )
        shares = [part for part in share.parts if part.metric == "activation_share"]
        by_group = tuple(group for part in shares for group in part.by_group)
        shown = whole(share, place, Family.DESCRIPTIVE, by_group=by_group, about=design.region)
        found, *leaves = parts(gap, place)
        tested = [replace(found, harm=gap.harm), *(leaf(one, gap.metric) for one in leaves)]
        for at, one in enumerate(tested):
            if np.isnan(one.finding.p_value):
                tested[at] = without_verdict(one, "there is nothing to exchange")
        beside = parts(beyond, replace(place, version="beyond the area"))[0]
        findings = (without_verdict(shown, _NO_VERDICT), *tested, without_verdict(beside, _BESIDE))
        areas = {part.subject: part.value for part in share.parts if part.metric == "region_area"}
        rows = [
            {"model": design.model, "groups": design.groups.name, "region": design.region,
             "group": part.subject, "n": part.n, "share": part.value, "low": part.low,
             "high": part.high, "area": areas[part.subject], "chance": part.chance,
             "chance_low": part.chance_low, "chance_high": part.chance_high}
            for part in shares
        ]  # fmt: skip
        columns = (
            "model groups region group +n #share #low #high #area #chance #chance_low #chance_high"
        )
        tables = {"activation_shares": table_of(rows, columns)}
        # All regions are on one picture.
        if design.region == next(iter(config.data.regions)):
            pictures = [*_pictures(design, config, data)]
            if pictures:
                tables["gallery"] = table_of(pictures, "section group caption *image")
        return Measured(
            tuple(each.changed(subject=design.region) for each in findings),
            tables,
            tuple(
                f"{design.model}, {design.region}: {n} images have no share ({reason})."
                for reason, n in share.excluded.items()
            ),
        )

    def details(
        self,
        config: Config,
        data: ActivationData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return images, and maps of each model (of one cell before it runs)."""
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "with_map": len(each.used), "without": each.without,
                    "rows": each.maps.shape[1], "columns": each.maps.shape[2],
                }
                for name, each in data.models.items()
            ],
        }  # fmt: skip

    def notes(
        self, config: Config, data: ActivationData, designs: Sequence[Design]
    ) -> Iterable[str]:
        """Return the notes on maps, on blurred pictures and on images without a map."""
        yield (
            "A map shows the places that the layer's activations and gradients point to. It "
            "doesn't prove what the model would do without them: hide the region and run it again."
        )
        if config.blur and any(each.pictures for each in data.models.values()):
            what = "all of each" if config.blur == "all" else ", ".join(config.blur)
            yield f"Blurred in the pictures, and not in what models saw: {what}."
        for design in self._designs(config, data):
            if not design.compared:
                yield (
                    f"{design.model}, {design.region}, {design.groups.name}: not measured, because "
                    "fewer than two groups have enough images with a region and an activation."
                )
        for name, each in data.models.items():
            if each.without and config.models[name].model is None:
                yield f"{name}: {each.without} images have no map."

    def sizes(self, config: Config, data: ActivationData) -> Iterator[Row]:
        """Return the groups of the images with a share, by the first model and region."""
        first: dict[str, Design] = {}
        for each in self._designs(config, data):
            first.setdefault(each.every.name, each)
        for each in first.values():
            yield from sizes_of(each.groups)


def _units(design: Design, config: Config, data: ActivationData) -> list[str] | None:
    """Return the unit of each image with a map; an image without a unit is its own."""
    if config.data.unit is None:
        return None
    units = data.images.columns[config.data.unit][design.mapped.used].tolist()
    ids = data.ids[design.mapped.used].tolist()
    return [
        f"image {own}" if unit is None else str(unit) for unit, own in zip(units, ids, strict=True)
    ]


def _pictures(design: Design, config: Config, data: ActivationData) -> Iterator[Row]:
    """Yield overlays of the first images of every group that have them."""
    used, overlays = design.mapped.used, design.mapped.pictures
    ids, target = data.ids[used], config.models[design.model].target
    column = None if config.data.target is None else data.images.columns[config.data.target][used]
    for code, group in enumerate(design.every.names):
        of_group = np.flatnonzero(design.every.codes == code).tolist()
        for row in [row for row in of_group if row in overlays][: config.gallery]:
            label = target if target is not None or column is None else column[row]
            yield {
                "section": f"{design.model}, {design.every.name}",
                "group": group,
                "caption": f"{ids[row]}: {label}" if label else str(ids[row]),
                "image": overlays[row],
            }


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

    def call(ids: Sequence[str], images: Images) -> list[Fields]:
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
