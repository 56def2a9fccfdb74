"""The tables beside the findings of an audit of diversity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.diversity.loading import DiversityData
from equipoise.audits.diversity.measuring import MeasuredPart
from equipoise.audits.group_sizes import size

Row = dict[str, Any]

_TEXT = ("model", "groups", "within", "set_a", "set_b", "set", "image_id")
_WHOLE = ("n_a", "n_b", "rank")
_COLUMNS = {
    "distances": (
        "model", "groups", "within", "set_a", "set_b", "distance", "low", "high", "n_a", "n_b",
    ),
    "subsets": ("model", "groups", "within", "set", "rank", "image_id"),
}  # fmt: skip


def tables_of(measured: Sequence[MeasuredPart], data: DiversityData) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/diversity.md."""
    rows = {
        "distances": [*_distances(measured)],
        "subsets": [*_subsets(measured, data)],
    }
    found = {name: _table(name, some) for name, some in rows.items() if some}
    return {**found, "group_sizes": group_sizes.table(_sizes(measured))}


def _where(one: MeasuredPart) -> Row:
    return {"model": one.part.model, "groups": one.part.groups, "within": one.part.within}


def _distances(measured: Iterable[MeasuredPart]) -> Iterator[Row]:
    for one in measured:
        for row in () if one.matrix is None else one.matrix.to_pylist():
            yield _where(one) | row


def _subsets(measured: Iterable[MeasuredPart], data: DiversityData) -> Iterator[Row]:
    for one in measured:
        for name, images in one.subsets.items():
            for rank, image in enumerate(images.tolist(), start=1):
                yield _where(one) | {"set": name, "rank": rank, "image_id": data.images.ids[image]}


def _sizes(measured: Sequence[MeasuredPart]) -> Iterator[Row]:
    """Sizes of the sets by the first model: others differ only in images without an embedding."""
    for one in measured:
        if one.part.model != measured[0].part.model:
            continue
        for name, rows in one.part.images.items():
            yield _size(one, name, len(rows), note="")
        for name, n in one.part.small.items():
            yield _size(one, name, n, note="too small to be measured")


def _size(one: MeasuredPart, name: str, n: int, *, note: str) -> Row:
    within = f"{one.part.within}: " if one.part.within else ""
    levels = name.split(", ")
    return size(one.part.groups, f"{within}{name}", n, levels=levels, usable=not note, note=note)


def _table(name: str, rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([(one, _type(one)) for one in _COLUMNS[name]]))


def _type(column: str) -> pa.DataType:
    if column in _TEXT:
        return pa.string()
    return pa.int64() if column in _WHOLE else pa.float64()
