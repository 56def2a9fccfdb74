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
"""Columns that a table of images needs; `candidate`, `state`, `reason`, `attributes` may be left
out."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Images in candidates: the rows of one stand together, one for each member of its set.

    Attributes
    ----------
    types : tuple of str
        Attributes that vary within sets.
    columns : mapping of str to ndarray of objects, shape (n,)
        Of the table, one row per member; of absent ones only what is the same throughout the
        candidate, and the attributes.
    state : ndarray of objects, shape (n,)
        "image", what the table says instead, or "absent" of a member that has no row.
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
        """Rows: images that were asked for."""
        return len(self.state)

    @cached_property
    def candidate(self) -> Indices:
        """Candidate of each row, shape (n,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @property
    def sizes(self) -> Indices:
        """Members of each candidate, shape (candidates,)."""
        return np.diff(self.starts)

    @property
    def made(self) -> Bools:
        """Whether there is an image, shape (n,)."""
        return np.asarray(self.state == IMAGE)

    def of_candidates(self, column: str) -> Objects:
        """Return what a column says of each candidate, shape (candidates,)."""
        return self.columns[column][self.starts[:-1]]

    @cached_property
    def combinations(self) -> tuple[str, ...]:
        """Attributes that vary together, joined by "-", sorted."""
        return tuple(sorted({*self.of_candidates("attributes").tolist()}))

    def every(self, rows: Bools) -> Bools:
        """Whether all rows of each candidate are so, shape (candidates,)."""
        if not len(self):
            return np.zeros(0, dtype=bool)
        return np.asarray(np.logical_and.reduceat(rows, self.starts[:-1]))

    def count(self, rows: npt.NDArray[Any]) -> Indices:
        """Add rows up by candidate, shape (candidates,)."""
        return np.asarray(np.bincount(self.candidate, rows, minlength=len(self)).astype(np.int64))

    def without(self, rows: Bools, state: str, reason: str = "") -> Candidates:
        """Return the candidates with another state of some images: those that cannot be read."""
        changed, why = self.state.copy(), self.columns["reason"].copy()
        changed[rows & self.made] = state
        why[rows & self.made] = reason
        return replace(self, state=changed, columns={**self.columns, "reason": why})


def candidates_of(table: pa.Table, attributes: Sequence[str], *, file: str = "") -> Candidates:
    """Put the images of a table in candidates, and add a row for every member that has none.

    Parameters
    ----------
    table : pyarrow.Table
        A row per image that was asked for: `image_id`, `set`, `caption` and the attributes, whose
        cells are null where they do not vary in a set. `candidate` numbers sets of images of the
        same captions; without it a set has one. `state` is "image" where there is one; without
        it everywhere. `attributes` names those that vary in a set, joined by "-"; without it
        those that have a value.
    attributes : sequence of str
    file : str
        The table as given, for messages.

    Raises
    ------
    DataError
        When a column is missing, an id repeats, or a set has two images of the same attributes.
    """
    types = tuple(attributes)
    columns = {name: _objects(table[name]) for name in _checked(table, types, file)}
    n = table.num_rows
    columns.setdefault("candidate", np.full(n, 0, dtype=object))
    columns.setdefault("state", np.full(n, IMAGE, dtype=object))
    columns.setdefault("reason", np.full(n, "", dtype=object))
    if "attributes" not in columns:
        columns["attributes"] = _varying([columns[one] for one in types], types)
    named = zip(columns["attributes"], columns["set"], strict=True)
    kept = np.array([bool(one) and owner is not None for one, owner in named], dtype=bool)
    columns = {name: one[kept] for name, one in columns.items()}
    if not kept.any():
        raise DataError(
            "no image has a set and a value of an attribute",
            file=file or None,
            expected=f"values of {', '.join(types)}",
        )
    owner, names, member, expected = _numbered(columns, types)
    _check_once(columns, owner, names, member, np.flatnonzero(kept), file)
    columns, owner, member = _filled(columns, types, owner, member, expected)
    order = np.lexsort((member, owner))
    columns = {name: one[order] for name, one in columns.items()}
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    state = columns.pop("state")
    return Candidates(
        types, columns, state, np.append(starts, len(order)), names, int(n - kept.sum())
    )


def _checked(table: pa.Table, types: Sequence[str], file: str) -> list[str]:
    for name in (*COLUMNS, *types):
        if name not in table.column_names:
            raise DataError(
                "there is no such column",
                file=file or None,
                column=name,
                expected=f"one of {', '.join(table.column_names)}",
                fix="rename a column, or name the attributes as the table does",
            )
    return list(table.column_names)


def _objects(column: pa.ChunkedArray) -> Objects:
    found = np.empty(len(column), dtype=object)
    found[:] = column.to_pylist()
    return found


def _varying(columns: Sequence[Objects], types: Sequence[str]) -> Objects:
    has = np.stack([np.array([bool(cell) for cell in one], dtype=bool) for one in columns], 1)
    patterns, which = np.unique(has, axis=0, return_inverse=True)
    texts = np.array(
        ["-".join(np.array(types, dtype=object)[one].tolist()) for one in patterns], dtype=object
    )
    return np.asarray(texts[which.ravel()], dtype=object)


def _numbered(
    columns: dict[str, Objects], types: Sequence[str]
) -> tuple[Indices, tuple[str, ...], Indices, dict[str, list[int]]]:
    """Number candidates by name and members by attributes; list the members of a combination."""
    keys = [*zip(columns["set"].tolist(), columns["candidate"].tolist(), strict=True)]
    distinct = sorted({*keys}, key=lambda one: (str(one[0]), one[1]))
    place = {key: index for index, key in enumerate(distinct)}
    owner = np.fromiter((place[key] for key in keys), np.int64, len(keys))
    names = tuple(f"{one}#{number}" for one, number in distinct)
    told = [*zip(*(columns[one].tolist() for one in ("attributes", *types)), strict=True)]
    # In the order of their first appearance, which is that of the captions.
    numbers = {member: index for index, member in enumerate(dict.fromkeys(told))}
    expected: dict[str, list[int]] = {}
    for one, index in numbers.items():
        expected.setdefault(one[0], []).append(index)
    member = np.fromiter((numbers[one] for one in told), np.int64, len(told))
    return owner, names, member, expected


def _check_once(
    columns: dict[str, Objects],
    owner: Indices,
    names: tuple[str, ...],
    member: Indices,
    rows: Indices,
    file: str,
) -> None:
    for what, labels in (
        ("image_id", np.unique(columns["image_id"].astype(str), return_inverse=True)[1]),
        ("set", owner * (int(member.max()) + 1) + member),
    ):
        order = np.argsort(labels, kind="stable")
        same = np.flatnonzero(np.diff(labels[order]) == 0)
        if not len(same):
            continue
        first, second = sorted(order[same[0] : same[0] + 2].tolist())
        told = (
            f"the id {columns['image_id'][first]!r}"
            if what == "image_id"
            else f"candidate {names[owner[first]]!r} has the same attributes"
        )
        raise DataError(
            f"{told} in rows {rows[first] + 1} and {rows[second] + 1}",
            file=file or None,
            column=what,
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
    wanted = np.concatenate(
        [
            index * count + np.array(expected[columns["attributes"][row]], dtype=np.int64)
            for index, row in enumerate(first_of.tolist())
        ]
    )
    absent = np.setdiff1d(wanted, owner * count + member)
    if not len(absent):
        return columns, owner, member
    owners, members = absent // count, absent % count
    example = np.unique(member, return_index=True)[1]
    sources = first_of[owners]
    same = {"set", "candidate", "attributes", "prefix", "subject"}
    filled = {}
    for name, one in columns.items():
        if name in types:
            more = one[example[members]]
        elif name in same:
            more = one[sources]
        else:
            more = np.full(len(absent), ABSENT if name == "state" else "", dtype=object)
        filled[name] = np.concatenate([one, more])
    return filled, np.concatenate([owner, owners]), np.concatenate([member, members])
