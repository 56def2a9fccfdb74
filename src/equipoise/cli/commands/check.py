"""`equipoise check`: enforce the gate rules of a run."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import click

from equipoise.cli.outputs import JUNIT, check_output, write_output
from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    say,
    say_json,
)


@click.command("check", epilog="Example: equipoise check runs/first --junit checks.xml")
@click.argument("run", type=PATH)
@click.option(
    "--junit",
    type=PATH,
    metavar="FILE",
    help="Also write JUnit XML there, over such a file of an earlier check.",
)
@json_option
@click.pass_context
def check_command(context: click.Context, run: Path, junit: Path | None, as_json: bool) -> None:
    """Enforce the gate rules of a run.

    The rules are held against the findings, or against a run that this one must not be worse
    than. Exit code 0: every rule holds; 1: a rule is breached, and named; 2: an error, or a rule
    that could not be checked.
    """
    from equipoise import report
    from equipoise.audits.config import parse_config
    from equipoise.audits.runs import compare_with
    from equipoise.core import ConfigError
    from equipoise.data.problems import counted

    if junit is not None:
        check_output(junit, JUNIT)
    result = report.read(run)
    config = parse_config(result.manifest.resolved, source=str(run / "manifest.json"))
    if not config.gate:
        raise ConfigError(f"{run}: no gate rules. To do: list them under 'gate' in the config")
    rules = [rule.as_rule for rule in config.gate]
    with Steps() as progress:
        baselines = {
            rule.worse_than: compare_with(rule.worse_than, run, progress)
            for rule in rules
            if rule.worse_than is not None
        }
    outcome = report.gate(result, rules, baselines=baselines)
    if junit is not None:
        write_output(junit, report.junit(outcome), JUNIT)
    if as_json:
        checks = [
            {
                "rule": str(check.rule),
                "outcome": check.outcome,
                "sentence": check.sentence,
                "conclusion": check.conclusion,
                "false_alarms": None if isnan(check.alarms) else check.alarms,
            }
            for check in outcome.checks
        ]
        say_json({"passed": outcome.passed, "checks": checks})
    else:
        for check in outcome.checks:
            say(f"{check.outcome.upper()}: {check.sentence}")
            if check.outcome == "breached" and check.conclusion:
                say(f"  {check.conclusion}")
        breached, unchecked = len(outcome.breaches), len(outcome.unchecked)
        number = counted(len(outcome.checks), "check")
        say(f"Gate: {number}, {breached} breached, {unchecked} could not be checked.")
    context.exit(outcome.exit_code)
