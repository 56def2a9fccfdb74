"""The page of an audit of retrieval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from equipoise.audits.engines.rankings.page import (
    CAVEAT,
    MOST_GROUPS,
    MOST_ROWS,
    curves,
    distributions,
    share_map,
)
from equipoise.core import AuditResult, Finding
from equipoise.report.blocks import Block, Chart, Grid, Section, Words
from equipoise.report.page import Page
from equipoise.report.tables import scope
from equipoise.report.text import count, source


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return which images are ranked, and the null hypothesis."""
    data = result.manifest.resolved.get("data", {})
    n = max((finding.n for finding in result.findings), default=0)
    subject, sets = data.get("subject"), data.get("sets")
    ranked = f"the images of its own {subject}" if subject else "all images"
    chance = f"random order within each {sets}" if sets else "random order of all images"
    return (
        ("Images", f"{count(n)}, from {source(data)}"),
        ("Each query ranks", ranked),
        ("Null hypothesis", chance),
    )


def queries(result: AuditResult) -> Section | None:
    """Return shares of the first K by query, and the spread over queries."""
    charts = [*_share_maps(result.findings)]
    text = (
        f"Share of each group in the first K: up to {MOST_ROWS} queries, largest excess over "
        "chance first. In brackets: the group's share of all images that are ranked."
    )
    blocks: list[Block] = [Words((text,), "note"), Grid(tuple(charts))] if charts else []
    table = distributions(result, "Spread over queries")
    blocks += [] if table is None else [table]
    return Section("queries", "Results by query", tuple(blocks)) if blocks else None


def _share_maps(findings: Sequence[Finding]) -> Iterator[Chart]:
    by_panel: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        if one.metric == "max_skew" and one.by_group and not math.isnan(one.value):
            by_panel.setdefault((one.model, one.groups, one.version), []).append(one)
    for (model, groups, version), panel in by_panel.items():
        if len(panel[0].by_group) > MOST_GROUPS:
            continue
        ordered = sorted(panel, key=lambda one: -one.excess if math.isfinite(one.excess) else 0.0)
        pool: dict[str, int] = {}
        cells = []
        for one in ordered[:MOST_ROWS]:
            for part in one.by_group:
                pool[part.group] = pool.get(part.group, 0) + part.n
                if not math.isnan(part.value):
                    query = one.subject or "the query"
                    tip = f"{count(part.n)} images in the pool"
                    cells.append(
                        {"query": query, "group": part.group, "share": part.value, "tip": tip}
                    )
        yield share_map(cells, pool, f"{model}, {scope(groups, version)}")


PAGE = Page(
    leads=("max_skew", "ndkl", "retrieval_mad"),
    by_group=("max_skew", "normalized_similarity_mad"),
    subjects="queries",
    sections=(curves, queries),
    facts=facts,
    caveat=CAVEAT,
)
