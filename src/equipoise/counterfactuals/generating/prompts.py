"""Tables of prompts and captions, checked at the edge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.counterfactuals.captions import CaptionSets
from equipoise.counterfactuals.generating.drawing import Group
from equipoise.counterfactuals.generating.parts import COLUMNS


@dataclass(frozen=True, eq=False)
class Asked:
    """What images are asked of.

    Attributes
    ----------
    table : pyarrow.Table
        As given; `id` is the column that names a row.
    id : str
        ``prompt_id`` or ``caption_id``.
    groups : tuple of Group
    candidates : int
        Of each group.
    """

    table: pa.Table = field(repr=False)
    id: str
    groups: tuple[Group, ...] = field(repr=False)
    candidates: int

    @property
    def images(self) -> int:
        """How many images are asked for."""
        return int(self.table.num_rows) * self.candidates


def asked_prompts(table: pa.Table, images: int) -> Asked:
    """Return prompts, each a group of its own.

    Raises
    ------
    InputError
        When a column is missing or has a name of ours, or ids are empty or repeat.
    """
    ids, prompts = _texts(table, "prompts", ("prompt_id", "prompt"))
    _check_names(table, "prompts", {"prompt_id", "prompt", "set"})
    sets = table["set"].to_pylist() if "set" in table.column_names else [None] * len(ids)
    groups = tuple(
        Group(name, (name,), (prompt,), (one,))
        for name, prompt, one in zip(ids, prompts, sets, strict=True)
    )
    return Asked(table, "prompt_id", groups, _counted("images", images))


def asked_captions(captions: CaptionSets | pa.Table, candidates: int) -> Asked:
    """Return captions, grouped by their sets in the order in which these appear.

    Raises
    ------
    InputError
        As of `asked_prompts`.
    """
    table = captions.table if isinstance(captions, CaptionSets) else captions
    ids, sets, texts = _texts(table, "captions", ("caption_id", "set", "caption"))
    _check_names(table, "captions", {"set"})
    members: dict[str, list[int]] = {}
    for place, name in enumerate(sets):
        members.setdefault(name, []).append(place)
    groups = tuple(
        Group(
            name,
            tuple(ids[place] for place in places),
            tuple(texts[place] for place in places),
            (name,) * len(places),
        )
        for name, places in members.items()
    )
    return Asked(table, "caption_id", groups, _counted("candidates", candidates))


def _counted(name: str, count: int) -> int:
    if count < 1:
        raise InputError(f"{name} is {count}; expected 1 or more")
    return count


def _texts(table: Any, what: str, columns: tuple[str, ...]) -> list[list[str]]:
    if not isinstance(table, pa.Table):
        raise InputError(f"{what} are a {type(table).__name__}; expected a pyarrow.Table")
    missing = [name for name in columns if name not in table.column_names]
    if missing or not table.num_rows:
        told = f"no column {missing[0]!r}" if missing else "no row"
        raise InputError(f"the table of {what} has {told}; expected {', '.join(columns)}")
    found = [table[name].to_pylist() for name in columns]
    for name, values in zip(columns, found, strict=True):
        for row, value in enumerate(values, start=1):
            if not isinstance(value, str) or not value:
                raise InputError(
                    f"the table of {what} has {value!r} as {name} in row {row}; expected a text"
                )
    seen: dict[str, int] = {}
    for row, value in enumerate(found[0], start=1):
        if value in seen:
            raise InputError(
                f"the table of {what} has the {columns[0]} {value!r} in rows {seen[value]} and "
                f"{row}; expected each once"
            )
        seen[value] = row
    return found


def _check_names(table: pa.Table, what: str, own: set[str]) -> None:
    taken = sorted(({*COLUMNS.names, "image"} - own) & {*table.column_names})
    if taken:
        raise InputError(
            f"the table of {what} has a column {taken[0]!r}, which names something of the images; "
            "expected another name"
        )


def read_prompts(path: Any) -> pa.Table:
    """Read prompts from a table: `prompt_id`, `prompt`, and whatever else it has.

    Parameters
    ----------
    path : path or data frame
        CSV, Parquet or JSON lines.

    Raises
    ------
    DataError
        When it cannot be read, or lacks one of the two.
    """
    from equipoise.counterfactuals.generating.elsewhere import columns_of
    from equipoise.data.tables import read_table

    source = path if isinstance(path, pa.Table) else str(path)
    columns, _ = columns_of(source)
    found = read_table(
        source, texts=dict.fromkeys(["prompt_id", "prompt", *columns]), role="prompts"
    )
    return pa.table({name: found.texts[name].to_arrow() for name in found.texts}).cast(
        pa.schema([(name, pa.string()) for name in found.texts])
    )
