"""Concepts drawn: every version side by side, values beside prevalence, two models in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.metrics.spec import spec_of
from equipoise.report import charts_concepts as charts
from equipoise.report.blocks import Block, Chart, Grid, Heading, Section, Table, Words
from equipoise.report.charts_concepts import SYMBOLS
from equipoise.report.names import title
from equipoise.report.sections.concepts import (
    BASELINE,
    MOST_ROWS,
    Place,
    baseline_effect,
    primary,
    subjects_of,
    titled,
)
from equipoise.report.tables import Row, distinct, has, panels, rows
from equipoise.report.text import count, interval, listed, number, percent
from equipoise.report.words_concepts import name_of, order_sentence, worse

MOST_PLOTS, MOST_ORDERED = 12, 6
_PLACE = ("model", "groups", "metric")


def side_by_side(result: AuditResult) -> Section | None:
    """The difference of a concept with its interval in every version."""
    found = rows(result, "choices")
    if not found:
        return None
    spread = {
        tuple(row[key] for key in (*_PLACE, "concept", "group_a", "group_b")): row
        for row in rows(result, "concepts")
        if row["version"] == BASELINE
    }
    blocks: list[Block] = [Words((_SIDES,), "note")]
    for place, panel, leads in primary(result, found):
        subjects = [*subjects_of(panel).values()][:MOST_PLOTS]
        plots = tuple(_plots(subjects, spread, place))
        if plots:
            blocks += titled(place, (Grid(plots),), leads=leads)
    return Section("sides", "Every version side by side", tuple(blocks))


_SIDES = (
    "Each row is a version: the point is the difference between two groups, the line its interval, "
    "the dashed line no difference. Shape and colour say what becomes of the baseline's "
    "conclusion. A version that cannot be estimated has no row."
)


def _plots(subjects: Sequence[list[Row]], spread: Any, place: Place) -> Iterator[Chart]:
    # What cannot be estimated has no point; the table above says so.
    every = [(some, _points(some, spread, place)) for some in subjects]
    drawn = [(some, [one for one in points if has(one["value"])]) for some, points in every]
    ends = [abs(p[key]) for _, points in drawn for p in points for key in ("value", "low", "high")]
    reach = math.ceil(11 * max((end for end in ends if has(end)), default=0.0)) / 10 or 0.1
    for some, points in drawn:
        first = some[0]
        if not points:
            continue
        sides = (
            f"← left: worse for {worse(first, -1.0)}",
            f"right: worse for {worse(first, 1.0)} →",
        )
        name = f"{name_of(first['concept'])}: {first['group_a']} − {first['group_b']}"
        spec = charts.differences("rows", sides, reach, len(points))
        label = f"{name}, {spec_of(place[2]).label}, in every version with its interval."
        yield Chart(label, spec, {"rows": points}, None, name)


def _points(some: Sequence[Row], spread: Any, place: Place) -> list[dict[str, Any]]:
    first = some[0]
    old = spread.get((*place, first["concept"], first["group_a"], first["group_b"]))
    points = (
        [] if old is None else [_point(BASELINE, baseline_effect(first), "", old, "difference")]
    )
    return points + [_point(r["version"], r["effect"], r["effect"], r, "value") for r in some]


def _point(version: str, effect: str, word: str, row: Row, key: str) -> dict[str, Any]:
    return {
        "label": f"{SYMBOLS[effect]} {version}",
        "effect": effect,
        "value": row[key],
        "low": row["low"],
        "high": row["high"],
        "tip": f"{version}: {number(row[key])} {interval(row['low'], row['high'])}"
        f"{f', {word}' if word else ''}",
    }


def prevalence(result: AuditResult) -> Section | None:
    """The metric of each group beside the share of its images that show the concept."""
    every = rows(result, "concept_groups")
    chosen = [row for row in every if row["version"] in _beside(result)]
    if not chosen:
        return None
    blocks: list[Block] = [Words((_BESIDE,), "note")]
    for place, panel, leads in primary(result, chosen):
        shown: list[Block] = []
        for (version,), some in panels(panel, "version").items():
            shown += [Words((f"Version: {version}",)), _dumbbells(some, title(place[2]))]
        blocks += titled(place, shown, leads=leads)
    blocks.append(_values_table(every))
    return Section("prevalence", "The metric beside prevalence", tuple(blocks))


_BESIDE = (
    "Left: the metric of each group. Right: the share of each group's images that show the "
    "concept. Average precision, precision and F1 fall with that share alone, unless prevalence "
    "is held fixed."
)


def _beside(result: AuditResult) -> set[str]:
    """Return the baseline, and the version that only leaves prevalence as it is."""
    observed = [
        row["version"]
        for row in rows(result, "versions")
        if row["keys"] == ["prevalence"] and row["prevalence"] == "observed"
    ]
    return {BASELINE, *observed[:1]}


def _dumbbells(some: Sequence[Row], metric: str) -> Grid:
    wide = {
        concept: max(known) - min(known) if len(known) > 1 else -1.0
        for (concept,), panel in panels(some, "concept").items()
        for known in [[row["value"] for row in panel if has(row["value"])]]
    }
    order = sorted(wide, key=lambda concept: -wide[concept])[:MOST_ROWS]
    place = {concept: index for index, concept in enumerate(order)}
    shown = sorted((r for r in some if r["concept"] in place), key=lambda r: place[r["concept"]])
    groups = distinct(shown, "group")
    charts_ = []
    for key, name in (("value", metric), ("prevalence", "Prevalence")):
        data = [_dumbbell(row, key) for row in shown]
        spec = charts.by_group("rows", name.lower(), groups, len(order), share=key != "value")
        charts_.append(Chart(f"{name} of each group by concept.", spec, {"rows": data}, None, name))
    return Grid(tuple(charts_))


def _dumbbell(row: Row, key: str) -> dict[str, Any]:
    spread = f" {interval(row['low'], row['high'])}" if key == "value" else ""
    return {
        "concept": row["concept"], "group": row["group"], "value": row[key],
        "tip": f"{row['concept']}, {row['group']}: {number(row[key])}{spread}, "
        f"{count(row['positives'])} of {count(row['n'])} images",
    }  # fmt: skip


def _values_table(every: Sequence[Row]) -> Table:
    columns = ["Concept", "Group", "#Value", "#Interval", "#Prevalence", "#Positives", "#Images",
               "Metric", "Version", "Model", "Groups", "~Reason"]  # fmt: skip
    cells = [
        (
            r["concept"], r["group"], number(r["value"]), interval(r["low"], r["high"]),
            percent(r["prevalence"]) if has(r["prevalence"]) else "–", count(r["positives"]),
            count(r["n"]), title(r["metric"]), r["version"], r["model"], r["groups"], r["reason"],
        )
        for r in every
    ]  # fmt: skip
    caption = "Every group's value beside its prevalence"
    return Table.of(caption, columns, cells, source="concept_groups")


def order(result: AuditResult) -> Section | None:
    """Which of two models has the larger disparity, and where that switches."""
    found = rows(result, "model_order")
    if not found:
        return None
    blocks: list[Block] = []
    for (groups, metric, a, b), panel in panels(
        found, "groups", "metric", "model_a", "model_b"
    ).items():
        blocks.append(Heading(f"{title(metric)}: {a} and {b}, by {groups}"))
        switched = [row for row in panel if row["switches"]]
        subjects = panels(switched, "concept", "group_a", "group_b").values()
        texts = [order_sentence(some) for some in subjects]
        blocks.append(Words((*(texts[:20] or [_NO_SWITCH]), *_unordered(panel)), "list"))
        drawn = [some for some in _order_subjects(panel) if any(has(r["low"]) for r in some)]
        blocks.append(Grid(tuple(_order_plot(some, (a, b)) for some in drawn[:MOST_ORDERED])))
    note = Words((_ORDER,), "note")
    return Section("order", "Which model has the larger disparity", (note, *blocks))


_ORDER = (
    "By version: how much larger the disparity of one model is than that of the other, whatever "
    "its direction, with the interval of the paired difference."
)


_NO_SWITCH = "No version that can be estimated turns an order round that the baseline shows."


def _unordered(panel: Sequence[Row]) -> Iterator[str]:
    """Say where models were not held against each other: there an order may switch unseen."""
    lost = [row for row in panel if not has(row["difference"])]
    if lost:
        by_version = panels(lost, "version")
        told = [
            f"{listed([name_of(one) for one in distinct(some, 'concept')])} under “{version}”"
            for (version,), some in by_version.items()
        ]
        yield f"Without an order, as one of the models or both cannot be estimated: {listed(told)}."


def _order_subjects(panel: Sequence[Row]) -> list[list[Row]]:
    """Return rows by concept and pair: the mean, then those that switch, then the largest."""
    found = panels(panel, "concept", "group_a", "group_b").values()
    return sorted(
        found,
        key=lambda some: (
            bool(some[0]["concept"]),
            -sum(row["switches"] for row in some),
            -abs(some[0]["difference"]) if has(some[0]["difference"]) else math.inf,
        ),
    )


def _order_plot(some: Sequence[Row], models: tuple[str, str]) -> Chart:
    data = [
        {key: row[key] for key in ("version", "difference", "low", "high", "larger")}
        | {"tip": f"{row['version']}: {number(row['difference'])} "
           f"{interval(row['low'], row['high'])}"}
        for row in some
    ]  # fmt: skip
    ends = [abs(row[key]) for row in some for key in ("difference", "low", "high")]
    reach = math.ceil(11 * max((end for end in ends if has(end)), default=0.0)) / 10 or 0.1
    first = some[0]
    name = f"{name_of(first['concept'])}: {first['group_a']} − {first['group_b']}"
    label = f"{name}: which of {models[0]} and {models[1]} has the larger disparity, by version."
    spec = charts.order("rows", models, reach, len(data))
    return Chart(label, spec, {"rows": data}, None, name)
