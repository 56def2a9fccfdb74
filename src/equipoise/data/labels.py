"""Tables of labels and of items: ids, the true class, attributes and the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from equipoise.core import DataError
from equipoise.data.coded import Coded
from equipoise.data.join import check_ids
from equipoise.data.problems import listed, show
from equipoise.data.sources import LabelSource
from equipoise.data.tables import Table, read_table
from equipoise.data.versions import unused_entries


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels in the order of their ids, so that permuted rows give the same.

    Attributes
    ----------
    file : str
    column : str or None
        Of the true class.
    ids : polars.Series
    target : Coded
        Its vocabulary is the classes; empty where no true class is known.
    attributes : mapping of str to Coded
    unit : Coded or None
    digest, counts : mapping
    """

    file: str
    column: str | None
    ids: pl.Series
    target: Coded
    attributes: Mapping[str, Coded]
    unit: Coded | None
    digest: Mapping[str, Any]
    counts: Mapping[str, Any]


def read_labels(source: LabelSource) -> LabelRows:
    """Read and check the labels.

    Raises
    ------
    DataError
        When ids are empty or repeat, the target has fewer than two classes, an attribute is
        missing everywhere, or no attribute has two values.
    """
    table = read_table(
        source.table,
        texts=source.columns,
        role="labels",
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    check_ids(table.texts[source.id], table.name)
    order = table.texts[source.id].arg_sort()
    texts = {name: column.gather(order) for name, column in table.texts.items()}
    columns = {name: without(Coded.of(texts[name]), source.missing) for name in source.labelled}
    raw, mapping = _truth(columns, source, table.rows), dict(source.map or {})
    target = raw.relabel([mapping.get(label, label) for label in raw.vocabulary])
    attributes = {name: columns[name] for name in source.attributes}
    if source.target is not None:
        _check_target(target, table.name, source.target, source)
    counts = {
        "rows": table.rows,
        "missing": {name: int((column.codes < 0).sum()) for name, column in columns.items()},
        "mapped": _mapped(raw, mapping),
        **unused_entries(mapping, raw.vocabulary),
        "single_valued": _check_attributes(attributes, table.name, source),
    }
    unit = None if source.unit is None else columns[source.unit]
    ids = texts[source.id]
    return LabelRows(table.name, source.target, ids, target, attributes, unit, table.digest, counts)


def _truth(columns: Mapping[str, Coded], source: LabelSource, rows: int) -> Coded:
    """Return the column of the true class; no class in any row where there is no column."""
    if source.target is None:
        return Coded(np.full(rows, -1, dtype=np.int32), ())
    return columns[source.target]


def without(column: Coded, missing: tuple[str, ...]) -> Coded:
    """Return a column where the empty cell and the texts listed are missing."""
    none = {"", *missing}
    return column.relabel([None if text in none else text for text in column.vocabulary])


def _mapped(raw: Coded, mapping: Mapping[str, str]) -> int:
    """Rows whose label the mapping changes."""
    pairs = zip(raw.vocabulary, raw.counts.tolist(), strict=True)
    return sum(count for label, count in pairs if mapping.get(label, label) != label)


def _check_target(target: Coded, file: str, column: str, source: LabelSource) -> None:
    if len(target.vocabulary) > 1:
        return
    if not target.vocabulary:
        raise _all_missing(file, column, source)
    raise DataError(
        f"every row has the one class {show(target.vocabulary[0])}",
        file=file,
        column=column,
        expected="two or more classes",
        fix="name the column of the true class as `target:`"
        + (", and look at `map:`" if source.map else ""),
    )


def _check_attributes(attributes: Mapping[str, Coded], file: str, source: LabelSource) -> list[str]:
    """Return the attributes of one value; raise where that leaves nothing to compare.

    One constant attribute beside another that varies does no harm: the audit says so and
    compares along the other.
    """
    for name, column in attributes.items():
        if not column.vocabulary:
            raise _all_missing(file, name, source)
    single = [name for name, column in attributes.items() if len(column.vocabulary) == 1]
    if single and len(single) == len(attributes):
        value = attributes[single[0]].vocabulary[0]
        raise DataError(
            f"every row has the one value {show(value)}, which leaves no groups to compare",
            file=file,
            column=single[0],
            expected="an attribute with two or more values",
            fix="name another column under `groups:`",
        )
    return single


def _all_missing(file: str, column: str, source: LabelSource) -> DataError:
    return DataError(
        "every cell is missing",
        file=file,
        column=column,
        expected="a value in at least some rows",
        fix="name another column, or look at "
        + (f"`missing:` (now {listed(source.missing)})" if source.missing else "what makes it"),
    )


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
