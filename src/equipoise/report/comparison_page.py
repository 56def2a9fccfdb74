"""The page of a comparison: paired differences, ranking, and metrics that disagree."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import (
    NUMBER,
    SHARE,
    Badge,
    Block,
    Chart,
    Column,
    Page,
    Section,
    Statement,
    Summary,
    Table,
    Words,
    has,
    panels,
    rows,
    scope,
    scope_of,
    title_of,
)
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.text import VERDICT_TITLES, listed, title, verdict_title
from equipoise.report.words import (
    Pair,
    changed,
    compared,
    figures,
    is_comparison,
    leading,
    name_of,
    oriented,
    pair_of,
    ranked,
)

LEAVES, MOST_CHARTS, MOST_STATEMENTS = 12, 12, 8


def differences(result: AuditResult) -> Section | None:
    """Paired differences between models with intervals, a chart for each pair and its groups."""
    panel_findings: dict[tuple[str, str], list[Finding]] = {}
    for finding in result.findings:
        # What repeats another finding has no test, and needs no second line.
        if is_comparison(finding) and has(finding.value) and has(finding.q_value):
            panel_findings.setdefault((finding.model, finding.groups), []).append(finding)
    charts = []
    for (pair, groups), panel in [*panel_findings.items()][:MOST_CHARTS]:
        leaves = ranked(finding for finding in panel if finding.subject)[:LEAVES]
        shown_findings = [finding for finding in panel if not finding.subject] + leaves
        charts.append(differences_chart(shown_findings, name=f"{pair}, {scope(groups, 'default')}"))
    text = (
        "Each line is a difference on the same images or subjects, with its interval. The side "
        "says which model is better; the dashed line is no difference. Of single classes, the "
        "twelve largest are drawn."
    )
    return Section.of("differences", "Differences between models", text, charts) if charts else None


def differences_chart(findings: Sequence[Finding], *, name: str = "") -> Chart:
    """Draw differences of one pair, right of 0 where the second model is better."""
    estimated = [(finding, pair) for finding in findings if (pair := pair_of(finding))]
    data = [_mark(finding, pair) for finding, pair in estimated]
    sides = f"← better for {estimated[0][1].first}", f"better for {estimated[0][1].second} →"
    ends = [abs(row[key]) for row in data for key in ("value", "low", "high") if has(row[key])]
    reach = math.ceil(11 * max(ends, default=0.0)) / 10 or 0.1
    label = f"{name or findings[0].model}: differences with intervals, {', '.join(sides)}."
    axis = Axis(sides, domain=(-reach, reach), zero=True)
    verdicts = [*dict.fromkeys(row["series"] for row in data)]
    palette = {
        verdict_title(verdict, comparison=True): VERDICTS[word]
        for verdict, word in VERDICT_TITLES.items()
    }
    return intervals(data, label, axis, title=name, series=verdicts, palette=palette)


def _mark(finding: Finding, pair: Pair) -> dict[str, Any]:
    value, low, high = oriented(finding, pair)
    label = f"{finding.subject}: {name_of(finding)}" if finding.subject else title(finding.metric)
    word = Badge(finding.verdict, comparison=True).word
    worse = f", worse for {pair.worse}" if pair.worse else ""
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
        "Ranks from and to: what resampling the images gives a model; “best in” is the share of "
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
    """Which disparities went, which stayed and which came, subject by subject."""
    change_rows = rows(result, "changes")
    if not change_rows:
        return None
    blocks: list[Block] = [Words(tuple(changed(result)), "list")]
    note = (
        "A disparity went where the first model has one and the second has none. That is a change "
        "of the verdict, which is no test of the difference."
    )
    for (first, second), pair in panels(change_rows, "model_a", "model_b").items():
        columns = [
            Column("What became of it", "change"),
            Column("Subject", "subject"),
            Column("Metric", title_of),
            Column("Groups", scope_of),
            Column(first, "value_a", NUMBER),
            Column(f"Verdict of {first}", lambda row: Badge(Verdict(row["verdict_a"]))),
            Column(second, "value_b", NUMBER),
            Column(f"Verdict of {second}", lambda row: Badge(Verdict(row["verdict_b"]))),
        ]
        order = ("went", "stayed", "came")
        shown_rows = [row for change in order for row in pair if row["change"] == change]
        caption = f"Disparities of {first} or {second}"
        blocks.append(Table.of(caption, columns, shown_rows, source="changes", limit=60))
    return Section.of("changes", "Disparities that went, stayed and came", *blocks, note)


def summary(result: AuditResult) -> Summary:
    """Say which model is better in what leads, and which metrics disagree."""
    leads = leading(result.findings)
    texts = compared(leads) + changed(result)
    texts += [f"Metrics disagree: {row['sentence']}" for row in rows(result, "disagreements")]
    first = [
        finding
        for finding in leads
        if finding.model == leads[0].model and not math.isnan(finding.value)
    ]
    chart = differences_chart(first, name=first[0].model) if first else None
    statements = tuple(Statement(None, text) for text in texts[:MOST_STATEMENTS])
    return Summary(statements, chart, tuple(_steps(leads)))


def _steps(leads: Sequence[Finding]) -> Iterator[str]:
    """Yield what to do next: prefer a model, weigh metrics, or add data."""
    real = [
        finding for finding in leads if finding.verdict in (Verdict.DISPARITY, Verdict.DETECTED)
    ]
    pairs = [pair for finding in real if (pair := pair_of(finding)) is not None and pair.worse]
    better = {pair.second if pair.worse == pair.first else pair.first for pair in pairs}
    worse = {pair.worse for pair in pairs}
    if best := sorted(better - worse):
        yield f"Prefer {listed(best)}: no metric that leads is worse. Its own report says for whom."
    elif pairs:
        yield "Decide which metric matters most for your use: the models differ by metric."
    if len(real) < len(leads):
        yield "Add images where the data cannot tell which model is worse."


def side_by_side(result: AuditResult) -> Section | None:
    """Values of both models, their difference and who is worse; of all classes together."""
    compared = [
        (finding, pair)
        for finding in result.findings
        if not finding.subject and (pair := pair_of(finding))
    ]
    names = {pair.name for _, pair in compared}
    named = len(names) != 1
    # The titles of a single pair name its models.
    models = ("First", "Second") if named else (compared[0][1].first, compared[0][1].second)
    cells = [
        (title_of(finding), *[pair.name] * named, scope_of(finding), finding.n, *pair.values,
         finding.value, (finding.ci_low, finding.ci_high), pair.worse or "–",
         Badge(finding.verdict, comparison=True))
        for finding, pair in compared
    ]  # fmt: skip
    columns = [
        Column("Metric"),
        *[Column("Models")] * named,
        Column("Attributes"),
        Column("n", format=NUMBER),
        *(Column(model, format=NUMBER) for model in models),
        Column("Difference", format=NUMBER),
        Column("Interval", format=NUMBER),
        Column("Worse"),
        Column("Verdict"),
    ]
    caption = "Each metric of both models: the second minus the first"
    table = Table.of(caption, columns, cells, source="findings", limit=40)
    return Section("side", "Results by metric", (table,)) if cells else None


PAGE = Page(
    summary=summary,
    noun="Comparison",
    subjects="classes",
    front=(side_by_side,),
    sections=(differences, changes, ranking, disagreements),
)
