"""The page of an audit of a data set."""

from equipoise.audits.labels.dataset.files import COPY, FILES, UNREADABLE
from equipoise.audits.represented import ADDITIONS, SHARES
from equipoise.core import AuditResult
from equipoise.core.sentences import named
from equipoise.metrics.spec import SPECS
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    SHARE,
    Chart,
    Column,
    Page,
    Pairs,
    Row,
    Rows,
    Section,
    Table,
    TableSection,
    has,
    panels,
    rows,
)
from equipoise.report.plots import Axis, intervals, labelled_points
from equipoise.report.text import count, enclose, listed, plural

MOST_GROUPS = 30
_MOST_FILES, _MOST_NAMED = 20, 12
# Letters of a line on a terminal.
_LETTERS = 76


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


def additions(result: AuditResult) -> Section | None:
    """Return the section on images to add, so that each group has its share of the reference."""
    by_groups = panels(rows(result, ADDITIONS), "groups")
    sentences = [_sentence_on_additions(panel) for panel in by_groups.values()]
    columns = [
        Column("Group", "group"),
        Column("n", "n", NUMBER),
        Column("Reference", "reference", SHARE),
        Column("Images to add", "add", NUMBER),
        Column("Attributes", "groups"),
    ]
    to_show = [row for panel in by_groups.values() for row in panel if row["add"]]
    if not to_show:
        return None
    text = (
        "With these images, each group has its share of the reference, and no image is removed. "
        "The most over-represented group sets the total."
    )
    table = Table.of("Images to add to each group", columns, to_show, source=ADDITIONS)
    return Section.of(ADDITIONS, "Images to add", *filter(None, sentences), text, table)


def _sentence_on_additions(panel: Rows) -> str:
    """Say how many images to add to the groups of a set; "" where no group lacks any."""
    lacking = [row for row in panel if row["add"]]
    if not lacking:
        return ""
    total, kept = (sum(row[name] for row in panel) for name in ("add", "n"))
    return (
        f"To have the shares of the reference by {panel[0]['groups']} with all "
        f"{count(kept)} images kept, add {plural(total, 'image')}: "
        f"{listed([_sized(row) for row in lacking], _MOST_NAMED)}."
    )


def _sized(row: Row) -> str:
    return f"{count(row['add'])} of {named(row['group'])}"


def advice(result: AuditResult) -> tuple[str, ...]:
    """Return how many images to add for the reference shares of the finest groups."""
    by_groups = panels(rows(result, ADDITIONS), "groups")
    lacking = [[row for row in panel if row["add"]] for panel in by_groups.values()]
    finest = max(lacking, key=len, default=[])
    if not finest:
        return ()
    sizes = [_sized(row) for row in sorted(finest, key=lambda row: -row["add"])]
    start = f"To match the reference, add {plural(sum(row['add'] for row in finest), 'image')}: "
    sentences = [f"{start}{listed(sizes, limit)}." for limit in range(len(sizes), 0, -1)]
    return (next((text for text in sentences if len(text) <= _LETTERS), sentences[-1]),)


def files(result: AuditResult) -> Section | None:
    """Return the section on unreadable files and on copies."""
    problems = rows(result, FILES)
    if not problems:
        return None
    unreadable, copies = (
        [row for row in problems if row["problem"] == problem] for problem in (UNREADABLE, COPY)
    )
    contradicting = [row for row in copies if row["contradicts"]]
    columns = [
        Column("Image", "image"),
        Column("Problem", "problem"),
        Column("Set of copies", "set", NUMBER),
        Column("Groups and labels", "labels"),
        Column("Contradictory", "contradicts"),
    ]
    ordered = [*contradicting, *unreadable, *(row for row in copies if not row["contradicts"])]
    table = Table.of(
        "Unreadable files and copies", columns, ordered, source=FILES, limit=_MOST_FILES
    )
    n_sets, n_contradicting = (
        len({row["set"] for row in chosen}) for chosen in (copies, contradicting)
    )
    texts = (
        enclose(
            f"{plural(len(unreadable), 'file')} can't be read: ", _names(unreadable), "."
        ),
        enclose(
            f"{plural(len(copies), 'image')} of {plural(n_sets, 'picture')} have the same bytes "
            "as another, the originals included: ", _names(copies), ".",
        ),
        enclose(
            f"Copies of {plural(n_contradicting, 'picture')} contradict each other in groups or "
            "labels: ", _names(contradicting), ".",
        ),
    )  # fmt: skip
    return Section.of("files", "Unreadable files and copies", *texts, table)


def _names(of_files: Rows) -> str:
    return listed([str(row["image"]) for row in of_files], _MOST_FILES)


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
    sections=(representation, additions, labels, pictures, files),
    look="Look at images of the groups that are named first, and check their labels.",
    commands=(),
    steps=("Collect images of groups that are rare or lack a label, or weight them in training.",),
    advice=advice,
    facts=facts,
)
