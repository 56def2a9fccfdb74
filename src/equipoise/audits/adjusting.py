"""Differences at equal shares: how much of one is the mix of classes, or another attribute.

Direct standardisation of tables of counts. Nothing is resampled and no model runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from equipoise.audits.cells import Mix, Rate
from equipoise.audits.config import AuditConfig
from equipoise.audits.kind import AnyAudit, Design
from equipoise.core import Aggregate, Finding, Floats, Groups, Integers, Integers32
from equipoise.core.conclusion import Adjustment
from equipoise.core.finding import REAL, Verdict
from equipoise.core.labels import Encoded
from equipoise.metrics.labels.standardisation import StandardisedDifference, standardise
from equipoise.report.words import compared_groups, worst_first
from equipoise.stats.intervals import divide
from equipoise.stats.verdict import harmful_reach, judge

_PAIRS = (Aggregate.DIFFERENCE, Aggregate.AGAINST_REST)
_JUDGED = (*REAL, Verdict.BELOW_THRESHOLD, Verdict.INCONCLUSIVE)
# Of the rows of each group, how many must be in classes that both have: the rest isn't compared.
_LEAST_SHARED = 0.9
_TOLERANCE = 1e-9


def adjust(
    audit: AnyAudit, config: AuditConfig, designs: Sequence[Design], findings: Sequence[Finding]
) -> dict[int, tuple[Adjustment, ...]]:
    """Return differences at equal shares, by the places of the findings.

    Parameters
    ----------
    audit : Audit
    config : AuditConfig
    designs : sequence of Design
        Those that were measured.
    findings : sequence of Finding
        With verdicts. Those that say how two groups differ in a rate over all rows are adjusted.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for place, finding in enumerate(findings):
        if finding.aggregate in _PAIRS and finding.verdict in _JUDGED and not finding.within:
            places.setdefault(_key(finding), []).append(place)
    adjustments = dict[int, tuple[Adjustment, ...]]()
    for design in designs:
        mix = audit.mix(config, design) if places else None
        for rate in mix.rates if mix else ():
            key = design.model, design.groups.name, rate.version, rate.metric, rate.subject
            if mix and (named := places.get(key)):
                tables = _Tables(mix, rate)
                for place in named:
                    finding_adjustments = tuple(
                        _adjustments(findings[place], tables, config.testing.alpha)
                    )
                    if finding_adjustments:
                        adjustments[place] = finding_adjustments
    return adjustments


def _key(finding: Finding) -> tuple[str, ...]:
    return finding.model, finding.groups, finding.version, finding.metric, finding.subject


class _Tables:
    """Rows by group, stratum and outcome, for each stratification of a rate."""

    def __init__(self, mix: Mix, rate: Rate) -> None:
        self.mix, self.rate = mix, rate
        self._tables = dict[str, Floats]()

    @cached_property
    def totals(self) -> Floats:
        """Rows by group and outcome, shape (groups, 2)."""
        counted = (self.mix.groups.codes >= 0) & (self.rate.outcome >= 0)
        places = self.mix.groups.codes[counted].astype(np.int64) * 2 + self.rate.outcome[counted]
        counts = np.bincount(places, minlength=2 * len(self.mix.groups))
        return counts.reshape(-1, 2).astype(float)

    def rates(self, sides: tuple[Integers, Integers]) -> list[float]:
        """Return the rates of two sides over all rows."""
        sums = np.stack([self.totals[side].sum(axis=0) for side in sides])
        rates: list[float] = divide(sums[:, 1], sums.sum(axis=1)).tolist()
        return rates

    def of(self, by: str) -> Floats:
        """Return the table of an attribute, shape (groups, values, 2)."""
        if by not in self._tables:
            strata = self.mix.strata[by]
            shape = len(self.mix.groups), len(strata.vocabulary), 2
            places = self.places(strata, self.mix.groups.codes)
            counts = np.bincount(places[places >= 0], minlength=math.prod(shape))
            self._tables[by] = counts.reshape(shape).astype(float)
        return self._tables[by]

    def places(self, strata: Encoded, codes: Integers | Integers32) -> Integers:
        """Return where each row is in a raveled table; -1 where it doesn't count."""
        complete = (codes >= 0) & (strata.codes >= 0) & (self.rate.outcome >= 0)
        places = (codes.astype(np.int64) * len(strata.vocabulary) + strata.codes) * 2
        return np.where(complete, places + self.rate.outcome, -1)


