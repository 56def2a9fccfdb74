"""Groups that a model predicted: rates and gaps are corrected, or have no verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from equipoise.audits.config import AuditConfig
from equipoise.audits.findings import UncorrectedFinding, direction
from equipoise.audits.group_sizes import Row
from equipoise.audits.group_sources import Source, are_predicted, assigned_groups, withhold
from equipoise.audits.kind import Measured
from equipoise.audits.predicted_shares import (
    correct_shares,
    design_of,
    with_corrected_shares,
)
from equipoise.core import (
    Aggregate,
    Family,
    Finding,
    Floats,
    GroupValue,
    Span,
    floats,
)
from equipoise.core.finding import IntervalKind
from equipoise.metrics.building import ends_of, spread_level
from equipoise.metrics.labels.misclassified_groups import (
    AssignedGroups,
    CorrectedRates,
    corrected_rates,
)
from equipoise.metrics.spec import spec_of_finding
from equipoise.stats.chance import band
from equipoise.stats.intervals import wilson

_ROUNDING = 1e-9
_METHOD = "percentiles of corrected shares, from draws of rows and labelled rows"


def correct(
    config: AuditConfig,
    sources: Mapping[str, Source],
    measured: Measured,
    sizes: Iterable[Row],
) -> Measured:
    """Return results with numbers about predicted groups corrected, or without a test.

    Parameters
    ----------
    config, sources, measured
    sizes : iterable of mapping
        Rows of the table `group_sizes`.
    """
    if not sources:
        return measured
    shares = correct_shares(config, sources, measured.findings, [*sizes])
    correction = _Correction(config, sources, measured.findings)
    findings: list[UncorrectedFinding] = []
    for draft in measured.findings:
        design = design_of(draft.finding)
        if design not in shares:
            findings.append(correction.of(draft))
        elif not spec_of_finding(draft.finding).expectation:
            findings += shares[design]
    tables = with_corrected_shares(measured.tables, findings, sources)
    return replace(measured, findings=tuple(findings), tables=tables)


class _Correction:
    """Corrects the findings of an audit."""

    def __init__(
        self,
        config: AuditConfig,
        sources: Mapping[str, Source],
        drafts: Sequence[UncorrectedFinding],
    ) -> None:
        self._sources, self._seed = sources, config.resampling.seed
        self._assigned: dict[tuple[str, tuple[str, ...]], AssignedGroups | None] = {}
        self._gaps = {
            _place(draft.finding, spec_of_finding(draft.finding).rest_metric): draft.finding
            for draft in drafts
            if draft.finding.aggregate is Aggregate.DIFFERENCE
        }

    def of(self, draft: UncorrectedFinding) -> UncorrectedFinding:
        """Return a finding corrected; one that can't be has no test."""
        finding = draft.finding
        if not are_predicted(finding.groups, self._sources):
            return draft
        corrected = self._corrected(draft)
        if corrected is not None:
            return corrected
        if finding.family is Family.DESCRIPTIVE or math.isnan(finding.value):
            return draft
        return withhold(draft)

    def _corrected(self, draft: UncorrectedFinding) -> UncorrectedFinding | None:
        finding, base = draft.finding, draft.finding
        if finding.aggregate is Aggregate.AGAINST_REST:
            sibling = self._gaps.get(_place(finding, finding.metric))
            if sibling is None:
                return None
            base = sibling
        cells = _cells(base)
        if cells is None:
            return None
        assigned = self._assigned_groups(finding, cells)
        if assigned is None:
            return None
        names = (finding.model, finding.version, base.metric, base.subject, finding.groups)
        rates = corrected_rates(*_counts(base, cells), assigned, *names)
        return _corrected_finding(draft, cells, rates)

    def _assigned_groups(
        self, finding: Finding, cells: Sequence[GroupValue]
    ) -> AssignedGroups | None:
        key = finding.groups, tuple(cell.group for cell in cells)
        if key not in self._assigned:
            levels = [cell.levels for cell in cells]
            self._assigned[key] = assigned_groups(finding.groups, levels, self._sources, self._seed)
        return self._assigned[key]


def _place(finding: Finding, metric: str) -> tuple[str, ...]:
    place = finding.model, finding.groups, finding.version, finding.within
    return *place, finding.subject, metric, str(finding.null)


def _cells(finding: Finding) -> list[GroupValue] | None:
    """Return the groups of a finding whose value follows from their shares, else None."""
    cells = [cell for cell in finding.by_group if cell.n and not math.isnan(cell.value)]
    compared = [cell.value for cell in cells if not cell.note]
    spec = spec_of_finding(finding)
    if len(compared) < 2 or not spec.group_label:
        return None
    if any(not cell.levels or not 0.0 <= cell.value <= 1.0 for cell in cells):
        return None
    if finding.aggregate is Aggregate.VALUE:
        return cells if finding.family is Family.DESCRIPTIVE else None
    value = _STATISTICS.get((finding.aggregate, finding.compared_to))
    if value is None:
        return None
    n = floats([cell.n for cell in cells if not cell.note])
    return cells if abs(value(floats([compared]), n)[0] - finding.value) < _ROUNDING else None


def _largest_gap(shares: Floats, _: Floats) -> Floats:
    return floats(shares.max(axis=1) - shares.min(axis=1))


