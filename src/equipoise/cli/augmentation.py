"""The experiment of `equipoise augment`: its config, the images it names, and its run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from equipoise.audits.config_fields import FilePath, Name, Section, Share, Table, located, only_one
from equipoise.audits.findings import manifest_of
from equipoise.audits.kinds import PERCEIVED, Progress
from equipoise.core.arrays import Bytes, Integers, Positions
from equipoise.core.errors import DataError, InputError
from equipoise.core.result import AuditResult
from equipoise.data import Items, ItemSource, load_items
from equipoise.evidence import ImageError, Pictures, decode, pictures_of_table
from equipoise.mitigate.augmentation.experiment import augmentation_experiment
from equipoise.mitigate.augmentation.faces import (
    SIDES,
    CascadeDetector,
    Faces,
    Image,
    Regions,
    regions_of_columns,
)
from equipoise.mitigate.augmentation.findings import findings_of, tables_of
from equipoise.mitigate.augmentation.training import Schedule, check_networks, digest_of
from equipoise.mitigate.recipe import Names
from equipoise.planted.faces import draw_faces
from equipoise.stats.resampling import Bootstrap


class SetConfig(Section):
    """A table of images.

    Attributes
    ----------
    table : path or data frame
    root : path
        The folder that the paths of the images start from.
    """

    table: Table
    root: FilePath = Path()


class ImagesConfig(Section):
    """The three sets: what is trained on, and what is tested on."""

    biased: SetConfig
    balanced: SetConfig
    test: SetConfig


class FacesConfig(Section):
    """Where faces are: in columns of the tables, or found by a detector.

    Attributes
    ----------
    columns : mapping of left, top, right, bottom to columns, optional
    detector : "cascade", optional
    """

    columns: Mapping[str, Name] | None = None
    detector: Literal["cascade"] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> FacesConfig:
        only_one(self, "columns", "detector")
        if self.columns is not None and {*self.columns} != {*SIDES}:
            raise ValueError(f"columns must name {', '.join(SIDES)}")
        return self


class TrainingConfig(Section):
    """Networks, how they are trained, and how they are compared.

    Attributes
    ----------
    networks : list of str
        cnn, vit, timm:NAME.
    repeats : int
        Training runs of each arm.
    schedule : Schedule
    schedules : mapping of str to Schedule
        Of single networks.
    seed : int
    replicates : int
        Of the bootstrap.
    threshold, alpha : float
        Least difference in accuracy that matters, and the level of the tests.
    """

    networks: Names = ("cnn", "vit")
    repeats: PositiveInt = 3
    schedule: Schedule = Schedule()
    schedules: Mapping[str, Schedule] = Field(default_factory=dict)
    seed: NonNegativeInt = 0
    replicates: Annotated[int, Field(ge=100)] = 1000
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.01
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05

    @model_validator(mode="after")
    def _of_networks(self) -> TrainingConfig:
        for name in self.schedules:
            if name not in self.networks:
                raise ValueError(f"schedules.{name} is no network of {', '.join(self.networks)}")
        return self


class AugmentConfig(TrainingConfig):
    """An experiment with mixed and noisy faces.

    Attributes
    ----------
    images : ImagesConfig
    id, path, label, group : str
        Columns of the tables.
    faces : FacesConfig
    size : int
        Side to which the images are scaled, in pixels.
    max_failures : float
        Share of a set's images that may be missing or damaged; more stop the run.
    store : path
        Where the state of each training is kept.
    """

    images: ImagesConfig
    id: Name = "image_id"
    path: Name = "path"
    label: Name
    group: Name
    faces: FacesConfig
    size: Annotated[int, Field(ge=16, le=512)] = 64
    max_failures: Share = 0.05
    store: FilePath = Path("evidence")


_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Read:
    """One set of images, and counts of every row of its table.

    Attributes
    ----------
    faces : Faces
        In the order of the ids.
    inputs : mapping
    counts : mapping
        Rows, and those left out by reason; failures by group.
    notes : tuple of str
    """

    faces: Faces
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    notes: tuple[str, ...]


def read_set(
    name: str, given: SetConfig, config: AugmentConfig, base: Path, progress: Progress | None = None
) -> Read:
    """Read one of the three sets.

    Raises
    ------
    DataError
        When its table cannot be used, more images fail than `max_failures` allows, or a box is
        not valid.
    MissingExtraError
        When OpenCV is not installed.
    """
    detector = None if config.faces.detector is None else CascadeDetector()
    if detector is not None:
        detector([])  # an unusable detector is an error before images are read
    boxes = config.faces.columns or {}
    columns = (config.path, config.label, config.group)
    source = ItemSource(located(given.table, base), config.id, (*columns, *boxes.values()))
    items = load_items(source, what=f"{name} images")
    cells = np.stack([items.columns[column] for column in columns])
    kept = np.flatnonzero((cells != None).all(axis=0))  # noqa: E711 - cell by cell
    if not len(kept):
        raise DataError("no row has a label, a group and a path", file=items.name)
    rows = kept[np.argsort(items.ids[kept].astype(str), kind="stable")]
    pictures = pictures_of_table(
        items.ids[rows].tolist(),
        cells[0, rows].tolist(),
        root=base / given.root,
        name=items.name,
        column=config.path,
    )
    labels, groups = cells[1:, rows].astype(str).astype(object)
    sources = [f"row {row + 1}, {pictures.where(place)}" for place, row in enumerate(rows.tolist())]
    images, shapes, found, failed = _decode(pictures, config.size, detector, name, progress)
    _refuse_too_many(items, sources, failed, config)
    used = np.array([place for place in range(len(rows)) if place not in failed], np.intp)
    regions = _boxes(items, boxes, rows[used], shapes) if boxes else found
    # Boxes are scaled as their images are; a face of less than two pixels is none then.
    ends = regions.boxes * (config.size / np.tile(np.array(shapes)[:, ::-1], (1, 2)))
    regions = Regions.of(ends, [(config.size, config.size)] * len(used))
    kept_sources = [sources[place] for place in used]
    faces = Faces(images, labels[used], groups[used], regions, kept_sources)
    by_group = dict(sorted(Counter(str(groups[place]) for place in failed).items()))
    without = len(items.ids) - len(rows)
    counts = {
        **items.counts, "without a label, group or path": without,
        "cannot be used, by group": by_group,
    }  # fmt: skip
    notes = []
    if without:
        notes.append(f"{name}: {without} rows have no label, group or path, and are not used.")
    if failed:
        first, lost = next(iter(failed.items()))
        numbers = ", ".join(f"{group} {n}" for group, n in by_group.items())
        notes.append(
            f"{name}: {len(failed)} of {len(rows)} images cannot be used ({numbers}), such as "
            f"{sources[first]}: {lost}."
        )
    return Read(faces, items.inputs, counts, (*notes, *_faces_missing(name, faces)))


def _decode(
    pictures: Pictures,
    size: int,
    detector: CascadeDetector | None,
    name: str,
    progress: Progress | None,
) -> tuple[Bytes, list[tuple[int, int]], Regions, dict[int, str]]:
    """Return scaled images, their shapes before, their faces, and why each other can't be used."""
    from PIL import Image as Pillow

    scaled: list[Image] = []
    shapes: list[tuple[int, int]] = []
    boxes: list[Integers] = []
    failed: dict[int, str] = {}
    for start in range(0, len(pictures), _AT_ONCE):
        if progress is not None:
            progress(f"reading {name} images", start, len(pictures))
        images = []
        for place in range(start, min(start + _AT_ONCE, len(pictures))):
            try:
                images.append(decode(pictures.read(place)))
            except OSError as error:
                failed[place] = error.strerror or str(error)
            except ImageError as error:
                failed[place] = error.reason
        for image in images:
            picture = Pillow.fromarray(image).resize((size, size), Pillow.Resampling.BILINEAR)
            scaled.append(np.asarray(picture))
            shapes.append((image.shape[0], image.shape[1]))
        empty = np.zeros((len(images), 4), np.int64)
        boxes.append(empty if detector is None else detector(images).boxes)
    found = np.concatenate(boxes)
    return np.array(scaled), shapes, Regions(found, np.asarray(found.any(axis=1))), failed


