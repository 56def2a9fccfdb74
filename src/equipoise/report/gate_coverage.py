"""Models and groups that a gate rule is about and that no check judges."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from equipoise.core import Aggregate, AuditResult, Finding, GroupValue
from equipoise.report.gate_rules import ROUNDING, GateCheck, GateRule, Outcome
from equipoise.report.not_compared import attributes_not_compared
from equipoise.report.text import count, enclose, interval, listed, number, visible
from equipoise.report.words import has_shares

Place = tuple[str, str]
"""A model and the groups that it is measured by."""


def checks_of_gaps(
    findings: Sequence[Finding], rule: GateRule, measured: Collection[Place]
) -> Iterator[GateCheck]:
    """Yield a check "not measured" for each model that a rule can't judge.

    A model is measured like another where they have a metric in common.

    Parameters
    ----------
    findings : sequence of Finding
        All of the run.
    rule : GateRule
    measured : collection of (str, str)
        Models and groups that the rule judges.
    """
    metrics: dict[str, set[str]] = {}
    for finding in findings:
        metrics.setdefault(finding.model, set()).add(finding.metric)
    absent = (None, "", rule.change_from)
    for groups in dict.fromkeys(groups for _, groups in measured):
        models = {model for model, measured_by in measured if measured_by == groups}
        shared = {name for model in models for name in metrics.get(model, ())}
        for model, names in metrics.items():
            has_peer = not shared.isdisjoint(names)
            is_missing = has_peer and model not in models and model not in absent
            if is_missing and rule.model in (None, model):
                place = replace(rule, model=model, groups=groups or None)
                text = (
                    "not measured for this model, and for another one. To do: measure both alike, "
                    "or name the model of the rule."
                )
                yield GateCheck(place, None, "not measured", str(place), text)


def with_small_groups(result: AuditResult, check: GateCheck) -> GateCheck:
    """Return a check that names the groups that are too small for it.

    A group that is beyond a bound with its whole interval, though too small to be compared, leaves
    a passed check "not judged".
    """
    finding = check.finding
    groups = check.groups if finding is None else finding.groups
    if not groups or check.outcome not in ("passed", "breached"):
        return check
    parts = () if finding is None else _small(finding)
    sizes = {part.group: part.n for part in parts} or _small_sizes(result, groups)
    if not sizes:
        return check
    names = listed([f"{visible(name)}, {count(n)} rows" for name, n in sizes.items()])
    statement = f"{check.statement} Not checked: {names}."
    outcome: Outcome = check.outcome
    beyond = [part for part in parts if finding and _is_beyond(check.rule, finding, part)]
    if beyond and outcome == "passed":
        outcome = "not judged"
        values = listed([
            f"{visible(part.group)} has {number(part.value, 4)} "
            f"{interval(part.low, part.high, 4)} in {count(part.n)} rows"
            for part in beyond
        ])  # fmt: skip
        statement = (
            f"not judged: {values}, beyond the bound and too few to be compared. To do: add rows "
            f"of these groups, or lower data.min_group_size. Not checked: {names}."
        )
    return replace(check, outcome=outcome, statement=statement, not_checked=tuple(sizes.items()))


def small_groups_text(result: AuditResult) -> str:
    """Name the groups that comparisons leave out, as they have too few rows; "" without any."""
    table = result.tables.get("group_sizes")
    rows = [row for row in ([] if table is None else table.to_pylist()) if row["group"]]
    texts, without = [], attributes_not_compared(result)
    for groups in dict.fromkeys(row["groups"] for row in rows if row["usable"]):
        if groups in without:
            continue
        names = [
            f"{visible(name)} ({count(n)} rows)" for name, n in _small_sizes(result, groups).items()
        ]
        if names:
            texts.append(f"by {visible(groups)}: {listed(names, 4)}")
    return enclose("Too small to compare ", "; ".join(texts), ".")


def _small(finding: Finding) -> tuple[GroupValue, ...]:
    """Return the groups with rows that a finding doesn't compare."""
    return tuple(part for part in finding.by_group if part.note and part.n)


def _small_sizes(result: AuditResult, groups: str) -> dict[str, int]:
    """Return the rows of the groups that a run doesn't compare."""
    table = result.tables.get("group_sizes")
    rows = [] if table is None else table.to_pylist()
    return {
        row["group"]: row["n"]
        for row in rows
        if row["groups"] == groups and row["group"] and row["n"] and not row["usable"]
    }


def _is_beyond(rule: GateRule, finding: Finding, part: GroupValue) -> bool:
    """Whether a small group's whole interval is beyond a bound on groups' shares."""
    if not rule.bounds or not has_shares(finding):
        return False
    if finding.aggregate is Aggregate.WORST_GROUP:
        is_below = rule.min is not None and part.high < rule.min - ROUNDING
        return is_below or (rule.max is not None and part.low > rule.max + ROUNDING)
    if finding.aggregate is not Aggregate.DIFFERENCE or finding.compared_to or rule.max is None:
        return False
    compared = [other for other in finding.by_group if not other.note]
    gaps = (max(other.low - part.high, part.low - other.high) for other in compared)
    return any(gap > rule.max + ROUNDING for gap in gaps)
