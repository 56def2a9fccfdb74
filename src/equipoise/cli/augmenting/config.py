"""The configuration of `equipoise augment`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from equipoise.audits.config_fields import FilePath, Name, Section, Table
from equipoise.cli.mitigating import parse
from equipoise.mitigate.augmentation import Schedule
from equipoise.mitigate.augmentation.faces import SIDES
from equipoise.mitigate.augmentation.training import SMALL


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
    detector : "cascade" or "yunet", optional
    model : path, optional
        The ONNX file of YuNet.
    """

    columns: Mapping[str, Name] | None = None
    detector: Literal["cascade", "yunet"] | None = None
    model: FilePath | None = None

    @model_validator(mode="after")
    def _one_way(self) -> FacesConfig:
        if (self.columns is None) == (self.detector is None):
            raise ValueError("expected columns, or a detector, and not both")
        if self.columns is not None and {*self.columns} != {*SIDES}:
            raise ValueError(f"columns must name {', '.join(SIDES)}")
        if (self.detector == "yunet") != (self.model is not None):
            raise ValueError("model is the ONNX file of the detector yunet, which needs it")
        return self


class ScheduleConfig(Section):
    """How a network is trained; see `Schedule`."""

    epochs: Annotated[int, Field(ge=1)] = 10
    batch: Annotated[int, Field(ge=2)] = 64
    learning_rate: Annotated[float, Field(gt=0)] = 1e-3
    weight_decay: Annotated[float, Field(ge=0)] = 0.01

    @property
    def schedule(self) -> Schedule:
        """What training takes."""
        return Schedule(self.epochs, self.batch, self.learning_rate, self.weight_decay)


class AugmentConfig(Section):
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
    networks : list of str
        cnn, vit, torchvision:NAME, timm:NAME.
    repeats : int
        Training runs of each arm.
    schedule : ScheduleConfig
    schedules : mapping of str to ScheduleConfig
        Of single networks.
    store : path
        Where decoded images and the state of each training are kept.
    seed : int
    replicates : int
        Of the bootstrap.
    threshold, alpha : float
        Least difference in accuracy that matters, and the level of the tests.
    """

    images: ImagesConfig
    id: Name = "image_id"
    path: Name = "path"
    label: Name
    group: Name
    faces: FacesConfig
    size: Annotated[int, Field(ge=16, le=512)] = 64
    max_failures: Annotated[float, Field(ge=0, le=1)] = 0.05
    networks: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)] = ("cnn", "vit")
    repeats: Annotated[int, Field(ge=1)] = 3
    schedule: ScheduleConfig = ScheduleConfig()
    schedules: Mapping[str, ScheduleConfig] = Field(default_factory=dict)
    store: FilePath = Path("evidence")
    seed: Annotated[int, Field(ge=0)] = 0
    replicates: Annotated[int, Field(ge=100)] = 1000
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.01
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05

    @field_validator("networks")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len({*names}) < len(names):
            raise ValueError("a network is named twice")
        for name in names:
            if name not in SMALL and not name.startswith(("torchvision:", "timm:")):
                raise ValueError(
                    f"no network is called {name!r}; expected {', '.join(SMALL)}, "
                    "torchvision:NAME or timm:NAME"
                )
        return names

    @model_validator(mode="after")
    def _of_networks(self) -> AugmentConfig:
        others = sorted({*self.schedules} - {*self.networks})
        if others:
            raise ValueError(
                f"schedules names {others[0]!r}, which is none of networks: "
                f"{', '.join(self.networks)}"
            )
        return self


def load_augment_config(path: Path) -> AugmentConfig:
    """Read and check a configuration file.

    Raises
    ------
    ConfigError
        Naming each key that is wrong, what was given there and what is allowed.
    """
    return parse(path, AugmentConfig, fix="start from the example in docs/augmentation.md")
