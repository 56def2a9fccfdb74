"""Images that a model failed on, and images with the same bytes: counts by group, and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from equipoise.core.arrays import Objects
from equipoise.core.groups import Groups

Members = Mapping[str, Mapping[str, Collection[str]]]
"""Ids of the images of every group, by what makes the groups."""

FAILURES = pa.schema(
    [(name, pa.string()) for name in ("model", "on", "groups", "group", "stage")]
    + [(name, pa.int64()) for name in ("n", "of")]
)
"""Per model, what it ran on, group ("" are all images) and stage ("read", "decode" or "model"): how
many failed of how many."""


def ids_by_group(ids: Objects, groups: Iterable[Groups]) -> Members:
    """Return the ids of the images of every group; an id may repeat."""
    return {
        each.name: {
            name: frozenset(ids[each.codes == code].tolist())
            for code, name in enumerate(each.names)
        }
        for each in groups
    }


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
    every = (Groups.of({name: columns[name] for name in attributes}) for attributes in groups)
    return ids_by_group(ids, every)


def count_failures(
    model: str, on: str, failures: Mapping[str, str], every: Collection[str], members: Members
) -> list[dict[str, Any]]:
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
    requested = {*every}
    by_group = [("", "", requested)] + [
        (name, group, requested.intersection(ids))
        for name, groups in members.items()
        for group, ids in groups.items()
    ]
    return [
        {
            "model": model, "on": on, "groups": name, "group": group, "stage": stage,
            "n": sum(failures.get(each) == stage for each in ids), "of": len(ids),
        }
        for stage in sorted({*failures.values()})
        for name, group, ids in by_group
        if ids
    ]  # fmt: skip


def failure_notes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield how many images each model failed on, and whether groups differ in it."""
    if not rows:
        return
    table = pl.from_dicts([*rows], infer_schema_length=None)
    lost = table.group_by("model", "on", "groups", "group", maintain_order=True).agg(
        pl.col("n").sum(), pl.col("of").first()
    )
    for (model, on, groups), own in lost.group_by("model", "on", "groups", maintain_order=True):
        where = str(model) if on == "images" else f"{model}, {on}"
        ranked = own.sort(pl.col("n") / pl.col("of"), maintain_order=True).rows(named=True)
        few, many = ranked[0], ranked[-1]
        if not groups:
            yield f"{where}: {many['n']} of {many['of']} images failed and are in no number."
        elif few["n"] * many["of"] < many["n"] * few["of"]:
            yield (
                f"{where}, {groups}: {many['n']} of the {many['of']} images of {many['group']} "
                f"failed, and {few['n']} of the {few['of']} of {few['group']}."
            )


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
    ids = {each for several in identical for each in several}
    groups = {
        name: {group: len(ids.intersection(own)) for group, own in groups.items()}
        for name, groups in members.items()
    }
    return {"images": len(ids), "pictures": len(identical), "groups": groups}


def identical_notes(what: str, identical: Sets, of: int, members: Members) -> Iterator[str]:
    """Yield how many images share their bytes with another, and of which groups.

    Parameters
    ----------
    what : str
        What models ran on: "images", or the name of a table.
    identical : sequence of sequences of str
        The ids that stand for one picture together.
    of : int
        Number of all images.
    members : Members
    """
    counts = count_identical(identical, members)
    yield (
        f"{what}: {counts['images']} of {of} images have the same bytes as another, such as "
        f"{' and '.join(map(repr, identical[0][:2]))}; every id keeps its row and counts."
    )
    for name, groups in counts["groups"].items():
        shares = ", ".join(f"{group} {n}" for group, n in groups.items())
        yield f"{what}, {name}: images with the same bytes as another are {shares}."
