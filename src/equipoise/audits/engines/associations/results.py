"""Questions and their results: findings before their verdict, rows of tables, notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.engines.associations.config import MeasureConfig
from equipoise.audits.engines.associations.spaces import Side, Space
from equipoise.audits.findings import Place, UncorrectedFinding, whole, with_numbers
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.core.parts import Part
from equipoise.stats.resampling import Resampling


def schema_of(*columns: str) -> pa.Schema:
    """Make a schema: "#" marks numbers, "+" counts, "?" yes or no; the rest is text."""
    kinds = {"#": pa.float64(), "+": pa.int64(), "?": pa.bool_()}
    names = ("model", "groups", "version", *columns)
    return pa.schema([(name.lstrip("#+?"), kinds.get(name[0], pa.string())) for name in names])


SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "mcas_parts": schema_of("target", "category", "part", "#value", "#low", "#high"),
        "amplification": schema_of(
            "target", "category", "#diffusion_bias", "#diffusion_low", "#diffusion_high",
            "#bias_amplification", "#amplification_low", "#amplification_high", "#fitted", "reason",
        ),
        "xmcas": schema_of(
            "target", "part", "group", "#value", "#low", "#high", "#theta", "#neutral", "#offset"
        ),
        "score_summaries": schema_of("metric", "category", "direction", "+targets", "#mean", "#sd"),
        "totals": schema_of("+targets", "#value", "#low", "#high", "#chance"),
        "labels": schema_of("group", "label", "+count", "#share"),
        "label_scores": schema_of("label", "set", "#value"),
        "regions": schema_of("metric", "region", "group", "+n", "#value", "#low", "#high"),
        "words": schema_of("region", "group", "word", "kind", "#similarity", "+n"),
        "outside": schema_of(
            "metric", "figure", "subject", "#outside", "#value", "#low", "#high", "#fitted"
        ),
        "outside_correlations": schema_of(
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


Result = UncorrectedFinding | Row | str
"""A finding, a row of a table, or a note."""


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

    @property
    def figure_name(self) -> str:
        """Name of the external figures; "" without any."""
        return "" if self.options.figures is None else self.options.figures.value

    def place(self, modality: str = "") -> Place:
        """Return where a number was measured."""
        parts = (modality, self.options.version)
        version = ", ".join(part for part in parts if part) or "default"
        return Place(self.audit, self.space.model, self.options.group_text, version, self.level)


def finding_of(  # noqa: PLR0913 - one keyword for each field
    estimate: Estimate,
    place: Place,
    family: Family,
    part: Part | None = None,
    *,
    subject: str = "",
    direction: str = "",
    names: Mapping[str, str] = MappingProxyType({}),
    by_group: Iterable[GroupValue] = (),
    excluded: tuple[Excluded, ...] = (),
) -> UncorrectedFinding:
    """Return the finding of an estimate or a part of it, with sets in place of their parts.

    Parameters
    ----------
    estimate : Estimate
    place : Place
    family : Family
    part : Part, optional
        Whose numbers the finding has.
    subject, direction : str
    names : mapping of str to str
        Set by the part that it plays in the metric.
    by_group : iterable of GroupValue
    excluded : tuple of Excluded
        Beside what the metric left out.
    """
    params = {**estimate.params, "sets": dict(names)} if names else estimate.params
    base = whole(replace(estimate, params=params), place, family)
    finding = replace(
        base.finding,
        subject=subject,
        direction=direction,
        by_group=tuple(
            replace(each, group=names[each.group], levels=(names[each.group],))
            if each.group in names
            else each
            for each in by_group
        ),
        excluded=(*(_with_name(each, names) for each in base.finding.excluded), *excluded),
    )
    if part is not None:
        numbers = with_numbers(finding, part)
        finding = replace(numbers, metric=part.metric, reason=part.reason)
    return replace(base, finding=finding)


def _with_name(excluded: Excluded, names: Mapping[str, str]) -> Excluded:
    part, separator, why = excluded.reason.partition(": ")
    named = separator and part in names
    return replace(excluded, reason=f"{names[part]}: {why}") if named else excluded


def about(sides: Mapping[str, Side]) -> dict[str, Any]:
    """Return the sets of a finding by part, and their members that are not used."""
    reasons = (
        (side.name, why, count)
        for side in sides.values()
        for why, count in (("no embedding or score", side.without), ("also a target", side.shared))
    )
    return {
        "names": {part: side.name for part, side in sides.items()},
        "excluded": tuple(Excluded(f"{name}: {why}", n) for name, why, n in reasons if n),
    }


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
    targets: Sequence[str],
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


def measured(results: Iterable[Result], schemas: Mapping[str, pa.Schema] = SCHEMAS) -> Measured:
    """Return results as an audit collects them, with the tables that have rows."""
    every = [*results]
    split: dict[str, list[Mapping[str, Any]]] = {}
    for row in every:
        if isinstance(row, Row):
            split.setdefault(row.table, []).append(row.values)
    return Measured(
        tuple(each for each in every if isinstance(each, UncorrectedFinding)),
        {
            name: pa.Table.from_pylist(split[name], schema=schema)
            for name, schema in schemas.items()
            if name in split
        },
        tuple(each for each in every if isinstance(each, str)),
    )
