"""The page of an audit of concepts: what other choices do to each disparity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import Block, Chart, Fold, Grid, Heading, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import COLORS, INK, SHAPES, SOFT, Axis, Palette, intervals, symbols
from equipoise.report.tables import Key, Row, distinct, has, panels, rows
from equipoise.report.text import count, interval, listed, number, percent, plural, source

BASELINE, UNKNOWN = "baseline", "not estimable"
MOST_PAIRS, MOST_PANELS, MOST_ROWS, MOST_STATEMENTS, MOST_FOLDED = 3, 6, 30, 8, 60
MOST_PLOTS, MOST_ORDERED = 12, 6
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
_PREVALENCE = {
    "weighted": "held fixed by weights in the baseline",
    "hall": "held fixed by samples in the baseline",
    "observed": "as the data have it in the baseline, so that a difference may be one of how many "
    "images of a group show a concept",
}
_PLACE, _PAIR = ("groups", "metric"), ("concept", "group_a", "group_b")


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return images, concepts, metrics, prevalence and versions."""
    config = result.manifest.resolved
    images = result.manifest.counts.get("images", {})
    measured = rows(result, "concepts")
    concepts = [name for name in distinct(measured, "concept") if name]
    versions = distinct(rows(result, "versions"), "version")
    return (
        ("Images", f"{count(images.get('images', 0))}, from {source(config.get('data', {}))}"),
        ("Concepts", listed(concepts, 12)),
        ("Metrics", listed([title(one) for one in distinct(measured, "metric")])),
        ("Prevalence", _PREVALENCE.get(config.get("choices", {}).get("prevalence", ""), "")),
        ("Versions", listed(versions, 12) if len(versions) > 1 else ""),
    )


def _panels(
    result: AuditResult, table: Sequence[Row], blocks: Callable[[Key, list[Row]], Iterable[Block]]
) -> Iterator[Block]:
    """Yield the blocks of each model, groups and metric; folded unless it is the first metric."""
    first = next(iter(rows(result, "versions")), {"metric": ""})["metric"]
    every = panels(table, "model", *_PLACE)
    for key in sorted(every, key=lambda key: key[2] != first)[:MOST_PANELS]:
        model, groups, metric = key
        name, made = f"{title(metric)}: {model}, by {groups}", tuple(blocks(key, every[key]))
        if metric == first:
            yield Heading(name)
            yield from made
        else:
            yield Fold(name, made)


