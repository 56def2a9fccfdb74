"""Questions on a terminal about what there is to audit, whose answers make a configuration."""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from equipoise.audits.kinds import KINDS
from equipoise.cli.outputs import config_text
from equipoise.cli.terminal import note

_HAVE = (
    "a table of labels, and predictions or scores",
    "a table of labels, a folder of images, and a model to run on them",
    "a data set and no model: who is in it, and with which labels",
    "embeddings of images, and a table of them",
    "something else",
)
_EXISTING = click.Path(exists=True, path_type=Path)


def on_terminal() -> bool:
    """Whether somebody can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(config: Path, template: Callable[[str], str]) -> str:
    """Ask what there is; return the text of a configuration that runs.

    Parameters
    ----------
    config : Path
        Where the configuration goes: paths in it are relative to its folder.
    template : callable
        Returns the commented template of a kind of audit, for what the questions don't cover.

    Raises
    ------
    EquipoiseError
        When a table can't be read, or its columns don't fit.
    """
    note("What do you have?")
    for number, text in enumerate(_HAVE, start=1):
        note(f"  {number}  {text}")
    choice = click.prompt("Number", type=click.IntRange(1, len(_HAVE)), err=True)
    if choice == len(_HAVE):
        return template(click.prompt("Kind of audit", type=click.Choice(KINDS), err=True))
    values, notes = _asked(choice, config.parent)
    return config_text(values, notes)


def _asked(choice: int, folder: Path) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the configuration of a choice, and what was guessed."""
    from equipoise.audits.quick import encoding_of, guess_config, likely_outputs
    from equipoise.data.tables import open_table

    table = click.prompt("Table (CSV, Parquet, JSON)", type=_EXISTING, err=True)
    encoding = encoding_of(table)
    names = open_table(table, encoding=encoding).names
    note(f"Its columns: {', '.join(names)}")
    groups = _columns("Columns of groups, such as gender, with commas between", names)
    if choice < 3:
        target = _columns("Column of labels (the truth)", names)[0]
        positive = click.prompt("Positive class, if it has two", default="", err=True) or None
        if choice == 1:
            likely = ",".join(likely_outputs(names))
            pred = _columns("Columns of predictions or scores", names, default=likely or None)
            guess = guess_config(table, target=target, groups=groups, positive=positive, pred=pred)
        else:
            model = click.prompt("Model, such as hf:openai/clip-vit-base-patch32", err=True)
            images = click.prompt("Folder of the images", type=_EXISTING, err=True)
            guess = guess_config(
                table, target=target, groups=groups, positive=positive, model=model, images=images
            )
        return guess.config(table, folder), guess.notes
    source: dict[str, Any] = {"table": _placed(table, folder)}
    source |= {"encoding": encoding} if encoding != "utf-8" else {}
    every = [*groups, *map(list, combinations(groups, 2))]
    if choice == 3:
        labels = _columns("Columns of labels; none: press return", names, default="")
        return {
            "audit": "dataset",
            "data": {"images": source, "groups": every, "labels": labels},
        }, ()
    file = click.prompt("File of embeddings, in the order of the table", type=_EXISTING, err=True)
    return {
        "audit": "diversity",
        "data": {"images": source, "sets": every},
        "models": {file.stem: {"file": _placed(file, folder)}},
    }, ()


def _placed(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _columns(text: str, names: Sequence[str], default: str | None = None) -> list[str]:
    """Ask for columns until all are there."""

    def parsed(given: str) -> list[str]:
        found = [*dict.fromkeys(one for part in given.split(",") if (one := part.strip()))]
        missing = [one for one in found if one not in names]
        if missing or not (found or default == ""):
            raise click.BadParameter(f"expected some of {', '.join(names)}")
        return found

    found: list[str] = click.prompt(text, default=default, value_proc=parsed, err=True)
    return found
