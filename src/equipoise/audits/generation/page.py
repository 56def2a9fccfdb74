"""The page of an audit of generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.audits.generation.config import FILTERS
from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Cell, Chart, Grid, Section, Table, Words
from equipoise.report.page import Page
from equipoise.report.plots import COLORS, Axis, bars, curves, intervals
from equipoise.report.tables import Row, distinct, has, panels, rows
from equipoise.report.text import count, interval, listed, percent

MOST_SUBJECTS, MOST_PANELS, MOST_GROUPS = 30, 12, len(COLORS)
_STAGES = {"complete": "every image exists", "attributes": "attributes shown",
           "best": "the best of each set"}  # fmt: skip


def facts(result: AuditResult) -> Sequence[tuple[str, str]]:
    """Return how many sets there are, the generator and the filters."""
    resolved = result.manifest.resolved
    filters, generator = resolved.get("filters"), resolved.get("generator")
    sections = filters if isinstance(filters, Mapping) else {}
    on = [name for name in FILTERS if sections.get(name)]
    off = [name for name in FILTERS if not sections.get(name)]
    stages = rows(result, "stages")
    own = [row for row in stages if row["attributes"] == stages[-1]["attributes"]]
    images = ""
    if own:
        first, last = own[0], own[-1]
        images = (
            f"{count(first['images_before'])} in {count(first['sets_before'])} sets; kept: "
            f"{count(last['images_after'])} in {count(last['sets_after'])} sets"
        )
    return (
        ("Images", images),
        ("Generator", str(generator.get("model", "")) if isinstance(generator, Mapping) else ""),
        ("Filters", listed(on) if on else "none"),
        ("Filters that are off", listed(off)),
        ("Comparison", "images of a set, which share everything but their attributes"),
        ("Chance", "the images of a set exchange their groups"),
    )


def stages(result: AuditResult) -> Section | None:
    """Return the sets that are left after each stage, by the attributes that vary together."""
    table = rows(result, "stages")
    if not table:
        return None
    text = (
        "Bars are shares of all sets; grey is what the stage rejects. A set is rejected as a "
        "whole, with its images of every group."
    )
    charts = tuple(_funnel(panel, name) for (name,), panel in panels(table, "attributes").items())
    cells = [
        (
            row["attributes"], _stage(row), count(row["sets_before"]), count(row["sets_rejected"]),
            count(row["sets_after"]), count(row["images_before"]), count(row["images_after"]),
        )
        for row in table
    ]  # fmt: skip
    columns = ["Attributes", "Stage", "#Sets before", "#Rejected", "#Sets after", "#Images before",
               "#Images after"]  # fmt: skip
    counts = Table.of("Sets and images by stage", columns, cells, source="stages")
    return Section(
        "stages", "Sets left after each filter", (Words((text,), "note"), Grid(charts), counts)
    )


def _stage(row: Row) -> str:
    return _STAGES.get(str(row["stage"]), str(row["stage"]))


def _funnel(panel: Sequence[Row], name: str) -> Chart:
    every = panel[0]["sets_before"] or 1
    points = [
        {
            "label": _stage(row),
            "value": row["sets_after"] / every,
            "before": row["sets_before"] / every,
            "tip": f"{count(row['sets_after'])} of {count(row['sets_before'])} sets are left, "
            f"{count(row['images_after'])} images",
        }
        for row in panel
    ]
    title = "all sets" if name == "all" else f"sets of {name}"
    axis = Axis("share of all sets", percent=True, domain=(0.0, 1.0))
    return bars(points, f"Sets left after each stage: {title}", axis, title=title)


def rejections(result: AuditResult) -> Section | None:
    """Return the share of each group's images that fail each check."""
    table = rows(result, "rejections")
    if not table:
        return None
    text = (
        "Images that fail a check themselves, of the sets that reached it. For pair similarity: "
        "the share of an image's pairs. Lines are intervals; grey is where a group lies in 95 % of "
        "random exchanges of the images of a set. A filter can be wrong, and more often for one "
        "group: look at rejected images before you blame the generator."
    )
    panelled = panels(table, "groups", "attributes")
    charts = tuple(
        _rejected(panel, f"{groups}, sets of {attributes}" if attributes else groups)
        for (groups, attributes), panel in panelled.items()
        if len(distinct(panel, "group")) <= MOST_GROUPS
        and (not attributes or len(panelled) <= MOST_PANELS)
    )
    cells = [
        (
            row["check"], row["group"], percent(row["share"]),
            interval(100 * row["low"], 100 * row["high"], 1),
            interval(100 * row["chance_low"], 100 * row["chance_high"], 1), count(row["images"]),
            row["groups"], row["attributes"] or "all",
        )
        for row in table
    ]  # fmt: skip
    columns = ["Check", "Group", "#Rejected", "#Interval, %", "#By chance, %", "#Images", "Groups",
               "Sets of"]  # fmt: skip
    shares = Table.of("Share of images that fail each check", columns, cells, source="rejections")
    blocks = (Words((text,), "note"), Grid(charts), shares)
    return Section("rejections", "Rejected images by group", blocks)


