"""A run: measured with progress, written with the page of its kind, shown on the terminal."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from shlex import join
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar, cast

from equipoise import report
from equipoise.audits import runs
from equipoise.audits.findings import manifest_of
from equipoise.cli.terminal import Steps, say, say_table, say_values
from equipoise.core import AuditResult, Family, Finding, NullHypothesis
from equipoise.core.conclusion import Conclusion
from equipoise.core.estimate import name_with
from equipoise.core.finding import REAL
from equipoise.core.types import FileFacts, Json
from equipoise.core.wording import percent, shortened
from equipoise.evidence.examples import names_files
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import Badge, Page, Remark, Statement, Summary
from equipoise.report.gate_coverage import small_groups_text
from equipoise.report.next_steps import Place
from equipoise.report.page_verdicts import conclusions_about_groups, with_page_verdicts
from equipoise.report.ranking_models import is_ranking
from equipoise.report.result import first_screen
from equipoise.report.short_lines import wanted_data
from equipoise.report.summary import about_whole_run, agreement, conclusions_by_model
from equipoise.report.text import (
    decimals_of,
    enclose,
    interval,
    number,
    size_text,
    verdict_key,
    verdict_title,
)
from equipoise.report.words import (
    conclusion_sentence,
    corrected_size,
    has_shares,
    is_comparison,
    ranked,
    shown_verdict,
    unit_note,
    worst_first,
)
from equipoise.studies.claims import claims_of, with_claims
from equipoise.studies.page import count_claims

if TYPE_CHECKING:
    from pydantic import BaseModel

    from equipoise.audits.config import AuditConfig
    from equipoise.core import ConfigError
    from equipoise.mitigate.running import Assessment


SchemaT = TypeVar("SchemaT", bound="BaseModel")


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


_TABLES = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson", ".json")


def load_audit_config(path: Path) -> AuditConfig:
    """Read the configuration of an audit.

    Raises
    ------
    ConfigError
        When it is wrong, or configures another command, which the error names.
    """
    from equipoise.audits.config import load_config
    from equipoise.core import ConfigError

    if path.suffix.lower() in _TABLES and path.is_file():
        command = join(["equipoise", "quick", str(path)])
        raise ConfigError(
            f"{path}: a table, not a configuration. To do: run {command!r}", file=str(path)
        )
    try:
        return load_config(path)
    except ConfigError as error:
        raise _of_command(path, "audit", error) from None


def load_for(path: Path, schema: type[SchemaT], command: str) -> SchemaT:
    """Read the configuration of a command; errors as of `load_audit_config`."""
    from equipoise.audits.config import load_as
    from equipoise.core import ConfigError

    try:
        return load_as(path, schema)
    except ConfigError as error:
        raise _of_command(path, command, error) from None


def _of_command(path: Path, command: str, error: ConfigError) -> ConfigError:
    """Return the error about a configuration; if it is another command's, one that names this."""
    import yaml

    from equipoise.core import ConfigError
    from equipoise.studies.study import command_of

    try:
        values = yaml.safe_load(path.read_bytes())
    except (OSError, ValueError, yaml.YAMLError):
        return error
    if not isinstance(values, dict):
        return error
    other = "audit" if "audit" in values else command_of(values)[0]
    if other == command or (other == "audit" and "audit" not in values):
        return error
    return ConfigError(
        f"{path}: the configuration of another command. To do: run 'equipoise {other} {path}'",
        file=str(path),
    )


