"""The audit of activations: how much of a model's maps lies inside regions, by group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise.audits.activations.data import ActivationData, Mapped
from equipoise.audits.activations.designs import Design, Question, questions
from equipoise.audits.against_rest import leaf
from equipoise.audits.columns import numbers_of
from equipoise.audits.findings import Place, parts, whole, without_verdict
from equipoise.audits.group_sizes import Row, check_two, groups_by, lacking, sizes_of
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.notes import Note
from equipoise.core import (
    ConfigError,
    DataError,
    Estimate,
    Facts,
    Family,
    Fields,
    Floats,
    Groups,
    InputError,
    table_of,
)
from equipoise.core.columns import BYTES, INTEGER, NUMBER, TEXT
from equipoise.data import ArraySource, Vectors, load_vectors
from equipoise.data.labels import Items, Outputs
from equipoise.evidence.extraction import Extraction, ExtractionSettings, extract_request
from equipoise.evidence.store import key_of
from equipoise.evidence.working import Extractor, Request
from equipoise.metrics.numbers.activation import activation_share, activation_share_gap, region_area
from equipoise.metrics.spec import spec_for
from equipoise.models.images import Images

if TYPE_CHECKING:
    import pyarrow as pa

    from equipoise.audits.activations.config import Config, ModelConfig, RegionConfig
    from equipoise.audits.outputs import Models
    from equipoise.evidence.pictures import Pictures
    from equipoise.stats.resampling import Resampling

# Images in a part, unless the config sets their number.
_PART = 64
# Largest number of rows and columns of a map.
_SIDE = 32

_NO_VERDICT = "where a model looks is no disparity in itself; the gap between groups is tested"
_BESIDE = "the gap in the share itself is tested instead"


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
        pictured, images = models.read_items(data.images, data.columns)
        boxes = {name: boxes_of(images, region) for name, region in data.regions.items()}
        inputs, mapped = dict(images.inputs), dict[str, Mapped]()
        mapped_by_prompt: dict[str, dict[str, Mapped]] = {}
        counts: Fields = {"images": images.counts, "models": {}}

        def read(name: str, section: ModelConfig) -> Mapped:
            pictures = None if section.maps is not None else pictured.need_pictures(name)
            maps, vectors = _read_maps(name, section, pictures, images, boxes, config, models)
            for loaded in vectors:
                inputs.update(loaded.inputs)
            counts["models"][name] = vectors[0].counts
            if pictures is not None and config.gallery and not models.dry:
                laid = dict(_overlays(maps, pictures, images, config))
                maps = replace(maps, pictures=laid)
            asks = config.questions
            return maps if asks is None else maps.of_people(asks.persons, len(images))

        for name, section in config.models.items():
            if config.questions is None:
                mapped[name] = read(name, section)
                continue
            # A model that has its answer is asked each prompt as a question.
            key = "target" if section.target is None else "question"
            mapped_by_prompt[name] = {}
            for prompt in config.questions.all_prompts:
                question = section.model_copy(update={key: prompt})
                mapped_by_prompt[name][prompt] = read(name, question)
            mapped[name] = next(iter(mapped_by_prompt[name].values()))
        return ActivationData(images, inputs, counts, mapped, mapped_by_prompt)

    def groups(self, config: Config, data: ActivationData) -> list[Groups]:
        """Return the groups of all images."""
        section, coded = config.data, data.images.coded
        units = None if section.unit is None else coded[section.unit]
        return groups_by(section.groups, coded, min_size=section.min_group_size, units=units)

    def designs(self, config: Config, data: ActivationData) -> list[Design]:
        """Return every model with every region and choice of groups that can be compared."""
        designs = [*self._designs(config, data)]
        compared = [design for design in designs if design.compared]
        for design in () if compared else designs:
            which = (
                f"{design.model}, {design.region}: fewer than two groups of {design.groups.name}"
            )
            items = "images with a region and a map"
            check_two(design.groups, which, items, file=data.images.name)
        return compared

    def _designs(self, config: Config, data: ActivationData) -> Iterator[Design]:
        options = config.resampling
        draws = (options.permutations or options.replicates) + options.replicates
        if config.questions is not None:
            yield from questions(config.questions, data, self.groups(config, data), draws)
            return
        combinations = product(data.models.items(), config.data.regions, self.groups(config, data))
        for (model, mapped), region, groups in combinations:
            codes = {name: data.images.coded[name].codes[mapped.used] for name in groups.attributes}
            groups_with_maps = groups.take(mapped.used)
            yield Design(model, region, groups_with_maps, mapped, lacking(codes), draws)

    def measure(
        self, config: Config, data: ActivationData, design: Design, resampling: Resampling | None
    ) -> Measured:
        """Measure the share inside the region, and its gap between groups."""
        if isinstance(design, Question):
            return design.measured(
                config, _units_of_images(design, config, data), data.ids, resampling
            )
        place = Place(
            self.name, design.model, design.groups.name, "default", config.resampling.level
        )
        maps, boxes = design.mapped.maps, design.mapped.boxes[design.region]
        units = _units_of_images(design, config, data)
        options: Fields = {
            "groups": design.all_groups, "units": units,
            "resampling": resampling, "rng": config.resampling.seed,
        }  # fmt: skip
        share = activation_share(maps, boxes, **options)
        area = region_area(maps, boxes, design.all_groups, units=units)
        gap = activation_share_gap(maps, boxes, beyond_area=False, **options)
        beyond = activation_share_gap(maps, boxes, beyond_area=True, **options)
        by_group = tuple(group for part in share.parts for group in part.by_group)
        share_finding = whole(
            share, place, Family.DESCRIPTIVE, by_group=by_group, about=design.region
        )
        gap_finding, *leaves = parts(gap, place)
        tested = [
            replace(gap_finding, harm=gap.harm),
            *(leaf(draft, spec_for(gap.metric, gap.aggregate)) for draft in leaves),
        ]
        for at, tested_draft in enumerate(tested):
            if np.isnan(tested_draft.finding.p_value):
                tested[at] = without_verdict(tested_draft, "there is nothing to exchange")
        beyond_finding = parts(beyond, replace(place, version="beyond the area"))[0]
        findings = (
            without_verdict(share_finding, _NO_VERDICT),
            *tested,
            without_verdict(beyond_finding, _BESIDE),
        )
        tables = {"activation_shares": _tabulate_shares(design, share, area)}
        # All regions are on one picture.
        if design.region == next(iter(config.data.regions)):
            pictures = [*_pictures(design, config, data)]
            if pictures:
                tables["gallery"] = table_of(
                    pictures, {"section": TEXT, "group": TEXT, "caption": TEXT, "image": BYTES}
                )
        return Measured(
            tuple(finding.changed(subject=design.region) for finding in findings),
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
                    "model": name, "with_map": len(mapped.used), "without": mapped.without,
                    "rows": mapped.maps.shape[1], "columns": mapped.maps.shape[2],
                }
                for name, mapped in data.models.items()
            ],
        }  # fmt: skip

    def notes(
        self, config: Config, data: ActivationData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on maps, on blurred pictures and on images without a map."""
        yield (
            "A map shows the places that the layer's activations and gradients point to. It "
            "doesn't prove that the model needs them: hide the region and run the model again."
        )
        if config.blur and any(mapped.pictures for mapped in data.models.values()):
            regions = "all of each" if config.blur == "all" else ", ".join(config.blur)
            yield f"Blurred on this page only; models saw it clearly: {regions}."
        for design in self._designs(config, data):
            if not design.compared:
                yield Note(
                    f"{design.model}, {design.region}, {design.groups.name}",
                    "not measured, because "
                    "fewer than two groups have enough images with a region and an activation.",
                )
        for name, mapped in data.models.items():
            if mapped.without and config.models[name].model is None:
                yield Note(name, f"{mapped.without} images have no map.")

    def sizes(self, config: Config, data: ActivationData) -> Iterator[Row]:
        """Return the groups of the images with a share, by the first model and region."""
        first: dict[str, Design] = {}
        for design in self._designs(config, data):
            first.setdefault(design.all_groups.name, design)
        for design in first.values():
            yield from sizes_of(design.groups)


