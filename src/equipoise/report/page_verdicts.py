"""Verdicts that people read: no finding has one that the run's conclusions don't bear out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.finding import REAL
from equipoise.report.concluding import conclusions_of
from equipoise.report.selecting import Selector

ResultT = TypeVar("ResultT", bound=AuditResult)

_MIX = "the mix of classes explains the difference"
_NO_CONCLUSION = "the labels or another number explain this number"


def conclusions_about_groups(
    result: AuditResult, leads: Sequence[Selector] = ()
) -> list[Conclusion]:
    """Return a run's conclusions that compare groups: not rankings of models or choices.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of Selector
        Metrics of the kind of audit, most important first, for a result without conclusions.
    """
    conclusions = result.conclusions or conclusions_of(result.findings, leads)
    return [conclusion for conclusion in conclusions if conclusion.about_groups]


def with_page_verdicts(result: ResultT, leads: Sequence[Selector] = ()) -> ResultT:
    """Return a result with the verdicts that pages and the terminal show.

    A difference that the labels have, or that the mix of classes makes, passes its own test.
    Where it is no conclusion it has no verdict, with the reason, so that the title isn't denied.

    Parameters
    ----------
    result, leads
        As of `conclusions_about_groups`.
    """
    if not result.findings:
        return result
    reasons = dict(_reasons(result.findings, conclusions_about_groups(result, leads)))
    findings = tuple(
        replace(finding, verdict=Verdict.NONE, reason=reasons[place])
        if place in reasons else finding
        for place, finding in enumerate(result.findings)
    )  # fmt: skip
    return replace(result, findings=findings)


def _reasons(
    findings: Sequence[Finding], conclusions: Sequence[Conclusion]
) -> Iterator[tuple[int, str]]:
    """Yield places of differences that are no conclusion, with the reason."""
    places_real, mixed = set[int](), set[tuple[str, str]]()
    for conclusion in conclusions:
        if conclusion.real:
            places_real |= {conclusion.finding, *conclusion.restated_by}
        elif conclusion.at_equal_mix is not None:
            mixed.add((conclusion.model, conclusion.groups))
    for place, finding in enumerate(findings):
        # Single queries are tests of their own, and may differ where they cancel out.
        of_query = finding.family is Family.QUERY and finding.leads
        if finding.verdict in REAL and place not in places_real and not of_query:
            is_mix = (finding.model, finding.groups) in mixed
            yield place, _MIX if is_mix else _NO_CONCLUSION
