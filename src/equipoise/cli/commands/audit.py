"""`equipoise audit`: measure, and write a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.commands.check import gate_facts, gate_line, gate_rules
from equipoise.cli.terminal import json_option, say, say_json

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig
    from equipoise.core import AuditResult
    from equipoise.report import GateResult


@click.command("audit")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write the run [default: runs/ and the name of CONFIG].",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that lies there.")
@json_option
def command(config: Path, out: Path | None, overwrite: bool, as_json: bool) -> None:
    """Measure, and write findings and a report.

    CONFIG says which tables to read, see docs/config.md. The run appears when it is whole: a
    failure or Ctrl-C leaves nothing behind.
    """
    from equipoise.audits.config import load_config

    checked = load_config(config)
    run = out or Path("runs", config.stem)
    result = _write_run(checked, config, run, overwrite)
    outcome = _gate(checked, result)
    if as_json:
        say_json(_facts(result, run, outcome))
    else:
        _show(result, run, outcome)


def _write_run(checked: AuditConfig, config: Path, run: Path, overwrite: bool) -> AuditResult:
    from equipoise import audits
    from equipoise.cli.measure import measure
    from equipoise.cli.pages import write
    from equipoise.evidence import new_run

    with new_run(run, overwrite=overwrite) as folder:
        result, data = measure(checked, config.parent)
        write(result, folder)
        audits.save(checked, folder, data)
        (folder / "config.yaml").write_bytes(config.read_bytes())
    return result


def _gate(checked: AuditConfig, result: AuditResult) -> GateResult | None:
    from equipoise import report

    return report.gate(result, gate_rules(checked.gate)) if checked.gate else None


def _facts(result: AuditResult, run: Path, outcome: GateResult | None) -> dict[str, Any]:
    from equipoise.cli.summary import facts

    return facts(result, run) | {"gate": None if outcome is None else gate_facts(outcome)}


def _show(result: AuditResult, run: Path, outcome: GateResult | None) -> None:
    from equipoise.cli.summary import show

    show(result, run)
    if outcome is not None:
        say(f"{gate_line(outcome)} 'equipoise check {run}' names them.")
