"""The page of an audit of counterfactual sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.audits.counterfactuals.audit import MEASURES, POOL, SETS
from equipoise.audits.engines.rankings.page import (
    CAVEAT,
    MOST_GROUPS,
    MOST_ROWS,
    curves,
    distributions,
    is_within,
    share_map,
)
from equipoise.core import AuditResult, Finding
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import Axis, intervals, strip
from equipoise.report.tables import Row, distinct, panels, rows, scope
from equipoise.report.text import count, interval, listed, number, p_value, percent, source

_ENDS = ("low", "high", "chance_low", "chance_high")
_QUALITY = (
    "frechet_distance", "frechet_distance_extrapolated", "image_similarity", "pose_similarity",
    "background_similarity", "inception_score", "confusable_subjects", "subject_accuracy",
)  # fmt: skip


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return which images are ranked for which prompts, and the null hypotheses."""
    data = result.manifest.resolved.get("data", {})
    n = max((one.n for one in result.findings if one.model and one.groups), default=0)
    sets, subject = data.get("sets", "set"), data.get("subject", "subject")
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each prompt ranks", f"the images of its own {subject}"),
        ("Null hypotheses", f"random order within each {sets}; random order of the pool"),
        ("Prompts", _prompts(result.manifest.resolved)),
    )


def _prompts(config: Mapping[str, Any]) -> str:
    """Return where the prompts are from: a table, or prefixes before each subject."""
    queries, prefixes = config.get("queries"), config.get("prefixes")
    if isinstance(queries, dict):
        return f"from {queries.get('table')}; those of one subject are averaged"
    if isinstance(prefixes, list):
        return f"each subject after {listed([f'“{one}”' for one in prefixes])}, averaged"
    return f"each subject after the prefixes of {prefixes}, averaged"


def subjects(result: AuditResult) -> Section | None:
    """Return every subject of every model and the mean over them, beside both chance levels."""
    text = (
        "A line is a subject, the large mark the mean over subjects with its interval. Grey: where "
        "the mean lies in 95 of 100 cases if the images of each set change places at random. "
        "Dashed: the same if all images of a subject do. Compare with the grey band. Neither is "
        "near 0, because among few images shares are uneven by chance."
    )
    return _means(result, "subjects", "Results by subject", text, within=False)


def marginals(result: AuditResult) -> Section | None:
    """Return each attribute with the others held fixed."""
    text = (
        "One attribute is compared among images with one value of the others: a subject's pool is "
        "split, and each part ranked by itself, such as “doctor | old”. K is the number of values "
        "compared unless you set it, so the numbers don't compare with those of combinations."
    )
    return _means(result, "marginals", "Results within the other attribute", text, within=True)


def _means(
    result: AuditResult, name: str, heading: str, text: str, *, within: bool
) -> Section | None:
    chances = [row for row in rows(result, "chance") if is_within(row) == within]
    if not chances:
        return None
    blocks: list[Block] = [
        Words((text,), "note"),
        Grid(tuple(_strips(result.findings, chances))),
        _chance_table(chances),
    ]
    table = distributions(result, "Spread over subjects", within=within)
    return Section(name, heading, (*blocks, *([table] if table else ())))


def _strips(findings: Sequence[Finding], chances: Sequence[Row]) -> Iterator[Chart]:
    for (groups, version, metric), panel in panels(chances, "groups", "version", "metric").items():
        models = distinct(panel, "model")
        points = [
            {
                "label": one.model, "kind": "part", "value": one.value,
                "tip": f"{one.subject}, {one.model}: {number(one.value)}, by chance "
                f"{number(one.chance)}",
                **dict.fromkeys((*_ENDS, "pool_low", "pool_high"), math.nan),
            }
            for one in findings
            if (one.groups, one.version, one.metric) == (groups, version, metric)
            and one.subject and one.model in models and math.isfinite(one.value)
        ]  # fmt: skip
        points += [
            point
            for (model,), own in panels(panel, "model").items()
            for point in _mean(model, {row["null"]: row for row in own})
        ]
        if points:
            name = f"{title(metric)}, {scope(groups, version)}"
            label = f"{name}, by subject; grey: chance within sets; dashed: chance in the pool"
            yield strip(points, label, Axis(title(metric)), labels=models, title=name)


