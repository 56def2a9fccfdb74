"""Questions on a terminal that turn a user's data into a configuration."""

import os
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from equipoise.cli.outputs import config_text
from equipoise.cli.terminal import note
from equipoise.discovery import KINDS

_SOURCES = (
    "a table of labels, and predictions or scores",
    "a table of labels, a folder of images, and a model to run on them",
    "a data set and no model: who is in it, and with which labels",
    "embeddings of images, and a table of them",
    "something else",
)
_EXISTING = click.Path(exists=True, path_type=Path)


def on_terminal() -> bool:
    """Whether a person can answer at the terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(config: Path, template: Callable[[str], str]) -> str:
    """Ask about the user's data; return the text of a configuration that runs.

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
    for number, text in enumerate(_SOURCES, start=1):
        note(f"  {number}  {text}")
    choice = click.prompt("Number", type=click.IntRange(1, len(_SOURCES)), err=True)
    if choice == len(_SOURCES):
        return template(click.prompt("Kind of audit", type=click.Choice([*KINDS]), err=True))
    values, notes = _ask_config(choice, config.parent)
    return config_text(values, notes)


def _ask_config(choice: int, folder: Path) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the configuration of a choice, and notes on its guesses."""
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
    source: dict[str, Any] = {"table": _relative_path(table, folder)}
    source |= {"encoding": encoding} if encoding != "utf-8" else {}
    group_sets = [*groups, *map(list, combinations(groups, 2))]
    if choice == 3:
        labels = _columns("Columns of labels; none: press return", names, default="")
        return {
            "audit": "dataset",
            "data": {"images": source, "groups": group_sets, "labels": labels},
        }, ()
    file = click.prompt("File of embeddings, in the order of the table", type=_EXISTING, err=True)
    return {
        "audit": "diversity",
        "data": {"images": source, "sets": group_sets},
        "models": {file.stem: {"file": _relative_path(file, folder)}},
    }, ()


def _relative_path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _columns(text: str, names: Sequence[str], default: str | None = None) -> list[str]:
    """Ask for columns until all of them exist."""

    def parse_names(answer: str) -> list[str]:
        parts = (part.strip() for part in answer.split(","))
        chosen = [*dict.fromkeys(filter(None, parts))]
        missing = [name for name in chosen if name not in names]
        if missing or not (chosen or default == ""):
            raise click.BadParameter(f"expected some of {', '.join(names)}")
        return chosen

    columns: list[str] = click.prompt(text, default=default, value_proc=parse_names, err=True)
    return columns
