"""Candidates: sets of images that were generated together, one for each caption of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import AnyArray, Booleans, DataError, Integers, Objects, Strings, record
from equipoise.data.problems import check_columns

IMAGE, ABSENT = "image", "absent"
COLUMNS = ("image_id", "set", "caption")
"""Required columns of a table of images; `candidate`, `state` and `attributes` are optional."""


@record
class Candidates:
    """Images in candidates: the rows of one stand together, one for each member of its set.

    Attributes
    ----------
    types : tuple of str
        Attributes that vary within sets.
    columns : mapping of str to ndarray of objects, shape (n,)
        Of the table, one row per member; absent ones have only the attributes, and the columns
        that are the same throughout the candidate.
    state : ndarray of objects, shape (n,)
        "image", another state of the table, or "absent" of a member that has no row.
    starts : ndarray of int64, shape (candidates + 1,)
        Where the rows of each candidate begin.
    names : tuple of str
        Of the candidates, each once.
    left_out : int
        Rows without a value of any attribute, or of no set.
    """

    types: Strings
    columns: dict[str, Objects]
    state: Objects
    starts: Integers
    names: Strings
    left_out: int = 0

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.names)

    @property
    def images(self) -> int:
        """Number of images requested."""
        return len(self.state)

    @cached_property
    def candidate(self) -> Integers:
        """Candidate of each row, shape (n,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def sizes(self) -> Integers:
        """Members of each candidate, shape (candidates,)."""
        return np.diff(self.starts)

    @property
    def made(self) -> Booleans:
        """Whether there is an image, shape (n,)."""
        return np.asarray(self.state == IMAGE)

    def of_candidates(self, column: str) -> Objects:
        """Return the cell of each candidate in a column, shape (candidates,)."""
        return self.columns[column][self.starts[:-1]]

    @cached_property
    def combinations(self) -> Strings:
        """Attributes that vary together, joined by "-", sorted."""
        return tuple(sorted({*self.of_candidates("attributes").tolist()}))

    def count(self, rows: AnyArray) -> Integers:
        """Add rows up by candidate, shape (candidates,)."""
        return np.bincount(self.candidate, rows, minlength=len(self)).astype(np.int64)

    def without(self, rows: Booleans, state: str, reason: str = "") -> Candidates:
        """Return the candidates with another state of some images, such as unreadable ones."""
        changed = rows & self.made
        reasons = np.where(changed, reason, self.columns["reason"])
        states = np.where(changed, state, self.state)
        return replace(self, state=states, columns={**self.columns, "reason": reasons})


def candidates_of(table: pa.Table, attributes: Sequence[str], *, file: str = "") -> Candidates:
    """Put the images of a table in candidates, and add a row for every member that has none.

    Parameters
    ----------
    table : pyarrow.Table
        A row per requested image: `image_id`, `set`, `caption` and the attributes, whose cells are
        null where they do not vary in a set. `candidate` numbers sets of images of the same
        captions; without it a set has one. `state` is "image" where there is one; without it
        everywhere. `attributes` names those that vary in a set, joined by "-"; without it those
        that have a value.
    attributes : sequence of str
    file : str
        Name of the table, for messages.

    Raises
    ------
    DataError
        When a column is missing, an id repeats, or a set has two images of the same attributes.
    """
    types = tuple(attributes)
    check_columns(table.column_names, (*COLUMNS, *types), file)
    frame = pl.DataFrame(table)
    defaults = {"candidate": pl.lit(0), "state": pl.lit(IMAGE), "reason": pl.lit("")}
    frame = frame.with_columns(
        **{name: value for name, value in defaults.items() if name not in frame.columns}
    )
    if "attributes" not in frame.columns:
        named = [pl.when(pl.col(name).fill_null("") != "").then(pl.lit(name)) for name in types]
        varying = pl.concat_str(named, separator="-", ignore_nulls=True)
        frame = frame.with_columns(varying.alias("attributes"))
    rows = frame.filter((pl.col("attributes").fill_null("") != "") & pl.col("set").is_not_null())
    if rows.is_empty():
        raise DataError(
            "no image has a set and a value of an attribute",
            file=file,
            expected=f"values of {', '.join(types)}",
        )
    # Members are numbered in the order of their first appearance, which is that of the captions.
    cells, key = ["attributes", *types], ["set", "candidate"]
    set_name = pl.col("set").cast(pl.String)
    owners = rows.unique(key, keep="first", maintain_order=True)
    owners = owners.sort(set_name, "candidate").with_row_index("#owner")
    members = rows.select(cells).unique(maintain_order=True).with_row_index("#member")
    rows = rows.join(owners.select("#owner", *key), on=key)
    rows = rows.join(members, on=cells, nulls_equal=True)
    for column, keys in (("image_id", ["image_id"]), ("set", ["#owner", "#member"])):
        repeated = rows.filter(pl.struct(keys).is_duplicated())
        if len(repeated):
            raise DataError(
                f"two images have the {column} {repeated[column][0]!r} and the same attributes",
                file=file,
                column=column,
                expected="each image once, and one image for each member of a set",
                fix="number sets of images of the same captions in a column `candidate`",
            )
    shared = [*key, "attributes"]
    shared += [name for name in ("prefix", "subject") if name in frame.columns]
    expected = owners.select("#owner", *shared).join(members, on="attributes")
    own_columns = rows.drop(*shared, *types)
    full = expected.join(own_columns, on=["#owner", "#member"], how="left").sort(
        "#owner", "#member"
    )
    absent = full["state"].is_null().to_numpy()
    columns: dict[str, Objects] = {}
    for name in frame.columns:
        columns[name] = np.array(full[name].to_list(), dtype=object)
        if name not in (*shared, *types):
            columns[name][absent] = ABSENT if name == "state" else ""
    starts = np.flatnonzero(np.diff(full["#owner"].to_numpy().astype(np.int64), prepend=-1))
    names = owners.select(pl.format("{}#{}", set_name, "candidate")).to_series().to_list()
    return Candidates(
        types,
        columns,
        columns.pop("state"),
        np.append(starts, len(full)),
        tuple(names),
        len(frame) - len(rows),
    )