def _units_of_images(design: Design, config: Config, data: ActivationData) -> list[str] | None:
    """Return the unit of each image with a map; an image without a unit is its own."""
    if config.data.unit is None:
        return None
    # Of a question all images: those without a share are counted.
    rows = slice(None) if isinstance(design, Question) else design.mapped.used
    units = data.images.columns[config.data.unit][rows].tolist()
    ids = data.ids[rows].tolist()
    return [
        f"image {image_id}" if unit is None else str(unit)
        for unit, image_id in zip(units, ids, strict=True)
    ]


def _tabulate_shares(design: Design, share: Estimate, area: Estimate) -> pa.Table:
    """Return the share inside the region, and the region's area, by group."""
    rows = [
        {"model": design.model, "groups": design.groups.name, "region": design.region,
         "group": part.subject, "n": part.n, "share": part.value, "low": part.low,
         "high": part.high, "area": of_group.value, "chance": part.chance,
         "chance_low": part.chance_low, "chance_high": part.chance_high}
        for part, of_group in zip(share.parts, area.parts, strict=True)
    ]  # fmt: skip
    columns = {
        "model": TEXT,
        "groups": TEXT,
        "region": TEXT,
        "group": TEXT,
        "n": INTEGER,
        "share": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "area": NUMBER,
        "chance": NUMBER,
        "chance_low": NUMBER,
        "chance_high": NUMBER,
    }
    return table_of(rows, columns)


