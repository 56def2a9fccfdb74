"""A run: measured with progress, written with the page of its kind, shown on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import join
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from equipoise import report
from equipoise.audits import runs
from equipoise.audits.findings import manifest_of
from equipoise.audits.studies.claims import claims_of, with_claims
from equipoise.audits.studies.page import count_claims
from equipoise.cli.terminal import say, say_table, say_values
from equipoise.core import AuditResult, Family, Finding, NullHypothesis
from equipoise.core.conclusion import Conclusion
from equipoise.core.estimate import name_with
from equipoise.core.finding import REAL
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import percent, shortened
from equipoise.evidence.examples import FOLDER as EXAMPLES
from equipoise.report.blocks import Badge, Page, Statement, Summary
from equipoise.report.next_steps import Place
from equipoise.report.page_verdicts import conclusions_about_groups, with_page_verdicts
from equipoise.report.result import first_screen
from equipoise.report.short_lines import wanted_data
from equipoise.report.summary import agreement, conclusions_by_model, rankings_of
from equipoise.report.text import count, decimals_of, interval, number, verdict_key, verdict_title
from equipoise.report.words import (
    conclusion_sentence,
    corrected_size,
    has_shares,
    is_comparison,
    ranked,
    shown_verdict,
    worst_first,
)

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
    from equipoise.mitigate.concluding import conclusions_of_recipes
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
    conclusions = conclusions_of_recipes(assessment.rows, assessment.outcomes)
    return with_claims(
        AuditResult(findings_of(assessment), manifest, tables_of(assessment), conclusions)
    )


def write(result: AuditResult, folder: Path, run: Path, *, examples: bool = False) -> None:
    """Write a run into a folder that becomes `run`, with the page of its kind."""
    report.write(result, folder, page_of(result), Place(str(run), examples))


def place_of(run: Path) -> Place:
    """Return where a run lies that is written."""
    return Place(str(run), (run / EXAMPLES).exists())


WIDTH = 80
_MOST_LINES, _MOST_BARS, _MOST_AGREEMENTS, _BAR = 15, 5, 2, 26
_EIGHTHS = " ▏▎▍▌▋▊▉"


def facts(result: AuditResult, run: Path) -> dict[str, Any]:
    """Return what `--json` prints about a run."""
    first, last = rankings_of(result)
    return {
        "run": run,
        "report": run / "report.html",
        "conclusions": [
            {
                **asdict(conclusion),
                "verdict": verdict_key(
                    conclusion.verdict, comparison=bool(conclusion.standings)
                ),
                "sentence": conclusion_sentence(finding, conclusion),
                "correction": corrected_size(finding, conclusion),
                "agreement": agreement(conclusion, result.findings),
                "wanted": wanted_data(finding, conclusion),
            }
            for conclusions in (
                first,
                *conclusions_by_model(result, page_of(result).leads).values(),
                last,
            )
            for conclusion in conclusions
            for finding in [result.findings[conclusion.finding]]
        ],
        **({"claims": claims} if (claims := claims_of(result)) else {}),
        "verdicts": _verdicts(conclusions_about_groups(result, page_of(result).leads)),
        "findings": [
            asdict(finding) | {"verdict": _word(finding)}
            for finding in result.findings
            if finding.tested and (not finding.subject or finding.verdict in REAL)
        ],
        "warnings": result.manifest.warnings,
        "notes": result.manifest.notes,
    }  # fmt: skip


def show(result: AuditResult, run: Path) -> None:
    """Print what a reader at the terminal must know: the conclusions of each model."""
    summary = first_screen(result, page_of(result), place_of(run))
    for text in summary.warnings:
        for line in wrap(f"warning: {text}", WIDTH):
            say(line)
    several = any(rankings_of(result))
    commands = [*_next_commands(summary, run), f"  report {run / 'report.html'}"]
    for statement in summary.statements:
        if several and statement.finding is not None:
            lines = [*_sentence_lines(statement)]
        else:
            lines = [*_lines_of(statement, run, _MOST_LINES - len(commands) - 1), ""]
        for line in lines:
            say(line)
    if several:
        say()
    if claims := count_claims(result):
        say(f"  {claims}")
    for text in commands:
        say(text)


def _sentence_lines(statement: Statement) -> Iterator[str]:
    """Yield what is said of a model, with the verdict."""
    badge = verdict_word(statement.badge)
    first, *lines = wrap(statement.text, WIDTH - 4 - len(badge)) or [""]
    yield f"  {first.ljust(WIDTH - 4 - len(badge))}  {badge}".rstrip()
    for line in lines:
        yield f"  {line}"


def _lines_of(statement: Statement, run: Path, room: int) -> list[str]:
    """Return a statement, its groups and how sure it is; other conclusions where there is room."""
    lines = [*_sentence_lines(statement)]
    lines += [f"  {line}" for line in _bars(statement.finding)]
    lines += [f"  {line}" for line in wrap(statement.certainty, WIDTH - 2)]
    lines += [f"  {line}" for line in wrap(statement.agreement, WIDTH - 2)]
    n_others = len(statement.others)
    for place, remark in enumerate(statement.others):
        text = remark.text
        if n_others <= _MOST_AGREEMENTS and remark.agreement:
            text = f"{text} {remark.agreement}"
        first, *further = wrap(text, WIDTH - 4)
        if further and n_others > _MOST_AGREEMENTS and remark.line:
            first, *further = wrap(remark.line, WIDTH - 4)
        is_last = place == n_others - 1
        if place and len(lines) + 1 + len(further) > room - (not is_last):
            lines.append(f"  · and {n_others - place} more: {join(_show_all_command(run))}")
            break
        lines += [f"  · {first}", *(f"    {line}" for line in further)]
    return lines


def _show_all_command(run: Path) -> tuple[str, ...]:
    return "equipoise", "show", str(run), "--all"


def verdict_word(badge: Badge | None) -> str:
    """Return a verdict as the terminal shows it."""
    if badge is None:
        return ""
    return verdict_title(badge.verdict, comparison=badge.comparison).upper()


def _bars(finding: Finding | None) -> Iterator[str]:
    """Yield a bar for each group of a finding whose groups have shares, the worst first."""
    if finding is None or not finding.by_group or not has_shares(finding):
        return
    parts = worst_first(finding)
    if len(parts) > _MOST_BARS:
        # The group at the other end is what the worst one is compared with.
        parts = [*parts[: _MOST_BARS - 1], parts[-1]]
    width = max((len(shortened(part.group)) for part in parts), default=0)
    digits = decimals_of(part.value for part in parts)
    for part in parts:
        whole, eighths = divmod(round(8 * _BAR * part.value), 8)
        bar = "█" * whole + _EIGHTHS[eighths].strip()
        name = shortened(part.group).ljust(width)
        yield f"{name}  {percent(part.value, digits):>7}  {bar.ljust(_BAR + 1)} n {count(part.n)}"


def _next_commands(summary: Summary, run: Path) -> Iterator[str]:
    """Yield the commands that look further into what was concluded: those of the page."""
    commands = [step.command for step in summary.commands if step.command]
    for place, command in enumerate(commands):
        yield f"  {'next' if place == 0 else '':<6} {command}"
    if any(statement.is_disparity for statement in summary.statements):
        yield f"  all    {join(_show_all_command(run))}"


def show_all(result: AuditResult, run: Path) -> None:
    """Print every conclusion and every finding that is a test or about all subjects."""
    show(result, run)
    say()
    rows = [
        (
            finding.model,
            finding.groups,
            _name(finding),
            shortened(", ".join(filter(None, (finding.subject, finding.group)))),
            number(finding.value),
            interval(finding.ci_low, finding.ci_high),
            number(finding.chance),
            shown_verdict(finding),
        )
        for finding in ranked(with_page_verdicts(result, page_of(result).leads).findings)
        if finding.family is not Family.FOLD
    ]
    columns = "model groups metric about value interval chance verdict"
    say_table(columns.split(), rows)
    say()
    say_values({"notes": result.manifest.notes})


def _verdicts(conclusions: Iterable[Conclusion]) -> dict[str, int]:
    words = (
        verdict_key(conclusion.verdict, comparison=bool(conclusion.standings))
        for conclusion in conclusions
    )
    return dict(Counter(words).most_common())


def _word(finding: Finding) -> str:
    return verdict_key(finding.verdict, comparison=is_comparison(finding))


def _name(finding: Finding) -> str:
    """Return the metric with its version and the condition of its test."""
    version = "" if finding.version == "default" else f" ({finding.version})"
    condition = ", within class" if finding.null is NullHypothesis.WITHIN_CLASS else ""
    return f"{name_with(finding.metric, finding.aggregate)}{condition}{version}"
