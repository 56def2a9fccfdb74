"""The run of `equipoise train`: its config, its images, and the folder that it writes."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import polars as pl
from pydantic import Field, NonNegativeInt

from equipoise import __version__
from equipoise.audits.config_fields import (
    FilePath,
    Filters,
    Name,
    Names,
    Section,
    among,
    where_of,
)
from equipoise.audits.config_images import PicturesConfig
from equipoise.audits.images import known
from equipoise.core import Booleans, Bytes, ConfigError, Integers, Objects, Progress, record
from equipoise.data import Items, load_items
from equipoise.evidence import new_run
from equipoise.evidence.store import locked
from equipoise.mitigate.augmentation.faces import Faces, PlainFaces, Regions
from equipoise.mitigate.config import FolderName
from equipoise.mitigate.loading import TableImages
from equipoise.mitigate.recipe import digest_of_images
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


class CellConfig(Section):
    """Images of which few are kept.

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
    keep: Annotated[tuple[CellConfig, ...], Field(strict=False)] = ()


Networks = Annotated[Mapping[FolderName, Name], Field(min_length=1)]


class TrainConfig(Section):
    """Classifiers to train, and the images that they are trained and tested on.

    Attributes
    ----------
    study : str, optional
        Published study that it is part of.
    images : PicturesConfig
    label : str
        Column of the right answer.
    columns : list of str
        Attributes that go into the table of predictions.
    networks : mapping of str to str
        Name to timm:NAME, NAME.TAG, folder or hf-hub:ID.
    trainings : mapping of str to ArmConfig
        Each network is trained on each of them.
    test : ArmConfig
        Images to predict, none of which is trained on.
    size : int
        Side to which images are scaled, in pixels.
    schedule, schedules : Schedule, mapping of str to Schedule
        For all networks, and for single ones.
    seed : int
    output : path
        Folder that gets predictions.parquet, training.json and a model a training.
    """

    study: Name | None = None
    images: PicturesConfig
    label: Name
    columns: Names = ()
    networks: Networks
    trainings: Annotated[Mapping[FolderName, ArmConfig], Field(min_length=1)]
    test: ArmConfig
    size: Annotated[int, Field(ge=16, le=1024)] = 224
    schedule: Schedule = Schedule()
    schedules: Mapping[Name, Schedule] = Field(default_factory=dict)
    seed: NonNegativeInt = 0
    output: FilePath = Path("trained")

    def _check(self) -> None:
        among("schedules", self.schedules, self.networks)
        for name, one in self.networks.items():
            if not one.startswith("timm:"):
                raise ValueError(f"networks.{name}: {one!r}; expected a network of timm, timm:NAME")

    @property
    def every_column(self) -> Sequence[str]:
        """Columns of the images that are needed, each once."""
        arms = [self.test, *self.trainings.values()]
        filters = [each for arm in arms for each in (arm.where, *(one.where for one in arm.keep))]
        return [
            *dict.fromkeys([self.label, *self.columns, *(key for one in filters for key in one)])
        ]


@record
class Scaled:
    """Some images of a table, each read and scaled to a square on access.

    Attributes
    ----------
    images : TableImages
    rows : ndarray of int64, shape (n,)
    size : int
        Side in pixels.
    """

    images: TableImages
    rows: Integers
    size: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Bytes:
        return scaled(self.images[int(self.rows[place])], self.size)

    def content(self, place: int) -> bytes:
        """Return the bytes of an image's file."""
        return self.images.content(int(self.rows[place]))


