"""Sections that name tables of items and files of embeddings or scores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, model_validator

from equipoise.audits.config_fields import Delimiter, Encoding, Labels, Name, Section, Table
from equipoise.core.errors import InputError
from equipoise.data import ArraySource, ItemSource


def file_as_text(value: object) -> str | None:
    """Return how a resolved configuration names a file, or what is in memory."""
    if value is None or isinstance(value, str):
        return value
    return value.as_posix() if isinstance(value, Path) else "(array)"


class ItemsConfig(Section):
    """A table with one row per item.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    id : str
        Column that names the item.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    id: Name
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path, columns: tuple[str, ...]) -> ItemSource:
        """Return what to read, with paths relative to `base`."""
        return ItemSource(
            table=located(self.table, base),
            id=self.id,
            columns=columns,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


class ArrayConfig(Section):
    """A matrix with one row per item.

    Attributes
    ----------
    file : path, array or data frame
        .npy, .npz, .safetensors, .parquet or .csv.
    array : str, optional
        Name of the array in an .npz or .safetensors.
    ids : str, optional
        Array of ids in the same .npz or .safetensors, or a file of ids; rows follow the table of
        items where neither this nor `id` is given.
    id : str, optional
        Column of the ids in a Parquet or CSV.
    column : str, optional
        Column whose cells are vectors.
    columns : list of str or mapping, optional
        Columns to use; a mapping gives them names.
    names : list of str
        Names of all columns of an array without names.
    missing : list of str
        Texts that mean "missing" in a CSV.
    encoding, delimiter : str
        Of a CSV.
    """

    file: Annotated[Any, PlainSerializer(file_as_text)]
    array: Name | None = None
    ids: Annotated[Any, PlainSerializer(file_as_text)] = None
    id: Name | None = None
    column: Name | None = None
    columns: Mapping[str, Name] | Annotated[tuple[Name, ...], Field(strict=False)] | None = None
    names: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _consistent(self) -> ArrayConfig:
        try:
            self.source(Path())
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    def source(self, base: Path) -> ArraySource:
        """Return what to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.file, base),
            array=self.array,
            ids=ids_at(self.ids, base),
            id=self.id,
            column=self.column,
            columns=self.columns,
            names=self.names,
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


class OutsideConfig(Section):
    """A column of external figures: salaries, shares, an index of nations, a hypothesis.

    Attributes
    ----------
    table : path or data frame
        CSV or Parquet.
    subject : str
        Column with the names of targets or regions.
    value : str
        Column of numbers.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    subject: Name
    value: Name
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    def source(self, base: Path) -> ArraySource:
        """Return what to read, with paths relative to `base`."""
        return ArraySource(
            file=located(self.table, base),
            id=self.subject,
            columns=(self.value,),
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


def ids_at(given: Any, base: Path) -> Any:
    """Return a file of ids, which has an ending, relative to `base`; an array's name as it is."""
    return base / given if isinstance(given, str) and Path(given).suffix else given


def located(table: Any, base: Path) -> Any:
    """Return a file relative to `base`; arrays and data frames as they are."""
    return base / table if isinstance(table, str | Path) else table
