"""`equipoise augment`: whether mixing or covering faces in training images helps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from equipoise.cli.terminal import Steps, json_option, note, say, say_json, say_table

if TYPE_CHECKING:
    from equipoise.core import AuditResult


@click.command("augment")
@click.argument("config", required=False, metavar="[CONFIG]", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write the run [default: runs/augment].",
)
@click.option("--overwrite", is_flag=True, help="Replace the run that lies there.")
@click.option(
    "--networks",
    default="cnn,vit",
    show_default=True,
    metavar="NAMES",
    help="Of drawn faces: networks to train, by comma.",
)
@click.option(
    "--images",
    type=click.IntRange(min=40),
    default=1600,
    show_default=True,
    help="Of drawn faces: images of each set, a multiple of 4.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Of drawn faces: training runs of each arm.",
)
@json_option
def command(
    config: Path | None,
    out: Path | None,
    overwrite: bool,
    networks: str,
    images: int,
    repeats: int,
    as_json: bool,
) -> None:
    """Test whether mixing or covering faces helps training.

    Trains on biased images, on the same with mixed or noisy faces, and on balanced ones, and says
    with intervals what helped on the same test images. CONFIG names your own images; without
    it faces are drawn, and a small convolutional network and a small ViT are trained, in minutes.
    What is trained is kept beside the run, so that a killed experiment goes on where it was.
    """
    from equipoise.cli.augmenting.running import run_drawn
    from equipoise.cli.pages import write
    from equipoise.cli.summary import facts
    from equipoise.evidence import new_run

    if images % 4:
        raise click.BadParameter(f"{images} is no multiple of 4", param_hint="'--images'")
    target = out or Path("runs", "augment")
    with new_run(target, overwrite=overwrite) as folder:
        with Steps() as progress:
            if config is None:
                kept = target.with_name(f"{target.name}-trained")
                result = run_drawn(
                    kept, images=images, repeats=repeats, networks=_names(networks), seed=0,
                    progress=progress,
                )  # fmt: skip
            else:
                result = _configured(config, progress)
        write(result, folder)
    if as_json:
        tables = {name: result.tables[name].to_pylist() for name in ("augmentation",)}
        say_json(facts(result, target) | tables)
        return
    _show(result)
    say(f"report: {target / 'report.html'}")


def _configured(config: Path, progress: Steps) -> AuditResult:
    from equipoise.cli.augmenting.config import load_augment_config
    from equipoise.cli.augmenting.running import run_configured

    return run_configured(load_augment_config(config), config.parent, progress, note)


def _names(given: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _show(result: AuditResult) -> None:
    from equipoise.mitigate.page import ARMS, accuracies, conclusions

    rows: Sequence[Sequence[str]] = accuracies(result)
    say("accuracy on the test images, by training images:")
    say_table(("network", *ARMS), rows)
    say()
    for text in conclusions(result):
        say(f"- {text}")
    say()
    for text in result.manifest.notes:
        say(f"note: {text}")
