"""Comparisons that too few rows in a group made impossible."""

from collections.abc import Iterator, Mapping, Sequence

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.core.sentences import named
from equipoise.report.blocks import Statement, rows
from equipoise.report.text import count, enclose, listed


def statements_not_compared(result: AuditResult, metrics: Sequence[str]) -> Iterator[Statement]:
    """Yield which comparisons missing answers made impossible, and why.

    Models whose answers are missing alike share a statement.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics that compare rows with an answer.
    """
    models_of_text: dict[str, dict[str, None]] = {}
    for finding in result.findings:
        if few := _groups_without_answers(result, metrics, finding):
            text = _sentence(finding.groups, few, _least_rows(result))
            models_of_text.setdefault(text, {})[finding.model] = None
    texts_of_models: dict[tuple[str, ...], list[str]] = {}
    for text, models in models_of_text.items():
        texts_of_models.setdefault((*models,), []).append(text)
    for names, (first, *further) in texts_of_models.items():
        start = enclose("", listed(names), ": ")
        yield Statement(None, f"{start}{first}", " ".join(further), " ".join(further))


def steps_not_compared(result: AuditResult, metrics: Sequence[str]) -> tuple[str, ...]:
    """Return what to do where rows or answers of a group were too few; () where none were."""
    if not _least_rows(result):
        return ()
    names = {
        finding.groups: None
        for finding in result.findings
        if _groups_without_answers(result, metrics, finding)
    }
    names |= dict.fromkeys(attributes_not_compared(result))
    if not names:
        return ()
    return (f"Add rows, or lower data.min_group_size, to compare by {listed([*names])}.",)


def attributes_not_compared(result: AuditResult) -> list[str]:
    """Return the attributes that have several groups, and at most one with enough rows."""
    usable: dict[str, list[bool]] = {}
    for row in rows(result, "group_sizes"):
        if row["group"] and row["n"] and len(row["attributes"]) == 1:
            usable.setdefault(row["groups"], []).append(row["usable"])
    return [name for name, flags in usable.items() if sum(flags) < 2 <= len(flags)]


def _groups_without_answers(
    result: AuditResult, metrics: Sequence[str], finding: Finding
) -> dict[str, int]:
    """Return groups that have rows enough, and answers too few for a finding, by its groups."""
    not_estimable = finding.verdict is Verdict.NOT_ESTIMABLE and not finding.subject
    is_whole = finding.metric in metrics and finding.family is Family.COMPOSITE
    if not (not_estimable and is_whole):
        return {}
    large = {
        row["group"] for row in rows(result, "group_sizes")
        if row["groups"] == finding.groups and row["usable"]
    }  # fmt: skip
    least = _least_rows(result)
    return {
        part.group: part.n for part in finding.by_group if part.group in large and part.n < least
    }


def _least_rows(result: AuditResult) -> int:
    """Return the rows that a group needs to be compared; 0 where a run has no such limit."""
    data = result.manifest.resolved.get("data")
    return int(data.get("min_group_size") or 0) if isinstance(data, Mapping) else 0


def _sentence(groups: str, few: Mapping[str, int], least: int) -> str:
    """Say why answers were not compared by an attribute."""
    (first, n_first), *further = few.items()
    sizes = [f"{count(n_first)} {'is' if n_first == 1 else 'are'} for {named(first)}"]
    sizes += [f"{count(n)} for {named(group)}" for group, n in further]
    return (
        f"Answers were not compared by {groups}, as only {listed(sizes)}, fewer than the "
        f"{count(least)} that a comparison needs."
    )
