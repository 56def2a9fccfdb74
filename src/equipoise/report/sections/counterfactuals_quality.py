"""The quality of counterfactual sets: images, what people say of them, subjects told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.core import AuditResult, Finding
from equipoise.report import charts
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.tables import panels, rows
from equipoise.report.text import count, interval, number, percent

Row = Mapping[str, Any]

_IMAGES = (
    "frechet_distance", "frechet_distance_extrapolated", "image_similarity", "pose_similarity",
    "background_similarity", "inception_score",
)  # fmt: skip
_SUBJECTS = ("confusable_subjects", "subject_accuracy")
_MOST_BARS = 14


def quality(result: AuditResult) -> Section | None:
    """How far images lie from the reference, how alike sets are, which subjects are told apart."""
    found = [one for one in result.findings if one.metric in (*_IMAGES, *_SUBJECTS)]
    if not found:
        return None
    note = (
        "None of this compares groups, so it has no verdict. A Fréchet distance is too large where "
        "images are few: compare the extrapolated one. Similarity within sets stands beside the "
        "same number when images of one subject change places between sets."
    )
    blocks: list[Block] = [Words((note,), "note"), _numbers(found)]
    table = _subjects(result)
    if table is not None:
        blocks.append(table)
    return Section("quality", "Quality of the sets", tuple(blocks))


def _numbers(found: list[Finding]) -> Table:
    cells = [
        (
            title(one.metric), one.model or "all", number(one.value),
            interval(one.ci_low, one.ci_high), number(one.chance),
            interval(one.chance_low, one.chance_high), count(one.n),
        )
        for one in found
    ]  # fmt: skip
    columns = ["Number", "By", "#Value", "#Interval or spread", "#By chance", "#Band", "#n"]
    return Table.of("Quality of the sets", columns, cells)


def _subjects(result: AuditResult) -> Table | None:
    """Return the subjects that a model does not tell apart, the least first."""
    found = [row for row in rows(result, "subjects_told_apart") if not row["told_apart"]]
    if not found:
        return None
    cells = [
        (
            row["subject"], row["model"], percent(row["accuracy"]),
            interval(row["low"], row["high"]), row["taken_for"] or "–",
            row["nearest"] or "–", number(row["cosine"]),
        )
        for row in sorted(found, key=lambda row: row["accuracy"])
    ]  # fmt: skip
    columns = [
        "Subject", "Model", "#Its own prompt is closest", "#Interval", "Else taken for",
        "Nearest prompt", "#Cosine",
    ]  # fmt: skip
    caption = "Subjects that are not told apart: what their rankings show is of others, too"
    return Table.of(caption, columns, cells, source="subjects_told_apart")


def people(result: AuditResult) -> Section | None:
    """What people say of the images, by group, and how the detector agrees with them."""
    found = rows(result, "people")
    if not found:
        return None
    plots = []
    for (groups, metric, error), panel in panels(found, "groups", "metric", "error").items():
        own = [row for row in panel if row["group"] and row["n"]]
        if 1 < len(own) <= _MOST_BARS and error in ("", "any error"):
            plots.append(_plot(own, metric, groups))
    note = (
        "Whether people find errors in images of one group more often is tested. Line: interval. "
        "Precision: of the images in which the attribute was detected, those that show it; recall: "
        "of those that show it, the ones in which it was detected."
    )
    cells = [
        (
            title(row["metric"]), row["error"] or "–", row["group"] or "all", percent(row["value"]),
            interval(row["low"], row["high"]), count(row["n"]), row["groups"],
        )
        for row in found
        if row["n"]
    ]  # fmt: skip
    columns = ["Share", "Error", "Group", "#Value", "#Interval", "#Images", "Groups"]
    table = Table.of("What people say of the images", columns, cells, source="people")
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), table]
    return Section("people", "What people say of the images", tuple(blocks))


def _plot(own: list[Row], metric: str, groups: str) -> Chart:
    worst = (max if metric == "label_error_rate" else min)(own, key=lambda row: row["value"])
    data = [
        {
            "group": row["group"], "value": row["value"], "low": row["low"], "high": row["high"],
            "role": "worst" if row is worst else "other",
            "tip": f"{row['group']} (n = {row['n']}): {percent(row['value'])} "
            f"{interval(row['low'], row['high'])}",
        }
        for row in own
    ]  # fmt: skip
    name = f"{title(metric)}: {groups}"
    spec = charts.groups("rows", "share of the images", len(own), share=True)
    return Chart(f"{name}, by group.", spec, {"rows": data}, None, name)
