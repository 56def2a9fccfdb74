"""The sections `data` and `models`: images with groups, labels and scores by concept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator

from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    Group,
    Label,
    Labels,
    Name,
    Section,
    Share,
    distinct,
)
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.audits.running.config import RunConfig, Templates


def _matrix(value: object) -> object:
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    if hasattr(value, "__array__") or hasattr(value, "__arrow_c_stream__"):
        return value
    raise ValueError(
        "expected the path of a Parquet, CSV, .npy, .npz or .safetensors file, an array or a data "
        "frame"
    )


def _matrix_as_text(value: Any) -> str:
    return value.as_posix() if isinstance(value, Path) else "(in memory)"


def _columns(value: object) -> object:
    return (value,) if isinstance(value, str | int) and not isinstance(value, bool) else value


Matrix = Annotated[Any, BeforeValidator(_matrix), PlainSerializer(_matrix_as_text)]
"""A file, relative to the configuration, an array or a data frame."""

Concept = Annotated[Label, Field(min_length=1)]
"""Name of a concept."""

Columns = Annotated[
    tuple[Concept, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_columns),
    AfterValidator(distinct),
]
"""One column, or several of which the largest counts."""

Map = Mapping[Concept, Columns]
"""Concept to its columns."""


class ImagesConfig(PicturesConfig):
    """What the images are: a table, a folder, or a data set in its own format.

    Attributes
    ----------
    several_rows : bool
        Whether an image has several rows: one for each of its groups or persons.
    unit : str, optional
        Column of what repeats (scene, person); resampled and exchanged as a whole. Rows of one
        image always are.
    """

    several_rows: bool = False
    unit: Name | None = None

    @model_validator(mode="after")
    def _rows_are_plain(self) -> ImagesConfig:
        if self.several_rows and not self.is_plain:
            raise ValueError("'several_rows' goes with a table without 'rules'")
        return self


class MatrixConfig(Section):
    """Numbers by image and column: labels 0 and 1, or scores.

    Attributes
    ----------
    file : path, array or data frame
        Parquet, CSV, .npy, .npz or .safetensors.
    array : str, optional
        Name of the array in an .npz or .safetensors.
    id : str, optional
        Column of the ids in a table; that of the images unless given.
    ids : str, optional
        Ids of the rows of an array: a file, or the name of an array in the same file. Rows follow
        the images without.
    names : list of str
        Names of the columns of an array.
    map : mapping, optional
        Concept to its column, or to several of which the largest counts; a concept that is not
        named has the column of its name.
    maps : mapping, optional
        Other such mappings by name, for versions; what they do not name is as in `map`.
    missing : list of str
        Cell texts of a CSV that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    file: Matrix
    array: Name | None = None
    id: Name | None = None
    ids: Name | None = None
    names: Labels = ()
    map: Map = Field(default_factory=dict)
    maps: Mapping[Name, Map] = Field(default_factory=dict)
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","


class ModelConfig(RunConfig, MatrixConfig):
    """One model: how to run it, or the scores that it gave.

    A dual encoder that is run compares images with the prompts of each column, a model of pairs
    scores them with these, and a classifier has a column for each of its classes.

    Attributes
    ----------
    file : path, array or data frame, optional
        Parquet, CSV, .npy, .npz or .safetensors.
    templates : str or list of str
        What the words of a column are put into: a list by name, or templates.
    words : mapping, optional
        Column to its words, of whose prompts the mean is taken; a column that is not named is its
        own word, and one named as a synset ("dress.n.01") the synset's.
    score : str
        Of a dual encoder: the cosine, the model's own logit, or that logit's sigmoid.
    """

    file: Matrix | None = None
    templates: Templates = "plain"
    words: Mapping[Concept, Columns] = Field(default_factory=dict)
    score: Literal["cosine", "logit", "sigmoid"] = "cosine"

    @model_validator(mode="after")
    def _one_source(self) -> ModelConfig:
        self.excludes({"file": self.file is not None})
        self.needs_model(("templates", "words", "score"))
        if self.model is None and self.file is None:
            raise ValueError(
                "'file' is missing. To do: name the file of its scores, or under 'model' what to "
                "run"
            )
        return self


class LabelsConfig(MatrixConfig):
    """Whether each image shows each concept: 0 or 1.

    Attributes
    ----------
    file : path, array or data frame, optional
        The labels of the data set, where the images have a format with labels, unless given.
    concept : str, optional
        Column of the concept, where the table has one row for each concept that an image shows,
        and no column per concept.
    """

    file: Matrix | None = None
    concept: Name | None = None


class DataConfig(Section):
    """Images, their groups and their labels.

    Attributes
    ----------
    images : mapping
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    labels : mapping
        Those of the data set unless given, where the images have a format with labels.
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of images without labels or scores.
    """

    images: ImagesConfig
    groups: Annotated[
        tuple[Group, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ]
    labels: LabelsConfig = LabelsConfig()
    min_group_size: Annotated[int, Field(ge=1)] = 30
    max_unmatched: Share = 0.01

    @model_validator(mode="after")
    def _labels_are_somewhere(self) -> DataConfig:
        if self.labels.file is None and self.images.format is None:
            key = "labels.file" if "labels" in self.model_fields_set else "labels"
            raise ValueError(
                f"{key}: required, and missing: {self.images.source_key!r} says which images there "
                "are, and not what they show"
            )
        return self
