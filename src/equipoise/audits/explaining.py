"""Causes of disparities: cells of the rows whose level, set to that of the others, removes them.

A disparity in one cell (a group within a class) moves dozens of metrics. The likeliest cell is set
to the level of the other groups and the metrics are counted again, without resampling. What is
then no disparity has been explained; the likeliest cell of the rest comes next.

Numbers are counted for as many cells as sizes leave room for, see `_Case.room`: about a second, and
never by the clock, so that the same data give the same causes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from equipoise.audits.cells import Cell
from equipoise.audits.config import AuditConfig
from equipoise.audits.kind import AnyAudit, Data, Design
from equipoise.audits.notes import Note
from equipoise.core import Booleans, EquipoiseError, Finding, Floats, Harm
from equipoise.core.conclusion import Cause
from equipoise.core.finding import REAL
from equipoise.stats.verdict import LEAST_RATIO, harmful_excess

_SHARE_LEFT = 0.7
MOST_NUMBERS = 10_000
"""Numbers that are counted again for all cells together, each in a tenth of a millisecond."""
_ROWS_OF_A_NUMBER, _CELLS_OF_A_NUMBER = 2_500, 50
"""Rows of a comparison, and cells, that take as long as a number."""


@dataclass(frozen=True)
class Explanation:
    """Causes of a run's disparities.

    Attributes
    ----------
    causes : tuple of Cause
        By model, the likeliest first.
    notes : tuple of Note
        On models of which further cells weren't examined.
    """

    causes: tuple[Cause, ...]
    notes: tuple[Note, ...]


def explain(
    audit: AnyAudit,
    config: AuditConfig,
    data: Data,
    designs: Sequence[Design],
    findings: Sequence[Finding],
    harms: Sequence[Harm],
) -> Explanation:
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
    causes, notes = list[Cause](), list[Note]()
    models = dict.fromkeys(design.model for design in designs)
    work_limit = MOST_NUMBERS // max(len(models), 1)
    for model in models:
        model_findings = {
            place: finding for place, finding in enumerate(findings) if finding.model == model
        }
        model_designs = [design for design in designs if design.model == model]
        case = _Case(audit, config, model, model_findings, harms, work_limit)
        examined, complete = case.causes(data, model_designs)
        causes += examined
        if not complete:
            notes.append(Note(model, _NOT_EXAMINED.format(n=len(examined))))
    return Explanation(tuple(causes), tuple(notes))


_NOT_EXAMINED = (
    "causes of differences were confirmed for {n} cells of groups and classes. Further cells "
    "weren't examined, as the numbers are too many to count again: one difference may stand in "
    "several conclusions."
)


@dataclass(frozen=True)
class _Case:
    """A model whose disparities are explained."""

    audit: AnyAudit
    config: AuditConfig
    model: str
    findings: Mapping[int, Finding]
    harms: Sequence[Harm]
    work_limit: int

    def causes(self, data: Data, designs: Sequence[Design]) -> tuple[list[Cause], bool]:
        """Return causes, and whether all likely cells were examined."""
        audit, config, level = self.audit, self.config, self.config.testing.alpha
        strong = {place: f for place, f in self.findings.items() if f.verdict in REAL}
        compared = {finding.groups for finding in strong.values()}
        causes, room = list[Cause](), -1
        while strong and (cells := [*_cells(audit, designs, level)]):
            candidate = _likeliest(cells)
            if candidate.score < NormalDist().inv_cdf(1 - level / len(cells)):
                break
            if room < 0:
                room = self.room([d for d in designs if d.groups.name in compared], len(cells))
            if len(causes) == room:
                return causes, False
            cell = candidate.cell
            data = audit.level(data, designs[0], cell)
            try:
                designs = [d for d in audit.designs(config, data) if d.model == self.model]
                # Only numbers of the groups that differ can be explained.
                recounted = _recount(
                    audit, config, data, [d for d in designs if d.groups.name in compared]
                )
            except EquipoiseError:
                break
            cutoff = _cutoff(level, len(strong))
            explained = tuple(
                place
                for place, finding in strong.items()
                if _is_explained(
                    finding, recounted.get(_key(finding)), cell, self.harms[place], cutoff
                )
            )
            causes.append(
                Cause(
                    model=self.model,
                    groups=cell.groups.name,
                    group=cell.groups.names[cell.group],
                    subject=cell.subject,
                    n=cell.n,
                    findings=explained,
                )
            )
            strong = {place: strong[place] for place in strong if place not in explained}
        return causes, True

    def room(self, designs: Sequence[Design], n_cells: int) -> int:
        """Return for how many cells numbers may be counted again: by sizes alone."""
        names = {design.groups.name for design in designs}
        numbers = sum(finding.groups in names for finding in self.findings.values())
        rows = sum(len(design.groups.codes) for design in designs)
        work = numbers + rows // _ROWS_OF_A_NUMBER + n_cells // _CELLS_OF_A_NUMBER
        return self.work_limit // max(work, 1)


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
        spread = (finding.chance_high - finding.chance_low) / (2 * NormalDist().inv_cdf(0.975))
    insignificant = not math.isnan(spread) and after < cutoff * spread
    small = not math.isnan(finding.threshold) and after < finding.threshold
    if finding.by_ratio:
        small = levelled.ratio is None or levelled.ratio.low < LEAST_RATIO
    return after < _SHARE_LEFT * before and (small or insignificant)
