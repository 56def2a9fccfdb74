"""The chart of a mitigation: a measure before and after each recipe or edit."""

from collections.abc import Iterator, Sequence

from equipoise.core import Finding
from equipoise.core.conclusion import Conclusion, Standing
from equipoise.metrics.spec import spec_for
from equipoise.report.blocks import Chart, Role, Statement, has
from equipoise.report.chart_records import ChartMark, ChartRecord, Form, Scale
from equipoise.report.forms import draw
from equipoise.report.leading_chart import MOST_ROWS
from equipoise.report.text import enclose
from equipoise.report.words import sized

BEFORE, AFTER = "before", "after"


def chart_of_changes(statements: Sequence[Statement]) -> Chart | None:
    """Join the values before and after, in a row for each recipe with the measure that leads.

    Parameters
    ----------
    statements : sequence of Statement
        About changes, the one that leads first.

    Returns
    -------
    Chart or None
        None where no statement has a change.
    """
    changes = [
        (statement.finding, statement.conclusion)
        for statement in statements
        if statement.finding is not None and statement.conclusion is not None
        and statement.conclusion.standings
    ]  # fmt: skip
    if not changes:
        return None
    first, _ = changes[0]
    same = [pair for pair in changes if _measure_of(pair[0]) == _measure_of(first)][:MOST_ROWS]
    marks = [mark for finding, conclusion in same for mark in _marks(finding, conclusion)]
    marks = [mark for mark in marks if has(mark.value)]
    if not marks:
        return None
    spec = spec_for(first.metric, first.aggregate, first.compared_to)
    label = spec.label[:1].upper() + spec.label[1:]
    return draw(ChartRecord(
        form=Form.DUMBBELL,
        title=f"{label}{enclose(' over ', first.groups)}",
        marks=tuple(marks),
        scale=Scale.SHARE if spec.unit in ("share", "points") else Scale.NUMBER,
        names={"label": "change", "series": "time"},
        note="Circle: before. Square: after. Grey: no change was found.",
    ))  # fmt: skip


def _measure_of(finding: Finding) -> tuple[str, str]:
    return finding.metric, finding.groups


def _marks(finding: Finding, conclusion: Conclusion) -> Iterator[ChartMark]:
    """Yield the marks of a row, in the colour of the better or the worse value."""
    for standing in sorted(conclusion.standings, key=_is_after):
        role: Role = ""
        if conclusion.real:
            role = "worse" if standing == conclusion.standings[-1] else "other"
        yield ChartMark(
            label=finding.model,
            name=AFTER if _is_after(standing) else BEFORE,
            value=standing.value,
            n=finding.n,
            role=role,
            text=sized(finding, standing.value),
        )


def _is_after(standing: Standing) -> bool:
    return standing.model != BEFORE
