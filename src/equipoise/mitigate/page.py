"""Pages of a mitigation, and of training on mixed and noisy faces."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equipoise.core import AuditResult, Finding
from equipoise.mitigate.augmentation.changes import ARMS
from equipoise.mitigate.measuring import ACCURACY, HALFWAY, MARGIN, name_measure
from equipoise.report.blocks import (
    NUMBER,
    P_VALUE,
    Chart,
    Column,
    Fold,
    Page,
    Row,
    Section,
    Summary,
    Table,
    TableSection,
    distinct,
    has,
    panels,
    rows,
)
from equipoise.report.change_chart import chart_of_changes
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.plots import Axis, intervals, scatter
from equipoise.report.summary import statements_of
from equipoise.report.text import interval, listed, number, percent
from equipoise.studies.page import source_tables

_CONCLUSIONS = {
    "transfers": "{} transfers",
    "price not measured": "The price of {} wasn't measured",
    "transfers in part": "{} transfers in part",
    "not enough data": "Whether {} transfers is unknown",
    "costs too much": "{} costs too much",
    "does not transfer": "{} does not transfer",
}


def conclusion(row: Mapping[str, str]) -> str:
    """Return the conclusion about a recipe (row of `mitigation_recipes`) as text."""
    return f"{_CONCLUSIONS[row['conclusion']].format(row['recipe'])}: {row['sentence']}."


def _title(row: Row) -> str:
    name = name_measure(row["measure"])
    return name[0].upper() + name[1:]


def price(result: AuditResult) -> Section | None:
    """Show how far each disparity fell, over the loss of accuracy and recall."""
    changes = rows(result, "mitigation")
    if not changes:
        return None
    note = (
        "Across: the share by which a disparity of withheld subjects fell; 1 is the level of a "
        "model without the bias if one was given, else 0. Up: change in zero-shot accuracy, in "
        "points. Dashed lines: halfway, and two points lost. A recipe that transfers is to the "
        "right of the first and above the second. Lines: 95 % intervals over subjects and images. "
        "A disparity that isn't clearly above that level before has no mark."
    )
    columns = [
        Column("Recipe", "recipe"),
        Column("Measure", _title),
        Column("Over", "about"),
        Column("Before", "before", NUMBER),
        Column("After", "after", NUMBER),
        Column("Difference", "difference", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("p", "p_value", P_VALUE),
        Column("q", "q_value", P_VALUE),
        Column("Floor", "floor", NUMBER),
        Column("Of the way", "share", NUMBER),
        Column("Its interval", ("share_low", "share_high"), NUMBER),
        Column("n", "n", NUMBER),
    ]
    plots = _plots(changes)
    tables = []
    for role, caption in (
        ("bias", "Disparities of withheld subjects, before and after"),
        ("utility", "Accuracy and recall, before and after"),
    ):
        role_changes = [row for row in changes if row["role"] == role]
        tables.append(Table.of(caption, columns, role_changes))
    title = "Change in disparities and its price"
    return Section.of("price", title, note if plots else None, plots, *tables)


def _plots(changes: Sequence[Row]) -> tuple[Chart, ...]:
    accuracy = {row["recipe"]: row for row in changes if row["measure"] == ACCURACY}
    biases = [row for row in changes if row["role"] == "bias" and row["recipe"] in accuracy]
    axes = Axis("share of the way to the floor"), Axis("change in accuracy (points)")
    rules = (("x", HALFWAY), ("y", -100 * MARGIN))
    plots = []
    for (_, about), panel in panels(biases, "measure", "about").items():
        marks = []
        for row in panel:
            share = [row["share"], row["share_low"], row["share_high"]]
            if math.isnan(share[0]) and math.isnan(row["floor"]) and row["before"] > 0:
                share = [-row[name] / row["before"] for name in ("difference", "high", "low")]
            if math.isnan(share[0]):
                continue
            cost = accuracy[row["recipe"]]
            marks.append({
                "series": row["recipe"], "x": share[0], "x_low": share[1], "x_high": share[2],
                "y": 100 * cost["difference"], "y_low": 100 * cost["low"],
                "y_high": 100 * cost["high"],
                "tip": f"{row['recipe']}: {number(row['before'])} to {number(row['after'])}",
            })  # fmt: skip
        if marks:
            title = f"{_title(panel[0])}, {about}"
            label = f"How far recipes lowered {title} of withheld subjects, over lost accuracy."
            recipes = distinct(changes, "recipe")
            plots.append(scatter(marks, label, *axes, title=title, series=recipes, rules=rules))
    return tuple(plots)


subjects = TableSection(
    name="subjects",
    heading="Withheld subjects before and after",
    caption="Withheld subjects",
    source="mitigation_subjects",
    columns=[
        Column("Subject", "subject"),
        Column("Recipe", "recipe"),
        Column("Measure", _title),
        Column("Over", "about"),
        Column("Before", "before", NUMBER),
        Column("After", "after", NUMBER),
        Column("Floor", "floor", NUMBER),
        Column("Fold", "fold", NUMBER),
    ],
)


def _summary(result: AuditResult) -> Summary:
    recipes = {row["recipe"]: row for row in rows(result, "mitigation_recipes")}
    order = [conclusion.model for conclusion in result.conclusions]
    statements = tuple(
        replace(statement, agreement=conclusion(recipes[statement.finding.model]))
        for statement in sorted(statements_of(result), key=lambda s: _place(s.finding, order))
        if statement.finding
    )
    works = [row["recipe"] for row in recipes.values() if row["conclusion"] == "transfers"]
    if works:
        step = f"Audit a model with {listed(works)} on your own data before you use it."
    else:
        step = "Try again with more subjects, or choose another model (“equipoise compare”)."
    caveat = (
        "A recipe transfers if disparities about new subjects fall by at least "
        f"{100 * HALFWAY:.0f} % of the way to the floor, and accuracy and recall fall by at most "
        f"{100 * MARGIN:.0f} points. “Limitations” describes the floor."
    )
    plots = _plots(rows(result, "mitigation"))[:1]
    chart = chart_of_changes(statements) or next(iter(plots), None)
    verdict = statements[0].certainty if statements else ""
    return Summary(statements, chart, (step,), caveat, verdict=verdict)


def _place(finding: Finding | None, models: Sequence[str]) -> int:
    """Return the place of a finding's model; those without come last."""
    return models.index(finding.model) if finding and finding.model in models else len(models)


