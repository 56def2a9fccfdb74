"""`equipoise export`: give a run to other tools and to papers."""

from __future__ import annotations

from pathlib import Path

import click

from equipoise.cli.terminal import (
    PATH,
    json_option,
    say,
    say_json,
)
from equipoise.exports import FORMS


@click.command("export", epilog="Example: equipoise export runs/first --as cyclonedx --to exports")
@click.argument("run", type=PATH)
@click.option(
    "--as",
    "form",
    type=click.Choice([name.replace("_", "-") for name in sorted(FORMS)]),
    default="card",
    show_default=True,
    metavar="FORM",
    help=f"Form of the export: {', '.join(name.replace('_', '-') for name in sorted(FORMS))}. "
    "`pack` is all forms that fit the run.",
)
@click.option(
    "--to",
    "folder",
    type=PATH,
    metavar="DIR",
    help="New folder for the files [default: print the file].",
)
@click.option(
    "--dataset",
    default="",
    metavar="NAME",
    help="For eval-results: name of the data set on the Hub, such as org/name.",
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier export.")
@json_option
def export_command(
    run: Path, form: str, folder: Path | None, dataset: str, overwrite: bool, as_json: bool
) -> None:
    """Print a run for a model card, a paper or another tool.

    A card has the report's conclusions, the results by group, and the limitations, in Markdown.
    """
    from equipoise.audits.runs import load
    from equipoise.core import RunError
    from equipoise.exports import Run, form_of
    from equipoise.exports.writing import write_files

    files = form_of(form).write(Run(load(run), run, dataset))
    if folder is not None:
        write_files(files, folder, overwrite=overwrite)
    if as_json:
        say_json({"run": run, "as": form, "folder": folder, "files": files})
    elif folder is not None:
        say("\n".join(str(folder / name) for name in files))
    elif len(files) == 1:
        say("".join(files.values()).rstrip())
    else:
        raise RunError(
            f"{form} has {len(files)} files, which can't be printed as one. "
            f"To do: name a folder for them, such as --to exports"
        )
