"""Rows of tables, read as images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.core import DataError
from equipoise.data.formats.utf8 import as_formats_are
from equipoise.data.join import check_ids
from equipoise.data.problems import show
from equipoise.data.tables import read_table

Cells = list[str | None]


@dataclass(frozen=True)
class Rows:
    """The cells of a table, by column.

    Attributes
    ----------
    name : str
        The path as given.
    cells : mapping of str to list of str or None
        None where a cell is empty.
    digest : mapping
    """

    name: str
    cells: Mapping[str, Cells]
    digest: Mapping[str, Any]

    @property
    def inputs(self) -> dict[str, Mapping[str, Any]]:
        """What was read, for the record."""
        return {self.name: self.digest}

    def wrong(self, column: str, row: int, expected: str, fix: str = "") -> DataError:
        """Return the error of a cell; rows count from 0 here and from 1 in the message."""
        value = self.cells[column][row]
        return DataError(
            "the cell is empty" if value is None else f"the cell is {show(value)}",
            file=self.name,
            column=column,
            row=row + 1,
            expected=expected,
            fix=fix or "correct the cell, or download the file again",
        )

    def filled(self, column: str, expected: str = "a value in every row") -> list[str]:
        """Return a column that has no empty cell."""
        cells = self.cells[column]
        if None in cells:
            raise self.wrong(column, cells.index(None), expected)
        return [cell for cell in cells if cell is not None]


def read_rows(
    path: Path | str | Any,
    columns: Sequence[str],
    *,
    id: str | None = None,  # noqa: A002 - the field has this name
    unique: bool = True,
    role: str = "images",
    missing: Sequence[str] = (),
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> Rows:
    """Read some columns of a table as text.

    Parameters
    ----------
    path : path or data frame
    columns : sequence of str
    id : str, optional
        The column of ids, which may not be empty, and if `unique` not repeat.
    role : str
        What stands for the name of a data frame.
    missing : sequence of str
        Texts that mean "missing", beside the empty cell; not for ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Raises
    ------
    DataError
        As `read_table`.
    """
    names = tuple(dict.fromkeys((*columns, *([id] if id else []))))
    with as_formats_are():
        table = read_table(path, texts=names, role=role, encoding=encoding, delimiter=delimiter)
    if id:
        check_ids(table.texts[id], table.name, unique=unique, fix="remove one of the repeated rows")
    empty = {"", *missing}
    cells = {
        name: [
            None if cell is None or (name != id and cell.strip() in empty) else cell
            for cell in table.texts[name].to_list()
        ]
        for name in names
    }
    return Rows(table.name, cells, table.digest)
