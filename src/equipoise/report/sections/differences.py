"""A comparison: values side by side, differences, ranking, and metrics that disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Badge, Block, Chart, Grid, Section, Table, Words
from equipoise.report.comparison import (
    Pair,
    changed,
    is_comparison,
    oriented,
    over_subjects,
    pair_of,
)
from equipoise.report.names import DIFFERENCE, title
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number, p_value, percent, plural
from equipoise.report.words import figures, name_of, ranked

MODELS_AS_COLUMNS = 5
LEAVES, PAIRS = 12, 6


def side_by_side(result: AuditResult) -> list[Table]:
    """Return a table per set of groups: each model's value and rank."""
    found = rows(result, "ranking")
    names = distinct(found, "model")
    columns = ["Metric", *(f"#{name}" for name in names)]
    tables = []
    for (groups,), panel in panels(found, "groups").items():
        values = {(row["metric"], row["model"]): row for row in panel}
        metrics = distinct(panel, "metric")
        cells = [(title(one), *(_ranked(values.get((one, m))) for m in names)) for one in metrics]
        if len(names) > MODELS_AS_COLUMNS:
            cells = [(m, *(_ranked(values.get((one, m))) for one in metrics)) for m in names]
            columns = ["Model", *(f"#{title(one)}" for one in metrics)]
        caption = f"Over {scope(groups, 'default')}: value, and rank in brackets"
        tables.append(Table.of(caption, columns, cells, source="ranking"))
    return tables


def _ranked(row: Mapping[str, Any] | None) -> str:
    if row is None or row["rank"] is None:
        return "–"
    return f"{number(row['value'])} ({row['rank']})"


def differences(result: AuditResult) -> Section | None:
    """Paired differences between models with intervals and tests."""
    pairs: dict[str, list[Finding]] = {}
    for finding in result.findings:
        if is_comparison(finding):
            pairs.setdefault(finding.model, []).append(finding)
    # Of trainings on changed faces their own section has every difference.
    if not pairs or "augmentation" in result.tables:
        return None
    over = all(over_subjects(one) for found in pairs.values() for one in found)
    blocks: list[Block] = [Words((_KEY_SUBJECTS if over else _KEY,), "note")]
    for found in [*pairs.values()][:PAIRS]:
        blocks += _of_pair(found)
    if len(pairs) > PAIRS:
        more = plural(len(pairs) - PAIRS, "further pair")
        blocks.append(Words((f"{more} of models: see tables/differences.parquet.",), "note"))
    return Section("differences", "How the models differ", tuple(blocks))


_KEY = (
    "Each line is a difference on the same images, with its interval, turned so that the side says "
    "which model is better; the dashed line is no difference. Of single classes, the twelve "
    "largest are drawn."
)


_KEY_SUBJECTS = (
    "Each line is a mean difference over the subjects that both models have, of how far each is "
    "from 0, with its interval, turned so that the side says which model is better; the dashed "
    "line is no difference."
)


def _of_pair(found: Sequence[Finding]) -> list[Block]:
    by_groups: dict[str, list[Finding]] = {}
    for finding in found:
        # What repeats another finding has no test, and needs no second line.
        if not math.isnan(finding.value) and has(finding.q_value):
            by_groups.setdefault(finding.groups, []).append(finding)
    plots = []
    for groups, panel in by_groups.items():
        leaves = ranked(one for one in panel if one.subject)[:LEAVES]
        shown = [one for one in panel if not one.subject] + leaves
        plots.append(differences_chart(shown, name=f"{found[0].model}, {scope(groups, 'default')}"))
    return [*plots, _table(found)]


def differences_chart(found: Sequence[Finding], *, name: str = "") -> Chart:
    """Draw differences of one pair, right of 0 where the second model is better."""
    known = [(finding, pair) for finding in found if (pair := pair_of(finding))]
    data = [_row(finding, pair) for finding, pair in known]
    ends = [abs(row[key]) for row in data for key in ("value", "low", "high")]
    reach = math.ceil(11 * max((end for end in ends if has(end)), default=0.0)) / 10 or 0.1
    sides = _sides(known[0][1])
    label = f"{name or found[0].model}: differences with intervals, {', '.join(sides)}."
    axis = Axis(sides, domain=(-reach, reach), zero=True)
    verdicts = [*dict.fromkeys(row["series"] for row in data)]
    return intervals(data, label, axis, title=name, series=verdicts, palette=_PALETTE)


_PALETTE = {DIFFERENCE: VERDICTS[Verdict.DISPARITY.value], **VERDICTS}


def _sides(pair: Pair) -> tuple[str, str]:
    return f"← left: better for {_short(pair.first)}", f"right: better for {_short(pair.second)} →"


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def _row(finding: Finding, pair: Pair) -> dict[str, Any]:
    value, low, high = oriented(finding, pair)
    what = f"{finding.subject}: {name_of(finding)}" if finding.subject else title(finding.metric)
    word = Badge(finding.verdict, comparison=True).word
    worse = f", worse for {pair.worse}" if pair.worse else ""
    return {
        "label": what, "value": value, "low": low, "high": high, "series": word,
        "tip": f"{word}: {what}, {figures(finding)}{worse}",
    }  # fmt: skip


