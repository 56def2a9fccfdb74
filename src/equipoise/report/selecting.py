"""Findings chosen by metric and by how groups compare in it."""

from collections.abc import Sequence

from equipoise.core import Aggregate, ComparedTo, Finding


def measure_of(finding: Finding) -> tuple[str, Aggregate, ComparedTo]:
    """Return the measure of a finding, without its groups and model."""
    return finding.metric, finding.aggregate, finding.compared_to


Selector = str | tuple[str, Aggregate] | tuple[str, Aggregate, ComparedTo]
"""Findings by metric, and by how groups compare in it."""


def selects(selector: Selector, finding: Finding) -> bool:
    """Whether a finding is selected; a name alone leaves out single groups against all others."""
    if isinstance(selector, str):
        return finding.metric == selector and finding.aggregate is not Aggregate.AGAINST_REST
    return measure_of(finding)[: len(selector)] == selector


def place_in(selectors: Sequence[Selector], finding: Finding) -> int:
    """Return the place of the most special selector of a finding; the end without one."""
    measure = measure_of(finding)
    for selector in (measure, measure[:2], finding.metric):
        if selector in selectors:
            return [*selectors].index(selector)
    return len(selectors)


def place_of(finding: Finding) -> tuple[str, ...]:
    """Return the model, metric, subject, groups and version of a finding."""
    return finding.model, finding.metric, finding.subject, finding.groups, finding.version


def between_groups(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out differences to all rows where groups differ from each other at the same place."""
    between = {
        place_of(finding)
        for finding in findings
        if finding.aggregate is Aggregate.DIFFERENCE and not finding.compared_to
    }
    return [
        finding
        for finding in findings
        if not finding.compared_to or place_of(finding) not in between
    ]
