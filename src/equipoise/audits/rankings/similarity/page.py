"""The page of an audit of similarity."""

from collections.abc import Sequence

from equipoise.audits.pages import TRAINABLE
from equipoise.audits.rankings.page import LOOK, PREFERENCES, STEPS, hypotheses, unit_of
from equipoise.core import AuditResult
from equipoise.report.blocks import (
    NUMBER,
    Chart,
    Column,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    by_place,
    distinct,
    has,
    image_count,
    panels,
    points,
    rows,
    scope_of,
)
from equipoise.report.plots import Axis, intervals
from equipoise.report.text import interval, number

MOST_CONCEPTS, MOST_GROUPS = 30, 16
GAPS = ("logit_gap", "similarity_gap")


def facts(result: AuditResult) -> Pairs:
    """Return the compared images, and the unit of resampling."""
    data = result.manifest.resolved.get("data", {})
    subject, sets, unit = (data.get(name) for name in ("subject", "sets", "unit"))
    return (
        image_count(result),
        ("Each concept's images", f"the images of its own {subject}" if subject else "all images"),
        ("Comparison", f"images within each {sets}" if sets else "all images of each group"),
        ("Resampled together", f"images of each {unit}" if unit else ""),
    )


def effects(result: AuditResult) -> Section | None:
    """Return each group's similarity to each concept, over the chance band."""
    effect_rows: list[Row] = [
        {**row, "label": row["concept"] or "all concepts"} for row in rows(result, "group_effects")
    ]
    if not effect_rows:
        return None
    charts: list[Chart] = []
    for name, panel in by_place(effect_rows):
        by_concept = panels(panel, "concept")
        shown_rows = (
            row
            for concept in _concepts_by_gap(panel)[:MOST_CONCEPTS]
            for row in by_concept[concept,]
        )
        if len(distinct(panel, "group")) <= MOST_GROUPS:
            charts.append(_dot_chart([row for row in shown_rows if has(row["effect"])], name))
    text = (
        "0 is the average of the groups for a concept; the distance between two marks is the gap. "
        f"Plots have up to {MOST_CONCEPTS} concepts, largest gap first. Line: interval. Grey: "
        "range of a group in 95 of 100 random exchanges of groups."
    )
    titles = [
        Column("Concept", "label"),
        Column("Group", "group"),
        Column("Above average", "effect", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Chance band", ("chance_low", "chance_high"), NUMBER),
        Column("Normalised", "normalised", NUMBER),
        Column("Its interval", ("normalised_low", "normalised_high"), NUMBER),
        Column("Images", "n", NUMBER),
        Column("Unit", "unit"),
        Column("Model", "model"),
        Column("Attributes", scope_of),
    ]
    heading = "Similarity by concept and group"
    table = Table.of(heading, titles, effect_rows, source="group_effects")
    return Section.of("effects", heading, text, charts, table)


def _concepts_by_gap(panel: Sequence[Row]) -> list[str]:
    """Return the concepts, largest gap first; the average where there is no other."""
    gaps = {}
    for (concept,), concept_rows in panels(panel, "concept").items():
        effects = [row["effect"] for row in concept_rows if has(row["effect"])]
        if concept and len(effects) > 1:
            gaps[concept] = max(effects) - min(effects)
    return sorted(gaps, key=lambda concept: -gaps[concept]) or [""]


def _dot_chart(panel: Sequence[Row], name: str) -> Chart:
    marks = points(
        panel, _tip, "label", "low", "high", "chance_low", "chance_high", value="effect",
        series="group",
    )  # fmt: skip
    axis = Axis(f"{unit_of(panel)} above the groups' average", zero=True)
    label = f"Similarity by concept and group, over the chance band: {name}"
    title = f"Groups by concept: {name}"
    return intervals(marks, label, axis, title=title, series=distinct(panel, "group"))


def _tip(row: Row) -> str:
    about = f"{row['label']}, {row['group']} (n = {row['n']})"
    text = f"{about}: {number(row['effect'])} {interval(row['low'], row['high'])}"
    if has(row["normalised"]):
        text += f"; {number(row['normalised'])} standard deviations from the mean of all images"
    return text


PAGE = Page(
    leads=(*PREFERENCES, *GAPS),
    by_group=("systematic_preference", *GAPS, "normalized_similarity_mad"),
    subjects="concepts",
    sections=(effects, hypotheses),
    facts=facts,
    caveat=(
        "Every trained model has small preferences, and with many images even a small one has a "
        "small p. Read the size of a gap, and whether gaps follow a declared hypothesis."
    ),
    look=LOOK,
    steps=STEPS,
    mitigable=TRAINABLE,
)
