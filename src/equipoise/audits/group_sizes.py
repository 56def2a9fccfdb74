"""Groups: their sizes for table, plan and notes, and which of their images a run lost."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, compress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.notes import Note, first_of
from equipoise.core import MIN_UNITS, AnyArray, DataError, Facts, Groups, Labels, Objects, encode
from equipoise.core.arrays import tally
from equipoise.core.columns import FLAG, INTEGER, TEXT, TEXTS
from equipoise.core.types import Json
from equipoise.data.problems import counted
from equipoise.report.text import count
from equipoise.stats.association import Association

Row = dict[str, Any]

MOST_GROUPS = 1_000
"""Groups that can be compared: pairs of them take a minute and two gigabytes beyond."""

_PROXY = 0.9

SCHEMA = pa.schema(
    {
        "groups": TEXT,
        "attributes": TEXTS,
        "group": TEXT,
        "levels": TEXTS,
        "n": INTEGER,
        "usable": FLAG,
        "note": TEXT,
    }
)


def groups_by(
    choices: Iterable[Sequence[str]],
    columns: Mapping[str, Labels],
    *,
    min_size: int = 1,
    units: Labels | None = None,
) -> list[Groups]:
    """Return the groups of each choice of attributes, from columns of labels and the units."""
    codes = None if units is None else encode(units, subject="units")[0]
    return [
        replace(
            Groups.of({name: columns[name] for name in attributes}, min_size=min_size), units=codes
        )
        for attributes in choices
    ]


def sizes_of(groups: Groups, *, missing: str = "an attribute is missing") -> Iterator[Row]:
    """Yield a row per group, and one without a name for rows that are in none.

    Parameters
    ----------
    groups : Groups
    missing : str
        Why rows are in no group.
    """
    for name, levels, n, usable, large in zip(
        groups.names, groups.levels, groups.counts.tolist(), groups.usable.tolist(),
        groups.large_enough.tolist(), strict=True,
    ):  # fmt: skip
        lacking = f"fewer than {MIN_UNITS} units" if large else f"fewer than {groups.min_size}"
        note = "" if usable else lacking
        yield size(groups.attributes, name, n, levels=levels, usable=usable, note=note)
    if groups.n_missing:
        yield size(groups.attributes, "", groups.n_missing, usable=False, note=missing)


def size(
    attributes: Iterable[str],
    group: str,
    n: int,
    *,
    levels: Iterable[str] = (),
    usable: bool,
    note: str = "",
) -> Row:
    """Return the row of one group."""
    names = [*attributes]
    return {
        "groups": " × ".join(names), "attributes": names, "group": group, "levels": [*levels],
        "n": n, "usable": usable, "note": note,
    }  # fmt: skip


def listed(groups: Groups) -> str:
    """Return the first groups with their sizes, for an error."""
    sizes = zip(groups.names, groups.counts.tolist(), strict=True)
    return first_of(f"{name}: {n}" for name, n in sizes) or "none has any"


def planned(
    groups: Groups, of: str, left_out: Mapping[str, int], *, of_labels: bool = False
) -> list[Row]:
    """Return the plan's rows of groups, then of items in no group.

    Parameters
    ----------
    groups : Groups
    of : str
        What is counted: "images" or "rows".
    left_out : mapping of str to int
        Rows that are in no group, by reason; see `lacking`.
    of_labels : bool
        Whether only labels of small groups aren't compared.
    """
    rows, compared = list[Row](), "labels_compared" if of_labels else "compared"
    for row in sizes_of(groups):
        if row["group"]:
            rows.append({
                "groups": groups.name, "group": row["group"], of: row["n"],
                compared: row["usable"], "note": row["note"],
            })  # fmt: skip
    for reason, n in left_out.items():
        if n:
            rows.append({
                "groups": groups.name, "group": "", of: n, compared: False, "note": reason,
            })  # fmt: skip
    return rows


def notes(groups: Groups, of: str, *, of_labels: bool = False) -> Iterator[Note]:
    """Yield notes on small groups, and on rows in no group.

    Parameters
    ----------
    groups : Groups
    of : str
        What is counted: "images" or "rows".
    of_labels : bool
        Whether only labels of small groups aren't compared.
    """
    subject = "labels of groups" if of_labels else "groups"
    if groups.levels and groups.large_enough.sum() < 2:
        yield all_small(groups, of)
        return
    small = ~groups.large_enough, groups.min_size, of, groups.counts
    rare = groups.large_enough & ~groups.usable, MIN_UNITS, "units", groups.n_units
    for left_out, least, items, counts in (small, rare):
        sizes = zip(groups.names, counts.tolist(), left_out.tolist(), strict=True)
        if few := [f"{name} ({n})" for name, n, out in sizes if out]:
            text = f"{subject} with fewer than {least} {items} are not compared: {first_of(few)}."
            yield Note(groups.name, text)
    if groups.n_missing:
        yield without_group(groups.name, groups.n_missing, of)


def without_group(groups: str, n: int, of: str) -> Note:
    """Return the note on rows in no group."""
    verb = "lacks an attribute and is" if n == 1 else "lack an attribute and are"
    text = f"{counted(n, of.removesuffix('s'))} {verb} in no group"
    return Note(groups, f"{text}; numbers over all {of} may include them.")


def all_small(groups: Groups, of: str) -> Note:
    """Return the note that no two groups are large enough, in one line."""
    return Note(
        groups.name,
        f"not compared, as no two of {counted(len(groups), 'group')} have {groups.min_size} or "
        f"more {of}; the largest has {groups.counts.max(initial=0)}.",
    )


def few_rows(all_groups: Iterable[Groups], of: str) -> Iterator[Note]:
    """Yield warnings about attributes with a few groups, all too small to compare."""
    for groups in all_groups:
        if len(groups.attributes) == 1 and _are_few_and_small(groups):
            yield Note(
                groups.name,
                f"not compared ({listed(groups)}). A comparison needs {groups.min_size} {of} in "
                "each of two groups.",
            )


def _are_few_and_small(groups: Groups) -> bool:
    occupied, large = tally(groups.counts > 0), tally(groups.large_enough)
    return 2 <= occupied <= _NAMED and large < 2


_NAMED = 10
"""Most groups that a warning names."""


def proxies(all_groups: Iterable[Groups]) -> Iterator[Note]:
    """Yield notes on pairs of attributes that predict each other, as copies do."""
    by_name = {groups.name: groups for groups in all_groups if len(groups.attributes) == 1}
    for first, second in combinations(by_name.values(), 2):
        if len(first.codes) != len(second.codes) or min(len(first), len(second)) < 2:
            continue
        both = (first.codes >= 0) & (second.codes >= 0)
        table = np.zeros((len(first), len(second)))
        np.add.at(table, (first.codes[both], second.codes[both]), 1.0)
        cramers_v = float(Association.of(table).cramers_v)
        if cramers_v >= _PROXY:
            yield Note(
                f"{first.name} and {second.name}",
                f"each predicts the other (Cramér's V {cramers_v:.2f}), so a "
                "difference by one may come from the other.",
            )


def sentinels(tables: Iterable[Facts], of: str) -> Iterator[Note]:
    """Yield warnings of values of attributes that count as missing.

    Parameters
    ----------
    tables : iterable of mapping
        Counts of tables; see `equipoise.data.Items`.
    of : str
        What a row is: "images" or "rows".
    """
    for attribute, sizes in _by_attribute(tables, "sentinels"):
        values = " and ".join(f"“{value}” ({count(n)} {of})" for value, n in sizes.items())
        verb, them = ("counts", "it") if len(sizes) == 1 else ("count", "them")
        texts = ", ".join(f'"{value}"' for value in ("", *sizes))
        yield Note(
            attribute,
            f"{values} {verb} as missing. Next to `table:`, write `missing: [{texts}]` to confirm "
            f"that, or `missing: []` to keep {them} in the comparison.",
        )


def looking_missing(tables: Iterable[Facts]) -> Iterator[Note]:
    """Yield notes on groups with names that look like missing values."""
    for attribute, words in _by_attribute(tables, "sentinels_kept"):
        yield Note(
            attribute,
            f"{', '.join(map(repr, words))} is taken for a group. If it is a missing value, list "
            "it under `missing:`, or leave it out with a rule `value_groups`.",
        )


def typos(tables: Iterable[Facts]) -> Iterator[Note]:
    """Yield notes on labels and groups of one row that look like a frequent one."""
    for column, labels in _by_attribute(tables, "typos"):
        for label, facts in labels.items():
            yield Note(
                column,
                f"“{label}” is in row {facts['row']} alone. Did you mean “{facts['like']}” "
                f"({count(facts['rows'])} rows)? If so, correct the table.",
            )


def _by_attribute(tables: Iterable[Facts], key: str) -> Iterator[tuple[str, Any]]:
    for counts in tables:
        yield from counts.get(key, {}).items()


def few_units(groups: Groups) -> str:
    """Say which of the groups that are compared have too few units; "" where none has."""
    if not groups.few_units:
        return ""
    sizes = zip(groups.names, groups.n_units.tolist(), groups.usable.tolist(), strict=True)
    few = first_of(f"{name} has {n}" for name, n, usable in sizes if usable and n < MIN_UNITS)
    return f"a verdict needs {MIN_UNITS} units in each group, and {few}"


def lacking(codes: Mapping[str, AnyArray]) -> dict[str, int]:
    """Count rows that are in no group, by the attributes that they lack.

    Parameters
    ----------
    codes : mapping of str to ndarray of int, shape (n,)
        Codes of each attribute; -1 where it is missing.

    Returns
    -------
    dict of str to int
        "gender missing", "race and gender missing": each row once.
    """
    missing = np.stack([attribute_codes < 0 for attribute_codes in codes.values()], axis=1)
    kinds, counts = np.unique(missing[missing.any(axis=1)], axis=0, return_counts=True)
    rows_by_names = dict[tuple[str, ...], int]()
    for kind, n in zip(kinds.tolist(), counts.tolist(), strict=True):
        rows_by_names[tuple(compress(codes, kind))] = n
    by_number = sorted(rows_by_names, key=lambda names: (len(names), names))
    return {f"{' and '.join(names)} missing": rows_by_names[names] for names in by_number}


class SmallGroupsError(DataError):
    """Fewer than two groups of a grouping are large enough to compare."""


def check_two(
    groups: Groups, problem: str, needed_items: str, *, file: str, alternative: str = "groups"
) -> None:
    """Refuse a grouping with fewer than two groups to compare.

    Parameters
    ----------
    groups : Groups
    problem, needed_items : str
        Words of the error: "groups race: fewer than two", "images that can be ranked".
    file : str
        Where the groups are from.
    alternative : str
        Another choice that the error suggests.

    Raises
    ------
    SmallGroupsError
        When fewer than two are large enough.
    """
    if groups.usable.sum() < 2:
        raise SmallGroupsError(
            f"{problem} have {groups.min_size} or more {needed_items} ({listed(groups)})",
            file=file,
            expected="at least two groups of that size",
            fix=f"choose other {alternative}, or lower data.min_group_size",
        )


def check_many(groups: Groups) -> None:
    """Refuse more groups than can be compared in about a minute.

    Raises
    ------
    DataError
        When more than `MOST_GROUPS` are large enough.
    """
    if (n_groups := int(groups.usable.sum())) > MOST_GROUPS:
        raise DataError(
            f"groups {groups.name}: {n_groups:,} groups have {groups.min_size} or more rows",
            expected=f"at most {MOST_GROUPS:,} groups to compare",
            fix="raise data.min_group_size, or merge groups in the table",
        )


def table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as the table."""
    return pa.Table.from_pylist([*rows], SCHEMA)


