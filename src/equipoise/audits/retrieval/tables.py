"""The tables beside the findings of an audit of retrieval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.group_sizes import sizes_of
from equipoise.audits.retrieval.measuring import MeasuredDesign

Row = dict[str, Any]

_QUERIES = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "groups", "version", "metric")),
        ("queries", pa.int64()),
        ("not_estimable", pa.int64()),
        *((name, pa.float64()) for name in ("mean", "sd", "lowest", "first_quartile", "median")),
        ("third_quartile", pa.float64()),
        ("highest", pa.float64()),
        ("lowest_queries", pa.list_(pa.string())),
        ("highest_queries", pa.list_(pa.string())),
    ]
)


def tables_of(measured: Sequence[MeasuredDesign]) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/retrieval.md."""
    tables = {"group_sizes": group_sizes.table(_sizes(measured))}
    distributions = [*_distributions(measured)]
    if distributions:
        tables["query_distributions"] = pa.Table.from_pylist(distributions, _QUERIES)
    curves = [_placed(one.curves, one) for one in measured if one.curves is not None]
    if curves:
        tables["curves"] = pa.concat_tables(curves)
    return tables


def _placed(table: pa.Table, one: MeasuredDesign) -> pa.Table:
    names = (one.design.model, one.design.name, one.design.version)
    for position, (name, value) in enumerate(
        zip(("model", "groups", "version"), names, strict=True)
    ):
        column = pa.array([value] * len(table), pa.string())
        table = table.add_column(position, name, column)
    return table


def _distributions(measured: Iterable[MeasuredDesign]) -> Iterator[Row]:
    for one in measured:
        for version, metric, found in one.distributions:
            place = {"model": one.design.model, "groups": one.design.name, "version": version}
            names = {
                name: [*getattr(found, name)] for name in ("lowest_queries", "highest_queries")
            }
            yield {**place, "metric": metric, **asdict(found), **names}


def _sizes(measured: Sequence[MeasuredDesign]) -> Iterator[Row]:
    """Sizes of the groups by the first model: others differ only in images left out."""
    seen: set[str] = set()
    for one in measured:
        if one.design.name not in seen:
            seen.add(one.design.name)
            yield from sizes_of(one.design.groups)
