"""The commands `plan`, `audit`, `report`, `check` and `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.outputs import JUNIT, REPORT, check_output, overwrite_option, write_output
from equipoise.cli.terminal import (
    PATH,
    Steps,
    config_argument,
    json_option,
    out_option,
    overwrite_run,
    say,
    say_json,
    say_rows,
    say_values,
)

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig
    from equipoise.core import AuditResult
    from equipoise.report import GateResult


@click.command("plan")
@config_argument
@json_option
def plan_command(config: Path, as_json: bool) -> None:
    """Say what an audit would do and could find.

    Nothing is measured and no model is loaded. Where models are to be run: images, those that
    the store has, those that failed before, those to do, those whose files are missing, and bytes
    to write.
    Counts of rows and groups, groups that are too small, the smallest effects that the data could
    show, the number of tests, and about how long it takes.
    """
    from equipoise import audits
    from equipoise.audits.config import load_config

    planned = audits.plan(load_config(config), base=config.parent).values
    (say_json if as_json else say_values)(planned)


@click.command("audit")
@config_argument
@out_option("runs/ and the name of CONFIG")
@overwrite_run
@json_option
def audit_command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Measure, and write findings and a report.

    CONFIG says which tables to read, see docs/config.md. The run appears when it is whole: a
    failure or Ctrl-C leaves nothing behind.
    """
    from equipoise import audits
    from equipoise.audits.config import load_config
    from equipoise.cli.runs import facts, measure, show, write
    from equipoise.evidence import new_run

    checked = load_config(config)
    run = out or Path("runs", config.stem)
    with new_run(run, overwrite=overwrite) as folder:
        result, data = measure(checked, config.parent)
        write(result, folder)
        audits.save(checked, folder, data)
        (folder / "config.yaml").write_bytes(config.read_bytes())
    outcome = _gate(result, checked) if checked.gate else None
    if as_json:
        gate = None if outcome is None else gate_facts(outcome)
        say_json(facts(result, run) | {"gate": gate})
        return
    show(result, run)
    if outcome is not None:
        say(f"{gate_line(outcome)} 'equipoise check {run}' names them.")


