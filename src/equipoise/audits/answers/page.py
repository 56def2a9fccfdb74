"""The page of an audit of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from equipoise.core import AuditResult, Finding
from equipoise.report.blocks import Badge, Block, Cell, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.page import Page
from equipoise.report.plots import COLORS, Axis, Palette, bars, intervals, scatter
from equipoise.report.tables import Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, listed, number, p_value, percent, plural

MOST_ANSWERS, MOST_PANELS, MOST_GROUPS = 20, 12, len(COLORS)
_STATES = {"unknown": "do not know", "refused": "refused", "missing": "empty"}
_STATE_COLORS: Palette = {
    "do not know": ("var(--s2)", "circle"),
    "refused": ("var(--s4)", "circle"),
    "empty": ("var(--soft)", "circle"),
}


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return how many images and answers there are."""
    counts = result.manifest.counts
    models = counts.get("models", {})
    answered = [
        f"{name}: {count(one.get('states', {}).get('answered', 0))}" for name, one in models.items()
    ]
    images = counts.get("labels", {}).get("rows", 0)
    return (("Images", count(images)), ("Answers", listed(answered, 12)))


def unanswered(result: AuditResult) -> Section | None:
    """Return the share of each group without an answer."""
    states = [row for row in rows(result, "answer_states") if row["state"] != "answered"]
    if not states:
        return None
    panelled = panels(states, "model", "groups", "question")
    charts = [_unanswered(key, panel) for key, panel in panelled.items()]
    text = "No other number includes rows without an answer."
    blocks = (Words((text,), "note"), Grid(tuple(charts[:MOST_PANELS])))
    return Section("no-answer", "Images without an answer", blocks)


def _unanswered(key: tuple[str, ...], panel: Sequence[Row]) -> Chart:
    model, groups, question = key
    points = [
        {
            "label": row["group"],
            "series": _STATES[row["state"]],
            "value": row["share"],
            "tip": f"{row['group']}, {_STATES[row['state']]}: {percent(row['share'])} "
            f"({row['count']} of {row['n']})",
        }
        for row in panel
        if has(row["share"])
    ]
    cells = [
        (row["group"], _STATES[row["state"]], percent(row["share"]), count(row["count"]),
         count(row["n"]))
        for row in panel
    ]  # fmt: skip
    name = ", ".join(part for part in (model, question, groups) if part)
    columns = ["Group", "State", "#Share", "#Images", "#Of"]
    table = Table.of(name, columns, cells, source="answer_states")
    present = [state for state in _STATE_COLORS if any(row["series"] == state for row in points)]
    palette = {state: _STATE_COLORS[state] for state in present}
    chart = bars(
        points, f"Share without an answer by group: {name}", Axis("share", percent=True),
        title=name, series=present, palette=palette, stacked=True,
    )  # fmt: skip
    return Chart(chart.label, chart.spec, chart.data, table, name)


def answers(result: AuditResult) -> Section | None:
    """Return the share of each answer by group; the largest gaps come first."""
    table = rows(result, "answers")
    if not table:
        return None
    tested = _tested(result, "answer_gap")
    charts: list[Chart] = []
    tables: list[Block] = []
    for key, panel in panels(table, "model", "groups", "version").items():
        by_answer = {answer: own for (answer,), own in panels(panel, "answer").items()}
        findings = {answer: tested.get((*key, answer)) for answer in by_answer}
        ordered = sorted(by_answer, key=lambda answer, own=findings: -_gap(own[answer]))  # type: ignore[misc]
        model, groups, version = key
        name = f"{model}, {scope(groups, version)}"
        if len(distinct(panel, "group")) <= MOST_GROUPS:
            shown = [row for answer in ordered[:MOST_ANSWERS] for row in by_answer[answer]]
            charts.append(_shares(name, shown))
        tables.append(_answer_table(name, {one: by_answer[one] for one in ordered}, findings))
    text = (
        "A row for each answer, a mark for each group: the share of the group's answers. The "
        "largest gaps between groups come first. Answers too rare to compare are pooled as "
        "“(rarer answers)”."
    )
    summary = f"Show all answers with their gaps, {plural(len(tables), 'table')}"
    blocks = (Words((text,), "note"), Grid(tuple(charts[:MOST_PANELS])), Fold(summary, (*tables,)))
    return Section("answers", "Answers by group", blocks)


def _tested(result: AuditResult, metric: str) -> dict[tuple[str, ...], Finding]:
    """Return the findings of a metric by model, groups, version and subject."""
    return {
        (one.model, one.groups, one.version, one.subject): one
        for one in result.findings
        if one.metric == metric and one.subject
    }


def _gap(finding: Finding | None) -> float:
    return finding.value if finding is not None and has(finding.value) else -1.0


