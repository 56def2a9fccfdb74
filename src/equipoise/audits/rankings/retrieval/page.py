"""The page of an audit of retrieval."""

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
from equipoise.core import AuditResult
from equipoise.report.blocks import Page, Pairs, image_count


def facts(result: AuditResult) -> Pairs:
    """Return which images are ranked, and the null hypothesis."""
    data = result.manifest.resolved.get("data", {})
    subject, sets = data.get("subject"), data.get("sets")
    ranked = f"the images of its own {subject}" if subject else "all images"
    chance = f"random order within each {sets}" if sets else "random order of all images"
    return (
        image_count(result),
        ("Each query ranks", ranked),
        ("Null hypothesis", chance),
    )


PAGE = Page(
    leads=(*PREFERENCES, *SHARES),
    by_group=(*BY_GROUP, "normalized_similarity_mad"),
    subjects="queries",
    sections=(hypotheses, curves, queries, fixed),
    facts=facts,
    caveat=CAVEAT,
    look=LOOK,
    steps=STEPS,
    mitigable=TRAINABLE,
)
