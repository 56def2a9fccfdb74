"""Two models side by side: a table of their values, and a chart of their differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Badge, Chart, Table
from equipoise.report.comparison import Pair, oriented, pair_of
from equipoise.report.names import DIFFERENCE, title
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import number
from equipoise.report.words import figures, name_of

MODELS_AS_COLUMNS = 5


def side_by_side(result: AuditResult) -> list[Table]:
    """Return a table per set of groups: each model's value and rank."""
    found = rows(result, "ranking")
    names = distinct(found, "model")
    columns = ["Metric", *(f"#{name}" for name in names)]
    tables = []
    for (groups,), panel in panels(found, "groups").items():
        values = {(row["metric"], row["model"]): row for row in panel}
        metrics = distinct(panel, "metric")
        cells = [(title(one), *(_ranked(values.get((one, m))) for m in names)) for one in metrics]
        if len(names) > MODELS_AS_COLUMNS:
            cells = [(m, *(_ranked(values.get((one, m))) for one in metrics)) for m in names]
            columns = ["Model", *(f"#{title(one)}" for one in metrics)]
        caption = f"Over {scope(groups, 'default')}: value, and rank in brackets"
        tables.append(Table.of(caption, columns, cells, source="ranking"))
    return tables


def _ranked(row: Mapping[str, Any] | None) -> str:
    if row is None or row["rank"] is None:
        return "–"
    return f"{number(row['value'])} ({row['rank']})"


def differences_chart(found: Sequence[Finding], *, name: str = "") -> Chart:
    """Draw differences of one pair, right of 0 where the second model is better."""
    known = [(finding, pair) for finding in found if (pair := pair_of(finding))]
    data = [_row(finding, pair) for finding, pair in known]
    ends = [abs(row[key]) for row in data for key in ("value", "low", "high")]
    reach = math.ceil(11 * max((end for end in ends if has(end)), default=0.0)) / 10 or 0.1
    sides = _sides(known[0][1])
    label = f"{name or found[0].model}: differences with intervals, {', '.join(sides)}."
    axis = Axis(sides, domain=(-reach, reach), zero=True)
    verdicts = [*dict.fromkeys(row["series"] for row in data)]
    return intervals(data, label, axis, title=name, series=verdicts, palette=_PALETTE)


_PALETTE = {DIFFERENCE: VERDICTS[Verdict.DISPARITY.value], **VERDICTS}


def _sides(pair: Pair) -> tuple[str, str]:
    return f"← left: better for {_short(pair.first)}", f"right: better for {_short(pair.second)} →"


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"


def _row(finding: Finding, pair: Pair) -> dict[str, Any]:
    value, low, high = oriented(finding, pair)
    what = f"{finding.subject}: {name_of(finding)}" if finding.subject else title(finding.metric)
    word = Badge(finding.verdict, comparison=True).word
    worse = f", worse for {pair.worse}" if pair.worse else ""
    return {
        "label": what, "value": value, "low": low, "high": high, "series": word,
        "tip": f"{word}: {what}, {figures(finding)}{worse}",
    }  # fmt: skip
