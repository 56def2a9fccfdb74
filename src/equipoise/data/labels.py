"""Labels of items: coded, read from tables, or produced by models."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import and_
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.core import (
    AnyArray,
    Booleans,
    DataError,
    Facts,
    Fields,
    Integers,
    Integers32,
    Objects,
    Strings,
    encode,
    record,
    tally,
)
from equipoise.core.labels import Encoded
from equipoise.core.types import FileFacts
from equipoise.data.number_marks import fix_of_number
from equipoise.data.problems import check_ids, listed, nearest, show
from equipoise.data.quantities import check_groups, check_target
from equipoise.data.sentinels import DEFAULT_MISSING, Sentinels
from equipoise.data.tables import NamedFrame, Table, read_table


@record
class Coded(Encoded):
    """Labels as integer codes into a vocabulary, with operations for tables."""

    @classmethod
    def of(cls, texts: pl.Series) -> Coded:
        """Encode a text column: missing and empty cells are -1, the vocabulary sorted."""
        return cls(*encode(texts))

    def take(self, rows: AnyArray) -> Coded:
        """Return the labels of a selection of rows (indices or a mask)."""
        return Coded(self.codes[rows], self.vocabulary)

    def sizes(self) -> dict[str, int]:
        """Return how often each label occurs."""
        return dict(zip(self.vocabulary, self.counts.tolist(), strict=True))

    def column(self) -> Coded:
        """Return the labels, shape (n,), as labels of a single rank, shape (n, 1)."""
        return Coded(self.codes[:, None], self.vocabulary)

    def equals(self, label: str) -> Booleans:
        """Return a mask of the cells with a label, of the shape of `codes`."""
        if label not in self.vocabulary:
            return np.zeros(self.codes.shape, dtype=np.bool_)
        return np.asarray(self.codes == self.vocabulary.index(label))

    def codes_in(self, vocabulary: Sequence[str]) -> Integers32:
        """Return codes into another vocabulary; -1 where it lacks the label."""
        index = {name: code for code, name in enumerate(vocabulary)}
        table = [*(index.get(name, -1) for name in self.vocabulary), -1]
        return np.array(table, dtype=np.int32)[self.codes]

    @cached_property
    def values(self) -> AnyArray:
        """The labels as objects, of the shape of `codes`; None if missing."""
        names = np.empty(len(self.vocabulary) + 1, dtype=object)
        names[:-1] = self.vocabulary
        return names[self.codes]

    @cached_property
    def counts(self) -> Integers:
        """How often each label occurs, shape (vocabulary,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.vocabulary))

    def relabel(self, names: Sequence[str | None], *, first: Iterable[str] = ()) -> Coded:
        """Replace each label of the vocabulary by another label or None.

        Parameters
        ----------
        names : sequence of str or None, one per label of the vocabulary
        first : iterable of str
            Labels that lead the new vocabulary in this order, used or not; the rest is sorted.
        """
        lead = tuple(dict.fromkeys(first))
        remaining = {name for name in names if name is not None} - set(lead)
        vocabulary = (*lead, *sorted(remaining))
        index = {name: code for code, name in enumerate(vocabulary)} | {None: -1}
        table = np.array([*(index[name] for name in names), -1], dtype=np.int32)
        return Coded(table[self.codes], vocabulary)


Content = Literal["embeddings", "scores", "probabilities", "labels", "answers", "choices", "images"]


