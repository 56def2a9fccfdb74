"""The page of an audit of predictions."""

from collections.abc import Iterator, Sequence

import polars as pl

from equipoise.audits.labels.predictions.effect_page import (
    ACCURACY,
    bands,
    over_models,
    sweep,
)
from equipoise.audits.labels.predictions.score_metrics import KIND
from equipoise.audits.labels.predictions.score_page import calibration
from equipoise.audits.labels.predictions.scores import CURVES
from equipoise.core import Aggregate, AuditResult, Verdict
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores import ScoreMetric
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    P_VALUE,
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
    image_count,
    panels,
    rows,
    scope,
    scope_of,
    title_of,
)
from equipoise.report.plots import Axis, curves, intervals, labelled_points, scatter
from equipoise.report.selecting import Selector
from equipoise.report.text import number, percent, verdict_title

MOST_CLASSES, MOST_PANELS = 30, 24
_EFFECT = Axis("effect size", domain=(0.0, 1.0))
_SCATTER = ("accuracy", "effect_size", "equalized_odds")
"""Columns of classes on both axes and in the colour."""
_GAPS = (
    Column("Parity", "demographic_parity", NUMBER),
    Column("Odds", "equalized_odds", NUMBER),
)


def facts(result: AuditResult) -> Pairs:
    """Return the number of images and the target."""
    data = result.manifest.resolved.get("data", {})
    return (image_count(result), ("Target", str(data.get("target", ""))))


def class_effects(result: AuditResult) -> Section | None:
    """Return the effect size of every class, with bands."""
    classes = rows(result, "classes")
    if not classes:
        return None
    classes.sort(key=lambda row: -row["effect_size"] if has(row["effect_size"]) else 1)
    text = (
        "Effect size: how strongly the predictions for images of one class depend on the group, "
        "from 0 (not at all) to 1 (fully). Below 0.1 is negligible, below 0.3 small, below 0.5 "
        "medium, else large."
    )
    largest_panels = [*panels(classes, "groups", "version").items()][:MOST_PANELS]
    charts = [_largest(panel, scope(*key)) for key, panel in largest_panels]
    columns = [
        Column("Class", "class"),
        Column("Effect size", "effect_size", NUMBER),
        Column("Interval", ("effect_low", "effect_high"), NUMBER),
        Column("Accuracy", "accuracy", NUMBER),
        Column("Band", "band"),
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("n", "n", NUMBER),
        Column("By chance", "effect_chance", NUMBER),
        Column("Worst group", "worst_group"),
        Column("Its accuracy", "worst_group_accuracy", NUMBER),
        Column("GAP", "gap", NUMBER),
        *_GAPS,
        Column("Columns excluded", "columns_dropped", NUMBER),
        Column("Rows excluded", "rows_dropped", NUMBER),
        Column("Note", "reason", CLIPPED),
    ]
    caption = "All classes, largest effect size first"
    table = Table.of(caption, columns, classes, source="classes")
    return Section.of("classes", "Results by class", text, *charts, table)


def _largest(panel: Sequence[Row], panel_name: str) -> Chart:
    names = distinct((row for row in panel if has(row["effect_size"])), "class")[:MOST_CLASSES]
    top_rows = sorted(
        ({**row, "low": row["effect_low"], "high": row["effect_high"]} for row in panel
         if row["class"] in names),
        key=lambda row: names.index(row["class"]),
    )  # fmt: skip
    marks = labelled_points(top_rows, "class", series="model", value="effect_size")
    title = f"Largest effect sizes by class, {panel_name}"
    label = f"{title}, with intervals. Dashed lines: bands."
    models = distinct(panel, "model")
    return intervals(marks, label, _EFFECT, title=title, series=models, cuts=(0.1, 0.3, 0.5))


