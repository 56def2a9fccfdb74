"""What filters of generated sets keep, and whose images they reject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_generation
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.charts import MOST_GROUPS
from equipoise.report.tables import distinct, has, panels, rows
from equipoise.report.text import count, interval, number

Row = Mapping[str, Any]

MOST_SUBJECTS = 30
_NAMES = {
    "complete": "every image is there",
    "similarity": "similarity",
    "content": "content",
    "attributes": "attributes shown",
    "best": "the best of each set",
}


def stages(result: AuditResult) -> Section | None:
    """What each stage leaves, by the attributes that vary together."""
    found = rows(result, "stages")
    if not found:
        return None
    plots = [_funnel(panel, name) for (name,), panel in panels(found, "attributes").items()]
    note = (
        "Sets of images that are left after each stage, as shares of those that were asked for; "
        "grey: what the stage took. A set counts where all of its images are there, and is "
        "rejected as a whole: it takes its images of every group along."
    )
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), _table(found)]
    return Section("stages", "What each filter leaves", tuple(blocks))


def _funnel(panel: Sequence[Row], name: str) -> Chart:
    asked = panel[0]["sets_before"] or 1
    data = [
        {
            "stage": _stage(row),
            "left": row["sets_after"] / asked,
            "before": row["sets_before"] / asked,
            "tip": f"{count(row['sets_after'])} of {count(row['sets_before'])} sets are left, "
            f"{count(row['images_after'])} images",
        }
        for row in panel
    ]
    shown = "all sets" if name == "all" else f"sets of {name}"
    spec = charts_generation.funnel("rows", len(data))
    label = f"Sets that are left after each stage: {shown}"
    return Chart(label, spec, {"rows": data}, None, shown)


def _stage(row: Row) -> str:
    return _NAMES.get(str(row["stage"]), str(row["stage"]))


def _table(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["attributes"], _stage(row), count(row["sets_before"]),
            count(row["sets_rejected"]), count(row["sets_after"]), count(row["images_before"]),
            count(row["images_after"]),
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Attributes", "Stage", "#Sets before", "#Rejected", "#Sets after", "#Images before",
        "#Images after",
    ]  # fmt: skip
    return Table.of("Sets and images before and after each stage", columns, cells, source="stages")


def rejections(result: AuditResult) -> Section | None:
    """Whose images fail each check, with intervals and what chance gives."""
    found = rows(result, "rejections")
    if not found:
        return None
    plots = [
        _rejected(panel, groups, kind)
        for (groups, kind), panel in panels(found, "groups", "attributes").items()
        if len(distinct(panel, "group")) <= MOST_GROUPS
        and (not kind or len(panels(found, "groups", "attributes")) <= _MOST_PLOTS)
    ]
    note = (
        "Images that fail a check by what they show themselves, of the sets that came as far; of "
        "pairs, the share of an image's pairs. Line: interval; grey: where a group lies in 95 of "
        "100 random exchanges of the images of a set. What a filter rejects is what its model "
        "makes of an image: where that errs more for one group, so does the filter."
    )
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots)), _shares(found)]
    return Section("rejections", "Whose images are rejected", tuple(blocks))


_MOST_PLOTS = 12


def _rejected(panel: Sequence[Row], groups: str, kind: str) -> Chart:
    data = [
        {
            "check": row["check"], "group": row["group"], "share": row["share"],
            "low": row["low"], "high": row["high"], "chance_low": row["chance_low"],
            "chance_high": row["chance_high"],
            "tip": f"{row['check']}, {row['group']}: {_percent(row['share'])} of "
            f"{count(row['images'])} images",
        }
        for row in panel
    ]  # fmt: skip
    name = f"{groups}, sets of {kind}" if kind else groups
    spec = charts_generation.rejections(
        "rows", "share rejected", distinct(panel, "group"), len(distinct(panel, "check"))
    )
    label = f"Share of images that fail each check, by group: {name}. Grey: what chance gives."
    return Chart(label, spec, {"rows": data}, None, name)


def _shares(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["check"], row["group"], number(row["share"]), interval(row["low"], row["high"]),
            interval(row["chance_low"], row["chance_high"]), count(row["images"]), row["groups"],
            row["attributes"] or "all",
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Check", "Group", "#Share rejected", "#Interval", "#Chance band", "#Images", "Groups",
        "Sets of",
    ]  # fmt: skip
    return Table.of("Share of images that fail each check", columns, cells, source="rejections")


def thresholds(result: AuditResult) -> Section | None:
    """How many images of a set must show an attribute, and how far people agree."""
    found = rows(result, "thresholds")
    if not found:
        return None
    learned = [row for row in found if row["curve"]]
    note = (
        "A set passes when as many of its images look most like their own value of an attribute. "
        "Where people labelled sets, thresholds are those that agree with them most often; the "
        "accuracy is that on labels of other sets of captions. Compare it with what saying always "
        "yes, or always no, would reach."
    )
    blocks: list[Block] = [Words((note,), "note")]
    if learned:
        blocks.append(Grid((_agreement(learned),)))
    blocks.append(_thresholds(found))
    return Section("thresholds", "How many images must show their attribute", tuple(blocks))


def _agreement(learned: Sequence[Row]) -> Chart:
    data = [
        {
            "attribute": f"{row['attribute']}, sets of {row['attributes']}",
            "threshold": place,
            "agreement": one,
            "chosen": place == row["threshold"],
            "tip": f"{row['attribute']}, at least {place} of {row['images']}: agrees with "
            f"{_percent(one)} of {count(row['labels'])} labels",
        }
        for row in learned
        for place, one in enumerate(row["curve"], start=1)
    ]
    spec = charts_generation.agreement("rows", distinct(data, "attribute"))
    label = "Agreement with labels of people by threshold; the mark is the one in use."
    return Chart(label, spec, {"rows": data}, None, "Agreement with people")


def _thresholds(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["attribute"], row["attributes"], f"{row['threshold']} of {row['images']}",
            "learned" if row["learned"] else "given",
            count(row["labels"]) if row["labels"] is not None else "–",
            number(row["accuracy"]) if has(row["accuracy"]) else "–",
            interval(row["low"], row["high"]) if has(row["accuracy"]) else "–",
            number(row["majority"]) if has(row["majority"]) else "–",
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Attribute", "Sets of", "Images that must show it", "Threshold", "#Labels",
        "#Accuracy", "#Interval", "#Always or never",
    ]  # fmt: skip
    return Table.of("Thresholds of attributes", columns, cells, source="thresholds")


def subjects(result: AuditResult) -> Section | None:
    """Which subjects lose their sets."""
    found = rows(result, "subjects")
    if len(distinct(found, "subject")) < 2:
        return None
    least = sorted(found, key=lambda row: (row["share"], row["subject"]))
    cells = [
        (
            row["subject"], row["attributes"], count(row["sets"]), count(row["kept"]),
            number(row["share"]),
        )
        for row in least
    ]  # fmt: skip
    note = (
        "Subjects of which few sets are left come short in whatever is measured on them. Those of "
        "which none is left are not in the data set at all."
    )
    columns = ["Subject", "Sets of", "#Sets asked for", "#Kept", "#Share"]
    table = Table.of("Sets by subject", columns, cells, source="subjects", limit=MOST_SUBJECTS)
    return Section("subjects", "Which subjects lose their sets", (Words((note,), "note"), table))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
