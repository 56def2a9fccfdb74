"""The chart of the differences of two models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equipoise.core import Finding, Verdict
from equipoise.report.blocks import Badge, Chart
from equipoise.report.comparison import Pair, oriented, pair_of
from equipoise.report.names import DIFFERENCE, title
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.tables import has
from equipoise.report.words import figures, name_of


def differences_chart(found: Sequence[Finding], *, name: str = "") -> Chart:
    """Draw differences of one pair, right of 0 where the second model is better."""
    known = [(finding, pair) for finding in found if (pair := pair_of(finding))]
    data = [_row(finding, pair) for finding, pair in known]
    sides = f"← better for {known[0][1].first}", f"better for {known[0][1].second} →"
    ends = [abs(row[key]) for row in data for key in ("value", "low", "high") if has(row[key])]
    reach = math.ceil(11 * max(ends, default=0.0)) / 10 or 0.1
    label = f"{name or found[0].model}: differences with intervals, {', '.join(sides)}."
    axis = Axis(sides, domain=(-reach, reach), zero=True)
    verdicts = [*dict.fromkeys(row["series"] for row in data)]
    palette = {DIFFERENCE: VERDICTS[Verdict.DISPARITY.value], **VERDICTS}
    return intervals(data, label, axis, title=name, series=verdicts, palette=palette)


def _row(finding: Finding, pair: Pair) -> dict[str, Any]:
    value, low, high = oriented(finding, pair)
    label = f"{finding.subject}: {name_of(finding)}" if finding.subject else title(finding.metric)
    word = Badge(finding.verdict, comparison=True).word
    worse = f", worse for {pair.worse}" if pair.worse else ""
    return {
        "label": label, "value": value, "low": low, "high": high, "series": word,
        "tip": f"{word}: {label}, {figures(finding)}{worse}",
    }  # fmt: skip
