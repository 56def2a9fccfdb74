"""The configuration of `equipoise augment`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from equipoise.audits.config_fields import FilePath, Name, Section, Share, Table
from equipoise.mitigate.augmentation import Schedule
from equipoise.mitigate.augmentation.faces import SIDES
from equipoise.mitigate.recipe import Count, Names


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


class TrainingConfig(Section):
    """Networks, how they are trained, and how they are compared.

    Attributes
    ----------
    networks : list of str
        cnn, vit, torchvision:NAME, timm:NAME.
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
    repeats: Count = 3
    schedule: Schedule = Schedule()
    schedules: Mapping[str, Schedule] = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0)] = 0
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
