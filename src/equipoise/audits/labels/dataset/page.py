"""The page of an audit of a data set."""

from equipoise.audits.represented import SHARES
from equipoise.core import AuditResult
from equipoise.metrics.spec import SPECS
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    SHARE,
    Chart,
    Column,
    Page,
    Pairs,
    Rows,
    TableSection,
    has,
    panels,
)
from equipoise.report.plots import Axis, intervals, labelled_points
from equipoise.report.text import count

MOST_GROUPS = 30


def facts(result: AuditResult) -> Pairs:
    """Return how many images there are."""
    images = result.manifest.counts.get("images", {}).get("rows", 0)
    return (("Images", count(int(images))),)


def _reference_chart(panel: Rows, max_groups: int) -> Chart:
    """Draw each group's share and its reference share, lowest ratio first."""
    estimated = sorted((row for row in panel if has(row["ratio"])), key=lambda row: row["ratio"])
    shown_rows = [
        {**row, "label": f"{row['group']} (n = {count(row['n'])})"}
        for row in estimated[:max_groups]
    ]
    marks = labelled_points(shown_rows, "label", series="groups", value="share", percent=True)
    with_reference = [
        mark | {"line": row["reference"]} for mark, row in zip(marks, shown_rows, strict=True)
    ]
    extent = ""
    if len(estimated) > max_groups:
        extent = f", {max_groups} of {len(estimated)} groups"
    title = f"Share of images by {estimated[0]['groups']}, ticks: reference{extent}"
    label = f"{title}, with intervals; the most under-represented group first."
    return intervals(with_reference, label, Axis(percent=True), title=title)


representation = TableSection(
    name=SHARES,
    heading="Representation",
    caption="Groups and the reference",
    source=SHARES,
    columns=[
        Column("Group", "group"),
        Column("n", "n", NUMBER),
        Column("Share", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("Reference", "reference", SHARE),
        Column("Ratio", "ratio", NUMBER),
        Column("Ratio interval", ("ratio_low", "ratio_high"), NUMBER),
        Column("Attributes", "groups"),
        Column("Note", "reason", CLIPPED),
    ],
    text=(
        "Share of images in each group, its share in the reference population, and their ratio. "
        "A ratio of 0.5 means half as many images as in the reference."
    ),
    charts=lambda table: [
        _reference_chart(panel, MOST_GROUPS) for panel in panels(table, "groups").values()
    ],
)


labels = TableSection(
    name="labels",
    heading="Labels by group",
    caption="Share of each label in each group, against all other groups",
    source="label_shares",
    columns=[
        Column("Label", "label"),
        Column("Group", "group"),
        Column("Images", "count", NUMBER),
        Column("n", "n", NUMBER),
        Column("Share", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("All others", "rest", SHARE),
        Column("Difference", "difference", SHARE),
        Column("Its interval", ("difference_low", "difference_high"), SHARE),
        Column("Ratio", "ratio", NUMBER),
        Column("Ratio interval", ("ratio_low", "ratio_high"), NUMBER),
        Column("Attributes", "groups"),
        Column("Column", "version"),
    ],
    text="A model that learns from these images learns which labels go with which group.",
)

pictures = TableSection(
    name="pictures",
    heading="Size of images by group",
    caption="Medians of each group",
    source="image_facts",
    columns=[
        Column("Group", "group"),
        Column("n", "n", NUMBER),
        Column("Width", "width", NUMBER),
        Column("Height", "height", NUMBER),
        Column("Pixels", "pixels", NUMBER),
        Column("Longer side over shorter", "ratio", NUMBER),
        Column("Attributes", "groups"),
    ],
)


LEADS = ("representation", "representation_gap", "label_gap", "cramers_v")
SHARES_OF_GROUPS = tuple(
    name for name, spec in SPECS.items() if "dataset" in spec.kinds and spec.rest_metric
)
"""Gaps and rates in which each group is held against all others."""

PAGE = Page(
    leads=LEADS,
    by_group=(LEADS[1], *SHARES_OF_GROUPS),
    subjects="labels",
    sections=(representation, labels, pictures),
    look="Look at images of the groups that are named first, and check their labels.",
    commands=(),
    steps=("Collect images of groups that are rare or lack a label, or weight them in training.",),
    facts=facts,
)
