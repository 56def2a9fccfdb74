"""The experiment of `equipoise augment`: config, images and run."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, Self, cast

import numpy as np
import polars as pl
from pydantic import Field, PositiveInt, model_validator

from equipoise.audits.findings import manifest_of
from equipoise.cli.training import NetworksConfig, scale_image
from equipoise.config.fields import (
    FilePath,
    Level,
    Listed,
    Name,
    Section,
    among,
    distinct,
    only_one,
)
from equipoise.core import AuditResult, DataError, InputError, Progress
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import PERCEIVED
from equipoise.core.writing import write, writer
from equipoise.counterfactuals.parts import png
from equipoise.evidence import check_place, new_run
from equipoise.mitigate.augmentation.associations import (
    AttributeImages,
    association_findings,
    draw_images,
)
from equipoise.mitigate.augmentation.changes import ARMS, Arm, Changes
from equipoise.mitigate.augmentation.experiment import (
    accuracy_findings,
    augmentation_experiment,
    difference_findings,
    findings_of,
    name_of_run,
    tables_of,
)
from equipoise.mitigate.augmentation.faces import (
    SIDES,
    CascadeDetector,
    Faces,
    Image,
    Regions,
    regions_of_columns,
)
from equipoise.mitigate.config import ImagesConfig as SetConfig
from equipoise.mitigate.loading import read_images
from equipoise.mitigate.recipe import Names
from equipoise.mitigate.training import Schedule, digest_experiment
from equipoise.planted.faces import draw_faces
from equipoise.report.concluding import conclusions_of
from equipoise.stats import Bootstrap
from equipoise.studies.claims import with_claims


class ImagesConfig(Section):
    """The two training sets, the test set, and images of the groups alone.

    Attributes
    ----------
    biased, balanced, test : ImagesConfig
    attributes : ImagesConfig, optional
        Images of people of each group, for associations; the test images of other classes unless
        given.
    """

    biased: SetConfig
    balanced: SetConfig
    test: SetConfig
    attributes: SetConfig | None = None


class FacesConfig(Section):
    """Location of faces: in columns of the tables, or from a detector.

    Attributes
    ----------
    columns : mapping of left, top, right, bottom to columns, optional
    detector : "cascade", optional
    """

    columns: Mapping[str, Name] | None = None
    detector: Literal["cascade"] | None = None

    @model_validator(mode="after")
    def _check_augmentation_faces(self) -> Self:
        only_one(self, "columns", "detector")
        if self.columns is not None and {*self.columns} != {*SIDES}:
            raise ValueError(f"columns must name {', '.join(SIDES)}")
        return self


class DrawsConfig(Section):
    """Images of associations that each training run draws; no image is drawn twice.

    Attributes
    ----------
    attributes : int, optional
        Images of each group; all unless given.
    targets : int, optional
        Test images of each class and group; all unless given.
    """

    attributes: PositiveInt | None = None
    targets: PositiveInt | None = None


class TrainingConfig(Changes, NetworksConfig):
    """Networks, their training and their comparison.

    Attributes
    ----------
    families : mapping of str to list of str
        Networks of each family, whose Accuracy Differences and associations are compared.
    arms : list of str
        Training images: "biased" and others of the four.
    draws : DrawsConfig
    repeats : int
        Training runs of each arm.
    replicates : int
        Of the bootstrap.
    threshold, alpha : float
        Least difference in accuracy that matters, and the level of the tests.
    save : {"first", "all"}
        Whether the networks of the first run or of all runs become models in the output.
    """

    families: Mapping[Name, Names] = {}
    arms: Listed[Arm] = ARMS
    draws: DrawsConfig = DrawsConfig()
    repeats: PositiveInt = 3
    replicates: Annotated[int, Field(ge=100)] = 1000
    threshold: Level = 0.01
    alpha: Level = 0.05
    save: Literal["first", "all"] = "first"

    @model_validator(mode="after")
    def _check_augmentation_training(self) -> Self:
        for family, names in self.families.items():
            among(f"families.{family}", names, self.networks)
        if len({*distinct(self.arms)} - {ARMS[0]}) < 1 or ARMS[0] not in self.arms:
            raise ValueError(f"arms: expected {ARMS[0]!r} and others to compare it with")
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
    store : path
        Where the state of each training is kept.
    output : path, optional
        Folder that gets networks as models, the predictions of all runs, and the test images whole
        and with covered faces.
    """

    images: ImagesConfig
    id: Name = "image_id"
    path: Name = "path"
    label: Name
    group: Name
    faces: FacesConfig
    size: Annotated[int, Field(ge=16, le=512)] = 64
    store: FilePath = Path("evidence")
    output: FilePath | None = None

    @model_validator(mode="after")
    def _check_augmentation(self) -> Self:
        if self.output is not None:
            self.need_timm("'output'")
        if self.draws.attributes is not None and self.images.attributes is None:
            raise ValueError("draws.attributes: needs images of the groups, images.attributes")
        return self

    def with_columns(self, images: SetConfig) -> SetConfig:
        """Return the section of a set; a table has the columns of ids and paths of all tables."""
        if images.table is None:
            return images
        return images.model_copy(update={"id": self.id, "path": self.path})

    @property
    def of_attributes(self) -> Self:
        """The settings for reading images of the groups, which have no labels and need no faces."""
        without_faces = FacesConfig.model_construct(columns=None, detector=None)
        return self.model_copy(update={"label": self.group, "faces": without_faces})


