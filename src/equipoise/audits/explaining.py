"""Causes of disparities: cells of the rows whose level, set to that of the others, removes them.

A disparity in one cell (a group within a class) moves dozens of metrics. The likeliest cell is set
to the level of the other groups and the metrics are counted again, without resampling. What is
then no disparity has been explained; the likeliest cell of the rest comes next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from equipoise.audits.cells import Cell
from equipoise.audits.config import AuditConfig
from equipoise.audits.kind import AnyAudit, Data, Design
from equipoise.core import Booleans, EquipoiseError, Finding, Floats, Harm
from equipoise.core.conclusion import Cause
from equipoise.core.finding import REAL
from equipoise.metrics.spec import chance_spread
from equipoise.stats.verdict import LEAST_RATIO, harmful_excess

_SHARE_LEFT = 0.7


def explain(
    audit: AnyAudit,
    config: AuditConfig,
    data: Data,
    designs: Sequence[Design],
    findings: Sequence[Finding],
    harms: Sequence[Harm],
) -> list[Cause]:
    """Return the causes of each model's disparities, the likeliest first.

    Parameters
    ----------
    audit : Audit
    config : AuditConfig
    data : Data
    designs : sequence of Design
        Those that were measured.
    findings : sequence of Finding
    harms : sequence of Harm
        Which side of chance is worse for each finding.
    """
    causes = list[Cause]()
    for model in dict.fromkeys(design.model for design in designs):
        strong = {
            place: finding
            for place, finding in enumerate(findings)
            if finding.model == model and finding.verdict in REAL
        }
        model_designs = [design for design in designs if design.model == model]
        causes += _explain_model(audit, config, data, model_designs, strong, harms)
    return causes


def _explain_model(
    audit: AnyAudit,
    config: AuditConfig,
    data: Data,
    designs: Sequence[Design],
    strong: dict[int, Finding],
    harms: Sequence[Harm],
) -> Iterator[Cause]:
    level = config.testing.alpha
    while strong and (cells := [*_cells(audit, designs, level)]):
        candidate = _likeliest(cells)
        if candidate.score < NormalDist().inv_cdf(1 - level / len(cells)):
            return
        cell = candidate.cell
        data = audit.level(data, designs[0], cell)
        try:
            designs = [
                design for design in audit.designs(config, data)
                if design.model == designs[0].model
            ]  # fmt: skip
            recounted = _recount(audit, config, data, designs)
        except EquipoiseError:
            return
        cutoff = _cutoff(level, len(strong))
        explained = tuple(
            place
            for place, finding in strong.items()
            if _is_explained(finding, recounted.get(_key(finding)), cell, harms[place], cutoff)
        )
        yield Cause(
            model=designs[0].model,
            groups=cell.groups.name,
            group=cell.groups.names[cell.group],
            subject=cell.subject,
            n=cell.n,
            findings=explained,
        )
        strong = {place: strong[place] for place in strong if place not in explained}


def _cutoff(alpha: float, tests: int) -> float:
    return NormalDist().inv_cdf(1 - alpha / (2 * tests))


@dataclass(frozen=True)
class _Candidate:
    """A cell, how many hits it lacks against the other groups, and the z-score of that."""

    cell: Cell
    lacking: float
    score: float

    def holds(self, part: _Candidate) -> bool:
        """Whether the rows beside a part of an intersection lack at least half as many."""
        cell, inner = self.cell, part.cell
        levels = {*zip(cell.groups.attributes, cell.levels, strict=True)}
        inner_levels = {*zip(inner.groups.attributes, inner.levels, strict=True)}
        if cell.subject != inner.subject or not levels < inner_levels or cell.n <= inner.n:
            return False
        other_share = (self.lacking - part.lacking) / (cell.n - inner.n)
        return 2 * other_share >= part.lacking / inner.n


def _likeliest(candidates: Sequence[_Candidate]) -> _Candidate:
    """Return the highest score; of an intersection, the attribute that lacks hits throughout."""
    best = max(candidates, key=lambda candidate: candidate.score)
    wider = [candidate for candidate in candidates if candidate.holds(best)]
    return max(wider, key=lambda candidate: candidate.score, default=best)


def _cells(audit: AnyAudit, designs: Sequence[Design], level: float) -> Iterator[_Candidate]:
    """Yield cells with how much less often they are right than the other groups."""
    for design in designs:
        outcomes = audit.outcomes(design)
        if outcomes is None:
            continue
        usable = outcomes.groups.usable[:, None]
        right, rows = np.where(usable, outcomes.right, 0.0), np.where(usable, outcomes.rows, 0.0)
        all_right, all_rows = right.sum(axis=0), rows.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = all_right / all_rows
            lacking = rows * share - right
            # Of a hypergeometric count.
            variance = rows * share * (1 - share) * (all_rows - rows) / np.maximum(all_rows - 1, 1)
        variance = np.nan_to_num(variance)
        lacking = np.nan_to_num(lacking)
        scores = _scores(lacking, variance)
        for group, subject in np.argwhere(variance > 0).tolist():
            cell = Cell(
                outcomes.groups, group, outcomes.classes[subject], int(rows[group, subject])
            )
            yield _Candidate(cell, float(lacking[group, subject]), float(scores[group, subject]))
        alone = scores >= NormalDist().inv_cdf(1 - level / scores.size)
        together = _scores(lacking.sum(axis=1), variance.sum(axis=1))
        for group in np.flatnonzero(variance.any(axis=1)).tolist():
            if _lacks_as_a_whole(lacking[group], rows[group], alone[group]):
                cell = Cell(outcomes.groups, group, "", int(rows[group].sum()))
                yield _Candidate(cell, float(lacking[group].sum()), float(together[group]))


def _scores(lacking: Floats, variance: Floats) -> Floats:
    scores: Floats = lacking / np.sqrt(np.where(variance > 0, variance, np.inf))
    return scores


def _lacks_as_a_whole(lacking: Floats, rows: Floats, alone: Booleans) -> bool:
    """Whether a group lacks hits in all its classes, rather than in those that do so alone.

    The other classes lack at least half as many of their rows.
    """
    if alone.all() or not alone.any() or not rows[~alone].any():
        return True
    share, other_share = (lacking[side].sum() / rows[side].sum() for side in (alone, ~alone))
    return bool(2 * other_share >= share)


Key = tuple[object, ...]


def _key(finding: Finding) -> Key:
    return (
        finding.version, finding.groups, finding.metric, finding.aggregate, finding.compared_to,
        finding.subject, finding.group, finding.variant, finding.within, finding.within_value,
        finding.part_of,
    )  # fmt: skip


def _recount(
    audit: AnyAudit, config: AuditConfig, data: Data, designs: Iterable[Design]
) -> dict[Key, Finding]:
    """Return the findings of designs by what they are about, measured without resampling."""
    return {
        _key(draft.finding): draft.finding
        for design in designs
        for draft in audit.measure(config, data, design, None).findings
    }


def _is_of_cell(finding: Finding, cell: Cell) -> bool:
    """Whether a finding compares the groups of a cell, in its class or over all classes.

    Where the rest can't be measured, such as mistakes of a class without any, this decides.
    """
    subjects = ("", cell.subject)
    return finding.groups == cell.groups.name and (not cell.subject or finding.subject in subjects)


def _is_explained(
    finding: Finding, levelled: Finding | None, cell: Cell, harm: Harm, cutoff: float
) -> bool:
    """Whether a finding is no disparity in levelled data, and clearly smaller."""
    if levelled is None or math.isnan(value := levelled.value):
        return _is_of_cell(finding, cell)
    chance = 0.0 if math.isnan(finding.chance) else finding.chance
    before = harmful_excess(finding.value, chance, harm)
    after = harmful_excess(value, chance, harm)
    spread = (finding.ci_high - finding.ci_low) / (2 * NormalDist().inv_cdf(0.975))
    if not math.isnan(finding.chance_high):
        spread = chance_spread(finding, harm)
    insignificant = not math.isnan(spread) and after < cutoff * spread
    small = not math.isnan(finding.threshold) and after < finding.threshold
    if finding.by_ratio:
        small = levelled.ratio is None or levelled.ratio.low < LEAST_RATIO
    return after < _SHARE_LEFT * before and (small or insignificant)
