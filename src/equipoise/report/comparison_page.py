"""The page of a comparison: paired differences, ranking, and metrics that disagree."""

import math
from collections.abc import Iterator, Sequence

from equipoise.core import AuditResult, Fields, Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.finding import REAL
from equipoise.report.blocks import (
    NUMBER,
    SHARE,
    Badge,
    Block,
    Chart,
    Column,
    Page,
    Role,
    Section,
    Summary,
    Table,
    Words,
    distinct,
    has,
    panels,
    rows,
    scope,
    scope_of,
    title_of,
)
from equipoise.report.chart_records import ChartMark, ChartRecord, Form, Scale
from equipoise.report.forms import draw
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.selecting import measure_of
from equipoise.report.summary import statements_of
from equipoise.report.text import (
    VERDICT_TITLES,
    enclose,
    interval,
    listed,
    number,
    title,
    verdict_title,
)
from equipoise.report.words import (
    Pair,
    changed,
    figures,
    is_comparison,
    name_of,
    oriented,
    pairs_of,
    ranked,
    spec_of_shown,
    value_text,
    weight,
)

LEAVES, MOST_CHARTS, MOST_STATEMENTS = 12, 12, 8


def differences(result: AuditResult) -> Section | None:
    """Paired differences between models with intervals, a chart for each pair and its groups."""
    # What repeats another finding has no test, and needs no second line.
    tested = [
        finding
        for finding in filter(is_comparison, result.findings)
        if has(finding.value) and has(finding.q_value)
    ]
    if not tested:
        return None
    charts = []
    for (pair, groups), panel in [*panels(tested, "model", "groups").items()][:MOST_CHARTS]:
        wholes = [finding for finding in panel if not (finding.subject or finding.group)]
        parts = (ranked(f for f in panel if f.group), ranked(f for f in panel if f.subject))
        leaves = [finding for findings in parts for finding in findings[:LEAVES]]
        shown_findings = [*dict.fromkeys((*wholes, *leaves))]
        charts.append(differences_chart(shown_findings, name=f"{pair}, {scope(groups, 'default')}"))
    text = (
        "Each line is a difference on the same images or subjects, with its interval. The side "
        "says which model is better; the dashed line is no difference. Of single groups and of "
        "single classes, the twelve largest are drawn."
    )
    return Section.of("differences", "Differences between models", text, charts)


def differences_chart(findings: Sequence[Finding], *, name: str = "") -> Chart:
    """Draw differences of one pair, right of 0 where the second model is better."""
    compared = pairs_of(findings)
    data = [_mark(finding, pair) for finding, pair in compared]
    pair = compared[0][1]
    sides = f"← better for {pair.first}", f"better for {pair.second} →"
    reach = math.ceil(11 * _largest_end(data)) / 10 or 0.1
    label = f"{name or findings[0].model}: differences with intervals, {', '.join(sides)}."
    axis = Axis(sides, domain=(-reach, reach), zero=True)
    verdicts = distinct(data, "series")
    return intervals(data, label, axis, title=name, series=verdicts, palette=_PALETTE)


_PALETTE = {
    verdict_title(verdict, comparison=True): VERDICTS[word]
    for verdict, word in VERDICT_TITLES.items()
}


def _largest_end(marks: Sequence[Fields]) -> float:
    """Return how far values and intervals reach from 0."""
    ends = [0.0]
    for mark in marks:
        ends += filter(has, (mark["value"], mark["low"], mark["high"]))
    return max(map(abs, ends))


def _mark(finding: Finding, pair: Pair) -> Fields:
    value, low, high = oriented(finding, pair)
    label = title(finding.metric)
    if part := ", ".join(filter(None, (finding.subject, finding.group))):
        label = f"{part}: {name_of(finding)}"
    word = Badge(finding.verdict, comparison=True).word
    worse = enclose(", worse for ", pair.worse)
    return {
        "label": label, "value": value, "low": low, "high": high, "series": word,
        "tip": f"{word}: {label}, {figures(finding)}{worse}",
    }  # fmt: skip