def accuracy_and_effect(result: AuditResult) -> Section | None:
    """Return accuracy against effect size, a mark for each class, and their correlation."""
    charts = [*_scatters(rows(result, "classes"))]
    related = [row for row in rows(result, "correlations") if not row["reason"]]
    if not charts and not related:
        return None
    text = (
        "A class on the upper right is usually predicted rightly, and yet its mistakes depend on "
        "the group. Colour: equalized odds difference."
    )
    columns = [
        Column("Effect size and", "y"),
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("Classes", "classes", NUMBER),
        Column("Pearson r", "pearson", NUMBER),
        Column("Interval", ("pearson_low", "pearson_high"), NUMBER),
        Column("Spearman ρ", "spearman", NUMBER),
        Column("p", "spearman_p", P_VALUE),
    ]
    table = Table.of("Correlations over classes", columns, related, source="correlations")
    title = "Accuracy against effect size"
    return Section.of("accuracy", title, text, charts[:MOST_PANELS], table)


def _scatters(classes: Sequence[Row]) -> Iterator[Chart]:
    for title, panel in by_place(classes):
        if len(panel) < 3:
            continue
        marks = list[Row]()
        for row in panel:
            x, y, step = (row[name] for name in _SCATTER)
            tip = (
                f"{row['class']}: effect size {number(y)}, accuracy {number(x)}, equalized odds "
                f"{number(step)}"
            )
            marks.append({"x": x, "y": y, "step": step, "tip": tip})
        accuracy = Axis(_SCATTER[0], percent=True, domain=(0.0, 1.0))
        label = f"Accuracy against effect size of each class: {title}"
        steps = ("equalized odds", (0.1, 0.2, 0.3, 0.5))
        yield scatter(marks, label, accuracy, _EFFECT, title=title, steps=steps)


MEDIUM, ACCURATE = 0.3, 0.8
MOST_HIDDEN, MOST_WRONG = 8, 3
_PANEL = ("model", "groups", "version")


def hidden(result: AuditResult) -> Section | None:
    """Return classes that are accurate on average and unequal in their mistakes.

    A class counts with an effect size of at least 0.3 and an accuracy of at least 0.8, or of the
    median of the model's classes if that is lower: at most eight a model and grouping, largest
    effect size first.
    """
    if "classes" not in result.tables:
        return None
    accuracy, effect, count = map(pl.col, ("accuracy", "effect_size", "count"))
    estimable_classes = pl.DataFrame(result.tables["classes"]).filter(
        accuracy.is_finite() & effect.is_finite()
    )
    accuracy_floor = pl.min_horizontal(accuracy.median().over(_PANEL), pl.lit(ACCURATE))
    chosen = estimable_classes.filter((effect >= MEDIUM) & (accuracy >= accuracy_floor)).filter(
        effect.rank("ordinal", descending=True).over(_PANEL) <= MOST_HIDDEN
    )
    top = pl.format("{} ({})", "prediction", count).head(MOST_WRONG)
    wrong = (
        pl.DataFrame(result.tables["confusions"])
        .filter(pl.col("prediction") != pl.col("class"))
        .join(chosen.select(*_PANEL, "class", accuracy, effect), on=[*_PANEL, "class"])
        .sort(count, "prediction", descending=[True, False])
        .group_by(*_PANEL, "class", "group", maintain_order=True)
        .agg(
            pl.first("n"),
            accuracy.first(),
            effect.first(),
            wrong=count.sum(),
            top=top.str.join("; "),
        )
        .with_columns(share=pl.col("wrong") / pl.col("n"))
        .sort(effect, *_PANEL, "class", "share", descending=[True] + [False] * 4 + [True])
    )
    if not len(wrong):
        return None
    text = (
        f"Classes with an effect size of at least {MEDIUM} whose accuracy is at least {ACCURATE}, "
        "or at least the median of the model's classes. A good average hides that groups are "
        "mistaken for different things."
    )
    columns = [
        Column("Class", "class"),
        ACCURACY,
        Column("Effect size", "effect_size", NUMBER),
        Column("Group", "group"),
        Column("n", "n", NUMBER),
        Column("Wrong", "wrong", NUMBER),
        Column("Share", "share", SHARE),
        Column("Most frequent wrong predictions", "top"),
        Column("Model", "model"),
        Column("Attributes", scope_of),
    ]
    caption, wrong_rows = "Wrong predictions by group", wrong.iter_rows(named=True)
    table = Table.of(caption, columns, wrong_rows, source="confusions")
    return Section.of("hidden", "Disparities behind a good average", text, table)