def _refuse_too_many(
    items: Items, sources: Sequence[str], failed: Mapping[int, str], config: AugmentConfig
) -> None:
    n = len(sources)
    allowed = math.floor(config.max_failures * n + 1e-9)
    if len(failed) > allowed or len(failed) == n:
        first, why = next(iter(failed.items()))
        raise DataError(
            f"{len(failed)} of {n} images cannot be used, and max_failures allows {allowed}; the "
            f"first is {sources[first]}: {why}",
            file=items.name,
            fix="check that paths start from 'root', repair them, or raise max_failures",
        )


def _faces_missing(name: str, faces: Faces) -> Iterator[str]:
    if not faces.regions.found.all():
        missing = faces.regions.missing(faces.groups).items()
        groups = ", ".join(f"{group} {count} of {n}" for group, (count, n) in missing)
        yield f"{name}: images without a face stay as they are ({groups})."


def _boxes(
    items: Items,
    columns: Mapping[str, str],
    rows: Positions,
    sizes: Sequence[tuple[int, int]],
) -> Regions:
    try:
        ends = {side: items.columns[columns[side]][rows].astype(np.float64) for side in SIDES}
        return regions_of_columns(ends, sizes, rows=(rows + 1).tolist())
    except (InputError, ValueError) as error:
        raise DataError(
            str(error), file=items.name, expected="ends of the box of a face in pixels"
        ) from None


