"""A run: measured with progress, written with the page of its kind, shown on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from equipoise import report
from equipoise.audits import runs
from equipoise.audits.findings import manifest_of
from equipoise.cli.terminal import say, say_table, say_values
from equipoise.core import AuditResult, Family, Finding, NullHypothesis
from equipoise.core.estimate import name_with
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import shortened
from equipoise.report.blocks import Page
from equipoise.report.text import interval, number, verdict_key, verdict_title
from equipoise.report.words import is_comparison, ranked, sentence, shown_verdict

if TYPE_CHECKING:
    from equipoise.mitigate.running import Assessment


def page_of(result: AuditResult) -> Page:
    """Return the page of a result."""
    if "augmentation" in result.tables:
        from equipoise.mitigate.page import AUGMENTATION

        return AUGMENTATION
    if "neurons_sweep" in result.tables:
        from equipoise.mitigate.neurons.page import PAGE as COMPONENTS

        return COMPONENTS
    if "mitigation_recipes" in result.tables:
        from equipoise.mitigate.page import PAGE

        return PAGE
    return runs.page_of(result)


def result_of(
    assessment: Assessment,
    *,
    config: Mapping[str, Json],
    resolved: Mapping[str, Json],
    inputs: Mapping[str, FileFacts],
    counts: Mapping[str, Json],
    seconds: float,
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Return the findings, tables and record of a run; see `manifest_of`."""
    from equipoise.mitigate.running import findings_of, notes_of, tables_of

    notes = (*notes_of(assessment), *notes)
    manifest = manifest_of(
        config=config,
        resolved=resolved,
        inputs=inputs,
        counts=counts,
        seed=int(cast("int", resolved["seed"])),
        seconds=seconds,
        notes=notes,
    )
    return AuditResult(findings_of(assessment), manifest, tables_of(assessment))


def write(result: AuditResult, folder: Path) -> None:
    """Write a run with the page of its kind; see `report.write`."""
    report.write(result, folder, page_of(result))


_LISTED = 5
_PARTS = 20


def facts(result: AuditResult, run: Path) -> dict[str, Any]:
    """Return what `--json` prints about a run."""
    return {
        "run": run,
        "report": run / "report.html",
        "verdicts": _verdicts(result.findings),
        "findings": [asdict(finding) | {"verdict": _word(finding)} for finding in _overall(result)],
        "warnings": result.manifest.warnings,
        "notes": result.manifest.notes,
    }


def show(result: AuditResult, run: Path) -> None:
    """Print a result for a reader at the terminal."""
    overall = _overall(result)
    worst = ranked(finding for finding in overall if finding.verdict == "disparity")
    for text in [*dict.fromkeys(map(sentence, worst))][:_LISTED]:
        say(f"- {text}")
    if overall:
        say()
        rows = [
            (
                finding.model,
                finding.groups,
                _name(finding),
                shortened(finding.subject),
                number(finding.value),
                interval(finding.ci_low, finding.ci_high),
                number(finding.chance),
                shown_verdict(finding),
            )
            for finding in overall
        ]
        columns = "model groups metric about value interval chance verdict"
        say_table(columns.split(), rows)
        say()
    show_end(result, run)


def show_end(result: AuditResult, run: Path) -> None:
    """Print warnings, notes and verdicts of a result, and its folder."""
    say_values({"warnings": result.manifest.warnings, "notes": result.manifest.notes})
    say()
    # Models may differ in every way.
    for model in dict.fromkeys(finding.model for finding in result.findings):
        model_findings = [finding for finding in result.findings if finding.model == model]
        counted = ", ".join(f"{n} {title}" for title, n in _titles(model_findings).items())
        say(f"verdicts of {model or 'no model'}: {counted}")
    say(f"report: {run / 'report.html'}")


def _overall(result: AuditResult) -> list[Finding]:
    """Return findings over all subjects and groups; else the weightiest ones."""
    overall = [
        finding
        for finding in result.findings
        if not (finding.subject or finding.group) or finding.family == "composite"
    ]
    return overall or ranked(result.findings)[:_PARTS]


def _verdicts(findings: Iterable[Finding]) -> dict[str, int]:
    counted = (finding for finding in findings if finding.family is not Family.FOLD)
    return dict(Counter(map(_word, counted)).most_common())


def _titles(findings: Iterable[Finding]) -> dict[str, int]:
    """Count findings by the verdict that people read."""
    counted = (finding for finding in findings if finding.family is not Family.FOLD)
    titles = (verdict_title(f.verdict, comparison=is_comparison(f)) for f in counted)
    return dict(Counter(titles).most_common())


def _word(finding: Finding) -> str:
    return verdict_key(finding.verdict, comparison=is_comparison(finding))


def _name(finding: Finding) -> str:
    """Return the metric with its version and the condition of its test."""
    version = "" if finding.version == "default" else f" ({finding.version})"
    condition = ", within class" if finding.null is NullHypothesis.WITHIN_CLASS else ""
    return f"{name_with(finding.metric, finding.aggregate)}{condition}{version}"