_AT_ONCE = 64


def read_set(
    name: str,
    set_config: SetConfig,
    config: AugmentConfig,
    base: Path,
    inputs: dict[str, FileFacts],
    progress: Progress | None = None,
) -> Faces:
    """Read the biased, the balanced or the test set.

    Parameters
    ----------
    name : str
    set_config : SetConfig
        The set itself.
    config : AugmentConfig
        What is the same for all three.
    base : Path
        The folder that paths start from.
    inputs : dict
        Gains the table and its digest.
    progress : callable, optional

    Returns
    -------
    Faces
        Scaled images, in the order of their ids.

    Raises
    ------
    DataError
        When a table, an image or a box cannot be used.
    ModelError
        When the detector is not there.
    """
    detector = None if config.faces.detector is None else CascadeDetector()
    sides = config.faces.columns or {}
    image_config = config.with_columns(set_config)
    pictures, (labels, groups, *ends) = read_images(
        image_config, (config.label, config.group), base, f"{name} images", inputs,
        optional=[sides[side] for side in SIDES if sides],
    )  # fmt: skip
    squares: list[Image] = []
    shapes: list[tuple[int, int]] = []
    boxes = np.zeros((len(pictures), 4), np.int64)
    for start in range(0, len(pictures), _AT_ONCE):
        if progress is not None:
            progress(f"reading {name} images", start, len(pictures))
        rows = range(start, min(start + _AT_ONCE, len(pictures)))
        images = [pictures[place] for place in rows]
        if detector is not None:
            boxes[rows.start : rows.stop] = detector(images).boxes
        for image in images:
            squares.append(scale_image(image, config.size))
            shapes.append((image.shape[0], image.shape[1]))
    if sides:
        try:
            columns = {s: end.astype(np.float64) for s, end in zip(SIDES, ends, strict=True)}
            boxes = regions_of_columns(columns, shapes, rows=pictures.rows.tolist()).boxes
        except (InputError, ValueError) as error:
            raise DataError(
                str(error),
                file=pictures.pictures.name,
                expected="ends of the box of a face in pixels",
            ) from None
    smaller = boxes * (config.size / np.tile(np.array(shapes)[:, ::-1], (1, 2)))
    regions = Regions.of(smaller, [(config.size, config.size)] * len(shapes))
    sources = [
        f"row {row}, {pictures.pictures.where(place)}"
        for place, row in enumerate(pictures.rows.tolist())
    ]
    ids = pictures.pictures.ids.tolist()
    return Faces(np.array(squares), labels, groups, regions, sources, ids)


def _faces_missing(name: str, faces: Faces) -> Iterator[str]:
    if not faces.regions.has_face.all():
        missing = faces.regions.missing(faces.groups).items()
        groups = ", ".join(f"{group} {count} of {n}" for group, (count, n) in missing)
        yield f"{name}: images without a face stay as they are ({groups})."


