"""The run of `equipoise train`: its config, its images, and the folder that it writes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Self, cast

import numpy as np
import polars as pl
from pydantic import BeforeValidator, Field, NonNegativeInt, model_validator

from equipoise import __version__
from equipoise.config.fields import (
    FilePath,
    Filters,
    Listed,
    Name,
    Names,
    Section,
    among,
    by_name,
    where_of,
)
from equipoise.core import Booleans, Bytes, ConfigError, Integers, Objects, Progress, record
from equipoise.core.plain_json import plain
from equipoise.core.types import FileFacts
from equipoise.core.writing import remove_folder, write, writer
from equipoise.evidence import new_run
from equipoise.evidence.store import lock_folder
from equipoise.mitigate.augmentation.faces import Faces, PlainFaces, Regions
from equipoise.mitigate.config import ImagesConfig
from equipoise.mitigate.loading import TableImages, read_images
from equipoise.mitigate.recipe import digest_images
from equipoise.mitigate.training import (
    Job,
    Schedule,
    check_networks,
    outputs,
    save_network,
    train,
)
from equipoise.models.registry import absolute
from equipoise.stats.streams import stream
from equipoise.studies.names import StudyName


def _name_networks(value: object) -> object:
    """Turn a list of networks into a mapping that names each as itself."""
    if isinstance(value, list | tuple):
        return by_name(value, lambda network: network)
    return value


class NetworksConfig(Section):
    """Networks and their training schedules.

    Attributes
    ----------
    study : str, optional
        Published study that this is part of.
    networks : list of str, or mapping of str to str
        cnn, vit, timm:NAME, NAME.TAG, folder or hf-hub:ID; or these by a name of their own.
    schedule, schedules : Schedule, mapping of str to Schedule
        For all networks, and for single ones.
    seed : int
    """

    study: StudyName | None = None
    networks: Annotated[
        Mapping[Name, Name], Field(min_length=1), BeforeValidator(_name_networks)
    ] = Field(default_factory=lambda: {"cnn": "cnn", "vit": "vit"})
    schedule: Schedule = Schedule()
    schedules: Mapping[str, Schedule] = {}
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_training_networks(self) -> Self:
        among("schedules", self.schedules, self.networks)
        return self

    def need_timm(self, purpose: str) -> None:
        """Refuse networks that can't be saved."""
        for name, network in self.networks.items():
            if not network.startswith("timm:"):
                raise ValueError(f"networks.{name}: {network!r}; {purpose} needs networks of timm")

    def resolve_networks(self, base: Path, size: int) -> Mapping[str, str]:
        """Return the networks, with folders relative to `base` in full, each built once."""
        networks = {name: absolute(network, base) for name, network in self.networks.items()}
        schedules = dict.fromkeys(networks, self.schedule) | dict(self.schedules)
        check_networks([(networks[name], schedules[name]) for name in networks], size)
        return networks


class CellConfig(Section):
    """Images to thin out.

    Attributes
    ----------
    where : mapping
        Column to the images meant.
    images : int
        How many are kept, drawn by the seed.
    """

    where: Annotated[Filters, Field(min_length=1)]
    images: NonNegativeInt


class ArmConfig(Section):
    """Images that networks are trained on.

    Attributes
    ----------
    where : mapping
        Column to the images that take part; all unless given.
    keep : list of CellConfig
        Groups of these images that are thinned.
    """

    where: Filters = Field(default_factory=dict)
    keep: Listed[CellConfig] = ()


class TrainConfig(NetworksConfig):
    """Classifiers to train, and the images that they are trained and tested on.

    Attributes
    ----------
    images : ImagesConfig
    label : str
        Column of the right answer.
    columns : list of str
        Attributes that go into the table of predictions.
    trainings : mapping of str to ArmConfig
        Each network is trained on each of them.
    test : mapping
        Column to the images to predict; training never uses these.
    size : int
        Side to which images are scaled, in pixels.
    output : path
        Folder that gets predictions.parquet, training.json and a model a training.
    """

    images: ImagesConfig
    label: Name
    columns: Names = ()
    trainings: Annotated[Mapping[Name, ArmConfig], Field(min_length=1)]
    test: Filters
    size: Annotated[int, Field(ge=16, le=1024)] = 224
    output: FilePath = Path("trained")

    @model_validator(mode="after")
    def _check_training(self) -> Self:
        self.need_timm("'train'")
        return self


@record
class ScaledImages:
    """Images of a table, each read and scaled to a square on access."""

    images: TableImages
    rows: Integers
    size: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Bytes:
        return scale_image(self.images[int(self.rows[place])], self.size)

    def content(self, place: int) -> bytes:
        """Return the bytes of an image's file."""
        return self.images.content(int(self.rows[place]))