def _mean(model: str, by_null: dict[str, Row]) -> Iterator[dict[str, Any]]:
    row, pool = by_null.get(SETS), by_null.get(POOL, {})
    if row is None or not math.isfinite(row["value"]):
        return
    yield {
        "label": model,
        "kind": "mean",
        "value": row["value"],
        **{end: row[end] for end in _ENDS},
        "pool_low": pool.get("chance_low", math.nan),
        "pool_high": pool.get("chance_high", math.nan),
        "tip": f"{model}, mean over subjects: {number(row['value'])} "
        f"{interval(row['low'], row['high'])}; by chance {number(row['chance'])} within sets, "
        f"{number(pool.get('chance', math.nan))} in the pool",
    }


def _chance_table(chances: Sequence[Row]) -> Table:
    cells = [
        (
            title(row["metric"]), row["model"], scope(row["groups"], row["version"]), row["null"],
            number(row["value"]), interval(row["low"], row["high"]), number(row["chance"]),
            interval(row["chance_low"], row["chance_high"]), number(row["excess"]),
            p_value(row["p_value"]),
        )
        for row in chances
    ]  # fmt: skip
    columns = [
        "Metric", "Model", "Attributes", "Random", "#Mean", "#Interval", "#By chance", "#Band",
        "#Excess", "#p",
    ]  # fmt: skip
    return Table.of("Means over subjects and both chance levels", columns, cells, source="chance")


def proportions(result: AuditResult) -> Section | None:
    """Return shares of the first K by subject, of every attribute and of combinations."""
    shares = [row for row in rows(result, "proportions") if not is_within(row)]
    if not shares:
        return None
    keys = ("model", "groups", "version", "attribute")
    charts = [
        _share_map(panel, model, attribute, scope(groups, version))
        for (model, groups, version, attribute), panel in panels(shares, *keys).items()
        if len(distinct(panel, "group")) <= MOST_GROUPS
    ]
    text = (
        f"Share of each group in the first K: up to {MOST_ROWS} subjects, largest difference from "
        "their pool first. In brackets: the group's share of all images."
    )
    cells = [
        (
            row["subject"], row["attribute"], row["group"], percent(row["share"]),
            percent(row["pool_share"]), row["model"], scope(row["groups"], row["version"]),
        )
        for row in sorted(shares, key=lambda row: -abs(row["share"] - row["pool_share"]))
    ]  # fmt: skip
    columns = ["Subject", "Attribute", "Group", "#First K", "#Pool", "Model", "Attributes"]
    table = Table.of("Shares of the first K", columns, cells, source="proportions")
    blocks = (Words((text,), "note"), Grid(tuple(charts)), table)
    return Section("proportions", "Shares of the first K by subject", blocks)


def _share_map(panel: Sequence[Row], model: str, attribute: str, where: str) -> Chart:
    by_subject = panels(panel, "subject")
    apart = {
        subject: -sum(abs(row["share"] - row["pool_share"]) for row in own)
        for (subject,), own in by_subject.items()
    }
    pool: dict[str, int] = {}
    for row in panel:
        pool[row["group"]] = pool.get(row["group"], 0) + row["n"]
    cells = [
        {**row, "query": row["subject"], "tip": f"{percent(row['pool_share'])} of the pool"}
        for subject in sorted(apart, key=lambda name: apart[name])[:MOST_ROWS]
        for row in by_subject[subject,]
    ]
    name = f"{model}, {attribute}"
    return share_map(cells, pool, name if attribute in where else f"{name}, {where}")