def _subjects(panel: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by concept and pair: the mean unless pairs are many, then what changes most."""
    pairs = len(panels(panel, "group_a", "group_b"))
    subjects: dict[str, list[Row]] = {}
    for row in panel:
        subjects.setdefault(_subject(row, several=pairs > 1), []).append(row)

    def weight(label: str) -> tuple[bool, int, float]:
        own = subjects[label]
        changes = sum(row["effect"] in _VERBS for row in own)
        size = abs(own[0]["baseline_value"])
        first = pairs <= MOST_PAIRS and not own[0]["concept"]
        return not first, -changes, -size if has(size) else math.inf

    return {label: subjects[label] for label in sorted(subjects, key=weight)}


def _subject(row: Row, *, several: bool = True) -> str:
    name = row["concept"] or "mean over concepts"
    return f"{name}: {row['group_a']} − {row['group_b']}" if several else name


def versions(result: AuditResult) -> Section | None:
    """Return a symbol for every concept and version, and each change in words."""
    choices = rows(result, "choices")
    if not choices:
        return None
    table = rows(result, "versions")
    described = tuple(f"{row['version']}: {row['changes']}" for row in table if row["changes"])
    changed = sum(row["effect"] in _VERBS for row in choices)
    unknown = sum(row["effect"] == UNKNOWN for row in choices)
    text = (
        f"{plural(len(described), 'version')} beside the baseline. In {count(changed)} of "
        f"{plural(len(choices), 'comparison')} with it, the conclusion or the size of the "
        f"difference changes. {count(unknown)} can't be estimated."
    )
    key = (
        "+ significant only in the version. × explained: no longer significant, and the change "
        "isn't chance. ⇄ other direction. ↑ larger, ↓ smaller by more than a quarter. ? no longer "
        "significant, perhaps by chance. ● significant, · not significant, both as in the "
        "baseline. – not estimable, which confirms nothing."
    )

    def blocks(_: Key, panel: list[Row]) -> Iterator[Block]:
        yield from _matrix(panel, [row["version"] for row in table])
        yield _tally(panel)
        yield from _statements(panel)

    words = (Words((text,)), Words(described, "list"), Words((key,), "note"))
    blocks_ = (*words, *_panels(result, choices, blocks))
    return Section("versions", "Effect of other choices", blocks_)


def _matrix(panel: Sequence[Row], names: Sequence[str]) -> Iterator[Block]:
    subjects = _subjects(panel)
    known = {BASELINE, *distinct(panel, "version")}
    present = [name for name in names if name in known]
    effects: dict[tuple[str, str], str] = {}
    points = []
    for place, (label, own) in enumerate(subjects.items()):
        for version, effect, tip in _cells(own):
            effects[label, version] = effect
            if place < MOST_ROWS:
                points.append({"row": label, "column": version, "kind": effect,
                               "symbol": SYMBOLS[effect], "tip": f"{label}, {tip}"})  # fmt: skip
    cells = [
        (label, *(f"{SYMBOLS[effects[label, one]]} {effects[label, one]}" for one in present))
        for label in subjects
    ]
    table = Table.of("Effect of each version", ["Concept", *present], cells, source="choices")
    label = "Effect of each version on the difference of each concept, as symbols."
    chart = symbols(points, label, columns=present, palette=_EFFECTS)
    yield Chart(label, chart.spec, chart.data, table)
    if len(subjects) > MOST_ROWS:
        left = f"The {MOST_ROWS} of {count(len(subjects))} that change most."
        yield Words((left,), "note")


def _cells(own: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """Yield version, effect and numbers, of the baseline first."""
    first = own[0]
    yield BASELINE, _baseline_effect(first), f"baseline: {number(first['baseline_value'])}"
    for row in own:
        spread = interval(row["low"], row["high"])
        text = f"{row['version']}, {row['effect']}: {number(row['value'])} {spread}"
        yield row["version"], row["effect"], text


def _baseline_effect(row: Row) -> str:
    """Return the effect that stands for the baseline: whether its difference is significant."""
    if not has(row["baseline_value"]):
        return UNKNOWN
    return "stays" if row["baseline_significant"] else "absent"


def _tally(panel: Sequence[Row]) -> Table:
    """Count the concepts by effect in every version; their mean isn't one of them."""
    own = [row for row in panel if row["concept"]]
    present = [effect for effect in SYMBOLS if any(row["effect"] == effect for row in own)]
    cells = [
        (version, *(count(sum(row["effect"] == one for row in some)) for one in present))
        for (version,), some in panels(own, "version").items()
    ]
    columns = ["Version", *(f"#{SYMBOLS[one]} {one}" for one in present)]
    return Table.of("Concepts by effect of each version", columns, cells, source="choices")


def _statements(panel: Sequence[Row]) -> Iterator[Block]:
    """Yield a sentence for each effect and concept, the largest changes first."""
    texts: list[str] = []
    for effect in _VERBS:
        subjects = panels([row for row in panel if row["effect"] == effect], *_PAIR).values()
        for own in sorted(subjects, key=lambda own: -max(abs(row["change"]) for row in own)):
            texts.append(f"{SYMBOLS[effect]} {_statement(own)}")
    yield from _listed(texts or ["No other choice changes a conclusion or a size."])
    unknown = [*_unknown(panel)]
    if unknown:
        yield Words(("Not estimable, so nothing is known of these versions:",))
        yield from _listed(unknown)


def _statement(own: Sequence[Row]) -> str:
    """Say what versions of one effect do to one disparity."""
    first = own[0]
    turned = first["effect"] == "surfaces"
    sign = -1.0 if first["value" if turned else "baseline_value"] < 0 else 1.0
    named = ", ".join(f"“{row['version']}” ({_size(row, 'value', sign)})" for row in own)
    old = number(sign * first["baseline_value"], 2)
    text = (
        f"{first['concept'] or 'Mean over concepts'}: the difference in "
        f"{spec_of(first['metric']).label} between {first['group_a']} and {first['group_b']} "
        f"{_VERBS[first['effect']]} {named}. Baseline: {old}. Above 0 is worse for "
        f"{_worse(first, sign)}."
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


def _size(row: Row, key: str, sign: float) -> str:
    low, high = (row["low"], row["high"]) if sign > 0 else (-row["high"], -row["low"])
    return f"{number(sign * row[key], 2)} {interval(low, high, 2)}"


def _unknown(panel: Sequence[Row]) -> Iterator[str]:
    """Say for each version and reason what can't be estimated, the baseline first."""
    several = len(panels(panel, "group_a", "group_b")) > 1
    lost: dict[tuple[str, str], dict[str, None]] = {}
    for row in sorted(panel, key=lambda row: has(row["baseline_value"])):
        if row["effect"] == UNKNOWN:
            known = has(row["baseline_value"])
            where = f"“{row['version']}”" if known else f"the {BASELINE}"
            why = row["reason"] if known else row["baseline_reason"]
            lost.setdefault((where, why), {})[_subject(row, several=several)] = None
    for (where, why), subjects in lost.items():
        yield f"In {where} ({why}): {listed([*subjects], 12)}."


def _listed(texts: Sequence[str]) -> Iterator[Block]:
    yield Words(tuple(texts[:MOST_STATEMENTS]), "list")
    rest = tuple(texts[MOST_STATEMENTS:MOST_FOLDED])
    if rest:
        yield Fold(f"Show {plural(len(rest), 'more statement')}", (Words(rest, "list"),))
    if len(texts) > MOST_FOLDED:
        left = plural(len(texts) - MOST_FOLDED, "further one")
        yield Words((f"{left}: see tables/choices.parquet.",), "note")


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

    def blocks(_: Key, panel: list[Row]) -> Iterator[Block]:
        yield Words((*_counts(panel),), "list")

    cells = [
        (
            row["concept"], _conclusion(row), f"{row['agreeing']} of {row['versions']}",
            count(row["not_estimable"]), row["model"], row["groups"], title(row["metric"]),
            _reasons(unknown.get(_key(row), ())),
        )
        for row in sorted(conclusions, key=_weakness)
    ]  # fmt: skip
    columns = ["Concept", "Conclusion of the baseline", "#Versions that agree", "#Not estimable",
               "Model", "Groups", "Metric", "~Not estimable in"]  # fmt: skip
    caption = "Conclusions of the baseline, and how many versions agree"
    return Section(
        "robust",
        "Conclusions that hold in every version",
        (
            Words((text,), "note"),
            *_panels(result, conclusions, blocks),
            Table.of(caption, columns, cells, source="robust"),
        ),
    )


def _key(row: Row) -> Key:
    return tuple(str(row[name]) for name in ("model", *_PLACE, *_PAIR))


def _weakness(row: Row) -> tuple[bool, bool, float, int]:
    """Order conclusions: significant ones first, of these the most widely confirmed."""
    return not row["conclusion"], not row["robust"], -row["share"], row["not_estimable"]


def _conclusion(row: Row) -> str:
    if not row["conclusion"]:
        return f"no significant difference ({row['group_a']}, {row['group_b']})"
    loser = _worse(row, 1.0 if row["conclusion"] == row["group_a"] else -1.0)
    other = row["group_a"] if loser == row["group_b"] else row["group_b"]
    return f"worse for {loser} than for {other}"


def _counts(panel: Sequence[Row]) -> Iterator[str]:
    """Count conclusions that hold in every version, apart from those that not all can judge."""
    for significant in (True, False):
        own = [row for row in panel if bool(row["conclusion"]) == significant]
        every = sum(row["robust"] for row in own)
        alone = sum(row["versions"] == 1 and not row["robust"] for row in own)
        some = sum(row["agreeing"] == row["versions"] for row in own) - every - alone
        what = "significant difference" if significant else "difference that isn't significant"
        many = "significant differences" if significant else "differences that aren't significant"
        yield (
            f"{plural(len(own), what, many)} in the baseline: {every} the same in every version, "
            f"{some} in all that can be estimated, {alone} with no version that can."
        )


def _reasons(unknown: Sequence[Row]) -> str:
    return "; ".join(f"{row['version']} ({row['reason']})" for row in unknown)


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

    def blocks(_: Key, panel: list[Row]) -> Iterator[Block]:
        subjects = [*_subjects(panel).values()][:MOST_PLOTS]
        points = [_points(own, spread) for own in subjects]
        ends = _reach(point for some in points for point in some)
        plots = zip(subjects, points, strict=True)
        yield Grid(tuple(_plot(own[0], some, ends) for own, some in plots if some))

    blocks_ = (Words((text,), "note"), *_panels(result, choices, blocks))
    return Section("sides", "Difference in every version", blocks_)


def _points(own: Sequence[Row], spread: Mapping[Key, Row]) -> list[dict[str, Any]]:
    old = spread.get(_key(own[0]))
    every = [(row["version"], row["effect"], row, row["value"]) for row in own]
    if old is not None:
        every.insert(0, (BASELINE, _baseline_effect(own[0]), old, old["difference"]))
    return [
        {
            "label": f"{SYMBOLS[effect]} {version}", "series": effect, "value": value,
            "low": row["low"], "high": row["high"],
            "tip": f"{version}, {effect}: {number(value)} {interval(row['low'], row['high'])}",
        }
        for version, effect, row, value in every
        if has(value)
    ]  # fmt: skip


def _reach(points: Iterable[Mapping[str, Any]]) -> tuple[float, float]:
    """Return ends of an axis that has 0 in its middle."""
    ends = (abs(one[key]) for one in points for key in ("value", "low", "high") if has(one[key]))
    reach = math.ceil(11 * max(ends, default=0.0)) / 10 or 0.1
    return -reach, reach


def _plot(row: Row, points: Sequence[dict[str, Any]], ends: tuple[float, float]) -> Chart:
    name = _subject(row)
    sides = f"← worse for {_worse(row, -1.0)}", f"worse for {_worse(row, 1.0)} →"
    label = f"{name}, {spec_of(row['metric']).label}, in every version with its interval."
    # Symbols stand in the labels, so the palette needs no legend.
    palette = {one: _EFFECTS[one] for one in dict.fromkeys(point["series"] for point in points)}
    axis = Axis("   ".join(sides), domain=ends, zero=True)
    return intervals(points, label, axis, title=name, series=[*palette][:1], palette=palette)


def prevalence(result: AuditResult) -> Section | None:
    """Return the metric of each group beside the share of its images that show the concept."""
    every = rows(result, "concept_groups")
    observed = [
        row["version"]
        for row in rows(result, "versions")
        if row["keys"] == ["prevalence"] and row["prevalence"] == "observed"
    ]
    chosen = [row for row in every if row["version"] in (BASELINE, *observed[:1])]
    if not chosen:
        return None
    text = (
        "Left: the metric of each group. Right: the share of each group's images that show the "
        "concept. Average precision, precision and F1 fall with that share alone, unless "
        "prevalence is held fixed."
    )

    def blocks(key: Key, panel: list[Row]) -> Iterator[Block]:
        for (version,), own in panels(panel, "version").items():
            yield Words((f"Version: {version}",))
            yield Grid(tuple(_group_plots(own, title(key[2]))))

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
    table = Table.of("Value and prevalence by group", columns, cells, source="concept_groups")
    blocks_ = (Words((text,), "note"), *_panels(result, chosen, blocks), table)
    return Section("prevalence", "Metric and prevalence by group", blocks_)


def _group_plots(own: Sequence[Row], metric: str) -> Iterator[Chart]:
    wide = {}
    for (concept,), panel in panels(own, "concept").items():
        known = [row["value"] for row in panel if has(row["value"])]
        wide[concept] = max(known) - min(known) if len(known) > 1 else -1.0
    order = sorted(wide, key=lambda concept: -wide[concept])[:MOST_ROWS]
    shown = sorted(
        (row for row in own if row["concept"] in order), key=lambda row: order.index(row["concept"])
    )
    groups = distinct(shown, "group")
    palette = {
        group: (COLORS[place % len(COLORS)], SHAPES[place % len(SHAPES)])
        for place, group in enumerate(groups)
    }
    for key, name in (("value", metric), ("prevalence", "Prevalence")):
        points = [
            {
                "label": row["concept"], "series": row["group"], "value": row[key],
                "low": row["low"] if key == "value" else None,
                "high": row["high"] if key == "value" else None,
                "tip": f"{row['concept']}, {row['group']}: {number(row[key])}, "
                f"{count(row['positives'])} of {count(row['n'])} images",
            }
            for row in shown
            if has(row[key])
        ]  # fmt: skip
        if points:
            label = f"{name} of each group by concept."
            axis = Axis(name.lower(), percent=key != "value")
            yield intervals(points, label, axis, title=name, series=groups, palette=palette)


def order(result: AuditResult) -> Section | None:
    """Return which of two models has the larger disparity, and where that switches."""
    compared = rows(result, "model_order")
    if not compared:
        return None
    text = (
        "By version: how much larger one model's disparity is than the other's, with the interval "
        "of the paired difference."
    )
    blocks: list[Block] = [Words((text,), "note")]
    for key, panel in panels(compared, *_PLACE, "model_a", "model_b").items():
        groups, metric, *models = key
        subjects = [*panels(panel, *_PAIR).values()]
        switched = [own for own in subjects if any(row["switches"] for row in own)]
        texts = [_order_statement(own) for own in switched[:20]]
        lost = [row for row in panel if not has(row["difference"])]
        for (version,), own in panels(lost, "version").items():
            names = [name or "mean over concepts" for name in distinct(own, "concept")]
            texts.append(f"Under “{version}”, no order for {listed(names)}: not estimable.")
        blocks.append(Heading(f"{title(metric)}: {listed(models)}, by {groups}"))
        if not switched:
            texts.insert(0, "No version that can be estimated reverses an order of the baseline.")
        blocks.append(Words(tuple(texts), "list"))
        drawn = [
            own for own in sorted(subjects, key=_order_weight) if any(has(r["low"]) for r in own)
        ]
        blocks.append(Grid(tuple(_order_plot(own, models) for own in drawn[:MOST_ORDERED])))
    return Section("order", "Model with the larger disparity", tuple(blocks))


def _order_weight(own: Sequence[Row]) -> tuple[bool, int, float]:
    """Order subjects: the mean, then what switches, then the largest."""
    size = own[0]["difference"]
    switches = sum(row["switches"] for row in own)
    return bool(own[0]["concept"]), -switches, -abs(size) if has(size) else math.inf


def _order_statement(own: Sequence[Row]) -> str:
    """Say in which versions another model has the larger disparity than in the baseline."""
    switched = [row for row in own if row["switches"]]
    first = switched[0]
    old = first["baseline_larger"]
    other = first["model_b"] if old == first["model_a"] else first["model_a"]
    sign = 1.0 if other == first["model_a"] else -1.0
    named = ", ".join(
        f"“{row['version']}” (by {_size(row, 'difference', sign)})" for row in switched
    )
    return (
        f"{_subject(first)}: {old} has the larger disparity in the baseline, {other} under {named}."
    )


def _order_plot(own: Sequence[Row], models: Sequence[str]) -> Chart:
    points = [
        {
            "label": row["version"], "series": row["larger"], "value": row["difference"],
            "low": row["low"], "high": row["high"],
            "tip": f"{row['version']}: {number(row['difference'])} "
            f"{interval(row['low'], row['high'])}",
        }
        for row in own
        if has(row["difference"])
    ]  # fmt: skip
    name = _subject(own[0])
    first, second = (one if len(one) <= 20 else f"{one[:19]}…" for one in models)
    axis = Axis(f"← larger for {second}   larger for {first} →", domain=_reach(points), zero=True)
    palette = {one: (COLORS[place], SHAPES[place]) for place, one in enumerate(models)}
    palette[""] = (SOFT, "circle")
    label = f"{name}: which of {listed(models)} has the larger disparity, by version."
    return intervals(points, label, axis, title=name, series=[models[0]], palette=palette)


PAGE = Page(
    leads=_METRICS,
    by_group=(*_METRICS, "hit_rate"),
    subjects="concepts",
    sections=(versions, robust, side_by_side, prevalence, order),
    facts=facts,
)
