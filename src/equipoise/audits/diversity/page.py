"""The page of an audit of diversity."""

from collections.abc import Sequence

from equipoise.audits.diversity.config import reference_name
from equipoise.audits.quality_page import quality
from equipoise.core import AuditResult
from equipoise.report import plots
from equipoise.report.blocks import (
    NUMBER,
    Chart,
    Column,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    panels,
    rows,
)
from equipoise.report.plots import Axis, Palette, intervals
from equipoise.report.text import count, plural

_REFERENCE = reference_name("")
_KINDS: Palette = {"set": ("var(--m1)", "circle"), "reference": ("var(--m6)", "square")}


def facts(result: AuditResult) -> Pairs:
    """Return the counts of images and sets, and the kind of distance."""
    sizes = [row["n"] for row in rows(result, "group_sizes")]
    return (
        ("Images", f"{count(sum(sizes))} in {plural(len(sizes), 'set')}"),
        ("Distance", "1 − cosine of the embeddings"),
    )


def distances(result: AuditResult) -> Section | None:
    """Return the diversity of each set and the distances between sets."""
    table = rows(result, "distances")
    if not table:
        return None
    text = (
        "Diversity (ISS intra) is the mean distance of two images of a set, 1 − cosine of their "
        "embeddings. A larger distance means a more diverse set. Two sets differ if their mean "
        "distance is above the diversity of both. Which distance is large depends on the embedding."
    )
    charts = [
        [_diversity_chart(panel, ", ".join(filter(None, key)))]
        for key, panel in panels(table, "model", "groups", "within").items()
    ]
    columns = [
        Column("Set", "set_a"),
        Column("Other set", "set_b"),
        Column("Mean distance", "distance", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("n", "n_a", NUMBER),
        Column("Other n", "n_b", NUMBER),
        Column("Within", "within"),
        Column("Attributes", "groups"),
        Column("Model", "model"),
    ]
    pairs = [row for row in table if row["set_a"] <= row["set_b"]]
    heading = "Distances within and between sets"
    pairs_table = Table.of(heading, columns, pairs, source="distances")
    return Section.of("diversity", heading, text, *charts, pairs_table)


def _diversity_chart(panel: Sequence[Row], name: str) -> Chart:
    within_sets = [{**row, "n": row["n_a"]} for row in panel if row["set_a"] == row["set_b"]]
    marks = plots.labelled_points(
        sorted(within_sets, key=lambda row: row["distance"]), "set_a", value="distance",
        series=lambda row: "reference" if row["set_a"].endswith(_REFERENCE) else "set",
    )  # fmt: skip
    kinds = [kind for kind in _KINDS if any(mark["series"] == kind for mark in marks)]
    return intervals(
        marks, f"Diversity of each set with its interval, lowest first: {name}",
        Axis("diversity (ISS intra)"), title=f"Diversity within sets: {name}", series=kinds,
        palette={kind: _KINDS[kind] for kind in kinds},
    )  # fmt: skip


LEADS = ("iss_difference", "iss_cross")
PAGE = Page(
    leads=LEADS,
    by_group=LEADS[1:],
    subjects="pairs of sets",
    sections=(distances, quality),
    facts=facts,
    look="Look at images of {group}, the least diverse set.",
    steps=("Add different images to it, or weight the sets in training.",),
)
