"""The page of an audit of concepts, with the effect of other choices."""

from collections.abc import Sequence
from typing import get_args

from equipoise.audits.concepts.config import BASELINE
from equipoise.core import Aggregate, AuditResult, Strings
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    SHARE,
    Chart,
    Column,
    Page,
    Pairs,
    Row,
    Section,
    Table,
    TableSection,
    Words,
    distinct,
    has,
    panels,
    rows,
    title_of,
)
from equipoise.report.choice_effects import table_of_every_step
from equipoise.report.plots import Axis, scatter
from equipoise.report.text import count, in_words, listed, number, plural, title

# Concepts that a chart needs.
_FEWEST = 3
# Effects that change a conclusion come first.
_EFFECTS = (
    "surfaces", "explains", "switches", "magnifies", "shrinks", "gained power", "lost power",
)  # fmt: skip
_METRICS: Strings = get_args(Metric)


def facts(result: AuditResult) -> Pairs:
    """Return images, concepts, metrics, prevalence and versions."""
    config = result.manifest.resolved
    images = result.manifest.counts.get("images", {})
    measured = rows(result, "concept_groups")
    return (
        ("Images", count(images.get("images", 0))),
        ("Concepts", listed(distinct(measured, "concept"), 12)),
        ("Metrics", listed([title(metric) for metric in distinct(measured, "metric")])),
        ("Prevalence", config.get("choices", {}).get("prevalence", "")),
    )


def _subject(row: Row) -> str:
    return f"{row['concept'] or 'mean over concepts'}: {row['group_a']} − {row['group_b']}"


def versions(result: AuditResult) -> Section | None:
    """Return the effects of each step, then the difference in every version, changed ones first."""
    choices = rows(result, "choices")
    if not choices:
        return None
    described = tuple(
        f"{row['version']}: {row['changes']}" for row in rows(result, "versions") if row["changes"]
    )
    key = (
        "Surfaces: significant only in the later version. Explains: significant only in the "
        "earlier one. Switches: other direction. Magnifies, shrinks: larger or smaller by more "
        "than a quarter. In none of these the change is chance. Gained or lost power: significant "
        "in one version only, perhaps by chance. What can't be estimated confirms nothing."
    )
    order = sorted(choices, key=lambda row: row["effect"] not in _EFFECTS)
    columns = [
        Column("Concept", _subject),
        Column("Versions", lambda row: f"{row['baseline']} → {row['version']}"),
        Column("Effect", lambda row: in_words(row["effect"])),
        Column("Difference", "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Before", "baseline_value", NUMBER),
        Column("Above 0 is worse for", lambda row: _worse(row, 1.0)),
        Column("Model", "model"),
        Column("Groups", "groups"),
        Column("Metric", title_of),
        Column("Reason", "reason", CLIPPED),
    ]
    table = Table.of("Difference in every version", columns, order, source="choices")
    counts = table_of_every_step(result)
    parts = Words(described, "list"), counts, key, table
    return Section.of("versions", "Effect of other choices", *parts)


def _worse(row: Row, difference: float) -> str:
    """Return the group that is worse off under a difference of the first minus the second."""
    first = (difference > 0) == (spec_of(row["metric"]).harm == "higher")
    return str(row["group_a"] if first else row["group_b"])


def _conclusion(row: Row) -> str:
    if not row["conclusion"]:
        return f"no significant difference ({row['group_a']}, {row['group_b']})"
    loser = _worse(row, 1.0 if row["conclusion"] == row["group_a"] else -1.0)
    other = row["group_a"] if loser == row["group_b"] else row["group_b"]
    return f"worse for {loser} than for {other}"


robust = TableSection(
    name="robust",
    heading="Conclusions that hold in every version",
    caption="Conclusions of the baseline, and how many versions agree",
    source="robust",
    columns=[
        Column("Concept", "concept"),
        Column("Conclusion of the baseline", _conclusion),
        Column("Versions", "versions", NUMBER),
        Column("Agree", "agreeing", NUMBER),
        Column("Not estimable", "not_estimable", NUMBER),
        Column("Model", "model"),
        Column("Groups", "groups"),
        Column("Metric", title_of),
    ],
    text=(
        "Significant means that the version's own test says so; a finding's verdict says whether "
        "the difference is large enough to matter. A version that can't be estimated agrees with "
        "nothing."
    ),
    keeps=lambda row: row["concept"],
    order=lambda row: (not row["conclusion"], -row["share"]),
)


