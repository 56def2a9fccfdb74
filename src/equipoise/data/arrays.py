"""Where embeddings, scores and labels by concept are, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core import InputError
from equipoise.data.problems import listed


@dataclass(frozen=True, eq=False)
class ArraySource:
    """A matrix with one row per item: embeddings, scores, or labels 0 and 1.

    Attributes
    ----------
    file : path, array or data frame
        .npy, .npz, .safetensors, .parquet (.pq) or .csv (.tsv); or a two-dimensional array; or
        any data frame.
    array : str or None
        Name of the array in an .npz or .safetensors; None: the only two-dimensional one.
    ids : str, path, sequence of ids, or None
        Ids of the rows: the name of an array in the same .npz or .safetensors; or a file of ids
        (.txt with one a line; .csv or .parquet with a column `id`; .npy); or the ids.
        None with `id` None: rows follow the table of items.
    id : str or None
        Column of the ids in a Parquet, CSV or data frame.
    column : str or None
        Column whose cells are vectors (lists of floats), for embeddings.
    columns : mapping of str to str, tuple of str, or None
        Columns to use; a mapping gives them names. For arrays: a name out of `names`, or the
        number of the column from 0, as text. None: every column of numbers.
    names : tuple of str
        Names of all columns of an array without names.
    missing : tuple of str
        Texts that mean "missing" in a CSV, beside the empty cell. They do not apply to ids.
    encoding, delimiter : str
        Of a CSV, and of the file of ids.

    Raises
    ------
    InputError
        When two options contradict each other, or a name repeats.
    """

    file: Path | Any
    array: str | None = None
    ids: str | Path | Sequence[Any] | Any | None = None
    id: str | None = None
    column: str | None = None
    columns: Mapping[str, str] | tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.id is not None and self.ids is not None:
            raise InputError("id and ids both say where the ids are; give one of them")
        if self.column is not None and self.columns is not None:
            raise InputError("column names one column of vectors, columns many; give one of them")
        for option in ("names", "columns"):
            given = [*(getattr(self, option) or ())]
            twice = sorted({name for name in given if given.count(name) > 1})
            if twice:
                raise InputError(f"{option} has {listed(twice)} more than once")

    @property
    def chosen(self) -> Mapping[str, str] | None:
        """Name to column, or None where every column is used."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return self.columns
        return {name: name for name in self.columns}
