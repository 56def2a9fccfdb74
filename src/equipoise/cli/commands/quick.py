"""`equipoise quick`: audit a table or a model without a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from equipoise.cli.outputs import config_text
from equipoise.cli.questions import on_terminal
from equipoise.cli.terminal import (
    PATH,
    json_option,
    note,
    out_option,
    overwrite_run,
    say,
    say_json,
)


def _names(context: click.Context, option: click.Parameter, value: str | None) -> list[str]:  # noqa: ARG001
    parts = (value or "").split(",")
    return [*dict.fromkeys(name for part in parts if (name := part.strip()))]


def _threshold(
    context: click.Context,  # noqa: ARG001
    option: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> float | str | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


@click.command(
    "quick",
    epilog="Example: equipoise quick predictions.csv --target label --pred pred --groups age,sex",
)
@click.argument("table", type=PATH)
@click.option("--target", metavar="COLUMN", help="Column of labels.")
@click.option(
    "--groups",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of group attributes, with commas between. Numbers become bands.",
)
@click.option(
    "--pred",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of predicted labels, with commas between; a model each.",
)
@click.option(
    "--score",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of scores of the positive class; a model each.",
)
@click.option(
    "--threshold",
    metavar="NUMBER",
    callback=_threshold,
    help="Scores from it on are positive; or balanced_accuracy (default), prevalence, cost, or "
    "fpr=0.001 for that false positive rate.",
)
@click.option("--model", metavar="MODEL", help="Model to run on the images, such as hf:ID.")
@click.option("--images", type=PATH, metavar="DIR", help="Folder of the images, for --model.")
@click.option("--positive", metavar="CLASS", help="Of two classes the one to report.")
@click.option("--id", metavar="COLUMN", help="Column that names the image.")
@click.option("--unit", metavar="COLUMN", help="Column of what repeats, such as a person.")
@out_option("runs/ and the name of TABLE")
@overwrite_run
@json_option
def quick_command(
    table: Path, out: Path | None, overwrite: bool, as_json: bool, **named: Any
) -> None:
    """Audit a table or a model without a configuration.

    The columns of predictions, scores, ids and units, the positive class, missing values, bands
    of numbers and the encoding are guessed. Each guess is printed, and the run holds the
    configuration to edit and to use again.
    """
    from equipoise.audits.config import parse_config
    from equipoise.audits.quick import guess_config
    from equipoise.cli.runs import facts, run_audit, show

    run = out or Path("runs", table.stem)
    guess = guess_config(table, **named)
    if guess.guessed_unit and not as_json and on_terminal():
        text = f"{guess.guessed_unit} repeats. Do its rows belong together?"
        if not click.confirm(text, default=True, err=True):
            guess = guess_config(table, **{**named, "unit": ""})
    values = guess.config(table, run)
    text = config_text(values, guess.notes)
    config = parse_config(guess.config(table), source=str(table))
    result = run_audit(config, Path(), run, text.encode(), overwrite)
    if as_json:
        say_json({**facts(result, run), "guesses": guess.notes, "config": values})
        return
    note(text)
    show(result, run)
    say(f"config: {run / 'config.yaml'}")