@dataclass(frozen=True)
class Choices:
    """Labels that a model may predict, known before it runs.

    Attributes
    ----------
    labels : tuple of str
        Before any mapping.
    ranks : int
        How many of them each item gets.
    listed : bool
        Whether the user listed them for the model, so that each should be a class of the target;
        otherwise they are the model's own classes.
    """

    labels: Strings
    ranks: int
    listed: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Outputs:
    """A model's outputs, an entry per item.

    Attributes
    ----------
    model : str
        Its name in the config.
    content : str
    source : str
        How errors name the outputs: the user's file, or the key of the config that the model
        answers to, such as "models.clip.vocabulary".
    ids : polars.Series, shape (m,)
        Of the items with outputs; named after their column in a file, "" otherwise.
    labels : Coded (m, k) or None
        Texts by rank: labels or answers.
    values : ndarray (m, width) or None
        Embeddings, scores or probabilities. NaN in every column where a row is empty.
    names : tuple of str
        Of the columns of `values`: texts or classes; () for embeddings.
    column : str or None
        Column of the texts in the file.
    rows : int
        Rows of the file.
    requested : ndarray of str objects or None
        Ids that the model was run on; None for outputs from a file, and for generated images.
    failed : mapping of str to str
        Ids of the requested items without outputs: "read", "decode" or "model", the stage at
        which they failed. They aren't unmatched.
    on : str
        What the model ran on: "images", "queries", the name of a table.
    info : mapping
        What the model is, as the manifest keeps it; `scale` and `bias` of a dual encoder.
    inputs : mapping
        Per file "sha256", "bytes", "rows".
    identical : tuple of tuples of str
        Ids that share one picture's bytes.
    pending : mapping or None
        In a dry run: what is to do, see `RunPlan.runs`. The entries are stand-ins of the right
        shape, and only `choices` says what they may be.
    choices : Choices or None
    states : ndarray of int, shape (m,), or None
        Places in `STATES`, where the file says the state of each item; 0 leaves it to the texts.
    """

    model: str
    content: Content
    source: str
    ids: pl.Series
    labels: Coded | None = None
    values: AnyArray | None = None
    names: Strings = ()
    column: str | None = None
    rows: int = 0
    requested: Objects | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    on: str = "images"
    info: Facts = field(default_factory=dict)
    inputs: Mapping[str, FileFacts] = field(default_factory=dict)
    identical: tuple[Strings, ...] = ()
    pending: Facts | None = None
    choices: Choices | None = None
    states: Integers32 | None = None

    def without(self, ids: Iterable[str]) -> Outputs:
        """Return the outputs of other items."""
        is_other = ~self.ids.is_in([*ids])
        if is_other.all():
            return self
        mask = is_other.to_numpy()
        labels = None if self.labels is None else self.labels.take(mask)
        values = None if self.values is None else self.values[mask]
        states = None if self.states is None else self.states[mask]
        ids = self.ids.filter(is_other)
        return replace(self, ids=ids, labels=labels, values=values, states=states)

    @property
    def live(self) -> bool:
        """Whether the model was run, or will be, for these outputs."""
        return self.requested is not None

    @property
    def planned(self) -> bool:
        """Whether the model has yet to run: the entries are stand-ins."""
        return self.pending is not None

    @property
    def numbers(self) -> AnyArray:
        """The values, of outputs that have them."""
        if self.values is None:
            raise TypeError(f"{self.source}: {self.content} have no numbers")
        return self.values


@dataclass(frozen=True, kw_only=True)
class CsvOptions:
    """How the cells of a table are written.

    Attributes
    ----------
    missing : tuple of str
        Texts that mean "missing", beside the empty cell. They do not apply to ids. Unless listed,
        group attributes have sentinels, too; see `equipoise.data.sentinels`.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.
    """

    missing: Strings = DEFAULT_MISSING
    encoding: str = "utf-8"
    delimiter: str = ","


@dataclass(frozen=True)
class Where:
    """A filter of rows by a column; rows with a missing cell are excluded.

    Attributes
    ----------
    values : tuple of str
        The texts allowed; any unless given.
    min, max : float or None
        Bounds of a number, both allowed values themselves.
    """

    values: Strings = ()
    min: float | None = None
    max: float | None = None

    def keeps(self, cells: pl.Series, file: str) -> pl.Series:
        """Return whether each row takes part.

        Raises
        ------
        DataError
            When a cell is no number and there are bounds.
        """
        allowed = cells.is_in([*self.values]) if self.values else cells.is_not_null()
        if self.min is None and self.max is None:
            return allowed.fill_null(value=False)
        numbers = cells.cast(pl.Float64, strict=False)
        if numbers.null_count() > cells.null_count():
            row = int((numbers.is_null() & cells.is_not_null()).arg_max() or 0)
            raise DataError(
                f"{cells[row]!r} isn't a number", file=file, column=cells.name, row=row + 1,
                expected="numbers, since `where` has bounds",
                fix=f"name texts under `values:`, or {fix_of_number(cells[row])}",
            )  # fmt: skip
        low = -math.inf if self.min is None else self.min
        high = math.inf if self.max is None else self.max
        return (allowed & numbers.is_between(low, high)).fill_null(value=False)


@dataclass(frozen=True)
class ItemSource(CsvOptions):
    """A table with a row per item; see `CsvOptions` for its cells.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, or any data frame.
    id : str
        Column of the id, different in every row.
    columns : tuple of str
        The columns needed: attributes, unit, set, query, ...
    where : mapping of str to Where
        By column the rows that take part; all unless given.
    attributes : tuple of str
        The columns whose values are groups.
    levels : tuple of str
        Values of attributes that stay groups though they look missing.
    """

    table: Path | Any
    id: str
    columns: Strings = ()
    where: Mapping[str, Where] = field(default_factory=dict)
    attributes: Strings = ()
    levels: Strings = ()


