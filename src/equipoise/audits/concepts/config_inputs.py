"""The sections `data` and `models`: images with groups, labels and scores by concept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    Group,
    Label,
    Labels,
    Name,
    Section,
    Share,
    Table,
    distinct,
)


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


class ImagesConfig(Section):
    """The table of images.

    Attributes
    ----------
    table : path or data frame
        One row per image: CSV, Parquet or JSON lines.
    id : str
        Column that names the image.
    several_rows : bool
        Whether an image has several rows: one for each of its groups or persons.
    unit : str, optional
        Column of what repeats (scene, person); resampled and exchanged as a whole. Rows of one
        image always are.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    id: Name
    several_rows: bool = False
    unit: Name | None = None
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","


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


class LabelsConfig(MatrixConfig):
    """Whether each image shows each concept: 0 or 1.

    Attributes
    ----------
    concept : str, optional
        Column of the concept, where the table has one row for each concept that an image shows,
        and no column per concept.
    """

    concept: Name | None = None


class DataConfig(Section):
    """Images, their groups and their labels.

    Attributes
    ----------
    images : mapping
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    labels : mapping
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of images without labels or scores.
    """

    images: ImagesConfig
    groups: Annotated[
        tuple[Group, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ]
    labels: LabelsConfig
    min_group_size: Annotated[int, Field(ge=1)] = 30
    max_unmatched: Share = 0.01
