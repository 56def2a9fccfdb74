"""How similar concepts are to images of each group, and whether that was expected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_similarity
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.charts import MOST_GROUPS
from equipoise.report.charts_heat import tone
from equipoise.report.tables import distinct, panels, rows, scope
from equipoise.report.text import count, interval, number

Row = Mapping[str, Any]

MOST_CONCEPTS, MOST_IN_MAP, MOST_IN_A_MAPS_ROW = 12, 30, 8
_AVERAGE = "all concepts"
_FEWEST = 3
_UNITS = {"logit": "logits", "score": "units of the score"}


def effects(result: AuditResult) -> Section | None:
    """Every group's similarity to every concept, beside what chance gives."""
    found = rows(result, "group_effects")
    if not found:
        return None
    plots: list[Chart] = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        name = f"{model}, {scope(groups, version)}"
        order = _by_gap(panel)
        if 0 < len(distinct(panel, "group")) <= MOST_GROUPS:
            plots.append(_dots(panel, order[:MOST_CONCEPTS], name))
        if len(distinct(panel, "group")) <= MOST_IN_A_MAPS_ROW and len(order) > 1:
            reach = _reach(found, str(panel[0]["unit"]))
            plots.append(_map(panel, order[:MOST_IN_MAP], name, reach))
    note = (
        "Zero is the average of the groups for a concept, so that marks apart from each other are "
        f"a gap between groups. Up to {MOST_CONCEPTS} concepts, largest gap first. Line: interval; "
        "grey: where a group lies in 95 of 100 random exchanges of groups. In the maps, a number "
        "says how much closer or farther (−) a group is than the average; the further from the "
        "middle step of colour, the larger the difference, on one scale for all maps."
    )
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), _table(found)]
    return Section("effects", "How similar each concept is to each group", tuple(blocks))


def _by_gap(panel: Sequence[Row]) -> list[str]:
    """Return concepts, largest gap first; the average over them is none."""
    gaps = {}
    for (concept,), found in panels(panel, "concept").items():
        known = [row["effect"] for row in found if not math.isnan(row["effect"])]
        if concept and len(known) > 1:
            gaps[concept] = max(known) - min(known)
    named = sorted(gaps, key=lambda concept: -gaps[concept])
    return named or [""]


def _shown(panel: Sequence[Row], concepts: Sequence[str]) -> list[Row]:
    """Return the rows of some concepts, in their order."""
    by_concept = panels(panel, "concept")
    kept = (row for concept in concepts for row in by_concept.get((concept,), ()))
    return [row for row in kept if not math.isnan(row["effect"])]


def _dots(panel: Sequence[Row], concepts: Sequence[str], name: str) -> Chart:
    data = [
        {
            "concept": row["concept"] or _AVERAGE, "group": row["group"], "effect": row["effect"],
            "low": row["low"], "high": row["high"], "chance_low": row["chance_low"],
            "chance_high": row["chance_high"], "tip": _tip(row),
        }
        for row in _shown(panel, concepts)
    ]  # fmt: skip
    title = f"{_UNITS[panel[0]['unit']]} above the groups' average"
    groups = distinct(panel, "group")
    spec = charts_similarity.effects("rows", title, groups, len(concepts))
    label = f"Similarity of groups by concept: {name}. Grey: what chance gives."
    return Chart(label, spec, {"rows": data}, None, f"Groups by concept: {name}")


def _tip(row: Row) -> str:
    about = f"{row['concept'] or _AVERAGE}, {row['group']} (n = {row['n']})"
    spread = "" if math.isnan(row["low"]) else f" {interval(row['low'], row['high'])}"
    normal = ""
    if not math.isnan(row["normalised"]):
        normal = f"; {number(row['normalised'])} standard deviations from the mean of all images"
    return f"{about}: {number(row['effect'])}{spread}{normal}"


def _reach(found: Sequence[Row], unit: str) -> float:
    """Return the largest effect in a unit: maps of one unit have one scale of colour."""
    sizes = (abs(row["effect"]) for row in found if row["unit"] == unit and row["concept"])
    return max((one for one in sizes if not math.isnan(one)), default=0.0) or 1.0


