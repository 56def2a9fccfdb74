"""A result on the terminal: what was found, the numbers, and where to read on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.cli.terminal import say, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult, Finding

_LISTED = 5
_PARTS = 20


def facts(result: AuditResult, run: Path) -> dict[str, Any]:
    """Return what `--json` prints about a run."""
    return {
        "run": run,
        "report": run / "report.html",
        "verdicts": _verdicts(result.findings),
        "findings": [_fact(finding) for finding in _overall(result)],
        "notes": result.manifest.notes,
    }


_FACTS = [
    "model",
    "metric",
    "subject",
    "groups",
    "version",
    "null",
    "value",
    "ci_low",
    "ci_high",
    "chance",
    "excess",
    "p_value",
    "q_value",
    "n",
    "direction",
    "reason",
]


def _fact(finding: Finding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in _FACTS} | {"verdict": _word(finding)}


def show(result: AuditResult, run: Path) -> None:
    """Print a result for a reader at the terminal."""
    from equipoise.core.wording import shortened
    from equipoise.report.text import interval, number
    from equipoise.report.words import sentence

    overall = _overall(result)
    worst = sorted(
        (finding for finding in overall if finding.verdict == "disparity"),
        key=_weight,
        reverse=True,
    )
    texts = [*dict.fromkeys(map(sentence, worst))]
    for text in texts[:_LISTED]:
        say(f"- {text}")
    if len(texts) > _LISTED:
        say(f"  and {len(texts) - _LISTED} more in the report")
    if texts:
        say()
    if overall:
        rows = [
            (
                finding.model,
                finding.groups,
                _name(finding),
                shortened(finding.subject),
                number(finding.value),
                interval(finding.ci_low, finding.ci_high),
                number(finding.chance),
                finding.verdict,
            )
            for finding in overall
        ]
        columns = "model groups metric about value interval chance verdict"
        say_table(columns.split(), rows)
        say()
    show_end(result, run)


def show_end(result: AuditResult, run: Path) -> None:
    """Print what to know about a result, its verdicts, and where it is."""
    for text in result.manifest.notes:
        say(f"note: {text}")
    say()
    # Models may differ in every way.
    for model in dict.fromkeys(finding.model for finding in result.findings):
        own = [finding for finding in result.findings if finding.model == model]
        counted = ", ".join(f"{n} {verdict}" for verdict, n in _verdicts(own).items())
        say(f"verdicts of {model or 'no model'}: {counted}")
    say(f"report: {run / 'report.html'}")


def _overall(result: AuditResult) -> list[Finding]:
    """Return the findings about a whole; where there is none, the weightiest about parts."""
    from equipoise.report.words import ranked

    whole = [f for f in result.findings if not f.subject or f.family == "composite"]
    return whole or ranked(result.findings)[:_PARTS]


def _verdicts(findings: Iterable[Finding]) -> dict[str, int]:
    return dict(Counter(map(_word, findings)).most_common())


def _word(finding: Finding) -> str:
    from equipoise.report.comparison import is_comparison
    from equipoise.report.names import verdict_word

    return verdict_word(finding.verdict, comparison=is_comparison(finding))


def _weight(finding: Finding) -> float:
    """How far beyond what matters a finding is: its excess in units of its threshold."""
    weight = finding.excess / finding.threshold if finding.threshold > 0 else finding.excess
    return -math.inf if math.isnan(weight) else weight


def _name(finding: Finding) -> str:
    """Name the metric, its version, and what its test keeps fixed."""
    version = "" if finding.version == "default" else f" ({finding.version})"
    kept = ", within class" if "within each true class" in finding.null else ""
    return f"{finding.metric}{kept}{version}"