def quality(result: AuditResult) -> Section | None:
    """Return how far images are from the reference, and which subjects are told apart."""
    cells = [
        (
            title(one.metric), one.model or "all", number(one.value),
            interval(one.ci_low, one.ci_high), number(one.chance),
            interval(one.chance_low, one.chance_high), count(one.n),
        )
        for one in result.findings
        if one.metric in _QUALITY
    ]  # fmt: skip
    if not cells:
        return None
    text = (
        "These numbers compare no groups, so they have no verdict. A Fréchet distance is too large "
        "with few images: use the extrapolated one. Similarity within sets is shown beside its "
        "value if images of one subject change places between sets."
    )
    columns = ["Metric", "Model", "#Value", "#Interval or spread", "#By chance", "#Band", "#n"]
    table = Table.of("Quality of the sets", columns, cells, source="findings")
    unclear = _unclear_subjects(result)
    blocks = (Words((text,), "note"), table, *([unclear] if unclear else ()))
    return Section("quality", "Quality of the sets", blocks)


def _unclear_subjects(result: AuditResult) -> Table | None:
    """Return the subjects that a model doesn't tell apart, lowest accuracy first."""
    unclear = [row for row in rows(result, "subjects_told_apart") if not row["told_apart"]]
    cells = [
        (
            row["subject"], row["model"], percent(row["accuracy"]),
            interval(row["low"], row["high"]), row["taken_for"] or "–", row["nearest"] or "–",
            number(row["cosine"]),
        )
        for row in sorted(unclear, key=lambda row: row["accuracy"])
    ]  # fmt: skip
    columns = [
        "Subject", "Model", "#Accuracy", "#Interval", "Confused with", "Nearest prompt", "#Cosine",
    ]  # fmt: skip
    caption = "Subjects that a model doesn't tell apart: their rankings are about others, too"
    return Table.of(caption, columns, cells, source="subjects_told_apart") if cells else None


def people(result: AuditResult) -> Section | None:
    """Return people's labels of the images by group, and the detector's agreement with them."""
    found = [row for row in rows(result, "people") if row["n"]]
    if not found:
        return None
    charts = []
    for (groups, metric, error), panel in panels(found, "groups", "metric", "error").items():
        own = [row for row in panel if row["group"]]
        if 1 < len(own) <= MOST_GROUPS and error in ("", "any error"):
            charts.append(_people_chart(own, f"{title(metric)} by {groups}"))
    text = (
        "Whether people find errors in images of one group more often is tested. Precision: of the "
        "images in which the attribute was detected, the share that show it. Recall: of the images "
        "that show it, the share in which it was detected."
    )
    cells = [
        (
            title(row["metric"]), row["error"] or "–", row["group"] or "all", percent(row["value"]),
            interval(row["low"], row["high"]), count(row["n"]), row["groups"],
        )
        for row in found
    ]  # fmt: skip
    columns = ["Metric", "Error", "Group", "#Value", "#Interval", "#n", "Attributes"]
    table = Table.of("People's labels of the images", columns, cells, source="people")
    blocks = (Words((text,), "note"), Grid(tuple(charts)), table)
    return Section("people", "People's labels", blocks)


def _people_chart(own: Sequence[Row], name: str) -> Chart:
    points = [
        {
            "label": f"{row['group']} (n = {count(row['n'])})", "value": row["value"],
            "low": row["low"], "high": row["high"],
            "tip": f"{row['group']}: {percent(row['value'])} {interval(row['low'], row['high'])}",
        }
        for row in own
    ]  # fmt: skip
    axis = Axis("share of the images", percent=True, domain=(0.0, 1.0))
    return intervals(points, f"{name}, with intervals", axis, title=name)


PAGE = Page(
    leads=(*MEASURES, "retrieval_mad"),
    by_group=("max_skew", "label_error_gap"),
    subjects="subjects",
    sections=(subjects, marginals, proportions, curves, quality, people),
    facts=facts,
    caveat=CAVEAT,
)