def _map(panel: Sequence[Row], concepts: Sequence[str], name: str, reach: float) -> Chart:
    shown = _shown(panel, concepts)
    digits = 2 if reach >= 0.1 else 4
    data = [
        {
            "concept": row["concept"], "group": row["group"], "effect": row["effect"],
            "shown": f"{round(row['effect'], digits) + 0.0:.{digits}f}".replace("-", "−"),
            "tone": tone(row["effect"], -reach, reach), "tip": _tip(row),
        }
        for row in shown
    ]  # fmt: skip
    title = f"{_UNITS[panel[0]['unit']]} above average"
    groups = distinct(panel, "group")
    spec = charts_similarity.effect_map("rows", title, groups, len(concepts), reach)
    label = f"Similarity of concepts by groups: {name}"
    return Chart(label, spec, {"rows": data}, None, f"Concepts and groups: {name}")


def _table(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["concept"] or _AVERAGE, row["group"], number(row["effect"]),
            interval(row["low"], row["high"]), interval(row["chance_low"], row["chance_high"]),
            number(row["normalised"]), interval(row["normalised_low"], row["normalised_high"]),
            count(row["n"]), row["unit"], row["model"], scope(row["groups"], row["version"]),
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Concept", "Group", "#Above average", "#Interval", "#Chance band", "#Normalised",
        "#Its interval", "#Images", "In", "Model", "Groups",
    ]  # fmt: skip
    return Table.of("Similarity of groups by concept", columns, cells, source="group_effects")


def hypotheses(result: AuditResult) -> Section | None:
    """Preferences for the groups that were declared beforehand."""
    found = [row for row in rows(result, "hypotheses") if not math.isnan(row["preference"])]
    if not found:
        return None
    plots = [
        _declared(panel, groups, name)
        for (groups, name), panel in panels(found, "groups", "hypothesis").items()
    ]
    note = (
        "Preference: how much closer the concept is to the group that was declared for it than to "
        "the others on average. Above zero, a model prefers the declared group. A model whose "
        "preferences have nothing to do with what was declared has as many marks on either side, "
        "whatever their size."
    )
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), _points(found)]
    return Section("hypotheses", "What was declared, and what was found", tuple(blocks))


def _declared(panel: Sequence[Row], groups: str, name: str) -> Chart:
    models = distinct(panel, "model")
    data = [
        {
            "model": row["model"], "concept": f"{row['concept']}: {row['favourite']}",
            "declared": row["declared"], "preference": row["preference"],
            "tip": f"{row['model']}, {row['concept']}: {row['favourite']} preferred by "
            f"{number(row['preference'])}" + _given(row, name),
        }
        for row in sorted(panel, key=lambda row: -row["preference"])
    ]  # fmt: skip
    title = f"preference ({_UNITS[panel[0]['unit']]})"
    if len({row["declared"] for row in data if not math.isnan(row["declared"])}) >= _FEWEST:
        data = [row for row in data if not math.isnan(row["declared"])]
        spec = charts_similarity.declared_numbers("rows", name, title, models)
    else:
        concepts = len({row["concept"] for row in data})
        spec = charts_similarity.declared_groups("rows", title, models, concepts)
    label = f"Preference for declared groups of {groups}, by concept: {name}"
    return Chart(label, spec, {"rows": data}, None, f"{groups}, as declared in “{name}”")


def _given(row: Row, name: str) -> str:
    return "" if math.isnan(row["declared"]) else f", {name} {number(row['declared'])}"


def _points(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["concept"], row["favourite"], number(row["declared"]), number(row["preference"]),
            row["unit"], row["model"], row["groups"],
        )
        for row in sorted(found, key=lambda row: -row["preference"])
    ]  # fmt: skip
    columns = ["Concept", "Declared group", "#Declared", "#Preference", "In", "Model", "Groups"]
    return Table.of("Preferences for declared groups", columns, cells, source="hypotheses")