def scaled(image: Bytes, size: int) -> Bytes:
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
        What training.json holds: the config, the files read, versions, and by training its images
        by label.

    Raises
    ------
    ConfigError
        When a set has no image or one label, or test images are trained on.
    DataError
        When a table or an image cannot be read.
    ModelError
        When a network cannot be trained.
    RunError
        When something lies at `output`.
    """
    networks = {name: absolute(one, base) for name, one in config.networks.items()}
    check_networks([*networks.values()], config.size)
    read = known(config.images, base, columns=config.every_column, place="images")
    pictures = read.need_pictures("training", place="images")
    items = load_items(read.source(base, config.every_column), what="images")
    order = np.argsort(items.ids.astype(str), kind="stable")
    columns = {name: items.columns[name][order] for name in config.every_column}
    images = TableImages(pictures, order + 1, config.images.path or "image")
    arms = dict(_arms(config, columns, items))
    test, out = arms.pop("test"), base / config.output
    table = {"image_id": pictures.ids[test].tolist()}
    table |= {name: columns[name][test].tolist() for name in (config.label, *config.columns)}
    tested = cast("Sequence[Bytes]", Scaled(images, test, config.size))
    told: dict[str, object] = {}
    states = out.with_name(f"{out.name}.training")
    with new_run(out, overwrite=overwrite) as folder, locked(states):
        for arm, rows in arms.items():
            labels = columns[config.label][rows].astype(str).astype(object)
            names, counts = np.unique(labels.astype(str), return_counts=True)
            told[arm] = dict(zip(names.tolist(), counts.tolist(), strict=True))
            own = cast("Sequence[Bytes]", Scaled(images, rows, config.size))
            regions = Regions(np.zeros((len(rows), 4), np.int64), np.zeros(len(rows), np.bool_))
            data = PlainFaces(Faces(own, labels, labels, regions), seed=config.seed)
            digest = digest_of_images(own, labels)
            for name, network in networks.items():
                schedule = config.schedules.get(name, config.schedule)
                job = Job(network, tuple(names.tolist()), config.seed, schedule, digest)
                module = train(job, data, states / job.file, progress)
                every = outputs(module, tested)
                codes = np.concatenate([some for some, _ in every])
                table[f"{name}, {arm}"] = names[codes].tolist()
                model = folder / f"{name}, {arm}"
                model.mkdir()
                save_network(module, job.classes, config.size, model)
        pl.DataFrame(table).write_parquet(folder / "predictions.parquet")
        facts: dict[str, object] = {
            "config": config.model_dump(mode="json"),
            "inputs": {**read.inputs, **items.inputs},
            "images": told,
            "equipoise": __version__,
        }
        text = json.dumps(facts, indent=1, ensure_ascii=False, default=str)
        (folder / "training.json").write_text(text, encoding="utf-8")
    shutil.rmtree(states, ignore_errors=True)
    return facts


def _arms(
    config: TrainConfig, columns: Mapping[str, Objects], items: Items
) -> Iterator[tuple[str, Integers]]:
    """Yield the rows of each training, then those of the test."""

    def fitting(where: Filters) -> Booleans:
        kept = np.array([one is not None for one in columns[config.label].tolist()])
        for name, one in where_of(where).items():
            kept &= one.keeps(pl.Series(name, columns[name].tolist()), items.name).to_numpy()
        return kept

    test = fitting(config.test.where)
    for name, arm in {**config.trainings, "test": config.test}.items():
        chosen = fitting(arm.where)
        for place, cell in enumerate(arm.keep):
            rows = np.flatnonzero(chosen & fitting(cell.where))
            drawn = stream(config.seed, "keep", place).permutation(rows)
            chosen[drawn[cell.images :]] = False
        key = "test" if arm is config.test else f"trainings.{name}"
        if not chosen.any():
            raise ConfigError(f"{key}: no image of {items.name} fits")
        if arm is not config.test and (shared := int((chosen & test).sum())):
            raise ConfigError(
                f"{key}: {shared} of its images are test images, too. To do: set 'where' of both"
            )
        if arm is not config.test and len({*columns[config.label][chosen].tolist()}) < 2:
            raise ConfigError(f"{key}: its images have one {config.label}; expected several")
        yield name, np.flatnonzero(chosen)