def _pictures(design: Design, config: Config, data: ActivationData) -> Iterator[Row]:
    """Yield overlays of the first images of every group that have them."""
    used, overlays = design.mapped.used, design.mapped.pictures
    ids, target = data.ids[used], config.models[design.model].target
    column = None if config.data.target is None else data.images.columns[config.data.target][used]
    for code, group in enumerate(design.all_groups.names):
        of_group = np.flatnonzero(design.all_groups.codes == code).tolist()
        for row in [row for row in of_group if row in overlays][: config.gallery]:
            label = target if target is not None or column is None else column[row]
            yield {
                "section": f"{design.model}, {design.all_groups.name}",
                "group": group,
                "caption": f"{ids[row]}: {label}" if label else str(ids[row]),
                "image": overlays[row],
            }


def _read_maps(
    name: str,
    section: ModelConfig,
    pictures: Pictures | None,
    images: Items,
    boxes: Mapping[str, Floats],
    config: Config,
    models: Models,
) -> tuple[Mapped, Sequence[Vectors]]:
    """Read or make the maps of a model, and match them with the regions."""
    grid: tuple[int, int] | None = None
    frames: ArraySource | Outputs | None = None
    maps: ArraySource | Outputs
    if pictures is not None:
        maps, frames, grid = _make_maps(name, section, pictures, images, boxes, config, models)
    else:
        assert section.maps is not None  # noqa: S101 - one or the other
        maps = section.maps.source(models.base)
        frames = None if section.frames is None else section.frames.source(models.base)
    read = [
        load_vectors(
            source,
            images,
            subject=f"models.{name}.{name_of_part}",
            max_unmatched=config.data.max_unmatched,
            zeros=True,
        )
        for name_of_part, source in (("maps", maps), ("frames", frames))
        if source is not None
    ]
    return _map_regions(read, grid, boxes), read


def _extract_maps(
    model: Any,
    section: ModelConfig,
    pictures: Pictures,
    targets: Mapping[str, str],
    people: Mapping[str, Floats],
    config: Config,
    models: Models,
) -> Extraction:
    """Return the maps of pictures: read stored maps, and make the others.

    Raises
    ------
    ModelError
        When maps cannot be made of the model, or of no image.
    DataError
        When more images fail than may.
    """
    from equipoise.explain.questions import maps_and_falls

    asks = config.questions
    mirror = asks is not None and asks.mirror

    def call(ids: Sequence[str], images: Images) -> list[Fields]:
        maps, falls = maps_and_falls(
            model,
            images,
            [targets[image_id] for image_id in ids],
            np.stack([people[image_id] for image_id in ids]) if people else None,
            mirror=mirror,
            question=section.question,
            method=section.method,
            layer=section.layer,
        )
        if not np.isfinite(maps.maps).all():
            raise InputError("the model gave a map that is not finite")
        # What hiding people did stands beside the four edges.
        frames = maps.frames if falls is None else np.hstack([maps.frames, falls])
        return [
            {"cells": map_.ravel(), "frame": frame, "grid": [*map_.shape]}
            for map_, frame in zip(maps.maps, frames.tolist(), strict=True)
        ]

    facts: dict[str, Any] = {"method": section.method, "layer": section.layer}
    if asks is not None:
        facts |= {"mirror": mirror, "people": key_of([boxes.tolist() for boxes in people.values()])}
    facts["targets"] = key_of([*targets.values()])
    options = models.config.extraction
    settings = ExtractionSettings(
        part=options.part or _PART, max_failures=options.max_failures, progress=models.progress
    )
    extractor = Extractor(model.info, (), call, None, "activations")
    request = Request("activations", question=section.question, facts=facts)
    return extract_request(request, pictures, extractor, models.store, settings)


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


