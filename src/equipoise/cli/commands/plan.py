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
    help="How often models err, for what their mistakes can show [default: 0.2].",
)
@click.option(
    "--kept-sets",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Share of generated sets that pass the filters.",
)
@json_option
def plan_command(
    config: Path, error_rate: float | None, kept_sets: float | None, as_json: bool
) -> None:
    """Print the size of an audit and the effects it can detect.

    Nothing is measured and no model is loaded. Where models are to be run: images, those that
    the store has, those that failed before, those to do, those whose files are missing, and bytes
    to write.
    Counts of rows and groups, groups that are too small, the smallest effects that the data could
    show, what the data can't give at all, the number of tests, and about how long it takes.
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