def ranking(result: AuditResult) -> Section | None:
    """The order of the models per metric, with the ranks that the data leave open."""
    # A metric that cannot be estimated for a model ranks it nowhere.
    ranking_rows = [row for row in rows(result, "ranking") if row["rank"] is not None]
    if not ranking_rows:
        return None
    columns = [
        Column("Metric", title_of),
        Column("Groups", lambda row: scope(row["groups"], "default")),
        Column("Model", "model"),
        Column("Value", "value", NUMBER),
        Column("Rank", "rank", NUMBER),
        Column("Rank from, to", ("rank_low", "rank_high"), NUMBER),
        Column("Best in", "share_best", SHARE),
    ]
    note = (
        "Ranks from and to: range over resamples of the images; “best in” is the share of "
        "the resamples in which it came first."
    )
    table = Table.of("Ranking", columns, ranking_rows, source="ranking")
    return Section.of("ranking", "Ranking of the models", note, table)


def disagreements(result: AuditResult) -> Section | None:
    """Where two metrics prefer different models."""
    disagreement_rows = rows(result, "disagreements")
    if not disagreement_rows:
        return None
    note = "Pairs of metrics that both have a verdict of difference, in opposite directions."
    items = Words(tuple(row["sentence"] for row in disagreement_rows[:60]), "list")
    return Section.of("disagreements", "Where metrics disagree", note, items)


def changes(result: AuditResult) -> Section | None:
    """Return which disparities one model removes, keeps and adds, subject by subject."""
    change_rows = rows(result, "changes")
    if not change_rows:
        return None
    blocks: list[Block] = [Words(tuple(changed(result)), "list")]
    note = (
        "Removed: the first model has the disparity and the second doesn't. That is a change "
        "of the verdict, which isn't a test of the difference."
    )
    for (first, second), pair in panels(change_rows, "model_a", "model_b").items():
        columns = [
            Column("Change", lambda row: _CHANGES[row["change"]]),
            Column("Subject", "subject"),
            Column("Metric", title_of),
            Column("Groups", scope_of),
            Column(first, "value_a", NUMBER),
            Column(f"Verdict of {first}", lambda row: Badge(Verdict(row["verdict_a"]))),
            Column(second, "value_b", NUMBER),
            Column(f"Verdict of {second}", lambda row: Badge(Verdict(row["verdict_b"]))),
        ]
        changed_rows = [row for row in pair if row["change"] in _CHANGES]
        shown_rows = sorted(changed_rows, key=lambda row: [*_CHANGES].index(row["change"]))
        caption = f"Disparities of {first} or {second}"
        blocks.append(Table.of(caption, columns, shown_rows, source="changes", limit=60))
    return Section.of("changes", "Disparities removed, kept and added", *blocks, note)


_CHANGES = {"went": "removed", "stayed": "kept", "came": "added"}


def summary(result: AuditResult) -> Summary:
    """Say of each pair which model is worse in what, and on how many subjects."""
    statements = tuple(statements_of(result)[:MOST_STATEMENTS])
    leads = [statement.finding for statement in statements if statement.finding]
    chart = _first_chart(result, leads) if leads else None
    verdict = statements[0].certainty if statements else ""
    conclusions = [statement.conclusion for statement in statements if statement.conclusion]
    return Summary(statements, chart, tuple(_steps(conclusions)), verdict=verdict)


