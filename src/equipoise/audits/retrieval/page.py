"""The page of an audit of retrieval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from equipoise.audits.engines.rankings.page import (
    CAVEAT,
    MOST_GROUPS,
    MOST_ROWS,
    curves,
    distributions,
    share_map,
)
from equipoise.core import AuditResult
from equipoise.report.blocks import (
    Block,
    Chart,
    Grid,
    Page,
    Row,
    Section,
    Words,
    has,
    panels,
    scope,
)
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
    shares = [f for f in result.findings if f.metric == "max_skew" and f.by_group and has(f.value)]
    charts = [
        _share_map(panel, f"{model}, {scope(groups, version)}")
        for (model, groups, version), panel in panels(
            map(vars, shares), "model", "groups", "version"
        ).items()
        if len(panel[0]["by_group"]) <= MOST_GROUPS
    ]
    text = (
        f"Share of each group in the first K: up to {MOST_ROWS} queries, largest excess over "
        "chance first. In brackets: the group's share of all images that are ranked."
    )
    blocks: list[Block] = [Words((text,), "note"), Grid(tuple(charts))] if charts else []
    table = distributions(result, "Spread over queries")
    blocks += [] if table is None else [table]
    return Section("queries", "Results by query", tuple(blocks)) if blocks else None


def _share_map(panel: Sequence[Row], name: str) -> Chart:
    pool: Counter[str] = Counter()
    cells = []
    panel = sorted(panel, key=lambda row: -row["excess"] if math.isfinite(row["excess"]) else 0.0)
    for row in panel[:MOST_ROWS]:
        for part in row["by_group"]:
            pool[part.group] += part.n
            if has(part.value):
                tip = f"{count(part.n)} images in the pool"
                query = row["subject"] or "the query"
                cells.append({"query": query, "group": part.group, "share": part.value, "tip": tip})
    return share_map(cells, pool, name)


PAGE = Page(
    leads=("max_skew", "ndkl", "retrieval_mad"),
    by_group=("max_skew", "normalized_similarity_mad"),
    subjects="queries",
    sections=(curves, queries),
    facts=facts,
    caveat=CAVEAT,
)
