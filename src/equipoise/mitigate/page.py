"""The page of a mitigation: how far disparities fell, at what price, subject by subject."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.page import Page
from equipoise.report.plots import Axis, scatter
from equipoise.report.summary import Statement, Summary
from equipoise.report.tables import Row, distinct, panels, rows
from equipoise.report.text import count, interval, number, p_value

_ACCURACY = "accuracy"
HALFWAY, MARGIN = 0.5, -2.0
_NAMES = {
    "ndkl": "NDKL",
    "logit_gap": "Similarity gap in logits",
    "accuracy": "Zero-shot accuracy",
    **{f"image_recall_at_{k}": f"Image retrieval R@{k}" for k in (1, 5, 10)},
    **{f"text_recall_at_{k}": f"Text retrieval R@{k}" for k in (1, 5, 10)},
}
_LEADS = {
    "cannot be told": "Whether {recipe} transfers is unknown",
    "price not measured": "The price of {recipe} wasn't measured",
}
_CONCLUSIONS = (
    "transfers", "price not measured", "transfers in part", "cannot be told", "costs too much",
    "does not transfer",
)  # fmt: skip


def name_of_measure(measure: str) -> str:
    """Return the name of a measure for display."""
    return _NAMES.get(measure, measure.replace("_", " "))


def by_conclusion(recipes: Iterable[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return rows of `mitigation_recipes`, recipes that transfer first."""
    place = {conclusion: place for place, conclusion in enumerate(_CONCLUSIONS)}
    return sorted(recipes, key=lambda row: place.get(row["conclusion"], len(place)))


def conclusion(row: Mapping[str, str]) -> str:
    """Return what follows about a recipe, a row of `mitigation_recipes`, in a sentence."""
    lead = _LEADS.get(row["conclusion"], "{recipe} " + row["conclusion"])
    return f"{lead.replace('{recipe}', row['recipe'])}: {row['sentence']}."


def price(result: AuditResult) -> Section | None:
    """Return how far each disparity fell, over what accuracy and recall lost."""
    found = rows(result, "mitigation")
    if not found:
        return None
    note = (
        "Across: the share by which a disparity of withheld subjects fell; 1 is the level of a "
        "model without the bias if one was given, else 0. Up: change in zero-shot accuracy, in "
        "points. Dashed lines: halfway, and two points lost. A recipe that transfers lies to the "
        "right of the first and above the second. Lines: 95 % intervals over subjects and images. "
        "A disparity that isn't clearly above that level before has no mark."
    )
    plots = _plots(found)
    blocks: list[Block] = []
    if plots:
        blocks += [Words((note,), "note"), Grid(plots)]
    blocks += [_table(found, "bias"), _table(found, "utility")]
    return Section("price", "Change in disparities and its price", tuple(blocks))


def _plots(found: Sequence[Row]) -> tuple[Chart, ...]:
    recipes = distinct(found, "recipe")
    accuracy = {row["recipe"]: row for row in found if row["measure"] == _ACCURACY}
    biases = [row for row in found if row["role"] == "bias" and row["recipe"] in accuracy]
    plots = []
    for (measure, about), panel in panels(biases, "measure", "about").items():
        data = [_mark(row, accuracy[row["recipe"]]) for row in panel]
        data = [mark for mark in data if not math.isnan(mark["x"])]
        if data:
            title = f"{name_of_measure(measure)}, {about}"
            label = f"How far recipes lowered {title} of withheld subjects, over lost accuracy."
            axes = Axis("share of the way"), Axis("change in accuracy (points)")
            rules = (("x", HALFWAY), ("y", MARGIN))
            plots.append(scatter(data, label, *axes, title=title, series=recipes, rules=rules))
    return tuple(plots)


def _mark(row: Row, accuracy: Row) -> dict[str, Any]:
    share, low, high = row["share"], row["share_low"], row["share_high"]
    if math.isnan(share) and math.isnan(row["floor"]) and row["before"] > 0:
        share, low, high = (
            -row[name] / row["before"] for name in ("difference", "high", "low")
        )  # fmt: skip
    points = [100.0 * accuracy[name] for name in ("difference", "low", "high")]
    return {
        "series": row["recipe"], "x": share, "x_low": low, "x_high": high,
        "y": points[0], "y_low": points[1], "y_high": points[2],
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
                "series": row["recipe"], "x": row["before"], "y": row["after"],
                "tip": f"{row['subject']}, {row['recipe']}: {number(row['before'])} to "
                f"{number(row['after'])}",
            }
            for row in panel
        ]  # fmt: skip
        ends = (0.0, 1.05 * max((max(row["x"], row["y"]) for row in data), default=1.0))
        label = f"{title} of each withheld subject after a recipe, over before."
        axes = Axis("before", domain=ends), Axis("after", domain=ends)
        recipes = distinct(panel, "recipe")
        plots.append(
            scatter(data, label, *axes, title=title, series=recipes, rules=(("xy", ends[1]),))
        )
    note = (
        "A mark for each withheld subject and recipe. Below the line the disparity fell; above it, "
        "it rose."
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
    return Section("subjects", "Withheld subjects before and after", tuple(blocks))


def summary(result: AuditResult) -> Summary:
    """Return what follows about each recipe."""
    recipes = by_conclusion(rows(result, "mitigation_recipes"))
    charts = _plots(rows(result, "mitigation"))
    statements = tuple(Statement(None, conclusion(row)) for row in recipes)
    return Summary(statements, charts[0] if charts else None)


PAGE = Page(
    subjects="recipes",
    sections=(price, subjects),
    summary=summary,
    noun="Mitigation",
    judged=False,
)