_SAME_NUMBER = 0.05
"""Share of the biased images by which the balanced ones may be more or fewer without a note."""
_BIASED, _EVEN = (0.01, 0.01, 0.99, 0.99), (0.5, 0.5, 0.5, 0.5)
_DRAWN = (
    "The faces are drawn. In the biased images 99 of 100 who hold a ring or a cross have short "
    "hair, and 99 of 100 with a bar or a square long hair; in the balanced and the test images "
    "half of each."
)


def run_configured(config: AugmentConfig, base: Path, progress: Progress | None) -> AuditResult:
    """Run the experiment that a configuration describes.

    Parameters
    ----------
    config : AugmentConfig
    base : Path
        Folder of relative paths.
    progress : callable, optional
    """
    began = perf_counter()
    check_networks(config.networks, config.size)
    sets = {name: read_set(name, given, config, base, progress) for name, given in config.images}
    faces = {name: read.faces for name, read in sets.items()}
    notes = (*(note for read in sets.values() for note in read.notes), *_sizes(faces))
    inputs = {key: about for read in sets.values() for key, about in read.inputs.items()}
    counts = {name: read.counts for name, read in sets.items()}
    folder = base / config.store / "augmentation"
    record = {"inputs": inputs, "counts": counts}
    return _experiment(faces, config, folder, notes, record, began, progress)


def _sizes(faces: Mapping[str, Faces]) -> Iterator[str]:
    """Note when one training set has clearly more images: more alone make a network better."""
    biased, balanced = len(faces["biased"]), len(faces["balanced"])
    if abs(balanced - biased) > _SAME_NUMBER * biased:
        yield (
            f"balanced: {balanced} images, and {biased} biased ones: a difference between them may "
            "come from their number alone."
        )


def run_drawn(
    folder: Path,
    *,
    images: int,
    repeats: int,
    networks: tuple[str, ...],
    seed: int,
    progress: Progress | None,
) -> AuditResult:
    """Run the experiment on drawn faces, in whose biased images the tool goes with the group."""
    began = perf_counter()
    faces = {}
    shares = {"biased": _BIASED, "balanced": _EVEN, "test": _EVEN}
    for place, (name, own) in enumerate(shares.items()):
        made = draw_faces(images, long_hair=own, seed=seed + place)
        regions = Regions(made.boxes, np.ones(images, dtype=bool))
        faces[name] = Faces(made.images, made.labels, made.groups, regions)
    config = TrainingConfig(
        networks=networks,
        repeats=repeats,
        schedule=Schedule(epochs=8, learning_rate=2e-3),
        schedules={"vit": Schedule(epochs=16)} if "vit" in networks else {},
        seed=seed,
    )
    record = {"inputs": {}, "counts": dict.fromkeys(faces, images)}
    return _experiment(faces, config, folder, (_DRAWN,), record, began, progress)


def _experiment(
    faces: Mapping[str, Faces],
    config: TrainingConfig,
    folder: Path,
    notes: tuple[str, ...],
    record: Mapping[str, Any],
    began: float,
    progress: Progress | None,
) -> AuditResult:
    done = augmentation_experiment(
        faces["biased"],
        faces["balanced"],
        faces["test"],
        folder / digest_of(faces["biased"], faces["balanced"], config.seed),
        networks=config.networks,
        repeats=config.repeats,
        schedules=dict.fromkeys(config.networks, config.schedule) | dict(config.schedules),
        resampling=Bootstrap(replicates=config.replicates),
        seed=config.seed,
        progress=progress,
    )
    resolved = config.model_dump(mode="json")
    again = "What is compared is training again, on images like these."
    manifest = manifest_of(
        **record,
        notes=(PERCEIVED, again, *notes),
        config=resolved,
        resolved=resolved,
        seed=config.seed,
        seconds=perf_counter() - began,
    )
    findings = findings_of(done, threshold=config.threshold, alpha=config.alpha)
    return AuditResult(
        findings, manifest, tables_of(done, seed=config.seed, replicates=config.replicates)
    )
