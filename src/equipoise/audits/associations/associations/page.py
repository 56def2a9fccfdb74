"""The page of an audit of associations."""

from collections.abc import Sequence

from equipoise.audits.associations.charts import (
    parts_of_mcas,
    section_of,
    sides_by_groups,
    tabled,
    target_scores,
    xmcas_table,
)
from equipoise.audits.associations.config import measured_metrics
from equipoise.audits.pages import TRAINABLE
from equipoise.core import AuditResult
from equipoise.metrics.spec import SETS, spec_of
from equipoise.report.blocks import (
    NUMBER,
    P_VALUE,
    PLACE,
    SHARE,
    Chart,
    Column,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    TableSection,
    by_place,
    distinct,
    has,
    panels,
    points,
    rows,
    scope,
    where,
)
from equipoise.report.plots import Axis, bars, heat_map, scatter
from equipoise.report.text import count, interval, number, percent, title

MOST_LABELS = 15
FIRST_LABELS = 10
_HOW = (
    "Point: the value. Line: its interval. Grey band: 95 of 100 random exchanges of the two sets' "
    "members. II: images with images. ITP: texts of the target with images of the groups. ITA: "
    "images of the target with texts of the groups. TT: texts with texts. Charts show the 40 "
    "targets with the largest values."
)


def facts(result: AuditResult) -> Pairs:
    """Return the items."""
    resolved, counts = result.manifest.resolved, result.manifest.counts
    tables = [
        f"{name}: {count(counts.get(name, {}).get('rows', 0))} {section['kind']}s"
        for name, section in resolved.get("data", {}).items()
    ]
    return (("Items", "; ".join(tables)),)


def scores(result: AuditResult) -> Section | None:
    """Return the scores of all targets, by metric, groups and model."""
    compared = ("each", "members", "two")
    metrics = [
        name
        for name, spec in measured_metrics().items()
        if spec.needs == SETS and spec.targets in compared
    ]
    metrics.sort(key=lambda name: compared.index(spec_of(name).targets))
    findings = [finding for finding in result.findings if finding.metric in metrics]
    findings.sort(key=lambda finding: metrics.index(finding.metric))
    return target_scores(result, findings, _HOW)


def parts(result: AuditResult) -> Section | None:
    """Return the four parts of MCAS of each target, stacked."""
    return parts_of_mcas(rows(result, "mcas_parts"), sides_by_groups(result))


def amplification(result: AuditResult) -> Section | None:
    """Return bias amplification against diffusion bias of each target."""
    text = (
        "Right: the images' association differs more in size from that of their texts. Up: images "
        "and texts together have a stronger association than the texts; above 1 it is amplified."
    )
    charts = [_amplification_chart(*place) for place in by_place(rows(result, "amplification"))]
    return section_of("amplification", "Images against the texts that made them", text, charts)


def _amplification_chart(name: str, panel: Sequence[Row]) -> Chart:
    bias, gain = "diffusion_bias", "bias_amplification"
    estimated = [row for row in panel if has(row[gain])]
    marks = points(
        sorted(estimated, key=lambda row: (row[bias], row["target"])),
        lambda row: f"{row['target']}: diffusion bias {number(row[bias])}, "
        f"amplification {number(row[gain])} "
        f"{interval(row['amplification_low'], row['amplification_high'])}",
        "fitted", series="model", x=bias, y=gain,
        y_low="amplification_low", y_high="amplification_high",
    )  # fmt: skip
    axes = Axis("diffusion bias"), Axis("bias amplification")
    label = f"Bias amplification against diffusion bias: {name}"
    series = distinct(panel, "model")
    chart = scatter(marks, label, *axes, title=name, series=series)
    columns = [
        Column("Target", "target"),
        Column("Diffusion bias", bias, NUMBER),
        Column("Interval", ("diffusion_low", "diffusion_high"), NUMBER),
        Column("Amplification", gain, NUMBER),
        Column("Its interval", ("amplification_low", "amplification_high"), NUMBER),
        Column("Note", "reason"),
    ]
    return tabled(chart, columns, panel, "amplification")


