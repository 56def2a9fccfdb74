"""Classes that are answered well on average, and yet wrongly in another way for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Card, Heading, Section, Table, Words
from equipoise.report.names import band
from equipoise.report.sections.tables import Key, has, panels, scope
from equipoise.report.sections.tables import rows as table_rows
from equipoise.report.text import count, number, percent

MEDIUM = 0.3
ACCURATE = 0.8
SHOWN = 8
NEAREST = 3
TOP = 3


def hidden(result: AuditResult) -> Section | None:
    """Classes whose accuracy and effect size are both high, with wrong predictions per group.

    High means: an effect size that is at least medium (0.3), and an accuracy of at least 0.8, or
    at least the median of the model's classes where that is lower; at most eight classes a model
    and grouping, largest effect size first. Where no class is both, this is said, and the classes
    with the largest effect sizes stand in for them.
    """
    found = table_rows(result, "classes")
    panelled = panels(found, "model", "groups", "version")
    if not any(has(row["effect_size"]) for row in found):
        return None
    by_panel = {key: high for key, panel in panelled.items() if (high := _both_high(panel))}
    qualify = bool(by_panel)
    if qualify:
        wrong = _wrong(result, [row for high in by_panel.values() for row in high])
        note = f"{_RULE} Here a good average hides that groups are mistaken for different things."
    else:
        by_panel, wrong = _nearest(result, panelled)
        note = f"No class is both accurate and unequal in its mistakes. {_RULE}"
        if by_panel:
            note += (
                f" Shown instead: up to {NEAREST} classes a model and groups, largest effect "
                "size first."
            )
    cards: list[Block] = []
    for (model, groups, version), shown in by_panel.items():
        cards.append(Heading(f"{model}, {scope(groups, version)}"))
        cards += [_card(row, wrong.get(_key(row), []), qualifies=qualify) for row in shown]
    return Section(
        "hidden", "Accurate on average, unequal in its mistakes", (Words((note,), "note"), *cards)
    )


_RULE = (
    f"The rule: an effect size of at least {MEDIUM} (medium or large), and an accuracy of at "
    f"least {ACCURATE}, or at least the median of the model's classes where that is lower."
)


def _both_high(panel: Sequence[Any]) -> list[Any]:
    accuracies = [row["accuracy"] for row in panel if has(row["accuracy"])]
    if not accuracies:
        return []
    enough = min(median(accuracies), ACCURATE)
    high = [row for row in _by_effect(panel) if row["effect_size"] >= MEDIUM]
    return [row for row in high if has(row["accuracy"]) and row["accuracy"] >= enough][:SHOWN]


def _by_effect(panel: Sequence[Any]) -> list[Any]:
    estimable = [row for row in panel if has(row["effect_size"])]
    return sorted(estimable, key=lambda row: -row["effect_size"])


def _nearest(
    result: AuditResult, panelled: Mapping[Key, Sequence[Any]]
) -> tuple[dict[Key, list[Any]], dict[Key, list[Any]]]:
    """Return the classes with the largest effect sizes by panel, and their wrong predictions."""
    imperfect = {
        key: [row for row in _by_effect(panel) if row["accuracy"] < 1][:NEAREST]
        for key, panel in panelled.items()
    }
    wrong = _wrong(result, [row for panel in imperfect.values() for row in panel])
    mistaken = {
        key: [row for row in panel if _key(row) in wrong] for key, panel in imperfect.items()
    }
    return {key: panel for key, panel in mistaken.items() if panel}, wrong


def _key(row: Any) -> Key:
    return tuple(str(row[name]) for name in ("model", "groups", "version", "class"))


def _wrong(result: AuditResult, chosen: Sequence[Any]) -> dict[Key, list[Any]]:
    """Wrong predictions of the chosen classes only: the table may have millions of rows."""
    table = result.tables.get("confusions")
    if table is None:
        return {}
    names = pa.array(sorted({row["class"] for row in chosen}), table.schema.field("class").type)
    mask = pc.and_(
        pc.is_in(table["class"], value_set=names), pc.not_equal(table["prediction"], table["class"])
    )
    return panels(table.filter(mask).to_pylist(), "model", "groups", "version", "class")


def _card(row: Any, wrong: Sequence[Any], *, qualifies: bool) -> Card:
    size = number(row["effect_size"], 2)
    where = scope(row["groups"], row["version"])
    depends = (
        f", yet its answers depend on {where} (effect size {size}, {band(row['effect_size'])})."
        if qualifies
        else f"; the effect size of {where} is {size} ({band(row['effect_size'])})."
    )
    sentence = (
        f"{row['model']} is right on {percent(row['accuracy'])} of the images of "
        f"“{row['class']}”{depends}{_typical(wrong)}"
    )
    line = f"GAP {number(row['gap'])} · worst group: {row['worst_group']}"
    table = _table(row, wrong)
    return Card(None, sentence, (line,), (table,) if table else ())


def _typical(wrong: Sequence[Any]) -> str:
    """Name the two groups with the largest shares of one wrong answer, if they differ in it."""
    first = sorted(wrong, key=lambda r: (-r["count"] / max(r["n"], 1), r["group"], r["prediction"]))
    if not first:
        return ""
    a = first[0]
    b = next(
        (r for r in first if r["prediction"] != a["prediction"] and r["group"] != a["group"]), None
    )
    text = f" Images labelled {a['group']} are taken for “{a['prediction']}” {_of(a)}"
    if b is None:
        return f"{text}."
    return f"{text}, those labelled {b['group']} for “{b['prediction']}” {_of(b)}."


def _of(row: Any) -> str:
    return f"({row['count']} of {row['n']})"


def _table(row: Any, wrong: Sequence[Any]) -> Table | None:
    if not wrong:
        return None
    cells = []
    for (group,), found in panels(wrong, "group").items():
        top = sorted(found, key=lambda r: (-r["count"], r["prediction"]))[:TOP]
        n = found[0]["n"]
        total = sum(r["count"] for r in found)
        named = "; ".join(f"{r['prediction']} ({r['count']})" for r in top)
        cells.append(
            (total / max(n, 1), (group, count(n), count(total), percent(total / max(n, 1)), named))
        )
    cells.sort(key=lambda pair: (-pair[0], pair[1][0]))
    columns = [
        "Group",
        "#Images",
        "#Wrong",
        "#Share wrong",
        f"Most frequent wrong answers (up to {TOP})",
    ]
    caption = f"Wrong answers for “{row['class']}” by group, {row['model']}"
    return Table.of(caption, columns, [cell for _, cell in cells], source="confusions")
