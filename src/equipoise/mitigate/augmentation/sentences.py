"""What a report and the terminal say of training on mixed and noisy faces."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.tables import has, rows
from equipoise.report.text import count, interval, listed, number, p_value, percent

ARMS = ("biased", "partial mixing", "uniform noise", "balanced")
"""Columns of the table, as in Table 10.1 of Mandal 2024."""

_BALANCED = ARMS[-1]
_SPOKEN = {
    "partial mixing": "partial mixing",
    "uniform noise": "uniform noise",
    _BALANCED: "balanced images",
}
Row = Mapping[str, Any]
_TOLD = 8


def accuracies(result: AuditResult) -> list[tuple[str, ...]]:
    """Return a row for each network: its name, and its accuracy after each training."""
    return [
        (name, *(_cell(arms[arm]) for arm in ARMS)) for name, arms in _by_network(result).items()
    ]


def _by_network(result: AuditResult) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for row in result.tables["augmentation"].to_pylist():
        found.setdefault(row["network"], {})[row["arm"]] = row
    return found


def _cell(row: Row) -> str:
    return f"{number(row['accuracy'])} {interval(row['low'], row['high'])}"


def distances(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return network, arm, Accuracy Difference, its two intervals and percentage of each row."""
    return [
        (
            row["network"], row["arm"], number(row["difference"]),
            interval(row["difference_low"], row["difference_high"]),
            interval(row["runs_low"], row["runs_high"]),
            f"{number(row['percent_difference'], 1)} %",
            interval(row["percent_low"], row["percent_high"], digits=1),
        )
        for row in rows
        if has(row["difference"])
    ]  # fmt: skip


def unequal(result: AuditResult, images: str) -> str:
    """Say how many of each group each class has in a set; empty where they are equally many.

    Parameters
    ----------
    result : AuditResult
    images : str
        biased, balanced or test.
    """
    classes: dict[str, dict[str, int]] = {}
    for row in rows(result, "augmentation_images"):
        if row["images"] == images:
            classes.setdefault(row["class"], {})[row["group"]] = row["count"]
    if all(len({*groups.values()}) == 1 for groups in classes.values()):
        return ""
    told = [
        f"{name}: " + ", ".join(f"{group} {count(n)}" for group, n in groups.items())
        for name, groups in classes.items()
    ]
    more = [f"{len(told) - _TOLD} more in the table below"] if len(told) > _TOLD else []
    return "; ".join([*told[:_TOLD], *more])


def question(result: AuditResult) -> str:
    """Return what was asked."""
    networks = listed([*_by_network(result)])
    return (
        f"Does training on mixed faces, noisy faces or balanced images make {networks} right more "
        "often on the same test images than training on the biased ones as they are?"
    )


def in_short(result: AuditResult) -> list[str]:
    """Say of each network, in a sentence, what helped and what did not, with the gains.

    Trainings without a verdict come last, together, with the reason and no numbers.
    """
    said: dict[str, list[str]] = {}
    unjudged: dict[str, dict[str, list[str]]] = {}
    for network, arm, finding in _judged(result):
        parts = said.setdefault(network, [])
        if finding.verdict == Verdict.NONE:
            reasons = unjudged.setdefault(network, {})
            reasons.setdefault(finding.reason, []).append(_SPOKEN[arm])
        else:
            parts.append(f"{_SPOKEN[arm]} {_word(finding)}, {_gain(finding)}")
    for network, reasons in unjudged.items():
        said[network] += [f"no verdict for {listed(arms)} ({w})" for w, arms in reasons.items()]
    held = "right answers, held against training on the biased images as they are"
    return [f"{network}, {held}: {'; '.join(parts)}." for network, parts in said.items()]


def conclusions(result: AuditResult) -> list[str]:
    """Say of each network and training whether it helped, by how much, and how far it came."""
    found = _by_network(result)
    return [
        f"{network}: {_said(arm, finding)}. {_numbers(found[network], arm, finding)}"
        for network, arm, finding in _judged(result)
    ]


def _judged(result: AuditResult) -> Iterator[tuple[str, str, Finding]]:
    for finding in result.findings:
        known = json.loads(finding.parameters)
        if "arm" in known:
            yield known["network"], known["arm"], finding


def _word(finding: Finding) -> str:
    if finding.verdict == Verdict.DISPARITY:
        return "helped" if finding.value > 0 else "did harm"
    if finding.verdict == Verdict.BELOW_THRESHOLD:
        return "made no difference that matters"
    return "was not shown to help or to harm"


def _said(arm: str, finding: Finding) -> str:
    """Say what a training did, or why that has no verdict."""
    if finding.verdict == Verdict.NONE:
        return f"no verdict for {_SPOKEN[arm]} ({finding.reason})"
    return f"{_SPOKEN[arm]} {_word(finding)}"


def _gain(finding: Finding) -> str:
    """Return the gain in percentage points over the biased images, with its interval."""
    ends = interval(100 * finding.ci_low, 100 * finding.ci_high, digits=1)
    sign = "+" if finding.value > 0 else ""
    return f"{sign}{number(100 * finding.value, 1)} points {ends}"


def _numbers(rows: Mapping[str, Row], arm: str, finding: Finding) -> str:
    own, before = _share(rows[arm]), _share(rows[ARMS[0]])
    said = [
        f"Right on {own} of the test images, on {before} after the biased ones as they are: "
        f"{_gain(finding)}, q\u00a0{p_value(finding.q_value)}."
    ]
    if arm != _BALANCED:
        said.append(_short_of(rows[arm], rows[_BALANCED]))
    if rows[arm]["runs"] == 1:
        said.append("Of one training run, which says nothing of training again.")
    return " ".join(said)


def _share(row: Row) -> str:
    ends = interval(100 * row["low"], 100 * row["high"], digits=1)
    return f"{percent(row['accuracy'])} {ends}"


def _short_of(row: Row, balanced: Row) -> str:
    """Say how far a training stays behind the balanced images, by the wider of its intervals."""
    known = [
        (row[f"{name}_low"], row[f"{name}_high"])
        for name in ("difference", "runs")
        if has(row[f"{name}_low"])
    ]
    low, high = min(one for one, _ in known), max(one for _, one in known)
    ends = interval(100 * low, 100 * high, digits=1)
    apart = f"{number(100 * row['difference'], 1)} points {ends}"
    if low <= 0:
        return f"Not told apart from balanced images, with {apart} between them."
    side = "short of" if row["accuracy"] < balanced["accuracy"] else "beyond"
    return f"That is {apart} {side} balanced images."
