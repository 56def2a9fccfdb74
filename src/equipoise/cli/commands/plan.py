"""`equipoise plan`: what an audit would do, and what it could find."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import config_argument, json_option, say_json, say_values


@click.command("plan")
@config_argument
@json_option
def command(config: Path, as_json: bool) -> None:
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
