"""The tables beside the findings of an audit of similarity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.group_sizes import sizes_of
from equipoise.audits.similarity.measuring import MeasuredDesign, by_concept

Row = dict[str, Any]

_TEXT = ("model", "groups", "version", "concept", "group", "unit")
_NUMBERS = ("effect", "low", "high", "chance_low", "chance_high")
_NORMALISED = ("normalised", "normalised_low", "normalised_high")
_GROUPS = pa.schema(
    [(name, pa.string()) for name in _TEXT]
    + [("n", pa.int64())]
    + [(name, pa.float64()) for name in (*_NUMBERS, *_NORMALISED)]
)
_HYPOTHESES = pa.schema(
    [
        (name, pa.string())
        for name in ("model", "groups", "version", "hypothesis", "unit", "concept", "favourite")
    ]
    + [(name, pa.float64()) for name in ("declared", "preference")]
)


def tables_of(measured: Sequence[MeasuredDesign]) -> Mapping[str, pa.Table]:
    """Return every table of a run by name, see docs/audits/similarity.md."""
    tables = {"group_sizes": group_sizes.table(_sizes(measured))}
    effects = [row for one in measured for row in _effects(one)]
    if effects:
        tables["group_effects"] = pa.Table.from_pylist(effects, _GROUPS)
    hypotheses = [row for one in measured for row in _hypotheses(one)]
    if hypotheses:
        tables["hypotheses"] = pa.Table.from_pylist(hypotheses, _HYPOTHESES)
    return tables


def unit_of(one: MeasuredDesign) -> str:
    """Return what effects are measured in."""
    return "logit" if one.design.scale is not None else "score"


def _at(one: MeasuredDesign) -> Row:
    return {"model": one.design.model, "groups": one.design.name, "version": "default"}


def _effects(one: MeasuredDesign) -> Iterator[Row]:
    normalised = _normalised(one)
    only = by_concept(one.gap)[0].subject if len(by_concept(one.gap)) == 1 else None
    for part in one.gap.parts:
        if part.metric != "group_effect":
            continue
        group = part.by_group[0]
        yield {
            **_at(one),
            "concept": part.subject if only is None else only,
            "group": group.group,
            "unit": unit_of(one),
            "n": group.n,
            "effect": part.value,
            **{name: getattr(part, name) for name in _NUMBERS[1:]},
            **normalised.get((part.subject, group.group), dict.fromkeys(_NORMALISED, math.nan)),
        }


def _normalised(one: MeasuredDesign) -> dict[tuple[str, str], dict[str, float]]:
    if one.normalised is None:
        return {}
    return {
        (part.subject, group.group): dict(
            zip(_NORMALISED, (group.value, group.low, group.high), strict=True)
        )
        for part in by_concept(one.normalised)
        for group in part.by_group
    }


def _hypotheses(one: MeasuredDesign) -> Iterator[Row]:
    for found in one.declared:
        for row in found.rows:
            yield {**_at(one), "hypothesis": found.name, "unit": unit_of(one), **row}


def _sizes(measured: Sequence[MeasuredDesign]) -> Iterator[Row]:
    """Sizes of the groups by the first model: others differ only in images left out."""
    seen: set[str] = set()
    for one in measured:
        if one.design.name not in seen:
            seen.add(one.design.name)
            yield from sizes_of(one.design.groups)
