"""Sections of labelled images and of models that label them, by a table or when they are run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from equipoise.audits.config_arrays import located
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
    one_state_each,
)
from equipoise.audits.config_normalize import NormalizeConfig
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.audits.running.config import RunConfig
from equipoise.data import ItemSource, LabelSource, PredictionSource, Reading

# Keys of the table of labels that `images` has itself.
_OF_TABLE = ("table", "id", "missing", "encoding", "delimiter")

Mapped = Annotated[Mapping[Label, Label], Field(min_length=1)]


def given_keys(section: Section, keys: Iterable[str]) -> dict[str, bool]:
    """Say of each key whether it has another value than its default."""
    every = type(section).model_fields
    values = {key: getattr(section, key) for key in keys}
    # A data frame compares cell by cell.
    return {
        key: value is not None and (key == "table" or value != every[key].get_default())
        for key, value in values.items()
    }


class LabelledImagesConfig(Section):
    """The images, and the groups that they are in.

    Attributes
    ----------
    table : path or data frame
        One row per image: CSV, Parquet or JSON lines.
    id : str
        Column that names the image.
    images : mapping, in place of `table` and `id`
        The images themselves: a table with their files, a folder, or a data set in its own
        format; see docs/images.md.
    groups : list of str or list of str
        Attributes to compare by; a list within the list compares the intersections.
    unit : str, optional
        Column of the unit that repeats (person, scene); resampled as a whole.
    map : mapping, optional
        True class in the table to class.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    min_group_size : int
        Smaller groups are reported with their count and left out of comparisons.
    max_unmatched : float
        Largest share of rows without a partner in the other table.
    """

    table: Table | None = None
    id: Name | None = None
    images: PicturesConfig | None = None
    groups: Annotated[
        tuple[Group, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ]
    unit: Name | None = None
    map: Mapped | None = None
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","
    min_group_size: Annotated[int, Field(ge=1)] = 30
    max_unmatched: Share = 0.01

    @property
    def truth(self) -> str | None:
        """The column of the true class, where there is one."""
        return None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every column that a group is made of, each once."""
        return tuple(dict.fromkeys(name for group in self.groups for name in group))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the images, each once."""
        named = (self.truth, *self.attributes, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def has_missing(self) -> bool:
        """Whether the key `missing` goes with the images."""
        return self.images is None or self.images.has_missing

    @property
    def pictures(self) -> PicturesConfig:
        """The section `images`, or the same of a table alone."""
        return self.images or PicturesConfig.model_construct(
            table=self.table,
            id=self.id,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )

    def labels(self, images: ItemSource) -> LabelSource:
        """Return how to read the labels of images."""
        return LabelSource(
            table=images.table,
            id=images.id,
            target=self.truth,
            attributes=self.attributes,
            unit=self.unit,
            map=self.map,
            missing=images.missing,
            encoding=images.encoding,
            delimiter=images.delimiter,
        )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.images is None:
            if self.table is None or self.id is None:
                lacks = "table" if self.table is None else "id"
                raise ValueError(f"{lacks!r} is missing. To do: give 'table' and 'id', or 'images'")
            return self
        own = [key for key, given in given_keys(self, _OF_TABLE).items() if given]
        if own:
            raise ValueError(
                f"'images' and {own[0]!r} are given; expected {own[0]!r} within 'images'"
            )
        return self


class LabelModelConfig(RunConfig):
    """One model that labels images or answers: a table of its texts, or how to run it.

    Attributes
    ----------
    table : path or data frame
    id : str, optional
        Column that names the image; `data.id` unless given.
    question : str, optional
        What a model to run is asked about each image.
    missing, unknown, refused : list of str
        Cell texts that mean none, "do not know", and a refusal.
    normalize : mapping, optional
        How texts are brought to one form.
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table | None = None
    id: Name | None = None
    question: Name | None = None
    missing: Labels = ("",)
    unknown: Labels = ()
    refused: Labels = ()
    normalize: NormalizeConfig | None = None
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path, **columns: Any) -> PredictionSource:
        """Return the table to read, with paths relative to `base`."""
        return PredictionSource(
            table=located(self.table, base),
            id=self.id,
            encoding=self.encoding,
            delimiter=self.delimiter,
            **columns,
        )

    def reading(self, name: str, **options: Any) -> Reading:
        """Return how the texts become labels."""
        return Reading(
            missing=self.missing,
            unknown=self.unknown,
            refused=self.refused,
            normalize=None if self.normalize is None else self.normalize.steps,
            place=f"models.{name}",
            **options,
        )

    @model_validator(mode="after")
    def _one_state(self) -> Self:
        one_state_each(self.missing, self.unknown, self.refused)
        return self
