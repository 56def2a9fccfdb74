"""The page of an audit of questions."""

from equipoise.audits.labels.questions.items import OUTCOME_OPTION
from equipoise.audits.labels.questions.numbers import (
    ORDER,
    OUTCOME,
    RIGHT,
    STATES,
    UNANSWERED,
    UNRESOLVED,
    UNSOUND,
)
from equipoise.core import Aggregate, AuditResult
from equipoise.metrics.numbers.paired_outcome_gap import paired_outcome_gap
from equipoise.metrics.registry import name_of
from equipoise.report.blocks import (
    NUMBER,
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
    distinct,
    has,
    panels,
    rows,
)
from equipoise.report.plots import COLORS, Axis, intervals, labelled_points
from equipoise.report.selecting import Selector
from equipoise.report.text import count, listed

MOST_PANELS, MOST_GROUPS = 6, len(COLORS)
GAPS: tuple[Selector, ...] = (
    name_of(paired_outcome_gap),
    *((metric, Aggregate.DIFFERENCE) for metric in (OUTCOME, RIGHT, UNSOUND)),
)
WITHOUT_OPTION = tuple(
    (metric, Aggregate.DIFFERENCE) for metric in (UNANSWERED, UNRESOLVED, *STATES)
)


def facts(result: AuditResult) -> Pairs:
    """Return how many items and responses there are, and the outcome."""
    counts = result.manifest.counts
    responses = [
        f"{name}: {count(model.get('responses', 0))}"
        for name, model in counts.get("models", {}).items()
    ]
    items = counts.get("items", {}).get("rows", 0)
    outcome = result.manifest.resolved.get("data", {}).get("outcome", "")
    return (
        ("Items", count(items)), ("Responses", listed(responses, 12)), ("Outcome", str(outcome)),
    )  # fmt: skip


def choices(result: AuditResult) -> Section | None:
    """Return the share of the outcome by wording and by its position."""
    choices = [row for row in rows(result, "outcome_by_choice") if has(row["share"])]
    if not choices:
        return None
    outcome = _outcome_name(result)
    charts: list[Chart] = []
    for (model, groups), panel in panels(choices, "model", "groups").items():
        series = distinct(panel, "group")
        if len(series) <= MOST_GROUPS and len(charts) < MOST_PANELS:
            name = f"{model}, {groups}"
            marks = labelled_points(panel, _asked, series="group", value="share", percent=True)
            axis = Axis(f"share of {outcome}", percent=True)
            label = f"Share of {outcome} by wording and position: {name}"
            charts.append(intervals(marks, label, axis, title=name, series=series))
    columns = [
        Column("Asked", _asked),
        Column("Group", "group"),
        Column("Share", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("Items", "n", NUMBER),
        Column("Model", "model"),
        Column("Attributes", "groups"),
    ]
    text = (
        f"Share of {outcome} in each wording of the question, and at each of its positions among "
        "the options. A model that reads the options has the same share at every position."
    )
    title = f"Share of {outcome} by wording and position"
    table = Table.of(title, columns, choices, source="outcome_by_choice")
    fold = Fold("Show the numbers", (table,))
    return Section.of("wordings", "Wordings and positions", text, charts, fold)


def _outcome_name(result: AuditResult) -> str:
    """Return what sentences call the outcome."""
    names = (str(finding.parameters.get("outcome", "")) for finding in result.findings)
    return next(filter(None, names), OUTCOME_OPTION)


def _asked(row: Row) -> str:
    """Name the wording or the position of a row."""
    return f"{row['choice']} {row['value']}"


states = TableSection(
    name="states",
    heading="Responses without an option",
    caption="Responses by group and state",
    source="response_states",
    columns=[
        Column("Group", "group"),
        Column("State", "state"),
        Column("Share", "share", SHARE),
        Column("Responses", "count", NUMBER),
        Column("Of", "n", NUMBER),
        Column("Model", "model"),
        Column("Attributes", "groups"),
    ],
    text="No share of an option includes responses that choose none.",
    keeps=lambda row: row["state"] != "answered",
)

PAGE = Page(
    leads=(ORDER, *GAPS),
    of_answers=("paired_outcome_gap", OUTCOME),
    by_group=((OUTCOME, Aggregate.DIFFERENCE), *WITHOUT_OPTION),
    subjects="items",
    sections=(choices, states),
    facts=facts,
    look="Look at the pictures, with the options that were chosen.",
    steps=("Ask further questions, or another model.",),
)
