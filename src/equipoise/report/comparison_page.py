"""The page of a comparison: paired differences, ranking, and metrics that disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Badge, Block, Grid, Section, Table, Words
from equipoise.report.comparison import (
    changed,
    is_comparison,
    leading,
    over_subjects,
    pair_of,
)
from equipoise.report.differences import differences_chart
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import Axis, intervals
from equipoise.report.summary import Statement, Summary
from equipoise.report.tables import has, panels, rows, scope
from equipoise.report.text import count, interval, number, p_value, percent, plural
from equipoise.report.words import ranked, sentence

LEAVES, PAIRS, MOST_STATEMENTS = 12, 6, 8


def differences(result: AuditResult) -> Section | None:
    """Paired differences between models with intervals and tests."""
    pairs: dict[str, list[Finding]] = {}
    for finding in result.findings:
        if is_comparison(finding):
            pairs.setdefault(finding.model, []).append(finding)
    if not pairs:
        return None
    over = all(over_subjects(one) for found in pairs.values() for one in found)
    blocks: list[Block] = [Words((_KEY_SUBJECTS if over else _KEY,), "note")]
    for found in [*pairs.values()][:PAIRS]:
        blocks += _of_pair(found)
    if len(pairs) > PAIRS:
        more = plural(len(pairs) - PAIRS, "further pair")
        blocks.append(Words((f"{more} of models: see tables/differences.parquet.",), "note"))
    return Section("differences", "Differences between models", tuple(blocks))


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
        "Ranking of the models",
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
    return Section("changes", "Disparities that went, stayed and came", tuple(blocks))


_CHANGES = (
    "A disparity went where the first model has one and the second has none. That is a change of "
    "the verdict, which is no test of the difference: those over all subjects are under “How the "
    "models differ”."
)


def _gain(row: Mapping[str, Any]) -> tuple[int, float]:
    """Order what became of disparities: went, stayed, came; the largest change first."""
    order = ("went", "stayed", "came")
    return order.index(row["change"]), -abs(abs(row["value_b"]) - abs(row["value_a"]))


_PAIRED = {
    "image": "by image: intervals resample images for all models at once; tests swap the outputs "
    "of two models on random images",
    "subject": "by subject: intervals are Student's; tests flip the signs of the differences",
    "run": "by training run: runs with one number start from the same weights; intervals are "
    "Student's over runs, widened by the spread over images",
}


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return how many images are compared, and how models are paired."""
    units = {_unit(one) for one in result.findings}
    images = [one.n for one in result.findings if not over_subjects(one)]
    paired = [text for unit, text in _PAIRED.items() if unit in units]
    return (
        ("Images", count(max(images)) if images else ""),
        ("Paired", "; ".join(paired)),
    )


def _unit(finding: Finding) -> str:
    if over_subjects(finding):
        return "subject"
    return "run" if "training run" in finding.unit else "image"


def summary(result: AuditResult) -> Summary:
    """Say which model is better in what leads, and which metrics disagree."""
    leads = leading(result.findings)
    texts = [sentence(one) for one in leads] + changed(result)
    if not all(map(over_subjects, result.findings)):
        texts += [f"Metrics disagree: {row['sentence']}" for row in rows(result, "disagreements")]
    first = [one for one in leads if one.model == leads[0].model and not math.isnan(one.value)]
    chart = differences_chart(first, name=first[0].model) if first else None
    return Summary(tuple(Statement(None, text) for text in texts[:MOST_STATEMENTS]), chart)


PAGE = Page(
    summary=summary,
    noun="Comparison",
    subjects="classes",
    sections=(differences, changes, ranking, disagreements),
    facts=facts,
)