def further(result: AuditResult) -> Section | None:
    """Return the angle of each target under xMCAS, and its similarity to further groups."""
    source = "xmcas"
    table = rows(result, source)
    text = (
        "The angle compares how close a target is to further groups with its association with the "
        "first two. Below the neutral angle further groups are under-represented."
    )
    heading = "Further groups (xMCAS)"
    return Section.of("further", heading, text, xmcas_table(table, source)) if table else None


def words(result: AuditResult) -> Section | None:
    """Return the similarity of the images of each region and group to each word."""
    text = (
        "Trend: similarity to positive words minus similarity to negative words; left is less "
        "favourable. Gender difference: groups far apart differ in their similarity to all words."
    )
    measured = [row for row in rows(result, "words") if has(row["similarity"])]
    charts = []
    for name, panel in by_place(measured):
        values = [row["similarity"] for row in panel]
        legend = Axis("mean similarity", domain=(min(values), max(values)))
        by_group = panels(panel, "group").items()
        charts += [
            _word_chart(f"{group}: {name}", panel_rows, legend) for (group,), panel_rows in by_group
        ]
    sums = [row for row in rows(result, "word_sums") if has(row["similarity"])]
    columns = [
        Column("Region", "region"),
        Column("Group", "group"),
        Column("Kind", "kind"),
        Column("Sum of similarities", "similarity", NUMBER),
        Column("Images", "n", NUMBER),
        Column("Model", where),
    ]
    table = Table.of("Sums over words of a kind", columns, sums, source="word_sums")
    more = (table,) if sums else ()
    return section_of("regions", "Similarity to each word by region", text, charts, *more)


def _word_chart(group: str, panel: Sequence[Row], legend: Axis) -> Chart:
    marks = points(
        panel,
        lambda row: f"{row['region']}, {group}, {row['word']} ({row['kind']}): "
        f"{number(row['similarity'])}, n = {row['n']}",
        row="region", column="word", value="similarity",
    )  # fmt: skip
    label = f"Mean similarity of images of {group} to each word, by region"
    chart = heat_map(marks, label, legend, columns=distinct(panel, "word"), title=group)
    columns = [
        Column("Region", "region"),
        Column("Word", "word"),
        Column("Kind", "kind"),
        Column("Similarity", "similarity", NUMBER),
        Column("Images", "n", NUMBER),
    ]
    return tabled(chart, columns, panel, "words")