Members = Mapping[str, Mapping[str, Collection[str]]]
"""Ids of the images of every group, by what makes the groups."""

# Ids that end in a short part of their own after a name with a digit: person_01_a.jpg.
_ID_OF_UNIT = r"\A(.*\d\w*)[^a-zA-Z0-9.][a-zA-Z0-9]{1,3}(?:\.[a-zA-Z]{3,4})?\z"
_AT_ONCE = 1 << 18
# Names of units that have to repeat, and the most images of one on average.
_FEWEST_UNITS, _MOST_OF_UNIT = 10, 20


def repeated_units(ids: Objects, config: Mapping[str, Json]) -> Iterator[str]:
    """Yield a warning where ids look like several images of one unit, and none is declared.

    At least half of the ids have to share their beginning with others.
    """
    text = json.dumps(config, default=str)
    if '"unit": null' not in text or '"unit": "' in text or '"sets": "' in text:
        return
    unit = pl.col("id").str.extract(_ID_OF_UNIT).alias("unit")
    # Some at a time: few ids may have one.
    parts = (ids[start : start + _AT_ONCE].tolist() for start in range(0, len(ids), _AT_ONCE))
    named = pl.concat(
        [
            pl.DataFrame({"id": [*map(str, id_block)]}).with_columns(unit).drop_nulls()
            for id_block in parts
        ]
        or [pl.DataFrame({"id": [], "unit": []})]
    )
    units = named.group_by("unit", maintain_order=True)
    repeated = units.agg(pl.len(), pl.col("id").head(2)).filter(pl.col("len") > 1)
    n_repeating = int(repeated["len"].sum())
    if len(repeated) >= _FEWEST_UNITS and len(ids) / 2 <= n_repeating <= _MOST_OF_UNIT * len(
        repeated
    ):
        first = " and ".join(map(repr, repeated["id"][0].to_list()))
        yield (
            f"Ids such as {first} look like several images of one unit. Name its column in "
            "`unit`: images of one person that count as independent make false alarms frequent."
        )