def _map_regions(
    read: Sequence[Vectors], grid: tuple[int, int] | None, boxes: Mapping[str, Floats]
) -> Mapped:
    from equipoise.explain.maps import framed

    cells, edges = read[0], None
    used = np.flatnonzero((cells.rows >= 0) & ~cells.not_finite)
    framed_boxes = {region: box[used] for region, box in boxes.items()}
    falls: Floats | None = None
    for frames in read[1:]:
        if (
            frames.dimension not in ((4,) if grid is None else (4, 6))
            or (frames.rows[used] < 0).any()
        ):
            raise DataError(
                f"frames of {frames.dimension} numbers, or images with a map and no frame",
                file=frames.name,
                expected="left, top, right and bottom for each image with a map",
            )
        edges = np.asarray(frames.take(used), dtype=np.float64)
        edges, falls = edges[:, :4], edges[:, 4:] if edges.shape[1] > 4 else None
        framed_boxes = {region: framed(box, edges) for region, box in framed_boxes.items()}
    side = math.isqrt(cells.dimension)
    rows, columns = grid or (side, side)
    if rows * columns != cells.dimension:
        raise DataError(
            f"maps of {cells.dimension} cells, which are no {rows} × {columns}",
            file=cells.name,
            fix="resize them to squares",
        )
    maps = np.asarray(cells.take(used)).reshape(len(used), rows, columns)
    return Mapped(used, maps, framed_boxes, edges, len(cells.rows) - len(used), falls=falls)


class _Maps(NamedTuple):
    """A model's maps as rows of cells, the frame of each, and the rows and columns of a map."""

    maps: Outputs
    frames: Outputs
    grid: tuple[int, int]


def _make_maps(
    name: str,
    section: ModelConfig,
    pictures: Pictures,
    images: Items,
    boxes: Mapping[str, Floats],
    config: Config,
    models: Models,
) -> _Maps:
    """Make a model's maps, with their frames and grid; a dry run returns stand-ins of one cell."""
    # Maps of half precision are too coarse.
    precise = section.model_copy(update={"dtype": section.dtype or "float32"})
    models.capability(name, precise, "classifier", "encoder", "scorer", "answerer")
    targets, n = _targets_by_id(section, pictures, images, config), len(pictures)
    if not models.dry:
        from equipoise.explain.scoring import scoring

        model = models.opened(precise)
        try:
            scoring(model, [*targets.values()], question=section.question)
        except InputError as error:
            raise ConfigError(f"models.{name}: {error}") from None
        people: Mapping[str, Floats] = {}
        if config.questions is not None and config.questions.occlusion:
            person_boxes = np.stack([boxes[person] for person in config.questions.persons], axis=1)
            people = dict(zip(images.ids.tolist(), person_boxes, strict=True))
        run = _extract_maps(model, section, pictures, targets, people, config, models)
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
        more: Fields = {
            "failed": run.failed, "info": run.info, "inputs": run.inputs,
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
    # Of a question what it asks, so that a plan and failures name it.
    prompts = () if config.questions is None else config.questions.all_prompts
    on = next(
        (prompt for prompt in (section.question, section.target) if prompt in prompts), "images"
    )
    outputs = models.keep(
        name, "embeddings", str(on), ids, requested=pictures.ids, values=maps, **more
    )
    return _Maps(outputs, replace(outputs, values=frames), grid)


def _targets_by_id(
    section: ModelConfig, pictures: Pictures, images: Items, config: Config
) -> dict[str, str]:
    """Return the target of each picture by its id.

    Raises
    ------
    DataError
        When an image has none.
    """
    image_ids = pictures.ids.tolist()
    if section.target is not None:
        return dict.fromkeys(image_ids, section.target)
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
    return {image_id: by_id[image_id] for image_id in image_ids}


def _overlays(
    mapped: Mapped, pictures: Pictures, images: Items, config: Config
) -> Iterator[tuple[int, bytes]]:
    """Lay maps over the first images of every group, with the outlines of all regions.

    Regions that are to be blurred are; an image without one of them is blurred as a whole.
    """
    from equipoise.explain.overlays import WHOLE, overlay

    assert mapped.frames is not None  # noqa: S101 - maps of a live model have frames
    ids = images.ids[mapped.used].tolist()
    chosen = set[int]()
    for groups in groups_by(config.data.groups, images.coded):
        codes = groups.codes[mapped.used]
        for code in range(len(groups)):
            chosen.update(np.flatnonzero(codes == code)[: config.gallery].tolist())
    for place in sorted(chosen):
        image = pictures.decoded(pictures.places[ids[place]])
        lines = {region: box[place] for region, box in mapped.boxes.items()}
        hidden = [WHOLE] if config.blur == "all" else [lines[region] for region in config.blur]
        map_, frame = mapped.maps[place].astype(np.float32), mapped.frames[place].tolist()
        yield place, overlay(image, map_, frame, [*lines.values()], hidden)
