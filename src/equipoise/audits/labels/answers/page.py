"""The page of an audit of answers."""

from collections.abc import Sequence
from dataclasses import replace

from equipoise.audits.labels.answers.config import STATES
from equipoise.core import Aggregate, AuditResult
from equipoise.metrics.spec import SPECS
from equipoise.report.blocks import (
    NUMBER,
    PLACE,
    SHARE,
    Chart,
    Column,
    Fold,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    TableSection,
    by_place,
    distinct,
    has,
    panels,
    rows,
    scope_of,
    where,
)
from equipoise.report.plots import COLORS, Axis, intervals, labelled_points, scatter
from equipoise.report.text import count, listed, number

MOST_ANSWERS, MOST_PANELS, MOST_GROUPS, MOST_UNRESOLVED = 20, 12, len(COLORS), 20


def facts(result: AuditResult) -> Pairs:
    """Return how many images and answers there are."""
    counts = result.manifest.counts
    answered = [
        f"{name}: {count(counts_of_model.get('states', {}).get('answered', 0))}"
        for name, counts_of_model in counts.get("models", {}).items()
    ]
    images = counts.get("labels", {}).get("rows", 0)
    return (("Images", count(images)), ("Answers", listed(answered, 12)))


unanswered = TableSection(
    name="no-answer",
    heading="Images without an answer",
    caption="Images without an answer by group",
    source="answer_states",
    columns=[
        Column("Group", "group"),
        Column("State", "state"),
        Column("Share", "share", SHARE),
        Column("Images", "count", NUMBER),
        Column("Of", "n", NUMBER),
        Column("Model", "model"),
        Column("Attributes", "groups"),
        Column("Question", "question"),
    ],
    text="No other number includes rows without an answer.",
    keeps=lambda row: row["state"] != "answered",
)


def answers(result: AuditResult) -> Section | None:
    """Return the share of each answer by group; the largest gaps come first."""
    table = rows(result, "answers")
    if not table:
        return None
    charts: list[Chart] = []
    all_rows: list[Row] = []
    for name, panel in by_place(table):
        by_answer = panels(panel, "answer").values()
        ordered = sorted(by_answer, key=_largest_gap, reverse=True)
        all_rows += [row for answer_rows in ordered for row in answer_rows]
        series = distinct(panel, "group")
        if len(series) <= MOST_GROUPS:
            first_rows = [row for answer_rows in ordered[:MOST_ANSWERS] for row in answer_rows]
            marks = labelled_points(
                first_rows, "answer", series="group", value="share", percent=True
            )
            label = f"Share of each group's answers: {name}"
            axis = Axis("share of the group's answers", percent=True)
            charts.append(intervals(marks, label, axis, title=name, series=series))
    text = (
        "A row for each answer, a mark for each group: the share of the group's answers. The "
        "largest gaps between groups come first. Answers too rare to compare are pooled as "
        "“(rarer answers)”."
    )
    columns = [
        Column("Answer", "answer"),
        Column("Group", "group"),
        Column("Share", "share", SHARE),
        Column("n", "count", NUMBER),
        Column("Of", "n", NUMBER),
        Column("Right", "right", NUMBER),
        Column("Model", "model"),
        Column("Attributes", scope_of),
    ]
    fold = Fold("Show all answers", (Table.of("All answers", columns, all_rows, source="answers"),))
    return Section.of("answers", "Answers by group", text, charts[:MOST_PANELS], fold)


def _largest_gap(answer_rows: Sequence[Row]) -> float:
    """Return the largest difference of groups' shares of an answer."""
    shares = [row["share"] for row in answer_rows if has(row["share"])]
    return float(max(shares, default=0.0) - min(shares, default=0.0))


def figures(result: AuditResult) -> Section | None:
    """Return the lean of answers against outside figures."""
    table = rows(result, "figures")
    if not table:
        return None
    text = (
        "A mark for each answer. Its lean to a group is the share of the group's answers, divided "
        "by that share plus the other groups' share: 0.5 if both get it equally often. A lean that "
        "rises with the figure follows real shares, or exaggerates them. That doesn't make the "
        "answers right."
    )
    charts = [_figure_chart(panel) for panel in panels(table, *PLACE, "figure").values()]
    return Section.of("figures", "Answers against outside figures", text, charts[:MOST_PANELS])


def _figure_chart(panel: Sequence[Row]) -> Chart:
    figure = panel[0]["figure"]
    name = f"{figure}: {where(panel[0])}"
    marks = [
        {"x": row["outside"], "y": row["lean"],
         "tip": f"{row['answer']}: {figure} {number(row['outside'])}, lean {number(row['lean'])}"}
        for row in panel
    ]  # fmt: skip
    lean = f"Lean to {panel[0]['first']}"
    axes = Axis(figure), Axis(lean, domain=(0.0, 1.0))
    chart = scatter(marks, name, *axes, title=name, rules=(("y", 0.5),))
    columns = [
        Column("Answer", "answer"),
        Column(figure, "outside", NUMBER),
        Column(lean, "lean", NUMBER),
        Column("n", "n", NUMBER),
    ]
    order = sorted(panel, key=lambda row: -row["lean"])
    return replace(chart, table=Table.of(name, columns, order, source="figures"))


def texts(result: AuditResult) -> Section | None:
    """Return the raw texts behind each answer."""
    table = rows(result, "texts")
    if not table:
        return None
    cells = []
    for (model, question, answer), panel in panels(table, "model", "question", "answer").items():
        examples = " · ".join(f"{row['text']} ({row['count']})" for row in panel)
        cells.append((model, question, answer, examples, panel[0]["texts"]))
    columns = [
        Column("Model"),
        Column("Question"),
        Column("Answer"),
        Column("Texts (rows)"),
        Column("Texts", format=NUMBER),
    ]
    text = "Answers are compared after normalisation. The most frequent texts of each are below."
    text_table = Table.of("Raw texts", columns, cells, source="texts")
    return Section.of("texts", "Raw texts", text, text_table)


def unresolved_texts(result: AuditResult) -> Section | None:
    """Return the texts that are no class, neutral answer or refusal, the most frequent first."""
    table = rows(result, "unresolved_texts")
    if not table:
        return None
    columns = [
        Column("Text", "text"),
        Column("Rows", "count", NUMBER),
        Column("Share", "share", SHARE),
        Column("Model", "model"),
        Column("Question", "question"),
    ]
    text = (
        "These texts name no class and are neither neutral answers nor refusals. The most "
        "frequent come first. Enter their classes in the run's worksheet.csv, and give the file "
        "as “synonyms”."
    )
    first_rows = [
        row
        for panel in panels(table, "model", "question").values()
        for row in panel[:MOST_UNRESOLVED]
    ]
    unresolved_table = Table.of("Unresolved texts", columns, first_rows, source="unresolved_texts")
    return Section.of("unresolved-texts", "Unresolved texts", text, unresolved_table)


WITHOUT_ANSWER = tuple(
    name for name, spec in SPECS.items() if spec.state in ("unanswered", *STATES)
)

PAGE = Page(
    leads=("answer_gap",),
    of_answers=("answer_gap",),
    by_group=(("accuracy", Aggregate.DIFFERENCE, "overall"), *WITHOUT_ANSWER),
    subjects="answers",
    sections=(unanswered, answers, figures, texts, unresolved_texts),
    facts=facts,
    look="Look at the images with this answer in each group.",
    steps=("Ask other questions or another model.",),
)  # fmt: skip
