"""Sections on scores: how far probabilities come true, by group."""

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import (
    NUMBER,
    Chart,
    Column,
    Row,
    Section,
    Table,
    distinct,
    panels,
    rows,
    title_of,
)
from equipoise.report.plots import Axis, curves
from equipoise.report.text import percent

MOST_PANELS, MOST_LINES = 12, 8


def calibration(result: AuditResult) -> Section | None:
    """Return the share of positives over the score of each group."""
    bins = rows(result, "calibration")
    if not bins:
        return None
    text = (
        "Ten bands of scores with about the same number of rows. For a calibrated model the share "
        "of positives is the mean score, on the diagonal. The table compares each group with a "
        "calibrated model of the same scores: with few rows it is above 0 by chance."
    )
    charts = [
        _curve(panel, ", ".join(map(str, key)))
        for key, panel in [*panels(bins, "model", "groups").items()][:MOST_PANELS]
    ]
    shares = Table.of(
        "Share of positives by score",
        [
            Column("Group", "group"),
            Column("Scores", ("least", "most"), NUMBER),
            Column("n", "n", NUMBER),
            Column("Mean score", "mean_score", NUMBER),
            Column("Share of positives", "share", NUMBER),
            Column("Interval", ("low", "high"), NUMBER),
            Column("Model", "model"),
            Column("Attributes", "groups"),
        ],
        bins, source="calibration",
    )  # fmt: skip
    numbers = Table.of(
        "Groups and a calibrated model",
        [
            Column("Metric", title_of),
            Column("Group", "group"),
            Column("n", "n", NUMBER),
            Column("Value", "value", NUMBER),
            Column("Calibrated model", "calibrated", NUMBER),
            Column("95 % of them below", "calibrated_high", NUMBER),
            Column("Model", "model"),
            Column("Attributes", "groups"),
        ],
        rows(result, "calibrated"), source="calibrated",
    )  # fmt: skip
    return Section.of("calibration", "Scores as probabilities", text, charts, numbers, shares)


def _curve(bins: Sequence[Row], panel_name: str) -> Chart:
    groups = distinct(bins, "group")[:MOST_LINES]
    marks = [
        {"x": row["mean_score"], "value": row["share"], "series": row["group"],
         "tip": f"{row['group']}: {percent(row['share'])} positive at a mean score of "
         f"{percent(row['mean_score'])}, n = {row['n']}"}
        for row in bins
        if row["group"] in groups
    ]  # fmt: skip
    score = Axis("mean score", percent=True, domain=(0.0, 1.0))
    share = Axis("share of positives", percent=True, domain=(0.0, 1.0))
    title = f"Share of positives by score: {panel_name}"
    return curves(marks, title, score, share, title=title, series=groups)
