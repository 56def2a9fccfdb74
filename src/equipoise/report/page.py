"""What the page of one kind of audit shows, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from equipoise.core import AuditResult
from equipoise.report.blocks import Section
from equipoise.report.summary import Summary

MakeSection = Callable[[AuditResult], Section | None]


def _no_facts(_: AuditResult) -> Sequence[tuple[str, str]]:
    return ()


@dataclass(frozen=True)
class Page:
    """What the report of one kind of audit shows.

    Every page has the same order: statements, chart and next steps; results by group; findings;
    then the sections of the kind, data, limitations and provenance, folded.

    Attributes
    ----------
    leads : tuple of str
        Metrics of the statements, most important first.
    by_group : tuple of str
        Metrics of the table by group.
    subjects : str
        Plural of what a finding's subject is: "classes", "queries".
    points : tuple of (str, str)
        Pairs of metrics: models are plotted with the second against the first.
    sections : tuple of callable
        Each makes a section from a result, or None where the result lacks its tables.
    facts : callable
        Makes pairs of name and text about the data.
    caveat : str
        What to know before reading a disparity.
    summary : callable, optional
        Makes the first screen in place of `summary.summarize`.
    noun : str
        What the title calls the page.
    judged : bool
        Whether findings have verdicts.
    """

    leads: tuple[str, ...] = ()
    by_group: tuple[str, ...] = ()
    subjects: str = "subjects"
    points: tuple[tuple[str, str], ...] = ()
    sections: tuple[MakeSection, ...] = ()
    facts: Callable[[AuditResult], Sequence[tuple[str, str]]] = field(default=_no_facts)
    caveat: str = ""
    summary: Callable[[AuditResult], Summary] | None = None
    noun: str = "Audit"
    judged: bool = True
