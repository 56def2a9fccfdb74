"""Page of a study of components."""

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import (
    Chart,
    Page,
    Row,
    Section,
    Statement,
    Summary,
    Table,
    TableSection,
    distinct,
    panels,
    rows,
)
from equipoise.report.plots import Axis, intervals, labelled_points, scatter
from equipoise.report.text import interval, number, p_value, percent

_BIAS, _PRICES = "differential_association", ("accuracy", "text_recall_at_1")
_LOSS, _NEARLY = 0.02, 0.9


def statements(result: AuditResult) -> list[str]:
    """Say for each kind which change takes most of the association, at two points of accuracy."""
    texts = []
    for (kind,), panel in panels(rows(result, "neurons_sweep"), "kind").items():
        lost = {row["units"]: row["difference"] for row in panel if row["measure"] == _PRICES[0]}
        changes = [row for row in panel if row["measure"] == _BIAS]
        cheap = [row for row in changes if lost.get(row["units"], 0.0) >= -_LOSS] or changes
        falls = [abs(row["before"]) - abs(row["after"]) for row in cheap]
        # The fewest components that take nine tenths of the largest share away.
        enough = min(max(falls), _NEARLY * max(falls))
        row = next(row for row, fall in zip(cheap, falls, strict=True) if fall >= enough)
        text = (
            f"Changing {row['units']} of the {kind} takes "
            f"{percent(1.0 - abs(row['after'] / row['before']))} of the association away: "
            f"{number(row['before'])} to {number(row['after'])} "
            f"{interval(row['after_low'], row['after_high'])}."
        )
        if row["p_value"] is not None:
            text += (
                f" As many random ones of the same layers change it by {number(row['random'])} "
                f"{interval(row['random_low'], row['random_high'])}, "
                f"p\u00a0{p_value(row['p_value'])}."
            )
        if lost:
            points = f"{100 * lost[row['units']]:+.1f}".replace("-", "−")
            text += f" Accuracy changes by {points} points."
        texts.append(text)
    return texts


def sweep(result: AuditResult) -> Section | None:
    """Show bias against accuracy and recall as more components change, beside random ones."""
    found = rows(result, "neurons_sweep")
    columns = {
        "Kind": "kind", "#Changed": "units", "Measure": _words, "#Before": "before",
        "#After": "after", "#Difference": "difference",
        "#Interval": "difference_low difference_high", "#Random": "random",
        "#Middle 95 %": "random_low random_high", "#p": "p_value", "Edit": "edit",
    }  # fmt: skip
    note = (
        "Across: the association that is left; up: accuracy or recall. “edited:” and the file of "
        "an edit name the changed model in any audit."
    )
    table = Table.of("Edited models on withheld images", columns, found, source="neurons_sweep")
    charts = [_traded(found, measure) for measure in _PRICES]
    return Section.of("sweep", "Bias and price of the edits", note, charts, table)


def _words(row: Row) -> str:
    return str(row["measure"]).replace("_", " ")


def _traded(found: Sequence[Row], measure: str) -> Chart:
    marks = []
    for (kind, units), panel in panels(found, "kind", "units").items():
        own = {row["measure"]: row for row in panel}
        if measure not in own:
            continue
        for series, key in ((kind, "difference"), (f"random {kind}", "random")):
            x, y = (one["before"] + one[key] for one in (own[_BIAS], own[measure]))
            tip = f"{units} {series}: {number(x)}, {number(y)}"
            marks.append({"series": series, "x": x, "y": y, "tip": tip})
    name = measure.replace("_", " ")
    label = f"{name} over the association that is left, for each number of components."
    axes = Axis("association left", zero=True), Axis(name)
    return scatter(marks, label, *axes, series=distinct(marks, "series"), title=name)


def parts(result: AuditResult) -> Section | None:
    """Show what each head and MLP contributes to the association."""
    marks = labelled_points(rows(result, "neurons_parts"), "part", series=lambda _: "")
    label = "Contribution of each head and MLP to the association, with its interval."
    note = "Contributions of all parts sum to the association. Lines: 95 % intervals over images."
    chart = intervals(marks, label, Axis(zero=True))
    return Section.of("parts", "Contributions of heads", note, chart) if marks else None


COMPONENTS = TableSection(
    name="components",
    heading="Components that respond to a group",
    text="Chosen on one half of the images and tested on the other. AUROC: the probability that a "
    "component is more active on an image of the group than on one of the others; 0.5 by chance. "
    "A component that knows the group need not carry the association.",
    caption="Components",
    source="neurons_components",
    columns={
        "Component": "component", "Kind": "kind", "Group": "group", "#AUROC": "auroc",
        "#On the chosen half": "auroc_chosen", "#p": "p_value", "#q": "q_value",
        "%Share of the association": "share",
    },
)  # fmt: skip


def _summary(result: AuditResult) -> Summary:
    texts = statements(result) or ["No component responds to a group beyond chance."]
    step = "Audit the edited model (“edited:” and the file) on your own data before you use it."
    return Summary(tuple(Statement(None, text) for text in texts), steps=(step,))


PAGE = Page(
    subjects="components",
    front=(sweep, parts, COMPONENTS),
    summary=_summary,
    noun="Components",
    judged=False,
)
