"""Parts of the pages of rankings: every K, shares by query, and the spread over queries."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, quantiles

from equipoise.core import AuditResult, Finding
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.spec import spec_of
from equipoise.report import plots
from equipoise.report.blocks import (
    NUMBER,
    Chart,
    Column,
    Row,
    Section,
    Table,
    TableSection,
    by_place,
    distinct,
    has,
    panels,
    points,
    rows,
    scope,
    scope_of,
    title_of,
)
from equipoise.report.plots import Axis, heat_map, intervals, scatter
from equipoise.report.text import count, interval, listed, log_note, number, percent, title

MOST_ROWS, MOST_GROUPS, MOST_QUERIES = 20, 14, 6
_BESIDE = (
    f"All models side by side, for the {MOST_QUERIES} queries in which a model departs most from "
    "chance."
)
_MIN_POINTS = 3
_RANKED = 10
_RANKED_COLUMNS = [
    Column("Model", "model"),
    Column("Attributes", scope_of),
    Column("Group", "group"),
    Column("Queries with its largest shares of the first K", "words"),
]
_UNITS = {"logit": "logits", "score": "units of the score", "share": "share of the top K"}
_NAMED, _QUARTILES = 3, ("first_quartile", "median", "third_quartile")
PREFERENCES = ("favourite_gap", "alignment", "systematic_preference")
SHARES = ("max_skew", "ndkl", "retrieval_mad")
"""Metrics of the shares of groups that lead, after preferences."""
BY_GROUP = ("systematic_preference", "max_skew")
LOOK = "Look at the images that rank first, and see below which group each query prefers."
STEPS = ("Reduce the preference, or choose another model.",)
CAVEAT = (
    "Every trained model has preferences, and with many images even a small one has a small p. The "
    "number of disparities doesn't show which preferences are strong: read the excess over "
    "chance, and how far apart the similarities are."
)


def curves(result: AuditResult) -> Section | None:
    """Return the mean of every measure at every K, over the chance band."""
    means = [row for row in rows(result, "curves") if not row["query"]]
    charts = []
    for (groups, version, metric), panel in panels(means, "groups", "version", "metric").items():
        name = f"{title(metric)}, {scope(groups, version)}"
        finite = [row for row in panel if math.isfinite(row["value"])]
        if len(finite) > 1:
            charts.append(
                plots.curves(
                    points(
                        finite,
                        lambda row: f"{row['model']}, K = {row['k']}: {number(row['value'])} "
                        f"{interval(row['low'], row['high'])}, by chance {number(row['chance'])}",
                        "value", "low", "high", "chance_low", "chance_high", x="k", series="model",
                    ),
                    f"{name}, at every K, over the chance band", Axis("K: number of top images"),
                    Axis(title(metric)), title=name, series=distinct(panel, "model"), marks=False,
                )
            )  # fmt: skip
    text = (
        "Line: mean over queries with its interval. Grey: range of the mean in 95 of 100 random "
        "orders. Among few images shares are uneven by chance, so a curve within the grey shows no "
        "preference of the model. A curve has gaps where the mean is infinite: a group without an "
        "image in the first K has a skew of −∞."
    )
    return Section.of("curves", "Results at every K", text, charts) if charts else None


def queries(result: AuditResult) -> Section | None:
    """Return shares of the first K by query, and the spread over queries."""
    shares = [f for f in _with_shares(result.findings) if has(f.value)]
    charts = [
        _share_map(panel, name)
        for name, panel in by_place(map(vars, shares))
        if len(panel[0]["by_group"]) <= MOST_GROUPS
    ]
    text = (
        f"Share of each group in the first K: up to {MOST_ROWS} queries, largest excess over "
        "chance first. In brackets: the group's share of all images that are ranked."
    )
    side_by_side = [*_models_beside(shares)]
    spread = rows(result, "query_distributions")
    columns = [
        Column("Metric", lambda row: title_of(row) + log_note(spec_of(row["metric"]))),
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("Mean", "mean", NUMBER),
        Column("SD", "sd", NUMBER),
        Column("Lowest", "lowest", NUMBER),
        Column(
            "Quartiles", lambda row: ", ".join(number(row[name]) for name in _QUARTILES), NUMBER
        ),
        Column("Highest", "highest", NUMBER),
        Column("Highest in", lambda row: listed(row["highest_queries"], _NAMED)),
        Column("Lowest in", lambda row: listed(row["lowest_queries"], _NAMED)),
        Column("Queries", "queries", NUMBER),
        Column("Not estimable", "not_estimable", NUMBER),
    ]
    by_group = [*_ranked_queries(result)]
    if not charts and not spread and not by_group:
        return None
    table = Table.of("Spread over queries", columns, spread, source="query_distributions")
    spread_block = table if spread else None
    return Section.of(
        "queries", "Results by query", text if charts else None, charts,
        _BESIDE if side_by_side else None, side_by_side, spread_block,
        Table.of("Queries by group", _RANKED_COLUMNS, by_group) if by_group else None,
    )  # fmt: skip


def _with_shares(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of the first metric whose groups have their shares of the first K."""
    by_metric: dict[str, list[Finding]] = {
        name: [] for name, metric in metrics_of(RankingMetric).items() if metric.shows_shares
    }
    for finding in findings:
        if finding.by_group and finding.metric in by_metric:
            by_metric[finding.metric].append(finding)
    return next(filter(None, by_metric.values()), [])


