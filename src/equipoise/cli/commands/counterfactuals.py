"""`equipoise counterfactuals`: make images of caption sets, or of prompts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.outputs import write_output
from equipoise.cli.terminal import Steps, json_option, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.counterfactuals import Generated, Planned

_STOPPED = "interrupted; finished parts stay, and the same command goes on from them"
_UNKNOWN = "unknown until the first part is made"

_config = click.argument("config", type=click.Path(path_type=Path))
_overwrite = click.option("--overwrite", is_flag=True, help="Replace an earlier export.")


@click.group("counterfactuals")
def command() -> None:
    """Make images of caption sets, or of prompts.

    Sets are made with shared attention. Images are made once and kept: a run that is stopped goes
    on where it was, and what was asked for before is not made again. docs/generation.md explains
    CONFIG.
    """


@command.command("new")
@click.argument("config", type=click.Path(path_type=Path), default=Path("counterfactuals.yaml"))
@json_option
def new(config: Path, as_json: bool) -> None:
    """Write a commented CONFIG to start from; a file that is there is never overwritten."""
    from importlib.resources import files

    text = files("equipoise.cli.making").joinpath("template.yaml").read_text(encoding="utf-8")
    write_output(config, text)
    if as_json:
        say_json({"config": str(config)})
    else:
        say(f"wrote {config}. 'equipoise counterfactuals plan {config}' says what it would take.")


@command.command("plan")
@_config
@json_option
def plan(config: Path, as_json: bool) -> None:
    """Say how many images there would be, what is there, and what the rest would take.

    No model is loaded. Time and disk are told from images that the model has made with the same
    settings in this store; before that they are unknown.
    """
    from equipoise.cli.making import asking
    from equipoise.cli.making.config import load_making

    planned = asking.plan(load_making(config), config.parent)
    if as_json:
        say_json(asdict(planned))
    else:
        _show_plan(planned)


@command.command("generate")
@_config
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write the images as PNG files into a new folder, with their table.",
)
@_overwrite
@json_option
def generate(config: Path, export: Path | None, overwrite: bool, as_json: bool) -> None:
    """Make the images that are missing, and say where all of them lie."""
    from equipoise.cli.making import asking
    from equipoise.cli.making.config import load_making
    from equipoise.evidence import check_place

    checked = load_making(config)
    if export is not None:
        check_place(export, overwrite=overwrite)
    try:
        with Steps() as progress:
            found = asking.generate(checked, config.parent, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_STOPPED) from None
    _tell(found, export, overwrite, as_json)


@command.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@_overwrite
@json_option
def export(folder: Path, out: Path, overwrite: bool, as_json: bool) -> None:
    """Write the images of FOLDER as PNG files into the new folder OUT, with their table.

    FOLDER is what `generate` said: <store>/generations/<key>. OUT has metadata.csv, one row for
    each image that was asked for, and images/.
    """
    from equipoise.counterfactuals import read_generated

    _tell(read_generated(folder), out, overwrite, as_json)


def _tell(found: Generated, export: Path | None, overwrite: bool, as_json: bool) -> None:
    from equipoise.counterfactuals import export_images

    facts = _facts(found)
    if export is not None:
        count = export_images(found, export, overwrite=overwrite)
        facts |= {"exported": count, "export": str(export)}
    if as_json:
        say_json(facts)
        return
    states = ", ".join(f"{count:,} {state}" for state, count in facts["states"].items())
    say(f"images asked for: {facts['images']:,} ({states})")
    say(f"made now: {facts['computed']:,}")
    say(f"folder: {facts['folder']} (images.parquet tells of every image; parts hold them)")
    if export is not None:
        say(f"exported: {facts['exported']:,} images and metadata.csv in {export}")


def _facts(found: Generated) -> dict[str, Any]:
    counts = found.table["state"].value_counts().to_pylist()
    return {
        "folder": str(found.folder),
        "images": found.table.num_rows,
        "states": {one["values"]: one["counts"] for one in counts},
        "computed": found.computed,
        "model": found.info.get("name"),
    }


def _show_plan(planned: Planned) -> None:
    kind = "prompts" if planned.sets is None else "captions"
    rows = [(kind, f"{planned.prompts:,}")]
    rows += [] if planned.sets is None else [("sets", f"{planned.sets:,}")]
    rows += [
        ("images of each prompt" if planned.sets is None else "candidates of each set",
         f"{planned.candidates:,}"),
        ("images", f"{planned.images:,}"),
        ("there already", f"{planned.present:,}"),
        ("to do", f"{planned.to_do:,}"),
        ("disk", _UNKNOWN if planned.bytes is None else _size(planned.bytes)),
        ("time", _UNKNOWN if planned.seconds is None else _time(planned.seconds)),
    ]  # fmt: skip
    rows += [] if planned.folder is None else [("folder", str(planned.folder))]
    say_table(("what", "how much"), rows)


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _time(seconds: float) -> str:
    if seconds >= 2 * 3600:
        return f"about {seconds / 3600:,.1f} hours"
    return f"about {seconds / 60:,.0f} minutes" if seconds >= 120 else f"about {seconds:,.0f} s"