def external(result: AuditResult) -> Section | None:
    """Return the results of targets or regions against external figures."""
    measured = [row for row in rows(result, "outside") if has(row["outside"]) and has(row["value"])]
    charts = [
        _figure_chart(panel) for panel in panels(measured, *PLACE, "metric", "figure").values()
    ]
    text = (
        "A point is a target or a region. r is Pearson's correlation; with few points its interval "
        "is wide. A correlation doesn't show a cause."
    )
    related = rows(result, "outside_correlations")
    columns = [
        Column("Pair", lambda row: f"{_metric_name(row)} and {row['figure']}"),
        Column("Kind", "kind"),
        Column("Model", "model"),
        Column("Groups", lambda row: scope(row["groups"], row["version"])),
        Column("Points", "n", NUMBER),
        Column("r", "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("p", "p_value", P_VALUE),
        Column("Note", "reason"),
    ]
    table = Table.of("Correlations", columns, related, source="outside_correlations")
    more = (table,) if related and charts else ()
    return section_of("external", "Against external figures", text, charts, *more)


def _figure_chart(panel: Sequence[Row]) -> Chart:
    first, metric = panel[0], _metric_name(panel[0])
    marks = points(
        sorted(panel, key=lambda row: (row["outside"], row["subject"])),
        lambda row: f"{row['subject']}: {row['figure']} {number(row['outside'])}, {metric} "
        f"{number(row['value'])} {interval(row['low'], row['high'])}",
        series="model", name="subject", x="outside", y="value", y_low="low", y_high="high",
    )  # fmt: skip
    name = f"{metric} against {first['figure']}: {where(first)}"
    axes = Axis(first["figure"]), Axis(metric)
    series = distinct(panel, "model")
    chart = scatter(marks, name, *axes, title=name, series=series)
    columns = [
        Column("Subject", "subject"),
        Column(first["figure"], "outside", NUMBER),
        Column(metric, "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
    ]
    return tabled(chart, columns, panel, "outside")


def _metric_name(row: Row) -> str:
    metric, separator, subject = row["metric"].partition(", ")
    return f"{title(metric)} of {subject}" if separator else title(metric)


def labels(result: AuditResult) -> Section | None:
    """Return the labels predicted most often for each group, and their associations."""
    counted = rows(result, "labels")
    charts = [_share_chart(*place) for place in by_place([r for r in counted if not r["region"]])]
    columns = [
        Column("Label", "label"),
        Column("Most frequent for", "set"),
        Column("Association score", "value", NUMBER),
        Column("Model", where),
    ]
    caption = "Labels frequent for one group only, and their association"
    cells = sorted(rows(result, "label_scores"), key=lambda row: -row["value"])
    more = [Table.of(caption, columns, cells, source="label_scores")] if cells else []
    if by_region := [row for row in counted if row["region"]]:
        more.append(_labels_by_region(by_region))
    text = "Bars of different length show labels that one group gets more often."
    return section_of("labels", "Predicted labels by group", text, charts, *more)


def _labels_by_region(counted: Sequence[Row]) -> Table:
    """Return the most frequent labels of each region and group."""
    lines = []
    for (region, group, _, _, _), panel in panels(counted, "region", "group", *PLACE).items():
        ranked = sorted(panel, key=lambda row: (-row["count"], row["label"]))[:FIRST_LABELS]
        texts = ", ".join(f"{row['label']} {count(row['count'])}" for row in ranked)
        lines.append((region, group, texts, where(panel[0])))
    heads = [Column(name) for name in ("Region", "Group", "Labels and their images", "Model")]
    return Table.of("Most frequent labels by region and group", heads, lines, source="labels")


def _share_chart(name: str, panel: Sequence[Row]) -> Chart:
    split = {label: label_rows for (label,), label_rows in panels(panel, "label").items()}
    best = {label: max(row["share"] for row in label_rows) for label, label_rows in split.items()}
    labels = sorted(best, key=lambda label: (-best[label], label))[:MOST_LABELS]
    shown_rows = [
        row for label in labels for row in sorted(split[label], key=lambda row: row["group"])
    ]
    marks = points(
        shown_rows,
        lambda row: f"{row['label']}, {row['group']}: {count(row['count'])} images, "
        f"{percent(row['share'])}",
        "label", series="group", value="share",
    )  # fmt: skip
    axis = Axis("share of the group's images", percent=True)
    label = f"Shares of the most frequent labels: {name}"
    groups = sorted(distinct(panel, "group"))
    chart = bars(marks, label, axis, title=name, series=groups)
    columns = [
        Column("Label", "label"),
        Column("Group", "group"),
        Column("Images", "count", NUMBER),
        Column("Share", "share", SHARE),
    ]
    return tabled(chart, columns, shown_rows, "labels")


sets = TableSection(
    name="sets",
    heading="Sets",
    caption="Sets and their sizes",
    source="sets",
    columns=[
        Column("Set", "set"),
        Column("Kind", "kind"),
        Column("Table", "table"),
        Column("Members", "members", NUMBER),
        Column("Model", "model"),
        Column("With a vector or scores", "embedded", NUMBER),
    ],
    limit=100,
)


PAGE = Page(
    mitigable=TRAINABLE,
    leads=(
        "mcas", "weat", "association_score", "total_absolute_association", "sc_weat",
        "predicted_label_weat", "label_concentration", "gender_difference",
    ),
    by_group=(
        "label_concentration", "gender_difference", "trend", "association_score", "weat", "sc_weat",
    ),
    subjects="targets or regions",
    steps=(
        "Change words and images of the sets, and audit again: a finding should not depend on "
        "them.",
        "Reduce the association, or choose another model.",
    ),
    sections=(
        scores, parts, amplification, further, words, external, labels, sets,
    ),
    facts=facts,
)  # fmt: skip