def _adjustments(finding: Finding, tables: _Tables, alpha: float) -> Iterator[Adjustment]:
    """Yield the adjustments of a finding, by class first."""
    groups = compared_groups(finding)
    if groups is None:
        return
    values = groups[0].value, groups[1].value
    sides = _sides(tables.mix.groups, groups[0].group, groups[1].group)
    # Rows that don't give the finding's numbers explain nothing of it.
    if sides is None or not np.allclose(tables.rates(sides), values, rtol=0.0, atol=_TOLERANCE):
        return
    for by, strata in tables.mix.strata.items():
        standardised = _standardise(tables, by, strata, sides, finding)
        if standardised is None or not _covers(standardised):
            continue
        adjustment = _adjustment(finding, by, standardised, values[0] > values[1], alpha)
        yield replace(adjustment, leads=by == "" and _leads(adjustment, finding))


def _sides(groups: Groups, first: str, second: str) -> tuple[Integers, Integers] | None:
    """Return the codes of the groups on both sides; all others where the second is no group."""
    if first not in groups.names:
        return None
    first_code = groups.names.index(first)
    if second in groups.names:
        return np.array([first_code]), np.array([groups.names.index(second)])
    others = np.flatnonzero(groups.usable)
    return np.array([first_code]), others[others != first_code]


def _standardise(
    tables: _Tables, by: str, strata: Encoded, sides: tuple[Integers, Integers], finding: Finding
) -> StandardisedDifference | None:
    table = tables.of(by)
    sided = np.stack([table[side].sum(axis=0) for side in sides])
    units = None
    if tables.mix.units is not None:
        side_of_group = np.full(len(tables.mix.groups) + 1, -1)
        for index, side in enumerate(sides):
            side_of_group[side] = index
        places = tables.places(strata, side_of_group[tables.mix.groups.codes])
        rows = (places >= 0) & (tables.mix.units.codes >= 0)
        units = tables.mix.units.codes[rows].astype(np.int64), places[rows]
    compared = 2 if finding.group else len(worst_first(finding))
    return standardise(sided, level=finding.level, pairs=math.comb(compared, 2), units=units)


def _covers(standardised: StandardisedDifference) -> bool:
    """Whether classes that both groups have hold nearly all of their rows."""
    return all(
        rows >= _LEAST_SHARED * (rows + left_out)
        for rows, left_out in zip(standardised.rows, standardised.left_out, strict=True)
    )


def _adjustment(
    finding: Finding, by: str, standardised: StandardisedDifference, higher: bool, alpha: float
) -> Adjustment:
    """Return an adjustment that is positive where it has the direction of the finding."""
    (low, high), (moved_low, moved_high) = standardised.ends, standardised.moved_ends
    size, moved = standardised.difference, standardised.moved
    if not higher:
        size, low, high = -size, -high, -low
        moved, moved_low, moved_high = -moved, -moved_high, -moved_low
    return Adjustment(
        by=by,
        size=size,
        low=low,
        high=high,
        group_value=standardised.standardised_rates[0],
        other_value=standardised.standardised_rates[1],
        moved=moved,
        moved_low=moved_low,
        moved_high=moved_high,
        n=sum(standardised.rows),
        left_out=sum(standardised.left_out),
        verdict=_verdict(finding, size, low, high, standardised.p_value, alpha),
    )


def _verdict(
    finding: Finding, size: float, low: float, high: float, p_value: float, alpha: float
) -> Verdict:
    """Return the verdict on a difference at equal shares, corrected as the finding is."""
    correction = 1.0
    if finding.p_value > 0.0 and finding.q_value > finding.p_value:
        correction = finding.q_value / finding.p_value
    verdict, _ = judge(
        value=size, excess=abs(size), reach=harmful_reach(low, high, "either"),
        q=min(1.0, p_value * correction), threshold=finding.threshold, alpha=alpha,
    )  # fmt: skip
    return verdict


def _leads(adjustment: Adjustment, finding: Finding) -> bool:
    """Whether the mix of classes moves a difference so far that it can't stand first."""
    return adjustment.moves and abs(adjustment.moved) >= finding.threshold