PAGE = Page(
    subjects="recipes",
    front=(price, source_tables),
    sections=(subjects,),
    summary=_summary,
    noun="Mitigation",
    judged=False,
)

_DISTANCE = (
    "Δ is how far an accuracy is from that after balanced images, without a sign; %Δ is its share "
    "of the latter. Intervals over images are of these very networks on other test images; those "
    "over runs are of training them again. A mean Δ of runs is above 0 where runs differ by luck "
    "alone."
)
_ASSOCIATION = (
    "Image-image association of the features: how much closer images of a class are to one "
    "group than to the other. Faces of the groups are whole; faces of the class are whole or "
    "covered. A shift that all classes with covered faces share comes from the cover, which may "
    "look more like one group. Differences between them don't come from the face. The sum of "
    "sizes is over classes. There is no verdict."
)


_VERSIONS = {
    "default": "Δ",
    "percent": "%Δ",
    "runs": "mean Δ of runs",
    "percent, runs": "mean %Δ of runs",
}
_FAMILIES = [
    Column("Of", "of"),
    Column("Number", "number"),
    Column("Value", "value", NUMBER),
    Column("Over images", ("low", "high"), NUMBER),
]
_MEANS = [
    Column("Trained network or family", "model"),
    Column("Class", "class"),
    Column("Faces", "faces"),
    Column("Association", "value", NUMBER),
    Column("Over runs", ("low", "high"), NUMBER),
]
_DISTANCES = [
    Column("Network", "network"),
    Column("Trained on", "arm"),
    Column("Δ", "difference", NUMBER),
    Column("Over images", ("difference_low", "difference_high"), NUMBER),
    Column("Over runs", ("runs_low", "runs_high"), NUMBER),
    Column("%Δ", "percent_difference", NUMBER),
    Column("%Δ over images", ("percent_low", "percent_high"), NUMBER),
]
_ASSOCIATIONS = [
    Column("Network", "network"),
    Column("Trained on", "arm"),
    Column("Run", "run", NUMBER),
    Column("Class", "class"),
    Column("Faces", "faces"),
    Column("Association", "value", NUMBER),
    Column("Interval", ("low", "high"), NUMBER),
    Column("By chance", ("chance_low", "chance_high"), NUMBER),
    Column("p", "p_value", P_VALUE),
    Column("Closer to", "towards"),
]
_IMAGES = [
    Column("Images", "images"),
    Column("Label", "class"),
    Column("Group", "group"),
    Column("Number", "count", NUMBER),
]
_MISSING = [
    Column("Images", "images"),
    Column("Group", "group"),
    Column("Without", "without", NUMBER),
    Column("Of", "of", NUMBER),
]


