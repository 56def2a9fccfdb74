"""Comparisons of answers that too few answers in a group made impossible."""

import re
from collections.abc import Iterator, Sequence

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.core.sentences import named
from equipoise.report.blocks import Statement
from equipoise.report.text import count, enclose, listed
from equipoise.report.words import difference_name

_TOO_FEW = re.compile(r"fewer than (\d+) ")


def statements_not_compared(result: AuditResult, metrics: Sequence[str]) -> Iterator[Statement]:
    """Yield for each model which comparison its missing answers made impossible, and why.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics that compare rows with an answer.
    """
    sizes = result.tables.get("group_sizes")
    n_rows = {
        (row["groups"], row["group"]): row["n"] for row in (sizes.to_pylist() if sizes else ())
    }
    texts: dict[str, list[str]] = {}
    for finding in result.findings:
        if finding.metric in metrics and (reason := _reason(finding, n_rows)):
            texts.setdefault(finding.model, []).append(reason)
    for model, (first, *further) in texts.items():
        start = enclose("", model, ": ")
        yield Statement(None, f"{start}{first}", " ".join(further), " ".join(further))


def _reason(finding: Finding, n_rows: dict[tuple[str, str], int]) -> str:
    """Say why a finding compares nothing; "" where another reason than answers is behind it."""
    not_estimable = finding.verdict is Verdict.NOT_ESTIMABLE and not finding.subject
    if not not_estimable or finding.family is not Family.COMPOSITE:
        return ""
    few, least = list[str](), 0
    for part in finding.by_group:
        match = _TOO_FEW.match(part.note)
        if match and n_rows.get((finding.groups, part.group), 0) >= int(match[1]) > part.n:
            few.append(f"{count(part.n)} {named(part.group)}")
            least = int(match[1])
    if not few:
        return ""
    name = difference_name(finding)
    return (
        f"{name[0].upper()}{name[1:]} by {finding.groups} was not compared: {listed(few)} have an "
        f"answer, min_group_size is {least}."
    )
