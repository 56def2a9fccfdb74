"""The first screen: a sentence for each model, one chart, and what to do next."""

from collections.abc import Sequence
from dataclasses import asdict, replace

from equipoise.core import Aggregate, AuditResult, Family, Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import (
    Badge,
    Chart,
    Page,
    Remark,
    Statement,
    Summary,
    distinct,
    has,
)
from equipoise.report.concluding import conclusions_of
from equipoise.report.plots import Axis, intervals, labelled_points
from equipoise.report.selecting import Selector, measure_of
from equipoise.report.text import count, enclose, plural, title
from equipoise.report.words import (
    certainty,
    conclusion_sentence,
    contrast,
    figures,
    has_shares,
    limit_of,
    name_of,
    quoted,
    worst_first,
)

MOST_MODELS = 8
MOST_MARKS = 28
"""Marks of the first chart, of all models together: more would push the next steps out of sight."""
LEAST_GROUPS, MOST_GROUPS = 3, 14


def summarize(
    result: AuditResult,
    leads: Sequence[Selector],
    caveat: str = "",
    steps: Sequence[str] = Page.steps,
) -> Summary:
    """Return the first screen of an audit.

    Parameters
    ----------
    result : AuditResult
    leads : sequence of Selector
        Metrics of the kind of audit, most important first, for a result without conclusions.
    caveat : str
        Shown where a statement is a disparity.
    steps : sequence of str
        What to do next about a disparity.
    """
    by_model = conclusions_by_model(result, leads)
    statements = [
        _statement(model, conclusions, result.findings) for model, conclusions in by_model.items()
    ]
    statements.sort(key=lambda statement: not statement.is_disparity)
    shown_statements = tuple(statements[:MOST_MODELS])
    if not any(statement.is_disparity for statement in shown_statements):
        caveat = ""
    summary = Summary(shown_statements, caveat=caveat)
    leading_findings = summary.leading_findings
    chart, next_steps = _chart(leading_findings, result.findings), _steps(leading_findings, steps)
    return replace(summary, chart=chart, steps=next_steps)


def conclusions_by_model(
    result: AuditResult, leads: Sequence[Selector] = ()
) -> dict[str, list[Conclusion]]:
    """Return a run's conclusions by model, the leading one of each model first.

    Findings of no model, such as human judgements, are left out where they say nothing new.
    """
    conclusions = result.conclusions or conclusions_of(result.findings, leads)
    by_model: dict[str, list[Conclusion]] = {finding.model: [] for finding in result.findings}
    for conclusion in conclusions:
        by_model[conclusion.model].append(conclusion)
    unnamed = by_model.get("", [])
    if len(by_model) > 1 and not any(map(_is_disparity, unnamed)):
        by_model.pop("", None)
    return by_model


def _is_disparity(conclusion: Conclusion) -> bool:
    return conclusion.verdict is Verdict.DISPARITY


def _statement(
    model: str, conclusions: Sequence[Conclusion], findings: Sequence[Finding]
) -> Statement:
    """Return what is said of a model: its leading conclusion, and the others in a line each."""
    if not conclusions:
        n_values = sum(finding.model == model for finding in findings)
        name = enclose("", model, ": ")
        return Statement(None, f"{name}{plural(n_values, 'value')}, none with a verdict.")
    first, *further = conclusions
    finding = findings[first.finding]
    text = conclusion_sentence(finding, first)
    if not first.real:
        text = f"{enclose('', model, ': ')}{text}"
    return Statement(
        Badge(first.verdict, limit=limit_of(finding)),
        text,
        certainty(finding),
        agreement(first, findings),
        finding,
        tuple(
            Remark(Badge(other.verdict), conclusion_sentence(findings[other.finding], other))
            for other in further
        ),
    )


def agreement(conclusion: Conclusion, findings: Sequence[Finding]) -> str:
    """Say how many other findings show the same difference; "" where none does.

    Complements and other folds are numbers that are there already, and so are further tests.
    """
    shown = {_number_of(findings[place]) for place in conclusion.restated_by}
    n = len(shown - {None, _number_of(findings[conclusion.finding])})
    if not n or not conclusion.real:
        return ""
    return f"{plural(n, 'more number')} {'shows' if n == 1 else 'show'} the same difference."


def _number_of(finding: Finding) -> tuple[object, ...] | None:
    """Return which number a finding is; None for a fold, which is another's."""
    if finding.family is Family.FOLD:
        return None
    return (*measure_of(finding), finding.groups, finding.subject, finding.group, finding.version)


def _chart(leading_findings: Sequence[Finding], findings: Sequence[Finding]) -> Chart | None:
    """Draw the groups of the first statement, else its subjects, else each model's finding."""
    if not leading_findings:
        return None
    first = _of_all_groups(leading_findings[0], findings)
    series_findings = [finding for finding in findings if _series(finding) == _series(first)]
    same = [finding for finding in series_findings if finding.subject == first.subject][
        :MOST_MODELS
    ]
    if worst_first(first):
        return groups_chart(first, same)
    if len({finding.subject for finding in series_findings if has(finding.value)}) > 2:
        return _subjects_chart(first, series_findings)
    rows = []
    for finding in leading_findings:
        row = mark(finding, finding.model or name_of(finding))
        rows.append({**row, "tip": figures(finding)})
    label = f"{name_of(first)} of each model, with interval and chance band."
    return intervals(rows, label, Axis(name_of(first)), title=f"{name_of(first)} by model")


