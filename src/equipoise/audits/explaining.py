"""Causes of disparities: cells of the rows whose level, set to that of the others, removes them.

A disparity in one cell (a group within a class) moves dozens of metrics. The likeliest cell is set
to the level of the other groups and the metrics are counted again, without resampling. What is
then no disparity has been explained; the likeliest cell of the rest comes next.

Numbers are counted for as many cells as sizes leave room for, see `_Case.room`: about a second, and
never by the clock, so that the same data give the same causes. Of more rows than leave room for a
few cells, a random part is counted.
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
from equipoise.report.text import count
from equipoise.stats.verdict import LEAST_RATIO, harmful_excess

_SHARE_LEFT = 0.7
MOST_NUMBERS = 10_000
"""Numbers that are counted again for all cells together, each in a tenth of a millisecond."""
_ROWS_OF_A_NUMBER, _CELLS_OF_A_NUMBER = 2_500, 50
"""Rows of a comparison, and cells, that take as long as a number."""
MOST_ROWS, FEWEST_ROWS = 1_250_000, 100_000
"""Rows of all comparisons with a difference that are counted again for a cell; of more, a random
part is counted, but no fewer rows than these of each."""


@dataclass(frozen=True)
class Explanation:
    """Causes of a run's disparities.

    Attributes
    ----------
    causes : tuple of Cause
        By model, the likeliest first.
    notes : tuple of Note
        On models of which further cells weren't examined, and on rows.
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
    real = {(finding.model, finding.groups) for finding in findings if finding.verdict in REAL}
    compared = [design for design in designs if (design.model, design.groups.name) in real]
    sampled_data, sampled_designs = data, designs
    share = min(_share_of_rows(compared), 1.0)
    if share < 1.0:
        sampled_data = audit.sample(data, share, config.resampling.seed)
    if sampled_data is data:
        share = 1.0
    else:
        sampled_designs = audit.designs(config, sampled_data)
        n, n_sampled = (
            max(len(design.groups.codes) for design in choices)
            for choices in (designs, sampled_designs)
        )
        notes.append(Note("causes", _SAMPLED.format(n=count(n), n_sampled=count(n_sampled))))
    work_limit = MOST_NUMBERS // max(len(models), 1)
    for model in models:
        model_findings = {
            place: finding for place, finding in enumerate(findings) if finding.model == model
        }
        model_designs, model_sample = (
            [design for design in choices if design.model == model]
            for choices in (designs, sampled_designs)
        )
        case = _Case(audit, config, model, model_findings, harms, work_limit, model_designs, share)
        examined, complete = case.causes(sampled_data, model_sample)
        causes += examined
        if not complete:
            notes.append(Note(model, _NOT_EXAMINED.format(n=len(examined))))
    return Explanation(tuple(causes), tuple(notes))


def _share_of_rows(designs: Sequence[Design]) -> float:
    """Return the share of the rows of designs that is counted again."""
    sizes = [len(design.groups.codes) for design in designs]
    return max(MOST_ROWS / max(sum(sizes), 1), FEWEST_ROWS / max([1, *sizes]))


_SAMPLED = "examined on a random {n_sampled} of {n} rows."
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
    designs: Sequence[Design]
    share: float

    def causes(self, data: Data, designs: Sequence[Design]) -> tuple[list[Cause], bool]:
        """Return causes, and whether all likely cells were examined.

        Parameters
        ----------
        data : Data
            All rows, or a random part.
        designs : sequence of Design
            Those of these rows.
        """
        audit, config, level = self.audit, self.config, self.config.testing.alpha
        strong = {place: f for place, f in self.findings.items() if f.verdict in REAL}
        compared = {finding.groups for finding in strong.values()}
        strong = self._seen_in(data, [d for d in designs if d.groups.name in compared], strong)
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
                    n=self._size(cell),
                    findings=explained,
                )
            )
            strong = {place: strong[place] for place in strong if place not in explained}
        return causes, True

    def _seen_in(
        self, data: Data, designs: Sequence[Design], strong: Mapping[int, Finding]
    ) -> dict[int, Finding]:
        """Return the findings that a random part of the rows has with about the same size."""
        if self.share == 1.0:
            return dict(strong)
        counted = _recount(self.audit, self.config, data, designs)
        return {
            place: finding
            for place, finding in strong.items()
            if _is_seen(finding, counted.get(_key(finding)), self.harms[place], self.share)
        }

    def _size(self, cell: Cell) -> int:
        """Return the rows of a cell among all rows."""
        for design in self.designs:
            outcomes = self.audit.outcomes(design)
            if outcomes is None or outcomes.groups.name != cell.groups.name:
                continue
            rows = outcomes.rows[outcomes.groups.levels.index(cell.levels)]
            classes = [outcomes.classes.index(cell.subject)] if cell.subject else slice(None)
            return int(rows[classes].sum())
        return cell.n

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
        for draft in audit.recount(config, data, design)
    }


def _is_of_cell(finding: Finding, cell: Cell) -> bool:
    """Whether a finding compares groups by attributes of a cell, in its class or over all classes.

    Where the rest can't be measured, such as mistakes of a class without any, this decides.
    """
    attributes, cell_attributes = {*finding.attributes}, {*cell.groups.attributes}
    nested = attributes <= cell_attributes or cell_attributes <= attributes
    return nested and (not cell.subject or finding.subject in ("", cell.subject))


def _is_seen(finding: Finding, in_part: Finding | None, harm: Harm, share: float) -> bool:
    """Whether a part of the rows has a finding with its groups, and about its size."""
    if in_part is None or _valued_groups(in_part) != _valued_groups(finding):
        return False
    sizes = [_excess(number, finding, harm) for number in (finding, in_part)]
    # By as much a random part departs from all rows.
    spread = _spread(finding, harm) * math.sqrt(1.0 / share - 1.0)
    near = max(sizes) - min(sizes) <= NormalDist().inv_cdf(0.999) * spread
    return near or min(sizes) >= _SHARE_LEFT * max(sizes)


def _valued_groups(finding: Finding) -> set[str]:
    """Return the groups of a finding that have a value and no note against it."""
    return {part.group for part in finding.by_group if not part.note and not math.isnan(part.value)}


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
