"""`equipoise counterfactuals`: make images of caption sets, or of prompts."""

from dataclasses import asdict, replace
from pathlib import Path

import click

from equipoise.cli.groups import SuggestingGroup
from equipoise.cli.outputs import write_output
from equipoise.cli.terminal import (
    PATH,
    Steps,
    config_argument,
    json_option,
    say,
    say_json,
    say_values,
)

_STOPPED = "interrupted; finished images are kept, and the same command resumes from them"


@click.group(
    "counterfactuals",
    cls=SuggestingGroup,
    epilog="Example: equipoise counterfactuals generate sets.yaml",
)
def counterfactuals_command() -> None:
    """Make images of caption sets, or of prompts.

    Images of a set share attention. Finished images are kept, so a stopped run resumes.
    docs/counterfactuals.md explains CONFIG.
    """


@counterfactuals_command.command("new", epilog="Example: equipoise counterfactuals new sets.yaml")
@click.argument("config", type=PATH, default=Path("counterfactuals.yaml"))
@json_option
def new(config: Path, as_json: bool) -> None:
    """Write a commented CONFIG to start from.

    An existing file is never overwritten.
    """
    from importlib.resources import files

    text = files("equipoise.cli").joinpath("generation_template.yaml").read_text(encoding="utf-8")
    write_output(config, text)
    if as_json:
        say_json({"config": str(config)})
    else:
        say(f"wrote {config}. Next: 'equipoise counterfactuals plan {config}'.")


@counterfactuals_command.command("plan", epilog="Example: equipoise counterfactuals plan sets.yaml")
@config_argument
@json_option
def plan(config: Path, as_json: bool) -> None:
    """Count existing and missing images, and estimate the cost.

    No model is loaded. Time and disk are estimated from earlier images of the same model and
    settings. Without earlier images they are unknown.
    """
    from equipoise.cli.generation import MakingConfig
    from equipoise.cli.runs import load_for
    from equipoise.counterfactuals import plan

    planned = plan(**load_for(config, MakingConfig, "counterfactuals").arguments(config.parent))
    (say_json if as_json else say_values)(asdict(planned))


@counterfactuals_command.command(
    "generate", epilog="Example: equipoise counterfactuals generate sets.yaml --export photos"
)
@config_argument
@click.option(
    "--export",
    type=PATH,
    metavar="DIR",
    help="Also write the images as PNG files into a new folder, with their table.",
)
@click.option("--overwrite", is_flag=True, help="Replace an earlier export.")
@json_option
def generate(config: Path, export: Path | None, overwrite: bool, as_json: bool) -> None:
    """Generate missing images and print their folder.

    The folder of --export has images/, and metadata.csv with a row for each image.
    """
    from equipoise.cli.generation import MakingConfig
    from equipoise.cli.runs import load_for
    from equipoise.counterfactuals import export_images, generate
    from equipoise.evidence import check_place

    making = load_for(config, MakingConfig, "counterfactuals")
    if export is not None:
        check_place(export, overwrite=overwrite)
    try:
        with Steps() as progress:
            arguments = making.arguments(config.parent)
            settings = replace(arguments.pop("settings"), progress=progress)
            generated = generate(**arguments, settings=settings)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_STOPPED) from None
    states = generated.table["state"].value_counts().to_pylist()
    facts = {
        "folder": str(generated.folder),
        "images": generated.table.num_rows,
        "states": {state["values"]: state["counts"] for state in states},
        "computed": generated.computed,
        "model": generated.info.get("name"),
    }
    if export is not None:
        count = export_images(generated, export, overwrite=overwrite)
        facts |= {"exported": count, "export": str(export)}
    (say_json if as_json else say_values)(facts)