prevalence = TableSection(
    name="prevalence",
    heading="Metric and prevalence by group",
    caption="Value and prevalence by group",
    source="concept_groups",
    columns=[
        Column("Concept", "concept"),
        Column("Group", "group"),
        Column("Value", "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Prevalence", "prevalence", SHARE),
        Column("Positives", "positives", NUMBER),
        Column("Images", "n", NUMBER),
        Column("Metric", title_of),
        Column("Version", "version"),
        Column("Model", "model"),
        Column("Groups", "groups"),
        Column("Reason", "reason", CLIPPED),
    ],
    text=(
        "Prevalence is the share of a group's images that show the concept. Average "
        "precision, precision and F1 fall with that share alone, unless prevalence is held fixed."
    ),
)


def order(result: AuditResult) -> Section | None:
    """Return where a version reverses which of two models has the larger disparity."""
    compared = rows(result, "model_order")
    if not compared:
        return None
    columns = [
        Column("Concept", _subject),
        Column("Metric", title_of),
        Column("Groups", "groups"),
        Column("Larger in the baseline", "baseline_larger"),
        Column("Version that reverses it", "version"),
        Column("Larger", "larger"),
        Column("Difference", "difference", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
    ]
    switched = [row for row in compared if row["switches"]]
    caption = f"{plural(len(switched), 'reversed order')} of {plural(len(compared), 'comparison')}"
    text = "How much larger one model's disparity is than the other's, on the same images."
    table = Table.of(caption, columns, switched, source="model_order")
    return Section.of("order", "Model with the larger disparity", text, table)


def sample_size(result: AuditResult) -> Section | None:
    """Return the disparity of each concept against the labelled images of its smallest group."""
    smallest = dict[tuple[str, ...], int]()
    for row in rows(result, "concept_groups"):
        if row["version"] == BASELINE and not row["reason"]:
            key = row["model"], row["groups"], row["metric"], row["concept"]
            smallest[key] = min(row["positives"], smallest.get(key, row["positives"]))
    sized = [
        {
            **vars(finding),
            "positives": smallest[finding.model, finding.groups, finding.metric, finding.subject],
        }
        for finding in result.findings
        if finding.version == BASELINE
        and finding.aggregate is Aggregate.DIFFERENCE
        and (finding.model, finding.groups, finding.metric, finding.subject) in smallest
        and has(finding.value)
    ]
    charts = [
        _size_chart(panel, title(metric), ", ".join((model, groups)))
        for (model, groups, metric), panel in panels(sized, "model", "groups", "metric").items()
        if len(panel) >= _FEWEST
    ]
    if not charts:
        return None
    columns = [
        Column("Concept", "subject"),
        Column("Images in the smallest group", "positives", NUMBER),
        Column("Difference", "value", NUMBER),
        Column("Interval", ("ci_low", "ci_high"), NUMBER),
        Column("By chance", "chance", NUMBER),
        Column("Model", "model"),
        Column("Groups", "groups"),
        Column("Metric", title_of),
    ]
    text = (
        "The difference between groups of each concept, with its interval, against the images that "
        "show it in the group with the fewest. The dashed line joins the differences that chance "
        "alone would give: fewer images, larger differences."
    )
    sized.sort(key=lambda row: row["positives"])
    table = Table.of("Disparity by number of images", columns, sized, source="findings")
    return Section.of("sample-size", "Disparity and sample size", text, charts, table)


def _size_chart(panel: Sequence[Row], metric: str, name: str) -> Chart:
    marks = [
        {"x": row["positives"], "y": row["value"], "y_low": row["ci_low"], "y_high": row["ci_high"],
         "fitted": row["chance"], "series": "",
         "tip": f"{row['subject']}: {number(row['value'])} with {count(row['positives'])} images"}
        for row in sorted(panel, key=lambda row: row["positives"])
    ]  # fmt: skip
    label = f"Difference in {metric} of each concept against its images: {name}"
    axes = Axis("images in the smallest group"), Axis(f"difference in {metric}", zero=True)
    return scatter(marks, label, *axes, title=f"{name}, {metric}")


PAGE = Page(
    leads=_METRICS,
    by_group=(*_METRICS, "hit_rate"),
    subjects="concepts",
    sections=(versions, robust, prevalence, order, sample_size),
    facts=facts,
    commands=("causes", "compare"),
)