_SAME_NUMBER = 0.05
"""Share of the biased images by which the balanced ones may be more or fewer without a note."""
_BIASED, _EVEN = (0.01, 0.01, 0.99, 0.99), (0.5, 0.5, 0.5, 0.5)
_DRAWN = (
    "The faces are drawn. In the biased images 99 of 100 who hold a ring or a cross have short "
    "hair, and 99 of 100 with a bar or a square long hair; in the balanced and the test images "
    "half of each."
)


def plan_configured(config: AugmentConfig, base: Path) -> dict[str, Json]:
    """Return the trainings of an experiment, from its tables alone.

    Parameters
    ----------
    config : AugmentConfig
    base : Path
        Folder of relative paths.

    Returns
    -------
    dict
        `trainings`, `epochs` of all of them at most, `models` to save, and `images`: by set and
        class, the number of each group.

    Raises
    ------
    DataError
        When a table can't be used.
    InputError
        When there are too few images for the draws of all runs.
    """
    sets, rows = dict[str, Faces](), list[dict[str, Json]]()
    for name, set_config in config.images:
        if set_config is None:
            continue
        label = config.group if name == "attributes" else config.label
        images, (labels, groups) = read_images(
            config.with_columns(set_config), (label, config.group), base, f"{name} images", {}
        )
        pictures, n = cast("Sequence[Image]", images), len(images)
        no_faces = Regions(np.zeros((n, 4), np.int64), np.zeros(n, np.bool_))
        sets[name] = Faces(pictures, labels, groups, no_faces)
        counts = Counter(zip(labels, groups, strict=True))
        names = sorted({*groups})
        for value in [""] if name == "attributes" else sorted({*labels}):
            of_group = {group: counts[value or group, group] for group in names}
            rows.append({"images": name, "class": value, **of_group})
    attributes = AttributeImages(sets.get("attributes"), **config.draws.model_dump())
    draw_images(attributes, sets["test"], config.repeats, config.seed)
    schedules = dict.fromkeys(config.networks, config.schedule) | dict(config.schedules)
    epochs = sum(stage.epochs for schedule in schedules.values() for stage in schedule.parts)
    runs = len(config.arms) * config.repeats
    saved = {"first": 1, "all": config.repeats}[config.save] * len(config.arms)
    return {
        "trainings": len(config.networks) * runs,
        "epochs": epochs * runs,
        "models": 0 if config.output is None else len(config.networks) * saved,
        "images": rows,
    }


def run_configured(
    config: AugmentConfig, base: Path, progress: Progress | None, *, overwrite: bool = False
) -> AuditResult:
    """Run the experiment of a configuration.

    Parameters
    ----------
    config : AugmentConfig
    base : Path
        Folder of relative paths.
    progress : callable, optional
    overwrite : bool
        Replace what an earlier run wrote to `output`.
    """
    began = perf_counter()
    networks = config.resolve_networks(base, config.size)
    if config.output is not None:
        check_place(base / config.output, overwrite=overwrite)
    inputs: dict[str, FileFacts] = {}
    faces = {
        name: read_set(name, set_config, config, base, inputs, progress)
        for name, set_config in config.images
        if name != "attributes"
    }
    people = config.images.attributes
    if people is not None:
        faces["attributes"] = read_set(
            "attributes", people, config.of_attributes, base, inputs, progress
        )
    searched = [(name, face_set) for name, face_set in faces.items() if name != "attributes"]
    missing = chain.from_iterable(starmap(_faces_missing, searched))
    notes = (*missing, *_sizes(faces))
    counts = {name: len(face_set) for name, face_set in faces.items()}
    folder = base / config.store / "augmentation"
    record = {"inputs": inputs, "counts": counts}
    config = config.model_copy(update={"networks": networks})
    if config.output is None:
        return _experiment(faces, config, folder, notes, record, began, progress)
    with new_run(base / config.output, overwrite=overwrite) as saved:
        result = _experiment(faces, config, folder, notes, record, began, progress, saved)
        _write_images(faces["test"], config, saved)
    return result


