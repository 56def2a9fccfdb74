"""`equipoise plan`: print the size of an audit."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    config_argument,
    json_option,
    say_json,
    say_values,
)


@click.command("plan", epilog="Example: equipoise plan audit.yaml")
@config_argument
@click.option(
    "--error-rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Expected error rate of models that haven't run yet [default: 0.2].",
)
@click.option(
    "--kept-sets",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Expected share of generated sets that pass the filters.",
)
@json_option
def plan_command(
    config: Path, error_rate: float | None, kept_sets: float | None, as_json: bool
) -> None:
    """Print the size of an audit and the effects it can detect.

    It counts rows, groups and tests, marks groups that are too small, and estimates the smallest
    detectable effects and the time. For models to run, it counts images: cached, failed before,
    still to do, and missing. No model is loaded.
    """
    from equipoise import audits
    from equipoise.audits.limits import ERROR_RATE
    from equipoise.cli.runs import load_audit_config

    planned = audits.plan(
        load_audit_config(config), base=config.parent, error_rate=error_rate or ERROR_RATE,
        kept_share=kept_sets,
    )  # fmt: skip
    if as_json:
        say_json(planned.values)
    else:
        say_values({**planned.values, "limits": [limit.text for limit in planned.limits]})
