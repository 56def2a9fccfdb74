"""The tables beside the findings of an audit of counterfactual sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from equipoise.audits.retrieval import tables as retrieval
from equipoise.audits.retrieval.designs import Design
from equipoise.audits.retrieval.measuring import MeasuredDesign
from equipoise.core.finding import Finding, GroupValue

Row = dict[str, Any]

MEASURES = ("max_skew", "ndkl")
"""What stands beside both chance levels."""

SETS, POOL = "order within sets", "order of the pool"
_POOL_ORDER = "null: pool order"

_CHANCE = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "version", "metric", "null")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [(name, pa.float64()) for name in ("chance", "chance_low", "chance_high", "excess")]
    + [("p_value", pa.float64())]
)
_PROPORTIONS = pa.schema(
    [(name, pa.string()) for name in ("model", "groups", "version", "subject", "attribute")]
    + [("group", pa.string())]
    + [(name, pa.float64()) for name in ("share", "pool_share")]
    + [("n", pa.int64())]
)


def tables_of(measured: Sequence[MeasuredDesign]) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/counterfactuals.md."""
    return {
        **retrieval.tables_of(measured),
        "chance": pa.Table.from_pylist([*_chances(measured)], _CHANCE),
        "proportions": pa.Table.from_pylist([*_proportions(measured)], _PROPORTIONS),
    }


def _chances(measured: Iterable[MeasuredDesign]) -> Iterator[Row]:
    """Yield means over subjects against the order within sets, and against that of the pool."""
    for one in measured:
        for draft in one.drafts:
            finding = draft.finding
            if finding.metric not in MEASURES or finding.subject:
                continue
            version = finding.version.removesuffix(_POOL_ORDER).removesuffix(", ")
            secondary = finding.version.endswith(_POOL_ORDER)
            if secondary or finding.version in _own_versions(one.design):
                yield {
                    "model": finding.model,
                    "groups": finding.groups,
                    "version": version or "default",
                    "metric": finding.metric,
                    "null": POOL if secondary else SETS,
                    "low": finding.ci_low,
                    "high": finding.ci_high,
                    **{
                        name: getattr(finding, name)
                        for name in (
                            *("value", "chance", "chance_low", "chance_high", "excess", "p_value"),
                        )
                    },
                }


def _own_versions(design: Design) -> set[str]:
    """Return the versions of a design's measures, beside which other targets and nulls stand."""
    several = {f"K = {k}" for k in design.ks}
    if len(design.ks) == 1:
        return {design.version}
    if design.version == "default":
        return several
    return {f"{design.version}, {one}" for one in several}


def _proportions(measured: Iterable[MeasuredDesign]) -> Iterator[Row]:
    """Yield the share of every group among the first K of each subject, and of every attribute."""
    for one in measured:
        own = _own_versions(one.design)
        for draft in one.drafts:
            finding = draft.finding
            if finding.metric == "max_skew" and finding.by_group and finding.version in own:
                yield from _shares(finding, one.design)


def _shares(finding: Finding, design: Design) -> Iterator[Row]:
    at = {"model": finding.model, "groups": finding.groups, "version": finding.version}
    subject = finding.subject or next(iter(design.scored.queries))
    total = sum(one.n for one in finding.by_group)
    for attribute, group, held in _members(finding.by_group, design.attributes, design.name):
        n = sum(one.n for one in held)
        if n:
            yield at | {
                "subject": subject,
                "attribute": attribute,
                "group": group,
                "share": sum(one.value for one in held if one.n),
                "pool_share": n / total,
                "n": n,
            }


def _members(
    groups: Sequence[GroupValue], attributes: Sequence[str], name: str
) -> Iterator[tuple[str, str, list[GroupValue]]]:
    """Yield every group by itself, then the groups of every value of each of several attributes."""
    for one in groups:
        yield name, one.group, [one]
    for place, attribute in enumerate(attributes if len(attributes) > 1 else ()):
        for level in dict.fromkeys(one.levels[place] for one in groups):
            yield attribute, level, [one for one in groups if one.levels[place] == level]