def _ranked_queries(result: AuditResult) -> Iterator[Row]:
    """Yield for each group the queries in which it has the largest shares of the first K."""
    measured = [f for f in result.findings if f.subject and not f.within]
    shares = [vars(finding) for finding in _with_shares(measured)]
    for (model, groups, version), panel in panels(shares, "model", "groups", "version").items():
        by_group: dict[str, list[tuple[float, str]]] = {}
        for row in panel:
            for group in row["by_group"]:
                if has(group.value):
                    by_group.setdefault(group.group, []).append((group.value, row["subject"]))
        for group, pairs in by_group.items():
            first = sorted(pairs, key=lambda pair: (-pair[0], pair[1]))[:_RANKED]
            words = listed([f"{query} {percent(share)}" for share, query in first], _RANKED)
            if len(pairs) > 1:
                yield {
                    "model": model, "groups": groups, "version": version, "group": group,
                    "words": words,
                }  # fmt: skip


def _models_beside(shares: Sequence[Finding]) -> Iterator[Chart]:
    """Draw the shares of one query for all models, of the queries that depart most from chance."""
    unconditional = [vars(finding) for finding in shares if not finding.within]
    queries = panels(unconditional, "subject", "groups", "version")
    shared_queries = {
        key: panel for key, panel in queries.items() if len(distinct(panel, "model")) > 1
    }
    ranked_queries = sorted(
        shared_queries, key=lambda key: -max(_excess(row) for row in shared_queries[key])
    )
    for subject, groups, version in ranked_queries[:MOST_QUERIES]:
        panel = shared_queries[subject, groups, version]
        if len(panel[0]["by_group"]) <= MOST_GROUPS:
            yield _share_map(panel, f"{subject or 'the query'}, {scope(groups, version)}", "model")


def fixed(result: AuditResult) -> Section | None:
    """Return the skew of an attribute within each value of the other, over queries."""
    metric = "max_skew"
    skew_rows = [
        vars(finding)
        for finding in result.findings
        if finding.metric == metric and finding.within_value and finding.part_of
        and math.isfinite(finding.value)
    ]  # fmt: skip
    charts = []
    for (groups, version), panel in panels(skew_rows, "groups", "version").items():
        marks = []
        for (value_within, model), level_rows in panels(panel, "within_value", "model").items():
            values = [row["value"] for row in level_rows]
            low, _, high = quantiles(values * (1 + (len(values) == 1)), method="inclusive")
            mean = fmean(values)
            tip = f"{model}, {value_within}: mean {number(mean)}, half of {len(values)} queries "
            marks.append({
                "label": value_within, "series": model, "value": mean, "low": low, "high": high,
                "tip": f"{tip}{interval(low, high)}",
            })  # fmt: skip
        name = f"{title(metric)}, {scope(groups, version)}"
        label = f"{name}: mean over queries and the middle half of them, by value and model"
        models = distinct(panel, "model")
        charts.append(intervals(marks, label, Axis(title(metric)), title=name, series=models))
    text = (
        "Point: mean over queries, among images with one value of the other attribute. Line: the "
        "middle half of the queries. These are descriptions, without a test of their own."
    )
    return Section.of("held", "Skew within each value", text, charts) if charts else None


