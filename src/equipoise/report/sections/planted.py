"""For the planted world: what was planted, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import comparison_charts
from equipoise.report.blocks import Block, Chart, Heading, Section, Table, Words
from equipoise.report.sections.tables import distinct, has, panels, rows
from equipoise.report.text import interval, number


def planted(result: AuditResult) -> Section | None:
    """What was planted beside what each metric found and what the paper printed."""
    found = rows(result, "planted")
    if not found:
        return None
    intro = (
        "These images are rendered, and part of the training images was removed on purpose, so "
        "the truth is known: effect sizes should be high for the affected class and near 0 for "
        "the others."
    )
    by_model = panels(found, "model")
    sentences = tuple(_sentence(model, panel) for (model,), panel in by_model.items())
    blocks: list[Block] = [
        Words((intro,)),
        Words(sentences, "list"),
        _chart(found),
        _effects(found),
        Heading("The other metrics"),
        _others(by_model),
    ]
    return Section("planted", "What was planted, and what was found", tuple(blocks))


def _sentence(model: str, panel: Sequence[Any]) -> str:
    hit = [row for row in panel if row["planted"]]
    rest = [
        row["found_effect_size"]
        for row in panel
        if not row["planted"] and has(row["found_effect_size"])
    ]
    others = f"{number(max(rest))} at most" if rest else "not estimable"
    if not hit:
        return f"{model}: nothing planted; effect sizes of {others}."
    row = hit[0]
    paper = (
        f"; the paper has {number(row['paper_effect_size'])}"
        if has(row["paper_effect_size"])
        else ""
    )
    return (
        f"{model}: planted in {row['class']} ({row['strength']}), found there "
        f"{number(row['found_effect_size'])} {interval(row['low'], row['high'])}{paper}; "
        f"elsewhere {others}."
    )


def _chart(found: Sequence[Any]) -> Chart:
    data = [
        {
            "model": r["model"], "class": r["class"], "found": r["found_effect_size"],
            "low": r["low"], "high": r["high"], "paper": r["paper_effect_size"],
            "tip": f"{r['model']}, {r['class']}: found {number(r['found_effect_size'])}, "
            f"paper {number(r['paper_effect_size'])}",
        }
        for r in found
    ]  # fmt: skip
    label = "Effect size found per model and class, filled, beside the paper's, hollow diamonds."
    spec = comparison_charts.planted(
        "rows", distinct(found, "class"), len(distinct(found, "model"))
    )
    title = "Found (filled) and printed in the paper (hollow)"
    return Chart(label, spec, {"rows": data}, None, title)


def _effects(found: Sequence[Any]) -> Table:
    columns = ["Model", "Removed from", "Strength", "Class", "Planted", "#Found", "#Interval",
               "#Paper", "#Parity", "#Odds"]  # fmt: skip
    cells = [
        (
            r["model"], r["removed"] or "none", r["strength"], r["class"],
            "planted" if r["planted"] else "", number(r["found_effect_size"]),
            interval(r["low"], r["high"]), number(r["paper_effect_size"]),
            number(r["demographic_parity"]), number(r["equalized_odds"]),
        )
        for r in found
    ]  # fmt: skip
    return Table.of(
        "Effect size per class, found and in the paper", columns, cells, source="planted"
    )


def _others(by_model: Any) -> Table:
    columns = ["Model", "#Accuracy", "#Paper", "#Worst group", "#Paper", "#GAP", "#Paper"]
    names = ("accuracy", "worst_group_accuracy", "gap")
    cells = [
        (model, *(number(panel[0][key]) for name in names for key in (name, f"paper_{name}")))
        for (model,), panel in by_model.items()
    ]
    return Table.of(
        "Accuracy and its gap, found and in the paper", columns, cells, source="planted"
    )