def _write_images(test: Faces, config: AugmentConfig, folder: Path) -> None:
    """Write the whole and covered test images, and the boxes next to predictions."""
    path = folder / "predictions.parquet"
    image_columns: dict[str, list[str | int | None]] = {
        name: [] for name in ("whole", "covered", *SIDES)
    }
    for place, image in enumerate(map(np.asarray, test.images)):
        for name, pixels in (("whole", image), ("covered", test.cover_face(place))):
            file = f"{name}/{place:06d}.png"
            image_columns[name].append(file)
            write(folder / file, png(pixels))
        for side, end in zip(SIDES, test.regions.box(place) or (None,) * len(SIDES), strict=True):
            image_columns[side].append(end)
    label_columns = pl.DataFrame({
        "image_id": test.ids, config.label: test.labels, config.group: test.groups, **image_columns
    })  # fmt: skip
    joined = label_columns.hstack(pl.read_parquet(path, memory_map=False))
    with writer(path) as table:
        joined.write_parquet(table)


def _sizes(faces: Mapping[str, Faces]) -> Iterator[str]:
    """Note a clear difference in size between the training sets."""
    biased, balanced = len(faces["biased"]), len(faces["balanced"])
    if abs(balanced - biased) > _SAME_NUMBER * biased:
        yield (
            f"balanced: {balanced} images, and {biased} biased ones: a difference between them may "
            "come from their number alone."
        )


def run_synthetic(
    folder: Path,
    *,
    images: int,
    repeats: int,
    networks: tuple[str, ...],
    seed: int,
    progress: Progress | None,
) -> AuditResult:
    """Run the experiment on synthetic faces, with a bias in one training set."""
    began = perf_counter()
    faces = {}
    shares = {"biased": _BIASED, "balanced": _EVEN, "test": _EVEN}
    for place, (name, share) in enumerate(shares.items()):
        face_images = draw_faces(images, long_hair=share, seed=seed + place)
        regions = Regions(face_images.boxes, np.ones(images, dtype=bool))
        faces[name] = Faces(face_images.images, face_images.labels, face_images.groups, regions)
    config = TrainingConfig(
        networks=dict(zip(networks, networks, strict=True)),
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
    saved: Path | None = None,
) -> AuditResult:
    experiment = augmentation_experiment(
        faces["biased"],
        faces["balanced"],
        faces["test"],
        folder / digest_experiment(faces["biased"], faces["balanced"], config.seed),
        networks=config.networks,
        arms=config.arms,
        repeats=config.repeats,
        changes=config,
        attributes=AttributeImages(faces.get("attributes"), **config.draws.model_dump()),
        saved=saved,
        every_run=config.save == "all",
        schedules=dict.fromkeys(config.networks, config.schedule) | dict(config.schedules),
        resampling=Bootstrap(replicates=config.replicates),
        seed=config.seed,
        progress=progress,
    )
    resolved = config.model_dump(mode="json")
    training_note = "Intervals hold for new trainings, on images like these."
    manifest = manifest_of(
        **record,
        notes=(PERCEIVED, training_note, *notes),
        config=resolved,
        resolved=resolved,
        seed=config.seed,
        seconds=perf_counter() - began,
    )
    findings = findings_of(experiment, threshold=config.threshold, alpha=config.alpha)
    resampling_options = {"seed": config.seed, "replicates": config.replicates}
    findings += difference_findings(experiment, config.families, **resampling_options)
    findings += tuple(accuracy_findings(experiment))
    findings += tuple(
        association_findings(experiment.associations, experiment.groups, config.families)
    )
    if saved is not None:
        table = {
            name_of_run(network, arm, run): np.array(experiment.classes)[codes].tolist()
            for (network, arm), answers in experiment.answers.items()
            for run, codes in enumerate(answers)
        }
        with writer(saved / "predictions.parquet") as file:
            pl.DataFrame(table).write_parquet(file)
    tables = tables_of(experiment, **resampling_options)
    return with_claims(AuditResult(findings, manifest, tables, conclusions_of(findings)))