def _excess(row: Row) -> float:
    return float(row["excess"]) if math.isfinite(row["excess"]) else 0.0


def _share_map(panel: Sequence[Row], name: str, of: str = "subject") -> Chart:
    """Draw each group's share of the first K, a row for each query or model."""
    panel = sorted(panel, key=lambda row: -_excess(row))
    cells = [
        (row[of] or "the query", group_value) for row in panel for group_value in row["by_group"]
    ]
    cells = cells[: MOST_ROWS * len(panel[0]["by_group"])]
    pool = Counter[str]()
    for _, group_value in cells:
        pool[group_value.group] += group_value.n
    names = {
        group: f"{group} ({100 * n / max(1, pool.total()):.0f} %)" for group, n in pool.items()
    }
    data = [
        {
            "row": row, "column": names[group_value.group], "value": group_value.value,
            "tip": f"{row}, {group_value.group}: {percent(group_value.value)} of the first K, "
            f"{count(group_value.n)} images in the pool",
        }
        for row, group_value in cells
        if has(group_value.value)
    ]  # fmt: skip
    axis = Axis("share of the first K", percent=True)
    label = f"Shares of the first K by {of.replace('subject', 'query')}: {name}"
    return heat_map(data, label, axis, columns=[*names.values()], title=name)


def _over_declared(declared_rows: Sequence[Row]) -> list[Chart]:
    numbered = panels(
        [row for row in declared_rows if has(row["declared"])], "groups", "hypothesis"
    )
    return [
        _preferences(panel, groups, name)
        for (groups, name), panel in numbered.items()
        if len(distinct(panel, "declared")) >= _MIN_POINTS
    ]


hypotheses = TableSection(
    name="hypotheses",
    heading="Preferences for declared groups",
    caption="Preferences for declared groups",
    source="hypotheses",
    columns=[
        Column("Concept", "concept"),
        Column("Declared group", "favourite"),
        Column("Declared", "declared", NUMBER),
        Column("Preference", "preference", NUMBER),
        Column("Unit", "unit"),
        Column("Model", "model"),
        Column("Attributes", "groups"),
    ],
    text=(
        "Preference: similarity to the declared group minus the mean of the other groups. Above "
        "0 the model prefers the declared group. If preferences have nothing to do with the "
        "declaration, about as many are above 0 as below."
    ),
    keeps=lambda row: has(row["preference"]),
    order=lambda row: -row["preference"],
    charts=_over_declared,
)


def unit_of(panel: Sequence[Row]) -> str:
    """Return the unit of a panel's numbers, in words."""
    return _UNITS[panel[0]["unit"]] if panel else ""


def _preferences(panel: Sequence[Row], groups: str, name: str) -> Chart:
    """Draw preferences over the declared numbers."""
    marks = points(
        panel,
        lambda row: f"{row['model']}, {row['concept']}: {row['favourite']} preferred by "
        f"{number(row['preference'])}, declared {number(row['declared'])}",
        x="declared", y="preference", series="model",
    )  # fmt: skip
    label = f"Preference for declared groups of {groups}, by concept: {name}"
    title = f"{groups}, as declared in “{name}”"
    axis = Axis(f"preference ({unit_of(panel)})", zero=True)
    return scatter(marks, label, Axis(name), axis, title=title, series=distinct(panel, "model"))