@click.command("report")
@click.argument("run", type=PATH)
@click.option("--out", type=PATH, help="Where to write it [default: RUN/report.html].")
@overwrite_option
@json_option
def report_command(run: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Write the report of a run again.

    It is made from the findings of RUN; nothing is measured.
    """
    from equipoise.cli.runs import page_of
    from equipoise.evidence import relist
    from equipoise.report import read, render

    page, replaced = out or run / "report.html", overwrite or out is None
    result = read(run)
    check_output(page, REPORT, overwrite=replaced)
    write_output(page, render(result, page_of(result)), REPORT, overwrite=replaced)
    relist(run, page)
    if as_json:
        say_json({"run": run, "report": page})
    else:
        say(f"report: {page}")


@click.command("check")
@click.argument("target", metavar="RUN|CONFIG", type=PATH)
@click.option("--junit", type=PATH, metavar="FILE", help="Also write JUnit XML there.")
@overwrite_option
@json_option
@click.pass_context
def check_command(
    context: click.Context, target: Path, junit: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Enforce the gate rules of a run or configuration.

    The rules are held against the findings. A configuration is audited first, without writing a
    run. Exit code 0: every rule holds; 1: a rule is breached, and named; 2: an error, or a rule
    that could not be checked.
    """
    from equipoise import report
    from equipoise.core.errors import ConfigError

    if junit is not None:
        check_output(junit, JUNIT, overwrite=overwrite)
    result, config = _findings(target)
    if not config.gate:
        raise ConfigError(f"{target}: no gate rules. To do: list them under 'gate' in the config")
    outcome = _gate(result, config)
    if junit is not None:
        write_output(junit, report.junit(outcome), JUNIT, overwrite=overwrite)
    if as_json:
        say_json(gate_facts(outcome))
    else:
        for check in outcome.checks:
            say(f"{check.outcome.upper()}: {check.sentence}")
        say(gate_line(outcome))
    context.exit(outcome.exit_code)


def _findings(target: Path) -> tuple[AuditResult, AuditConfig]:
    from equipoise.audits.config import load_config, parse_config
    from equipoise.cli.runs import measure
    from equipoise.core.errors import ConfigError
    from equipoise.report import read

    if target.is_dir():
        result = read(target)
        return result, parse_config(result.manifest.resolved, source=str(target / "manifest.json"))
    if not target.exists():
        raise ConfigError(
            f"{target}: no run and no configuration. To do: name the folder of a run, such as "
            "runs/audit, or a configuration that exists"
        )
    config = load_config(target)
    return measure(config, target.parent)[0], config


def _gate(result: AuditResult, config: AuditConfig) -> GateResult:
    from equipoise.report import gate

    return gate(result, [rule.as_rule for rule in config.gate])


def gate_facts(outcome: GateResult) -> dict[str, Any]:
    """Return a gate's outcome as plain values."""
    return {
        "passed": outcome.passed,
        "checks": [
            {"rule": str(check.rule), "outcome": check.outcome, "sentence": check.sentence}
            for check in outcome.checks
        ],
    }


def gate_line(outcome: GateResult) -> str:
    """Return the outcome of a gate in one line."""
    from equipoise.data.problems import counted

    breached, unchecked = len(outcome.breaches), len(outcome.unchecked)
    checks = counted(len(outcome.checks), "check")
    return f"Gate: {checks}, {breached} breached, {unchecked} could not be checked."


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=PATH)
@out_option("runs/compare")
@overwrite_run
@json_option
def compare_command(
    runs: tuple[Path, ...], out: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Compare models, paired by image or by subject.

    The models are those of one RUN, or of several runs about the same images.

    Paired differences with intervals and tests, a ranking with its uncertainty, and the metrics
    that disagree about who is better. Runs of kinds other than predictions are compared subject by
    subject, with the disparities that went and came; runs of several kinds make one report.
    """
    from equipoise.cli.runs import facts, write
    from equipoise.evidence import new_run

    target = out or Path("runs", "compare")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            result = _compared(runs, progress)
        write(result, folder)
    if as_json:
        say_json(facts(result, target) | _tables(result))
    else:
        _show(result, target)


def _compared(runs: tuple[Path, ...], progress: Steps) -> AuditResult:
    """Compare runs of predictions image by image, those of other kinds subject by subject."""
    from equipoise import audits
    from equipoise.core.errors import RunError
    from equipoise.report import read

    names = [
        path.name if [p.name for p in runs].count(path.name) == 1 else str(path) for path in runs
    ]
    if len(set(names)) < len(names):
        raise RunError("the same run is given twice; expected different runs")
    results = {name: read(path) for name, path in zip(names, runs, strict=True)}
    for name, run in results.items():
        if any(finding.audit == "comparison" for finding in run.findings):
            raise RunError(f"{name}: a comparison; expected runs of `equipoise audit`")
    by_kind: dict[str, dict[str, AuditResult]] = {}
    for name, run in results.items():
        by_kind.setdefault(str(run.manifest.resolved.get("audit")), {})[name] = run
    folders = dict(zip(names, runs, strict=True))
    return audits.together(
        [audits.compare_runs(own, folders, progress) for own in by_kind.values()]
    )


_SHOWN = {
    "ranking": "groups metric rank model value rank_low rank_high",
    "differences": "metric groups model_a model_b value_a value_b difference low high verdict",
}


def _tables(result: AuditResult) -> dict[str, list[dict[str, Any]]]:
    from equipoise.core import Verdict
    from equipoise.report.text import verdict_word

    names = (*_SHOWN, "disagreements", "changes")
    tables = {name: result.tables[name].to_pylist() for name in names if name in result.tables}
    for row in tables.get("differences", []):
        row["verdict"] = verdict_word(Verdict(row["verdict"]), comparison=True)
    return tables


def _show(result: AuditResult, run: Path) -> None:
    from equipoise.report.words import changed, leading, sentence

    tables = _tables(result)
    disagreements = [row["sentence"] for row in tables.get("disagreements", [])]
    for text in (*map(sentence, leading(result.findings)), *changed(result), *disagreements):
        say(f"- {text}")
    say()
    for name, columns in _SHOWN.items():
        if name in tables:
            say(f"{name}:")
            say_rows([row for row in tables[name] if not row.get("subject")], columns.split())
            say()
    for text in result.manifest.notes:
        say(f"note: {text}")
    say(f"report: {run / 'report.html'}")
