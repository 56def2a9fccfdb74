"""The page of an audit of counterfactual sets."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.audits.pages import TRAINABLE
from equipoise.audits.rankings.page import (
    BY_GROUP,
    CAVEAT,
    LOOK,
    PREFERENCES,
    SHARES,
    STEPS,
    curves,
    fixed,
    hypotheses,
    queries,
)
from equipoise.core import AuditResult, Finding, Variant
from equipoise.report.blocks import Page, Pairs, Row, Section, image_count, panels, scope
from equipoise.report.plots import Axis, intervals
from equipoise.report.text import interval, listed, number, title


def facts(result: AuditResult) -> Pairs:
    """Return which images are ranked for which prompts, and the null hypotheses."""
    data = result.manifest.resolved.get("data", {})
    sets, subject = data.get("sets", "set"), data.get("subject", "subject")
    return (
        image_count(result),
        ("Each prompt ranks", f"the images of its own {subject}"),
        ("Null hypotheses", f"random order within each {sets}; random order of the pool"),
        ("Prompts", _prompts(result.manifest.resolved)),
    )


def _prompts(config: Mapping[str, Any]) -> str:
    """Return where the prompts are from: a table, or prefixes before each subject."""
    queries, prefixes = config.get("queries"), config.get("prefixes")
    if isinstance(queries, dict):
        return f"from {queries.get('table')}; queries of one subject are averaged"
    if isinstance(prefixes, list):
        return f"each subject after {listed([f'“{prefix}”' for prefix in prefixes])}, averaged"
    return f"each subject after the prefixes of {prefixes}, averaged"


def subjects(result: AuditResult) -> Section | None:
    """Return the mean over subjects of every model, over both chance levels."""
    text = (
        "Means over subjects with their intervals. Grey: range of the mean in 95 of 100 cases if "
        "the images of each set change places at random. "
        "Dashed: the same if all images of a subject do. Compare with the grey band. Neither is "
        "near 0, because among few images shares are uneven by chance. “Within” an attribute the "
        "others are compared among images with one of its values; K is then their number of values "
        "unless you set it, so don't compare these numbers with combinations."
    )
    means_over_subjects = [
        finding for finding in result.findings if finding.metric in SHARES and not finding.subject
    ]
    versions = {
        _design(finding): finding.version
        for finding in means_over_subjects
        if finding.variant is Variant.MAIN
    }
    means = [
        {
            **vars(finding),
            "pool": finding.variant is Variant.POOL_ORDER,
            "version": versions[_design(finding)],
        }
        for finding in means_over_subjects
        if finding.variant in (Variant.MAIN, Variant.POOL_ORDER)
    ]
    charts = []
    for (groups, version, metric), panel in panels(means, "groups", "version", "metric").items():
        if marks := [*_averages(panel)]:
            name = f"{title(metric)}, {scope(groups, version)}"
            label = f"{name}, means; grey: chance within sets; dashed: chance in the pool"
            charts.append(intervals(marks, label, Axis(title(metric)), title=name))
    return Section.of("subjects", "Results by subject", text, charts) if charts else None


def _design(finding: Finding) -> tuple[object, ...]:
    """Return the key that a number and its variants share."""
    place = finding.model, finding.groups, finding.within, finding.metric
    return *place, finding.top_k


def _averages(panel: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield the mark of each model's mean, with both chance levels."""
    pools = {row["model"]: row for row in panel if row["pool"]}
    for row in panel:
        if not row["pool"] and math.isfinite(row["value"]):
            model, pool = row["model"], pools.get(row["model"], {})
            yield {
                "label": model, "value": row["value"], "low": row["ci_low"], "high": row["ci_high"],
                "chance_low": row["chance_low"], "chance_high": row["chance_high"],
                "pool_low": pool.get("chance_low", math.nan),
                "pool_high": pool.get("chance_high", math.nan),
                "tip": f"{model}, mean over subjects: {number(row['value'])} "
                f"{interval(row['ci_low'], row['ci_high'])}; by chance {number(row['chance'])} "
                f"within sets, {number(pool.get('chance', math.nan))} in the pool",
            }  # fmt: skip


PAGE = Page(
    leads=(*PREFERENCES, *SHARES),
    by_group=BY_GROUP,
    subjects="subjects",
    sections=(hypotheses, subjects, queries, fixed, curves),
    facts=facts,
    caveat=CAVEAT,
    look=LOOK,
    steps=STEPS,
    mitigable=TRAINABLE,
)