def _first_chart(result: AuditResult, leads: Sequence[Finding]) -> Chart | None:
    """Join both models on each subject, else in each leading metric."""
    lead, pair = pairs_of(leads[:1])[0]
    kind, title, values = "group", name_of(lead), _values_of_groups(result, lead)
    if not values:
        kind = "subject"
        values = _values_of_subjects(result, lead, pair) or _values_of_classes(result, lead)
    if len(values) < 2:
        kind, values = "metric", _values_of_metrics(leads, lead)
        title = "Values of both models" if len(values) > 1 else spec_of_shown(lead).title
    scale = {"share": Scale.SHARE, "points": Scale.POINTS}.get(
        spec_of_shown(lead).unit, Scale.NUMBER
    )
    shown_values = values[:LEAVES]
    marks = [
        mark
        for place, (label, ends) in enumerate(shown_values)
        for mark in _marks(label, lead, pair, ends, named=place == 0)
    ]
    if not marks:
        return None
    more = f", {len(shown_values)} of {len(values)}" if len(shown_values) < len(values) else ""
    return draw(ChartRecord(
        form=Form.DUMBBELL,
        title=f"{title}: {pair.first} and {pair.second}{more}",
        marks=tuple(marks),
        scale=scale,
        names={"label": kind, "series": "model"},
        highlighted=(pair.first, pair.second),
        note="The largest change comes first." if len(marks) > 2 else "",
    ))  # fmt: skip


def _marks(
    label: str, lead: Finding, pair: Pair, ends: tuple[float, float], *, named: bool
) -> Iterator[ChartMark]:
    """Yield the marks of both models in a row, in colour where they differ."""
    for model, value in zip((pair.first, pair.second), ends, strict=True):
        role: Role = ""
        if lead.verdict in REAL:
            role = "worse" if model == pair.worse else "other"
        if has(value):
            yield ChartMark(
                label=label, name=model, value=value, role=role, named=named,
                text=value_text(spec_of_shown(lead), value),
            )  # fmt: skip


Values = list[tuple[str, tuple[float, float]]]
"""Both models' values by subject."""


def _values_of_groups(result: AuditResult, lead: Finding) -> Values:
    """Return what both models have of each group, where the difference is that of a group."""
    values = [
        (finding.group, pair.values)
        for finding, pair in pairs_of(result.findings)
        if lead.group and finding.group and has(finding.value)
        and _place_of(finding) == _place_of(lead)
    ]  # fmt: skip
    return sorted(values, key=_change)


def _place_of(finding: Finding) -> tuple[object, ...]:
    return finding.model, finding.groups, finding.subject, *measure_of(finding)


def _values_of_subjects(result: AuditResult, lead: Finding, pair: Pair) -> Values:
    """Return what both models have of each subject, the largest change first."""
    values = [
        (row["subject"], (row["value_a"], row["value_b"]))
        for row in rows(result, "changes")
        if (row["model_a"], row["model_b"]) == (pair.first, pair.second)
        and (row["metric"], row["groups"], row["version"])
        == (lead.metric, lead.groups, lead.version)
    ]
    return sorted(values, key=_change)


def _values_of_classes(result: AuditResult, lead: Finding) -> Values:
    """Return what both models have of each class, in the measure that shows the difference."""
    compared = [
        (finding, pair) for finding, pair in pairs_of(result.findings)
        if finding.subject and (finding.model, finding.groups) == (lead.model, lead.groups)
    ]  # fmt: skip
    if not compared:
        return []
    measures = {measure_of(finding) for finding, _ in compared}
    measure = measure_of(lead)
    if measure not in measures:
        measure = measure_of(max((finding for finding, _ in compared), key=weight))
    values = [
        (finding.subject, pair.values) for finding, pair in compared
        if measure_of(finding) == measure and has(finding.value)
    ]  # fmt: skip
    return sorted(values, key=_change)


def _change(values: tuple[str, tuple[float, float]]) -> float:
    """Return a key that sorts the largest change first."""
    first, second = values[1]
    return -abs(second - first)


def _values_of_metrics(leads: Sequence[Finding], lead: Finding) -> Values:
    """Return both models' values of the leading metrics with the first one's unit."""
    unit = spec_of_shown(lead).unit
    return [
        (spec_of_shown(finding).title, pair.values)
        for finding, pair in pairs_of(leads)
        if finding.model == lead.model and spec_of_shown(finding).unit == unit
    ]


