"""`equipoise plan`: what an audit would do, and what it could find."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from equipoise.cli.terminal import json_option, say, say_json, say_table

# Rows of a table that are printed; the JSON has all.
_MOST_ROWS = 60


@click.command("plan")
@click.argument("config", type=click.Path(path_type=Path))
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
    if as_json:
        say_json(planned)
    else:
        show_values(planned)


def show_values(values: Mapping[str, Any]) -> None:
    """Print named values: plain ones on a line each, lists of records as tables."""
    for name, value in values.items():
        title = name.replace("_", " ")
        if _is_table(value):
            say(f"\n{title}:")
            # Rows may tell different things, as those of models of different kinds do.
            columns = [*dict.fromkeys(column for row in value for column in row)]
            shown = value[:_MOST_ROWS]
            say_table(columns, [[cell(row.get(column)) for column in columns] for row in shown])
            if len(value) > len(shown):
                say(f"… and {len(value) - len(shown)} more; all with --json")
        elif name == "notes":
            for note in value:
                say(f"note: {note}")
        else:
            say(f"{title}: {cell(value)}")


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def cell(value: Any) -> str:
    """Return a value for a cell of a table."""
    from equipoise.report.text import number

    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {cell(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(cell, value)) or "none"
    return "–" if value is None else str(value)