def _gap_to_all(shares: Floats, n: Floats) -> Floats:
    return floats(_pooled(shares, n) - shares.min(axis=1))


def _worst(shares: Floats, _: Floats) -> Floats:
    return floats(shares.min(axis=1))


_STATISTICS: Mapping[tuple[Aggregate, str], Callable[[Floats, Floats], Floats]] = {
    (Aggregate.DIFFERENCE, ""): _largest_gap,
    (Aggregate.DIFFERENCE, "overall"): _gap_to_all,
    (Aggregate.WORST_GROUP, ""): _worst,
}


def _counts(finding: Finding, cells: Sequence[GroupValue]) -> tuple[Floats, Floats, Floats]:
    """Return events, rows and independent rows of groups."""
    n, value = floats([cell.n for cell in cells]), floats([cell.value for cell in cells])
    independent = n
    if finding.unit != "row":
        width = floats([cell.high - cell.low for cell in cells])
        low, high = wilson(value * n, n, finding.level)
        independent = n / np.fmax((width / (high - low)) ** 2, 1.0)
    return value * n, n, independent


def _corrected_finding(
    draft: UncorrectedFinding, cells: Sequence[GroupValue], rates: CorrectedRates
) -> UncorrectedFinding | None:
    finding = draft.finding
    by_group = tuple(
        replace(
            cell, value=float(rates.observed[place]), n=int(rates.n[place]),
            low=low, high=high,
        )
        for place, cell in enumerate(cells)
        for low, high in [ends_of(rates.boot, place)(finding.level)]
    )  # fmt: skip
    if finding.aggregate is Aggregate.VALUE:
        return draft.changed(by_group=by_group)
    compared = [place for place, cell in enumerate(cells) if not cell.note]
    if finding.aggregate is Aggregate.AGAINST_REST:
        return _against_rest(draft, cells, rates, by_group)
    statistic, n = _STATISTICS[finding.aggregate, finding.compared_to], floats(rates.n[compared])
    value = float(statistic(rates.observed[None, compared], n)[0])
    chance = band(statistic(rates.null[:, compared], n))
    low, high = _ends(finding, rates.boot[:, compared], n)
    return draft.changed(
        value=value, ci_low=low, ci_high=high, chance=chance.mean, chance_low=chance.low,
        chance_high=chance.high, excess=value - chance.mean, ratio=None, by_group=by_group,
        method=_METHOD, interval=IntervalKind.SIMULTANEOUS,
        direction=direction(finding.metric, finding.subject, by_group, finding.aggregate),
    )  # fmt: skip


def _against_rest(
    draft: UncorrectedFinding,
    cells: Sequence[GroupValue],
    rates: CorrectedRates,
    by_group: Sequence[GroupValue],
) -> UncorrectedFinding | None:
    finding = draft.finding
    names = [cell.group for cell in cells if not cell.note]
    if finding.group not in names:
        return None
    place = [cell.group for cell in cells].index(finding.group)
    others = [at for at, cell in enumerate(cells) if at != place and not cell.note]
    rest, n = finding.by_group[-1], floats([cell.n for cell in cells])
    raw = _pooled(floats([[cell.value for cell in cells]])[:, others], n[others])[0]
    if abs(raw - rest.value) > _ROUNDING:
        return None
    weights = floats(rates.n[others])
    rests = _pooled(rates.boot[:, others], weights)
    pooled = float(_pooled(rates.observed[None, others], weights)[0])
    chance = band(rates.null[:, place] - _pooled(rates.null[:, others], weights))
    low, high = ends_of(rates.boot[:, place] - rests)(finding.level)
    rest_low, rest_high = ends_of(rests)(finding.level)
    rest = replace(rest, value=pooled, n=int(weights.sum()), low=rest_low, high=rest_high)
    value = by_group[place].value - pooled
    pair = (by_group[place], rest)
    return draft.changed(
        value=value, ci_low=low, ci_high=high, chance=chance.mean, chance_low=chance.low,
        chance_high=chance.high, excess=value - chance.mean, ratio=None, by_group=pair,
        method=_METHOD,
        direction=direction(finding.metric, finding.subject, pair, finding.aggregate),
    )  # fmt: skip


def _pooled(shares: Floats, n: Floats) -> Floats:
    """Return the share of groups together, shape (draws,)."""
    return floats(shares @ n / max(float(n.sum()), 1.0))


def _ends(finding: Finding, shares: Floats, n: Floats) -> Span:
    """Return the ends of a statistic of groups, from intervals that hold together."""
    differences = _pooled(shares, n)[:, None] - shares
    if finding.aggregate is Aggregate.WORST_GROUP:
        differences = shares
    elif not finding.compared_to:
        first, second = np.triu_indices(shares.shape[1], 1)
        differences = np.concatenate(
            [shares[:, first] - shares[:, second], shares[:, second] - shares[:, first]], axis=1
        )
    members = shares.shape[1]
    if not finding.compared_to and finding.aggregate is Aggregate.DIFFERENCE:
        members = members * (members - 1) // 2
    joint = spread_level(finding.level, members)
    low, high = np.transpose(
        [ends_of(differences, place)(joint) for place in range(differences.shape[1])]
    )
    if finding.aggregate is Aggregate.WORST_GROUP:
        return float(low.min()), float(high.min())
    return max(float(low.max()), 0.0), float(high.max())
