"""Columns and rows: tables of a run, numbers of a column, vectors of items."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from equipoise.core import DataError, Floats, Integers, Objects, record, table_of
from equipoise.core.columns import Columns
from equipoise.core.labels import Cell
from equipoise.core.types import FileFacts
from equipoise.data import Items, Vectors
from equipoise.data.number_marks import fix_of_number
from equipoise.metrics.vector_rows import ChosenRows, Table

Row = dict[str, Any]


@record
class ImageData:
    """The images of an audit, with the inputs and counts for its manifest.

    Attributes
    ----------
    images : Items
    inputs, counts : mapping
        Of every file read.
    """

    images: Items
    inputs: Mapping[str, FileFacts]
    counts: Mapping[str, Any]

    @property
    def ids(self) -> Objects:
        """Ids of the images."""
        return self.images.ids


def tables_of(
    rows: Mapping[str, Iterable[Mapping[str, Cell]]], columns: Mapping[str, Columns]
) -> dict[str, pa.Table]:
    """Return a table of each name that has rows."""
    tables = {name: table_of(table_rows, columns[name]) for name, table_rows in rows.items()}
    return {name: table for name, table in tables.items() if len(table)}


def stacked(tables_by_result: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return tables of the same name put under each other."""
    return {
        name: pa.concat_tables(
            [tables[name] for tables in tables_by_result if name in tables],
            promote_options="default",
        )
        for name in dict.fromkeys(name for tables in tables_by_result for name in tables)
    }


def placed(table: pa.Table, place: Mapping[str, str]) -> pa.Table:
    """Return a table with the same text in every row of new columns before the others."""
    for position, (name, value) in enumerate(place.items()):
        table = table.add_column(position, name, pa.array([value] * len(table), pa.string()))
    return table


def numbers_of(items: Items, column: str) -> Floats:
    """Return a column of items as numbers; NaN where a cell is empty.

    Raises
    ------
    DataError
        When a cell is no finite number.
    """
    texts = pl.Series(items.columns[column].tolist(), dtype=pl.String).str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    wrong = texts.is_not_null() & ~numbers.is_finite().fill_null(value=False)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise DataError(
            f"{texts[row]!r} isn't a number",
            file=items.name,
            column=column,
            row=row + 1,
            expected="a number, or an empty cell",
            fix=fix_of_number(texts[row]),
        )
    return numbers.to_numpy()


def rows_of(vectors: Vectors, items: Integers) -> Table:
    """Return the vectors of some items that have one, shape (m, d), in the stored type.

    Tables in the other byte order are turned, which takes a copy.
    """
    if vectors.stored.dtype.isnative:
        return ChosenRows(vectors.stored, vectors.rows[items])
    return vectors.take(items)


def check_one_space(*spaces: Vectors) -> None:
    """Refuse vectors that a model can't compare, because their lengths differ.

    Raises
    ------
    DataError
        With the length of each.
    """
    if len({vectors.dimension for vectors in spaces}) > 1:
        widths = ", ".join(f"{vectors.name} {vectors.dimension}" for vectors in spaces)
        raise DataError(
            f"vectors of different lengths: {widths}",
            file=spaces[0].name,
            expected="all embeddings of a model in one space",
            fix="embed everything with one model, after its projection",
        )
