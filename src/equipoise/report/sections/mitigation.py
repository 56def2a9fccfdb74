"""What recipes lowered beside what they cost, and each withheld subject before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_mitigation
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.tables import Row, distinct, panels, rows
from equipoise.report.text import count, interval, number, p_value
from equipoise.report.voices.mitigation import name_of_measure

_ACCURACY = "accuracy"


def price(result: AuditResult) -> Section | None:
    """Return how far each disparity fell, over what accuracy and recall lost."""
    found = rows(result, "mitigation")
    if not found:
        return None
    note = (
        "Across: how much lower a disparity of withheld subjects is than before, of 1 in all: at "
        "the floor, where a model without the bias was given, else at 0. Up: change in zero-shot "
        "accuracy, in points. The dashed lines are halfway, and two points lost; a recipe that "
        "transfers has all its marks right of the one and above the other. Lines: 95 % intervals, "
        "over subjects and over images. A disparity that is not clear of the floor before has no "
        "mark: no share of the way can be told of it."
    )
    plots = _plots(found)
    blocks: list[Block] = []
    if plots:
        blocks += [Words((note,), "note"), Grid(plots)]
    blocks += [_table(found, "bias"), _table(found, "utility")]
    return Section("price", "What was lowered, and at what price", tuple(blocks))


def _plots(found: Sequence[Row]) -> tuple[Chart, ...]:
    recipes = distinct(found, "recipe")
    accuracy = {row["recipe"]: row for row in found if row["measure"] == _ACCURACY}
    biases = [row for row in found if row["role"] == "bias" and row["recipe"] in accuracy]
    plots = []
    for (measure, about), panel in panels(biases, "measure", "about").items():
        data = [_mark(row, accuracy[row["recipe"]]) for row in panel]
        data = [mark for mark in data if not math.isnan(mark["lowered"])]
        if data:
            title = f"{name_of_measure(measure)}, {about}"
            label = f"How far recipes lowered {title} of withheld subjects, over lost accuracy."
            spec = charts_mitigation.price("rows", recipes)
            plots.append(Chart(label, spec, {"rows": data}, None, title))
    return tuple(plots)


def _mark(row: Row, accuracy: Row) -> dict[str, Any]:
    share, low, high = row["share"], row["share_low"], row["share_high"]
    if math.isnan(share) and math.isnan(row["floor"]) and row["before"] > 0:
        share, low, high = (
            -row[name] / row["before"] for name in ("difference", "high", "low")
        )  # fmt: skip
    points = [100.0 * accuracy[name] for name in ("difference", "low", "high")]
    return {
        "model": row["recipe"], "lowered": share, "low": low, "high": high,
        "points": points[0], "points_low": points[1], "points_high": points[2],
        "tip": f"{row['recipe']}: {number(row['before'])} to {number(row['after'])}, "
        f"{number(share)} of the way {interval(low, high)}; accuracy {number(points[0])} points",
    }  # fmt: skip


def _table(found: Sequence[Row], role: str) -> Table:
    own = [row for row in found if row["role"] == role]
    cells = [
        (
            row["recipe"], name_of_measure(row["measure"]), row["about"], number(row["before"]),
            number(row["after"]), number(row["difference"]), interval(row["low"], row["high"]),
            p_value(row["p_value"]), p_value(row["q_value"]), number(row["floor"]),
            *((number(row["share"]), interval(row["share_low"], row["share_high"]))
              if role == "bias" else ()),
            count(row["n"]),
        )
        for row in own
    ]  # fmt: skip
    columns = [
        "Recipe", "Measure", "Over" if role == "bias" else "On", "#Before", "#After",
        "#Difference", "#Interval", "#p", "#q", "#Floor",
        *(("#Of the way", "#Its interval", "#Subjects") if role == "bias" else ("#n",)),
    ]  # fmt: skip
    caption = (
        "Disparities of withheld subjects, before and after"
        if role == "bias"
        else "Accuracy and recall, before and after"
    )
    return Table.of(caption, columns, cells, source="mitigation")


def subjects(result: AuditResult) -> Section | None:
    """Return each withheld subject before and after every recipe."""
    found = rows(result, "mitigation_subjects")
    if not found:
        return None
    plots = []
    for (measure, about), panel in panels(found, "measure", "about").items():
        title = f"{name_of_measure(measure)}, {about}"
        data = [
            {
                "model": row["recipe"], "before": row["before"], "after": row["after"],
                "tip": f"{row['subject']}, {row['recipe']}: {number(row['before'])} to "
                f"{number(row['after'])}",
            }
            for row in panel
        ]  # fmt: skip
        reach = max((max(row["before"], row["after"]) for row in data), default=1.0)
        spec = charts_mitigation.subjects("rows", distinct(panel, "recipe"), reach)
        label = f"{title} of each withheld subject after a recipe, over before."
        plots.append(Chart(label, spec, {"rows": data}, None, title))
    note = (
        "One mark for each withheld subject and recipe. Below the line: lower than before. "
        "Subjects that a recipe made worse lie above it."
    )
    cells = [
        (
            row["subject"], row["recipe"], name_of_measure(row["measure"]), row["about"],
            number(row["before"]), number(row["after"]), number(row["floor"]),
            count(row["fold"] + 1),
        )
        for row in found
    ]  # fmt: skip
    columns = ["Subject", "Recipe", "Measure", "Over", "#Before", "#After", "#Floor", "#Fold"]
    table = Table.of("Withheld subjects", columns, cells, source="mitigation_subjects")
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), table]
    return Section("subjects", "Every withheld subject, before and after", tuple(blocks))
