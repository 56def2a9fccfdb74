"""Page of a study of components."""

from collections.abc import Sequence
from dataclasses import replace

from equipoise.core import AuditResult
from equipoise.mitigate.neurons.concluding import BIAS, PRICES
from equipoise.report.blocks import (
    NUMBER,
    P_VALUE,
    SHARE,
    Chart,
    Column,
    Page,
    Row,
    Section,
    Statement,
    Summary,
    TableSection,
    distinct,
    panels,
    rows,
)
from equipoise.report.change_chart import chart_of_changes
from equipoise.report.plots import Axis, intervals, labelled_points, scatter
from equipoise.report.summary import statements_of
from equipoise.report.text import number
from equipoise.studies.page import source_tables


def trade(result: AuditResult) -> Section | None:
    """Show bias over accuracy and recall by number of components changed."""
    swept = rows(result, "neurons_sweep")
    measured = distinct(swept, "measure")
    charts = [_trade_chart(swept, measure) for measure in PRICES if measure in measured]
    note = "Across: the association that is left; up: accuracy or recall on withheld images."
    return Section.of("trade", "Bias and price of the edits", note, charts) if charts else None


def _trade_chart(swept: Sequence[Row], measure: str) -> Chart:
    marks = []
    several = len(distinct(swept, "mode")) > 1
    for (kind, mode, units), panel in panels(swept, "kind", "mode", "units").items():
        if not units:
            continue
        edited = f"{kind}, {mode}" if several else kind
        by_measure = {row["measure"]: row for row in panel}
        for series, key in ((edited, "difference"), (f"random {edited}", "random")):
            if measure in by_measure and by_measure[BIAS][key] is not None:
                bias, price = by_measure[BIAS], by_measure[measure]
                x, y = bias["before"] + bias[key], price["before"] + price[key]
                tip = f"{units} {series}: {number(x)}, {number(y)}"
                marks.append({"series": series, "x": x, "y": y, "tip": tip})
    name = measure.replace("_", " ")
    label = f"{name} over the association that is left, for each number of components."
    axes = Axis("association left", zero=True), Axis(name)
    return scatter(marks, label, *axes, series=distinct(marks, "series"), title=name)


def parts(result: AuditResult) -> Section | None:
    """Return the contribution of each head and MLP to the association."""
    marks = labelled_points(rows(result, "neurons_parts"), "part", series=lambda _: "")
    label = "Contribution of each head and MLP to the association, with its interval."
    note = "Contributions of all parts sum to the association. Lines: 95 % intervals over images."
    chart = intervals(marks, label, Axis(zero=True))
    return Section.of("parts", "Contributions of heads", note, chart) if marks else None


_SWEEP = TableSection(
    name="sweep",
    heading="Edited models",
    text="“edited:” and the file of an edit name the changed model in any audit.",
    caption="Edited models on withheld images",
    source="neurons_sweep",
    columns=[
        Column("Kind", "kind"),
        Column("Mode", "mode"),
        Column("Changed", "units", NUMBER),
        Column("Measure", "measure"),
        Column("Before", "before", NUMBER),
        Column("After", "after", NUMBER),
        Column("Difference", "difference", NUMBER),
        Column("Interval", ("difference_low", "difference_high"), NUMBER),
        Column("Random", "random", NUMBER),
        Column("Middle 95 %", ("random_low", "random_high"), NUMBER),
        Column("p", "p_value", P_VALUE),
        Column("Edit", "edit"),
    ],
)
_COMPONENTS = TableSection(
    name="components",
    heading="Components that respond to a group",
    text="Chosen on one half of the images and tested on the other. AUROC: the probability that a "
    "component is more active on an image of the group than on one of the others; 0.5 by chance. "
    "A component that knows the group need not carry the association.",
    caption="Components",
    source="neurons_components",
    columns=[
        Column("Component", "component"),
        Column("Kind", "kind"),
        Column("Group", "group"),
        Column("AUROC", "auroc", NUMBER),
        Column("On the chosen half", "auroc_chosen", NUMBER),
        Column("p", "p_value", P_VALUE),
        Column("q", "q_value", P_VALUE),
        Column("Share of the association", "share", SHARE),
        Column("Relevance", "relevance", NUMBER),
    ],
)


def _summary(result: AuditResult) -> Summary:
    statements = tuple(
        replace(statement, agreement=statement.finding.beside)
        for statement in statements_of(result)
        if statement.finding
    )
    step = "Audit the edited model (“edited:” and the file) on your own data before you use it."
    if not statements:
        text = "No component responds to a group beyond chance, so nothing was edited."
        statements = (Statement(None, text),)
        step = "Take more images, or look for other kinds or in other layers."
    caveat = (
        "Association: how much closer one concept is to images of one group than the other "
        "concept is. 0 is none."
    )
    chart, verdict = chart_of_changes(statements), statements[0].certainty
    return Summary(statements, chart, (step,), caveat, verdict=verdict)


PAGE = Page(
    front=(trade, _SWEEP, parts, _COMPONENTS, source_tables),
    summary=_summary,
    noun="Components",
    judged=False,
)