MOST_LINES = 8


def thresholds(result: AuditResult) -> Section | None:
    """Return the rates of each group over thresholds, and where verdicts hold."""
    curve_rows = rows(result, "threshold_curves")
    if not curve_rows:
        return None
    text = (
        "Scores from the threshold on count as positive. Each curve is a rate of one group at "
        "every threshold. The table says how far the threshold can move before a verdict changes."
    )
    curve_panels = panels(curve_rows, "model", "groups")
    charts = [
        _curve(metric_rows, f"{model}, {groups}")
        for (model, groups), panel in [*curve_panels.items()][:MOST_PANELS]
        for metric_rows in panels(panel, "metric").values()
    ]
    columns = [
        Column("Metric", title_of),
        Column("Verdict", lambda row: verdict_title(Verdict(row["verdict"]))),
        Column("Threshold", "threshold", NUMBER),
        Column("Verdict holds", ("low", "high"), NUMBER),
        Column("Scores", ("least", "most"), NUMBER),
        Column("Model", "model"),
        Column("Attributes", "groups"),
    ]
    verdicts = rows(result, "threshold_verdicts")
    table = Table.of("Thresholds at which verdicts hold", columns, verdicts,
                     source="threshold_verdicts")  # fmt: skip
    return Section.of("thresholds", "Results over thresholds", text, charts, table)


def _curve(curve_rows: Sequence[Row], panel_name: str) -> Chart:
    groups, share = distinct(curve_rows, "group")[:MOST_LINES], curve_rows[0]["metric"] != "cost"
    name = title_of(curve_rows[0]) if share else "Cost of an average row"
    marks = [
        {"x": row["threshold"], "value": row["value"], "series": row["group"],
         "tip": f"{row['group']}: {(percent if share else number)(row['value'])} from "
         f"{number(row['threshold'])} on, n = {row['n']}"}
        for row in curve_rows
        if row["group"] in groups and has(row["value"])
    ]  # fmt: skip
    title = f"{name}: {panel_name}"
    y_axis = Axis(name.lower(), percent=share, domain=(0.0, 1.0) if share else None)
    label = f"{name} of each group over the threshold: {panel_name}"
    return curves(marks, label, Axis("threshold"), y_axis, title=title, series=groups, marks=False)


planted = TableSection(
    name="planted",
    heading="Ground truth against audit results",
    caption="Effect size by class, this audit and the paper",
    source="planted",
    columns=[
        Column("Model", "model"),
        Column("Removed from", "removed"),
        Column("Strength", "strength"),
        Column("Class", "class"),
        Column("Bias", lambda row: "planted" if row["planted"] else ""),
        Column("Audit", "found_effect_size", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("Paper", "paper_effect_size", NUMBER),
        *_GAPS,
    ],
    text=(
        "Training images of one class and colour were removed on purpose, so the truth is known: "
        "the effect size should be high for that class and near 0 for the others."
    ),
)


_GAP: Selector = ("accuracy", Aggregate.DIFFERENCE, "overall")
PAGE = Page(
    leads=(
        "accuracy", _GAP, "equalized_odds", "selection_rate", "demographic_parity",
    ),
    by_group=(
        _GAP, "hit_rate", "unanswered_rate", *(rate.name for rate in CURVES),
        *((name, Aggregate.DIFFERENCE) for name in metrics_of(ScoreMetric, KIND)),
    ),
    subjects="classes",
    sections=(
        planted, thresholds, calibration, class_effects, bands, accuracy_and_effect, over_models,
        sweep, hidden,
    ),
    facts=facts,
    commands=("causes", "compare"),
)  # fmt: skip
