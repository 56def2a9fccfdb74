"""The page of an audit of questions."""

from equipoise.core import Aggregate, AuditResult
from equipoise.report.blocks import (
    NUMBER,
    SHARE,
    Column,
    Page,
    Pairs,
    Section,
    Table,
    TableSection,
    has,
    rows,
)
from equipoise.report.text import count, listed

GAPS = (
    "paired_outcome_gap",
    ("outcome_share", Aggregate.DIFFERENCE),
    ("accuracy", Aggregate.DIFFERENCE),
    ("unsound_rate", Aggregate.DIFFERENCE),
)
WITHOUT_OPTION = tuple(
    (name, Aggregate.DIFFERENCE)
    for name in ("unanswered_rate", "refused_rate", "unknown_rate", "empty_rate")
)


def facts(result: AuditResult) -> Pairs:
    """Return how many items and responses there are, and what a model chooses."""
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
    table = rows(result, "outcome_by_choice")
    shown = [row for row in table if has(row["share"])]
    if not shown:
        return None
    columns = [
        Column("Asked", "choice"),
        Column("", "value"),
        Column("Group", "group"),
        Column("Share", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("Items", "n", NUMBER),
        Column("Model", "model"),
        Column("Attributes", "groups"),
    ]
    text = (
        "Share of the outcome in each wording of the question, and at each position of the "
        "outcome among the options. A model that reads the options has the same share at every "
        "position."
    )
    return Section.of(
        "choices", "Wordings and positions", text,
        Table.of("Share of the outcome by wording and position", columns, shown,
                 source="outcome_by_choice"),
    )  # fmt: skip


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
    leads=("order_inconsistency", *GAPS),
    by_group=(("outcome_share", Aggregate.DIFFERENCE), *WITHOUT_OPTION),
    subjects="items",
    sections=(choices, states),
    facts=facts,
    look="Look at the pictures of {group}.",
    steps=("Ask further questions, or another model.",),
)
