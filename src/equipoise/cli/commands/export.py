"""`equipoise export`: print a run for a model card or a paper."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    PATH,
    json_option,
    say,
    say_json,
)


@click.command("export", epilog="Example: equipoise export runs/first --as latex")
@click.argument("run", type=PATH)
@click.option(
    "--as",
    "form",
    type=click.Choice(["card", "latex", "markdown"]),
    default="card",
    show_default=True,
    help="A section of a model card, or the table by group alone.",
)
@json_option
def export_command(run: Path, form: str, as_json: bool) -> None:
    """Print a run for a model card or a paper.

    A card has what the report says first, the results by group, and the limitations, in Markdown.
    """
    from equipoise.audits.runs import load
    from equipoise.report import card

    result = load(run)
    make = {
        "card": lambda: card(result),
        "latex": lambda: result.table().to_latex(),
        "markdown": lambda: result.table().to_markdown(),
    }
    text = make[form]()
    if as_json:
        say_json({"run": run, "as": form, "text": text})
    else:
        say(text.rstrip())
