"""The page of an audit of generation."""

from collections.abc import Sequence

from equipoise.audits.generation.config import FILTERS
from equipoise.audits.quality_page import quality
from equipoise.core import Aggregate, AuditResult
from equipoise.report.blocks import (
    NUMBER,
    SHARE,
    Column,
    Page,
    Section,
    Table,
    TableSection,
    distinct,
    rows,
)
from equipoise.report.text import count, listed

MOST_SUBJECTS = 30
_STAGES = {"complete": "every image exists", "attributes": "attributes shown"}


def facts(result: AuditResult) -> Sequence[tuple[str, str]]:
    """Return how many sets there are, the generator and the filters."""
    resolved = result.manifest.resolved
    filters, generator = resolved.get("filters") or {}, resolved.get("generator") or {}
    on = [name for name in FILTERS if filters.get(name)]
    stages = rows(result, "stages")
    last_rows = [row for row in stages if row["attributes"] == stages[-1]["attributes"]]
    images = ""
    if last_rows:
        first, last = last_rows[0], last_rows[-1]
        images = (
            f"{count(first['images_before'])} in {count(first['sets_before'])} sets; kept: "
            f"{count(last['images_after'])} in {count(last['sets_after'])} sets"
        )
    return (
        ("Images", images),
        ("Generator", str(generator.get("model", ""))),
        ("Filters", listed(on) if on else "none"),
    )


stages = TableSection(
    name="stages",
    heading="Sets left after each filter",
    caption="Sets and images by stage",
    source="stages",
    columns=[
        Column("Attributes", "attributes"),
        Column("Stage", lambda row: _STAGES.get(row["stage"], row["stage"])),
        Column("Sets before", "sets_before", NUMBER),
        Column("Rejected", "sets_rejected", NUMBER),
        Column("Sets after", "sets_after", NUMBER),
        Column("Images before", "images_before", NUMBER),
        Column("Images after", "images_after", NUMBER),
    ],
    text="A set is rejected as a whole, with its images of every group.",
)


rejections = TableSection(
    name="rejections",
    heading="Rejected images by group",
    caption="Share of images that fail each check",
    source="rejections",
    columns=[
        Column("Check", "check"),
        Column("Group", "group"),
        Column("Rejected", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("By chance", ("chance_low", "chance_high"), SHARE),
        Column("Images", "images", NUMBER),
        Column("Groups", "groups"),
        Column("Sets of", lambda row: row["attributes"] or "all"),
    ],
    text=(
        "Images that fail a check themselves, of the sets that reached it. For pair similarity: "
        "the share of an image's pairs. By chance: the range of a group in 95 % of random "
        "exchanges of the images of a set. A filter can be wrong, and more often for one "
        "group: look at rejected images before you blame the generator."
    ),
)


thresholds = TableSection(
    name="thresholds",
    heading="Images that must show their attribute",
    caption="Thresholds of attributes",
    source="thresholds",
    columns=[
        Column("Attribute", "attribute"),
        Column("Sets of", "attributes"),
        Column("Images that must show it", lambda row: f"{row['threshold']} of {row['images']}"),
        Column("Threshold", lambda row: "learned" if row["learned"] else "config"),
        Column("Labels", "labels", NUMBER),
        Column("Accuracy", "accuracy", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("Always or never", "majority", SHARE),
    ],
    text=(
        "A set passes if enough of its images look most like their own value of an attribute. A "
        "learned threshold is the one that agrees with the labels of people most often. Its "
        "accuracy is on labels of other sets of captions; compare it with always or never."
    ),
)


def subjects(result: AuditResult) -> Section | None:
    """Return the kept sets of each subject, fewest first."""
    table = rows(result, "subjects")
    if len(distinct(table, "subject")) < 2:
        return None
    text = "A subject with few kept sets has little data in later audits; with none it is missing."
    table.sort(key=lambda row: (row["share"], row["subject"]))
    columns = [
        Column("Subject", "subject"),
        Column("Sets of", "attributes"),
        Column("Sets", "sets", NUMBER),
        Column("Kept", "kept", NUMBER),
        Column("Share", "share", SHARE),
    ]
    subject_table = Table.of(
        "Sets by subject", columns, table, source="subjects", limit=MOST_SUBJECTS
    )
    return Section.of("subjects", "Kept sets by subject", text, subject_table)


LEADS = (("rejected_share", Aggregate.DIFFERENCE),)
PAGE = Page(
    leads=LEADS,
    by_group=LEADS,
    subjects="checks",
    sections=(stages, rejections, thresholds, subjects, quality),
    facts=facts,
    look="Look at rejected images of {group}.",
    steps=("Change the threshold of the check, or the generator, and run the audit again.",),
    caveat="A filter's own errors can differ by group: look at rejected images of each group.",
)