def accuracies(result: AuditResult) -> list[tuple[str, ...]]:
    """Return the name and the accuracy after each training, by network."""
    table = []
    for (name,), panel in panels(rows(result, "augmentation"), "network").items():
        cells = [name]
        for row in panel:
            cells.append(f"{number(row[ACCURACY])} {interval(row['low'], row['high'])}")
        table.append(tuple(cells))
    return table


def augmentation(result: AuditResult) -> Section | None:
    """Show accuracy after each training, its gap to balanced training, associations."""
    trained = rows(result, "augmentation")
    if not trained:
        return None
    intro = (
        "Every network is trained on each set of images, several times, and tested on the "
        "same images. Training on balanced images is the reference. Always naming the most "
        f"frequent class is right on {percent(trained[0]['chance'])}. Intervals are over training "
        "runs and test images."
    )
    form = "Accuracy on the test images, by training images, in the form of Mandal 2024, Table 10.1"
    arms = [arm for arm in ARMS if arm in distinct(trained, "arm")]
    by_arm = [Column("Network"), *(Column(arm.capitalize(), format=NUMBER) for arm in arms)]
    folds = (
        Fold(title, (Table.of(title, columns, rows(result, name)),))
        for title, columns, name in (
            ("Associations of classes in each run", _ASSOCIATIONS, "augmentation_associations"),
            ("Images of each label and group", _IMAGES, "augmentation_images"),
            ("Images without a face, which stay unchanged", _MISSING, "faces_missing"),
        )
        if rows(result, name)
    )
    return Section.of(
        "augmentation",
        "Training on changed faces",
        intro,
        Table.of(form, by_arm, accuracies(result)),
        Table.of(
            "Accuracy Difference from training on balanced images",
            _DISTANCES,
            [row for row in trained if has(row["difference"])],
        ),
        Table.of("Accuracy Difference of networks and families", _FAMILIES, _differences(result)),
        _DISTANCE,
        Table.of("Associations of classes with groups, mean over runs", _MEANS, _means(result)),
        _ASSOCIATION,
        *folds,
    )


def _differences(result: AuditResult) -> list[dict[str, object]]:
    """Return Accuracy Differences of networks and families, in each version."""
    return [
        {"of": finding.model, "number": _VERSIONS[finding.version], "value": finding.value,
         "low": finding.ci_low, "high": finding.ci_high}
        for finding in result.findings
        if finding.metric == "accuracy_difference"
    ]  # fmt: skip


def _means(result: AuditResult) -> list[dict[str, object]]:
    """Return associations of networks and families, a sum of sizes after the classes."""
    return [
        {"model": finding.model, "class": finding.subject or "sum of sizes",
         "faces": finding.version, "value": finding.value, "low": finding.ci_low,
         "high": finding.ci_high}
        for finding in result.findings
        if finding.audit == "augmentation" and finding.groups
    ]  # fmt: skip


def _chart(trained: Sequence[Row]) -> Chart:
    data = [
        {"label": row["network"], "series": row["arm"], "value": row[ACCURACY],
         "low": row["low"], "high": row["high"],
         "tip": f"{row['network']}, {row['arm']}: {number(row[ACCURACY])}"}
        for row in trained
    ]  # fmt: skip
    label = "Accuracy with its interval for each network and each set of training images."
    axis = Axis("accuracy", percent=True, domain=(0.0, 1.0))
    return intervals(data, label, axis, title="Accuracy on the test images", series=ARMS)


AUGMENTATION = replace(
    COMPARISON,
    noun="Training on changed faces",
    front=(augmentation, source_tables),
    sections=(),
    summary=lambda result: Summary(
        tuple(statement for statement in statements_of(result) if statement.finding),
        _chart(rows(result, "augmentation")),
        ("Train on balanced images where you can; audit each network on data of your own.",),
    ),
)