def _series(finding: Finding) -> tuple[object, ...]:
    """Return what findings share that stand in one chart."""
    return (*measure_of(finding), finding.groups, finding.version, finding.null)


def mark(finding: Finding, label: str) -> dict[str, str | float]:
    """Return the mark of a finding: its value with its interval, over what chance gives."""
    return {
        "label": label, "value": finding.value, "low": finding.ci_low, "high": finding.ci_high,
        "chance_low": finding.chance_low, "chance_high": finding.chance_high,
    }  # fmt: skip


def _of_all_groups(finding: Finding, findings: Sequence[Finding]) -> Finding:
    """Return the finding over all groups behind that of one group against all others."""
    if not finding.group or finding.aggregate is not Aggregate.AGAINST_REST:
        return finding
    place = finding.model, finding.subject, finding.groups, finding.version
    for candidate in findings:
        same = (candidate.model, candidate.subject, candidate.groups, candidate.version) == place
        gap = (
            candidate.aggregate is Aggregate.DIFFERENCE
            and spec_of_finding(candidate).rest_metric == finding.metric
        )
        if same and gap:
            return candidate
    return finding


def _room(models: int) -> int:
    """Return how many rows a chart has when each has a mark for every model."""
    return min(MOST_GROUPS, max(LEAST_GROUPS, MOST_MARKS // max(models, 1)))


def groups_chart(first: Finding, same: Sequence[Finding]) -> Chart:
    """Draw the values of the groups of a finding, the worst first, for every model."""
    parts, models = worst_first(first), distinct(same, "model")
    share, room = all(map(has_shares, same)), _room(len(models))
    rows = []
    for part in parts[:room]:
        label = f"{part.group} (n = {count(part.n)})"
        for finding in same:
            for group_value in finding.by_group:
                if group_value.group == part.group:
                    rows.append({**asdict(group_value), "label": label, "model": finding.model})
    name = group_value_name(first)
    if first.subject != first.group:
        name += enclose(" of “", first.subject, "”")
    name += f" by {first.groups}"
    chart_title = name
    if len(parts) > room:
        chart_title += f", {room} of {len(parts)} groups"
    axis = Axis(percent=in_points(first), domain=(0.0, 1.0) if share else None)
    marks = labelled_points(rows, "label", series="model", percent=share)
    return intervals(marks, f"{name}, worst first.", axis, title=chart_title, series=models)


def _subjects_chart(first: Finding, series_findings: Sequence[Finding]) -> Chart:
    """Draw the largest values of the first statement's metric, for every model."""
    models = distinct(series_findings, "model")
    estimated = [finding for finding in series_findings if has(finding.value)]
    model_findings = [finding for finding in estimated if finding.model == first.model]
    largest = sorted(model_findings, key=lambda finding: -abs(finding.value))[: _room(len(models))]
    largest.sort(key=lambda finding: finding.value)
    marks = []
    for leader in largest:
        for finding in estimated:
            if finding.subject == leader.subject:
                row = mark(finding, finding.subject)
                marks.append({**row, "series": finding.model, "tip": figures(finding)})
    name = f"{name_of(first)}: {first.groups}"
    if len(model_findings) > len(largest):
        name += f", the {len(largest)} largest"
    above, against, below = first.groups.partition(" against ")
    sides = f"← {below} · {above} →" if against else ""
    axis = Axis(sides, percent=in_points(first), zero=True)
    return intervals(marks, f"{name}.", axis, title=name, series=models)


def in_points(finding: Finding) -> bool:
    """Whether the numbers of a finding and of its groups are shares, or differences of shares."""
    return has_shares(finding) or spec_of_finding(finding).unit in ("share", "points")


def group_value_name(finding: Finding) -> str:
    """Return the name of the number that each group of a finding has."""
    spec = spec_of_finding(finding)
    label = spec.group_label
    if spec.group_metric:
        label = title(spec.group_metric)
    if not label:
        return title(finding.metric)
    return label[:1].upper() + label[1:]


def _steps(leading_findings: Sequence[Finding], about: Sequence[str]) -> tuple[str, ...]:
    """Return what to do next, by the verdicts of the findings that lead."""
    first = {finding.verdict: finding for finding in reversed(leading_findings)}
    steps = []
    if finding := first.get(Verdict.DISPARITY):
        group, subject = "the group that is worst off", finding.subject or "each subject"
        if contrasted := contrast(finding):
            group = quoted(contrasted[0].group)
        steps += [step.format(group=group, subject=subject) for step in about]
    if Verdict.DETECTED in first:
        steps.append("Add images: the difference is real, and its size is uncertain.")
    if finding := first.get(Verdict.INCONCLUSIVE):
        more = "images of the smallest groups (“equipoise plan” says how many)"
        if has(finding.more):
            more = f"about {count(finding.more)} images of {finding.more_of} to decide"
        elif finding.unit not in ("row", "image", "unit"):
            units = f"{finding.unit}s"
            if finding.unit.endswith("y"):
                units = f"{finding.unit[:-1]}ies"
            more = f"{units}: more images of each can't decide"
        steps.append(f"Add {more}.")
    if {*first} == {Verdict.BELOW_THRESHOLD}:
        steps.append("Keep it so: add a gate to the config and run “equipoise check” in CI.")
    return tuple(steps)
