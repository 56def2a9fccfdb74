"""What a report and the terminal say of training on mixed and noisy faces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.sections.tables import has
from equipoise.report.text import interval, number

ARMS = ("biased", "partial mixing", "uniform noise", "balanced")
"""Columns of the table, as in Table 10.1 of Mandal 2024."""


def accuracies(result: AuditResult) -> list[tuple[str, ...]]:
    """Return a row for each network: its name, and its accuracy after each training."""
    found: dict[str, dict[str, Any]] = {}
    for row in result.tables["augmentation"].to_pylist():
        found.setdefault(row["network"], {})[row["arm"]] = row
    return [(name, *(_cell(arms[arm]) for arm in ARMS)) for name, arms in found.items()]


def _cell(row: dict[str, Any]) -> str:
    return f"{number(row['accuracy'])} {interval(row['low'], row['high'])}"


def distances(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return network, arm, Accuracy Difference, its two intervals and percentage of each row."""
    return [
        (
            row["network"], row["arm"], number(row["difference"]),
            interval(row["difference_low"], row["difference_high"]),
            interval(row["runs_low"], row["runs_high"]),
            f"{number(row['percent_difference'], 1)} %",
        )
        for row in rows
        if has(row["difference"])
    ]  # fmt: skip
