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

from equipoise.audits.candidates import Candidate, candidates_of, likeliest
from equipoise.audits.cells import Cell
from equipoise.audits.config import AuditConfig
from equipoise.audits.kind import AnyAudit, Data, Design
from equipoise.audits.notes import Note
from equipoise.core import EquipoiseError, Finding, Harm
from equipoise.core.conclusion import Cause
from equipoise.core.finding import REAL
from equipoise.metrics.spec import chance_spread
from equipoise.report.expecting import added_to_labels
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
    """A model with its disparities."""

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
        while strong and (cells := [*_candidates(audit, designs, level)]):
            candidate = likeliest(cells)
            if candidate.score < _cutoff(level, len(cells)):
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


def _candidates(audit: AnyAudit, designs: Sequence[Design], level: float) -> Iterator[Candidate]:
    """Yield the cells of all designs that may explain disparities."""
    for design in designs:
        if (outcomes := audit.outcomes(design)) is not None:
            yield from candidates_of(outcomes, level)


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
    """Whether a finding compares groups by attributes of a cell, in its class or over all classes.

    Where the rest can't be measured, such as mistakes of a class without any, this decides.
    """
    attributes, cell_attributes = {*finding.attributes}, {*cell.groups.attributes}
    nested = attributes <= cell_attributes or cell_attributes <= attributes
    return nested and (not cell.subject or finding.subject in ("", cell.subject))


def _is_explained(
    finding: Finding, levelled: Finding | None, cell: Cell, harm: Harm, cutoff: float
) -> bool:
    """Whether a finding is no disparity in levelled data, and clearly smaller.

    Of a difference that labels have as well, the part that the model adds is compared.
    """
    if levelled is None or math.isnan(levelled.value):
        return _is_of_cell(finding, cell)
    before, after = _excess(finding, finding, harm), _excess(levelled, finding, harm)
    spread = _spread(finding, harm)
    insignificant = not math.isnan(spread) and after < cutoff * spread
    small = not math.isnan(finding.threshold) and after < finding.threshold
    if finding.by_ratio:
        small = levelled.ratio is None or levelled.ratio.low < LEAST_RATIO
    return after < _SHARE_LEFT * before and (small or insignificant)


def _excess(counted: Finding, finding: Finding, harm: Harm) -> float:
    """Return how much worse a counted value is than chance, or than the labels.

    Where both sides are harmful, it is the excess on the side of the finding.
    """
    if (added := added_to_labels(counted)) is not None:
        return added.value
    chance = 0.0 if math.isnan(finding.chance) else finding.chance
    if harm == "either":
        return math.copysign(1.0, finding.value - chance) * (counted.value - chance)
    return harmful_excess(counted.value, chance, harm)


def _spread(finding: Finding, harm: Harm) -> float:
    """Return the standard error of a finding: that of chance where it was drawn."""
    low, high = finding.ci_low, finding.ci_high
    if (added := added_to_labels(finding)) is not None:
        low, high = added.low, added.high
    elif not math.isnan(finding.chance_high):
        return chance_spread(finding, harm)
    return (high - low) / (2 * NormalDist().inv_cdf(0.975))
