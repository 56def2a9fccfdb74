"""Images that a model failed on, and images with the same bytes: counts by group, and in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.groups import Groups

Objects = npt.NDArray[np.object_]
Row = Mapping[str, Any]
Members = Mapping[str, Mapping[str, Collection[str]]]
"""Ids of the images of every group, by what makes the groups."""

FAILURES = pa.schema(
    [(name, pa.string()) for name in ("model", "on", "groups", "group", "stage")]
    + [(name, pa.int64()) for name in ("n", "of")]
)
"""Per model, what it ran on, group ("" are all images) and stage ("read", "decode" or "model"): how
many failed of how many."""


def members_of(
    ids: Objects, columns: Mapping[str, Objects], groups: Iterable[Sequence[str]]
) -> Members:
    """Return the ids of the images of every group.

    Parameters
    ----------
    ids : ndarray of str objects, shape (n,)
        May repeat: an image is in each of its groups once.
    columns : mapping of str to ndarray of objects, shape (n,)
        Attributes; None where missing.
    groups : iterable of sequences of str
        Attributes to group by, several for their intersection.
    """
    found: dict[str, dict[str, frozenset[str]]] = {}
    for attributes in groups:
        made = Groups.of({name: columns[name] for name in attributes})
        found[made.name] = {
            name: frozenset(ids[made.codes == code].tolist())
            for code, name in enumerate(made.names)
        }
    return found


def count_failures(
    model: str, on: str, failures: Mapping[str, str], every: Collection[str], members: Members
) -> list[Row]:
    """Count the images that failed by stage and group, as rows of `FAILURES`.

    Parameters
    ----------
    model, on : str
        And what it ran on.
    failures : mapping of str to str
        Stage by image id.
    every : collection of str
        Ids of all images that the model was to run on.
    members : Members
    """
    asked = {*every}
    groups = [("", "", asked)]
    groups += [
        (name, group, {*ids} & asked)
        for name, made in members.items()
        for group, ids in made.items()
    ]
    about = {"model": model, "on": on}
    return [
        about
        | {"groups": name, "group": group, "stage": stage}
        | {"n": sum(failures.get(one) == stage for one in ids), "of": len(ids)}
        for stage in sorted({*failures.values()})
        for name, group, ids in groups
        if ids
    ]


def failure_notes(rows: Sequence[Row]) -> Iterator[str]:
    """Say how many images each model has nothing for, and whether groups differ in it."""
    for place, own in _split(rows, "model", "on"):
        where = place[0] if place[1] == "images" else ", ".join(place)
        by_groups = dict(_split(own, "groups"))
        whole = by_groups.pop(("",))
        stages = "; ".join(f"{STAGES[row['stage']]}: {row['n']}" for row in whole)
        n = sum(row["n"] for row in whole)
        yield f"{where}: {n} of {whole[0]['of']} images failed and are in no number ({stages})."
        for (groups,), found in by_groups.items():
            yield from _apart(f"{where}, {groups}", found)


def _split(rows: Iterable[Row], *names: str) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    yield from found.items()


def _apart(where: str, rows: Sequence[Row]) -> Iterator[str]:
    """Name the groups that lost the smallest and the largest share, where they differ."""
    lost = {
        group: (sum(row["n"] for row in found), found[0]["of"])
        for (group,), found in _split(rows, "group")
    }
    ranked = sorted(lost, key=lambda one: Fraction(*lost[one]))
    (few, of_few), (many, of_many) = lost[ranked[0]], lost[ranked[-1]]
    if Fraction(few, of_few) < Fraction(many, of_many):
        yield (
            f"{where}: {many} of the {of_many} images of {ranked[-1]} failed, and {few} of the "
            f"{of_few} of {ranked[0]}."
        )


STAGES = {
    "read": "files that could not be read",
    "decode": "pictures that could not be decoded",
    "model": "the model gave no number",
}
"""What became of an image, by stage."""


Sets = Sequence[Sequence[str]]


def count_identical(identical: Sets, members: Members) -> dict[str, Any]:
    """Count the images that share their bytes with another, in all and by group.

    Parameters
    ----------
    identical : sequence of sequences of str
        The ids that stand for one picture together.
    members : Members
        Ids of the images of every group.
    """
    ids = {one for several in identical for one in several}
    groups = {
        name: {group: len(ids.intersection(own)) for group, own in made.items()}
        for name, made in members.items()
    }
    return {"images": len(ids), "pictures": len(identical), "groups": groups}


def identical_notes(
    what: str, identical: Sets, of: int, counts: Mapping[str, Any]
) -> Iterator[str]:
    """Say how many images share their bytes with another, and of which groups.

    Parameters
    ----------
    what : str
        What models ran on: "images", or the name of a table.
    identical : sequence of sequences of str
        The ids that stand for one picture together.
    of : int
        Number of all images.
    counts : mapping
        What `count_identical` returned.
    """
    pictures = len(identical)
    first = " and ".join(repr(one) for one in identical[0][:2])
    yield (
        f"{what}: {counts['images']} of {of} images have the same bytes as another ("
        f"{pictures} {'picture' if pictures == 1 else 'pictures'} under several ids, the first "
        f"{first}); every id keeps its row and counts."
    )
    for name, groups in counts["groups"].items():
        shares = ", ".join(f"{group} {n}" for group, n in groups.items())
        yield f"{what}, {name}: images with the same bytes as another are {shares}."
