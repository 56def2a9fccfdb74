"""`equipoise check`: the gate for continuous integration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.outputs import JUNIT, check_output, overwrite_option, write_output
from equipoise.cli.terminal import PATH, json_option, say, say_json

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig, GateConfig
    from equipoise.core import AuditResult
    from equipoise.report import GateResult, GateRule


@click.command("check")
@click.argument("target", metavar="RUN|CONFIG", type=PATH)
@click.option("--junit", type=PATH, metavar="FILE", help="Also write JUnit XML there.")
@overwrite_option
@json_option
@click.pass_context
def command(
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
    outcome = report.gate(result, gate_rules(config.gate))
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
    from equipoise.cli.measure import measure
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


def gate_rules(rules: Sequence[GateConfig]) -> list[GateRule]:
    """Return the gate rules of a configuration as the report takes them."""
    from equipoise.audits.config import group_name
    from equipoise.report import GateRule

    return [
        GateRule(
            metric=rule.metric,
            min=rule.min,
            max=rule.max,
            on=rule.on,
            model=rule.model,
            groups=None if rule.groups is None else group_name(rule.groups),
            subject=rule.subject,
            version=rule.version,
        )
        for rule in rules
    ]


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
