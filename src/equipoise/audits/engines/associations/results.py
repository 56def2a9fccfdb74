"""Questions and their results: findings before their verdict, rows of tables, notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.audits.audit import Measured
from equipoise.audits.columns import schema_of
from equipoise.audits.engines.associations.config import MeasureConfig
from equipoise.audits.engines.associations.spaces import Case, Side, Space, cases_of, tests_of
from equipoise.audits.findings import Place, UncorrectedFinding, whole, with_numbers
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Excluded, Family, GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part
from equipoise.stats.resampling import Resampling

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "mcas_parts": "target category part #value #low #high",
        "amplification": "target category #diffusion_bias #diffusion_low #diffusion_high "
        "#bias_amplification #amplification_low #amplification_high #fitted reason",
        "xmcas": "target part group #value #low #high #theta #neutral #offset",
        "score_summaries": "metric category direction +targets #mean #sd",
        "totals": "+targets #value #low #high #chance",
        "labels": "group label +count #share",
        "label_scores": "label set #value",
        "regions": "metric region group +n #value #low #high",
        "words": "region group word kind #similarity +n",
        "outside": "metric figure subject #outside #value #low #high #fitted",
        "outside_correlations": "metric figure kind +n #value #low #high #p_value reason",
    }
)
"""Columns by table after `PLACE`; docs/audits/associations.md explains them."""
PLACE = "model groups version "

# Seconds of a draw for one member of a set, and of a number whatever its sets: rough guides, from
# the example.
_SECONDS_PER_MEMBER, _SECONDS_PER_CASE = 1.7e-8, 7e-3


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
    seed : int
    level : float
    resampling : Resampling or None
    figures : mapping of str to float
        External figures by subject.
    lacking : mapping of str to int
        Items in no group: none.
    """

    audit: str
    options: MeasureConfig
    space: Space = field(repr=False)
    seed: int
    level: float
    resampling: Resampling | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.space.model

    @property
    def groups(self) -> Groups:
        """Groups of no items: sets are compared, and images of groups of any size."""
        return Groups((self.options.group_text,), (), np.empty(0, dtype=np.int32))

    @property
    def cases(self) -> list[Case]:
        """The numbers that are measured."""
        return cases_of(self.options, self.space)

    @property
    def tests(self) -> int:
        """How many tests the question makes."""
        return tests_of(self.options, self.space)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        data, cases = self.space.data, self.cases
        named = [name for case in cases for name in (*case.targets, *self.options.attributes)]
        members = sum(len(rows) for name in named for rows in data.sets[name].values())
        if self.table:
            members = len(cases) * len(data.items[self.table])
        return _SECONDS_PER_CASE * len(cases) + _SECONDS_PER_MEMBER * draws * members

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
    def table(self) -> str:
        """Name of the table of images; "" of questions about sets."""
        return self.options.images or ""

    @property
    def figure_name(self) -> str:
        """Name of the external figures; "" without any."""
        return "" if self.options.figures is None else self.options.figures.value

    def place(self, modality: str = "") -> Place:
        """Return where a number was measured."""
        version = ", ".join(filter(None, (modality, self.options.version))) or "default"
        return Place(self.audit, self.model, self.options.group_text, version, self.level)


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
    return replace(excluded, reason=f"{names.get(part, part)}{separator}{why}")


def about(sides: Mapping[str, Side]) -> dict[str, Any]:
    """Return the sets of a finding by part, and their members that are not used."""
    lost = [(f"{s.name}: {why}", n) for s in sides.values() for why, n in s.excluded.items()]
    return {
        "names": {part: side.name for part, side in sides.items()},
        "excluded": tuple(Excluded(reason, n) for reason, n in lost if n),
    }


def closer(subject: str, value: float, pair: tuple[str, str]) -> str:
    """Say which of two sets a subject is closer to."""
    if math.isnan(value) or value == 0:
        return ""
    near, far = pair if value > 0 else pair[::-1]
    return f"{subject} is closer to {near} than to {far}"


def crossed(targets: Sequence[str], means: Sequence[float], pair: tuple[str, str]) -> str:
    """Say which of two targets goes more with which of two sets.

    Both may lean to the same set, and still differ.
    """
    first, second = means
    if math.isnan(first) or math.isnan(second) or first == second:
        return ""
    near = pair[first < second]
    return f"stronger association of {targets[0]} with {near} than of {targets[1]}"


def extremes(what: str, by_group: Sequence[GroupValue]) -> str:
    """Say which group is closest to something and which is farthest from it."""
    known = [each for each in by_group if not math.isnan(each.value)]
    if len(known) < 2:
        return ""
    low, high = (pick(known, key=lambda each: each.value) for pick in (min, max))
    return "" if low.value == high.value else f"{what}: {high.group} more than {low.group}"


def measured(results: Iterable[Result], schemas: Mapping[str, str] = SCHEMAS) -> Measured:
    """Return results as an audit collects them, with the tables that have rows."""
    every = [*results]
    split: dict[str, list[Mapping[str, Any]]] = {}
    for row in every:
        if isinstance(row, Row):
            split.setdefault(row.table, []).append(row.values)
    return Measured(
        tuple(each for each in every if isinstance(each, UncorrectedFinding)),
        {
            name: pa.Table.from_pylist(split[name], schema=schema_of(PLACE + columns))
            for name, columns in schemas.items()
            if name in split
        },
        tuple(each for each in every if isinstance(each, str)),
    )
