"""Tables of labels and of items: ids, the true class, attributes and the unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.core import DataError, Objects
from equipoise.data.outputs import Coded
from equipoise.data.problems import check_ids, listed, show
from equipoise.data.tables import read_table


@dataclass(frozen=True, kw_only=True)
class CsvOptions:
    """How the cells of a table are written.

    Attributes
    ----------
    missing : tuple of str
        Texts that mean "missing", beside the empty cell. They do not apply to ids.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.
    """

    missing: tuple[str, ...] = ("",)
    encoding: str = "utf-8"
    delimiter: str = ","


@dataclass(frozen=True)
class ItemSource(CsvOptions):
    """A table with one row per item; see `CsvOptions` for its cells.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    columns : tuple of str
        The columns needed: attributes, unit, set, query, ...
    """

    table: Path | Any
    id: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelSource(CsvOptions):
    """A table of images with their true classes and group attributes; see also `CsvOptions`.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    target : str or None
        Column of the true class; None where images have none that is known.
    attributes : tuple of str
        Columns of group attributes; the target may be one of them.
    unit : str or None
        Column of the unit that repeats (person, prompt, ...), for clustered resampling.
    map : mapping of str to str, or None
        Label in the table to class; labels that it does not name stay as they are.
    """

    table: Path | Any
    id: str
    target: str | None
    attributes: tuple[str, ...]
    unit: str | None = None
    map: Mapping[str, str] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns needed, each once."""
        named = (self.target, *self.attributes, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))


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
        As `load_items`; also when the target has fewer than two classes, or no attribute has two
        values.
    """
    items = load_items(source, what="labels")
    ids = pl.Series(source.id, items.ids, dtype=pl.String)
    order = ids.arg_sort().to_numpy()
    columns = {name: column.take(order) for name, column in items.coded.items()}
    unknown, mapping = Coded(np.full(len(items), -1, dtype=np.int32), ()), dict(source.map or {})
    raw = unknown if source.target is None else columns[source.target]
    target = raw.relabel([mapping.get(label, label) for label in raw.vocabulary])
    attributes = {name: columns[name] for name in source.attributes}
    single = [(name, one) for name, one in attributes.items() if len(one.vocabulary) == 1]
    # One constant attribute beside another that varies does no harm: the audit says so.
    constant = [(source.target, target)] if len(target.vocabulary) == 1 else []
    constant += single if len(single) == len(attributes) else []
    for column, values in constant:
        raise DataError(
            f"every row has the value {show(values.vocabulary[0])}, "
            "which leaves nothing to compare",
            file=items.name,
            column=column,
            expected="two or more classes, and an attribute with two or more values",
            fix="name another column as `target:` or under `groups:`, or look at `map:`",
        )
    counts = {
        **items.counts,
        "mapped": sum(n for label, n in raw.sizes().items() if mapping.get(label, label) != label),
        **unused_entries(mapping, raw.vocabulary),
    }
    unit = None if source.unit is None else columns[source.unit]
    digest = items.inputs[items.name]
    ids = ids.gather(order)
    return LabelRows(items.name, source.target, ids, target, attributes, unit, digest, counts)


def without(column: Coded, missing: tuple[str, ...]) -> Coded:
    """Return a column where the texts listed are missing."""
    return column.relabel([None if text in missing else text for text in column.vocabulary])


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
        Each once, unless read otherwise.
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


def load_items(source: ItemSource | LabelSource, *, what: str = "items") -> Items:
    """Read and check a table of items.

    Parameters
    ----------
    source : ItemSource or LabelSource
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
    check_ids(table.texts[source.id], table.name)
    coded = {n: without(Coded.of(table.texts[n]), source.missing) for n in source.columns}
    for name, column in coded.items():
        if not column.vocabulary:
            raise DataError(
                "every cell is missing",
                file=table.name,
                column=name,
                expected="a value in at least some rows",
                fix=f"name another column, or look at `missing:` (now {listed(source.missing)})",
            )
    missing = {name: int((column.codes < 0).sum()) for name, column in coded.items()}
    ids = table.texts[source.id].to_numpy()
    counts = {"rows": table.rows, "missing": missing}
    return Items(table.name, source.id, ids, coded, {table.name: table.digest}, counts)


def unused_entries(mapping: Mapping[str, str], labels: Iterable[str]) -> dict[str, list[str]]:
    """Return the entries of a mapping that no label uses."""
    return {"map_unused": sorted({*mapping} - {*labels})}