FAILURES = pa.schema(
    {
        "model": TEXT,
        "on": TEXT,
        "groups": TEXT,
        "group": TEXT,
        "stage": TEXT,
        "n": INTEGER,
        "of": INTEGER,
    }
)
"""Per model, what it ran on, group ("" are all images) and stage ("read", "decode", "model",
"request", "cut" or "budget"): how many failed of how many."""


def ids_by_group(ids: Objects, groups: Iterable[Groups]) -> Members:
    """Return the ids of the images of every group; an id may repeat."""
    members: dict[str, dict[str, frozenset[str]]] = {}
    for grouping in groups:
        by_group = members[grouping.name] = {}
        for code, name in enumerate(grouping.names):
            by_group[name] = frozenset(ids[grouping.codes == code].tolist())
    return members


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
    return ids_by_group(ids, groups_by(groups, columns))


def count_failures(
    model: str,
    on: str,
    failures: Mapping[str, str],
    requested_ids: Collection[str],
    members: Members,
) -> list[dict[str, Json]]:
    """Count the images that failed by stage and group, as rows of `FAILURES`.

    Parameters
    ----------
    model, on : str
        And what it ran on.
    failures : mapping of str to str
        Stage by image id.
    requested_ids : collection of str
        Ids of all images that the model was to run on.
    members : Members
    """
    requested = {*requested_ids}
    by_group = [("", "", requested)]
    for name, groups in members.items():
        for group, ids in groups.items():
            by_group.append((name, group, requested.intersection(ids)))
    return [
        {
            "model": model, "on": on, "groups": name, "group": group, "stage": stage,
            "n": sum(failures.get(image_id) == stage for image_id in ids), "of": len(ids),
        }
        for stage in sorted({*failures.values()})
        for name, group, ids in by_group
        if ids
    ]  # fmt: skip
