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
from equipoise.core import AuditResult
from equipoise.report.blocks import (
    Chart,
    Grid,
    Page,
    Row,
    Section,
    Table,
    Words,
    distinct,
    panels,
    rows,
    scope,
    scope_of,
    value_of,
)
from equipoise.report.plots import Axis, intervals, labelled_points
from equipoise.report.text import count, interval, listed, number, percent, source, title

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
    """Return the mean over subjects of every model, beside both chance levels."""
    text = (
        "Means over subjects with their intervals. Grey: where the mean lies in 95 of 100 cases if "
        "the images of each set change places at random. "
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
    charts = []
    for (groups, version, metric), panel in panels(chances, "groups", "version", "metric").items():
        if marks := [*_averages(panel)]:
            of_panel = f"{title(metric)}, {scope(groups, version)}"
            label = f"{of_panel}, means; grey: chance within sets; dashed: chance in the pool"
            charts.append(intervals(marks, label, Axis(title(metric)), title=of_panel))
    columns = {
        "Metric": _metric,
        "Model": "model",
        "Attributes": scope_of,
        "Random": "null",
        "#Mean": "value",
        "#Interval": "low high",
        "#By chance": "chance",
        "#Band": "chance_low chance_high",
        "#Excess": "excess",
        "#p": "p_value",
    }
    caption = "Means over subjects and both chance levels"
    table = Table.of(caption, columns, chances, source="chance")
    spread = distributions(result, "Spread over subjects", within=within)
    blocks = (Words((text,), "note"), Grid(tuple(charts)), table, *([spread] if spread else ()))
    return Section(name, heading, blocks)


def _metric(row: Any) -> str:
    return title(value_of(row, "metric"))


def _averages(panel: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the mark of each model's mean, with both chance levels."""
    pools = {row["model"]: row for row in panel if row["null"] == POOL}
    for row in panel:
        if row["null"] == SETS and math.isfinite(row["value"]):
            model, pool = row["model"], pools.get(row["model"], {})
            yield {
                "label": model,
                "value": row["value"],
                **{end: row[end] for end in ("low", "high", "chance_low", "chance_high")},
                "pool_low": pool.get("chance_low", math.nan),
                "pool_high": pool.get("chance_high", math.nan),
                "tip": f"{model}, mean over subjects: {number(row['value'])} "
                f"{interval(row['low'], row['high'])}; by chance {number(row['chance'])} within "
                f"sets, {number(pool.get('chance', math.nan))} in the pool",
            }


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
    columns = {
        "Subject": "subject",
        "Attribute": "attribute",
        "Group": "group",
        "%First K": "share",
        "%Pool": "pool_share",
        "Model": "model",
        "Attributes": scope_of,
    }
    shares.sort(key=lambda row: -abs(row["share"] - row["pool_share"]))
    table = Table.of("Shares of the first K", columns, shares, source="proportions")
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
    own = [one for one in result.findings if one.metric in _QUALITY]
    if not own:
        return None
    text = (
        "These numbers compare no groups, so they have no verdict. A Fréchet distance is too large "
        "with few images: use the extrapolated one. Similarity within sets is shown beside its "
        "value if images of one subject change places between sets."
    )
    columns = {
        "Metric": _metric,
        "Model": lambda one: one.model or "all",
        "#Value": "value",
        "#Interval or spread": "ci_low ci_high",
        "#By chance": "chance",
        "#Band": "chance_low chance_high",
        "#n": "n",
    }
    table = Table.of("Quality of the sets", columns, own, source="findings")
    unclear = [row for row in rows(result, "subjects_told_apart") if not row["told_apart"]]
    titles = {
        "Subject": "subject",
        "Model": "model",
        "%Accuracy": "accuracy",
        "%Interval": "low high",
        "Confused with": lambda row: row["taken_for"] or "–",
        "Nearest prompt": lambda row: row["nearest"] or "–",
        "#Cosine": "cosine",
    }
    caption = "Subjects that a model doesn't tell apart: their rankings are about others, too"
    unclear.sort(key=lambda row: row["accuracy"])
    subjects = [Table.of(caption, titles, unclear, source="subjects_told_apart")] if unclear else []
    return Section("quality", "Quality of the sets", (Words((text,), "note"), table, *subjects))


def people(result: AuditResult) -> Section | None:
    """Return people's labels of the images by group, and the detector's agreement with them."""
    labels = [row for row in rows(result, "people") if row["n"]]
    if not labels:
        return None
    charts = []
    for (groups, metric, error), panel in panels(labels, "groups", "metric", "error").items():
        own = [row for row in panel if row["group"]]
        if 1 < len(own) <= MOST_GROUPS and error in ("", "any error"):
            name = f"{title(metric)} by {groups}"
            axis = Axis("share of the images", percent=True, domain=(0.0, 1.0))
            marks = labelled_points(own, "group", percent=True)
            charts.append(intervals(marks, f"{name}, with intervals", axis, title=name))
    text = (
        "Whether people find errors in images of one group more often is tested. Precision: of the "
        "images in which the attribute was detected, the share that show it. Recall: of the images "
        "that show it, the share in which it was detected."
    )
    columns = {
        "Metric": _metric,
        "Error": lambda row: row["error"] or "–",
        "Group": lambda row: row["group"] or "all",
        "%Value": "value",
        "%Interval": "low high",
        "#n": "n",
        "Attributes": "groups",
    }
    table = Table.of("People's labels of the images", columns, labels, source="people")
    blocks = (Words((text,), "note"), Grid(tuple(charts)), table)
    return Section("people", "People's labels", blocks)


PAGE = Page(
    leads=(*MEASURES, "retrieval_mad"),
    by_group=("max_skew", "label_error_gap"),
    subjects="subjects",
    sections=(subjects, marginals, proportions, curves, quality, people),
    facts=facts,
    caveat=CAVEAT,
)
