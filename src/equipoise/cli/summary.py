"""A result on the terminal: what was found, the numbers, and where to read on."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
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


def _fact(finding: Finding) -> dict[str, Any]:
    names = (
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
    )
    rest = ("excess", "p_value", "q_value", "n", "direction", "verdict", "reason")
    return {name: getattr(finding, name) for name in (*names, *rest)} | {"verdict": _word(finding)}


def show(result: AuditResult, run: Path) -> None:
    """Print a result for a reader at the terminal."""
    _show_disparities(result)
    _show_numbers(result)
    show_end(result, run)


def show_end(result: AuditResult, run: Path) -> None:
    """Print what to know about a result, its verdicts, and where it is."""
    for text in result.manifest.notes:
        say(f"note: {text}")
    say()
    for line in _verdict_lines(result):
        say(line)
    say(f"report: {run / 'report.html'}")


def _verdict_lines(result: AuditResult) -> Iterable[str]:
    """Count verdicts; of several models each on a line, since they may differ in every way."""
    models = [*dict.fromkeys(finding.model for finding in result.findings)]
    if not models:
        yield "verdicts: no findings"
    for model in models:
        own = [finding for finding in result.findings if finding.model == model]
        counted = ", ".join(f"{n} {verdict}" for verdict, n in _verdicts(own).items())
        whose = f" of {model or 'no model'}" if len(models) > 1 else ""
        yield f"verdicts{whose}: {counted}"


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


def _show_disparities(result: AuditResult) -> None:
    from equipoise.report.words import sentence

    found = [finding for finding in _overall(result) if finding.verdict == "disparity"]
    said = [*dict.fromkeys(map(sentence, sorted(found, key=_weight, reverse=True)))]
    for text in said[:_LISTED]:
        say(f"- {text}")
    if len(said) > _LISTED:
        say(f"  and {len(said) - _LISTED} more in the report")
    if said:
        say()


def _weight(finding: Finding) -> float:
    """How far beyond what matters a finding is: its excess in units of its threshold."""
    weight = finding.excess / finding.threshold if finding.threshold > 0 else finding.excess
    return -math.inf if math.isnan(weight) else weight


# The column that is left out where no finding is about a part.
_ABOUT = 3


def _show_numbers(result: AuditResult) -> None:
    rows = [*_rows(_overall(result))]
    if rows:
        columns = ("model", "groups", "metric", "about", "value", "interval", "chance", "verdict")
        named = [
            place for place in range(len(columns)) if place != _ABOUT or any(r[place] for r in rows)
        ]
        say_table([columns[p] for p in named], [[row[p] for p in named] for row in rows])
        say()


def _rows(findings: Sequence[Finding]) -> Iterable[tuple[str, ...]]:
    from equipoise.core.wording import shortened
    from equipoise.report.text import interval, number

    times = Counter(_place(finding) for finding in findings)
    for finding in findings:
        yield (
            finding.model,
            finding.groups,
            _name(finding, twice=times[_place(finding)] > 1),
            shortened(finding.subject),
            number(finding.value),
            interval(finding.ci_low, finding.ci_high),
            number(finding.chance),
            str(finding.verdict),
        )


def _place(finding: Finding) -> tuple[str, ...]:
    return finding.model, finding.groups, finding.metric, finding.subject, finding.version


def _name(finding: Finding, *, twice: bool) -> str:
    """Name the metric, and where it stands twice what its test keeps fixed."""
    version = "" if finding.version == "default" else f" ({finding.version})"
    kept = ", within class" if twice and "within" in finding.null else ""
    return f"{finding.metric}{kept}{version}"
