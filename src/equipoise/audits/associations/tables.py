"""The tables that the report draws on beside the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.associations.pieces import Row
from equipoise.audits.associations.spaces import Space
from equipoise.audits.group_sizes import size

if TYPE_CHECKING:
    from equipoise.audits.associations.config import Config
    from equipoise.audits.associations.loading import AssociationData

_TEXTS = ("model", "groups", "version")


def _schema(*columns: str) -> pa.Schema:
    """Make a schema of columns: numbers are marked by "#", counts by "+", the rest is text."""
    kinds = {"#": pa.float64(), "+": pa.int64()}
    return pa.schema(
        [(name.lstrip("#+"), kinds.get(name[0], pa.string())) for name in (*_TEXTS, *columns)]
    )


SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "mcas_parts": _schema("target", "category", "part", "#value", "#low", "#high"),
        "amplification": _schema(
            "target", "category", "#diffusion_bias", "#diffusion_low", "#diffusion_high",
            "#bias_amplification", "#amplification_low", "#amplification_high", "#fitted", "reason",
        ),
        "xmcas": _schema(
            "target", "part", "group", "#value", "#low", "#high", "#theta", "#neutral", "#offset"
        ),
        "score_summaries": _schema("metric", "category", "direction", "+targets", "#mean", "#sd"),
        "totals": _schema("+targets", "#value", "#low", "#high", "#chance"),
        "labels": _schema("group", "label", "+count", "#share"),
        "label_scores": _schema("label", "set", "#value"),
        "regions": _schema("metric", "region", "group", "+n", "#value", "#low", "#high"),
        "words": _schema("region", "group", "word", "kind", "#similarity", "+n"),
        "outside": _schema(
            "metric", "figure", "subject", "#outside", "#value", "#low", "#high", "#fitted"
        ),
        "outside_correlations": _schema(
            "metric", "figure", "kind", "+n", "#value", "#low", "#high", "#p_value", "reason"
        ),
    }
)  # fmt: skip
"""Columns by table; docs/audits/associations.md explains them."""

_SETS = pa.schema(
    [("set", pa.string()), ("kind", pa.string()), ("table", pa.string()), ("members", pa.int64()),
     ("model", pa.string()), ("embedded", pa.int64())]
)  # fmt: skip
_TARGETS = pa.schema([("target", pa.string()), ("category", pa.string())])


def tables_of(
    config: Config, data: AssociationData, spaces: Iterable[Space], rows: Iterable[Row]
) -> dict[str, pa.Table]:
    """Return the tables that have rows."""
    split: dict[str, list[Mapping[str, Any]]] = {}
    # Questions on the same images and words tell the same of them.
    told: set[tuple[Any, ...]] = set()
    for row in rows:
        key = (row.table, *row.values.values())
        if row.table not in ("words", "labels") or key not in told:
            split.setdefault(row.table, []).append(row.values)
        told.add(key)
    found = {
        name: pa.Table.from_pylist(split[name], schema=SCHEMAS[name])
        for name in SCHEMAS
        if name in split
    }
    found["sets"] = pa.Table.from_pylist([*_sets(data, spaces)], schema=_SETS)
    if sizes := [*_sizes(config, data)]:
        found["group_sizes"] = group_sizes.table(sizes)
    categories = {
        target: category
        for asked in config.measure
        for target, category in asked.categories.items()
        if category
    }
    if categories:
        listed = [{"target": one, "category": other} for one, other in categories.items()]
        found["target_categories"] = pa.Table.from_pylist(listed, schema=_TARGETS)
    return found


def _sets(data: AssociationData, spaces: Iterable[Space]) -> Iterator[dict[str, Any]]:
    for space in spaces:
        for name, by_table in data.sets.items():
            for table, members in by_table.items():
                if space.knows(table):
                    yield {
                        "set": name, "kind": data.kinds[table], "table": table,
                        "members": len(members), "model": space.model,
                        "embedded": len(members) - space.unknown(table, members),
                    }  # fmt: skip


def _sizes(config: Config, data: AssociationData) -> Iterator[dict[str, Any]]:
    """Yield the groups of images that questions compare, each column once."""
    seen: set[tuple[str, str]] = set()
    for asked in config.measure:
        if asked.images is None or asked.groups is None or (asked.images, asked.groups) in seen:
            continue
        seen.add((asked.images, asked.groups))
        coded = data.items[asked.images].coded[asked.groups]
        for code, name in enumerate(coded.vocabulary):
            n = int((coded.codes == code).sum())
            yield size(asked.groups, name, n, levels=[name], usable=True)