def _steps(conclusions: Sequence[Conclusion]) -> Iterator[str]:
    """Yield what to do next: prefer a model, weigh metrics or groups, or add data."""
    real = [conclusion for conclusion in conclusions if conclusion.real and conclusion.worse]
    models = {standing.model for conclusion in real for standing in conclusion.standings}
    worse = {conclusion.worse for conclusion in real}
    worse |= {conclusion.reverse.worse for conclusion in real if conclusion.reverse}
    if best := sorted(models - worse):
        are_worse, report = ("they are", "Their own reports name") if best[1:] else (
            "it is", "Its own report names"
        )  # fmt: skip
        yield f"Prefer {listed(best)}: {are_worse} worse on no leading metric. {report} the groups."
    elif real:
        yield "Decide which metric or group matters most to you: each model is better in some."
    if len(real) < len(conclusions):
        yield "Add images where the data cannot tell which model is worse."


def side_by_side(result: AuditResult) -> Section | None:
    """Values of both models, their difference and who is worse; of all classes together."""
    compared = pairs_of(f for f in result.findings if not (f.subject or f.group))
    caption = "Each metric of both models: the second minus the first"
    table = _table_of_pairs(compared, caption, limit=40)
    return Section("side", "Results by metric", (table,)) if compared else None


def by_group(result: AuditResult) -> Section | None:
    """Values of both models for each group, and how they differ."""
    changed_first = ranked(f for f in result.findings if is_comparison(f) and f.group)
    compared = pairs_of(changed_first)
    if not compared:
        return None
    text = (
        "Intervals and tests are simultaneous over the groups of one attribute, so a group with a "
        "difference was not picked by chance. Differences in the worst group and in gaps "
        "follow from these, and have no verdict."
    )
    caption = "Each group in both models: the second minus the first"
    table = _table_of_pairs(compared, caption, limit=100)
    return Section.of("bygroup", "Changes by group", text, table)


def _table_of_pairs(compared: Sequence[tuple[Finding, Pair]], caption: str, limit: int) -> Table:
    """Return a table of both models' values, their difference and its verdict."""
    first, second = "First", "Second"
    named = len({pair.name for _, pair in compared}) > 1
    if not named and compared:
        # The titles of a single pair name its models.
        first, second = compared[0][1].first, compared[0][1].second
    columns = [
        Column("Metric", "metric"),
        Column("Models", "models"),
        Column("Attributes", "scope"),
        Column("Group", "group"),
        Column("Class", "subject"),
        Column("n", "n", NUMBER),
        Column(first, "first", NUMBER),
        Column(second, "second", NUMBER),
        Column("Difference", "difference", NUMBER),
        Column("Interval", "interval", NUMBER),
        Column("Worse", "worse"),
        Column("Verdict", "verdict"),
    ]
    cells = [_side_by_side(finding, pair) for finding, pair in compared]
    optional = {"Models": named} | {
        name: any(row[key] for row in cells)
        for name, key in (("Group", "group"), ("Class", "subject"))
    }
    columns = [column for column in columns if optional.get(column.title, True)]
    return Table.of(caption, columns, cells, source="findings", limit=limit)


def _side_by_side(finding: Finding, pair: Pair) -> Fields:
    """Return the row of a difference; shares as percentages, their differences in points."""
    spec, low, high = spec_of_shown(finding), finding.ci_low, finding.ci_high
    first, second = (value_text(spec, value) for value in pair.values)
    difference, ends = number(finding.value), interval(low, high)
    if spec.unit in ("share", "points") and has(finding.value):
        difference = f"{number(100 * finding.value, 1)} points"
        ends = interval(100 * low, 100 * high, 1)
    return {
        "metric": spec.title, "models": pair.name, "scope": scope_of(finding),
        "group": finding.group, "subject": finding.subject,
        "n": finding.n, "first": first, "second": second, "difference": difference,
        "interval": ends, "worse": pair.worse or "–",
        "verdict": Badge(finding.verdict, comparison=True),
    }  # fmt: skip


PAGE = Page(
    summary=summary,
    noun="Comparison",
    subjects="classes",
    commands=(),
    front=(side_by_side, by_group),
    sections=(differences, changes, ranking, disagreements),
)
