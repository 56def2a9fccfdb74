"""The page of an audit of text-to-image models."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from equipoise.audits.associations.charts import (
    MOST_TARGETS,
    parts_of_mcas,
    section_of,
    sides_by_groups,
    sides_of_zero,
    tabled,
    target_scores,
    xmcas_table,
)
from equipoise.audits.associations.text_to_image.steps import II
from equipoise.core import AuditResult, Variant
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    SHARE,
    Block,
    Chart,
    Column,
    Fold,
    Page,
    Row,
    Section,
    Table,
    Words,
    by_place,
    distinct,
    has,
    panels,
    points,
    rows,
    where,
)
from equipoise.report.plots import COLORS, Axis, curves, intervals, scatter
from equipoise.report.text import count, interval, number, percent, title

MOST_CLASSES, MOST_SERIES = 6, len(COLORS)
CURVED = ("share_mad", "mcas", "bias_amplification", "diffusion_bias", "share_gap")
"""Metrics that are shown against the strength of guidance."""
STEPPED = ("mcas", "association_score", "diffusion_bias", "bias_amplification")
"""Metrics that are shown against denoising steps: of the parts of MCAS II, in both spaces."""
CORRECTED, UNCORRECTED = "corrected for errors", "as classified"
_SHARES = (
    "Share of each neutral prompt's images that show the class. Circles: corrected for the errors "
    "of the classifier on labelled images; intervals include the uncertainty of both sets of "
    "images. The correction assumes the same errors on labelled and generated images."
)
_UNCORRECTED = (
    "Share of each neutral prompt's images that the classifier puts in the class. Without labelled "
    "images its errors are not corrected, and intervals leave them out."
)
_LEANING = (
    "MCAS of each target: how much closer its images and prompt are to images and texts of one "
    "group than of the other. Point: the value. Line: its interval. Grey band: 95 of 100 random "
    "exchanges of the groups' images and texts. If the marks of encoders differ, the result "
    "depends on the encoder."
)
_PLANE = (
    "Each mark is a target or a prompt of an attribute. To the sides: the group it is closer to "
    "(MCAS). Up: its similarity to the further group. Cosines of encoders have an offset of their "
    "own, so compare targets with attributes. Lines: intervals. Names are in tooltips."
)
_GUIDANCE = (
    "Guidance exaggerates the prompt. A line that leaves zero as guidance grows shows that "
    "disparities grow, too. Lines: the targets that change most. Shade: the interval of the first."
)
_STEPS = (
    "Results for the images during denoising, for the same prompts and seeds. Before the last step "
    "the image is the model's estimate of the clean image. Lines: the targets that change most. "
    "Shade and grey band: interval and chance of the first. A result differs from chance from a "
    "step on if it is outside its band at that step and at all later steps."
)
_ERRORS = (
    "Labelled images of each class, by the class that the classifier gives them. The larger the "
    "condition number, the more the correction amplifies errors; 1 is a classifier without errors."
)


def facts(result: AuditResult) -> Sequence[tuple[str, str]]:
    """Return the images by state."""
    resolved, counts = result.manifest.resolved, result.manifest.counts
    images = []
    for name in resolved.get("generators", {}):
        states = [f"{count(n)} {state}s" for state, n in sorted(counts.get(name, {}).items())]
        if states:
            images.append(f"{name}: {', '.join(states)}")
    return (("Requested images by state", "; ".join(images)),)


def shares(result: AuditResult) -> Section | None:
    """Return the shares of classes by target, with external shares."""
    table = rows(result, "shares")
    if not table:
        return None
    charts = []
    for place, panel in by_place(_of_final_images(result, table)):
        classes = distinct(panel, "class")
        # Of two classes, the share of one gives the other's.
        for name in classes[:1] if len(classes) == 2 else classes[:MOST_CLASSES]:
            class_rows = [row for row in panel if row["class"] == name]
            charts.append(_share_chart(class_rows, name, place))
    text = _SHARES if any(row["corrected"] for row in table) else _UNCORRECTED
    columns = [
        Column("Target", "target"),
        Column("Class", "class"),
        Column("Share", "share", SHARE),
        Column("Interval", ("low", "high"), SHARE),
        Column("As classified", "raw", SHARE),
        Column("Its interval", ("raw_low", "raw_high"), SHARE),
        Column("Outside", "outside", SHARE),
        Column("Images", "images", NUMBER),
        Column("Model", where),
        Column("Note", "reason", CLIPPED),
    ]
    fold = Fold("All shares", (Table.of("Shares of classes", columns, table, source="shares"),))
    heading = "Shares of classes by target"
    return section_of(
        "shares", heading, text, charts, fold, *_error_tables(result), *_state_table(result)
    )


def _share_chart(panel: Sequence[Row], name: str, place: str) -> Chart:
    estimated = [row for row in panel if has(row["share"])]
    shown_rows = sorted(estimated, key=lambda row: -row["share"])[:MOST_TARGETS]
    outside = next((row["outside_name"] for row in shown_rows if has(row["outside"])), "")
    kinds = {
        CORRECTED: ("share", "low", "high"),
        UNCORRECTED: ("raw", "raw_low", "raw_high"),
        outside: ("outside",) * 3,
    }
    marks = []
    for row, (kind, (value, low, high)) in product(shown_rows, kinds.items()):
        if has(row[value]) and (kind != CORRECTED or row["corrected"]):
            tip = f"{row['target']}, {kind}: {percent(row[value])}, {row['images']} images"
            marks.append({
                "label": row["target"], "series": kind, "value": row[value], "low": row[low],
                "high": row[high], "tip": tip,
            })  # fmt: skip
    series = [kind for kind in kinds if kind in distinct(marks, "series")]
    axis = Axis(f"share of {name}", percent=True, domain=(0.0, 1.0))
    label = f"Share of {name} by target: {place}"
    return intervals(marks, label, axis, title=f"{name}: {place}", series=series)


def _error_tables(result: AuditResult) -> Iterator[Block]:
    for (groups,), panel in panels(rows(result, "share_confusions"), "groups").items():
        columns = [
            Column("Label", "label"),
            Column("Classified as", "said"),
            Column("Images", "count", NUMBER),
            Column("Of", "n", NUMBER),
        ]
        name = f"{groups}: condition number {number(panel[0]['condition'])}"
        table = Table.of(name, columns, panel, source="share_confusions")
        yield Fold(f"Errors of the classifier: {groups}", (Words((_ERRORS,), "note"), table))


def _state_table(result: AuditResult) -> Iterator[Block]:
    columns = [
        Column("Target", "target"),
        Column("Model", where),
        Column("State or class", "state"),
        Column("Images", "count", NUMBER),
    ]
    name = "Requested images by state or class"
    if table := rows(result, "image_states"):
        yield Fold(name, (Table.of(name, columns, table, source="image_states"),))


def leaning(result: AuditResult) -> Section | None:
    """Return MCAS of every target, left or right of 0, over its chance band."""
    leans = (
        finding
        for finding in result.findings
        if finding.metric == "mcas"
        and finding.variant is not Variant.OWN_LEAN
        and (finding.model, finding.version) not in _earlier_versions(result)
    )
    return target_scores(result, leans, _LEANING)


def plane(result: AuditResult) -> Section | None:
    """Return targets and attributes by MCAS and similarity to a further group."""
    source = "xmcas"
    table = _of_final_images(result, rows(result, source))
    if not table:
        return None
    charts, sides = [], sides_by_groups(result)
    for place, panel in by_place(table):
        similarities = [row for row in panel if row["part"] == "similarity"]
        for group in distinct(similarities, "group"):
            charts.append(_plane_chart(panel, group, place, sides[panel[0]["groups"]]))
    fold = Fold("Angles and distances of targets and attributes", (xmcas_table(table, source),))
    return section_of("plane", "Similarity to further groups", _PLANE, charts, fold)


def _plane_chart(panel: Sequence[Row], group: str, name: str, sides: Sequence[str]) -> Chart:
    joined = []
    for target_rows in panels(panel, "set", "target").values():
        by_part = {(row["part"], row["group"]): row for row in target_rows}
        x, y = by_part.get(("mcas", "")), by_part.get(("similarity", group))
        if x is not None and y is not None:
            up = {"y": y["value"], "y_low": y["low"], "y_high": y["high"]}
            joined.append({**x, **up, "set": x["set"] or "targets"})
    marks = points(
        joined,
        lambda row: f"{row['target']}: MCAS {number(row['value'])} "
        f"{interval(row['low'], row['high'])}, similarity to {group} {number(row['y'])}, angle "
        f"{number(row['theta'])} rad",
        "y", "y_low", "y_high", series="set", x="value", x_low="low", x_high="high",
    )  # fmt: skip
    return scatter(
        marks,
        f"MCAS and similarity to {group}: {name}",
        Axis(sides_of_zero(sides)),
        Axis(f"similarity to {group}"),
        title=f"{name}; up: {group}",
        series=distinct(marks, "series"),
        rules=[("x", 0.0)],
    )


def parts(result: AuditResult) -> Section | None:
    """Return the four parts of MCAS of each target."""
    table = _of_final_images(result, rows(result, "mcas_parts"))
    targets = (row for row in table if not row["set"])
    return parts_of_mcas(targets, sides_by_groups(result))


def _earlier_versions(result: AuditResult) -> set[tuple[str, str]]:
    """Return model and version of images at steps before the last."""
    return {(row["model"], row["version"]) for row in rows(result, "steps") if not row["final"]}


def _of_final_images(result: AuditResult, table: Sequence[Row]) -> list[Row]:
    """Return the rows about final images."""
    earlier = _earlier_versions(result)
    return [row for row in table if (row["model"], row["version"]) not in earlier]


def guidance(result: AuditResult) -> Section | None:
    """Return the results at each strength of guidance."""
    placed = _of_final_images(result, [*_placed_findings(result, "versions", CURVED)])
    charts = _curves(placed, "guidance", ("metric", "model", "groups", "by"))
    return section_of("guidance", "Results by guidance", _GUIDANCE, charts)


def steps(result: AuditResult) -> Section | None:
    """Return the results at each denoising step, and the steps from which they differ."""
    placed = [*_placed_findings(result, "steps", STEPPED)]
    charts = [*_step_shares(result)]
    charts += _curves(placed, "step", ("metric", "model", "groups", "by", "guidance"))
    table = rows(result, "onsets")
    if not charts and not table:
        return None
    columns = [
        Column("Target", "target"),
        Column("Measure", "quantity"),
        Column("Class", "class"),
        Column("From step", "onset", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Seeds", "seeds", NUMBER),
        Column("Model", where),
        Column("Note", "reason", CLIPPED),
    ]
    name = "Steps from which results differ from chance"
    return section_of(
        "steps", "Results by denoising step", _STEPS, charts,
        Table.of(name, columns, table, source="onsets"),
    )  # fmt: skip


def _step_shares(result: AuditResult) -> Iterator[Chart]:
    """Yield a chart for each class: its share against the step, by target."""
    for place, panel in by_place(rows(result, "step_shares")):
        classes = distinct(panel, "class")
        # Of two classes, the share of one gives the other's.
        for name in classes[:1] if len(classes) == 2 else classes[:MOST_CLASSES]:
            class_rows = [
                {**row, "value": row["share"], "subject": row["target"], "ci_low": row["low"],
                 "ci_high": row["high"], "n": row["images"]}
                for row in panel
                if row["class"] == name and has(row["share"])
            ]  # fmt: skip
            axis = Axis(f"share of {name}", percent=True, domain=(0.0, 1.0))
            yield _curve_chart(class_rows, "step", f"Share of {name}", place, axis, "step_shares")


def _placed_findings(result: AuditResult, table: str, metrics: Sequence[str]) -> Iterator[Row]:
    """Yield the findings of some metrics with the guidance, or step, of their version."""
    versions = dict[tuple[str, str], Row]()
    for row in rows(result, table):
        versions[row["model"], row["version"]] = {**row, "part": ""}
        # A part of MCAS stands before the version.
        versions[row["model"], f"{II}, {row['version']}"] = {**row, "part": II}
    for finding in result.findings:
        version = versions.get((finding.model, finding.version))
        if version is None or not has(finding.value) or finding.metric not in metrics:
            continue
        if finding.variant is not Variant.OWN_LEAN:
            yield {**vars(finding), **version}


def _curves(table: Iterable[Row], x: str, panel_of: Sequence[str]) -> list[Chart]:
    """Return a chart for each panel with several places on an axis, in the order of metrics."""
    metrics = STEPPED if x == "step" else CURVED
    ordered = sorted(
        (row for row in table if has(row[x])),
        key=lambda row: (metrics.index(row["metric"]), row[x]),
    )
    charts = []
    for panel in panels(ordered, *panel_of).values():
        if len(distinct(panel, x)) > 1:
            row = panel[0]
            place = f"{row['model']}, {row['groups']} ({row['by']})"
            if "guidance" in panel_of and has(row["guidance"]):
                place += f", guidance {row['guidance']:g}"
            name = title(row["metric"])
            part = f"{name} {row['part']}".strip()
            charts.append(_curve_chart(panel, x, part, place, Axis(name, zero=True), "findings"))
    return charts


def _curve_chart(
    panel: Sequence[Row], x: str, name: str, place: str, up: Axis, source: str
) -> Chart:
    change = dict[str, float]()
    for (subject,), subject_rows in panels(panel, "subject").items():
        values = [row["value"] for row in subject_rows]
        change[subject] = max(values) - min(values)
    subjects = sorted(change, key=lambda subject: (subject != "", -change[subject]))[:MOST_SERIES]
    named, curve_rows = list[Row](), list[Row]()
    for row in panel:
        named_row = {**row, "target": row["subject"] or "mean over targets"}
        named.append(named_row)
        if row["subject"] == subjects[0]:
            curve_rows.append(named_row)
        elif row["subject"] in subjects:
            # Many shades on each other hide the lines; the table has all intervals.
            nothing = dict.fromkeys(("ci_low", "ci_high", "chance_low", "chance_high"))
            curve_rows.append({**named_row, **nothing})
    marks = points(
        curve_rows,
        lambda row: f"{row['target']} at {x} {row[x]:g}: {number(row['value'])}",
        "value", series="target", x=x, low="ci_low", high="ci_high",
        **({"chance_low": "chance_low", "chance_high": "chance_high"} if x == "step" else {}),
    )  # fmt: skip
    series = [subject or "mean over targets" for subject in subjects]
    chart = curves(
        marks, f"{name} against {x}: {place}", Axis(x), up,
        title=f"{name}: {place}", series=series,
    )  # fmt: skip
    kind = SHARE if up.percent else NUMBER
    columns = [
        Column("Target", "target"),
        Column(x.capitalize(), x, NUMBER),
        Column("Value", "value", kind),
        Column("Interval", ("ci_low", "ci_high"), kind),
    ]
    if x == "step":
        columns += [
            Column("Chance", ("chance_low", "chance_high"), kind),
            Column("n", "n", NUMBER),
        ]
        columns += [Column("Verdict", "verdict")] if source == "findings" else []
    return tabled(chart, columns, named, source)


PAGE = Page(
    leads=("share_mad", "share_gap", "mcas", "xmcas"),
    by_group=("share_mad", "share_gap", "association_score"),
    subjects="targets",
    sections=(shares, leaning, plane, parts, guidance, steps),
    facts=facts,
    look="Look at images of {subject}, and check the classifier on them.",
    steps=("Change prompts or guidance, or choose another generator.",),
)