@dataclass(frozen=True)
class LabelSource(CsvOptions):
    """A table of images with true classes and attributes; see also `CsvOptions`.

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
    where : mapping of str to Where
        By column the rows that take part; all unless given.
    derived : tuple of str
        The attributes whose values a rule declares, so that none is a sentinel.
    levels : tuple of str
        Values of attributes that stay groups though they look missing.
    """

    table: Path | Any
    id: str
    target: str | None
    attributes: Strings
    unit: str | None = None
    map: Mapping[str, str] | None = None
    where: Mapping[str, Where] = field(default_factory=dict)
    derived: Strings = ()
    levels: Strings = ()

    @property
    def columns(self) -> Strings:
        """The needed columns, without repeats."""
        named = (self.target, *self.attributes, self.unit)
        return tuple(dict.fromkeys(name for name in named if name is not None))


@record
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
    left_out : tuple of str
        Ids of rows that take no part.
    """

    file: str
    column: str | None
    ids: pl.Series
    target: Coded
    attributes: Mapping[str, Coded]
    unit: Coded | None
    digest: FileFacts
    counts: Facts
    left_out: Strings = ()


def read_labels(source: LabelSource) -> LabelRows:
    """Read and check the labels.

    Raises
    ------
    DataError
        As `load_items`; also when the target has fewer than two classes, or numbers with
        decimals, or no attribute has two values.
    """
    items = load_items(source, subject="labels")
    ids = pl.Series(source.id, items.ids, dtype=pl.String)
    order = ids.arg_sort().to_numpy()
    columns = {name: column.take(order) for name, column in items.coded.items()}
    unknown, mapping = Coded(np.full(len(items), -1, dtype=np.int32), ()), dict(source.map or {})
    raw = unknown if source.target is None else columns[source.target]
    target = raw.relabel([mapping.get(label, label) for label in raw.vocabulary])
    check_target(target, str(source.target), items.name)
    attributes = {name: columns[name] for name in source.attributes}
    single = [(name, column) for name, column in attributes.items() if len(column.vocabulary) == 1]
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
    return LabelRows(
        items.name, source.target, ids, target, attributes, unit, digest, counts, items.left_out
    )


def without(column: Coded, missing: Strings) -> Coded:
    """Return a column where the texts listed are missing."""
    return column.relabel([None if text in missing else text for text in column.vocabulary])


@record
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
        "rows", and "missing": rows by column where it is missing. "sentinels": by attribute, rows
        of each value that counts as missing; "sentinels_kept": words for it that stay groups.
        "typos": by target or attribute, labels of one row that look like one of hundreds.
    left_out : tuple of str
        Ids of rows of the table that take no part; see `Where`.
    row_mask : ndarray of bool, or None
        Rows of the table that take part; None: all.
    """

    name: str
    id: str
    ids: Objects
    coded: Mapping[str, Coded]
    inputs: Mapping[str, FileFacts]
    counts: Facts
    left_out: Strings = ()
    row_mask: Booleans | None = None

    @property
    def table_rows(self) -> int:
        """Number of rows in the table, used or not."""
        return len(self) if self.row_mask is None else len(self.row_mask)

    @property
    def places(self) -> Integers:
        """Row of each item in the table, from 0."""
        return np.arange(len(self)) if self.row_mask is None else np.flatnonzero(self.row_mask)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.ids)

    @cached_property
    def columns(self) -> Mapping[str, Objects]:
        """Columns as arrays of text, each of shape (n,); None if missing."""
        return {name: column.values for name, column in self.coded.items()}


