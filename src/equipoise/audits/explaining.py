"""Causes of disparities: cells of the rows whose level, set to that of the others, removes them.

A disparity in one cell (a group within a class) moves dozens of metrics. The likeliest cell is set
to the level of the other groups and the metrics are counted again, without resampling. What is
then no disparity has been explained; the likeliest cell of the rest comes next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import NormalDist

from equipoise.audits.candidates import Candidate, candidates_of, likeliest
from equipoise.audits.cells import Cell
from equipoise.audits.config import AuditConfig
from equipoise.audits.kind import AnyAudit, Data, Design
from equipoise.core import EquipoiseError, Finding, Harm
from equipoise.core.conclusion import Cause
from equipoise.core.finding import REAL
from equipoise.metrics.spec import chance_spread
from equipoise.report.expecting import added_to_labels
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
    while strong and (candidates := [*_candidates(audit, designs, level)]):
        candidate = likeliest(candidates)
        if candidate.score < _cutoff(level, len(candidates)):
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
    attributes, cell_attributes = {*finding.groups.split(" × ")}, {*cell.groups.attributes}
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