def scale_image(image: Bytes, size: int) -> Bytes:
    """Return an image scaled to a square of `size` pixels."""
    from PIL import Image

    square = Image.fromarray(image).resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(square)


def run_training(
    config: TrainConfig, base: Path, progress: Progress, *, overwrite: bool = False
) -> dict[str, object]:
    """Train every network on every set of images, and write models and predictions.

    Parameters
    ----------
    config : TrainConfig
    base : Path
        Folder of relative paths.
    progress : callable
    overwrite : bool
        Replace what an earlier run wrote.

    Returns
    -------
    dict
        What training.json holds: the config, the files read, the version, and by training its
        images by label.

    Raises
    ------
    ConfigError
        When a set has no image or one label, or test images are trained on.
    DataError
        When a table or an image cannot be read.
    ModelError
        When a network cannot be trained.
    RunError
        When `output` exists.
    """
    networks, inputs = config.resolve_networks(base, config.size), dict[str, FileFacts]()
    filters = [config.test, *(training.where for training in config.trainings.values())]
    for training in config.trainings.values():
        filters += [cell.where for cell in training.keep]
    names = [*dict.fromkeys([config.label, *config.columns, *chain.from_iterable(filters)])]
    images, values = read_images(config.images, names, base, "images", inputs)
    columns = dict(zip(names, values, strict=True))
    arms = dict(_arms(config, columns))
    test, out = arms.pop(""), base / config.output
    ids = images.pictures.ids[test].tolist()
    table = {"image_id": ids, **{name: columns[name][test].tolist() for name in names}}
    counts, states = {}, out.with_name(f"{out.name}.training")

    def scaled_images(rows: Integers) -> Sequence[Bytes]:
        return cast("Sequence[Bytes]", ScaledImages(images, rows, config.size))

    with new_run(out, overwrite=overwrite) as folder, lock_folder(states):
        for arm, rows in arms.items():
            training_images, labels = scaled_images(rows), columns[config.label][rows]
            classes, class_counts = np.unique(labels.astype(str), return_counts=True)
            counts[arm] = dict(zip(classes.tolist(), class_counts.tolist(), strict=True))
            regions = Regions(np.zeros((len(rows), 4), np.int64), np.zeros(len(rows), np.bool_))
            data = PlainFaces(Faces(training_images, labels, labels, regions))
            digest = digest_images(training_images, labels)
            for name, network in networks.items():
                schedule = config.schedules.get(name, config.schedule)
                job = Job(network, tuple(classes.tolist()), config.seed, schedule, digest)
                module = train(job, data, states / job.file, progress)
                codes = np.concatenate(
                    [batch_codes for batch_codes, _ in outputs(module, scaled_images(test))]
                )
                table[f"{name}, {arm}"] = classes[codes].tolist()
                save_network(module, job.classes, config.size, folder, f"{name}, {arm}")
        with writer(folder / "predictions.parquet") as file:
            pl.DataFrame(table).write_parquet(file)
        facts: dict[str, object] = {
            "config": config.model_dump(mode="json"), "inputs": inputs, "images": counts,
            "equipoise": __version__,
        }  # fmt: skip
        write(
            folder / "training.json", json.dumps(plain(facts), indent=1, allow_nan=False).encode()
        )
    remove_folder(states)
    return facts


def _arms(config: TrainConfig, columns: Mapping[str, Objects]) -> Iterator[tuple[str, Integers]]:
    """Yield the rows of each training; the test rows come first, named ""."""

    def select(where: Filters) -> Booleans:
        selected = np.ones(len(columns[config.label]), np.bool_)
        for name, condition in where_of(where).items():
            selected &= condition.keeps(
                pl.Series(name, columns[name].tolist()), "images"
            ).to_numpy()
        return selected

    test = select(config.test)
    yield "", np.flatnonzero(test)
    for name, arm in config.trainings.items():
        chosen = select(arm.where)
        for place, cell in enumerate(arm.keep):
            rows = np.flatnonzero(chosen & select(cell.where))
            chosen[stream(config.seed, "keep", place).permutation(rows)[cell.images :]] = False
        shared, labels = int((chosen & test).sum()), {*columns[config.label][chosen].tolist()}
        if shared or len(labels) < 2 or not test.any():
            raise ConfigError(
                f"trainings.{name}: {chosen.sum()} images of {len(labels)} classes share {shared} "
                f"with the {test.sum()} test images; expected several classes, and test images "
                "that aren't trained on. To do: set 'where' of both"
            )
        yield name, np.flatnonzero(chosen)