def _table(found: Sequence[Finding]) -> Table:
    pairs = [pair for finding in found if (pair := pair_of(finding))]
    one = pairs[0]
    units = "#Subjects" if all(map(over_subjects, found)) else "#Images"
    columns = ["Metric", "Class", "Groups", f"#{one.second}", f"#{one.first}", "#Difference",
               "#Interval", "Verdict", "Worse", "#q", units, "Reason"]  # fmt: skip
    cells = [
        (
            title(f.metric), f.subject, scope(f.groups, f.version), number(pair.values[1]),
            number(pair.values[0]), number(f.value), interval(f.ci_low, f.ci_high),
            Badge(f.verdict, comparison=True), pair.worse, p_value(f.q_value), count(f.n), f.reason,
        )
        for f, pair in zip(found, pairs, strict=True)
    ]  # fmt: skip
    return Table.of(f"Differences, {one.name}", columns, cells, source="differences")


def ranking(result: AuditResult) -> Section | None:
    """The order of the models per metric, with the ranks that the data leave open."""
    # A metric that cannot be estimated for a model ranks it nowhere.
    found = [row for row in rows(result, "ranking") if row["rank"] is not None]
    if not found:
        return None
    plots = []
    for (metric, groups), panel in panels(found, "metric", "groups").items():
        data = [
            {
                "label": row["model"],
                "value": row["rank"],
                "low": row["rank_low"],
                "high": row["rank_high"],
                "tip": f"{row['model']}: {number(row['value'])}, rank {row['rank']}",
            }
            for row in sorted(panel, key=lambda row: row["rank"])
        ]
        name = f"{title(metric)}, {scope(groups, 'default')}"
        axis = Axis("rank (1 is best)", domain=(0.6, len(data) + 0.4))
        plots.append(intervals(data, f"Ranks of the models: {name}", axis, title=name))
    columns = ["Metric", "Groups", "Model", "#Value", "#Rank", "Rank from, to", "#Best in"]
    cells = [
        (
            title(r["metric"]), scope(r["groups"], "default"), r["model"], number(r["value"]),
            str(r["rank"]), _ranks(r), percent(r["share_best"]) if has(r["share_best"]) else "–",
        )
        for r in found
    ]  # fmt: skip
    note = (
        "The line spans the ranks that resampling the images gives a model; “best in” is the share "
        "of the resamples in which it came first."
    )
    table = Table.of("Ranking", columns, cells, source="ranking")
    return Section(
        "ranking",
        "Which model ranks first",
        (Words((note,), "note"), Grid(tuple(plots)), table),
    )


def _ranks(row: Mapping[str, Any]) -> str:
    if not has(row["rank_low"]):
        return "–"
    low, high = round(row["rank_low"]), round(row["rank_high"])
    return str(low) if low == high else f"{low} to {high}"


def disagreements(result: AuditResult) -> Section | None:
    """Where two metrics prefer different models."""
    found = rows(result, "disagreements")
    if not found:
        return None
    items = tuple(row["sentence"] for row in found[:60])
    note = "Pairs of metrics that both have a verdict of difference, in opposite directions."
    blocks: tuple[Block, ...] = (Words((note,), "note"), Words(items, "list"))
    return Section("disagreements", "Where metrics disagree", blocks)


def changes(result: AuditResult) -> Section | None:
    """Which disparities went, which stayed and which came, subject by subject."""
    found = rows(result, "changes")
    if not found:
        return None
    blocks: list[Block] = [Words(tuple(changed(result)), "list"), Words((_CHANGES,), "note")]
    for (first, second), pair in panels(found, "model_a", "model_b").items():
        shown = [row for row in pair if row["change"] != "never there"]
        cells = [
            (
                row["change"], row["subject"] or "the whole", title(row["metric"]),
                scope(row["groups"], row["version"]), number(row["value_a"]),
                Badge(Verdict(row["verdict_a"])), number(row["value_b"]),
                Badge(Verdict(row["verdict_b"])),
            )
            for row in sorted(shown, key=_gain)
        ]  # fmt: skip
        columns = ["What became of it", "Subject", "Metric", "Groups", f"#{first}", "Verdict",
                   f"#{second}", "Verdict"]  # fmt: skip
        caption = f"Disparities of {first} or {second}"
        blocks.append(Table.of(caption, columns, cells, source="changes", limit=60))
    return Section("changes", "Which disparities went, and which came", tuple(blocks))


_CHANGES = (
    "A disparity went where the first model has one and the second has none. That is a change of "
    "the verdict, which is no test of the difference: those over all subjects are under “How the "
    "models differ”."
)


def _gain(row: Mapping[str, Any]) -> tuple[int, float]:
    """Order what became of disparities: went, stayed, came; the largest change first."""
    order = ("went", "stayed", "came")
    return order.index(row["change"]), -abs(abs(row["value_b"]) - abs(row["value_a"]))