def _shares(name: str, shown: Sequence[Row]) -> Chart:
    points = [
        {
            "label": row["answer"],
            "series": row["group"],
            "value": row["share"],
            "tip": f"“{row['answer']}”, {row['group']}: {percent(row['share'])} "
            f"({row['count']} of {row['n']})",
        }
        for row in shown
        if has(row["share"])
    ]
    label = f"Share of each group's answers: {name}"
    axis = Axis("share of the group's answers", percent=True)
    return intervals(points, label, axis, title=name, series=distinct(shown, "group"))


def _answer_table(
    name: str, by_answer: Mapping[str, Sequence[Row]], findings: Mapping[str, Finding | None]
) -> Table:
    every = [row for own in by_answer.values() for row in own]
    groups = distinct(every, "group")
    known = any(row["right"] is not None for row in every)
    cells = []
    for answer, own in by_answer.items():
        shares = {row["group"]: row["share"] for row in own}
        right = (count(sum(row["right"] or 0 for row in own)),) if known else ()
        cells.append(
            (
                answer,
                *(percent(shares[one]) if has(shares.get(one)) else "–" for one in groups),
                count(sum(row["count"] for row in own)),
                *right,
                *_test_cells(findings[answer]),
            )
        )
    columns = [
        "Answer", *(f"#{one}" for one in groups), "#n", *(("#Right",) if known else ()),
        "#Gap", "#Interval", "#q", "Verdict",
    ]  # fmt: skip
    return Table.of(name, columns, cells, source="answers")


def _test_cells(finding: Finding | None) -> tuple[Cell, ...]:
    if finding is None:
        return ("–", "–", "–", "–")
    ends = interval(finding.ci_low, finding.ci_high)
    return number(finding.value), ends, p_value(finding.q_value), Badge(finding.verdict)


def figures(result: AuditResult) -> Section | None:
    """Return the lean of answers against outside figures."""
    table = rows(result, "figures")
    if not table:
        return None
    text = (
        "A mark for each answer. Its lean to a group is the share of the group's answers, divided "
        "by that share plus the other groups' share: 0.5 if both get it equally often. A lean that "
        "rises with the figure follows the world as it is, or overdoes it. It doesn't make the "
        "answers right."
    )
    charts = tuple(_figure_charts(table, _tested(result, "correlation")))
    blocks = (Words((text,), "note"), Grid(charts[:MOST_PANELS]))
    return Section("figures", "Answers against outside figures", blocks)


def _figure_charts(
    table: Sequence[Row], tested: Mapping[tuple[str, ...], Finding]
) -> Iterator[Chart]:
    for key, panel in panels(table, "model", "groups", "version", "figure").items():
        model, groups, version, figure = key
        name = f"{figure}: {model}, {scope(groups, version)}"
        finding = tested.get(key)
        if finding is not None and has(finding.value):
            ends = interval(finding.ci_low, finding.ci_high)
            q = p_value(finding.q_value)
            name += f"; r = {number(finding.value)} {ends}, n = {len(panel)}, q {q}"
        points = [
            {"x": row["outside"], "y": row["lean"],
             "tip": f"{row['answer']}: {figure} {number(row['outside'])}, lean "
             f"{number(row['lean'])}, n = {row['n']}"}
            for row in panel
        ]  # fmt: skip
        lean = f"lean to {panel[0]['first']}"
        axes = Axis(figure), Axis(lean, domain=(0.0, 1.0))
        chart = scatter(points, name, *axes, title=name, rules=(("y", 0.5),))
        cells = [
            (row["answer"], number(row["outside"]), number(row["lean"]), count(row["n"]))
            for row in sorted(panel, key=lambda row: -row["lean"])
        ]
        columns = ["Answer", f"#{figure}", f"#{lean.capitalize()}", "#n"]
        numbers = Table.of(name, columns, cells, source="figures")
        yield Chart(chart.label, chart.spec, chart.data, numbers, name)


def texts(result: AuditResult) -> Section | None:
    """Return the raw texts behind each answer."""
    table = rows(result, "texts")
    if not table:
        return None
    blocks: list[Block] = []
    for (model, question), panel in panels(table, "model", "question").items():
        cells = [
            (answer, " · ".join(f"{row['text']} ({row['count']})" for row in own),
             count(own[0]["texts"]))
            for (answer,), own in panels(panel, "answer").items()
        ]  # fmt: skip
        name = ", ".join(part for part in (model, question) if part)
        raw = Table.of(name, ["Answer", "Texts (rows)", "#Texts"], cells, source="texts")
        blocks.append(Fold(f"Show the texts: {name}", (raw,)))
    text = "Answers are compared after normalisation. The most frequent texts of each are below."
    return Section("texts", "Raw texts", (Words((text,), "note"), *blocks))


PAGE = Page(
    leads=("answer_gap",),
    by_group=("accuracy_gap", "worst_group_accuracy", "unanswered_rate", "refused_rate",
              "unknown_rate", "empty_rate"),
    subjects="answers",
    points=(("accuracy", "effect_size_mean"), ("accuracy_gap", "effect_size_mean")),
    sections=(unanswered, answers, figures, texts),
    facts=facts,
)  # fmt: skip