def _rejected(panel: Sequence[Row], name: str) -> Chart:
    points = [
        {
            "label": row["check"],
            "series": row["group"],
            "value": row["share"],
            **{key: row[key] for key in ("low", "high", "chance_low", "chance_high")},
            "tip": f"{row['check']}, {row['group']}: {percent(row['share'])} of "
            f"{count(row['images'])} images",
        }
        for row in panel
    ]
    label = f"Share of images that fail each check, by group: {name}"
    axis = Axis("share of images rejected", percent=True)
    return intervals(points, label, axis, title=name, series=distinct(panel, "group"))


def thresholds(result: AuditResult) -> Section | None:
    """Return the thresholds of attributes, and how often people agree with them."""
    table = rows(result, "thresholds")
    if not table:
        return None
    text = (
        "A set passes if enough of its images look most like their own value of an attribute. A "
        "learned threshold is the one that agrees with the labels of people most often. Its "
        "accuracy is on labels of other sets of captions; compare it with always or never."
    )
    learned = [row for row in table if row["curve"]]
    blocks: list[Block] = [Words((text,), "note")]
    if learned:
        blocks.append(Grid((_agreement(learned),)))
    columns = ["Attribute", "Sets of", "Images that must show it", "Threshold", "#Labels",
               "#Accuracy", "#Interval, %", "#Always or never"]  # fmt: skip
    cells = [_threshold_cells(row) for row in table]
    blocks.append(Table.of("Thresholds of attributes", columns, cells, source="thresholds"))
    return Section("thresholds", "Images that must show their attribute", tuple(blocks))


def _threshold_cells(row: Row) -> tuple[Cell, ...]:
    place = (row["attribute"], row["attributes"], f"{row['threshold']} of {row['images']}")
    if not has(row["accuracy"]):
        return (*place, "config", "–", "–", "–", "–")
    ends = interval(100 * row["low"], 100 * row["high"], 1)
    origin = "learned" if row["learned"] else "config"
    labels, accuracy, majority = row["labels"], row["accuracy"], row["majority"]
    return (*place, origin, count(labels), percent(accuracy), ends, percent(majority))


def _agreement(learned: Sequence[Row]) -> Chart:
    points = [
        {
            "x": threshold,
            "value": agreement,
            "series": f"{row['attribute']}, sets of {row['attributes']}",
            "tip": f"{row['attribute']}, at least {threshold} of {row['images']}: agrees with "
            f"{percent(agreement)} of {count(row['labels'])} labels"
            + (" (the threshold in use)" if threshold == row["threshold"] else ""),
        }
        for row in learned
        for threshold, agreement in enumerate(row["curve"], start=1)
    ]
    axes = (
        Axis("images of a set that must show it"),
        Axis("agreement with labels", percent=True, domain=(0.0, 1.0)),
    )
    title = "Agreement with people by threshold"
    return curves(points, title, *axes, title=title, series=distinct(points, "series"))


def subjects(result: AuditResult) -> Section | None:
    """Return the kept sets of each subject, fewest first."""
    table = rows(result, "subjects")
    if len(distinct(table, "subject")) < 2:
        return None
    text = "A subject with few kept sets has little data in later audits; with none it is missing."
    cells = [
        (row["subject"], row["attributes"], count(row["sets"]), count(row["kept"]),
         percent(row["share"]))
        for row in sorted(table, key=lambda row: (row["share"], row["subject"]))
    ]  # fmt: skip
    columns = ["Subject", "Sets of", "#Sets", "#Kept", "#Share"]
    kept = Table.of("Sets by subject", columns, cells, source="subjects", limit=MOST_SUBJECTS)
    return Section("subjects", "Kept sets by subject", (Words((text,), "note"), kept))


PAGE = Page(
    leads=("rejection_gap",),
    by_group=("rejection_gap",),
    subjects="checks",
    sections=(stages, rejections, thresholds, subjects),
    facts=facts,
    caveat="A filter's own errors can differ by group: look at rejected images of each group.",
)
