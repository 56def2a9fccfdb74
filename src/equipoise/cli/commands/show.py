"""`equipoise show`: print the conclusions of a run."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    PATH,
    json_option,
    say_json,
)


@click.command("show", epilog="Example: equipoise show runs/first --all")
@click.argument("run", type=PATH)
@click.option("--all", "everything", is_flag=True, help="Print every finding and note.")
@json_option
def show_command(run: Path, everything: bool, as_json: bool) -> None:
    """Print the conclusions of a run."""
    from equipoise.audits.runs import load
    from equipoise.cli.runs import facts, show, show_all

    result = load(run)
    if as_json:
        say_json(facts(result, run))
    elif everything:
        show_all(result, run)
    else:
        show(result, run)