def load_items(source: ItemSource | LabelSource, *, subject: str = "items") -> Items:
    """Read and check a table of items.

    Parameters
    ----------
    source : ItemSource or LabelSource
    what : str
        What the items are ("images", "words", ...); stands for the file name of a data frame.

    Raises
    ------
    DataError
        When the table cannot be read, an id is empty or repeats, a column is missing in every
        row, or one of attributes holds a quantity.
    """
    table = read_table(
        source.table,
        texts=(source.id, *source.columns, *source.where),
        role=subject,
        encoding=source.encoding,
        delimiter=source.delimiter,
    )
    all_ids = table.texts[source.id]
    part, row_mask = part_of(table, source.id, source.where)
    texts = part.texts
    left_out = source.table.left_out if isinstance(source.table, NamedFrame) else ()
    if row_mask is not None:
        # Of a table with rows of several models an id is in other rows, too.
        filtered_ids = all_ids.filter(~row_mask)
        left_out = (
            *left_out,
            *filtered_ids.filter(~filtered_ids.is_in(texts[source.id].implode())),
        )
    coded = {n: without(Coded.of(texts[n]), source.missing) for n in source.columns}
    sentinels = Sentinels(source.levels, source.missing)
    declared = (source.target, *source.derived) if isinstance(source, LabelSource) else ()
    for name in source.attributes:
        if name not in declared:
            coded[name] = without(coded[name], sentinels.of(name, coded[name].sizes()))
            check_groups(coded[name], name, table.name, source.levels)
    for name, column in coded.items():
        if not column.vocabulary:
            raise DataError(
                "every cell is missing",
                file=table.name,
                column=name,
                expected="a value in at least some rows",
                fix=f"name another column, or look at `missing:` (now {listed(source.missing)})",
            )
    missing = {name: tally(column.codes < 0) for name, column in coded.items()}
    ids = texts[source.id].to_numpy()
    counts: Fields = {"rows": len(ids), "missing": missing, **sentinels.counts}
    named = {name for name in (*source.attributes, *declared) if name is not None}
    mapped = (source.map or {}) if isinstance(source, LabelSource) else {}
    places = np.arange(len(ids)) if row_mask is None else np.flatnonzero(row_mask.to_numpy())
    typos = {name: _typos(coded[name], mapped, places) for name in sorted(named)}
    typos = {name: labels for name, labels in typos.items() if labels}
    counts |= {"typos": typos} if typos else {}
    counts |= {"left_out_by_where": table.rows - len(ids)} if source.where else {}
    return Items(
        table.name, source.id, ids, coded, {table.name: table.digest}, counts, left_out,
        None if row_mask is None else row_mask.to_numpy(),
    )  # fmt: skip


def part_of(
    table: Table, id_column: str, where: Mapping[str, Where]
) -> tuple[Table, pl.Series | None]:
    """Return the rows that take part, each with an id of its own, and their mask; None if all do.

    Raises
    ------
    DataError
        When none does, or an id is empty or repeats among them.
    """
    row_mask = _row_mask(table, where)
    part = table if row_mask is None else table.filter(row_mask)
    rows = None if row_mask is None else row_mask.arg_true().to_numpy()
    check_ids(part.texts[id_column], table.name, rows=rows)
    return part, row_mask


def rows_where(table: Table, where: Mapping[str, Where]) -> Table:
    """Return the rows that take part; ids may repeat.

    Raises
    ------
    DataError
        When none does.
    """
    row_mask = _row_mask(table, where)
    return table if row_mask is None else table.filter(row_mask)


_MANY_ROWS, _ALIKE = 100, 0.8


def _typos(column: Coded, mapped: Collection[str], places: Integers) -> dict[str, Fields]:
    """Return the labels of one row that look like one of hundreds: its row, and that label.

    Labels with other digits are others: n0213 isn't n0214.
    """
    sizes = column.sizes()
    frequent = [label for label, n in sizes.items() if n >= _MANY_ROWS]
    typos = dict[str, Fields]()
    for label, n in sizes.items():
        if n != 1 or label in mapped:
            continue
        digits = [*filter(str.isdigit, label)]
        similar = nearest(
            label, [name for name in frequent if [*filter(str.isdigit, name)] == digits],
            cutoff=_ALIKE,
        )  # fmt: skip
        if similar is not None:
            (row,) = np.flatnonzero(column.equals(label))
            typos[label] = {"row": int(places[row]) + 1, "like": similar, "rows": sizes[similar]}
    return typos


def _row_mask(table: Table, where: Mapping[str, Where]) -> pl.Series | None:
    """Return a mask of the rows that take part; None if all do.

    Raises
    ------
    DataError
        When none does, or a cell is no number where there are bounds.
    """
    if not where:
        return None
    return fitting_rows({name: table.texts[name] for name in where}, where, table.name)


def fitting_rows(
    columns: Mapping[str, pl.Series], where: Mapping[str, Where], name: str
) -> pl.Series:
    """Return a mask of the rows that take part.

    Raises
    ------
    DataError
        When none does, or a cell is no number where there are bounds.
    """
    fits = {column: condition.keeps(columns[column], name) for column, condition in where.items()}
    allowed = reduce(and_, fits.values())
    if not allowed.any():
        # The condition that no row fits by itself, where there is one.
        column = next((column for column in fits if not fits[column].any()), next(iter(where)))
        values = columns[column].drop_nulls().unique().sort().to_list()
        raise DataError(
            f"no row fits `where`: {listed([*where])}",
            file=name,
            expected=f"at least one row that takes part; the column {column!r} has the values "
            f"{listed(values)}",
            fix="correct the values under `where:`",
        )
    return allowed


def unused_entries(mapping: Mapping[str, str], labels: Iterable[str]) -> dict[str, list[str]]:
    """Return the entries of a mapping that no label uses."""
    return {"map_unused": sorted({*mapping} - {*labels})}