def run_audit(
    config: AuditConfig,
    base: Path,
    run: Path,
    text: bytes,
    overwrite: bool,
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Run the audit of a config, and write the run with the config's text, and further notes."""
    from equipoise import audits
    from equipoise.audits.saving import has_examples
    from equipoise.core import writing
    from equipoise.evidence import new_run

    _refuse_repeated(run, text, overwrite)
    # What was imported stays: collecting garbage need not look at it again.
    gc.freeze()
    with new_run(run, overwrite=overwrite) as folder, ThreadPoolExecutor(1) as writer:
        with Steps() as progress:
            inputs = audits.prepare(config, base=base, progress=progress)
            # Models are done. Findings are many objects, and hardly any is garbage.
            gc.set_threshold(1 << 16)
            result = audits.run(inputs, base=base, progress=progress)
        manifest = replace(result.manifest, notes=(*notes, *result.manifest.notes))
        result = replace(result, manifest=manifest)
        # Measuring keeps all processors busy, and writing the page one.
        saved = writer.submit(audits.save, inputs, folder)
        write(result, folder, run, examples=has_examples(inputs))
        saved.result()
        writing.write(folder / _CONFIG, text)
    return result


_CONFIG = "config.yaml"


def _refuse_repeated(run: Path, text: bytes, overwrite: bool) -> None:
    """Refuse a run of a configuration into the folder that has its run."""
    from equipoise.core import RunError
    from equipoise.evidence import is_run

    config = run / _CONFIG
    if not overwrite and is_run(run) and config.is_file() and config.read_bytes() == text:
        raise RunError(
            f"{run}: holds the run of this configuration already. To do: open "
            f"{run / 'report.html'}, or pass --overwrite to run it again"
        )


def write(result: AuditResult, folder: Path, run: Path, *, examples: bool = False) -> None:
    """Write a run into a folder that becomes `run`, with the page of its kind."""
    report.write(result, folder, page_of(result), Place(str(run), examples))


def place_of(run: Path) -> Place:
    """Return the place of a written run."""
    return Place(str(run), names_files(run))


WIDTH = 80
_MOST_LINES, _MOST_BARS, _MOST_AGREEMENTS, _BAR = 15, 5, 2, 26
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHORTEST_BAR = 10
_BESIDE_BARS = 2 + 2 + 7 + 2 + 1 + 1
"""Letters of a bar's line without its name, bar and size: the share, and spaces."""


def facts(result: AuditResult, run: Path) -> dict[str, Any]:
    """Return what `--json` prints about a run."""
    first, last = about_whole_run(result)
    listed = [
        (place, conclusion)
        for conclusions in (
            first, *conclusions_by_model(result, page_of(result).leads).values(), last,
        )
        for place, conclusion in enumerate(conclusions)
    ]  # fmt: skip
    concluded = {place for _, conclusion in listed for place in _places(conclusion)}
    return {
        "run": run,
        "report": run / "report.html",
        "conclusions": [
            {
                **_record(conclusion),
                "sentence": conclusion_sentence(finding, conclusion),
                "correction": corrected_size(finding, conclusion),
                "agreement": agreement(conclusion, result.findings),
                "wanted": "" if place else wanted_data(finding, conclusion),
            }
            for place, conclusion in listed
            for finding in [result.findings[conclusion.finding]]
        ],
        **({"claims": claims} if (claims := claims_of(result)) else {}),
        "verdicts": _verdicts(conclusions_about_groups(result, page_of(result).leads)),
        "findings": [
            asdict(finding) | {"place": place, "verdict": _word(finding)}
            for place, finding in enumerate(result.findings)
            if place in concluded
            or (finding.tested and (not finding.subject or finding.verdict in REAL))
        ],
        "warnings": result.manifest.warnings,
        "notes": result.manifest.notes,
    }  # fmt: skip


def _record(conclusion: Conclusion) -> dict[str, Any]:
    """Return the fields of a conclusion and of its reverse, with the verdicts of comparisons."""
    reverse = conclusion.reverse and _record(conclusion.reverse)
    verdict = verdict_key(conclusion.verdict, comparison=bool(conclusion.standings))
    return {**asdict(conclusion), "verdict": verdict, "reverse": reverse}


def _places(conclusion: Conclusion) -> set[int]:
    """Return the places of the findings that a conclusion names."""
    further = _places(conclusion.reverse) if conclusion.reverse else set[int]()
    return {conclusion.finding, *conclusion.restated_by} | further


def show(result: AuditResult, run: Path, most_lines: float = _MOST_LINES) -> None:
    """Print the conclusions of each model, and the next commands."""
    summary = first_screen(result, page_of(result), place_of(run))
    for text in summary.warnings:
        for line in wrap(f"warning: {text}", WIDTH):
            say(line)
    several, lines = any(map(is_ranking, result.conclusions)), list[str]()
    commands = [*_next_commands(summary, run), f"  report {run / 'report.html'}"]
    small_groups = wrap(small_groups_text(result), WIDTH - 2)
    ending = [*_preference(result, summary), *small_groups]
    room = most_lines - len(commands) - 1 - len(ending)
    ending = [f"  {text}" for text in (*ending, count_claims(result)) if text]
    for statement in summary.statements:
        if several and statement.finding is not None:
            sure = statement.certainty if statement.is_disparity else ""
            lines = [*_sentence_lines(statement), *(f"  {line}" for line in wrap(sure, WIDTH - 2))]
        else:
            lines = [*_lines_of(statement, run, room), ""]
        if statement is summary.statements[0] and statement.finding is None:
            room -= len(lines)
        for line in lines:
            say(line, verdict_word(statement.badge), "red" if statement.is_disparity else None)
    if several and lines[-1:] != [""]:
        say()
    for text in (*ending, *commands):
        say(text)


def _preference(result: AuditResult, summary: Summary) -> list[str]:
    """Return the lines that say which model of a comparison to prefer."""
    compares = any(is_comparison(result.findings[item.finding]) for item in result.conclusions)
    return wrap(summary.steps[0], WIDTH - 2) if compares and summary.steps else []


def _sentence_lines(statement: Statement) -> Iterator[str]:
    """Yield the lines of a sentence, with the verdict."""
    badge = verdict_word(statement.badge)
    first, *lines = wrap(statement.text, WIDTH - 4 - len(badge)) or [""]
    yield f"  {first.ljust(WIDTH - 4 - len(badge))}  {badge}".rstrip()
    for line in lines:
        yield f"  {line}"


def _lines_of(statement: Statement, run: Path, room: float) -> list[str]:
    """Return a statement, its groups, how sure it is, and the other conclusions.

    Where room is short, each other conclusion has a line, then the statement gets shorter.
    """
    remarks = [*_remark_lines(statement.others)]
    heads = [*_heads(statement)]
    if len(heads[0]) + len(remarks) > room:
        remarks = [f"  · {shortened(remark.line, WIDTH - 4)}" for remark in statement.others]
    head = next((lines for lines in heads if len(lines) + len(remarks) <= room), heads[-1])
    if len(head) + len(remarks) > room:
        n_shown = max(int(room) - len(head) - 1, 0)
        command, n_more = join(_show_all_command(run)), len(remarks) - n_shown
        remarks = [*remarks[:n_shown], f"  · and {n_more} more: {command}"]
    return [*head, *remarks]


def _remark_lines(remarks: Sequence[Remark]) -> Iterator[str]:
    """Yield other conclusions in full."""
    for remark in remarks:
        text = remark.text
        if len(remarks) <= _MOST_AGREEMENTS and remark.agreement:
            text = f"{text} {remark.agreement}"
        first, *further = wrap(text, WIDTH - 4)
        yield f"  · {first}"
        yield from (f"    {line}" for line in further)


def _heads(statement: Statement) -> Iterator[list[str]]:
    """Yield the lines of a statement, its groups and how sure it is, ever fewer of them."""
    sentence = [*_sentence_lines(statement)]
    forms = [
        (_MOST_BARS, statement.certainty, statement.agreement),
        (_MOST_BARS, statement.short_certainty, statement.agreement),
        (2, statement.short_certainty, statement.agreement),
        (2, statement.short_certainty, ""),
    ]
    for most_bars, *texts in forms:
        further = [*_bars(statement.finding, most_bars)]
        further += [line for text in texts for line in wrap(text, WIDTH - 2)]
        yield [*sentence, *(f"  {line}" for line in further)]


def _show_all_command(run: Path) -> tuple[str, ...]:
    return "equipoise", "show", str(run), "--all"


def verdict_word(badge: Badge | None) -> str:
    """Return a verdict as the terminal shows it."""
    if badge is None:
        return ""
    return (badge.name or verdict_title(badge.verdict, comparison=badge.comparison)).upper()


def _bars(finding: Finding | None, most: int) -> Iterator[str]:
    """Yield a bar for each group of a finding whose groups have shares, the worst first."""
    if finding is None or not finding.by_group or not has_shares(finding):
        return
    parts = worst_first(finding)
    if len(parts) > most:
        # The worst group is compared with the group at the other end.
        parts = [*parts[: most - 1], parts[-1]]
    digits = decimals_of(part.value for part in parts)
    sizes = [size_text(finding, part.n).replace("n = ", "n ") for part in parts]
    room = WIDTH - _BESIDE_BARS - max(map(len, sizes), default=0)
    names = [shortened(part.group, room - _SHORTEST_BAR) for part in parts]
    width = max(map(len, names), default=0)
    length = min(_BAR, room - width)
    for part, name, size in zip(parts, names, sizes, strict=True):
        whole, eighths = divmod(round(8 * length * part.value), 8)
        bar = "█" * whole + _EIGHTHS[eighths].strip()
        yield f"{name:<{width}}  {percent(part.value, digits):>7}  {bar:<{length + 1}} {size}"


def _next_commands(summary: Summary, run: Path) -> Iterator[str]:
    """Yield the page's commands that look further into its conclusions."""
    for text in summary.advice:
        yield f"  {shortened(text, WIDTH - 2)}"
    commands = [step.command for step in summary.commands if step.command]
    for place, command in enumerate(commands):
        yield f"  {'next' if place == 0 else '':<6} {command}"
    if any(statement.is_disparity for statement in summary.statements):
        yield f"  all    {join(_show_all_command(run))}"


def show_all(result: AuditResult, run: Path) -> None:
    """Print every conclusion and every finding that is a test or about all subjects."""
    show(result, run, math.inf)
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
    """Return the metric with its version, its basis and the condition of its test."""
    version = "" if finding.version == "default" else f" ({finding.version})"
    basis = enclose(" ", spec_of_finding(finding).basis)
    basis += " to all rows" if finding.compared_to else ""
    condition = ", within class" if finding.null is NullHypothesis.WITHIN_CLASS else ""
    name = name_with(finding.metric, finding.aggregate) + unit_note(finding)
    return f"{name}{basis}{condition}{version}"
