"""The page of an audit of concepts: what other choices do to each disparity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import (
    Block,
    Chart,
    Fold,
    Grid,
    Heading,
    Key,
    Page,
    Row,
    Section,
    Table,
    Words,
    distinct,
    has,
    panels,
    rows,
)
from equipoise.report.plots import (
    COLORS,
    INK,
    SHAPES,
    SOFT,
    Axis,
    Palette,
    intervals,
    labelled_points,
)
from equipoise.report.text import count, interval, listed, number, plural, source, title

BASELINE, UNKNOWN = "baseline", "not estimable"
MOST_PAIRS, MOST_PANELS, MOST_ROWS, MOST_STATEMENTS, MOST_PLOTS = 3, 6, 30, 40, 12
SYMBOLS = {
    "surfaces": "+", "explains": "×", "switches": "⇄", "magnifies": "↑", "shrinks": "↓",
    "lost power": "?", "stays": "●", "absent": "·", UNKNOWN: "–",
}  # fmt: skip
_EFFECTS: Palette = {
    "surfaces": ("var(--disparity)", "triangle-up"),
    "explains": ("var(--m1)", "cross"),
    "switches": ("var(--m4)", "diamond"),
    "magnifies": ("var(--m8)", "triangle-right"),
    "shrinks": ("var(--m3)", "triangle-left"),
    "lost power": ("var(--inconclusive)", "square"),
    "stays": (INK, "circle"),
    "absent": (SOFT, "circle"),
    UNKNOWN: (SOFT, "circle"),
}
_VERBS = {
    "surfaces": "is significant only under",
    "explains": "is explained by",
    "switches": "switches direction under",
    "magnifies": "is larger under",
    "shrinks": "is smaller under",
    "lost power": "is no longer significant, perhaps by chance, under",
}
_METRICS = (
    "average_precision", "auroc", "true_positive_rate", "false_positive_rate", "precision", "f1",
)  # fmt: skip
_PLACE, _PAIR = ("groups", "metric"), ("concept", "group_a", "group_b")


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return images, concepts, metrics, prevalence and versions."""
    config = result.manifest.resolved
    images = result.manifest.counts.get("images", {})
    measured = rows(result, "concepts")
    concepts = [name for name in distinct(measured, "concept") if name]
    return (
        ("Images", f"{count(images.get('images', 0))}, from {source(config.get('data', {}))}"),
        ("Concepts", listed(concepts, 12)),
        ("Metrics", listed([title(one) for one in distinct(measured, "metric")])),
        ("Prevalence", config.get("choices", {}).get("prevalence", "")),
        ("Versions", listed(distinct(rows(result, "versions"), "version"), 12)),
    )


def _panels(
    result: AuditResult, table: Sequence[Row], blocks: Callable[[list[Row]], Iterable[Block]]
) -> Iterator[Block]:
    """Yield the blocks of each model, groups and metric; folded unless it is the first metric."""
    first = next(iter(rows(result, "versions")), {"metric": ""})["metric"]
    every = panels(table, "model", *_PLACE)
    for key in sorted(every, key=lambda key: key[2] != first)[:MOST_PANELS]:
        model, groups, metric = key
        name, made = f"{title(metric)}: {model}, by {groups}", tuple(blocks(every[key]))
        yield from (Heading(name), *made) if metric == first else (Fold(name, made),)


