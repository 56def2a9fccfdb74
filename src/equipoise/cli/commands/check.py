"""`equipoise check`: enforce the gate rules of a run."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.outputs import JUNIT, check_output, write_output
from equipoise.cli.terminal import (
    PATH,
    Steps,
    json_option,
    say,
    say_json,
)

if TYPE_CHECKING:
    from equipoise.report import GateRule


@click.command("check", epilog="Example: equipoise check runs/first --min accuracy.worst_group=0.8")
@click.argument("run", type=PATH)
@click.option(
    "--min",
    "minima",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="Smallest value that passes, such as accuracy.worst_group=0.8. Repeatable.",
)
@click.option(
    "--max",
    "maxima",
    multiple=True,
    metavar="METRIC=NUMBER",
    help="Largest value that passes, such as accuracy.difference=0.1. Repeatable.",
)
@click.option(
    "--junit",
    type=PATH,
    metavar="FILE",
    help="Also write JUnit XML; the file of an earlier check is replaced.",
)
@json_option
@click.pass_context
def check_command(
    context: click.Context,
    run: Path,
    minima: tuple[str, ...],
    maxima: tuple[str, ...],
    junit: Path | None,
    as_json: bool,
) -> None:
    """Enforce the gate rules of a run.

    Rules come from the run's configuration, and from --min and --max. METRIC is the name of a
    metric. Add a dot and a comparison for groups: difference, worst_group or against_rest.

    Exit code 0: every rule holds. 1: a rule is breached. 2: an error, or a rule that can't be
    checked.
    """
    from equipoise import report
    from equipoise.audits.plugins import config_of_run
    from equipoise.audits.runs import compare_with
    from equipoise.core import ConfigError
    from equipoise.data.problems import counted

    if junit is not None:
        check_output(junit, JUNIT)
    result = report.read(run)
    config = config_of_run(result.manifest, str(run / "manifest.json"))
    bounds = [("min", text) for text in minima] + [("max", text) for text in maxima]
    rules = [rule.as_rule for rule in config.gate]
    rules += [_rule(bound, text, config.audit) for bound, text in bounds]
    if not rules:
        raise ConfigError(
            f"{run}: no gate rules. To do: add --min accuracy.worst_group=0.8, or list rules under "
            "'gate' in the config",
            file=str(run),
        )
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
                "not_checked": [
                    {"group": group, "rows": rows} for group, rows in check.not_checked
                ],
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


def _rule(bound: str, text: str, audit: str) -> GateRule:
    """Return the rule of an option such as accuracy.worst_group=0.8."""
    from pydantic import ValidationError

    from equipoise.audits.config import GateConfig
    from equipoise.config.problems import explain

    name, _, number = text.partition("=")
    metric, _, of = name.partition(".")
    try:
        values = {"metric": metric, bound: float(number), **({"of": of} if of else {})}
    except ValueError:
        raise click.BadParameter(
            f"given {text!r}; expected a metric, '=' and a number. "
            f"To do: write --{bound} accuracy.worst_group=0.8",
            param_hint=f"'--{bound}'",
        ) from None
    try:
        return GateConfig.model_validate(values, context={"audit": audit}).as_rule
    except ValidationError as error:
        raise explain(error, values, f"--{bound}") from None
