"""Candidates: sets of images that were generated together, one for each caption of a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core import DataError

Objects = npt.NDArray[np.object_]
Indices = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

IMAGE, ABSENT = "image", "absent"
COLUMNS = ("image_id", "set", "caption")
"""Required columns of a table of images; `candidate`, `state` and `attributes` are optional."""


@dataclass(frozen=True, eq=False)
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

    types: tuple[str, ...]
    columns: dict[str, Objects] = field(repr=False)
    state: Objects = field(repr=False)
    starts: Indices = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    left_out: int = 0

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.names)

    @property
    def images(self) -> int:
        """Number of images requested."""
        return len(self.state)

    @cached_property
    def candidate(self) -> Indices:
        """Candidate of each row, shape (n,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def sizes(self) -> Indices:
        """Members of each candidate, shape (candidates,)."""
        return np.diff(self.starts)

    @property
    def made(self) -> Bools:
        """Whether there is an image, shape (n,)."""
        return np.asarray(self.state == IMAGE)

    def of_candidates(self, column: str) -> Objects:
        """Return the cell of each candidate in a column, shape (candidates,)."""
        return self.columns[column][self.starts[:-1]]

    @cached_property
    def combinations(self) -> tuple[str, ...]:
        """Attributes that vary together, joined by "-", sorted."""
        return tuple(sorted({*self.of_candidates("attributes").tolist()}))

    def every(self, rows: Bools) -> Bools:
        """Whether a condition holds for all rows of each candidate, shape (candidates,)."""
        return np.asarray(self.count(rows) == self.sizes)

    def count(self, rows: npt.NDArray[Any]) -> Indices:
        """Add rows up by candidate, shape (candidates,)."""
        return np.asarray(np.bincount(self.candidate, rows, minlength=len(self)).astype(np.int64))

    def without(self, rows: Bools, state: str, reason: str = "") -> Candidates:
        """Return the candidates with another state of some images, such as unreadable ones."""
        lost = rows & self.made
        reasons = np.where(lost, reason, self.columns["reason"]).astype(object)
        return replace(
            self,
            state=np.where(lost, state, self.state).astype(object),
            columns={**self.columns, "reason": reasons},
        )


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
    types, n = tuple(attributes), table.num_rows
    for name in (*COLUMNS, *types):
        if name not in table.column_names:
            raise DataError(
                "there is no such column",
                file=file or None,
                column=name,
                expected=f"one of {', '.join(table.column_names)}",
                fix="rename a column, or name the attributes as the table does",
            )
    columns = {name: _objects(table[name].to_pylist()) for name in table.column_names}
    for name, value in (("candidate", 0), ("state", IMAGE), ("reason", "")):
        columns.setdefault(name, _objects([value] * n))
    if "attributes" not in columns:
        values = zip(*(columns[name].tolist() for name in types), strict=True)
        columns["attributes"] = _objects(
            ["-".join(t for t, cell in zip(types, row, strict=True) if cell) for row in values]
        )
    named = zip(columns["attributes"], columns["set"], strict=True)
    kept = np.flatnonzero([bool(types) and owner is not None for types, owner in named])
    if not len(kept):
        raise DataError(
            "no image has a set and a value of an attribute",
            file=file or None,
            expected=f"values of {', '.join(types)}",
        )
    columns = {name: column[kept] for name, column in columns.items()}
    keys = [*zip(columns["set"].tolist(), columns["candidate"].tolist(), strict=True)]
    distinct = sorted({*keys}, key=lambda key: (str(key[0]), key[1]))
    owner = _places(keys, distinct)
    names = tuple(f"{name}#{number}" for name, number in distinct)
    # Members are numbered in the order of their first appearance, which is that of the captions.
    cells = [*zip(*(columns[name].tolist() for name in ("attributes", *types)), strict=True)]
    members = [*dict.fromkeys(cells)]
    member = _places(cells, members)
    ids = columns["image_id"].astype(str)
    _check_once("image_id", ids, ids, kept, file)
    of_sets = _objects([names[place] for place in owner.tolist()])
    _check_once("set", owner * len(members) + member, of_sets, kept, file)
    expected: dict[str, list[int]] = {}
    for place, (combination, *_) in enumerate(members):
        expected.setdefault(combination, []).append(place)
    columns, owner, member = _filled(columns, types, owner, member, expected)
    order = np.lexsort((member, owner))
    columns = {name: column[order] for name, column in columns.items()}
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    state = columns.pop("state")
    return Candidates(types, columns, state, np.append(starts, len(order)), names, n - len(kept))


def _objects(values: Sequence[Any]) -> Objects:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _places(values: Sequence[Any], names: Sequence[Any]) -> Indices:
    place = {name: index for index, name in enumerate(names)}
    return np.array([place[value] for value in values], dtype=np.int64)


def _check_once(
    column: str,
    labels: npt.NDArray[Any],
    names: npt.NDArray[Any],
    rows: npt.NDArray[Any],
    file: str,
) -> None:
    order = np.argsort(labels, kind="stable")
    same = np.flatnonzero(labels[order][1:] == labels[order][:-1])
    if len(same):
        first, second = sorted(order[same[0] : same[0] + 2].tolist())
        raise DataError(
            f"{names[first]!r} has the same {column} and attributes in rows {rows[first] + 1} and "
            f"{rows[second] + 1}",
            file=file or None,
            column=column,
            expected="each image once, and one image for each member of a set",
            fix="number sets of images of the same captions in a column `candidate`",
        )


def _filled(
    columns: dict[str, Objects],
    types: Sequence[str],
    owner: Indices,
    member: Indices,
    expected: dict[str, list[int]],
) -> tuple[dict[str, Objects], Indices, Indices]:
    """Add the members that candidates lack."""
    count = int(member.max()) + 1
    first_of = np.unique(owner, return_index=True)[1]
    combinations = columns["attributes"][first_of].tolist()
    wanted = [
        place * count + index for place, name in enumerate(combinations) for index in expected[name]
    ]
    absent = np.setdiff1d(wanted, owner * count + member)
    owners, members = absent // count, absent % count
    example = np.unique(member, return_index=True)[1]
    filled = {}
    for name, column in columns.items():
        if name in types:
            more = column[example[members]]
        elif name in ("set", "candidate", "attributes", "prefix", "subject"):
            more = column[first_of[owners]]
        else:
            more = np.full(len(absent), ABSENT if name == "state" else "", dtype=object)
        filled[name] = np.concatenate([column, more])
    return filled, np.concatenate([owner, owners]), np.concatenate([member, members])
