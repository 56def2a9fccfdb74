"""What questions are answered with: findings before their verdict, rows of tables, notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.associations.loading import AssociationData
from equipoise.audits.associations.spaces import Side, Space
from equipoise.audits.findings import Draft, Place, whole, with_numbers
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.core.parts import Part
from equipoise.stats.resampling import Resampling

AUDIT = "associations"


@dataclass(frozen=True)
class Row:
    """A row of one of the tables that the report draws on."""

    table: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Note:
    """What a reader must know."""

    text: str


Piece = Draft | Row | Note


@dataclass(frozen=True, eq=False)
class Question:
    """One entry of `measure`, with what answers it.

    Attributes
    ----------
    index : int
        Its place in the configuration.
    asked : MeasureConfig
    data : AssociationData
    spaces : tuple of Space
        Models.
    resampling : mapping of str to Resampling or None
        By model.
    seed : int
    level : float
    audit : str
        Kind of audit that asks.
    between : Resampling or None
        Of what compares models.
    """

    index: int
    asked: MeasureConfig
    data: AssociationData = field(repr=False)
    spaces: tuple[Space, ...] = field(repr=False)
    resampling: Mapping[str, Resampling | None]
    seed: int
    level: float
    audit: str = AUDIT
    between: Resampling | None = None

    def drawn(self, space: Space) -> dict[str, Any]:
        """Return the arguments that every metric of a model takes."""
        return {"resampling": self.resampling[space.model], "rng": self.seed}

    @property
    def pair(self) -> tuple[str, str]:
        """The two sets of attributes."""
        first, second = self.asked.attributes
        return first, second

    def place(self, space: Space, modality: str = "") -> Place:
        """Return where a number of a model was measured."""
        version = ", ".join(part for part in (modality, self.asked.version) if part) or "default"
        return Place(self.audit, space.model, self.asked.group_text, version, self.level)


@dataclass(frozen=True)
class Told:
    """What a finding says beside its number.

    Attributes
    ----------
    subject : str
    direction : str
        Who leans to whom, in words.
    names : mapping of str to str
        Set by the part that it plays, in place of the parts' names.
    by_group : tuple of GroupValue
    excluded : tuple of Excluded
        What did not enter, beside what the metric left out.
    """

    subject: str = ""
    direction: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    by_group: tuple[GroupValue, ...] = ()
    excluded: tuple[Excluded, ...] = ()


def at(place: Place) -> dict[str, str]:
    """Return the columns that say where a row was measured."""
    return {"model": place.model, "groups": place.groups, "version": place.version}


def drafted(estimate: Estimate, place: Place, family: Family, told: Told) -> Draft:
    """Draft the finding of an estimate, with sets in place of the parts that they play."""
    base = whole(estimate, place, family)
    found = base.finding
    named = tuple(Excluded(_renamed(one.reason, told.names), one.count) for one in found.excluded)
    shown = whole(replace(estimate, params={**estimate.params, **_sets(told.names)}), place, family)
    return replace(
        base,
        finding=replace(
            found,
            subject=told.subject,
            direction=told.direction,
            by_group=regrouped(told.by_group, told.names),
            excluded=(*named, *told.excluded),
            parameters=shown.finding.parameters,
        ),
    )


def part_draft(
    estimate: Estimate, part: Part, place: Place, family: Family, told: Told, *, metric: str = ""
) -> Draft:
    """Draft the finding of one part of an estimate."""
    base = drafted(estimate, place, family, told)
    found = replace(
        with_numbers(base.finding, part), metric=metric or part.metric, reason=part.reason
    )
    return replace(base, finding=found)


def regrouped(by_group: tuple[GroupValue, ...], names: Mapping[str, str]) -> tuple[GroupValue, ...]:
    """Return groups with sets in place of the parts that they play."""
    return tuple(
        replace(one, group=names[one.group], levels=(names[one.group],))
        if one.group in names
        else one
        for one in by_group
    )


def without(sides: Mapping[str, Side]) -> tuple[Excluded, ...]:
    """Count members of sets that a model gave nothing for, and those that are targets too."""
    return tuple(
        Excluded(f"{side.name}: {why}", count)
        for side in sides.values()
        for why, count in (
            ("no embedding or score", side.without),
            ("also a target", side.shared),
        )
        if count
    )


def _renamed(reason: str, names: Mapping[str, str]) -> str:
    part, separator, why = reason.partition(": ")
    return f"{names[part]}: {why}" if separator and part in names else reason


def _sets(names: Mapping[str, str]) -> dict[str, Any]:
    return {"sets": dict(names)} if names else {}
