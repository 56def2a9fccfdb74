"""The tables beside the findings of an audit of retrieval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

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
_SIZES = pa.schema(
    [
        ("groups", pa.string()),
        ("group", pa.string()),
        ("levels", pa.list_(pa.string())),
        ("n", pa.int64()),
        ("usable", pa.bool_()),
        ("note", pa.string()),
    ]
)


def tables_of(measured: Sequence[MeasuredDesign]) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/retrieval.md."""
    tables = {"group_sizes": pa.Table.from_pylist([*_sizes(measured)], _SIZES)}
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
        groups = one.design.groups
        if one.design.name in seen:
            continue
        seen.add(one.design.name)
        for name, levels, n, usable in zip(
            groups.names, groups.levels, groups.counts.tolist(), groups.usable, strict=True
        ):
            note = "" if usable else f"fewer than {groups.min_size} images"
            known = {"group": name, "levels": [*levels], "n": n, "usable": bool(usable)}
            yield {"groups": one.design.name, **known, "note": note}
        if groups.n_missing:
            lost = {"group": "", "levels": [], "n": groups.n_missing, "usable": False}
            yield {"groups": one.design.name, **lost, "note": "an attribute is missing"}
