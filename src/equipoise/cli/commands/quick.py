"""`equipoise quick`: audit a table or a model without a configuration."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.groups import CommandOfLists
from equipoise.cli.outputs import config_text
from equipoise.cli.questions import on_terminal
from equipoise.cli.terminal import (
    PATH,
    json_option,
    note,
    open_option,
    open_report,
    out_option,
    overwrite_run,
    say,
    say_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.audits.quick import Guess
    from equipoise.audits.quick_tables import ColumnSummary


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
    cls=CommandOfLists,
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
    help="Lowest score that counts as positive, or a rule: balanced_accuracy (default), "
    "prevalence, cost, or fpr=0.001 for a false positive rate.",
)
@click.option(
    "--answer",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of answers in words, with commas between; a model each.",
)
@click.option(
    "--labels",
    metavar="COLUMNS",
    callback=_names,
    help="Columns of labels of a data set without predictions, with commas between.",
)
@click.option("--model", metavar="MODEL", help="Model to run on the images, such as hf:ID.")
@click.option("--images", type=PATH, metavar="DIR", help="Folder of the images, for --model.")
@click.option(
    "--queries",
    type=PATH,
    metavar="FILE",
    help="Table of queries, or a list (.txt) with one a line, for which --model ranks the images.",
)
@click.option("--positive", metavar="CLASS", help="Positive class, if the target has two.")
@click.option("--id", metavar="COLUMN", help="Column that names the image.")
@click.option(
    "--unit",
    metavar="COLUMN",
    help="Column that identifies repeated subjects, such as the person.",
)
@click.option(
    "--missing",
    metavar="TEXTS",
    callback=_names,
    help="Texts that mean a missing value, with commas between, besides NA and the like.",
)
@out_option("runs/ and the name of TABLE")
@overwrite_run
@open_option
@json_option
def quick_command(
    table: Path, out: Path | None, overwrite: bool, as_json: bool, **named: Any
) -> None:
    """Audit a table or a model without a configuration.

    Columns, the positive class, missing values, bands of numbers and the encoding are guessed
    where you don't name them. TABLE alone also prints its columns and the command that names
    them. The run holds the configuration, to edit and to use again.
    """
    from equipoise.audits.config import parse_config
    from equipoise.audits.quick import encoding_of
    from equipoise.audits.quick_tables import column_lines, command_of, summarize
    from equipoise.cli.runs import facts, run_audit, show

    if table.suffix.lower() in (".yaml", ".yml"):
        fix = f"run {shlex.join(['equipoise', 'audit', str(table)])!r}"
        raise click.BadParameter(f"{table}: a configuration. To do: {fix}", param_hint="'TABLE'")
    run = out or Path("runs", table.stem)
    alone = not any(named.values())
    columns = summarize(table, encoding_of(table)) if alone else []
    guess = _guess(table, named, columns, ask_unit=not as_json and on_terminal())
    values = guess.config(table, run)
    text = config_text(values, guess.notes)
    command = command_of(str(table), guess.options)
    if alone and not as_json:
        note(f"Columns of {table}:\n{column_lines(columns)}\n\nTo name them:\n  {command}\n")
    config = parse_config(guess.config(table), source=str(table))
    result = run_audit(config, Path(), run, text.encode(), overwrite)
    open_report(run)
    if as_json:
        listed = {"columns": [asdict(column) for column in columns], "command": command}
        say_json(
            {**facts(result, run), "guesses": guess.notes, "config": values}
            | (listed if alone else {})
        )
        return
    note(text)
    show(result, run)
    say(f"config: {run / 'config.yaml'}")


def _guess(
    table: Path, named: dict[str, Any], columns: Sequence[ColumnSummary], *, ask_unit: bool
) -> Guess:
    """Return the guessed config; an error about a table alone lists its columns."""
    from equipoise.audits.quick import guess_config
    from equipoise.audits.quick_tables import COLUMNS, column_lines
    from equipoise.core import DataError, InputError

    try:
        guess = guess_config(table, **named)
    except (DataError, InputError) as error:
        if not columns or COLUMNS in str(error):
            raise
        raise InputError(f"{error}\n{COLUMNS}\n{column_lines(columns)}") from None
    if guess.guessed_unit and ask_unit:
        text = f"{guess.guessed_unit} repeats. Do its rows belong together?"
        if not click.confirm(text, default=True, err=True):
            return guess_config(table, **{**named, "unit": ""})
    return guess
