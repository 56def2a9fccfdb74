"""Results of questions: findings before their verdict, rows of tables, notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from equipoise.audits.config_associations import MeasureConfig
from equipoise.audits.engines.associations.spaces import Side, Space
from equipoise.audits.findings import Place, UncorrectedFinding, whole, with_numbers
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.core.parts import Part
from equipoise.stats.resampling import Resampling


def _schema(*columns: str) -> pa.Schema:
    """Make a schema of columns: numbers are marked by "#", counts by "+", the rest is text."""
    kinds = {"#": pa.float64(), "+": pa.int64()}
    names = ("model", "groups", "version", *columns)
    return pa.schema([(name.lstrip("#+"), kinds.get(name[0], pa.string())) for name in names])


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


@dataclass(frozen=True)
class Row:
    """A row of a table that the page draws on."""

    table: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, table: str, place: Place, **values: Any) -> Row:
        """Return a row about a place."""
        where = {"model": place.model, "groups": place.groups, "version": place.version}
        return cls(table, {**where, **values})


@dataclass(frozen=True)
class Note:
    """What a reader must know."""

    text: str


Result = UncorrectedFinding | Row | Note


@dataclass(frozen=True, eq=False)
class Question:
    """One entry of `measure`, asked of one model.

    Attributes
    ----------
    audit : str
        Kind of the audit.
    options : MeasureConfig
    space : Space
    resampling : Resampling or None
    seed : int
    level : float
    figures : mapping of str to float
        External figures by subject.
    """

    audit: str
    options: MeasureConfig
    space: Space = field(repr=False)
    resampling: Resampling | None
    seed: int
    level: float
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def drawn(self) -> dict[str, Any]:
        """The arguments that every metric takes."""
        return {"resampling": self.resampling, "rng": self.seed}

    @property
    def pair(self) -> tuple[str, str]:
        """The two sets of attributes."""
        first, second = self.options.attributes
        return first, second

    def place(self, modality: str = "") -> Place:
        """Return where a number was measured."""
        parts = (modality, self.options.version)
        version = ", ".join(part for part in parts if part) or "default"
        return Place(self.audit, self.space.model, self.options.group_text, version, self.level)


def finding_of(
    estimate: Estimate,
    place: Place,
    family: Family,
    *,
    subject: str = "",
    direction: str = "",
    sides: Mapping[str, str] = MappingProxyType({}),
    by_group: Iterable[GroupValue] = (),
    excluded: tuple[Excluded, ...] = (),
) -> UncorrectedFinding:
    """Return the finding of an estimate, with sets in place of the parts that they play.

    Parameters
    ----------
    estimate : Estimate
    place : Place
    family : Family
    subject, direction : str
    sides : mapping of str to str
        Set by part.
    by_group : iterable of GroupValue
    excluded : tuple of Excluded
        Beside what the metric left out.
    """
    params = {**estimate.params, "sets": dict(sides)} if sides else estimate.params
    base = whole(replace(estimate, params=params), place, family)
    named = tuple(
        replace(each, reason=_renamed(each.reason, sides)) for each in base.finding.excluded
    )
    groups = tuple(
        replace(each, group=sides[each.group], levels=(sides[each.group],))
        if each.group in sides
        else each
        for each in by_group
    )
    finding = replace(
        base.finding,
        subject=subject,
        direction=direction,
        by_group=groups,
        excluded=(*named, *excluded),
    )
    return replace(base, finding=finding)


def part_finding(
    estimate: Estimate, part: Part, place: Place, family: Family, *, metric: str = "", **more: Any
) -> UncorrectedFinding:
    """Return the finding of one part of an estimate; `more` is as for `finding_of`."""
    base = finding_of(estimate, place, family, **more)
    numbers = with_numbers(base.finding, part)
    return replace(base, finding=replace(numbers, metric=metric or part.metric, reason=part.reason))


def without(sides: Mapping[str, Side]) -> tuple[Excluded, ...]:
    """Count members of sets without an embedding or score, and those that are targets too."""
    return tuple(
        Excluded(f"{side.name}: {why}", count)
        for side in sides.values()
        for why, count in (
            ("no embedding or score", side.without),
            ("also a target", side.shared),
        )
        if count
    )


def names_of(sides: Mapping[str, Side]) -> dict[str, str]:
    """Return the set that plays each part."""
    return {part: side.name for part, side in sides.items()}


def _renamed(reason: str, sides: Mapping[str, str]) -> str:
    part, separator, why = reason.partition(": ")
    return f"{sides[part]}: {why}" if separator and part in sides else reason


_HOW = MappingProxyType(
    {
        "": "",
        "II": " (images with images)",
        "ITP": " (texts of the target with images of the groups)",
        "ITA": " (images of the target with texts of the groups)",
        "TT": " (texts with texts)",
    }
)


def closer(subject: str, value: float, pair: tuple[str, str], modality: str = "") -> str:
    """Say which of two sets a subject is closer to."""
    if math.isnan(value) or value == 0:
        return ""
    near, far = pair if value > 0 else pair[::-1]
    return f"{subject} is closer to {near} than to {far}{_HOW[modality]}"


def crossed(
    targets: tuple[str, str],
    means: tuple[float, float],
    pair: tuple[str, str],
    modality: str = "",
    *,
    plural: bool = False,
) -> str:
    """Say which of two targets goes more with which of two sets.

    Each goes with a set of its own only where their mean associations have different signs: two
    targets that both lean to the first set still differ.
    """
    first, second = means
    if math.isnan(first) or math.isnan(second) or first == second:
        return ""
    near, far = pair if first > second else pair[::-1]
    verb, does = ("go", "do") if plural else ("goes", "does")
    if first * second < 0:
        return f"{targets[0]} {verb} with {near}, {targets[1]} with {far}{_HOW[modality]}"
    return f"{targets[0]} {verb} more with {near} than {targets[1]} {does}{_HOW[modality]}"


def extremes(what: str, by_group: Sequence[GroupValue]) -> str:
    """Say which group is closest to something and which is farthest from it."""
    known = [each for each in by_group if not math.isnan(each.value)]
    if len(known) < 2:
        return ""
    low, high = (pick(known, key=lambda each: each.value) for pick in (min, max))
    return "" if low.value == high.value else f"{what}: {high.group} more than {low.group}"


def tables_of(rows: Iterable[Row]) -> dict[str, pa.Table]:
    """Return the tables that have rows."""
    split: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        split.setdefault(row.table, []).append(row.values)
    return {
        name: pa.Table.from_pylist(split[name], schema=schema)
        for name, schema in SCHEMAS.items()
        if name in split
    }
