"""Tables of items: images, texts, words or prompts, with what is known of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.coded import Coded
from equipoise.data.join import check_ids
from equipoise.data.labels import without
from equipoise.data.problems import listed
from equipoise.data.tables import Table, read_table

Objects = npt.NDArray[np.object_]


@dataclass(frozen=True)
class ItemSource:
    """A table with one row per item.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    columns : tuple of str
        The columns needed: attributes, unit, set, query, ...
    missing : tuple of str
        Texts that mean "missing", beside the empty cell. They do not apply to ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.
    """

    table: Path | Any
    id: str
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    delimiter: str = ","


@dataclass(frozen=True, eq=False)
class Items:
    """Items in the order of their table.

    Attributes
    ----------
    name : str
        The path as given, or what the data frame is for.
    id : str
        Name of the column of ids.
    ids : ndarray of str objects, shape (n,)
        Each once.
    coded : mapping of str to Coded
        Columns as codes into their sorted vocabulary, -1 where missing.
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        "rows", and "missing": rows by column where it is missing.
    """

    name: str
    id: str
    ids: Objects
    coded: Mapping[str, Coded]
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.ids)

    @cached_property
    def columns(self) -> Mapping[str, Objects]:
        """Columns as arrays of text, each of shape (n,); None where missing."""
        return {name: column.values for name, column in self.coded.items()}


def load_items(source: ItemSource, *, what: str = "items") -> Items:
    """Read and check a table of items.

    Parameters
    ----------
    source : ItemSource
    what : str
        What the items are ("images", "words", ...); stands for the file name of a data frame.

    Raises
    ------
    DataError
        When the table cannot be read, an id is empty or repeats, or a column is missing in
        every row.
    """
    table = read_table(
        source.table,
        texts=(source.id, *source.columns),
        role=what,
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    check_ids(table.texts[source.id], table.name, fix="remove the repeated rows")
    coded = {name: _column(table, name, source) for name in source.columns}
    missing = {name: int((column.codes < 0).sum()) for name, column in coded.items()}
    ids = table.texts[source.id].to_numpy()
    counts = {"rows": table.rows, "missing": missing}
    return Items(table.name, source.id, ids, coded, {table.name: table.digest}, counts)


def _column(table: Table, name: str, source: ItemSource) -> Coded:
    column = without(Coded.of(table.texts[name]), source.missing)
    if column.vocabulary:
        return column
    raise DataError(
        "every cell is missing",
        file=table.name,
        column=name,
        expected="a value in at least some rows",
        fix="name another column, or look at "
        + (f"`missing:` (now {listed(source.missing)})" if source.missing else "what makes it"),
    )