def _subjects(panel: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by concept and pair: the mean unless pairs are many, then what changes most."""
    pairs = len(panels(panel, "group_a", "group_b"))
    subjects: dict[str, list[Row]] = {}
    for row in panel:
        subjects.setdefault(_subject(row), []).append(row)

    def weight(label: str) -> tuple[bool, int, float]:
        own = subjects[label]
        size = abs(own[0]["baseline_value"])
        changes = sum(row["effect"] in _VERBS for row in own)
        return pairs > MOST_PAIRS or bool(own[0]["concept"]), -changes, -size if has(size) else 0.0

    return {label: subjects[label] for label in sorted(subjects, key=weight)}


def _subject(row: Row) -> str:
    return f"{row['concept'] or 'mean over concepts'}: {row['group_a']} − {row['group_b']}"


def versions(result: AuditResult) -> Section | None:
    """Return a symbol for every concept and version, and each change in words."""
    choices = rows(result, "choices")
    if not choices:
        return None
    table = rows(result, "versions")
    described = tuple(f"{row['version']}: {row['changes']}" for row in table if row["changes"])
    key = (
        "+ significant only in the version. × explained: no longer significant, and the change "
        "isn't chance. ⇄ other direction. ↑ larger, ↓ smaller by more than a quarter. ? no longer "
        "significant, perhaps by chance. ● significant, · not significant, both as in the "
        "baseline. – not estimable, which confirms nothing."
    )

    def blocks(panel: list[Row]) -> Iterator[Block]:
        yield _matrix(panel, [row["version"] for row in table])
        texts = [
            f"{SYMBOLS[effect]} {_statement(own)}"
            for effect in _VERBS
            for own in panels((row for row in panel if row["effect"] == effect), *_PAIR).values()
        ]
        yield Words(
            tuple(texts[:MOST_STATEMENTS]) or ("No other choice changes a result.",), "list"
        )

    shown = _panels(result, choices, blocks)
    return Section.of("versions", "Effect of other choices", Words(described, "list"), key, *shown)


def _matrix(panel: Sequence[Row], names: Sequence[str]) -> Table:
    """Return the effect of each version on each concept, as a symbol and a word."""
    present = [name for name in names if name in {BASELINE, *distinct(panel, "version")}]
    cells = []
    for label, own in _subjects(panel).items():
        effects = {row["version"]: row["effect"] for row in own}
        effects[BASELINE] = _baseline_effect(own[0])
        cells.append((label, *(f"{SYMBOLS[effects[one]]} {effects[one]}" for one in present)))
    columns = ["Concept", *present]
    return Table.of("Effect of each version", columns, cells, source="choices")


def _baseline_effect(row: Row) -> str:
    """Return the effect that stands for the baseline: whether its difference is significant."""
    if not has(row["baseline_value"]):
        return UNKNOWN
    return "stays" if row["baseline_significant"] else "absent"


def _statement(own: Sequence[Row]) -> str:
    """Say what versions of one effect do to one disparity."""
    first = own[0]
    named = ", ".join(
        f"“{row['version']}” ({number(row['value'], 2)} {interval(row['low'], row['high'], 2)})"
        for row in own
    )
    text = (
        f"{first['concept'] or 'Mean over concepts'}: the difference in "
        f"{spec_of(first['metric']).label} between {first['group_a']} and {first['group_b']} "
        f"{_VERBS[first['effect']]} {named}. Baseline: {number(first['baseline_value'], 2)}. "
        f"Above 0 is worse for {_worse(first, 1.0)}."
    )
    means = (
        f"Under “{row['version']}” the mean is {row['reason']}; that alone may change it."
        for row in own
        if row["reason"]
    )
    return " ".join([text, *means])


def _worse(row: Row, difference: float) -> str:
    """Return the group that is worse off under a difference of the first minus the second."""
    first = (difference > 0) == (spec_of(row["metric"]).harm == "higher")
    return str(row["group_a"] if first else row["group_b"])


def robust(result: AuditResult) -> Section | None:
    """Return which conclusions of the baseline hold in every version."""
    conclusions = [row for row in rows(result, "robust") if row["concept"]]
    if not conclusions:
        return None
    choices = [row for row in rows(result, "choices") if row["effect"] == UNKNOWN]
    unknown = panels(choices, "model", *_PLACE, *_PAIR)
    text = (
        "Significant means that the version's own test says so; a finding's verdict says whether "
        "the difference is large enough to matter. A version that can't be estimated agrees with "
        "nothing."
    )
    columns = {
        "Concept": "concept", "Conclusion of the baseline": _conclusion,
        "#Versions": "versions", "#Agree": "agreeing", "#Not estimable": "not_estimable",
        "Model": "model", "Groups": "groups", "Metric": lambda row: title(row["metric"]),
        "~Not estimable in": lambda row: "; ".join(
            f"{one['version']} ({one['reason']})" for one in unknown.get(_key(row), ())
        ),
    }  # fmt: skip
    caption = "Conclusions of the baseline, and how many versions agree"
    order = sorted(conclusions, key=lambda row: (not row["conclusion"], -row["share"]))
    table = Table.of(caption, columns, order, source="robust")
    return Section.of("robust", "Conclusions that hold in every version", text, table)


def _key(row: Row) -> Key:
    return tuple(str(row[name]) for name in ("model", *_PLACE, *_PAIR))


def _conclusion(row: Row) -> str:
    if not row["conclusion"]:
        return f"no significant difference ({row['group_a']}, {row['group_b']})"
    loser = _worse(row, 1.0 if row["conclusion"] == row["group_a"] else -1.0)
    other = row["group_a"] if loser == row["group_b"] else row["group_b"]
    return f"worse for {loser} than for {other}"


def side_by_side(result: AuditResult) -> Section | None:
    """Return the difference of each concept with its interval in every version."""
    choices = rows(result, "choices")
    if not choices:
        return None
    spread = {_key(row): row for row in rows(result, "concepts") if row["version"] == BASELINE}
    text = (
        "A plot for each concept, a row for each version: the difference between two groups with "
        "its interval. Shape and colour show the effect of the version. A version that can't be "
        "estimated has no row."
    )

    def blocks(panel: list[Row]) -> Iterator[Block]:
        every = []
        for own in [*_subjects(panel).values()][:MOST_PLOTS]:
            old = spread[_key(own[0])]
            first = {**old, "effect": _baseline_effect(own[0]), "value": old["difference"]}
            every.append((own[0], labelled_points([first, *own], _labelled, series="effect")))
        ends = _reach(mark for _, marks in every for mark in marks)
        yield Grid(tuple(_plot(row, marks, ends) for row, marks in every if marks))

    shown = _panels(result, choices, blocks)
    return Section.of("sides", "Difference in every version", text, *shown)


def _labelled(row: Row) -> str:
    return f"{SYMBOLS[row['effect']]} {row['version']}"


def _reach(marks: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Return ends of an axis that has 0 in its middle."""
    ends = (abs(one[key]) for one in marks for key in ("value", "low", "high") if has(one[key]))
    reach = math.ceil(11 * max(ends, default=0.0)) / 10 or 0.1
    return -reach, reach


def _plot(row: Row, marks: Sequence[dict[str, Any]], ends: tuple[float, float]) -> Chart:
    name = _subject(row)
    sides = f"← worse for {_worse(row, -1.0)}   worse for {_worse(row, 1.0)} →"
    label = f"{name}, {spec_of(row['metric']).label}, in every version with its interval."
    # Symbols stand in the labels, so the palette needs no legend.
    palette = {one: _EFFECTS[one] for one in distinct(marks, "series")}
    axis = Axis(sides, domain=ends, zero=True)
    return intervals(marks, label, axis, title=name, series=[*palette][:1], palette=palette)


def prevalence(result: AuditResult) -> Section | None:
    """Return the metric of each group beside the share of its images that show the concept."""
    every = rows(result, "concept_groups")
    if not every:
        return None
    text = (
        "Left: the metric of each group. Right: the share of each group's images that show the "
        "concept. Average precision, precision and F1 fall with that share alone, unless "
        "prevalence is held fixed."
    )

    def blocks(panel: list[Row]) -> Iterator[Block]:
        yield Grid(tuple(_group_plots(panel)))

    columns = {
        "Concept": "concept", "Group": "group", "#Value": "value", "#Interval": "low high",
        "%Prevalence": "prevalence", "#Positives": "positives", "#Images": "n",
        "Metric": lambda row: title(row["metric"]), "Version": "version", "Model": "model",
        "Groups": "groups", "~Reason": "reason",
    }  # fmt: skip
    table = Table.of("Value and prevalence by group", columns, every, source="concept_groups")
    shown = _panels(result, [row for row in every if row["version"] == BASELINE], blocks)
    return Section.of("prevalence", "Metric and prevalence by group", text, *shown, table)


def _group_plots(own: Sequence[Row]) -> Iterator[Chart]:
    values = {
        concept: [row["value"] for row in panel if has(row["value"])] or [0.0]
        for (concept,), panel in panels(own, "concept").items()
    }
    widest = sorted(values, key=lambda concept: min(values[concept]) - max(values[concept]))
    order = widest[:MOST_ROWS]
    shown = [row for row in own if row["concept"] in order]
    shown.sort(key=lambda row: order.index(row["concept"]))
    groups = distinct(shown, "group")
    palette = _palette(groups)
    shares = [{**row, "value": row["prevalence"], "low": None} for row in shown]
    metric = title(own[0]["metric"])
    for name, some, share in ((metric, shown, False), ("Prevalence", shares, True)):
        marks = labelled_points(some, "concept", series="group", percent=share)
        label, axis = f"{name} of each group by concept.", Axis(name.lower(), percent=share)
        yield intervals(marks, label, axis, title=name, series=groups, palette=palette)


def _palette(names: Sequence[str]) -> Palette:
    both = zip(COLORS, SHAPES, strict=True)
    return dict(zip(names, [*both] * (1 + len(names) // len(COLORS)), strict=False))


def order(result: AuditResult) -> Section | None:
    """Return where a version reverses which of two models has the larger disparity."""
    compared = rows(result, "model_order")
    if not compared:
        return None
    columns = {
        "Concept": _subject, "Metric": lambda row: title(row["metric"]), "Groups": "groups",
        "Larger in the baseline": "baseline_larger", "Version that reverses it": "version",
        "Larger": "larger", "#Difference": "difference", "#Interval": "low high",
    }  # fmt: skip
    switched = [row for row in compared if row["switches"]]
    caption = f"{plural(len(switched), 'reversed order')} of {plural(len(compared), 'comparison')}"
    text = "How much larger one model's disparity is than the other's, on the same images."
    table = Table.of(caption, columns, switched, source="model_order")
    return Section.of("order", "Model with the larger disparity", text, table)


PAGE = Page(
    leads=_METRICS,
    by_group=(*_METRICS, "hit_rate"),
    subjects="concepts",
    sections=(versions, robust, side_by_side, prevalence, order),
    facts=facts,
)
